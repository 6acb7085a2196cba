"""Reads every picture once and finds all that is wrong with a data set, before a GPU is touched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, Shaped, UInt64

from octavolt.contract import DataSet, Fault, Pictures
from octavolt.data.damage import MOST_PIXELS, full_decode
from octavolt.data.examine import Decode, Progress, findings_of, silent
from octavolt.data.pictures import Stamped
from octavolt.data.remembered import FINDING, Problem, memory_file, places_of, recall, remember
from octavolt.data.splits import natural_key
from octavolt.data.twins import NO_DIGEST, twin_faults

KINDS: dict[str, str] = {
    "too-few-classes": "fewer than 2 classes have training samples",
    "class-too-small": "a class has too few samples to be divided into train, val and test",
    "label-out-of-range": "a label is no number of a class",
    "wrong-row": "a row of a table can't be used",
    "empty-text": "a text is empty",
    "not-text": "a file is no text in an encoding that is read",
    "wrong-question": "a question lacks something, or its id stands twice",
    "wrong-answer": "an answer does not stand in its context where it is said to",
    "wrong-conversation": "a conversation is not one of user and assistant in turn",
    "no-boxes": "no picture to train on has a box",
    "no-training-split": "there is no training split",
    "wrong-annotation": "an annotation can't be used as it stands",
    "unknown-category": "a box is of a category that no list names",
    "box-outside": "a box lies outside of its picture",
    "size-differs": "an annotation states another size than its picture has",
    "missing-file": "a file that is named does not exist or is no ordinary file",
    "unreadable": "a file or folder can't be read",
    "zero-byte": "a file is empty",
    "not-a-picture": "a file is of no kind of picture that can be decoded",
    "truncated": "the end of a picture is missing",
    "corrupt": "a picture is damaged inside",
    "too-many-pixels": f"a picture has more than {MOST_PIXELS:,} pixels and is refused",
    "in-two-splits": "the same sample is in two splits, so figures on it mislead",
    "label-conflict": "the same sample stands twice in a split, with different labels",
    "class-unknown": "val or test has a class that train lacks",
    "class-missing": "val or test lacks a class that train has",
    "class-of-one": "a class has a single training sample",
    "empty-class": "a folder for a class holds no samples",
    "box-clipped": "a box reaches out of its picture and was clipped",
    "box-without-area": "a box has no area and was left out",
    "swapped-corners": "the corners of a box stand in the wrong order and were put right",
    "duplicate-box": "a box stands twice",
    "duplicate-picture": "a picture stands twice in an annotation",
    "other-ending": "a picture is called otherwise than its annotation says",
    "no-annotation": "a picture has no annotation",
    "loop": "a link leads back to a folder that was read already",
}
"""Every kind of fault and what it means, the worst first."""
UNREAD = -1
"""In place of the bytes of a picture that is not read yet."""


@dataclass(frozen=True, kw_only=True)
class CheckedSplit:
    """What was found on each picture of a split, in its order; zeros where it can't be read."""

    digests: UInt64[np.ndarray, " pictures"]
    """BLAKE2b of the bytes or pixels."""
    sizes_bytes: Int64[np.ndarray, " pictures"]
    heights: Int32[np.ndarray, " pictures"]
    widths: Int32[np.ndarray, " pictures"]
    good: Bool[np.ndarray, " pictures"]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """All that a check found."""

    faults: tuple[Fault, ...]
    """Sorted: what stops training first, then by kind, file and line."""
    splits: Mapping[str, CheckedSplit]
    white_level: int
    """255, or the smallest usual level of white that holds the deepest picture."""
    read_count: int
    """How many pictures were read; the rest were known from an earlier check."""

    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""
        return {
            "pictures": sum(len(split.good) for split in self.splits.values()),
            "pictures_read": self.read_count,
            "white_level": self.white_level,
            "splits": {name: summary(split) for name, split in self.splits.items()},
            "faults": [asdict(fault) for fault in self.faults],
        }


def summary(split: CheckedSplit) -> dict[str, Any]:
    """Return the figures of a split, ready for JSON."""
    good = split.good
    sides = np.minimum(split.heights, split.widths)[good]
    return {
        "pictures": len(good),
        "good": int(good.sum()),
        "bytes": int(split.sizes_bytes.sum()),
        "shortest_side_pixels": int(sides.min(initial=0 if len(sides) == 0 else sides[0])),
        "longest_side_pixels": int(np.maximum(split.heights, split.widths).max(initial=0)),
    }


