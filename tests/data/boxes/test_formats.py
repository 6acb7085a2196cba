"""Formats of boxes: read, checked, and written into one another."""

import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.testing import assert_allclose

from octavolt.contract import DataSet
from octavolt.data import task_of
from octavolt.data.boxes.checked import check_boxes
from octavolt.data.boxes.opened import is_boxes, open_boxes
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.boxes.written import WRITERS, write_boxes
from octavolt.data.boxes.yolo_txt import yaml_names
from octavolt.data.relabel import joined, relabelled
from octavolt.errors import OctavoltError

XML = """<annotation>
  <filename>{name}</filename>
  <size><width>{width}</width><height>{height}</height><depth>3</depth></size>
  <object><name>{label}</name><difficult>0</difficult>
    <bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox>
  </object>
</annotation>
"""


def picture(path: Path, height: int = 40, width: int = 60) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    seed = len(str(path)) + sum(path.name.encode())
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def coco(folder: Path, annotations: list[dict[str, Any]], **changes: Any) -> Path:
    """Write three pictures and a JSON file with those annotations."""
    for name in ("a b.jpg", "猫.png", "c.jpg"):
        picture(folder / "images" / name)
    content = {
        "images": [
            {"id": 10, "file_name": "a b.jpg", "height": 40, "width": 60},
            {"id": 7, "file_name": "猫.png", "height": 40, "width": 60},
            {"id": 3, "file_name": "c.jpg", "height": 40, "width": 60},
        ],
        "categories": [{"id": 5, "name": "dog"}, {"id": 90, "name": "cat"}],
        "annotations": [{"id": place, **one} for place, one in enumerate(annotations)],
    }
    (folder / "annotations.json").write_text(json.dumps(content | changes), "utf-8")
    return folder


