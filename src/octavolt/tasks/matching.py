"""Which found boxes go with which true ones, and how precise they are: COCO's rules and VOC's.

All pictures are matched at once. Only what overlaps by half or more is looked at: below that no
rule lets two boxes go together.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int64
from numpy.typing import NDArray

THRESHOLDS = np.linspace(0.5, 0.95, 10)
"""COCO's, of intersection over union."""
RECALLS = np.linspace(0, 1, 101)
"""COCO's, at which it takes the precision."""
SIZES = ("all", "small", "medium", "large")
SIZE_ENDS = np.array([(0, 1e10), (0, 32**2), (32**2, 96**2), (96**2, 1e10)], np.float64)
"""COCO's ranges of areas in square pixels; both ends belong to a range."""
MOST = 100
"""Boxes of a picture and class that COCO looks at: the surest."""
MOST_PAIRS = 100_000
"""Boxes beside boxes whose overlap is computed at once: some 20 MB."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was found of one class, picture by picture; of each the surest first."""

    groups: Int64[np.ndarray, " found"]
    """The picture of each, or whatever else two boxes must share to go together; ascending."""
    scores: Float64[np.ndarray, " found"]
    corners: Float64[np.ndarray, "found 4"]

    def places(self) -> Int64[np.ndarray, " found"]:
        """Return how many of the same picture are surer than each."""
        return np.arange(len(self.groups)) - np.searchsorted(self.groups, self.groups)

    def surest(self, most: int) -> "Found":
        """Return the surest of each picture."""
        kept = self.places() < most
        return Found(groups=self.groups[kept], scores=self.scores[kept], corners=self.corners[kept])


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """The true boxes of one class, picture by picture."""

    groups: Int64[np.ndarray, " true"]
    corners: Float64[np.ndarray, "true 4"]
    crowd: Bool[np.ndarray, " true"]
    difficult: Bool[np.ndarray, " true"]
    areas: Float64[np.ndarray, " true"]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Boxes of one picture that overlap by half or more, by the found one and then by overlap."""

    found: Int64[np.ndarray, " pairs"]
    true: Int64[np.ndarray, " pairs"]
    overlaps: Float64[np.ndarray, " pairs"]


def paired(found: Found, true: Annotated, *, of_crowds: bool) -> Pairs:
    """Return all pairs; with `of_crowds`, a crowd's overlap is the share of the found box in it."""
    first = np.searchsorted(true.groups, found.groups, side="left")
    counts = np.searchsorted(true.groups, found.groups, side="right") - first
    parts = np.cumsum(counts) // MOST_PAIRS
    edges = np.flatnonzero(np.diff(parts)) + 1
    kept: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for rows in np.split(np.arange(len(counts)), edges):
        ends = np.cumsum(counts[rows])
        ones = np.repeat(rows, counts[rows])
        others = np.arange(len(ones)) + np.repeat(first[rows] - ends + counts[rows], counts[rows])
        crowd = true.crowd[others] if of_crowds else np.zeros(len(others), np.bool_)
        overlaps = overlap(found.corners[ones], true.corners[others], crowd)
        enough = overlaps >= THRESHOLDS[0]
        kept.append((ones[enough], others[enough], overlaps[enough]))
    ones, others, overlaps = (np.concatenate(column) for column in zip(*kept, strict=True))
    order = np.lexsort((others, overlaps, ones))
    return Pairs(found=ones[order], true=others[order], overlaps=overlaps[order])


def overlap(
    ones: Float64[np.ndarray, "pairs 4"],
    others: Float64[np.ndarray, "pairs 4"],
    crowd: Bool[np.ndarray, " pairs"],
) -> Float64[np.ndarray, " pairs"]:
    """Return intersection over union, with a crowd over the area of the first box alone.

    Rounded as by pycocotools, which has widths instead of right edges: at round numbers of pixels
    an overlap may be just a threshold.
    """
    size, other_size = ones[:, 2:] - ones[:, :2], others[:, 2:] - others[:, :2]
    last = np.minimum(ones[:, :2] + size, others[:, :2] + other_size)
    sides = np.maximum(last - np.maximum(ones[:, :2], others[:, :2]), 0)
    shared, area, other_area = (pair[:, 0] * pair[:, 1] for pair in (sides, size, other_size))
    union = np.where(crowd, area, area + other_area - shared)
    return np.asarray(shared / np.maximum(union, np.finfo(np.float64).tiny))


