import gzip
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from octavolt.data import open_data
from octavolt.data.idx import values_of
from octavolt.errors import OctavoltError

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def idx(values: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> bytes:
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    return header + values.tobytes()


PIXELS = np.arange(40 * 6, dtype=np.uint8).reshape(40, 3, 2)
CLASSES = (np.arange(40) % 4).astype(np.uint8)


def write(folder: Path, *, packed: bool) -> None:
    for split in ("train", "t10k"):
        for name, values in (("images-idx3", PIXELS), ("labels-idx1", CLASSES)):
            content = idx(values)
            path = folder / f"{split}-{name}-ubyte{'.gz' * packed}"
            path.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize("packed", [True, False])
def test_packed_and_unpacked_files_are_read(tmp_path: Path, packed: bool) -> None:
    write(tmp_path, packed=packed)
    data = open_data(str(tmp_path))
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 36,
        "val": 4,
        "test": 40,
    }
    np.testing.assert_array_equal(data.splits["test"].read(7), PIXELS[7])
    assert data.splits["test"].labels.tolist() == CLASSES.tolist()
    assert data.classes == ("0", "1", "2", "3")
    assert not data.mirrorable


def test_a_file_of_names_beside_names_the_classes(tmp_path: Path) -> None:
    write(tmp_path, packed=True)
    (tmp_path / "labels.txt").write_text("shirt\nbag\n\nboot\ncoat\n")
    assert open_data(str(tmp_path)).classes == ("shirt", "bag", "boot", "coat")


def test_labels_beyond_the_names_are_faults(tmp_path: Path) -> None:
    write(tmp_path, packed=True)
    (tmp_path / "labels.txt").write_text("shirt\nbag\nboot\n")
    faults = open_data(str(tmp_path)).faults
    assert [fault.file for fault in faults] == [f"{IMAGES}.gz:3", "t10k-images-idx3-ubyte.gz:3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            idx(PIXELS)[:-10],
            f"'{IMAGES}' holds 230 bytes after its header, which states 240. Fetch it again.",
        ),
        (
            idx(PIXELS) + b"x",
            f"'{IMAGES}' holds 241 bytes after its header, which states 240. Fetch it again.",
        ),
        (
            b"\x89PNG" + bytes(100),
            f"'{IMAGES}' begins with 89504e47; an IDX file of bytes in 3 dimensions begins with "
            "00000803. Fetch it again.",
        ),
        (b"", f"'{IMAGES}' can't be read: unpack requires a buffer of 16 bytes. Fetch it again."),
        (
            idx(PIXELS[:30]),
            f"'{LABELS}' holds 40 labels for 30 pictures; each picture needs one.",
        ),
    ],
)
def test_a_damaged_file_says_what_is_wrong(tmp_path: Path, content: bytes, message: str) -> None:
    write(tmp_path, packed=False)
    (tmp_path / IMAGES).write_bytes(content)
    with pytest.raises(OctavoltError, match="^" + re.escape(message)):
        open_data(str(tmp_path))


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    write(tmp_path, packed=True)
    path = tmp_path / f"{IMAGES}.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(OctavoltError, match="can't be read: Compressed file ended before"):
        open_data(str(tmp_path))


def test_a_header_that_states_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / f"{IMAGES}.gz"
    path.write_bytes(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 2**31, 2**10, 2**10)))
    with pytest.raises(OctavoltError, match=r"says that it holds 2097152\.0 GiB; the limit on"):
        values_of(path, 3, 2**30)


def test_pictures_without_labels_are_refused(tmp_path: Path) -> None:
    write(tmp_path, packed=True)
    (tmp_path / f"{LABELS}.gz").unlink()
    with pytest.raises(OctavoltError, match="There are no labels beside 'train-images-idx3"):
        open_data(str(tmp_path))
