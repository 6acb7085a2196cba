"""Classes and splits, by the same rules for every format."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from octavolt.contract import Fault, Samples
from octavolt.units import counted, format_count

SPLITS = ("train", "val", "test")
TRAIN, VAL, TEST = range(3)
USUAL_NAMES = {
    "train": TRAIN,
    "training": TRAIN,
    "trn": TRAIN,
    "val": VAL,
    "valid": VAL,
    "validation": VAL,
    "validate": VAL,
    "dev": VAL,
    "test": TEST,
    "testing": TEST,
    "tst": TEST,
}
HELD_OUT_FRACTION = 0.1

Build = Callable[[Int64[np.ndarray, " samples"], Int64[np.ndarray, " samples"]], Samples]
"""Rows of what the format found, and their labels, to samples."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """All that a format found, before it is divided."""

    build: Build
    names: Sequence[str]
    """Of all classes of all splits, in the order that they shall have."""
    labels: Int64[np.ndarray, " found"]
    """Indices into `names`."""
    split_of: Int64[np.ndarray, " found"]
    """Indices into `SPLITS`; all are of `TRAIN` if nothing divides them."""
    sample: str = "picture"
    """What people call one, in the singular."""


@dataclass(frozen=True, kw_only=True)
class Division:
    """Classes and splits, with what is wrong with them and what was decided."""

    classes: tuple[str, ...]
    splits: Mapping[str, Samples]
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def split_index(name: str) -> int | None:
    """Return which split a person calls so, or None."""
    return USUAL_NAMES.get(name.strip().lower())


def naturally(names: Iterable[str]) -> list[str]:
    """Return the names sorted as a person would: 'day 2' before 'day 10'."""
    return sorted(names, key=natural_key)


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return what sorts the name; digits sort before letters, by value."""
    # Digits are compared by count, then one by one, since int() refuses very long ones.
    digits = [part.lstrip("0") for part in re.findall(r"[0-9]+", name)]
    parts = re.split(r"[0-9]+", name.casefold())
    key: list[tuple[int, int, str]] = []
    for place, part in enumerate(parts):
        if part:
            key.append((1, 0, part))
        if place < len(digits):
            key.append((0, len(digits[place]), digits[place]))
    return key, name


def divided(found: Found, *, seed: int) -> Division:
    """Return classes and splits; those that are missing are taken from the training samples."""
    counts = np.bincount(found.labels[found.split_of == TRAIN], minlength=len(found.names))
    labels = np.where(counts > 0, np.cumsum(counts > 0) - 1, -1)[found.labels]
    classes = tuple(name for name, count in zip(found.names, counts, strict=True) if count > 0)
    given = {SPLITS[index] for index in set(found.split_of[labels >= 0].tolist())}
    split_of, faults, notes = completed(found, labels, classes, given, seed)
    splits = {}
    for index, split in enumerate(SPLITS):
        rows = np.flatnonzero((split_of == index) & (labels >= 0))
        if len(rows) > 0:
            splits[split] = found.build(rows, labels[rows])
    faults += [*too_few(classes), *strangers(found, labels < 0)]
    for split in given - {"train"}:
        faults += absent(classes, split, splits[split].labels, found.sample)
    return Division(classes=classes, splits=splits, faults=tuple(faults), notes=tuple(notes))


def completed(
    found: Found,
    labels: Int64[np.ndarray, " found"],
    classes: Sequence[str],
    given: Set[str],
    seed: int,
) -> tuple[Int64[np.ndarray, " found"], list[Fault], list[str]]:
    """Return the split of each sample, the classes that are small, and what was decided."""
    if "val" in given:
        notes = [] if "test" in given else ["There is no test split: evaluation uses val."]
        return found.split_of, lone(found, classes, labels[found.split_of == TRAIN]), notes
    wanted = (VAL,) if "test" in given else (VAL, TEST)
    split_of, small = drawn(found, labels, wanted, seed)
    faults = [
        too_small(found.sample, classes[label], count, len(wanted) + 1) for label, count in small
    ]
    sizes = np.bincount(split_of[labels >= 0], minlength=3).tolist()
    what = ", ".join(f"{format_count(sizes[index])} {SPLITS[index]}" for index in range(3))
    taken = "val was taken from train" if "test" in given else "Split by octavolt"
    return split_of, faults, [f"{taken}: {what} (seed {seed}, stratified)."]


