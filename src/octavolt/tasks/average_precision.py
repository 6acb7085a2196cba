"""How well boxes are found: the averages of COCO and of Pascal VOC, from rows of boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float64, Int, Int32, Int64
from numpy.typing import NDArray
from torch import Tensor

from octavolt.contract import Score, Task
from octavolt.tasks.matching import (
    MOST,
    SIZES,
    THRESHOLDS,
    Annotated,
    Found,
    coco_hits,
    curve,
    outside,
    voc_hits,
)
from octavolt.tasks.object_detection import (
    DetectionBatch,
    Detections,
    Truth,
    mistakes,
    present,
    restored,
)

RECALL_LIMITS = (1, 10, MOST)
"""Boxes of a picture and class that count for average recall."""
SHAPE = (len(SIZES), len(THRESHOLDS))
AT_50, AT_75 = 0, 5
"""Places among COCO's thresholds."""
FOUND_COLUMNS, TRUE_COLUMNS = 7, 9
MOST_ABSENT = 30
"""With more classes, those without a box are left out of the table."""


AnyRows = TypeVar("AnyRows", NDArray[np.int32], NDArray[np.int64])


@dataclass(frozen=True, kw_only=True)
class Table:
    """All boxes of a split, a row each, as whole numbers: fractions are their bits."""

    pictures: Int64[np.ndarray, " pictures"]
    found: Int32[np.ndarray, "found 7"]
    """Picture, label, score, corners in fp32."""
    true: Int64[np.ndarray, "true 9"]
    """Picture, label, crowd, difficult, corners and area in fp64."""

    def found_of(self, label: int) -> Found:
        """Return the boxes of a class that were found."""
        rows = self.found[self.found[:, 1] == label]
        fractions = rows[:, 2:].copy().view(np.float32)
        rows, fractions = (
            one[np.lexsort((-fractions[:, 0], rows[:, 0]))] for one in (rows, fractions)
        )
        return Found(
            groups=rows[:, 0].astype(np.int64),
            scores=fractions[:, 0].astype(np.float64),
            corners=fractions[:, 1:].astype(np.float64),
        )

    def true_of(self, label: int) -> Annotated:
        """Return the annotated boxes of a class."""
        rows = self.true[self.true[:, 1] == label]
        fractions = rows[:, 4:].copy().view(np.float64)
        return Annotated(
            groups=rows[:, 0],
            crowd=rows[:, 2] == 1,
            difficult=rows[:, 3] == 1,
            corners=fractions[:, :4],
            areas=fractions[:, 4],
        )


