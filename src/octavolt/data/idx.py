"""IDX files, the format of MNIST: http://yann.lecun.com/exdb/mnist, section 'file formats'."""

import gzip
import math
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from octavolt.contract import DataSet
from octavolt.data.arrays import (
    Part,
    check_pixels,
    check_size,
    found_in,
    most_bytes,
    whole_labels,
)
from octavolt.data.format import Format
from octavolt.data.pictures import Stack
from octavolt.data.splits import TEST, divided, split_index
from octavolt.errors import OctavoltError

FILE_NAME = re.compile(
    r"(?:.*[-_])?([a-z0-9]+)[-_](images|labels)[-.]idx([13])-ubyte(?:\.gz)?", re.IGNORECASE
)
UNSIGNED_BYTE = 8
"""The code of the only type that pictures and labels have."""
NAME_FILES = ("labels.txt", "classes.txt", "label_names.txt")


def recognises(source: str) -> bool:
    """Tell whether the source is a folder that holds IDX files."""
    folder = Path(source).expanduser()
    return folder.is_dir() and bool(members(folder))


def members(folder: Path) -> dict[tuple[int, str], Path]:
    """Return the files by split and by what they hold; an unpacked one goes before its .gz."""
    found = {}
    for path in sorted(folder.glob("*ubyte*"), reverse=True):
        match = FILE_NAME.fullmatch(path.name)
        if match:
            word = match[1].lower()
            split = TEST if word == "t10k" else split_index(word)
            if split is not None:
                found[split, match[2].lower()] = path
    return found


def open_idx(source: str, seed: int) -> DataSet:
    """Return the pictures: mapped from unpacked files, in memory from packed ones."""
    folder = Path(source).expanduser()
    found, faults = found_in(parts(folder, most_bytes()), class_names(folder))
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="idx",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=division.notes,
        # Most sets of this format are digits or letters, and a wrong mirror costs more than none.
        mirrorable=False,
        root=folder,
    )


def parts(folder: Path, limit_bytes: int) -> list[Part]:
    """Return the splits that the folder holds, train first."""
    files = members(folder)
    result = []
    for split, kind in sorted(files):
        if kind == "images" and (split, "labels") not in files:
            raise OctavoltError(
                f"There are no labels beside '{files[split, kind].name}' in '{folder}'. Put the "
                "file of labels (idx1-ubyte) next to it."
            )
        if kind == "images":
            result.append(part(files[split, kind], files[split, "labels"], split, limit_bytes))
    if not result:
        raise OctavoltError(
            f"There are labels but no pictures in '{folder}'. Put the file of pictures "
            "(idx3-ubyte) next to them."
        )
    return result


def part(images: Path, labels: Path, split: int, limit_bytes: int) -> Part:
    """Return one split."""
    pixels = values_of(images, 3, limit_bytes)
    check_pixels(f"'{images.name}'", pixels.shape, pixels.dtype)
    return Part(
        split=split,
        stack=Stack(title=images.name, origin=images, pixels=pixels),
        labels=whole_labels(f"'{labels.name}'", values_of(labels, 1, limit_bytes), len(pixels)),
    )


def values_of(path: Path, dimensions: int, limit_bytes: int) -> UInt8[np.ndarray, "..."]:
    """Return what the file holds, once its size agrees with its header."""
    try:
        return unpacked(path, dimensions, limit_bytes)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise OctavoltError(f"'{path.name}' can't be read: {error}. Fetch it again.") from error


def unpacked(path: Path, dimensions: int, limit_bytes: int) -> UInt8[np.ndarray, "..."]:
    """Return the values, or raise what the readers raise."""
    packed = path.suffix.lower() == ".gz"
    with gzip.open(path) if packed else path.open("rb") as file:
        zeros, code, stated, *shape = struct.unpack(
            f">HBB{dimensions}I", file.read(4 + 4 * dimensions)
        )
        if (zeros, code, stated) != (0, UNSIGNED_BYTE, dimensions):
            raise OctavoltError(
                f"'{path.name}' begins with {zeros:04x}{code:02x}{stated:02x}; an IDX file of "
                f"bytes in {dimensions} dimensions begins with 000008{dimensions:02x}. Fetch it "
                "again."
            )
        count = math.prod(shape)
        check_size(f"'{path.name}'", count, limit_bytes)
        # One byte more than stated is asked for, so that a longer file is noticed too.
        if packed:
            body = np.frombuffer(file.read(count + 1), np.uint8)
        else:
            body = np.asarray(np.memmap(path, np.uint8, mode="r"))[file.tell() :]
    if len(body) != count:
        longer = "at least " if packed and len(body) > count else ""
        raise OctavoltError(
            f"'{path.name}' holds {longer}{len(body):,} bytes after its header, which states "
            f"{count:,}. Fetch it again."
        )
    return body.reshape(shape)


def class_names(folder: Path) -> Sequence[str]:
    """Return the names of the classes from the file beside, or none."""
    for name in NAME_FILES:
        if (folder / name).is_file():
            lines = (folder / name).read_text("utf-8-sig", errors="backslashreplace").splitlines()
            return [line.strip() for line in lines if line.strip()]
    return []


FORMAT = Format(
    name="idx",
    description="a folder of MNIST's IDX files, such as train-images-idx3-ubyte.gz",
    recognises=recognises,
    open=open_idx,
)