def box(*sides: float, image: int = 10, category: int = 5, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": list(sides), **more}


def problems(data: DataSet) -> dict[str, str]:
    """Return the problems of the format by their kind."""
    return {one.kind: f"{one.file}: {one.problem}" for one in data.faults}


def voc(folder: Path, **changes: Any) -> Path:
    """Write two pictures with an XML file each."""
    for name, label in (("one", "dog"), ("two", "cat")):
        picture(folder / "JPEGImages" / f"{name}.jpg")
        values = {
            "name": f"{name}.jpg",
            "label": label,
            "width": 60,
            "height": 40,
            "box": (5, 6, 25, 30),
        } | (changes if name == "two" else {})
        (folder / "Annotations").mkdir(exist_ok=True)
        (folder / "Annotations" / f"{name}.xml").write_text(XML.format(**values), "utf-8")
    return folder


def test_coco_is_read_with_its_own_numbers_of_categories(tmp_path: Path) -> None:
    source = coco(
        tmp_path,
        [
            box(1, 2, 10, 20),
            box(30, 5, 12, 8, category=90, image=7),
            box(0, 0, 60, 40, iscrowd=1, area=99.5),
        ],
    )
    data = open_boxes(str(source), seed=0)
    assert (data.format, data.classes) == ("coco", ("dog", "cat"))
    whole = joined([*data.splits.values()])
    assert isinstance(whole, BoxedPictures)
    by_name = {whole.name(row): whole.truth(row) for row in range(len(whole))}
    assert by_name.keys() == {"images/a b.jpg", "images/猫.png", "images/c.jpg"}
    first = by_name["images/a b.jpg"]
    assert first.boxes.tolist() == [[1, 2, 11, 22], [0, 0, 60, 40]]
    assert first.crowd.tolist() == [False, True]
    assert first.areas.tolist() == [200.0, 99.5]
    assert by_name["images/猫.png"].labels.tolist() == [1]
    assert len(by_name["images/c.jpg"].labels) == 0
    assert "images/c.jpg: has no box" in problems(data)["picture-unannotated"]


@pytest.mark.parametrize(
    ("sides", "kind", "words", "kept"),
    [
        ((5, 5, 0, 10), "box-without-area", "no area \\(0 x 10 pixels\\)", 0),
        ((70, 5, 10, 10), "box-outside", "lies outside", 0),
        ((50, 30, 20, 20), "box-outside", "10 pixels out of .* is clipped", 1),
        ((30, 20, -10, -5), "corners-swapped", "put right", 1),
    ],
)
def test_wrong_boxes_are_said_and_left_out_or_mended(
    sides: tuple[float, ...], kind: str, words: str, kept: int, tmp_path: Path
) -> None:
    data = open_boxes(str(coco(tmp_path, [box(1, 1, 5, 5, image=7), box(*sides)])), seed=0)
    (fault,) = [one for one in data.faults if one.kind == kind]
    assert not fault.stops
    assert re.search(words, fault.problem), fault.problem
    assert "annotations[1] (id 1)" in fault.problem
    assert sum(len(split.boxes.labels) for split in data.splits.values()) == 1 + kept


def test_a_box_that_stands_twice_counts_once(tmp_path: Path) -> None:
    data = open_boxes(str(coco(tmp_path, [box(1, 1, 5, 5), box(1, 1, 5, 5)])), seed=0)
    assert "stands twice" in problems(data)["box-twice"]
    assert sum(len(split.boxes.labels) for split in data.splits.values()) == 1


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (box(1, 1, 5, 5, category=6), "a category with id 6, which is not in categories"),
        (box(1, 1, 5, 5, image=99), "a picture with id 99, which is not in images"),
        (box(1, 1, 5), "annotations\\[1\\] .* no box of four numbers"),
        ({"image_id": 10, "category_id": 5, "bbox": ["1,5", 2, 3, 4]}, "'1,5' is no number"),
    ],
)
def test_annotations_that_name_nothing_stop_a_training(
    annotation: dict[str, Any], words: str, tmp_path: Path
) -> None:
    data = open_boxes(str(coco(tmp_path, [box(1, 1, 5, 5), annotation])), seed=0)
    (fault,) = [one for one in data.faults if one.stops]
    assert re.search(words, fault.problem), fault.problem
    assert fault.damaged


def test_pictures_that_are_missing_are_named(tmp_path: Path) -> None:
    source = coco(tmp_path, [box(1, 1, 5, 5, image=7)])
    (source / "images" / "c.jpg").unlink()
    data = open_boxes(str(source), seed=0)
    assert problems(data)["missing-file"] == "c.jpg: is annotated, but there is no such file"


def test_no_usable_box_is_an_error(tmp_path: Path) -> None:
    data = open_boxes(str(coco(tmp_path, [box(1, 1, 0, 0)])), seed=0)
    (fault,) = [one for one in data.faults if one.kind == "no-boxes"]
    assert fault.stops


def test_voc_is_read_with_lists_and_lines(tmp_path: Path) -> None:
    source = voc(tmp_path, box=(5, 6, 5, 30))
    lists = source / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("one\n")
    (lists / "test.txt").write_text("two\nthree\n")
    data = open_boxes(str(source), seed=0)
    assert (data.format, data.classes) == ("voc", ("cat", "dog"))
    assert {name: len(split) for name, split in data.splits.items()} == {"train": 1, "test": 1}
    (lost,) = [one for one in data.faults if one.stops]
    assert (lost.file, lost.line) == ("ImageSets/Main/test.txt", 2)
    (empty,) = [one for one in data.faults if one.kind == "box-without-area"]
    assert (empty.file, empty.line) == ("Annotations/two.xml", 4)


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"width": 61}, "size-differs", "61 x 40 pixels, but it has 60 x 40"),
        ({"box": ("1,5", 2, 3, 4)}, "wrong-row", "line 4: xmin is '1,5', no number"),
        ({"label": ""}, "wrong-row", "line 4: object 1 has no name"),
    ],
)
def test_wrong_xml_is_said(changes: dict[str, Any], kind: str, words: str, tmp_path: Path) -> None:
    data = open_boxes(str(voc(tmp_path, **changes)), seed=0)
    assert words in problems(data)[kind]


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    source = voc(tmp_path)
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]><annotation/>'
    (source / "Annotations" / "two.xml").write_text(bomb)
    data = open_boxes(str(source), seed=0)
    assert "has a document type" in problems(data)["wrong-row"]


