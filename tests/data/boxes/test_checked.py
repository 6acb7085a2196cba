import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from octavolt.contract import DataSet
from octavolt.data.boxes.checked import BoxesChecked, check_boxes
from octavolt.data.boxes.opened import open_boxes
from octavolt.errors import OctavoltError

from .made import boxes, picture, voc


def cells(root: Path) -> Path:
    for split, name in (("train", "a"), ("train", "b"), ("val", "c")):
        picture(root / split / f"{name}.jpg", ord(name))
        voc(root / split / f"{name}.xml", "cat 1 2 30 40", "dog 5 6 7 8")
    return root


def checked(root: Path) -> tuple[DataSet, BoxesChecked]:
    data = open_boxes(str(root))
    return data, check_boxes(data, threads=1)


def test_sound_data_have_no_fault(tmp_path: Path) -> None:
    data, found = checked(cells(tmp_path))
    assert found.faults == ()
    assert found.to_json()["splits"]["train"]["boxes_by_class"] == {"cat": 2, "dog": 2}
    assert found.to_json()["boxes"] == 6
    assert boxes(found.usable(data)) == boxes(data)


def test_what_is_read_once_is_remembered(tmp_path: Path) -> None:
    cells(tmp_path)
    assert [checked(tmp_path)[1].to_json()["pictures_read"] for _ in range(2)] == [3, 0]


def test_another_size_is_a_fault_of_the_annotation(tmp_path: Path) -> None:
    root = cells(tmp_path)
    voc(root / "train/b.xml", "cat 1 2 30 39", size="600x400")
    data, found = checked(root)
    (fault,) = found.faults
    assert (fault.kind, fault.file, fault.line) == ("size-differs", "train/b.xml", 3)
    assert fault.problem.startswith("it says 600 x 400 pixels, and 'train/b.jpg' has 60 x 40:")
    assert [*boxes(found.usable(data))] == ["train/a.jpg", "val/c.jpg"]


def test_a_picture_that_lies_on_its_side_is_told(tmp_path: Path) -> None:
    root = cells(tmp_path)
    picture(root / "train/b.jpg", height=60, width=40)
    fault = checked(root)[1].faults[0]
    assert "has 40 x 60 once it is upright" in fault.problem


def test_a_damaged_picture_is_left_out_with_its_fault(tmp_path: Path) -> None:
    root = cells(tmp_path)
    content = (root / "train/b.jpg").read_bytes()
    (root / "train/b.jpg").write_bytes(content[: len(content) // 2])
    data, found = checked(root)
    assert [(one.kind, one.damaged) for one in found.faults] == [("truncated", True)]
    kept = found.usable(data)
    assert [*boxes(kept)] == ["train/a.jpg", "val/c.jpg"]
    assert kept.faults == ()


def test_a_training_split_that_loses_its_last_box_stops(tmp_path: Path) -> None:
    root = cells(tmp_path)
    (root / "train/a.jpg").write_bytes(b"")
    voc(root / "train/b.xml")
    data, found = checked(root)
    assert [one.kind for one in found.usable(data).faults if one.stops] == ["no-boxes"]


def test_damage_noticed_in_reading_is_forgotten_with_its_picture(tmp_path: Path) -> None:
    root = cells(tmp_path)
    voc(root / "train/b.xml", "cat 1,5 2 3 4")
    data, found = checked(root)
    assert [one.damaged for one in found.faults] == [True]
    assert found.usable(data).faults == ()


@pytest.mark.parametrize(
    "change", ["cat 1 2 30 39.5", "dog 1 2 30 40", "cat 1 2 30 40\ndog 1 2 3 4"]
)
def test_changed_boxes_are_noticed(tmp_path: Path, change: str) -> None:
    root = cells(tmp_path)
    data, found = checked(root)
    file = tmp_path / "data.tsv.gz"
    file.write_bytes(found.fingerprint(data))
    assert "train/b.jpg\t2 boxes " in gzip.decompress(file.read_bytes()).decode()
    found.check_unchanged(file, data)
    voc(root / "train/b.xml", *change.split("\n"), "dog 5 6 7 8")
    data, now = checked(root)
    with pytest.raises(OctavoltError, match=r"1 difference: train/b\.jpg was relabelled from '2 b"):
        now.check_unchanged(file, data)
    assert now.digest("train") != found.digest("train")
    assert now.digest("val") == found.digest("val")


def test_a_changed_picture_and_a_renamed_class_are_noticed(tmp_path: Path) -> None:
    root = cells(tmp_path)
    data, found = checked(root)
    file = tmp_path / "data.tsv.gz"
    file.write_bytes(found.fingerprint(data))
    renamed = replace(data, classes=("cat", "hound"))
    with pytest.raises(OctavoltError, match="3 differences"):
        check_boxes(renamed, threads=1).check_unchanged(file, renamed)
    picture(root / "val/c.jpg", 1)
    data, now = checked(root)
    with pytest.raises(OctavoltError, match=r"val/c\.jpg was changed"):
        now.check_unchanged(file, data)
    assert now.digest("val") != found.digest("val")
