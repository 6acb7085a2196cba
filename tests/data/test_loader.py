"""Batches come in order, errors where they belong, and nothing is left running."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch

from octavolt.contract import Examples, Job, Places, Preprocessing, ReadyBatch
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order, epoch_updates
from octavolt.tasks.image_classification import PictureBatch

from .memory import photos

WAYS = [(1, 0), (3, 0), (1, 2), (3, 3)]


@dataclass(frozen=True, kw_only=True)
class Numbers(ReadyBatch):
    """A batch of numbers."""

    values: list[int]

    @property
    def weight(self) -> float:
        """Return the count."""
        return float(len(self.values))

    @property
    def inputs(self) -> tuple[torch.Tensor]:
        """Return the numbers."""
        return (torch.tensor(self.values),)

    def to(self, device: torch.device) -> "Numbers":
        """Return itself."""
        return self


class Counting(Examples):
    """Fills slots with ten times the index, and fails at some."""

    def __init__(
        self,
        failing: Sequence[int] = (),
        slow: Sequence[int] = (),
        patience_seconds: float = 5.0,
    ) -> None:
        self.failing = failing
        self.slow = slow
        self.patience_seconds = patience_seconds
        self.at_work = threading.Event()
        self.begun: list[int] = []
        self.done: list[int] = []
        self.others_failed = threading.Event()

    def __len__(self) -> int:
        """Return the count."""
        return 1000

    def name(self, index: int) -> str:
        """Return the index."""
        return str(index)

    def begin(self, places: Places) -> tuple[Numbers, list[Job]]:
        """Return slots of -1 and the jobs that fill them."""
        self.begun.append(places.first)
        values = [-1] * len(places.indices)
        return Numbers(values=values), [
            partial(self.fill, values, slot, int(index))
            for slot, index in enumerate(places.indices)
        ]

    def fill(self, values: list[int], slot: int, index: int) -> None:
        """Fill one slot."""
        if index in self.slow:
            self.at_work.set()
            self.others_failed.wait(self.patience_seconds)
        if index in self.failing:
            self.others_failed.set()
            raise ValueError(f"sample {index}")
        values[slot] = 10 * index
        self.done.append(index)


def spans(count: int, size: int = 8) -> Iterator[Places]:
    for first in range(0, count * size, size):
        yield Places(seed=0, epoch=1, first=first, indices=np.arange(first, first + size))


def loader_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("octavolt-loader")]


@pytest.mark.parametrize(("threads", "ahead"), WAYS)
def test_batches_come_in_order_and_full(threads: int, ahead: int) -> None:
    with Loader(threads=threads, ahead=ahead) as loader:
        found = [one.batch for one in loader.batches(Counting(), spans(9))]
    values = [value for batch in found if isinstance(batch, Numbers) for value in batch.values]
    assert values == [10 * index for index in range(72)]


@pytest.mark.parametrize(("threads", "ahead"), WAYS)
def test_pixels_are_the_same_on_any_number_of_threads(threads: int, ahead: int) -> None:
    examples = PictureExamples(
        photos(20), Preprocessing(image_size=16), class_count=3, augmentation=Augmentation()
    )

    def pixels(loader: Loader, micro_batch_size: int) -> torch.Tensor:
        order = epoch_order(20, seed=0, epoch=1)
        updates = epoch_updates(
            order, seed=0, epoch=1, batch_size=8, micro_batch_size=micro_batch_size
        )
        places = [one for update in updates for one in update]
        batches = [one.batch for one in loader.batches(examples, places)]
        return torch.cat([batch.pixels for batch in batches if isinstance(batch, PictureBatch)])

    with Loader(threads=1, ahead=0) as plain, Loader(threads=threads, ahead=ahead) as loader:
        assert torch.equal(pixels(loader, 2), pixels(plain, 8))


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_so_many_batches_are_begun_ahead(ahead: int) -> None:
    examples = Counting()
    with Loader(threads=2, ahead=ahead) as loader:
        for number, _ in enumerate(loader.batches(examples, spans(9)), start=1):
            assert len(examples.begun) == min(9, number + ahead)


@pytest.mark.parametrize(("threads", "ahead"), WAYS)
def test_batches_before_an_error_come_and_none_after(threads: int, ahead: int) -> None:
    found: list[int] = []
    with Loader(threads=threads, ahead=ahead) as loader:
        batches = loader.batches(Counting(failing=[19]), spans(9))
        with pytest.raises(ValueError, match="sample 19"):
            found.extend(one.places.first for one in batches)
        assert found == [0, 8]
        assert list(batches) == []


def test_first_error_in_order_is_raised_though_another_came_sooner() -> None:
    examples = Counting(failing=[1, 6], slow=[1])
    with (
        Loader(threads=4, ahead=0) as loader,
        pytest.raises(ValueError, match="sample 1"),
    ):
        next(loader.batches(examples, spans(1)))


def test_closing_waits_for_the_job_at_work_and_drops_the_rest() -> None:
    # Sample 8, the first of the second batch, takes until long after the close.
    examples = Counting(slow=[8], patience_seconds=0.5)
    with Loader(threads=1, ahead=1) as loader:
        batches = loader.batches(examples, spans(9))
        next(batches)
        examples.at_work.wait(5)
        batches.close()
        # Jobs are grouped by two here: a group at work is finished.
        assert examples.done == [*range(8), 8, 9]


@pytest.mark.parametrize(("threads", "ahead"), WAYS)
def test_another_generator_can_follow_a_closed_one(threads: int, ahead: int) -> None:
    with Loader(threads=threads, ahead=ahead) as loader:
        batches = loader.batches(Counting(), spans(9))
        next(batches)
        batches.close()
        again = [one.places.first for one in loader.batches(Counting(), spans(3))]
        assert again == [0, 8, 16]


@pytest.mark.parametrize(("threads", "ahead"), WAYS)
def test_no_thread_is_left_behind(threads: int, ahead: int) -> None:
    with Loader(threads=threads, ahead=ahead) as loader:
        next(loader.batches(Counting(), spans(9)))
        assert len(loader_threads()) >= 1
    assert loader_threads() == []


def test_waiting_is_told_by_the_clock() -> None:
    ticks = iter([1.0, 3.5])
    with Loader(threads=1, ahead=0, clock=lambda: next(ticks)) as loader:
        assert [one.waited_seconds for one in loader.batches(Counting(), spans(1))] == [2.5]


def test_empty_places_give_an_empty_batch() -> None:
    none = Places(seed=0, epoch=1, first=0, indices=np.zeros(0, np.int64))
    with Loader(threads=2, ahead=1) as loader:
        assert [one.batch.weight for one in loader.batches(Counting(), [none])] == [0]