def yolo(folder: Path, lines: str, names: str | None = "names: [dog, cat]\n") -> Path:
    for split in ("train", "val"):
        picture(folder / "images" / split / f"{split}.jpg")
        (folder / "labels" / split).mkdir(parents=True, exist_ok=True)
        (folder / "labels" / split / f"{split}.txt").write_text(lines)
    if names is not None:
        (folder / "data.yaml").write_text(names)
    return folder


def test_yolo_is_read_in_pixels(tmp_path: Path) -> None:
    data = open_boxes(str(yolo(tmp_path, "1 0.5 0.5 0.2 0.5\n")), seed=0)
    assert (data.format, data.classes, [*data.splits]) == ("yolo", ("dog", "cat"), ["train", "val"])
    truth = data.splits["train"].truth(0)
    assert_allclose(truth.boxes.numpy(), [[24, 10, 36, 30]])
    assert truth.labels.tolist() == [1]


def test_wrong_lines_of_yolo_are_said_with_their_line(tmp_path: Path) -> None:
    lines = "0 0.5 0.5 0.2 0.5\n\n0 0,5 0.5 0.2 0.5\n0 120 80 30 40\n"
    data = open_boxes(str(yolo(tmp_path, lines)), seed=0)
    found = [(one.file, one.line) for one in data.faults if one.kind == "wrong-row"]
    assert found[:2] == [("labels/train/train.txt", 3), ("labels/train/train.txt", 4)]


def test_fewer_names_than_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match="names 2 classes, 0 to 1, but a box is of class 4"):
        open_boxes(str(yolo(tmp_path, "4 0.5 0.5 0.2 0.5\n")), seed=0)


@pytest.mark.parametrize(
    "text",
    [
        "nc: 2\nnames: ['dog', \"cat\"]\n",
        "names:\n  - dog\n  - cat\nnc: 2\n",
        "path: .\nnames:\n  0: dog\n  1: cat  # an animal\n",
        "names: [dog,\n  cat]\n",
    ],
)
def test_names_of_a_data_yaml_are_read(text: str) -> None:
    assert yaml_names(text) == ["dog", "cat"]


