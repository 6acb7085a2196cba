"""Another data set with the same classes, as a network that was trained on one takes it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavolt.contract import DataSet, Samples
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
    splits = {}
    for name, pictures in data.splits.items():
        copied = pictures.select(np.arange(len(pictures)))
        copied.labels = index[pictures.labels]
        splits[name] = copied
    return replace(data, classes=tuple(classes), splits=splits)


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