def check(
    data: DataSet,
    *,
    threads: int,
    progress: Progress = silent,
    decode: Decode = full_decode,
    cache_folder: Path | None = None,
) -> Checked:
    """Return all faults of the data set, and what later steps want to know of each picture.

    What is found is kept in `cache_folder`, by default the user's, and read instead of the pictures
    whose files have kept name, size and times.
    """
    file = memory_file(data, cache_folder)
    known, problems = recall(file)
    tables = {split: started(pictures, known) for split, pictures in data.splits.items()}
    todo = {split: np.flatnonzero(table["bytes"] == UNREAD) for split, table in tables.items()}
    read_count = sum(map(len, todo.values()))
    for split, row, finding, problem in findings_of(data.splits, todo, threads, progress, decode):
        if problem is not None:
            problems.append(problem)
        place = len(problems) if problem is not None else 0
        tables[split][row] = (tables[split]["stamp"][row], *finding, place)
    if read_count:
        remember(file, list(tables.values()), problems)
    faults = [
        *data.faults,
        *(fault for split in tables for fault in damage(data, split, tables[split], problems)),
        *(fault for split in tables for fault in wrong_labels(data, split)),
        *twin_faults(
            data,
            {
                split: np.where(table["problem"] == 0, table["digest"], NO_DIGEST)
                for split, table in tables.items()
            },
        ),
    ]
    return Checked(
        faults=tuple(sorted(faults, key=weight)),
        splits={split: columns(table) for split, table in tables.items()},
        white_level=max((int(table["white"].max()) for table in tables.values()), default=255),
        read_count=read_count,
    )


def started(
    pictures: Pictures, known: Shaped[np.ndarray, " findings"]
) -> Shaped[np.ndarray, " pictures"]:
    """Return the findings on the pictures, `UNREAD` where nothing is known."""
    table = np.zeros(len(pictures), FINDING)
    table["bytes"] = UNREAD
    if isinstance(pictures, Stamped):
        table["stamp"] = pictures.stamps()
        places = places_of(table["stamp"], known)
        table[places >= 0] = known[places[places >= 0]]
    return table


def damage(
    data: DataSet,
    split: str,
    table: Shaped[np.ndarray, " pictures"],
    problems: Sequence[Problem],
) -> Iterator[Fault]:
    """Yield a fault for each picture that can't be used."""
    for row in np.flatnonzero(table["problem"]).tolist():
        kind, problem = problems[table["problem"][row] - 1]
        name = data.splits[split].name(row)
        yield Fault(kind=kind, file=name, problem=problem, damaged=True)


def wrong_labels(data: DataSet, split: str) -> Iterator[Fault]:
    """Yield a fault for each label that is no index of a class."""
    labels = data.splits[split].labels
    for row in np.flatnonzero((labels < 0) | (labels >= len(data.classes))).tolist():
        problem = f"the label {labels[row]} is outside 0 to {len(data.classes) - 1}"
        name = data.splits[split].name(row)
        yield Fault(kind="label-out-of-range", file=name, problem=problem, damaged=True)


def columns(table: Shaped[np.ndarray, " pictures"]) -> CheckedSplit:
    """Return the columns of the findings by their names."""
    return CheckedSplit(
        digests=table["digest"].astype(np.uint64),
        sizes_bytes=table["bytes"].astype(np.int64),
        heights=table["height"].astype(np.int32),
        widths=table["width"].astype(np.int32),
        good=table["problem"] == 0,
    )


def weight(fault: Fault) -> tuple[bool, int, Any, int, str]:
    """Return what sorts the faults: those that stop training, then by kind, file and line."""
    place = list(KINDS).index(fault.kind)
    return not fault.stops, place, natural_key(fault.file), fault.line or 0, fault.problem


def without_damaged(data: DataSet, checked: Checked) -> DataSet:
    """Return the data set without damaged pictures and rows; their faults go with them.

    A class that loses its last training picture is a fault that stops training.
    """
    splits = {
        split: pictures.select(np.flatnonzero(usable(data, checked, split)))
        for split, pictures in data.splits.items()
    }
    filled = {split: pictures for split, pictures in splits.items() if len(pictures) > 0}
    counts = np.bincount(
        filled["train"].labels if "train" in filled else [], minlength=len(data.classes)
    )
    emptied = [
        Fault(
            kind="class-missing",
            file="train",
            problem=f"class '{name}' has no picture in train that can be read",
        )
        for name, count in zip(data.classes, counts.tolist(), strict=True)
        if count == 0
    ]
    kept = [fault for fault in data.faults if not fault.damaged]
    return replace(data, splits=filled, faults=(*kept, *emptied))


def findings_without_damaged(data: DataSet, checked: Checked) -> Checked:
    """Return the findings in the order of `without_damaged`."""
    splits = {}
    for split, found in checked.splits.items():
        keep = usable(data, checked, split)
        splits[split] = CheckedSplit(
            digests=found.digests[keep],
            sizes_bytes=found.sizes_bytes[keep],
            heights=found.heights[keep],
            widths=found.widths[keep],
            good=found.good[keep],
        )
    faults = tuple(fault for fault in checked.faults if not fault.damaged)
    filled = {split: found for split, found in splits.items() if len(found.good) > 0}
    return replace(checked, splits=filled, faults=faults)


def usable(data: DataSet, checked: Checked, split: str) -> Bool[np.ndarray, " pictures"]:
    """Return which pictures can be read and have a label in range."""
    labels = data.splits[split].labels
    in_range: Bool[np.ndarray, " pictures"] = (labels >= 0) & (labels < len(data.classes))
    good: Bool[np.ndarray, " pictures"] = checked.splits[split].good & in_range
    return good