def test_a_table_is_read_with_corners_or_sides(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        picture(tmp_path / name)
    for header, row in (
        ("filename,class,xmin,ymin,xmax,ymax", "a.jpg,dog,1,2,11,22"),
        ("image;label;x;y;width;height", "a.jpg;dog;1;2;10;20"),
    ):
        table = tmp_path / "boxes.csv"
        cut = ";" if ";" in header else ","
        table.write_text(f"{header}\n{row}\nb.jpg{cut * 5}\n{row.replace('22', 'x')}\n")
        data = open_boxes(str(table), seed=0)
        assert (data.format, data.classes) == ("boxes-csv", ("dog",))
        assert data.splits["train"].truth(0).boxes.tolist() == [[1, 2, 11, 22]]
        assert len(data.splits["train"]) == 2
    table.write_text(
        f"filename,class,xmin,ymin,xmax,ymax\n{'a.jpg,dog,1,2,11,22'}\na.jpg,dog,1,,3,4\n"
    )
    (fault,) = [one for one in open_boxes(str(table), seed=0).faults if one.stops]
    assert (fault.file, fault.line) == ("boxes.csv", 3)


def same_boxes(one: DataSet, other: DataSet, within: float) -> None:
    """Raise unless both have the same pictures with the same boxes, but for rounding."""
    assert one.classes == other.classes
    assert [*one.splits] == [*other.splits]
    for name, split in one.splits.items():
        others = other.splits[name]
        place = {Path(others.name(row)).stem: row for row in range(len(others))}
        assert len(split) == len(others)
        for row in range(len(split)):
            own = split.truth(row)
            its = others.truth(place[Path(split.name(row)).stem.replace(":", "-")])
            assert own.labels.tolist() == its.labels.tolist()
            assert_allclose(own.boxes.numpy(), its.boxes.numpy(), atol=within)


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_formats_are_written_into_one_another(first: str, second: str, tmp_path: Path) -> None:
    data = open_boxes("demo", seed=3)
    few = {name: split.select(np.arange(4)) for name, split in data.splits.items()}
    names = sorted({int(label) for split in few.values() for label in split.boxes.labels})
    data = relabelled_few(data, few, names)
    boxes = sum(len(split.boxes.labels) for split in few.values())
    assert write_boxes(data, tmp_path / "a", first) == (12, boxes)
    path = {"csv": "a/boxes.csv"}.get(first, "a")
    one = open_boxes(str(tmp_path / path), seed=0)
    assert [fault.problem for fault in one.faults if fault.stops] == []
    same_boxes(data, one, within=1e-4)
    assert write_boxes(one, tmp_path / "b", second) == (12, boxes)
    path = {"csv": "b/boxes.csv"}.get(second, "b")
    same_boxes(one, open_boxes(str(tmp_path / path), seed=0), within=2e-4)
    with pytest.raises(OctavoltError, match="not empty"):
        write_boxes(one, tmp_path / "b", second)


def relabelled_few(data: DataSet, few: dict[str, Any], names: list[int]) -> DataSet:
    """Return the few pictures with the classes that have a box among them."""
    index = np.zeros(10, np.int64)
    index[names] = np.arange(len(names))
    splits = {name: split.relabelled(index) for name, split in few.items()}
    classes = tuple(str(one) for one in names)
    return DataSet(source=data.source, format=data.format, classes=classes, splits=splits)


def test_what_has_boxes_is_found_by_looking(tmp_path: Path) -> None:
    assert is_boxes(str(coco(tmp_path / "coco", [box(1, 1, 5, 5)])))
    assert is_boxes(str(voc(tmp_path / "voc")))
    assert is_boxes(str(yolo(tmp_path / "yolo", "1 0.5 0.5 0.2 0.5\n")))
    picture(tmp_path / "plain" / "dog" / "a.jpg")
    picture(tmp_path / "plain" / "cat" / "b.jpg")
    assert not is_boxes(str(tmp_path / "plain"))
    assert not is_boxes("demo")
    assert task_of(str(tmp_path / "voc")) == "object-detection"


def test_a_moved_box_changes_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = coco(tmp_path / "data", [box(1, 1, 5, 5), box(2, 2, 9, 9, image=7)])
    data = open_boxes(str(source), seed=0)
    checked = check_boxes(data, threads=1, progress=lambda _done, _all: None)
    kept = tmp_path / "data.tsv.gz"
    kept.write_bytes(checked.fingerprint(data))
    checked.check_unchanged(kept, data)
    coco(tmp_path / "data", [box(1, 1, 5, 6), box(2, 2, 9, 9, image=7)])
    moved = open_boxes(str(source), seed=0)
    again = check_boxes(moved, threads=1, progress=lambda _done, _all: None)
    with pytest.raises(OctavoltError, match=r"a b\.jpg"):
        again.check_unchanged(kept, moved)


def test_classes_of_other_data_are_matched_by_name(tmp_path: Path) -> None:
    data = open_boxes(str(coco(tmp_path, [box(1, 1, 5, 5, category=90)])), seed=0)
    other = relabelled(data, ("bird", "cat", "dog"))
    labels = np.concatenate([split.boxes.labels for split in other.splits.values()])
    assert labels.tolist() == [1]
