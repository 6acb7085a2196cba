from pathlib import Path

import numpy as np
import pytest

from octavolt.data.boxes.files import Files, Finder, places
from octavolt.data.boxes.opened import kind_of, open_boxes
from octavolt.data.boxes.sizes import HEADER_BYTES, upright_size
from octavolt.errors import OctavoltError
from tests.data.conftest import jpeg
from tests.data.text.texts import shared

from .made import picture, voc


@pytest.mark.parametrize(
    "names",
    [
        ["train/cat/1.jpg", "train/dog/2.jpg", "val/cat/3.jpg"],
        ["cat/1.jpg", "dog/2.jpg"],
        ["images/train/cat/1.jpg", "labels/train/1.txt"],
        ["labels/1.jpg", "annotations/2.jpg"],
        ["labels.txt", "cat/1.jpg"],
    ],
)
def test_folders_of_classes_are_not_taken(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        if name.endswith(".jpg"):
            picture(tmp_path / name)
        else:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("cat 1\n")
    assert not kind_of(str(tmp_path))


@pytest.mark.parametrize("source", ["demo", "hub:rishitdagli/cppe-5", "no such file"])
def test_what_is_no_path_is_not_taken(source: str) -> None:
    assert not kind_of(source)


def test_folders_of_classes_are_not_listed(tmp_path: Path) -> None:
    for name in ("train/cat/1.jpg", "train/dog/1.jpg", "val/cat/1.jpg", "train/labels/1.txt"):
        picture(tmp_path / name)
    assert places(Files(str(tmp_path))) == [b"", b"train", b"val", b"train/labels"]


def test_a_missing_source_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    with pytest.raises(OctavoltError, match=r"There is no data set .*Did you mean"):
        open_boxes(str(tmp_path / "celss"))


def test_links_in_circles_end(tmp_path: Path) -> None:
    picture(tmp_path / "JPEGImages/a.jpg")
    (tmp_path / "JPEGImages/again").symlink_to(tmp_path)
    assert [*Files(str(tmp_path)).below()] == [b"JPEGImages/a.jpg"]


def test_names_that_are_no_text_can_be_found(tmp_path: Path) -> None:
    assert Finder([b"a/\xff.jpg"]).find("\udcff.jpg").name == b"a/\xff.jpg"


def test_the_size_is_that_of_the_upright_picture() -> None:
    plain = jpeg(0, 40, 60)
    exif = (
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    )
    assert upright_size(plain) == (40, 60)
    assert upright_size(plain[:2] + exif + plain[2:]) == (60, 40)


def test_a_header_behind_much_else_is_found(tmp_path: Path) -> None:
    plain = jpeg(0, 40, 60)
    filler = b"\xff\xe2\xff\xff" + bytes(0xFFFD)
    content = plain[:2] + filler * 2 + plain[2:]
    assert len(filler) * 2 > HEADER_BYTES
    for name in "abc":
        picture(tmp_path / f"{name}.jpg").write_bytes(content)
        voc(tmp_path / f"{name}.xml", "cat 1 2 3 4", size="0x0")
    assert open_boxes(str(tmp_path)).splits["train"].sizes.tolist() == [[40, 60]]


def test_both_formats_of_the_same_pictures_give_the_same_boxes() -> None:
    root = shared("coco-ccby")
    one = open_boxes(str(root / "annotations/instances_val.json"))
    other = open_boxes(str(root))
    assert (one.format, other.format) == ("coco", "coco")
    from octavolt.data.boxes.yolo_txt import open_yolo

    texts = open_yolo(Files(str(root)), 0)
    assert texts.classes == other.classes
    for split, pictures in other.splits.items():
        where = {texts.splits[split].name(row): row for row in range(len(texts.splits[split]))}
        for row in range(len(pictures)):
            own, same = pictures.truth(row), texts.splits[split].truth(where[pictures.name(row)])
            kept = ~own.crowd
            assert own.labels[kept].tolist() == same.labels.tolist()
            # Six decimals of 640 pixels are 0.0003, and a corner has the error of two numbers.
            np.testing.assert_allclose(own.boxes[kept], same.boxes, atol=0.0005, rtol=0)


def test_flat_boxes_of_blood_cells_are_left_out(tmp_path: Path) -> None:
    root = shared("bccd-voc", "VOC")
    for number in ("00338", "00343", "00000"):
        for folder, ending in (("Annotations", "xml"), ("JPEGImages", "jpg")):
            (tmp_path / folder).mkdir(exist_ok=True)
            name = f"BloodImage_{number}.{ending}"
            (tmp_path / folder / name).symlink_to(root / folder / name)
    data = open_boxes(str(tmp_path))
    flat = [one for one in data.faults if one.kind == "box-without-area"]
    assert [(one.kind, one.file, one.line, one.stops) for one in flat] == [
        ("box-without-area", "Annotations/BloodImage_00338.xml", 158, False),
        ("box-without-area", "Annotations/BloodImage_00343.xml", 50, False),
    ]
