from pathlib import Path

import datasets
import pytest

from octavolt.data import open_data
from octavolt.data.pictures import Stamped
from octavolt.errors import OctavoltError

from .conftest import WritePicture, jpeg


def parquet(folder: Path, split: str, labels: list[int | str | None]) -> None:
    images = [{"bytes": jpeg(row), "path": None} for row in range(len(labels))]
    named = all(isinstance(label, int) for label in labels)
    kind = datasets.ClassLabel(names=["well", "ill"]) if named else datasets.Value("string")
    features = datasets.Features({"image": datasets.Image(), "label": kind})
    rows = datasets.Dataset.from_dict({"image": images, "label": labels}, features=features)
    folder.mkdir(exist_ok=True)
    rows.to_parquet(folder / f"{split}.parquet")


def test_tables_with_named_classes_are_read(tmp_path: Path) -> None:
    parquet(tmp_path / "a", "train", [1, 0, 1])
    parquet(tmp_path / "a", "validation", [0, 1])
    data = open_data(f"hub:{tmp_path}/a")
    assert data.classes == ("well", "ill")
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 3,
        "val": 2,
    }
    assert data.splits["train"].read(2) == jpeg(2)
    assert data.splits["train"].labels.tolist() == [1, 0, 1]
    assert data.splits["val"].name(1) == "validation:1"


def test_labels_of_text_are_classes_and_missing_ones_faults(tmp_path: Path) -> None:
    parquet(tmp_path / "b", "train", ["x10", "x9", None, "x9", "x10"])
    parquet(tmp_path / "b", "test", ["x9", "x10"])
    data = open_data(f"hub:{tmp_path}/b")
    assert data.classes == ("x9", "x10")
    assert [(fault.kind, fault.file) for fault in data.faults if fault.damaged] == [
        ("label-out-of-range", "train:2")
    ]


def test_a_split_without_labels_is_not_used(tmp_path: Path) -> None:
    parquet(tmp_path / "c", "train", [1, 0] * 2)
    parquet(tmp_path / "c", "validation", [1, 0])
    parquet(tmp_path / "c", "test", [-1, -1])
    data = open_data(f"hub:{tmp_path}/c")
    assert list(data.splits) == ["train", "val"]
    assert "The split 'test' has no labels and is not used." in data.notes


def test_a_folder_of_pictures_is_read_and_a_changed_file_is_noticed(
    tmp_path: Path, picture: WritePicture
) -> None:
    for name in ("train/x/1.jpg", "train/y/1.jpg", "validation/x/1.jpg", "validation/y/1.jpg"):
        picture(tmp_path / "d" / name)
    train = open_data(f"hub:{tmp_path}/d").splits["train"]
    assert isinstance(train, Stamped)
    before = train.stamps()
    picture(tmp_path / "d/train/y/1.jpg")
    assert (before != train.stamps()).tolist() == [False, True]
    assert train.read(1) == (tmp_path / "d/train/y/1.jpg").read_bytes()


def test_a_data_set_that_is_out_of_reach_says_what_to_do() -> None:
    with pytest.raises(OctavoltError) as caught:
        open_data("hub:nobody/nothing")
    message = str(caught.value)
    assert message.startswith("The data set 'nobody/nothing' can't be loaded from the Hub: ")
    assert message.endswith(
        "HF_ENDPOINT (a mirror) and HF_HUB_OFFLINE (only what was fetched before) are honoured; or "
        "download its pictures elsewhere and give the path of their folder instead."
    )


def test_an_unknown_configuration_is_named(tmp_path: Path) -> None:
    parquet(tmp_path / "e", "train", [1, 0])
    with pytest.raises(OctavoltError, match="in the configuration 'huge' can't be loaded"):
        open_data(f"hub:{tmp_path}/e:huge")


def test_tables_without_pictures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\nhello,1\n")
    with pytest.raises(OctavoltError, match="has no column of pictures; its columns: text, label"):
        open_data(f"hub:{tmp_path}")