def drawn(
    found: Found, labels: Int64[np.ndarray, " found"], wanted: Sequence[int], seed: int
) -> tuple[Int64[np.ndarray, " found"], list[tuple[int, int]]]:
    """Return the splits with a tenth of each class moved to each of `wanted`, and what is small.

    A sample's turn follows from the seed and its name alone: neither the order of listing nor the
    version of a library matters, and a new sample moves few others.
    """
    split_of = found.split_of.copy()
    rows = np.flatnonzero((split_of == TRAIN) & (labels >= 0))
    samples = found.build(rows, labels[rows])
    turns = hashes(map(samples.name, range(len(samples))), seed)
    order = rows[np.lexsort((turns, labels[rows]))]
    edges = np.flatnonzero(np.diff(labels[order])) + 1
    small = []
    for members in np.split(order, edges):
        if 0 < len(members) <= len(wanted):
            small.append((int(labels[members[0]]), len(members)))
            continue
        share = max(1, int(len(members) * HELD_OUT_FRACTION + 0.5))
        for place, split in enumerate(wanted):
            split_of[members[place * share : (place + 1) * share]] = split
    return split_of, small


def hashes(names: Iterable[str], seed: int) -> UInt64[np.ndarray, " names"]:
    """Return a hash of seed and name for each name."""
    salt = f"octavolt split {seed}:".encode()
    digests = (blake2b(salt + name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def held_out(
    names: Sequence[str], *, wanted: Sequence[int], seed: int
) -> Int64[np.ndarray, " names"]:
    """Return the split of each name: a tenth, at least one, in each of `wanted`; else `TRAIN`.

    Names that are equal stay together, and the turn of each follows from the seed and itself.
    """
    kinds, of = np.unique(np.array(names, object), return_inverse=True)
    order = np.argsort(hashes(kinds, seed), kind="stable")
    share = max(1, int(len(kinds) * HELD_OUT_FRACTION + 0.5))
    split_of = np.full(len(kinds), TRAIN, np.int64)
    for place, split in enumerate(wanted):
        split_of[order[place * share : (place + 1) * share]] = split
    return split_of[of]


def too_few(classes: Sequence[str]) -> list[Fault]:
    """Return the fault of a data set with nothing to tell apart."""
    if len(classes) >= 2:
        return []
    names = f" ('{classes[0]}')" if classes else ""
    count = counted(len(classes), "class", "classes")
    problem = f"{count}{names}; at least 2 are needed"
    return [Fault(kind="too-few-classes", file="train", problem=problem)]


def too_small(sample: str, name: str, count: int, needed: int) -> Fault:
    """Return the fault of a class that can't be divided."""
    own = "folders" if sample == "picture" else "splits"
    return Fault(
        kind="class-too-small",
        file="train",
        problem=(
            f"class '{name}' has {counted(count, sample)}; it needs at least {needed} to be "
            f"split: add {sample}s, or give val and test {own} of your own"
        ),
    )


def lone(
    found: Found, classes: Sequence[str], labels: Int64[np.ndarray, " samples"]
) -> list[Fault]:
    """Return a warning for each class of a single training sample."""
    counts = np.bincount(labels[labels >= 0], minlength=len(classes)).tolist()
    return [
        Fault(
            kind="class-of-one",
            file="train",
            problem=f"class '{name}' has only 1 {found.sample} in train",
            stops=False,
        )
        for name, count in zip(classes, counts, strict=True)
        if count == 1
    ]


def absent(
    classes: Sequence[str], split: str, labels: Int64[np.ndarray, " samples"], sample: str
) -> list[Fault]:
    """Return a warning for each class without a sample in the split."""
    counts = np.bincount(labels, minlength=len(classes)).tolist()
    return [
        Fault(
            kind="class-missing",
            file=split,
            problem=f"class '{name}' has no {sample} in {split}",
            stops=False,
        )
        for name, count in zip(classes, counts, strict=True)
        if count == 0
    ]


def strangers(found: Found, unknown: Bool[np.ndarray, " found"]) -> list[Fault]:
    """Return a warning for each class of val or test that train lacks: it is left out."""
    pairs = found.split_of[unknown] * len(found.names) + found.labels[unknown]
    values, counts = np.unique(pairs, return_counts=True)
    faults = []
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        split, label = divmod(value, len(found.names))
        left_out = counted(count, f"{found.sample} is", f"{found.sample}s are")
        problem = f"class '{found.names[label]}' is not in train; its {left_out} left out"
        faults.append(Fault(kind="class-unknown", file=SPLITS[split], problem=problem, stops=False))
    return faults
