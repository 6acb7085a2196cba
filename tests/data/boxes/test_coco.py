import json
from pathlib import Path

import pytest

from octavolt.data.boxes.opened import kind_of, open_boxes
from octavolt.errors import OctavoltError

from .made import annotation, boxes, coco, image, kinds, picture, the_fault


def two_splits(root: Path) -> Path:
    for name in ("train2017/1.jpg", "train2017/2.jpg", "val2017/1.jpg"):
        picture(root / name)
    coco(
        root / "annotations/instances_train2017.json",
        [image(5, "1.jpg"), image(9, "2.jpg")],
        [
            annotation(1, 9, 7, 10, 20, 30, 15, area=99.5),
            annotation(2, 5, 3, 0, 0, 60, 40, iscrowd=1),
            annotation(3, 9, 3, 1.5, 2, 3, 4),
        ],
    )
    coco(
        root / "annotations/instances_val2017.json",
        [image(5, "1.jpg")],
        [annotation(1, 5, 3, 1, 2, 3, 4)],
    )
    return root


def test_splits_pictures_and_boxes_are_found(tmp_path: Path) -> None:
    data = open_boxes(str(two_splits(tmp_path)))
    assert (data.format, data.classes, data.faults) == ("coco", ("cat", "dog"), ())
    assert boxes(data) == {
        "train/1.jpg": [("cat", [0, 0, 60, 40])],
        "train/2.jpg": [("dog", [10, 20, 40, 35]), ("cat", [1.5, 2, 4.5, 6])],
        "val/1.jpg": [("cat", [1, 2, 4, 6])],
    }
    assert data.splits["val"].name(0) == "val2017/1.jpg"


def test_crowds_and_areas_are_kept(tmp_path: Path) -> None:
    train = open_boxes(str(two_splits(tmp_path))).splits["train"]
    assert train.truth(0).crowd.tolist() == [True]
    assert train.truth(1).areas.tolist() == [99.5, 12]


def test_lists_may_stand_in_any_order(tmp_path: Path) -> None:
    root = two_splits(tmp_path)
    before = boxes(open_boxes(str(root)))
    file = root / "annotations/instances_train2017.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({key: document[key] for key in sorted(document)}))
    assert boxes(open_boxes(str(root))) == before


def test_other_files_of_coco_are_not_used(tmp_path: Path) -> None:
    root = two_splits(tmp_path)
    coco(root / "annotations/captions_val2017.json", [image(5, "1.jpg")], [{"caption": "a"}])
    data = open_boxes(str(root))
    assert "'annotations/captions_val2017.json' is not used." in data.notes
    assert len(data.splits["val"]) == 1


def test_one_file_is_divided_by_octavolt(tmp_path: Path) -> None:
    for key in range(20):
        picture(tmp_path / f"{key}.jpg", key)
    one = [annotation(key, key, 3, 1, 2, 3, 4) for key in range(20)]
    file = coco(tmp_path / "all.json", [image(key, f"{key}.jpg") for key in range(20)], one)
    data = open_boxes(str(file))
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 16,
        "val": 2,
        "test": 2,
    }
    assert boxes(open_boxes(str(tmp_path))) == boxes(data)
    assert boxes(open_boxes(str(file), seed=1)).keys() != boxes(data).keys()


