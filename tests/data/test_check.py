import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from octavolt.contract import DataSet
from octavolt.data import open_data
from octavolt.data.check import KINDS, Checked, check, findings_without_damaged, without_damaged
from octavolt.data.damage import full_decode

from .conftest import WritePicture, jpeg


@pytest.fixture
def folder(tmp_path: Path, picture: WritePicture) -> Path:
    """Return a data set without a fault."""
    for split, count in (("train", 4), ("val", 2), ("test", 2)):
        for name in ("cat", "dog"):
            for number in range(count):
                picture(tmp_path / split / name / f"{number}.jpg")
    return tmp_path


def checked(folder: Path) -> Checked:
    return check(open_data(str(folder)), threads=2)


def told(found: Checked) -> list[tuple[str, str, bool, bool]]:
    return [(one.kind, one.file, one.stops, one.damaged) for one in found.faults]


def huge_png() -> bytes:
    """Return a picture of 20,000 x 20,000 pixels that states its size and holds nothing."""
    head = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    body = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")):
        body += struct.pack(">I", len(content)) + kind + content
        body += struct.pack(">I", zlib.crc32(kind + content))
    return body


def test_a_good_data_set_has_no_fault(folder: Path) -> None:
    found = checked(folder)
    assert found.faults == ()
    assert found.read_count == 16
    assert found.white_level == 255
    assert found.splits["train"].heights.tolist() == [16] * 8
    assert found.splits["train"].widths.tolist() == [24] * 8
    assert found.splits["train"].good.all()
    sizes = [path.stat().st_size for path in sorted((folder / "train").rglob("*.jpg"))]
    assert found.splits["train"].sizes_bytes.tolist() == sizes


def test_all_damage_is_found_at_once(folder: Path, picture: WritePicture) -> None:
    cat = folder / "train/cat"
    picture(cat / "cut.jpg", jpeg(100)[:-300])
    picture(cat / "empty.jpg", b"")
    picture(cat / "huge.png", huge_png())
    picture(cat / "notes.txt", b"no picture")
    picture(folder / "test/dog/cut.png", b"\x89PNG\r\n\x1a\n")
    found = checked(folder)
    assert told(found) == [
        ("zero-byte", "train/cat/empty.jpg", True, True),
        ("not-a-picture", "train/cat/notes.txt", True, True),
        ("truncated", "test/dog/cut.png", True, True),
        ("truncated", "train/cat/cut.jpg", True, True),
        ("too-many-pixels", "train/cat/huge.png", True, True),
    ]
    assert [fault.problem for fault in found.faults][4] == (
        "400,000,000 pixels; at most 178,956,970 are decoded"
    )
    assert found.splits["train"].good.sum() == 8


def test_a_picture_too_large_is_never_decoded(folder: Path, picture: WritePicture) -> None:
    picture(folder / "train/cat/huge.png", huge_png())
    sizes: list[int] = []

    def decode(content: bytes | memoryview) -> tuple[int, int, int]:
        sizes.append(len(content))
        return full_decode(content)

    check(open_data(str(folder)), threads=1, decode=decode)
    assert len(sizes) == 16
    assert len(huge_png()) not in sizes


def test_a_file_that_vanished_is_a_fault(folder: Path) -> None:
    data = open_data(str(folder))
    (folder / "val/cat/0.jpg").unlink()
    found = check(data, threads=2)
    assert told(found) == [("unreadable", "val/cat/0.jpg", True, True)]
    assert found.faults[0].problem == "can't be read: No such file or directory"


def test_a_file_that_may_not_be_read_is_a_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    folder.chmod(0o755)
    (folder / "val/cat/0.jpg").chmod(0)
    data = open_data(".")
    # Root may read everything, so the test reads as nobody.
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)
    try:
        found = check(data, threads=1)
    finally:
        if as_root:
            os.seteuid(0)
    assert [fault.problem for fault in found.faults] == ["can't be read: Permission denied"]


