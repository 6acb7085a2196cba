import json
from pathlib import Path

import numpy as np
import pytest

from octavolt.contract import DataSet
from octavolt.data.boxes.opened import open_boxes
from octavolt.data.boxes.written import WRITERS, write_boxes
from octavolt.data.folder import open_folder
from octavolt.errors import OctavoltError, UnknownNameError
from tests.data.conftest import jpeg

from .made import annotation, boxes, coco, image, picture

CLASSES = ({"id": 1, "name": "zebra <&>"}, {"id": 2, "name": "été: no"}, {"id": 9, "name": "ant"})


def source(root: Path) -> DataSet:
    for folder, name in (("train", "a 1"), ("train", "b"), ("train/other", "b"), ("val", "ü,c")):
        picture(root / "images" / folder / f"{name}.jpg", len(folder) + len(name))
    coco(
        root / "annotations/instances_train.json",
        [image(1, "a 1.jpg"), image(2, "train/b.jpg"), image(3, "other/b.jpg")],
        [
            annotation(1, 1, 2, 1.23456, 2.5, 30.1, 30.7, area=77.5),
            annotation(2, 1, 9, 0, 0, 60, 40),
            annotation(3, 3, 1, 59.5, 39.75, 0.5, 0.25),
            annotation(4, 3, 1, 3, 4, 20, 21, iscrowd=1),
            annotation(5, 3, 9, 3, 4, 20, 22, difficult=1),
        ],
        categories=CLASSES,
    )
    coco(
        root / "annotations/instances_val.json",
        [image(1, "ü,c.jpg")],
        [annotation(1, 1, 2, 5, 6, 7, 8)],
        categories=CLASSES,
    )
    return open_boxes(str(root))


def assert_same(one: DataSet, other: DataSet, *, crowds: bool) -> None:
    """Pictures stand in the order of their names, and those are made unlike but for the split."""
    assert other.classes == one.classes
    assert [*other.splits] == [*one.splits]
    for split, pictures in one.splits.items():
        again = other.splits[split]
        assert len(again) == len(pictures)
        content = {again.read(row): row for row in range(len(again))}
        for row in range(len(pictures)):
            truth, found = pictures.truth(row), again.truth(content[pictures.read(row)])
            kept = ~truth.crowd | crowds
            assert found.labels.tolist() == truth.labels[kept].tolist()
            assert found.crowd.tolist() == truth.crowd[kept].tolist()
            # The millionth of a pixel that is written, and a hundred millionth of 60 pixels.
            np.testing.assert_allclose(found.boxes, truth.boxes[kept], atol=2e-6, rtol=0)
        assert again.sizes.tolist() == [[40, 60]] * len(again)


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_every_pair_of_formats_gives_the_same_boxes(
    tmp_path: Path, first: str, second: str
) -> None:
    data = source(tmp_path / "source")
    crowds = WRITERS[first].has_crowds
    done = write_boxes(data, tmp_path / "first", first)
    assert (done.pictures, done.boxes, done.crowds_left_out) == (4, 5 + crowds, 1 - crowds)
    between = open_boxes(str(tmp_path / "first"))
    assert (between.format, between.faults) == (first, ())
    assert_same(data, between, crowds=crowds)
    write_boxes(between, tmp_path / "second", second)
    last = open_boxes(str(tmp_path / "second"))
    assert (last.format, last.faults) == (second, ())
    assert_same(data, last, crowds=crowds and WRITERS[second].has_crowds)


@pytest.mark.parametrize("form", ["coco", "csv"])
def test_areas_and_difficult_ones_are_kept(tmp_path: Path, form: str) -> None:
    data = source(tmp_path / "source")
    write_boxes(data, tmp_path / "new", form)
    boxes_ = open_boxes(str(tmp_path / "new")).splits["train"].boxes
    assert 77.5 in boxes_.areas.tolist()
    assert boxes_.difficult.sum() == 1


def test_coco_has_a_line_a_record_and_ids_from_one(tmp_path: Path) -> None:
    write_boxes(source(tmp_path / "source"), tmp_path / "new", "coco")
    text = (tmp_path / "new/annotations/instances_train.json").read_text(encoding="utf-8")
    document = json.loads(text)
    assert [one["id"] for one in document["categories"]] == [1, 2, 3]
    assert document["annotations"][0]["bbox"] == [1.23456, 2.5, 30.1, 30.7]
    assert '\n{"id": 2, "image_id": 1, "category_id": 3, "bbox": [0, 0, 60, 40]' in text


def test_pictures_of_one_name_stay_apart(tmp_path: Path) -> None:
    write_boxes(source(tmp_path / "source"), tmp_path / "new", "voc")
    names = sorted(file.name for file in (tmp_path / "new/JPEGImages").iterdir())
    assert names == ["a 1.jpg", "b.jpg", "other_b.jpg", "ü,c.jpg"]


def test_pixels_in_memory_become_files(tmp_path: Path) -> None:
    data = open_boxes("demo")
    small = data.splits["val"].select(np.arange(3))
    few = DataSet(source="x", format="demo", classes=data.classes, splits={"train": small})
    write_boxes(few, tmp_path / "new", "yolo")
    again = open_boxes(str(tmp_path / "new"))
    assert again.classes == data.classes
    assert sum(map(len, again.splits.values())) == 3
    files = sorted((tmp_path / "new").rglob("*.png"))
    assert files[0].name.startswith("digits-160x160-")
    assert len(boxes(again)) == 3


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    data = source(tmp_path / "source")
    with pytest.raises(OctavoltError, match="is there already"):
        write_boxes(data, tmp_path / "source", "coco")
    with pytest.raises(UnknownNameError, match="Did you mean 'coco'"):
        write_boxes(data, tmp_path / "new", "cocoo")
    assert not (tmp_path / "new").exists()


def test_classes_of_pictures_are_no_boxes_to_write(tmp_path: Path) -> None:
    for seed, name in enumerate(("cat/1.jpg", "dog/2.jpg")):
        picture(tmp_path / "folder" / name, seed)
    data = open_folder(str(tmp_path / "folder"), 0)
    with pytest.raises(OctavoltError, match="has no boxes to write"):
        write_boxes(data, tmp_path / "new", "coco")


def test_a_written_picture_is_what_was_read(tmp_path: Path) -> None:
    write_boxes(source(tmp_path / "source"), tmp_path / "new", "yolo")
    assert (tmp_path / "new/images/train/b.jpg").read_bytes() == jpeg(len("train") + 1, 40, 60)
