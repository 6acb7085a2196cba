"""The same picture more than once, by its content."""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import UInt64

from octavolt.contract import DataSet, Fault
from octavolt.data.splits import SPLITS
from octavolt.units import counted

NO_DIGEST = np.uint64(0)
"""Of what is no picture, and so no twin."""

Place = tuple[str, int]
"""A split and a row."""


def twin_faults(
    data: DataSet, digests: Mapping[str, UInt64[np.ndarray, " _"]], sample: str = "picture"
) -> Iterator[Fault]:
    """Yield a warning for each sample in two splits, or in one with two labels."""
    for places in groups(digests):
        splits = {split for split, _ in places}
        if len(splits) > 1:
            first = places[0]
            other = next(place for place in places if place[0] != first[0])
            yield twin("in-two-splits", data, other, first, len(places), sample=sample)
        for split in sorted(splits):
            own = [place for place in places if place[0] == split]
            different = [place for place in own if label(data, place) != label(data, own[0])]
            if different:
                yield twin("label-conflict", data, different[0], own[0], len(own), sample=sample)


def groups(digests: Mapping[str, UInt64[np.ndarray, " _"]]) -> Iterator[list[Place]]:
    """Yield the places of each picture that stands more than once, train first."""
    splits = sorted(digests, key=SPLITS.index)
    everything = np.concatenate([digests[split] for split in splits])
    starts = np.cumsum([0, *(len(digests[split]) for split in splits)])
    order = np.argsort(everything, kind="stable")
    edges = np.flatnonzero(np.diff(everything[order])) + 1
    firsts, ends = np.r_[0, edges], np.r_[edges, len(order)]
    for group in np.flatnonzero(ends - firsts > 1):
        members = order[firsts[group] : ends[group]]
        if everything[members[0]] == NO_DIGEST:
            continue
        split_of = np.searchsorted(starts, members, side="right") - 1
        yield [
            (splits[split], int(member - starts[split]))
            for split, member in zip(split_of.tolist(), members.tolist(), strict=True)
        ]


def label(data: DataSet, place: Place) -> str:
    """Return the name of the class that the picture is labelled with."""
    split, row = place
    value = int(data.splits[split].labels[row])
    return data.classes[value] if 0 <= value < len(data.classes) else str(value)


def twin(kind: str, data: DataSet, one: Place, other: Place, count: int, *, sample: str) -> Fault:
    """Return the warning that names both, and how many there are if more."""
    names = [shown(data, place, sample) for place in (one, other)]
    labels = [label(data, place) for place in (one, other)]
    differs = f"; labelled '{labels[0]}' here and '{labels[1]}' there" * (labels[0] != labels[1])
    more = f"; {counted(count, f'{sample} is', f'{sample}s are')} the same in all" * (count > 2)
    return Fault(
        kind=kind,
        file=data.splits[one[0]].name(one[1]),
        problem=f"{names[0]} is the same {sample} as {names[1]}{differs}{more}",
        stops=False,
    )


def shown(data: DataSet, place: Place, sample: str) -> str:
    """Return the split and the name of a sample."""
    split, row = place
    return f"{split} {sample} '{data.splits[split].name(row)}'"