def test_the_same_picture_in_two_splits_is_a_warning_that_names_both(
    folder: Path, picture: WritePicture
) -> None:
    picture(folder / "test/cat/copy.jpg", (folder / "train/cat/1.jpg").read_bytes())
    found = checked(folder)
    assert told(found) == [("in-two-splits", "test/cat/copy.jpg", False, False)]
    assert found.faults[0].problem == (
        "test picture 'test/cat/copy.jpg' is the same picture as train picture 'train/cat/1.jpg'"
    )


def test_the_same_picture_with_two_labels_is_a_warning(folder: Path, picture: WritePicture) -> None:
    picture(folder / "train/dog/copy.jpg", (folder / "train/cat/1.jpg").read_bytes())
    found = checked(folder)
    assert told(found) == [("label-conflict", "train/dog/copy.jpg", False, False)]
    assert found.faults[0].problem.endswith("labelled 'dog' here and 'cat' there")


def test_the_same_picture_twice_with_one_label_is_no_fault(
    folder: Path, picture: WritePicture
) -> None:
    picture(folder / "train/cat/copy.jpg", (folder / "train/cat/1.jpg").read_bytes())
    assert checked(folder).faults == ()


def test_files_damaged_alike_are_no_twins(folder: Path, picture: WritePicture) -> None:
    picture(folder / "train/cat/a.jpg", b"same")
    picture(folder / "val/dog/a.jpg", b"same")
    assert {fault.kind for fault in checked(folder).faults} == {"not-a-picture"}


def test_equal_pixels_in_arrays_are_twins_if_their_shape_is_equal(tmp_path: Path) -> None:
    train, val = np.zeros((2, 4, 2), np.uint8), np.zeros((2, 2, 4), np.uint8)
    train[1], val[1] = 1, 1
    labels = np.array([0, 1])
    np.savez(
        tmp_path / "a.npz",
        train_images=train,
        train_labels=labels,
        val_images=val,
        val_labels=labels,
        test_images=train[1:],
        test_labels=labels[1:],
    )
    faults = checked(tmp_path / "a.npz").faults
    assert [fault.file for fault in faults if fault.kind == "in-two-splits"] == ["test_images:0"]


def test_white_is_that_of_the_deepest_picture(tmp_path: Path) -> None:
    pixels = np.arange(8 * 9, dtype=np.uint16).reshape(8, 3, 3) * 100
    labels = np.arange(8) % 2
    np.savez(tmp_path / "a.npz", train_images=pixels, train_labels=labels)
    assert checked(tmp_path / "a.npz").white_level == 16383


def test_a_second_check_reads_nothing_and_finds_the_same(
    folder: Path, picture: WritePicture
) -> None:
    picture(folder / "train/cat/cut.jpg", jpeg(100)[:-300])
    first, second = checked(folder), checked(folder)
    assert (first.read_count, second.read_count) == (17, 0)
    assert first.faults == second.faults
    for split, found in first.splits.items():
        np.testing.assert_array_equal(found.digests, second.splits[split].digests)
        np.testing.assert_array_equal(found.heights, second.splits[split].heights)
        np.testing.assert_array_equal(found.good, second.splits[split].good)


def test_only_files_that_changed_are_read_again(folder: Path, picture: WritePicture) -> None:
    checked(folder)
    picture(folder / "train/cat/1.jpg", b"no picture now")
    picture(folder / "train/cat/new.jpg")
    found = checked(folder)
    assert found.read_count == 2
    assert told(found) == [("not-a-picture", "train/cat/1.jpg", True, True)]


def test_a_file_of_equal_size_and_time_is_read_again(folder: Path) -> None:
    checked(folder)
    path = folder / "train/cat/1.jpg"
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert told(checked(folder)) == [("not-a-picture", "train/cat/1.jpg", True, True)]


