"""The averages of COCO and of Pascal VOC, beside pycocotools and beside counts by hand."""

import contextlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from octavolt.tasks import find, matching
from octavolt.tasks.average_precision import DetectionScore, averages
from octavolt.tasks.boxes import intersection_over_union
from octavolt.tasks.object_detection import DetectionBatch, Detections, Frame, Scene, Truth

CLASSES = ("cat", "dog", "owl")
FRAME = Frame(scale_x=1.0, scale_y=1.0, left=0.0, top=0.0, height=400, width=400)


def truth(
    boxes: Sequence[Sequence[float]],
    labels: Sequence[int],
    crowd: Sequence[bool] | None = None,
    difficult: Sequence[bool] | None = None,
) -> Truth:
    corners = torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4)
    none = [False] * len(labels)
    return Truth(
        boxes=corners,
        labels=torch.tensor(labels, dtype=torch.int64),
        crowd=torch.tensor(crowd or none, dtype=torch.bool),
        difficult=torch.tensor(difficult or none, dtype=torch.bool),
        areas=(corners[:, 2:] - corners[:, :2]).prod(dim=1),
    )


def found(
    boxes: Sequence[Sequence[float]], scores: Sequence[float], labels: Sequence[int]
) -> Detections:
    return Detections(
        boxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        scores=torch.tensor(scores, dtype=torch.float32),
        labels=torch.tensor(labels, dtype=torch.int64),
    )


def batch(truths: Sequence[Truth], first: int = 0) -> DetectionBatch:
    return DetectionBatch(
        images=torch.zeros(len(truths), 3, 1, 1),
        sizes=torch.ones(len(truths), 2, dtype=torch.int64),
        scenes=tuple(
            Scene(
                frame=FRAME,
                filled=(1, 1),
                boxes=torch.zeros(0, 4),
                labels=torch.zeros(0, dtype=torch.int64),
                truth=one,
                index=first + place,
            )
            for place, one in enumerate(truths)
        ),
    )