def test_a_file_beside_its_pictures_in_a_folder_a_split_is_of_that_split(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        picture(tmp_path / split / "1.jpg")
        coco(
            tmp_path / split / "_annotations.coco.json",
            [image(0, "1.jpg")],
            [annotation(0, 0, 3, 1, 2, 3, 4)],
        )
    data = open_boxes(str(tmp_path))
    assert {split: pictures.name(0) for split, pictures in data.splits.items()} == {
        "train": "train/1.jpg",
        "val": "valid/1.jpg",
    }


def test_validation_alone_can_be_evaluated_on_but_not_trained(tmp_path: Path) -> None:
    picture(tmp_path / "val2017/1.jpg")
    coco(
        tmp_path / "annotations/instances_val2017.json",
        [image(0, "1.jpg")],
        [annotation(0, 0, 3, 1, 2, 3, 4)],
    )
    data = open_boxes(str(tmp_path))
    assert [*data.splits] == ["val"]
    fault = the_fault(data, "no-training-split")
    assert fault.stops
    assert not fault.damaged


def faulty(tmp_path: Path, *annotations: dict[str, object], indent: int | None = 1) -> Path:
    picture(tmp_path / "images/train/1.jpg")
    picture(tmp_path / "images/val/2.jpg")
    coco(
        tmp_path / "annotations/instances_train.json",
        [image(1, "1.jpg")],
        [annotation(100, 1, 3, 5, 5, 10, 10), *annotations],
        indent=indent,
    )
    coco(
        tmp_path / "annotations/instances_val.json",
        [image(2, "2.jpg")],
        [annotation(1, 2, 3, 5, 5, 10, 10)],
    )
    return tmp_path


FILE = "annotations/instances_train.json"


def test_a_box_without_area_is_left_out_with_its_line(tmp_path: Path) -> None:
    root = faulty(tmp_path, annotation(101, 1, 7, 5, 5, 0, 10))
    data = open_boxes(str(root))
    fault = the_fault(data, "box-without-area")
    line = (root / FILE).read_text().split('"id": 101')[0].count("\n")
    assert (fault.file, fault.line, fault.stops) == (FILE, line, False)
    assert "annotation id 101" in fault.problem
    assert len(data.splits["train"].boxes.labels) == 1


def test_in_a_file_of_one_line_the_id_tells_the_box(tmp_path: Path) -> None:
    bad = annotation(101, 1, 7, 5, 5, 0, 10)
    del bad["id"]
    data = open_boxes(str(faulty(tmp_path, bad, indent=None)))
    assert the_fault(data, "box-without-area").problem == (
        "the box 5, 5, 5, 15 has no area; left out ('images/train/1.jpg', annotation 2)"
    )


@pytest.mark.parametrize(
    ("box", "kind", "kept"),
    [
        ((-30, 5, 20, 10), "box-outside", None),
        ((70, 5, 20, 10), "box-outside", None),
        ((50, 5, 20, 10), "box-clipped", [50, 5, 60, 15]),
        ((50, 5, -20, 10), "swapped-corners", [30, 5, 50, 15]),
        ((5, 5, 10, 10), "duplicate-box", None),
        ((5, 5, "10", 10), "wrong-annotation", None),
        ((5, 5, 10), "wrong-annotation", None),
        ((5, 5, float("nan"), 10), "wrong-annotation", None),
    ],
)
def test_each_wrong_box_has_its_kind(
    tmp_path: Path, box: tuple[float, ...], kind: str, kept: list[float] | None
) -> None:
    root = faulty(tmp_path, annotation(101, 1, 3, *box))
    picture(root / "images/train/3.jpg")
    file = coco(
        root / FILE,
        [image(1, "1.jpg"), image(3, "3.jpg")],
        [
            annotation(100, 1, 3, 5, 5, 10, 10),
            annotation(101, 1, 3, *box),
            annotation(102, 3, 3, 5, 5, 10, 10),
        ],
        indent=0,
    )
    data = open_boxes(str(root))
    fault = the_fault(data, kind)
    assert fault.file == FILE
    assert fault.line == file.read_text().split('"id": 101')[0].count("\n")
    assert [one.kind for one in data.faults] == [kind]
    pictures = {name: [corners for _, corners in held] for name, held in boxes(data).items()}
    if fault.damaged:
        assert "train/1.jpg" not in pictures
    else:
        assert pictures["train/1.jpg"] == [[5, 5, 15, 15], *([kept] if kept else [])]


def test_a_box_may_reach_a_pixel_out_unsaid_and_is_clipped(tmp_path: Path) -> None:
    data = open_boxes(str(faulty(tmp_path, annotation(101, 1, 7, -1, 30, 62, 11))))
    assert data.faults == ()
    assert boxes(data)["train/1.jpg"][1] == ("dog", [0, 30, 60, 40])


def test_the_same_box_of_another_class_is_no_duplicate(tmp_path: Path) -> None:
    data = open_boxes(str(faulty(tmp_path, annotation(101, 1, 7, 5, 5, 10, 10))))
    assert data.faults == ()


def test_an_unknown_category_and_an_unknown_picture_are_faults(tmp_path: Path) -> None:
    root = faulty(tmp_path, annotation(101, 77, 3, 5, 5, 10, 10), indent=None)
    data = open_boxes(str(root))
    assert the_fault(data, "wrong-annotation").problem == (
        "the image_id 77 is no id of 'images' (annotation id 101)"
    )
    picture(root / "images/train/3.jpg")
    coco(
        root / FILE,
        [image(1, "1.jpg"), image(3, "3.jpg")],
        [annotation(1, 1, 4, 5, 5, 10, 10), annotation(2, 3, 3, 5, 5, 10, 10)],
    )
    data = open_boxes(str(root))
    fault = the_fault(data, "unknown-category")
    assert fault.problem == "the category_id 4 is no id of 'categories' (annotation id 1)"
    assert fault.damaged
    assert [*boxes(data)] == ["train/3.jpg", "val/2.jpg"]


def test_pictures_that_are_missing_renamed_or_not_annotated_are_told(tmp_path: Path) -> None:
    root = faulty(tmp_path)
    picture(root / "images/train/more.jpg")
    picture(root / "images/train/caf\u00e9 1.PNG")
    coco(
        root / FILE,
        [image(1, "1.jpg"), image(2, "gone.jpg"), image(3, "cafe\u0301 1.jpg")],
        [annotation(1, 1, 3, 5, 5, 10, 10), annotation(2, 2, 3, 5, 5, 10, 10)],
        indent=0,
    )
    data = open_boxes(str(root))
    assert kinds(data) == [
        ("missing-file", FILE, 9),
        ("other-ending", FILE, 15),
        ("no-annotation", "images/train/more.jpg", None),
    ]
    assert the_fault(data, "missing-file").problem == "there is no picture 'gone.jpg'"
    assert len(data.splits["train"]) == 2


def test_names_that_can_not_be_written_are_told(tmp_path: Path) -> None:
    root = faulty(tmp_path, annotation(101, 1, 7, 5, 5, 5, 5))
    cats = [{"id": 3, "name": "cat"}, {"id": 7, "name": "\ud800 dog\n"}]
    images = [image(1, "1.jpg"), image(2, "\ud800.jpg")]
    coco(root / FILE, images, [annotation(100, 1, 3, 5, 5, 10, 10)], categories=cats)
    data = open_boxes(str(root))
    assert "'\\ud800.jpg' is no name of a file" in the_fault(data, "missing-file").problem
    assert data.classes[1] == "\\ud800 dog"


def test_no_picture_at_all_is_an_error(tmp_path: Path) -> None:
    coco(tmp_path / "a.json", [image(1, "x/1.jpg")], [annotation(1, 1, 3, 5, 5, 10, 10)])
    with pytest.raises(OctavoltError, match=r"none lies below .*there is no picture 'x/1\.jpg'"):
        open_boxes(str(tmp_path))


def test_no_box_that_can_be_used_is_an_error(tmp_path: Path) -> None:
    picture(tmp_path / "1.jpg")
    file = coco(tmp_path / "a.json", [image(1, "1.jpg")], [annotation(1, 1, 3, 5, 5, 0, 0)])
    with pytest.raises(OctavoltError, match=r"No box of .* can be used.*has no area"):
        open_boxes(str(file))
    coco(file, [image(1, "1.jpg")], [])
    with pytest.raises(OctavoltError, match="1 picture and no box"):
        open_boxes(str(file))


def test_a_name_that_stands_in_two_folders_needs_its_folder(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        picture(tmp_path / folder / "1.jpg")
    picture(tmp_path / "2.jpg")
    file = coco(
        tmp_path / "all.json",
        [image(1, "1.jpg"), image(2, "b/1.jpg"), image(3, "2.jpg")],
        [annotation(key, key, 3, 5, 5, 10, 10) for key in (1, 2, 3)],
    )
    data = open_boxes(str(file))
    assert "may be 'a/1.jpg' or 'b/1.jpg'" in the_fault(data, "missing-file").problem
    names = [one.name(row) for one in data.splits.values() for row in range(len(one))]
    assert sorted(names) == ["2.jpg", "b/1.jpg"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"images": [\n{"id": 1,}\n]}', r"line 2: no JSON that can be read"),
        ('{"images": [], "annotations": []}', r"has no list 'categories'"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(OctavoltError, match=message):
        open_boxes(str(tmp_path / "a.json"))


def test_other_json_is_not_taken(tmp_path: Path) -> None:
    for name, text in {
        "squad.json": '{"version": "1.1", "data": [{"title": "a", "paragraphs": []}]}',
        "results.json": '[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1}]',
        "lines.json": '{"images": 3}',
    }.items():
        (tmp_path / name).write_text(text)
        assert not kind_of(str(tmp_path / name))