def test_another_seed_reads_no_picture_again(folder: Path) -> None:
    checked(folder / "train")
    assert check(open_data(str(folder / "train"), seed=1), threads=2).read_count == 0


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04", None])
def test_damaged_memory_is_ignored(folder: Path, content: bytes | None) -> None:
    checked(folder)
    (memory,) = Path(os.environ["XDG_CACHE_HOME"]).rglob("*.npz")
    whole = memory.read_bytes()
    memory.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert checked(folder).read_count == 16
    assert checked(folder).read_count == 0


def test_memory_that_can_not_be_written_costs_only_time(folder: Path) -> None:
    (folder / "file").write_bytes(b"")
    found = check(open_data(str(folder)), threads=2, cache_folder=folder / "file" / "below")
    assert found.faults == ()


def test_a_file_that_could_not_be_read_is_asked_again(folder: Path) -> None:
    path, aside = folder / "val/cat/0.jpg", folder / "aside.jpg"
    data = open_data(str(folder))
    path.rename(aside)
    assert check(data, threads=2).faults
    aside.rename(path)
    assert check(data, threads=2).faults == ()


def test_progress_counts_up_to_all_pictures(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    check(
        open_data(str(folder)), threads=2, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (16, 16)


def test_any_number_of_threads_finds_the_same(folder: Path, tmp_path: Path) -> None:
    data = open_data(str(folder))
    one = check(data, threads=1, cache_folder=tmp_path / "1")
    many = check(data, threads=7, cache_folder=tmp_path / "7")
    for split, found in one.splits.items():
        np.testing.assert_array_equal(found.digests, many.splits[split].digests)


def test_what_is_found_is_json(folder: Path, picture: WritePicture) -> None:
    picture(folder / "train/cat/empty.jpg", b"")
    document = json.loads(json.dumps(checked(folder).to_json()))
    assert document["pictures"] == 17
    assert document["splits"]["train"]["good"] == 8
    assert document["splits"]["val"]["shortest_side_pixels"] == 16
    assert document["faults"] == [
        {
            "kind": "zero-byte",
            "file": "train/cat/empty.jpg",
            "line": None,
            "problem": "the file is empty",
            "stops": True,
            "damaged": True,
        }
    ]


def test_damaged_pictures_and_rows_can_be_left_out(folder: Path, picture: WritePicture) -> None:
    rows = "".join(
        f"{path.relative_to(folder)},{path.parent.name},{path.parent.parent.name}\n"
        for path in sorted(folder.rglob("*.jpg"))
    )
    picture(folder / "train/cat/2.jpg", b"")
    (folder / "index.csv").write_text(f"path,label,split\n{rows}gone.jpg,cat,train\n")
    data = open_data(f"{folder}/index.csv")
    found = check(data, threads=2)
    assert {fault.kind for fault in found.faults} == {"zero-byte", "missing-file"}
    whole = without_damaged(data, found)
    assert whole.faults == ()
    assert names(whole, "train") == [n for n in names(data, "train") if n != "train/cat/2.jpg"]
    kept = findings_without_damaged(data, found)
    assert kept.faults == ()
    np.testing.assert_array_equal(
        kept.splits["train"].digests, check(whole, threads=2).splits["train"].digests
    )


def names(data: DataSet, split: str) -> list[str]:
    pictures = data.splits[split]
    return [pictures.name(index) for index in range(len(pictures))]


def test_a_class_that_loses_its_last_picture_stops(folder: Path, picture: WritePicture) -> None:
    for number in range(4):
        picture(folder / f"train/dog/{number}.jpg", b"")
    data = open_data(str(folder))
    faults = without_damaged(data, check(data, threads=2)).faults
    assert [(fault.problem, fault.stops) for fault in faults] == [
        ("class 'dog' has no picture in train that can be read", True)
    ]


def test_every_fault_that_a_format_or_the_check_makes_has_a_kind() -> None:
    sources = Path(__file__).parents[2].glob("src/octavolt/data/**/*.py")
    text = "".join(path.read_text() for path in sources)
    for kind in KINDS:
        assert text.count(f'"{kind}"') >= 2, kind