def made(seed: int, *, pictures: int = 8) -> tuple[list[Truth], list[Detections]]:
    """Return random pictures: some empty, with crowds, equal scores, and more than 100 boxes.

    True boxes come in pairs that overlap, so that a found one must choose.
    """
    random = np.random.default_rng(seed)
    truths, detections = [], []
    for picture in range(pictures):
        count = int(random.integers(0, 9))
        first = random.uniform(0, 250, (count, 2)).round(1)
        corners = np.concatenate([first, first + random.uniform(4, 140, (count, 2)).round(1)], 1)
        corners[1::2] = corners[:-1:2] + random.uniform(0, 8, (count // 2, 4)).round(1)
        labels = random.integers(0, 2 if seed % 2 else 3, count)
        labels[1::2] = labels[:-1:2]
        crowd = random.random(count) < 0.15
        truths.append(truth(corners.tolist(), labels.tolist(), crowd.tolist()))
        near = corners + random.normal(0, 6, corners.shape)
        many = 120 if picture == 3 else int(random.integers(0, 12))
        start = random.uniform(0, 250, (many, 2))
        noise = np.concatenate([start, start + random.uniform(5, 100, (many, 2))], 1)
        near = np.concatenate([near, noise]).clip(0, 400)
        own = np.concatenate([labels, random.integers(0, 3, many)])
        scores = random.random(len(near)).round(1)  # many are equal
        order = np.argsort(-scores, kind="stable")
        detections.append(found(near[order].tolist(), scores[order].tolist(), own[order].tolist()))
    return truths, detections


def scored(truths: Sequence[Truth], detections: Sequence[Detections]) -> DetectionScore:
    score = DetectionScore(CLASSES)
    for first in range(0, len(truths), 3):
        score.update(detections[first : first + 3], batch(truths[first : first + 3], first))
    return score


def by_pycocotools(truths: Sequence[Truth], detections: Sequence[Detections]) -> Any:
    """Return pycocotools' twelve figures on the same boxes."""
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for picture, (one, own) in enumerate(zip(truths, detections, strict=True)):
        for box, label, crowd, area in zip(
            one.boxes.tolist(),
            one.labels.tolist(),
            one.crowd.tolist(),
            one.areas.tolist(),
            strict=True,
        ):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": picture,
                    "category_id": label,
                    "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                    "area": area,
                    "iscrowd": int(crowd),
                }
            )
        for box, score, label in zip(
            own.boxes.double().tolist(), own.scores.tolist(), own.labels.tolist(), strict=True
        ):
            results.append(
                {
                    "image_id": picture,
                    "category_id": label,
                    "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                    "score": score,
                }
            )
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO()
        data.dataset = {
            "images": [{"id": one} for one in range(len(truths))],
            "categories": [{"id": one} for one in range(len(CLASSES))],
            "annotations": annotations,
        }
        data.createIndex()
        evaluation = cocoeval.COCOeval(data, data.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats


NAMES = (
    "ap",
    "ap50",
    "ap75",
    "ap_small",
    "ap_medium",
    "ap_large",
    "ar_1",
    "ar_10",
    "ar_100",
    "ar_small",
    "ar_medium",
    "ar_large",
)


@pytest.mark.parametrize("seed", range(6))
def test_averages_are_those_of_pycocotools(seed: int) -> None:
    truths, detections = made(seed)
    reference = by_pycocotools(truths, detections)
    result = scored(truths, detections).result()
    for name, value in zip(NAMES, reference, strict=True):
        # As the issue asks; -1 is pycocotools' word for nothing.
        assert (-1.0 if result[name] is None else result[name]) == pytest.approx(value, abs=1e-6)


def test_averages_are_those_that_pycocotools_gave() -> None:
    """A stored case, for where pycocotools isn't: crowd, ties, an empty picture, 109 boxes."""
    stored = json.loads((Path(__file__).parent / "boxes_by_pycocotools.json").read_text())
    truths, detections = [], []
    for one in stored["pictures"]:
        true, boxes = np.array(one["true"]).reshape(-1, 6), np.array(one["found"]).reshape(-1, 6)
        truths.append(truth(true[:, :4].tolist(), true[:, 4].tolist(), (true[:, 5] > 0).tolist()))
        labels = boxes[:, 4].astype(int).tolist()
        detections.append(found(boxes[:, :4].tolist(), boxes[:, 5].tolist(), labels))
    result = scored(truths, detections).result()
    # The stored figures have all digits; only the order of adding differs.
    assert [result[name] for name in NAMES] == pytest.approx(stored["statistics"], abs=1e-12)


def test_boxes_beside_boxes_are_compared_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    truths, detections = made(4)
    whole = scored(truths, detections).result()
    monkeypatch.setattr(matching, "MOST_PAIRS", 7)
    assert scored(truths, detections).result() == whole


def test_averages_of_a_case_counted_by_hand() -> None:
    """Two boxes of one class; the surest finds one, the second nothing, the third the other."""
    truths = [truth([[0, 0, 50, 50], [100, 100, 200, 200]], [0, 0])]
    detections = [
        found(
            [[0, 0, 50, 50], [300, 300, 350, 350], [100, 100, 200, 200]], [0.9, 0.8, 0.7], [0] * 3
        )
    ]
    result = scored(truths, detections).result()
    # Precision is 1 up to a recall of 0.5, at 51 of 101 points, and 2/3 beyond.
    assert result["ap50"] == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-9)
    assert result["ap"] == pytest.approx(result["ap50"], abs=1e-9)
    # VOC's is the area itself.
    assert result["voc_ap50"] == pytest.approx(0.5 + 0.5 * 2 / 3, abs=1e-9)
    assert result["ar_1"] == 0.5
    assert result["ar_100"] == 1.0
    assert result["missed_fraction"] == 0.0
    assert result["ap_small"] is None
    row = result["boxes_per_class"][0]
    assert (row["class"], row["boxes"], len(row["precisions"])) == ("cat", 2, 101)
    assert result["boxes_per_class"][1]["ap"] is None


def test_difficult_boxes_count_neither_way_in_voc() -> None:
    boxes = [[0, 0, 50, 50], [100, 100, 200, 200]]
    detections = [found(boxes, [0.8, 0.9], [0, 0])]
    score = scored([truth(boxes, [0, 0], difficult=[False, True])], detections)
    assert [averages(score.table(), label).voc for label in range(3)] == pytest.approx(
        [1.0, float("nan"), float("nan")], nan_ok=True
    )
    score = scored([truth(boxes, [0, 0])], [found([boxes[0], boxes[0]], [0.9, 0.8], [0, 0])])
    # The second finding of the same box is a false one.
    assert averages(score.table(), 0).voc == 0.5