class DetectionScore(Score):
    """Rows of what was found and what there is: of no picture's pixels, maps or logits."""

    adds = False

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self._pictures: list[int] = []
        self._found: list[NDArray[np.int32]] = []
        self._true: list[NDArray[np.int64]] = []

    def update(self, found: Sequence[Detections], batch: DetectionBatch, /) -> None:
        """Count one batch of detections in pixels of the input."""
        for one, scene in zip(found, batch.scenes, strict=True):
            assert scene.truth is not None, "there is nothing to score by"
            self._pictures.append(scene.index)
            self._found.append(found_rows(restored(one, scene.frame), scene.index))
            self._true.append(true_rows(scene.truth, scene.index))

    def table(self) -> Table:
        """Return all rows, picture by picture: the same in whatever order they were counted."""
        order = np.argsort(self._pictures, kind="stable").tolist()
        found = [self._found[place] for place in order]
        true = [self._true[place] for place in order]
        return Table(
            pictures=np.sort(np.array(self._pictures, np.int64)),
            found=np.concatenate([np.zeros((0, FOUND_COLUMNS), np.int32), *found]),
            true=np.concatenate([np.zeros((0, TRUE_COLUMNS), np.int64), *true]),
        )

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted: three lengths, then the rows."""
        table = self.table()
        lengths = np.array([len(table.pictures), len(table.found), len(table.true)])
        parts = [lengths, table.pictures, table.found.reshape(-1), table.true.reshape(-1)]
        return torch.from_numpy(np.concatenate(parts))

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted by that of one or several scores, one after the other."""
        self._pictures, self._found, self._true = [], [], []
        rest = sums.numpy()
        while len(rest):
            pictures, found, true = rest[:3].tolist()
            ends = np.cumsum([3, pictures, found * FOUND_COLUMNS, true * TRUE_COLUMNS])
            names, own_found, own_true, rest = np.split(rest, ends)[1:]
            own_found = own_found.reshape(-1, FOUND_COLUMNS).astype(np.int32)
            own_true = own_true.reshape(-1, TRUE_COLUMNS).copy()  # so that the sums may go
            self._pictures += names.tolist()
            self._found += grouped(own_found, names)
            self._true += grouped(own_true, names)

    def result(self) -> dict[str, Any]:
        """Return the metrics, from 0 to 1; None where there is no box to be found.

        'ap' and what begins with it and 'ar' are COCO's over ten thresholds of intersection over
        union from 0.5 to 0.95 and the classes that have boxes; 'voc_ap50' is that of Pascal VOC
        2010 and later at 0.5. 'ap50' is 0 where there is nothing, as it tells epochs apart.
        """
        table = self.table()
        classes = [averages(table, label) for label in range(len(self.classes))]
        precisions = np.array([one.precisions for one in classes]).reshape(-1, *SHAPE)
        recalls = np.array([one.recalls for one in classes]).reshape(-1, *SHAPE)
        limited = np.array([one.limited_recalls for one in classes]).reshape(-1, len(RECALL_LIMITS))
        recalled = mean(recalls[:, 0, AT_50])
        return {
            "samples": len(table.pictures),
            "boxes": sum(one.boxes for one in classes),
            "ap": mean(precisions[:, 0]),
            "ap50": mean(precisions[:, 0, AT_50]) or 0.0,
            "ap75": mean(precisions[:, 0, AT_75]),
            **{f"ap_{name}": mean(precisions[:, 1 + row]) for row, name in enumerate(SIZES[1:])},
            **{f"ar_{most}": mean(limited[:, row]) for row, most in enumerate(RECALL_LIMITS)},
            **{f"ar_{name}": mean(recalls[:, 1 + row]) for row, name in enumerate(SIZES[1:])},
            "voc_ap50": mean(np.array([one.voc for one in classes])),
            "missed_fraction": 1.0 if recalled is None else 1 - recalled,
            "boxes_per_class": [
                {
                    "class": name,
                    "boxes": one.boxes,
                    "ap": mean(one.precisions[0]),
                    "ap50": mean(one.precisions[0, AT_50]),
                    "ar_100": mean(one.limited_recalls[-1]),
                    "precisions": [round(share, 4) for share in one.curve.tolist()] or None,
                }
                for name, one in zip(self.classes, classes, strict=True)
                if one.boxes or len(classes) <= MOST_ABSENT
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Averages:
    """How well the boxes of one class are found; NaN where there is none to be found."""

    boxes: int
    """To be found: those around crowds aren't."""
    precisions: Float64[np.ndarray, "sizes thresholds"]
    """Means over COCO's recalls."""
    recalls: Float64[np.ndarray, "sizes thresholds"]
    limited_recalls: Float64[np.ndarray, " limits"]
    """Means over the thresholds, where only so many boxes of a picture count."""
    curve: Float64[np.ndarray, " recalls"]
    """Precisions at an overlap of 0.5; empty where there is no box to be found."""
    voc: float


def averages(table: Table, label: int) -> Averages:
    """Return the averages of one class, by COCO's evaluation and by VOC's."""
    found, true = table.found_of(label), table.true_of(label)
    counts = (~outside(true.areas) & ~true.crowd[:, None]).sum(axis=0)
    precisions, recalls = np.full(SHAPE, np.nan), np.full(SHAPE, np.nan)
    limited, at_50 = np.full(len(RECALL_LIMITS), np.nan), np.zeros(0)
    if counts[0]:
        most = found.surest(MOST)
        order = np.argsort(-most.scores, kind="stable")
        hits = coco_hits(most, true)
        for size, threshold in np.ndindex(*SHAPE):
            if counts[size]:
                one = curve(hits[size, threshold, order], int(counts[size]))
                precisions[size, threshold] = one.at_recalls().mean()
                recalls[size, threshold] = one.recalls.max(initial=0.0)
        places = most.places()
        for row, limit in enumerate(RECALL_LIMITS):
            right = (hits[0] == 1) & (places < limit)
            limited[row] = right.sum(axis=1).mean() / counts[0]
        at_50 = curve(hits[0, AT_50, order], int(counts[0])).at_recalls()
    return Averages(
        boxes=int(counts[0]),
        precisions=precisions,
        recalls=recalls,
        limited_recalls=limited,
        curve=at_50,
        voc=voc_average(found, true),
    )


def voc_average(found: Found, true: Annotated) -> float:
    """Return the average precision of a class at an overlap of 0.5; NaN if it has no box.

    The area under the curve whose precisions never rise with recall: Everingham et al. 2010,
    section 4.2, as of VOC 2010.
    """
    count = int((~true.crowd & ~true.difficult).sum())
    if not count:
        return float("nan")
    order = np.argsort(-found.scores, kind="stable")
    return curve(voc_hits(found, true)[order], count).area()


def found_rows(found: Detections, picture: int) -> NDArray[np.int32]:
    """Return detections in pixels of the original as rows."""
    rows = np.empty((len(found.labels), FOUND_COLUMNS), np.int32)
    rows[:, 0] = picture
    rows[:, 1] = found.labels.numpy()
    rows[:, 2] = found.scores.float().numpy().view(np.int32)
    rows[:, 3:] = found.boxes.float().contiguous().numpy().view(np.int32)
    return rows


def true_rows(truth: Truth, picture: int) -> NDArray[np.int64]:
    """Return the annotated boxes as rows."""
    rows = np.empty((len(truth.labels), TRUE_COLUMNS), np.int64)
    rows[:, 0] = picture
    rows[:, 1] = truth.labels.numpy()
    rows[:, 2] = truth.crowd.numpy()
    rows[:, 3] = truth.difficult.numpy()
    rows[:, 4:8] = truth.boxes.double().contiguous().numpy().view(np.int64)
    rows[:, 8] = truth.areas.double().numpy().view(np.int64)
    return rows


def grouped(rows: AnyRows, pictures: Int64[np.ndarray, " pictures"]) -> list[AnyRows]:
    """Return the rows of each picture; they stand in the pictures' order."""
    edges = np.searchsorted(rows[:, 0], pictures, side="right")
    return np.split(rows, edges)[: len(pictures)]


def mean(values: Float64[np.ndarray, "..."] | float) -> float | None:
    """Return the mean over what is a number; None if there is none."""
    there = np.asarray(values)[~np.isnan(values)]
    return float(there.mean()) if there.size else None


TASK = Task(
    name="object-detection",
    modality="boxes",
    sample="picture",
    unit="picture",
    new_score=DetectionScore,
    present=present,
    mistakes=mistakes,
    primary_metric="ap50",
    tie_metric="missed_fraction",
)
