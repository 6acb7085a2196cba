"""Another data set with the same classes, as a network that was trained on one takes it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavolt.contract import DataSet, Samples
from octavolt.data.boxes.samples import BoxedPictures, end_to_end
from octavolt.errors import OctavoltError, nearest


def relabelled(data: DataSet, classes: Sequence[str]) -> DataSet:
    """Return the data set with labels that index `classes`, matched by name."""
    if data.classes == tuple(classes):
        return data
    unknown = [name for name in data.classes if name not in classes]
    if unknown:
        near = nearest(unknown[0], classes)
        guess = f" The nearest to '{unknown[0]}' is '{near}'." if near else ""
        raise OctavoltError(
            f"{data.source} has classes that the network doesn't know: {', '.join(unknown[:10])}."
            f"{guess} The network's: {', '.join(classes[:10])}{', ...' * (len(classes) > 10)}."
        )
    index = np.array([list(classes).index(name) for name in data.classes], dtype=np.int64)
    splits = {name: samples.relabelled(index) for name, samples in data.splits.items()}
    return replace(data, classes=tuple(classes), splits=splits)


def joined(parts: Sequence[Samples]) -> Samples:
    """Return the samples of several splits, one after the other."""
    boxed = [one for one in parts if isinstance(one, BoxedPictures)]
    if not boxed:
        return Joined(parts)
    return BoxedPictures(
        Joined([one.pictures for one in boxed]),
        np.concatenate([one.sizes for one in boxed]),
        end_to_end([one.boxes for one in boxed]),
    )


class Joined(Samples):
    """The samples of several splits, one after the other."""

    def __init__(self, parts: Sequence[Samples]) -> None:
        self.parts = tuple(parts)
        self.labels = np.concatenate([part.labels for part in parts])
        self.ends = np.cumsum([len(part) for part in parts])

    def place(self, index: int) -> tuple[Samples, int]:
        """Return the part that holds the sample, and which of its samples it is."""
        part = int(np.searchsorted(self.ends, index, side="right"))
        return self.parts[part], index - (int(self.ends[part - 1]) if part else 0)

    def read(self, index: int) -> Any:
        """Return what the part reads."""
        part, inner = self.place(index)
        return part.read(inner)

    def name(self, index: int) -> str:
        """Return the part's name of the sample."""
        part, inner = self.place(index)
        return part.name(inner)

    def select(self, indices: NDArray[np.int64]) -> "Joined":
        """Return only those pictures; they must stand in the order of the parts."""
        firsts = [0, *self.ends[:-1]]
        return Joined(
            [
                part.select(indices[(indices >= first) & (indices < end)] - first)
                for part, first, end in zip(self.parts, firsts, self.ends, strict=True)
            ]
        )
