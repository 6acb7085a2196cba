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


LENGTHS = 3 + (np.arange(COUNT) * 37) % 61


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 401, COUNT])
def test_each_sample_comes_once_in_buckets_too(count: int) -> None:
    order = epoch_order(count, seed=3, epoch=2, batch_size=8, lengths=LENGTHS[:count])
    assert sorted(order.tolist()) == list(range(count))
    again = epoch_order(count, seed=3, epoch=2, batch_size=8, lengths=LENGTHS[:count])
    assert np.array_equal(order, again)


def test_order_in_buckets_is_written_in_stone() -> None:
    lengths = np.array([5, 1, 4, 2, 8, 7, 3, 6, 9])
    order = epoch_order(9, seed=0, epoch=1, batch_size=2, lengths=lengths)
    assert order.tolist() == [5, 4, 1, 3, 0, 7, 6, 2, 8]


def test_batches_of_like_length_come_in_another_order_each_epoch() -> None:
    for epoch in (1, 2):
        order = epoch_order(COUNT, seed=3, epoch=epoch, batch_size=8, lengths=LENGTHS)
        batches = LENGTHS[order[: COUNT // 8 * 8]].reshape(-1, 8)
        # A bucket of 400 samples holds each of 61 lengths six or seven times, the last one, of 203,
        # half as often.
        assert (batches.max(1) - batches.min(1) <= 5).all()
        assert (batches.max(1) - batches.min(1)).mean() < 2
        steps = np.diff(batches.mean(1))
        assert 0.3 < (steps > 0).mean() < 0.7
    first, second = (
        epoch_order(COUNT, seed=3, epoch=epoch, batch_size=8, lengths=LENGTHS) for epoch in (1, 2)
    )
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_evaluation_by_length_takes_each_sample_once_the_longest_first(ranks: int) -> None:
    batches = {
        places.first: places.indices.tolist()
        for rank in range(ranks)
        for places in evaluation_batches(
            100, batch_size=32, rank=rank, ranks=ranks, lengths=LENGTHS[:100]
        )
    }
    order = [index for first in sorted(batches) for index in batches[first]]
    assert sorted(batches) == [0, 32, 64, 96]
    assert sorted(order) == list(range(100))
    # Those of one length keep their order, so that all ranks agree on it.
    assert order == sorted(range(100), key=lambda index: (-LENGTHS[index], index))
