"""What people are shown of detections, in pixels of the original."""

import numpy as np
import pytest
import torch

from octavolt.tasks.object_detection import (
    DetectionBatch,
    Detections,
    Frame,
    Scene,
    Truth,
    compared,
    mistakes,
    present,
    restored,
)
from tests.tasks.test_average_precision import found, truth

CLASSES = ("RBC", "WBC")
HALF = Frame(scale_x=0.5, scale_y=0.5, left=10.0, top=0.0, height=100, width=200)
"""A picture at half its size, 10 pixels from the left."""


def batch(*truths: Truth | None) -> DetectionBatch:
    return DetectionBatch(
        images=torch.zeros(len(truths), 3, 1, 1),
        sizes=torch.ones(len(truths), 2, dtype=torch.int64),
        scenes=tuple(
            Scene(
                frame=HALF,
                filled=(1, 1),
                boxes=torch.zeros(0, 4),
                labels=torch.zeros(0, dtype=torch.int64),
                truth=one,
                index=index,
            )
            for index, one in enumerate(truths)
        ),
    )


def in_input(one: Detections) -> Detections:
    """Return boxes of the original as the network sees them."""
    return Detections(
        boxes=one.boxes * 0.5 + torch.tensor([10.0, 0.0, 10.0, 0.0]),
        scores=one.scores,
        labels=one.labels,
    )


def test_boxes_come_back_to_the_original_and_stay_in_it() -> None:
    back = restored(found([[15, 5, 35, 25], [0, -3, 400, 300]], [0.9, 0.8], [0, 1]), HALF)
    assert back.boxes.tolist() == [[10, 10, 50, 50], [0, 0, 200, 100]]


def test_boxes_are_shown_with_their_label_and_score() -> None:
    (shown, empty) = present(
        [found([[15, 5, 35, 25]], [0.87654321], [1]), found([], [], [])],
        batch(None, None),
        CLASSES,
    )
    assert shown == {
        "boxes": [{"label": "WBC", "score": 0.876543, "box": [10.0, 10.0, 50.0, 50.0]}],
        "height": 100,
        "width": 200,
    }
    assert empty["boxes"] == []


@pytest.mark.parametrize(
    ("boxes", "labels", "right", "wrong"),
    [
        ([[0, 0, 20, 20], [50, 50, 90, 90]], [0, 1], 2, 0),
        # Of another class: one missed, one too many.
        ([[0, 0, 20, 20], [50, 50, 90, 90]], [0, 0], 1, 2),
        # The second on the same box is one too many.
        ([[0, 0, 20, 20], [0, 0, 20, 21], [50, 50, 90, 90]], [0, 0, 1], 2, 1),
        # Half of the larger one is half of both together: enough. A little less isn't.
        ([[0, 0, 20, 10], [50, 50, 90, 90]], [0, 1], 2, 0),
        ([[0, 0, 20, 9.9], [50, 50, 90, 90]], [0, 1], 1, 2),
        ([], [], 0, 2),
        # In the crowd, and on the difficult one: neither right nor wrong.
        (
            [[0, 0, 20, 20], [50, 50, 90, 90], [110, 10, 120, 20], [170, 50, 199, 90]],
            [0, 1, 0, 1],
            2,
            0,
        ),
    ],
)
def test_boxes_missed_and_too_many_are_counted(
    boxes: list[list[float]], labels: list[int], right: int, wrong: int
) -> None:
    there = truth(
        [[0, 0, 20, 20], [50, 50, 90, 90], [100, 0, 160, 60], [170, 50, 199, 90]],
        [0, 1, 0, 1],
        crowd=[False, False, True, False],
        difficult=[False, False, False, True],
    )
    scores = [0.9, 0.8, 0.7, 0.6][: len(boxes)]
    assert compared(found(boxes, scores, labels), there) == (right, wrong)


def test_mistakes_are_pictures_with_boxes_missed_or_too_many() -> None:
    there = truth([[0, 0, 20, 20], [40, 40, 60, 60], [80, 20, 95, 40]], [0, 0, 1])
    good = found(there.boxes.tolist(), [0.9, 0.8, 0.7], [0, 0, 1])
    # The least sure one isn't shown, so it is missed.
    poor = found(there.boxes.tolist(), [0.9, 0.8, 0.2], [0, 0, 1])
    none = found([], [], [])
    wrong = mistakes(
        [in_input(one) for one in (good, poor, none)],
        batch(there, there, there),
        np.array([7, 8, 9]),
        CLASSES,
    )
    assert [(one.index, one.label, one.predicted) for one in wrong] == [
        (8, "2 RBC, 1 WBC", "2 RBC"),
        (9, "2 RBC, 1 WBC", "no box"),
    ]
    assert [one.probability for one in wrong] == [1 / 3, 1.0]
    assert wrong[0].marks.boxes.tolist() == [[0, 0, 20, 20], [40, 40, 60, 60]]


def test_picture_whose_only_fault_is_difficult_is_no_mistake() -> None:
    there = truth([[0, 0, 20, 20]], [0], difficult=[True])
    assert mistakes([found([], [], [])], batch(there), np.array([0]), CLASSES) == []
