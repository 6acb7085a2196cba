"""What was found wrong with pictures and their boxes, by decoding every picture once."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, UInt64

from octavolt.contract import Checked, DataSet, Fault
from octavolt.data import check as checking
from octavolt.data.boxes.gathered import Faults
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.boxes.settled import untrainable
from octavolt.data.boxes.sizes import upright_decode
from octavolt.data.examine import Progress, silent
from octavolt.data.fingerprint import check_unchanged, fingerprint
from octavolt.units import counted


class BoxesChecked(Checked):
    """What was found; readers have left out pictures whose annotation is damaged already."""

    def __init__(
        self,
        found: checking.Checked,
        digests: Mapping[str, UInt64[np.ndarray, " _"]],
        boxes: Mapping[str, Mapping[str, int]],
    ) -> None:
        self.found = found
        self.faults = found.faults
        self.digests = digests
        """Of the boxes of each picture, by split."""
        self.boxes = boxes
        """How many there are, by split and class."""

    @property
    def white_level(self) -> int:
        """Return the value of white."""
        return self.found.white_level

    def usable(self, data: DataSet, /) -> DataSet:
        """Return the data set without damaged pictures; their faults go with them."""
        splits = {
            split: pictures.select(np.flatnonzero(self.found.splits[split].good))
            for split, pictures in data.splits.items()
        }
        filled = {split: pictures for split, pictures in splits.items() if len(pictures) > 0}
        kept = [fault for fault in data.faults if not fault.damaged]
        if "train" in data.splits and not any(one.kind == "no-boxes" for one in kept):
            kept += untrainable(filled)
        return replace(data, splits=filled, faults=tuple(kept))

    def fingerprint(self, data: DataSet, /) -> bytes:
        """Return a table of all pictures with their digests and those of their boxes."""
        return fingerprint(self.as_labels(data), self.found)

    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        """Raise, naming pictures, unless pictures and boxes still are those of the file."""
        check_unchanged(file, self.as_labels(data), self.found)

    def as_labels(self, data: DataSet) -> DataSet:
        """Return the data set with all boxes of a picture as its one label, named by a digest."""
        texts: dict[str, int] = {}
        splits = {}
        for split, pictures in data.splits.items():
            counts = np.diff(pictures.boxes.ends, prepend=0).tolist()
            labels = [
                texts.setdefault(f"{counted(count, 'box', 'boxes')} {digest:016x}", len(texts))
                for count, digest in zip(counts, self.digests[split].tolist(), strict=True)
            ]
            splits[split] = pictures.select(np.arange(len(pictures)))
            splits[split].labels = np.array(labels, np.int64)
        return replace(data, classes=tuple(texts), splits=splits)

    def digest(self, split: str, /) -> str:
        """Return what changes if a picture or a box of the split does."""
        content = self.found.splits[split].digests.tobytes() + self.digests[split].tobytes()
        return blake2b(content, digest_size=8).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""
        figures = self.found.to_json()
        for split, counts in self.boxes.items():
            figures["splits"][split]["boxes"] = sum(counts.values())
            figures["splits"][split]["boxes_by_class"] = dict(counts)
        return {**figures, "boxes": sum(sum(counts.values()) for counts in self.boxes.values())}


def check_boxes(
    data: DataSet,
    *,
    threads: int,
    progress: Progress = silent,
    cache_folder: Path | None = None,
) -> BoxesChecked:
    """Return all faults of the data set; every picture is decoded once, and then remembered."""
    found = checking.check(
        data, threads=threads, progress=progress, decode=upright_decode, cache_folder=cache_folder
    )
    faults, splits = Faults(), dict(found.splits)
    for split, pictures in data.splits.items():
        differing = of_other_size(pictures, splits[split])
        for row in np.flatnonzero(differing).tolist():
            faults.add(other_size(pictures, row, splits[split]))
        splits[split] = replace(splits[split], good=splits[split].good & ~differing)
    every = tuple(sorted((*found.faults, *faults.all()), key=checking.weight))
    return BoxesChecked(
        replace(found, splits=splits, faults=every),
        {split: box_digests(pictures, data.classes) for split, pictures in data.splits.items()},
        {split: class_counts(pictures, data.classes) for split, pictures in data.splits.items()},
    )


def of_other_size(
    pictures: BoxedPictures, found: checking.CheckedSplit
) -> Bool[np.ndarray, " pictures"]:
    """Return which pictures have another size than their annotation states."""
    sizes = np.stack([found.heights, found.widths], axis=1)
    stated = (pictures.sizes > 0).all(axis=1)
    differing: Bool[np.ndarray, " pictures"] = (
        found.good & stated & (pictures.sizes != sizes).any(axis=1)
    )
    return differing


def other_size(pictures: BoxedPictures, row: int, found: checking.CheckedSplit) -> Fault:
    """Return the fault of a picture that its annotation gives another size."""
    file, line = pictures.annotation(row)
    height, width = pictures.sizes[row].tolist()
    own = int(found.heights[row]), int(found.widths[row])
    turned = " once it is upright" if (width, height) == own else ""
    return Fault(
        kind="size-differs",
        file=file,
        line=line,
        problem=(
            f"it says {width} x {height} pixels, and '{pictures.name(row)}' has {own[1]} x "
            f"{own[0]}{turned}: its boxes may be of another picture"
        ),
        damaged=True,
    )


def box_digests(
    pictures: BoxedPictures, classes: tuple[str, ...]
) -> UInt64[np.ndarray, " pictures"]:
    """Return a number a picture: another one as soon as one of its boxes, or its class, does."""
    boxes = pictures.boxes
    names = np.array(
        [blake2b(name.encode(), digest_size=8).digest() for name in classes] or [b""], "S8"
    )
    found = np.empty(len(pictures), np.uint64)
    for row in range(len(pictures)):
        own = boxes.rows(row)
        content = (
            boxes.corners[own].tobytes()
            + names[boxes.labels[own]].tobytes()
            + boxes.crowd[own].tobytes()
            + boxes.difficult[own].tobytes()
            + boxes.areas[own].tobytes()
        )
        found[row] = int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
    return found


def class_counts(pictures: BoxedPictures, classes: tuple[str, ...]) -> dict[str, int]:
    """Return how many boxes there are of each class; crowds count."""
    counts = np.bincount(pictures.boxes.labels, minlength=len(classes)).tolist()
    return dict(zip(classes, counts, strict=True))
