"""Labels of one data set as those of another with the same classes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from octavolt.contract import DataSet
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
