"""Which sample comes when, and on which rank: pure functions, the same on any number of ranks."""

from collections.abc import Iterator

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
    contiguous share: an empty list if there are too few.
    """
    for start in range(start_update * batch_size, len(order), batch_size):
        stop = min(start + batch_size, len(order))
        firsts = range(start, stop, micro_batch_size)
        yield [
            Places(
                seed=seed,
                epoch=epoch,
                first=first,
                indices=order[first : min(first + micro_batch_size, stop)],
            )
            for turn, first in enumerate(firsts)
            if turn * ranks // len(firsts) == rank
        ]


def evaluation_batches(
    count: int, *, batch_size: int, rank: int = 0, ranks: int = 1
) -> Iterator[Places]:
    """Yield one rank's batches of all samples, in their own order; batches go round the ranks.

    Their edges depend on the batch size alone, so that a sum over all is the same on any ranks.
    """
    for first in range(rank * batch_size, count, ranks * batch_size):
        indices = np.arange(first, min(first + batch_size, count), dtype=np.int64)
        yield Places(seed=0, epoch=0, first=first, indices=indices)
