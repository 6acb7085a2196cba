"""Each sample comes once an epoch, at the same place on any number of ranks."""

import numpy as np
import pytest

from octavolt.contract import Places
from octavolt.data.order import epoch_order, epoch_updates, evaluation_batches, update_count

COUNT, BATCH = 1003, 64
ORDER = epoch_order(COUNT, seed=3, epoch=2)


def updates(
    *, micro_batch_size: int, rank: int = 0, ranks: int = 1, start_update: int = 0
) -> list[list[Places]]:
    return list(
        epoch_updates(
            ORDER,
            seed=3,
            epoch=2,
            batch_size=BATCH,
            micro_batch_size=micro_batch_size,
            rank=rank,
            ranks=ranks,
            start_update=start_update,
        )
    )


def samples(update: list[Places]) -> list[int]:
    return [int(index) for places in update for index in places.indices]


def test_each_sample_comes_once() -> None:
    assert sorted(ORDER.tolist()) == list(range(COUNT))


def test_order_of_an_epoch_is_written_in_stone() -> None:
    """A run that was saved by one release, and one NumPy, goes on under another."""
    assert epoch_order(8, seed=0, epoch=1).tolist() == [7, 3, 6, 0, 2, 4, 1, 5]


def test_order_differs_by_epoch_and_seed() -> None:
    orders = [epoch_order(100, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (1, 2)]
    assert len({tuple(order.tolist()) for order in orders}) == 4


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("micro_batch_size", [1, 5, 16, 64, 100])
def test_all_ranks_together_take_the_global_batches(ranks: int, micro_batch_size: int) -> None:
    shares = [
        updates(micro_batch_size=micro_batch_size, rank=rank, ranks=ranks) for rank in range(ranks)
    ]
    for number, together in enumerate(zip(*shares, strict=True)):
        joined = [sample for share in together for sample in samples(share)]
        assert joined == ORDER[number * BATCH : (number + 1) * BATCH].tolist()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_take_equal_shares_where_they_can(ranks: int) -> None:
    for rank in range(ranks):
        first = updates(micro_batch_size=16, rank=rank, ranks=ranks)[0]
        assert [len(places.indices) for places in first] == [16] * (4 // ranks)


def test_places_know_their_position() -> None:
    for update in updates(micro_batch_size=7):
        for places in update:
            stop = places.first + len(places.indices)
            assert np.array_equal(places.indices, ORDER[places.first : stop])
            assert (places.seed, places.epoch) == (3, 2)


def test_last_batch_is_kept_though_it_is_short() -> None:
    last = updates(micro_batch_size=16)[-1]
    assert sum(len(places.indices) for places in last) == COUNT % BATCH == 43


def test_rank_without_a_share_gets_an_empty_list() -> None:
    assert updates(micro_batch_size=64, rank=1, ranks=8)[0] == []


def test_start_in_the_middle_is_the_rest_of_the_whole() -> None:
    whole = [samples(update) for update in updates(micro_batch_size=16)]
    rest = [samples(update) for update in updates(micro_batch_size=32, start_update=9)]
    assert rest == whole[9:]


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_evaluation_takes_each_sample_once_in_batches_of_fixed_edges(ranks: int) -> None:
    batches = {
        places.first: places.indices.tolist()
        for rank in range(ranks)
        for places in evaluation_batches(100, batch_size=32, rank=rank, ranks=ranks)
    }
    edges = [(0, 32), (32, 64), (64, 96), (96, 100)]
    assert batches == {first: list(range(first, stop)) for first, stop in edges}


@pytest.mark.parametrize("count", [8, 9, 16, 17, 33, 1])
@pytest.mark.parametrize("micro", [2, 4, 8])
def test_a_single_sample_left_over_joins_those_before_it(count: int, micro: int) -> None:
    order = epoch_order(count, seed=0, epoch=1)
    updates = [*epoch_updates(order, seed=0, epoch=1, batch_size=8, micro_batch_size=micro)]
    sizes = [len(one.indices) for update in updates for one in update]
    assert sum(sizes) == count
    assert 1 not in sizes or count == 1
    assert len(updates) == update_count(count, 8)