def outside(areas: Float64[np.ndarray, " boxes"]) -> Bool[np.ndarray, "boxes sizes"]:
    """Return of which sizes each box is not."""
    return (areas[:, None] < SIZE_ENDS[:, 0]) | (areas[:, None] > SIZE_ENDS[:, 1])


def coco_hits(found: Found, true: Annotated) -> Int8[np.ndarray, "sizes thresholds found"]:
    """Return 1 for each box that finds one, -1 for each that doesn't, 0 for what doesn't count.

    The rules of COCO's evaluation: the surest box goes first and takes the true one that it
    overlaps most among those still free. One that doesn't count, being of another size or around a
    crowd, is taken only where none is that does; a crowd may be taken again and again. A box that
    takes one that doesn't count, or takes none and is of another size, doesn't count either.
    """
    size = found.corners[:, 2:] - found.corners[:, :2]
    areas = size[:, 0] * size[:, 1]
    hits = np.where(outside(areas), 0, -1).astype(np.int8)[:, :, None].repeat(len(THRESHOLDS), 2)
    idle = outside(true.areas) | true.crowd[:, None]
    taken = np.zeros((len(true.areas), len(SIZES), len(THRESHOLDS)), np.bool_)
    pairs = paired(found, true, of_crowds=True)
    for rows in rounds(found, pairs):
        ones, others = pairs.found[rows], pairs.true[rows]
        fits = pairs.overlaps[rows, None, None] >= THRESHOLDS
        free = fits & (true.crowd[others, None, None] | ~taken[others])
        # The last that is free has the most overlap; those that count come after all others.
        place = np.arange(len(rows))[:, None, None] + len(rows) * ~idle[others, :, None]
        starts = np.flatnonzero(np.diff(ones, prepend=-1))
        best = np.maximum.reduceat(np.where(free, place, -1), starts, axis=0)
        own = ones[starts]
        hits[own] = np.where(best < 0, hits[own], (best >= len(rows)).astype(np.int8))
        which, sizes, thresholds = np.nonzero(best >= 0)
        taken[others[best[which, sizes, thresholds] % len(rows)], sizes, thresholds] = True
    return np.ascontiguousarray(hits.transpose(1, 2, 0))


def rounds(found: Found, pairs: Pairs) -> list[Int64[np.ndarray, " pairs"]]:
    """Return the pairs of the surest box of each picture, then those of the next, and so on."""
    if not len(pairs.found):
        return []
    ones, inverse = np.unique(pairs.found, return_inverse=True)
    groups = found.groups[ones]
    turn = (np.arange(len(ones)) - np.searchsorted(groups, groups))[inverse]
    order = np.argsort(turn, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(turn[order])) + 1)


def voc_hits(found: Found, true: Annotated) -> Int8[np.ndarray, " found"]:
    """Return 1 for each box that finds one, -1 for each that doesn't, 0 for what doesn't count.

    Everingham et al. 2010, section 4.4: a box belongs to the true one that it overlaps most, if by
    half or more. The surest of those that belong to one finds it, the others are false; those that
    belong to one that is difficult, or around a crowd, don't count.
    """
    hits = np.full(len(found.scores), -1, np.int8)
    pairs = paired(found, true, of_crowds=False)
    order = np.lexsort((pairs.true, -pairs.overlaps, pairs.found))
    best = order[np.unique(pairs.found[order], return_index=True)[1]]
    owners, belongs = pairs.found[best], pairs.true[best]
    # Within a picture the surest stands first.
    hits[owners[np.unique(belongs, return_index=True)[1]]] = 1
    hits[owners[(true.crowd | true.difficult)[belongs]]] = 0
    return hits


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How precise boxes are, from the surest on, at each recall that is reached."""

    recalls: Float64[np.ndarray, " found"]
    precisions: Float64[np.ndarray, " found"]
    """The highest at that recall or any above it."""

    def at_recalls(self) -> Float64[np.ndarray, " recalls"]:
        """Return the precision at COCO's recalls: 0 where one isn't reached."""
        places = np.searchsorted(self.recalls, RECALLS, side="left")
        return np.append(self.precisions, 0.0)[places]

    def area(self) -> float:
        """Return the area below the curve."""
        return float((np.diff(self.recalls, prepend=0.0) * self.precisions).sum())


def curve(hits: Int8[np.ndarray, " found"], count: int) -> Curve:
    """Return the curve of boxes, the surest first, where there are `count` to be found."""
    right, wrong = np.cumsum(hits == 1), np.cumsum(hits == -1)
    precisions = right / np.maximum(right + wrong, 1)
    return Curve(recalls=right / count, precisions=np.maximum.accumulate(precisions[::-1])[::-1])