def voc_by_loops(truths: Sequence[Truth], detections: Sequence[Detections], label: int) -> float:
    """Return VOC's average as its development kit words it: box after box, the surest first."""
    rows = [
        (float(score), picture, box)
        for picture, one in enumerate(detections)
        for box, score, own in zip(one.boxes.double(), one.scores, one.labels, strict=True)
        if own == label
    ]
    used: set[tuple[int, int]] = set()
    right, precisions, recalls = 0, [], []
    wrong = 0
    count = sum(int(((t.labels == label) & ~t.crowd & ~t.difficult).sum()) for t in truths)
    for _, picture, box in sorted(rows, key=lambda row: -row[0]):
        one = truths[picture]
        best, place = 0.0, -1
        for number, true in enumerate(one.boxes):
            share = float(intersection_over_union(box[None], true[None]))
            if one.labels[number] == label and share > best:
                best, place = share, number
        if best >= 0.5 and (one.difficult[place] or one.crowd[place]):
            continue
        if best >= 0.5 and (picture, place) not in used:
            used.add((picture, place))
            right += 1
        else:
            wrong += 1
        precisions.append(right / (right + wrong))
        recalls.append(right / count)
    edges = [0.0, *recalls]
    return sum(
        (after - before) * max(precisions[place:])
        for place, (before, after) in enumerate(zip(edges, recalls, strict=False))
    )


@pytest.mark.parametrize("seed", range(3))
def test_average_of_voc_is_that_of_its_rules_in_loops(seed: int) -> None:
    truths, detections = made(seed, pictures=5)
    random = np.random.default_rng(seed)
    truths = [
        replace(one, difficult=torch.from_numpy(random.random(len(one.labels)) < 0.3))
        for one in truths
    ]
    table = scored(truths, detections).table()
    for label in (0, 1):
        # Sums in another order: the last digits.
        expected = voc_by_loops(truths, detections, label)
        assert averages(table, label).voc == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_scores_of_ranks_merge_to_the_same(ranks: int) -> None:
    truths, detections = made(4)
    whole = scored(truths, detections)
    parts = []
    for rank in range(ranks):
        score = DetectionScore(CLASSES)
        for place in range(rank, len(truths), ranks):
            score.update([detections[place]], batch([truths[place]], place))
        parts.append(score.sums())
    merged = DetectionScore(CLASSES)
    merged.load(torch.cat(parts))
    assert torch.equal(merged.sums(), whole.sums())
    assert merged.result() == whole.result()
    assert not DetectionScore.adds


def test_nothing_found_and_nothing_there_are_scored() -> None:
    empty = found([], [], [])
    nothing = scored([truth([], [])], [empty]).result()
    assert (nothing["ap50"], nothing["ap"], nothing["samples"]) == (0.0, None, 1)
    missed = scored([truth([[0, 0, 9, 9]], [1])], [empty]).result()
    assert (missed["ap50"], missed["missed_fraction"]) == (0.0, 1.0)
    false = scored([truth([], [])], [found([[0, 0, 9, 9]], [0.5], [1])]).result()
    assert false["boxes"] == 0


def test_classes_without_boxes_are_not_part_of_the_mean() -> None:
    """One class found whole, of another only a crowd, of the third a box too many."""
    there = truth([[0, 0, 50, 50], [60, 60, 200, 200]], [0, 1], crowd=[False, True])
    result = scored([there], [found([[0, 0, 50, 50], [9, 9, 40, 40]], [0.9, 0.8], [0, 2])]).result()
    assert (result["ap"], result["ap50"], result["voc_ap50"], result["boxes"]) == (1, 1, 1, 1)
    assert [one["boxes"] for one in result["boxes_per_class"]] == [1, 0, 0]


def test_classes_without_boxes_are_left_out_of_a_long_table() -> None:
    score = DetectionScore([str(one) for one in range(31)])
    score.update([found([], [], [])], batch([truth([[0, 0, 9, 9]], [30])]))
    assert [one["class"] for one in score.result()["boxes_per_class"]] == ["30"]


def test_result_is_ready_for_json() -> None:
    truths, detections = made(1)
    json.dumps(scored(truths, detections).result(), allow_nan=False)


def test_task_is_known_by_its_name_and_judged_by_what_always_is_a_number() -> None:
    task = find("object-detection")
    nothing = task.new_score(CLASSES).result()
    assert (nothing[task.primary_metric], nothing[task.tie_metric]) == (0.0, 1.0)
