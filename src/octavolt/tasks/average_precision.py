"""How well boxes are found: the averages of COCO, by its own method, and that of Pascal VOC."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from octavolt.contract import Score, Task
from octavolt.tasks.boxes import intersection_over_union
from octavolt.tasks.object_detection import (
    DetectionBatch,
    Detections,
    Truth,
    mistakes,
    present,
    restored,
)

SIZES = ("all", "small", "medium", "large")
"""COCO's ranges of areas: below 32 x 32 pixels, below 96 x 96, above."""
MOST = (1, 10, 100)
"""Boxes of a picture and class that count for average recall."""
AT_50, AT_75 = 0, 5
"""Places among COCO's ten thresholds of intersection over union."""
FOUND_COLUMNS, TRUE_COLUMNS = 7, 9


@dataclass(frozen=True, kw_only=True)
class Table:
    """All boxes of a split, a row each, as whole numbers: fractions are their bits."""

    pictures: Int[np.ndarray, " pictures"]
    found: Int[np.ndarray, "found 7"]
    """Picture, label, score, corners in fp32."""
    true: Int[np.ndarray, "true 9"]
    """Picture, label, crowd, difficult, corners and area in fp64."""

    def scores(self) -> NDArray[np.float32]:
        """Return the scores of what was found."""
        return self.found[:, 2].astype(np.int32).view(np.float32)

    def corners(self) -> NDArray[np.float64]:
        """Return the corners of what was found."""
        bits = np.ascontiguousarray(self.found[:, 3:].astype(np.int32))
        return bits.view(np.float32).astype(np.float64)

    def true_corners(self) -> NDArray[np.float64]:
        """Return the corners of what there is."""
        return np.ascontiguousarray(self.true[:, 4:8]).view(np.float64)

    def areas(self) -> NDArray[np.float64]:
        """Return the areas of what there is, in square pixels."""
        return np.ascontiguousarray(self.true[:, 8]).view(np.float64)


class DetectionScore(Score):
    """Rows of what was found and what there is: of no picture's pixels, maps or logits."""

    adds = False

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self._pictures: list[int] = []
        self._found: list[NDArray[np.int64]] = []
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
            found=np.concatenate([np.zeros((0, FOUND_COLUMNS), np.int64), *found]),
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
            own_found = own_found.reshape(-1, FOUND_COLUMNS)
            own_true = own_true.reshape(-1, TRUE_COLUMNS)
            self._pictures += names.tolist()
            self._found += grouped(own_found, names)
            self._true += grouped(own_true, names)

    def result(self) -> dict[str, Any]:
        """Return the metrics, from 0 to 1; None where no box could be found.

        'ap' and all that begin with it, and 'ar', are COCO's over ten thresholds of intersection
        over union from 0.5 to 0.95, 'voc_ap50' is that of Pascal VOC 2010 and later at 0.5.
        """
        table = self.table()
        precision, recall = coco_arrays(table, len(self.classes))
        voc = voc_precisions(table, len(self.classes))
        boxes = np.bincount(table.true[table.true[:, 2] == 0, 1], minlength=len(self.classes))
        recalled = mean(recall[AT_50, :, 0, -1])
        return {
            "samples": len(table.pictures),
            "boxes": int(boxes.sum()),
            "ap": mean(precision[:, :, :, 0, -1]),
            "ap50": mean(precision[AT_50, :, :, 0, -1]) or 0.0,
            "ap75": mean(precision[AT_75, :, :, 0, -1]),
            **{
                f"ap_{name}": mean(precision[:, :, :, place, -1])
                for place, name in enumerate(SIZES)
                if place
            },
            **{f"ar_{most}": mean(recall[:, :, 0, place]) for place, most in enumerate(MOST)},
            **{
                f"ar_{name}": mean(recall[:, :, place, -1])
                for place, name in enumerate(SIZES)
                if place
            },
            "voc_ap50": mean(voc),
            "missed_fraction": 1.0 if recalled is None else 1 - recalled,
            "boxes_per_class": [
                {
                    "class": name,
                    "boxes": int(boxes[row]),
                    "ap": mean(precision[:, :, row, 0, -1]),
                    "ap50": mean(precision[AT_50, :, row, 0, -1]),
                    "ar_100": mean(recall[:, row, 0, -1]),
                    "precisions": curve(precision[AT_50, :, row, 0, -1]),
                }
                for row, name in enumerate(self.classes)
                if boxes[row] or len(self.classes) <= MOST_ABSENT
            ],
        }


MOST_ABSENT = 30
"""With more classes, those without a box are left out of the table."""


