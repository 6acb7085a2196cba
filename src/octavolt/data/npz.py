"""Arrays in a .npz file, in the layout of MedMNIST (Yang et al. 2023) or of Keras' mnist.npz."""

import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy
from numpy.typing import NDArray

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
from octavolt.data.splits import TRAIN, divided, split_index
from octavolt.errors import OctavoltError

IMAGES = {"images", "image", "x"}
LABELS = {"labels", "label", "y", "targets"}
NAMES = ("class_names", "classes", "label_names")
"""Optional: text, one a class."""
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)
"""What zipfile and numpy raise on damaged, encrypted or foreign files."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What one array of the file says of itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stated_bytes: int


def recognises(source: str) -> bool:
    """Tell whether the source is a .npz file."""
    path = Path(source).expanduser()
    return path.suffix.lower() == ".npz" and path.is_file()


def open_npz(source: str, seed: int) -> DataSet:
    """Return the pictures of the file; all of them are kept in memory."""
    path = Path(source).expanduser()
    parts, names = loaded(path, most_bytes())
    found, faults = found_in(parts, names)
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="npz",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=division.notes,
        root=path,
    )


def loaded(path: Path, limit_bytes: int) -> tuple[list[Part], Sequence[str]]:
    """Return the splits, and the names of the classes if the file has some.

    All headers are looked at before the first array is read, so a file that unpacks to far more
    than it weighs is refused at no cost.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            headers = {name: header(archive, name) for name in archive.namelist()}
            pairs = pairs_among(path.name, headers)
            needed = [name for pair in pairs.values() for name in pair]
            check_size(path.name, sum(headers[name].stated_bytes for name in needed), limit_bytes)
            for images, _ in pairs.values():
                what = f"'{key_of(images)}' in {path.name}"
                check_pixels(what, headers[images].shape, headers[images].dtype)
            parts = [part(archive, path, *pair, split) for split, pair in pairs.items()]
            return parts, class_names(archive, headers)
    except UNREADABLE as error:
        raise OctavoltError(
            f"'{path.name}' can't be read as .npz: {error}. Fetch or save it again."
        ) from error


def header(archive: zipfile.ZipFile, name: str) -> Header:
    """Return what an array says of itself. Raises `ValueError` unless its size agrees."""
    with archive.open(name) as file:
        version = npy.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = npy.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, _, dtype = npy.read_array_header_2_0(file)
        else:
            raise ValueError(f"{name} is of the unknown version {version}")
        stated_bytes = math.prod(shape) * dtype.itemsize
        member_bytes = archive.getinfo(name).file_size
        if not dtype.hasobject and file.tell() + stated_bytes != member_bytes:
            raise ValueError(f"{name} states {stated_bytes} bytes and holds {member_bytes}")
    return Header(shape=shape, dtype=dtype, stated_bytes=stated_bytes)


def pairs_among(file: str, headers: Mapping[str, Header]) -> dict[int, tuple[str, str]]:
    """Return the members with images and labels of each split, train first."""
    images, labels = members(headers, IMAGES), members(headers, LABELS)
    keys = ", ".join(key_of(name) for name in headers) or "none"
    if not images:
        raise OctavoltError(
            f"'{file}' has no array of pictures; its arrays: {keys}. Name them as MedMNIST does: "
            "train_images, train_labels, val_images and so on."
        )
    for split, name in images.items():
        if split not in labels:
            raise OctavoltError(
                f"'{file}' has no labels for '{key_of(name)}'; its arrays: {keys}. Name them as "
                "MedMNIST does: train_images, train_labels, val_images and so on."
            )
    return {split: (images[split], labels[split]) for split in sorted(images)}


def members(headers: Mapping[str, Header], words: set[str]) -> dict[int, str]:
    """Return the member of each split whose name has one of the words, as 'x_train' has 'x'."""
    found = {}
    for name in headers:
        rest = key_of(name).lower().split("_")
        marks = [word for word in rest if word in words]
        if len(marks) == 1:
            rest.remove(marks[0])
            split = split_index("_".join(rest)) if rest else TRAIN
            if split is not None:
                found[split] = name
    return found


def key_of(member: str) -> str:
    """Return the name of an array as the user knows it."""
    return member.removesuffix(".npy")


def array(archive: zipfile.ZipFile, name: str) -> Shaped[np.ndarray, "..."]:
    """Return one array. Never unpickles."""
    with archive.open(name) as file:
        values: NDArray[Any] = npy.read_array(file, allow_pickle=False)
        return values


def part(archive: zipfile.ZipFile, path: Path, images: str, labels: str, split: int) -> Part:
    """Return one split."""
    stack = Stack(title=key_of(images), origin=path, pixels=array(archive, images))
    what = f"'{key_of(labels)}' in {path.name}"
    return Part(
        split=split,
        stack=stack,
        labels=whole_labels(what, array(archive, labels), len(stack.pixels)),
    )


def class_names(archive: zipfile.ZipFile, headers: Mapping[str, Header]) -> Sequence[str]:
    """Return the names of the classes, or none if the file has none as text."""
    for key in NAMES:
        member = f"{key}.npy"
        if member in headers and headers[member].dtype.kind == "U":
            return [str(name) for name in array(archive, member).ravel()]
    return []


FORMAT = Format(
    name="npz",
    description=".npz with train_images, train_labels and so on, as MedMNIST has them",
    recognises=recognises,
    open=open_npz,
)
