from pathlib import Path

import pytest

from octavolt.data.boxes.opened import open_boxes
from octavolt.errors import OctavoltError

from .made import boxes, kinds, picture, voc


def folder(root: Path, *names: str) -> Path:
    for seed, name in enumerate(names):
        picture(root / "JPEGImages" / f"{name}.jpg", seed)
        voc(root / "Annotations" / f"{name}.xml", "cat 1 2 30 40")
    return root


def lists(root: Path, **splits: str) -> None:
    (root / "ImageSets/Main").mkdir(parents=True)
    for split, names in splits.items():
        (root / "ImageSets/Main" / f"{split}.txt").write_text("".join(f"{n}\n" for n in names))


def test_corners_are_kept_as_they_stand(tmp_path: Path) -> None:
    data = open_boxes(str(folder(tmp_path, *"abcd")))
    assert (data.format, data.classes) == ("voc", ("cat",))
    assert {tuple(corners) for held in boxes(data).values() for _, corners in held} == {
        (1, 2, 30, 40)
    }
    assert {name: len(one) for name, one in data.splits.items()} == {
        "train": 2,
        "val": 1,
        "test": 1,
    }


@pytest.mark.parametrize("wrapper", ["", "VOC", "VOCdevkit/VOC2007"])
def test_lists_divide_and_trainval_gives_way_to_train(tmp_path: Path, wrapper: str) -> None:
    root = folder(tmp_path / wrapper, *"abcde")
    lists(root, train="ab", val="c", trainval="abc", test="d")
    data = open_boxes(str(tmp_path))
    assert [*boxes(data)] == ["train/a.jpg", "train/b.jpg", "val/c.jpg", "test/d.jpg"]
    assert data.notes[0] == "1 annotation is in no list of ImageSets and not used."
    assert data.faults == ()


def test_val_is_taken_from_trainval_if_that_is_all(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abcde")
    lists(root, trainval="abcd", test="e")
    data = open_boxes(str(tmp_path))
    assert {name: len(one) for name, one in data.splits.items()} == {
        "train": 3,
        "val": 1,
        "test": 1,
    }


def test_a_list_that_names_what_there_is_not_or_what_another_has(tmp_path: Path) -> None:
    root = folder(tmp_path, *"ab")
    lists(root, train="ax", val="ba")
    data = open_boxes(str(tmp_path))
    assert kinds(data) == [
        ("in-two-splits", "ImageSets/Main/val.txt", 2),
        ("missing-file", "ImageSets/Main/train.txt", 2),
    ]


def test_classes_are_those_of_train_in_natural_order(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    voc(root / "Annotations/a.xml", "day10 1 2 3 4", "day2 1 2 3 4")
    voc(root / "Annotations/b.xml", "dya2 1 2 3 4", "day2 1 2 3 4")
    lists(root, train="a", val="b", test="c")
    data = open_boxes(str(root))
    assert data.classes == ("day2", "day10")
    assert [(one.problem, one.stops) for one in data.faults] == [
        ("class 'cat' is not in train; its 1 box is left out", False),
        ("class 'dya2' is not in train; its 1 box is left out", False),
    ]
    assert boxes(data)["val/b.jpg"] == [("day2", [1, 2, 3, 4])]


def test_a_list_of_classes_keeps_their_order(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    (root / "classes.txt").write_text("dog\ncat\n")
    assert open_boxes(str(root)).classes == ("dog", "cat")
    (root / "classes.txt").write_text("dog\n")
    with pytest.raises(OctavoltError, match=r"'classes\.txt' lacks the class 'cat'"):
        open_boxes(str(root))


def test_parts_of_an_object_are_no_objects(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    file = root / "Annotations/a.xml"
    part = "<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>"
    file.write_text(file.read_text().replace("</object>", f"{part}</object>"))
    data = open_boxes(str(root))
    assert (data.classes, data.faults) == (("cat",), ())


def test_difficult_is_kept(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    for file in (root / "Annotations").iterdir():
        file.write_text(file.read_text().replace("<difficult>0", "<difficult>1"))
    assert open_boxes(str(root)).splits["train"].boxes.difficult.tolist() == [True]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("cat 1,5 2 30 40", 6, "'cat': xmin: the number '1,5' has a comma; write 1.5"),
        ("cat 1 2 30 nan", 6, "'cat': ymax: 'nan' is no finite number"),
        ("cat 1 2 x 40", 6, "'cat': xmax: 'x' is no number"),
        ("cat 70 2 90 40", 4, "the box 70, 2, 90, 40 lies outside of its picture of 60 x 40"),
    ],
)
def test_what_is_no_box_costs_its_picture(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    root = folder(tmp_path, *"abcd")
    voc(root / "Annotations/b.xml", text)
    data = open_boxes(str(root))
    (fault,) = data.faults
    assert (fault.file, fault.line, fault.damaged) == ("Annotations/b.xml", line, True)
    assert fault.problem.startswith(problem)
    assert sum(map(len, data.splits.values())) == 3


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("<annotation>\n<size>\n</annotation>", 3, "no XML: mismatched tag"),
        ('<!DOCTYPE a [<!ENTITY b "b">]>\n<annotation/>', None, "it has a DOCTYPE"),
        ("<html/>", None, "no annotation: it begins <html>"),
        ("", 1, "no XML: no element found"),
    ],
)
def test_what_is_no_annotation_is_refused(
    tmp_path: Path, text: str, line: int | None, problem: str
) -> None:
    root = folder(tmp_path, *"abcd")
    (root / "Annotations/b.xml").write_text(text)
    data = open_boxes(str(root))
    (fault,) = data.faults
    assert (fault.file, fault.line, fault.damaged) == ("Annotations/b.xml", line, True)
    assert fault.problem.startswith(problem)


def test_a_picture_is_found_by_the_name_of_its_annotation_first(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    voc(root / "Annotations/a.xml", "cat 1 2 3 4", filename="from another machine.png")
    picture(root / "JPEGImages/named inside.jpg")
    voc(root / "Annotations/d.xml", "cat 1 2 3 4", filename="named inside.jpg")
    data = open_boxes(str(root))
    assert data.faults == ()
    assert "named inside.jpg" in {name.partition("/")[2] for name in boxes(data)}


def test_other_endings_and_doubles_are_told(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abcd")
    picture(root / "JPEGImages/b.png")
    (root / "JPEGImages/c.jpg").rename(root / "JPEGImages/c.jpeg")
    (root / "JPEGImages/d.jpg").unlink()
    data = open_boxes(str(root))
    assert kinds(data) == [
        ("other-ending", "Annotations/c.xml", None),
        ("missing-file", "Annotations/d.xml", None),
        ("no-annotation", "JPEGImages/b.png", None),
    ]


def test_names_with_spaces_and_accents_work(tmp_path: Path) -> None:
    data = open_boxes(str(folder(tmp_path, "à la carte", "猫 1", "c", "d")))
    assert data.faults == ()
    assert {name.partition("/")[2] for name in boxes(data)} >= {"à la carte.jpg", "猫 1.jpg"}


def test_a_size_that_is_not_stated_is_read_from_the_picture(tmp_path: Path) -> None:
    root = folder(tmp_path, *"abc")
    for name in "abc":
        voc(root / f"Annotations/{name}.xml", "cat 1 2 59 40", size="0x0")
    data = open_boxes(str(root))
    assert data.splits["train"].sizes.tolist() == [[40, 60]]
