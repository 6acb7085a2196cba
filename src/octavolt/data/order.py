"""Which sample comes when, and on which rank: pure functions, the same on any number of ranks."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from octavolt.contract import Places


def epoch_order(count: int, *, seed: int, epoch: int) -> Int[np.ndarray, " count"]:
    """Return the samples of an epoch, each once, shuffled.

    Sorting random words shuffles, and NumPy promises the same words in all its versions, which it
    does not for `permutation`: a run may be resumed after an upgrade.
    """
    words = np.random.SFC64([seed, epoch]).random_raw(count)
    return np.argsort(words, kind="stable").astype(np.int64)


def epoch_updates(
    order: Int[np.ndarray, " count"],
    *,
    seed: int,
    epoch: int,
    batch_size: int,
    micro_batch_size: int,
    rank: int = 0,
    ranks: int = 1,
    start_update: int = 0,
) -> Iterator[list[Places]]:
    """Yield one rank's micro-batches of each update of the parameters.

    Update u, counted from 0, takes the positions [u * batch_size, (u + 1) * batch_size) of the
    epoch; the last may be short. They are cut into micro-batches, of which each rank has a
    contiguous share: an empty list if there are too few. A single sample that is left over joins
    those before it, since a norm over the batch can't be taken of one.
    """
    ends = cuts(0, len(order), batch_size)
    for start, stop in [*pairwise(ends)][start_update:]:
        edges = cuts(start, stop, micro_batch_size)
        yield [
            Places(seed=seed, epoch=epoch, first=first, indices=order[first:end])
            for turn, (first, end) in enumerate(pairwise(edges))
            if turn * ranks // (len(edges) - 1) == rank
        ]


def update_count(count: int, batch_size: int) -> int:
    """Return how many updates `epoch_updates` makes of an epoch of so many samples."""
    return len(cuts(0, count, batch_size)) - 1


def cuts(start: int, stop: int, size: int) -> list[int]:
    """Return the edges of pieces of `size`; the last is shorter, or longer by one left over."""
    edges = [*range(start, stop, size), stop]
    if len(edges) > 2 and size > 1 and edges[-1] - edges[-2] == 1:
        del edges[-2]
    return edges


def evaluation_batches(
    count: int, *, batch_size: int, rank: int = 0, ranks: int = 1
) -> Iterator[Places]:
    """Yield one rank's batches of all samples, in their own order; batches go round the ranks.

    Their edges depend on the batch size alone, so that a sum over all is the same on any ranks.
    """
    for first in range(rank * batch_size, count, ranks * batch_size):
        indices = np.arange(first, min(first + batch_size, count), dtype=np.int64)
        yield Places(seed=0, epoch=0, first=first, indices=indices)
