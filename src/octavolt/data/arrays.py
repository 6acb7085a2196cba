"""Pictures and whole-number labels in arrays: what formats that hold them have in common."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from octavolt.contract import Fault
from octavolt.data.pictures import ArrayPictures, Stack
from octavolt.data.splits import SPLITS, TRAIN, Found
from octavolt.errors import OctavoltError
from octavolt.units import GIB, counted, format_bytes, format_count

MOST_ARRAY_BYTES = 64 * GIB
"""No file may claim more, whatever the machine has: larger sets are better kept as pictures."""
CHANNELS = (1, 3, 4)


@dataclass(frozen=True, kw_only=True)
class Part:
    """The pictures of one split with their labels as they stand in the file."""

    split: int
    """Index into `SPLITS`."""
    stack: Stack
    labels: Int64[np.ndarray, " pictures"]


def most_bytes() -> int:
    """Return how many bytes of pictures this machine may be asked to hold."""
    if not hasattr(os, "sysconf"):
        return MOST_ARRAY_BYTES
    return min(MOST_ARRAY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def check_size(what: str, stated_bytes: int, limit_bytes: int) -> None:
    """Raise unless that much fits; called before anything is read."""
    if stated_bytes > limit_bytes:
        raise OctavoltError(
            f"{what} says that it holds {format_bytes(stated_bytes)}; the limit on this machine "
            f"is {format_bytes(limit_bytes)}. Save the pictures as files, one folder a class."
        )


def check_pixels(what: str, shape: Sequence[int], dtype: np.dtype[np.generic]) -> None:
    """Raise unless an array of that shape and type can hold pictures."""
    if dtype not in (np.dtype(np.uint8), np.dtype(np.uint16)):
        raise OctavoltError(
            f"{what} holds {dtype} values; pictures are uint8 or uint16. Scale them to 0 to 255 "
            "and save them as uint8."
        )
    grey = len(shape) == 3
    if not (grey or (len(shape) == 4 and shape[3] in CHANNELS)) or 0 in shape:
        raise OctavoltError(
            f"{what} has the shape {tuple(shape)}; pictures are (number, height, width) or "
            "(number, height, width, channels) with 1, 3 or 4 channels, and at least one."
        )


def whole_labels(
    what: str, labels: Shaped[np.ndarray, "..."], picture_count: int
) -> Int64[np.ndarray, " pictures"]:
    """Return the labels of that many pictures as whole numbers in one row."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise OctavoltError(
            f"{what} has the shape {labels.shape}; image classification takes one label a "
            "picture, so (number,) or (number, 1)."
        )
    if len(labels) != picture_count:
        raise OctavoltError(
            f"{what} holds {counted(len(labels), 'label')} for "
            f"{counted(picture_count, 'picture')}; each picture needs one."
        )
    if not (labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and whole(labels))):
        raise OctavoltError(
            f"{what} holds {labels.dtype} values; labels are whole numbers from 0. Number the "
            "classes and save the numbers."
        )
    # Larger numbers would turn negative, and those are reported as out of range below.
    return labels.astype(np.int64)


def whole(values: Shaped[np.ndarray, " values"]) -> bool:
    """Tell whether all values are whole numbers."""
    return bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))


def found_in(parts: Sequence[Part], names: Sequence[str]) -> tuple[Found, list[Fault]]:
    """Return all pictures with labels in range, and a fault for each label that is not.

    In range is what the names cover or, without names, 0 to the largest label of train.
    """
    training = [part.labels for part in parts if part.split == TRAIN]
    if not training:
        raise OctavoltError(
            f"There is no training split in {parts[0].stack.origin.name}, only "
            f"{', '.join(SPLITS[part.split] for part in parts)}. Name the pictures to learn from "
            "'train'."
        )
    end = len(names) if names else int(max(labels.max() for labels in training)) + 1
    labels = np.concatenate([part.labels for part in parts])
    good = (labels >= 0) & (labels < end)
    values = np.unique(labels[good])
    found = Found(
        build=partial(built, tuple(part.stack for part in parts), np.flatnonzero(good)),
        names=[names[value] if names else str(value) for value in values.tolist()],
        labels=np.searchsorted(values, labels[good]).astype(np.int64),
        split_of=np.repeat([part.split for part in parts], [len(part.labels) for part in parts])[
            good
        ],
    )
    return found, [fault for part in parts for fault in out_of_range(part, end)]


def built(
    stacks: tuple[Stack, ...],
    places: Int64[np.ndarray, " found"],
    rows: Int64[np.ndarray, " pictures"],
    labels: Int64[np.ndarray, " pictures"],
) -> ArrayPictures:
    """Return the pictures at those rows of `places`, the rows of the stacks that are kept."""
    return ArrayPictures(stacks, places[rows], labels)


def out_of_range(part: Part, end: int) -> list[Fault]:
    """Return a fault for each label of the part that is negative or `end` or more."""
    bad: Bool[np.ndarray, " pictures"] = (part.labels < 0) | (part.labels >= end)
    values, firsts, counts = np.unique(part.labels[bad], return_index=True, return_counts=True)
    rows = np.flatnonzero(bad)
    return [
        Fault(
            kind="label-out-of-range",
            file=f"{part.stack.title}:{rows[first]}",
            problem=(
                f"the label {value} is outside 0 to {format_count(end - 1)}; so labelled: "
                f"{counted(count, 'picture')}, this one first"
            ),
            damaged=True,
        )
        for value, first, count in zip(
            values.tolist(), firsts.tolist(), counts.tolist(), strict=True
        )
    ]
