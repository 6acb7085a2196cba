from pathlib import Path

import pytest

from octavolt.data.text.folders import open_text_folder
from octavolt.errors import OctavoltError


def write(root: Path, names: list[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}\n")


def test_a_folder_is_a_class_and_a_file_a_text(tmp_path: Path) -> None:
    write(tmp_path, [f"{kind}/{place}.txt" for kind in ("pos", "neg") for place in range(10)])
    data = open_text_folder(str(tmp_path), seed=0)
    assert data.classes == ("neg", "pos")
    for samples in data.splits.values():
        for index in range(len(samples)):
            row = samples.read(index)
            assert row.texts == (f"text of {samples.name(index)}\n",)
            assert samples.name(index).startswith(data.classes[row.labels[0]])
    assert sum(map(len, data.splits.values())) == 20


def test_folders_of_splits_are_splits(tmp_path: Path) -> None:
    write(
        tmp_path,
        [f"{split}/{kind}/a.txt" for split in ("train", "test", "dev") for kind in ("pos", "neg")],
    )
    data = open_text_folder(str(tmp_path), seed=0)
    assert {split: len(samples) for split, samples in data.splits.items()} == dict.fromkeys(
        ("train", "val", "test"), 2
    )


def test_what_is_no_text_is_a_fault_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, [f"{kind}/{place}.txt" for kind in ("pos", "neg") for place in range(4)])
    (tmp_path / "pos" / "empty.txt").write_text(" \n")
    (tmp_path / "pos" / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    data = open_text_folder(str(tmp_path), seed=0)
    assert [(fault.kind, fault.file, fault.damaged) for fault in data.faults] == [
        ("empty-text", "pos/empty.txt", True),
        ("not-text", "pos/picture.txt", True),
    ]
    assert sum(map(len, data.splits.values())) == 8


def test_a_folder_without_folders_is_told_of_texts(tmp_path: Path) -> None:
    write(tmp_path, ["a.txt"])
    with pytest.raises(OctavoltError, match="Sort the texts into one folder a class"):
        open_text_folder(str(tmp_path), seed=0)
