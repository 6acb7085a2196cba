"""Which sample comes when, and on which rank: pure functions, the same on any number of ranks."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from octavolt.contract import Places

BUCKET_BATCHES = 50
"""Batches that are sorted by length together: enough for little padding, few enough to shuffle."""


def epoch_order(
    count: int,
    *,
    seed: int,
    epoch: int,
    batch_size: int = 1,
    lengths: Int[np.ndarray, " count"] | None = None,
) -> Int[np.ndarray, " count"]:
    """Return the samples of an epoch, each once, shuffled.

    With `lengths`, those of like length stand in the same batch, and the batches are shuffled.

    Sorting random words shuffles, and NumPy promises the same words in all its versions, which it
    does not for `permutation`: a run may be resumed after an upgrade.
    """
    words = np.random.SFC64([seed, epoch]).random_raw(count)
    order = np.argsort(words, kind="stable").astype(np.int64)
    if lengths is None:
        return order
    bucket = BUCKET_BATCHES * batch_size
    pieces = [order[first : first + bucket] for first in range(0, count, bucket)]
    near = np.concatenate(
        [piece[np.argsort(lengths[piece], kind="stable")] for piece in pieces] or [order]
    )
    whole = count // batch_size
    turns = np.argsort(words[:whole], kind="stable")
    batches = near[: whole * batch_size].reshape(whole, batch_size)[turns].reshape(-1)
    return np.concatenate([batches, near[whole * batch_size :]])


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
    count: int,
    *,
    batch_size: int,
    rank: int = 0,
    ranks: int = 1,
    lengths: Int[np.ndarray, " count"] | None = None,
) -> Iterator[Places]:
    """Yield one rank's batches of all samples; batches go round the ranks.

    They stand in their own order, or with `lengths` the longest first, so that memory that is short
    shows at once. Edges of batches depend on nothing else, so that a sum over all is the same on
    any number of ranks.
    """
    order = np.arange(count) if lengths is None else np.argsort(-lengths, kind="stable")
    for first in range(rank * batch_size, count, ranks * batch_size):
        indices = order[first : first + batch_size].astype(np.int64)
        yield Places(seed=0, epoch=0, first=first, indices=indices)
