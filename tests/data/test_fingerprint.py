import gzip
from pathlib import Path

import pytest

from octavolt.data import open_data
from octavolt.data.check import check
from octavolt.data.fingerprint import changed, check_unchanged, fingerprint
from octavolt.errors import OctavoltError

from .conftest import WritePicture


@pytest.fixture
def folder(tmp_path: Path, picture: WritePicture) -> Path:
    for split in ("train", "val"):
        for name in ("cat", "dog"):
            for number in range(3):
                picture(tmp_path / "set" / split / name / f"{number}.jpg")
    return tmp_path / "set"


def content(folder: Path) -> bytes:
    data = open_data(str(folder))
    return fingerprint(data, check(data, threads=2))


def differences(old: Path, folder: Path) -> list[str]:
    data = open_data(str(folder))
    return changed(old, data, check(data, threads=2))


@pytest.fixture
def old(folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "data.tsv.gz"
    path.write_bytes(content(folder))
    return path


def test_the_same_data_give_the_same_bytes(folder: Path, old: Path) -> None:
    assert content(folder) == old.read_bytes()
    assert differences(old, folder) == []


def test_each_picture_has_a_line_that_tools_can_read(folder: Path, old: Path) -> None:
    lines = gzip.decompress(old.read_bytes()).decode().splitlines()
    size = (folder / "train/cat/0.jpg").stat().st_size
    assert lines[0] == "split\tname\tlabel\tbytes\tdigest"
    assert lines[1].startswith(f"train\ttrain/cat/0.jpg\tcat\t{size}\t")
    assert len(lines) == 13


def test_names_with_tabs_and_line_breaks_keep_to_their_cell(
    folder: Path, picture: WritePicture, tmp_path: Path
) -> None:
    picture(folder / "train/cat/tab\tline\nbreak\\.jpg")
    (tmp_path / "odd.tsv.gz").write_bytes(content(folder))
    lines = gzip.decompress((tmp_path / "odd.tsv.gz").read_bytes()).decode().splitlines()
    assert {line.count("\t") for line in lines} == {4}
    assert differences(tmp_path / "odd.tsv.gz", folder) == []


def test_every_change_is_named(folder: Path, old: Path, picture: WritePicture) -> None:
    (folder / "train/cat/0.jpg").unlink()
    picture(folder / "train/cat/1.jpg")
    picture(folder / "val/dog/new.jpg")
    assert differences(old, folder) == [
        "train/cat/0.jpg was removed",
        "train/cat/1.jpg was changed",
        "val/dog/new.jpg was added",
    ]


def test_new_labels_and_splits_are_named(folder: Path, tmp_path: Path) -> None:
    rows = ["a,train", "b,train", "a,train", "b,train", "a,val", "b,val"]
    files = sorted((folder / "train").rglob("*.jpg"))
    table, old = folder / "index.csv", tmp_path / "old.tsv.gz"

    def write(rows: list[str]) -> None:
        pairs = [f"{file},{row}" for file, row in zip(files, rows, strict=True)]
        table.write_text("\n".join(["path,label,split", *pairs]))

    write(rows)
    old.write_bytes(content(table))
    write(["b,train", "b,val", *rows[2:]])
    assert differences(old, table) == [
        f"{files[0]} was relabelled from 'a' to 'b'",
        f"{files[1]} was moved from train to val",
    ]


def test_a_resumed_run_is_told_at_most_five_files_and_how_many(
    folder: Path, old: Path, picture: WritePicture
) -> None:
    for number in range(6):
        picture(folder / f"train/cat/new{number}.jpg")
    data = open_data(str(folder))
    with pytest.raises(OctavoltError) as caught:
        check_unchanged(old, data, check(data, threads=2))
    assert str(caught.value) == (
        f"The data of {old.parent} changed since it began: 6 differences: "
        "train/cat/new0.jpg was added; train/cat/new1.jpg was added; train/cat/new2.jpg was added; "
        "train/cat/new3.jpg was added; train/cat/new4.jpg was added; and 1 more. Put them back, or "
        f"begin a new run with --weights {old.parent}."
    )


def test_unchanged_data_may_go_on(folder: Path, old: Path) -> None:
    data = open_data(str(folder))
    check_unchanged(old, data, check(data, threads=2))


@pytest.mark.parametrize("damage", [b"", b"junk", gzip.compress(b"other\n"), None])
def test_a_damaged_table_is_named(folder: Path, old: Path, damage: bytes | None) -> None:
    old.write_bytes(old.read_bytes()[:-20] if damage is None else damage)
    with pytest.raises(OctavoltError, match=r"data\.tsv\.gz'"):
        differences(old, folder)
