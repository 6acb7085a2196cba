import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from octavolt.data import open_data
from octavolt.data.npz import loaded
from octavolt.errors import OctavoltError
from octavolt.units import MIB


def images(count: int, *shape: int, dtype: str = "uint8") -> Any:
    size = (count, *(shape or (4, 4)))
    return np.random.default_rng(count).integers(0, 256, size).astype(dtype)


def medmnist(**changes: Any) -> dict[str, Any]:
    arrays = {}
    for split, count in (("train", 6), ("val", 4), ("test", 2)):
        arrays[f"{split}_images"] = images(count)
        arrays[f"{split}_labels"] = np.arange(count, dtype=np.uint8)[:, None] % 2
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def saved(folder: Path, arrays: dict[str, Any]) -> str:
    np.savez_compressed(folder / "set.npz", **arrays)
    return f"{folder}/set.npz"


def test_the_layout_of_medmnist_is_read(tmp_path: Path) -> None:
    arrays = medmnist()
    data = open_data(saved(tmp_path, arrays))
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 6,
        "val": 4,
        "test": 2,
    }
    assert data.classes == ("0", "1")
    assert data.faults == ()
    np.testing.assert_array_equal(data.splits["val"].read(3), arrays["val_images"][3])
    assert data.splits["val"].name(3) == "val_images:3"


def test_the_layout_of_keras_is_read_and_val_is_taken_from_train(tmp_path: Path) -> None:
    arrays = {"x_train": images(40), "y_train": np.arange(40) % 2}
    arrays |= {"x_test": images(4), "y_test": np.arange(4) % 2}
    data = open_data(saved(tmp_path, arrays))
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 36,
        "val": 4,
        "test": 4,
    }


@pytest.mark.parametrize(
    ("shape", "dtype"), [((4, 4, 3), "uint8"), ((4, 4, 1), "uint8"), ((4, 4), "uint16")]
)
def test_colour_and_deep_pictures_are_read_as_they_are(
    tmp_path: Path, shape: tuple[int, ...], dtype: str
) -> None:
    data = open_data(saved(tmp_path, medmnist(train_images=images(6, *shape, dtype=dtype))))
    pixels = data.splits["train"].read(0)
    assert isinstance(pixels, np.ndarray)
    assert pixels.shape == shape
    assert pixels.dtype == dtype


def test_names_of_classes_in_the_file_are_used(tmp_path: Path) -> None:
    data = open_data(saved(tmp_path, medmnist(class_names=np.array(["well", "ill"]))))
    assert data.classes == ("well", "ill")


def test_labels_out_of_range_are_faults_with_their_row(tmp_path: Path) -> None:
    val = np.array([0, 1, 7, 7])
    train = np.array([0, 1, -1, 0, 1, 0])
    data = open_data(saved(tmp_path, medmnist(val_labels=val, train_labels=train)))
    assert [(fault.file, fault.problem, fault.damaged) for fault in data.faults] == [
        (
            "train_images:2",
            "the label -1 is outside 0 to 1; so labelled: 1 picture, this one first",
            True,
        ),
        (
            "val_images:2",
            "the label 7 is outside 0 to 1; so labelled: 2 pictures, this one first",
            True,
        ),
    ]
    assert len(data.splits["val"]) == 2
    assert data.splits["train"].name(2) == "train_images:3"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"train_images": images(6).astype("float32")},
            "'train_images' in set.npz holds float32 values; pictures are uint8 or uint16. Scale "
            "them to 0 to 255 and save them as uint8.",
        ),
        (
            {"train_images": images(6, 4, 4, 4, 1)},
            "'train_images' in set.npz has the shape (6, 4, 4, 4, 1); pictures are (number, ",
        ),
        (
            {"val_images": images(0)},
            "'val_images' in set.npz has the shape (0, 4, 4); pictures are (number, ",
        ),
        (
            {"train_labels": np.zeros((6, 14), np.uint8)},
            "'train_labels' in set.npz has the shape (6, 14); image classification takes one "
            "label a picture, so (number,) or (number, 1).",
        ),
        (
            {"train_labels": np.zeros(5, np.uint8)},
            "'train_labels' in set.npz holds 5 labels for 6 pictures; each picture needs one.",
        ),
        (
            {"train_labels": np.full(6, 0.5)},
            "'train_labels' in set.npz holds float64 values; labels are whole numbers from 0.",
        ),
        (
            {"val_labels": None},
            "'set.npz' has no labels for 'val_images'; its arrays: train_images, ",
        ),
        (
            {"train_images": None, "train_labels": None},
            "There is no training split in set.npz, only val, test. Name the pictures to learn",
        ),
        (
            {"train_labels": np.array([None] * 6)},
            "'set.npz' can't be read as .npz: Object arrays cannot be loaded when",
        ),
    ],
)
def test_arrays_that_are_no_pictures_or_labels_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(OctavoltError, match="^" + re.escape(message)):
        open_data(saved(tmp_path, medmnist(**changes)))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "set.npz").write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(OctavoltError, match=r"'set.npz' can't be read as .npz: File is not a zip"):
        open_data(f"{tmp_path}/set.npz")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    source = Path(saved(tmp_path, medmnist()))
    source.write_bytes(source.read_bytes()[:-200])
    with pytest.raises(OctavoltError, match=r"'set.npz' can't be read"):
        open_data(str(source))


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", **medmnist())
    content = bytearray((tmp_path / "set.npz").read_bytes())
    content[content.index(medmnist()["train_images"].tobytes()) + 5] ^= 1
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(OctavoltError, match="Bad CRC-32"):
        open_data(f"{tmp_path}/set.npz")


def test_a_file_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    source = saved(tmp_path, medmnist(train_images=np.zeros((6, 2048, 2048), np.uint8)))
    assert Path(source).stat().st_size < MIB
    message = (
        "set.npz says that it holds 24.0 MiB; the limit on this machine is 1.0 MiB. Save the "
        "pictures as files, one folder a class."
    )
    with pytest.raises(OctavoltError, match="^" + re.escape(message)):
        loaded(Path(source), MIB)


def test_a_header_that_states_more_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 28, 28), }"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n"
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("train_images.npy", header + b"\0" * 784)
    with pytest.raises(OctavoltError, match="states 784000000000 bytes and holds"):
        open_data(f"{tmp_path}/set.npz")
