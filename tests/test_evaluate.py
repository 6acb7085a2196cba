"""A pass over a split, by a network that says what it is told to."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from octavolt import ranks
from octavolt.contract import Batch, Examples, Job, Network, Places
from octavolt.data.loader import Loader
from octavolt.devices import this_machine
from octavolt.errors import OctavoltError
from octavolt.evaluate import check_numbers, score_split
from octavolt.ranks import Rank, given
from octavolt.runs import write_json
from octavolt.tasks import find
from octavolt.tasks.object_detection import Detections
from octavolt.train.launch import launched
from tests.tasks.test_average_precision import CLASSES, batch, found, made

SEED = 2


class Told(Network):
    """Finds in each picture what was made for it: a picture's first pixel is its number."""

    def __init__(self) -> None:
        super().__init__()
        _, self.detections = made(SEED)

    def forward(self, images: Tensor, sizes: Tensor) -> Tensor:
        del sizes
        return images[:, 0, 0, 0]

    def losses(self, _batch: Any, /) -> dict[str, Tensor]:
        return {}

    def decode(self, outputs: Tensor, /) -> list[Detections]:
        return [self.detections[int(one)] for one in outputs]

    def head(self) -> Sequence[str]:
        return ()


class Made(Examples):
    """Eight pictures of which only the boxes matter, two in a pass."""

    evaluation_batch_size = 2

    def __init__(self) -> None:
        self.truths, _ = made(SEED)

    def __len__(self) -> int:
        return len(self.truths)

    def begin(self, places: Places) -> tuple[Batch, Sequence[Job]]:
        (first, *_), last = places.indices.tolist(), places.indices.tolist()[-1] + 1
        filled = batch(self.truths[first:last], first)
        filled.images[:, 0, 0, 0] = torch.arange(first, last)
        return filled, []

    def name(self, index: int) -> str:
        return str(index)


def scored(output: Path, **_: Any) -> Path:
    """Score the pictures by all ranks; write the figures and mistakes down."""
    rank = given(os.environ) or Rank()
    machine = this_machine(precision="fp32", rank=rank, threads=1)
    with ranks.joined(rank, machine.device), Loader(threads=1, ahead=0) as loader:
        task = find("object-detection")
        result = score_split(Told(), Made(), loader, machine, task=task, classes=CLASSES, rank=rank)
    shown = [[one.index, one.label, one.predicted, one.probability] for one in result.mistakes]
    if rank.leads:
        write_json(output, {"metrics": result.metrics, "mistakes": shown})
    return output


def silent(*_: object) -> None:
    """Tell nobody; a function of a module, so that it can go to other processes."""


def test_scores_that_do_not_add_are_put_one_after_the_other(tmp_path: Path) -> None:
    metrics = json.loads(scored(tmp_path / "one.json").read_text())["metrics"]
    task = find("object-detection")
    score = task.new_score(CLASSES)
    truths, detections = made(SEED)
    score.update(detections, batch(truths))
    assert metrics == score.result()
    assert metrics["samples"] == 8


@pytest.mark.slow
def test_boxes_are_scored_on_two_ranks_exactly_as_on_one(tmp_path: Path) -> None:
    one = scored(tmp_path / "one.json")
    two = launched(scored, tmp_path / "two.json", processes=2, tell=silent, progress=silent)
    assert json.loads(one.read_text()) == json.loads(two.read_text())


@pytest.mark.parametrize(
    "outputs",
    [
        torch.tensor([0.5, math.nan]),
        torch.tensor([0.5, math.inf]),
        (torch.zeros(2), torch.tensor([math.nan])),
        [torch.zeros(2), [found([[0, 0, 1, 1]], [math.nan], [0])]],
    ],
)
def test_what_is_no_number_is_told_wherever_it_stands(outputs: Any) -> None:
    with pytest.raises(OctavoltError, match="no longer a finite number"):
        check_numbers(outputs)


def test_numbers_masked_ones_and_nothing_at_all_are_in_order() -> None:
    check_numbers(torch.tensor([0.5, -math.inf]))
    check_numbers((torch.zeros(0, 4), [found([], [], [])], [found([[0, 0, 1, 1]], [0.1], [0])]))