def found_rows(found: Detections, picture: int) -> NDArray[np.int64]:
    """Return detections in pixels of the original as rows."""
    rows = np.empty((len(found.labels), FOUND_COLUMNS), np.int64)
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


def grouped(rows: NDArray[np.int64], pictures: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the rows of each picture; they stand in the pictures' order."""
    edges = np.searchsorted(rows[:, 0], pictures, side="right")
    return np.split(rows, edges)[: len(pictures)]


def mean(values: NDArray[np.float64]) -> float | None:
    """Return the mean over what there is: -1 stands for nothing; None if there is nothing."""
    there = values[values > -1]
    return float(there.mean()) if there.size else None


def curve(precisions: NDArray[np.float64]) -> list[float] | None:
    """Return the precision at the recalls 0, 0.01 ... 1, for a plot."""
    return None if precisions[0] < 0 else [round(float(one), 4) for one in precisions]


def coco_arrays(table: Table, classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return precisions by threshold, recall, class, size and most; recalls without the second.

    By faster-coco-eval, which gives what pycocotools gives.
    """
    from faster_coco_eval import COCO, COCOeval_faster

    logging.getLogger("faster_coco_eval").setLevel(logging.ERROR)
    corners = table.true_corners()
    boxes = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    annotations = [
        {
            "id": number,
            "image_id": int(row[0]),
            "category_id": int(row[1]),
            "bbox": box,
            "area": area,
            "iscrowd": int(row[2]),
        }
        for number, (row, box, area) in enumerate(
            zip(table.true, boxes.tolist(), table.areas().tolist(), strict=True), 1
        )
    ]
    found = table.corners()
    truth = COCO(
        {
            "images": [{"id": int(one)} for one in table.pictures],
            "categories": [{"id": one, "name": str(one)} for one in range(classes)],
            "annotations": annotations,
        }
    )
    rows = np.concatenate(
        [
            table.found[:, :1],
            found[:, :2],
            found[:, 2:] - found[:, :2],
            table.scores()[:, None],
            table.found[:, 1:2],
        ],
        axis=1,
    )
    evaluation = COCOeval_faster(truth, truth.loadRes(rows), "bbox", print_function=silent)
    evaluation.params.maxDets = [*MOST]
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation.eval["precision"], evaluation.eval["recall"]


def silent(*_words: object) -> None:
    """Print nothing."""


def voc_precisions(table: Table, classes: int) -> NDArray[np.float64]:
    """Return the average precision of each class at an overlap of 0.5; -1 where it has no box.

    The area under the curve whose precisions never rise with recall: Everingham et al. 2010,
    section 4.2, as of VOC 2010. A box that was found goes with the true one that it overlaps most;
    a true one that is difficult, or around a crowd, counts neither way.
    """
    result = np.full(classes, -1.0)
    for label in np.unique(table.true[:, 1]).tolist():
        true, found = table.true[:, 1] == label, table.found[:, 1] == label
        idle = (table.true[true, 2] | table.true[true, 3]) > 0
        if idle.all():
            continue
        order = np.argsort(-table.scores()[found], kind="stable")
        hits = voc_hits(
            table.found[found, 0][order],
            table.corners()[found][order],
            table.true[true, 0],
            table.true_corners()[true],
            idle,
        )
        right = np.cumsum(hits > 0)
        wrong = np.cumsum(hits < 0)
        recall = np.concatenate([[0.0], right / (~idle).sum()])
        precision = right / np.maximum(right + wrong, 1)
        highest = np.maximum.accumulate(precision[::-1])[::-1]
        result[label] = float((np.diff(recall) * highest).sum())
    return result


def voc_hits(
    pictures: Int[np.ndarray, " found"],
    corners: Float[np.ndarray, "found 4"],
    true_pictures: Int[np.ndarray, " true"],
    true_corners: Float[np.ndarray, "true 4"],
    idle: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """Return 1 for each box that finds one, -1 for each that doesn't, 0 for what doesn't count."""
    hits = np.full(len(pictures), -1, np.int8)
    for picture in np.unique(true_pictures).tolist():
        own, there = np.flatnonzero(pictures == picture), np.flatnonzero(true_pictures == picture)
        overlaps = intersection_over_union(
            torch.from_numpy(corners[own]), torch.from_numpy(true_corners[there])
        ).numpy()
        taken = np.zeros(len(there), bool)
        for row, place in enumerate(own.tolist()):
            best = int(overlaps[row].argmax())
            if overlaps[row, best] < 0.5:
                continue
            if idle[there[best]]:
                hits[place] = 0
            elif not taken[best]:
                hits[place], taken[best] = 1, True
    return hits


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
