from pathlib import Path

import pytest

from octavolt.data.boxes.opened import kind_of, open_boxes
from octavolt.errors import OctavoltError

from .made import boxes, picture

NAMES = ("a 1.jpg", "b.jpg", "c.jpg")
SPLITS = ("train", "train", "val")


def table(root: Path, header: str, *rows: str, name: str = "boxes.csv") -> Path:
    for seed, one in enumerate(NAMES):
        picture(root / "images" / one, seed)
    (root / name).write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return root / name


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("filename,class,xmin,ymin,xmax,ymax,split", "{},cat,1,2,4,6,{}"),
        ("image_path;label;x1;y1;x2;y2;set", "images/{};cat;1;2;4;6.0;{}"),
        ("split\tpath\tx\ty\twidth\theight\tlabel", "{1}\t{0}\t1\t2\t3\t4\tcat"),
        ("filename,width,height,class,xmin,ymin,xmax,ymax,split", "{},60,40,cat,1,2,4,6,{}"),
    ],
)
@pytest.mark.parametrize("named", ["folder", "file"])
def test_columns_are_found_by_name(tmp_path: Path, header: str, row: str, named: str) -> None:
    file = table(tmp_path, header, *map(row.format, NAMES, SPLITS))
    source = tmp_path if named == "folder" else file
    assert kind_of(str(source))
    data = open_boxes(str(source))
    assert (data.format, data.classes, data.faults) == ("csv", ("cat",), ())
    assert boxes(data) == {
        f"{split}/{name}": [("cat", [1, 2, 4, 6])]
        for split, name in zip(SPLITS, NAMES, strict=True)
    }


def test_a_row_without_box_is_a_picture_without(tmp_path: Path) -> None:
    file = table(
        tmp_path,
        "file,class,xmin,ymin,xmax,ymax,split",
        *("a 1.jpg,cat,1,2,3,4,train", "a 1.jpg,dog,1,2,3,4,train", "b.jpg,,,,,,train"),
        "c.jpg,dog,1,2,3,4,val",
    )
    assert boxes(open_boxes(str(file))) == {
        "train/a 1.jpg": [("cat", [1, 2, 3, 4]), ("dog", [1, 2, 3, 4])],
        "train/b.jpg": [],
        "val/c.jpg": [("dog", [1, 2, 3, 4])],
    }


def test_files_may_be_named_as_splits(tmp_path: Path) -> None:
    header = "file,class,xmin,ymin,xmax,ymax"
    table(tmp_path, header, "b.jpg,cat,1,2,3,4", name="train_labels.csv")
    table(tmp_path, header, "c.jpg,cat,1,2,3,4", name="val_labels.csv")
    table(tmp_path, header, "c.jpg,cat,1,2,3,4", name="all.csv")
    data = open_boxes(str(tmp_path))
    assert [*boxes(data)] == ["train/b.jpg", "val/c.jpg"]
    assert "'all.csv' is not used: it names no split." in data.notes


@pytest.mark.parametrize(
    ("row", "kind", "problem"),
    [
        ('b.jpg,cat,"1,5",2,3,4,train', "wrong-annotation", "the number '1,5' has a comma"),
        ("b.jpg,cat,1,2,3,4", "wrong-annotation", "6 columns, where the header has 7"),
        ("b.jpg,,1,2,3,4,train", "wrong-annotation", "the box has no class"),
        ("b.jpg,cat,1,2,3,,train", "wrong-annotation", "a number is missing"),
        (",cat,1,2,3,4,train", "wrong-annotation", "the path is empty"),
        ("b.jpg,cat,1,2,3,4,tset", "wrong-annotation", "the split 'tset' is not train"),
        ("b.jpg,cat,1,2,3,4,val", "wrong-annotation", "the picture stands in two splits"),
        ("d.jpg,cat,1,2,3,4,train", "missing-file", "there is no picture 'd.jpg'"),
    ],
)
def test_wrong_rows_are_faults_with_their_line(
    tmp_path: Path, row: str, kind: str, problem: str
) -> None:
    file = table(
        tmp_path,
        "file,class,xmin,ymin,xmax,ymax,split",
        *("a 1.jpg,cat,1,2,3,4,train", "b.jpg,cat,5,2,9,4,train", "c.jpg,cat,1,2,3,4,val"),
        *("", row),
    )
    (fault,) = open_boxes(str(file)).faults
    assert (fault.kind, fault.file, fault.line, fault.damaged) == (kind, "boxes.csv", 6, True)
    assert fault.problem.startswith(problem)


def test_a_table_of_labels_is_none_of_boxes(tmp_path: Path) -> None:
    file = table(tmp_path, "file,class,width,height", "b.jpg,cat,60,40")
    assert not kind_of(str(file))
    with pytest.raises(OctavoltError, match="holds no boxes in a format that octavolt reads"):
        open_boxes(str(file))
