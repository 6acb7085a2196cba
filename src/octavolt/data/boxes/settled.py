"""What all formats have in common once they have read: boxes are checked, pictures divided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.gathered import Gathered, Rows
from octavolt.data.boxes.samples import Annotated, BoxedPictures, Boxes
from octavolt.data.pictures import Stamped, name_at, readable
from octavolt.data.splits import SPLITS, TEST, TRAIN, VAL, held_out
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_count

ROUNDING_PIXELS = 1.0
"""So far out a box may reach unsaid: tools count pixels from 0 or 1, and round either way."""
MOST_NAMED = 5

Build = Callable[[Int64[np.ndarray, " pictures"], Int64[np.ndarray, " pictures"]], Stamped]
"""Rows of what was gathered, and zeros, to pictures."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a data set is called."""

    source: str
    format: str
    root: Path | None
    mirrorable: bool = True


def settled(
    gathered: Gathered,
    origin: Origin,
    *,
    build: Build,
    seed: int,
) -> DataSet:
    """Return the data set of what was gathered. Raises `OctavoltError` if no box can be used.

    The sizes must be known by now. A picture of which a box can't be used is left out, and its
    fault says so; a box that can be put right is, and a warning tells it.
    """
    rows = gathered.rows()
    rows, keep = checked_boxes(gathered, rows)
    classes, rows, keep = settled_classes(gathered, rows, keep)
    good = ~rows.damaged
    if not (keep & good[rows.picture_of]).any():
        raise OctavoltError(no_boxes(gathered, origin, len(rows.damaged)))
    split_of, faults, notes = divided_rows(rows, good, seed)
    boxes = sorted_boxes(rows, keep)
    splits = {}
    for index, split in enumerate(SPLITS):
        own = np.flatnonzero(good & (split_of == index))
        if len(own) > 0:
            pictures = build(own, np.zeros(len(own), np.int64))
            splits[split] = BoxedPictures(
                pictures,
                rows.sizes[own],
                boxes.select(own),
                Annotated(
                    files=tuple(gathered.sources),
                    file_of=rows.source_of[own],
                    lines=rows.picture_lines[own],
                ),
            )
    if not gathered.declared:
        faults += strangers(classes, splits)
    faults += untrainable(splits)
    return DataSet(
        source=origin.source,
        format=origin.format,
        classes=classes,
        splits=splits,
        faults=(*gathered.faults.all(), *faults),
        notes=(*gathered.notes, *notes, *figures(classes, splits, gathered.declared)),
        mirrorable=origin.mirrorable,
        root=origin.root,
    )


def checked_boxes(gathered: Gathered, rows: Rows) -> tuple[Rows, Bool[np.ndarray, " boxes"]]:
    """Return the boxes put right, and which to keep; add what was wrong with them."""
    corners = rows.corners.copy()
    damaged = rows.damaged.copy()
    keep = np.ones(len(corners), bool)
    whole = np.isfinite(corners).all(axis=1)
    for box in np.flatnonzero(~whole).tolist():
        blame(gathered, rows, damaged, box, f"{shown(corners[box])} is no box: not all are numbers")
    keep &= whole
    swapped = whole & (corners[:, 2:] < corners[:, :2]).any(axis=1)
    corners[swapped] = np.concatenate(
        [
            np.minimum(corners[swapped, :2], corners[swapped, 2:]),
            np.maximum(corners[swapped, :2], corners[swapped, 2:]),
        ],
        axis=1,
    )
    for box in np.flatnonzero(swapped).tolist():
        problem = f"the corners {shown(rows.corners[box])} stand in the wrong order; put right"
        tell(gathered, rows, box, "swapped-corners", problem)
    flat = keep & (corners[:, 2:] <= corners[:, :2]).any(axis=1)
    for box in np.flatnonzero(flat).tolist():
        problem = f"the box {shown(corners[box])} has no area; left out"
        tell(gathered, rows, box, "box-without-area", problem)
    keep &= ~flat
    keep &= inside(gathered, rows, corners, keep, damaged)
    rows = replace(rows, corners=corners, damaged=damaged)
    return rows, keep & ~duplicates(gathered, rows, keep)


def inside(
    gathered: Gathered,
    rows: Rows,
    corners: Float64[np.ndarray, "boxes 4"],
    keep: Bool[np.ndarray, " boxes"],
    damaged: Bool[np.ndarray, " pictures"],
) -> Bool[np.ndarray, " boxes"]:
    """Clip the boxes to their pictures, and return which have a part inside."""
    sizes = rows.sizes[rows.picture_of]
    known = keep & (sizes > 0).all(axis=1)
    most = np.stack([sizes[:, 1], sizes[:, 0]] * 2, axis=1).astype(np.float64)
    clipped = np.clip(corners, 0, most)
    outside = known & (clipped[:, 2:] <= clipped[:, :2]).any(axis=1)
    for box in np.flatnonzero(outside).tolist():
        height, width = sizes[box].tolist()
        problem = (
            f"the box {shown(corners[box])} lies outside of its picture of {width} x {height} "
            "pixels"
        )
        blame(gathered, rows, damaged, box, problem, kind="box-outside")
    excess = np.abs(clipped - corners).max(axis=1, initial=0)
    for box in np.flatnonzero(known & ~outside & (excess > ROUNDING_PIXELS)).tolist():
        height, width = sizes[box].tolist()
        problem = (
            f"the box {shown(corners[box])} reaches {excess[box]:.6g} pixels out of its picture of "
            f"{width} x {height}; clipped"
        )
        tell(gathered, rows, box, "box-clipped", problem)
    corners[known] = clipped[known]
    within: Bool[np.ndarray, " boxes"] = ~outside
    return within


def duplicates(
    gathered: Gathered, rows: Rows, keep: Bool[np.ndarray, " boxes"]
) -> Bool[np.ndarray, " boxes"]:
    """Return which boxes repeat an earlier one of the same picture and class."""
    kept = np.flatnonzero(keep)
    repeated = np.zeros(len(keep), bool)
    if len(kept) < 2:
        return repeated
    keys = [*rows.corners[kept].T, rows.crowd[kept], rows.labels[kept], rows.picture_of[kept]]
    order = np.lexsort([kept, *keys])
    same = np.ones(len(kept) - 1, bool)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    repeated[kept[order[1:][same]]] = True
    for box in np.flatnonzero(repeated).tolist():
        problem = f"the box {shown(rows.corners[box])} stands twice; one is left out"
        tell(gathered, rows, box, "duplicate-box", problem)
    return repeated


def settled_classes(
    gathered: Gathered, rows: Rows, keep: Bool[np.ndarray, " boxes"]
) -> tuple[tuple[str, ...], Rows, Bool[np.ndarray, " boxes"]]:
    """Return the classes, the labels as indices into them, and which boxes are of one.

    Where the data don't name their classes they are those of train, and boxes of others in val or
    test are left out.
    """
    if gathered.declared:
        return tuple(gathered.classes), rows, keep
    used = keep & ~rows.damaged[rows.picture_of]
    in_train = used & (rows.split_of[rows.picture_of] == TRAIN)
    counts = np.bincount(rows.labels[in_train], minlength=len(gathered.classes))
    if not counts.any():
        return tuple(gathered.classes), rows, keep
    for label in np.flatnonzero(counts == 0).tolist():
        boxes = np.flatnonzero(used & (rows.labels == label))
        if len(boxes) == 0:
            continue
        left_out = counted(len(boxes), "box is", "boxes are")
        problem = f"class '{gathered.classes[label]}' is not in train; its {left_out} left out"
        tell(gathered, rows, int(boxes[0]), "class-unknown", problem)
    names = tuple(
        name for name, count in zip(gathered.classes, counts.tolist(), strict=True) if count > 0
    )
    labels = np.where(counts > 0, np.cumsum(counts > 0) - 1, -1)[rows.labels]
    return names, replace(rows, labels=labels), keep & (labels >= 0)


def place(gathered: Gathered, rows: Rows, box: int) -> tuple[str, int | None, str]:
    """Return file and line of a box, and what else tells which one it is."""
    file = gathered.sources[gathered.source_of[int(rows.picture_of[box])]]
    line, mark = int(rows.lines[box]), int(rows.marks[box])
    name = readable(name_at(rows.names, int(rows.picture_of[box])))
    own = (
        f", annotation id {mark}" if mark >= 0 else f", annotation {-1 - mark}" if mark < -1 else ""
    )
    return file, line or None, f" ('{name}'{own})" if own else ""


def tell(gathered: Gathered, rows: Rows, box: int, kind: str, problem: str) -> None:
    """Add a warning on a box."""
    file, line, which = place(gathered, rows, box)
    gathered.warn(kind, problem + which, file=file, line=line)


def blame(
    gathered: Gathered,
    rows: Rows,
    damaged: Bool[np.ndarray, " pictures"],
    box: int,
    problem: str,
    *,
    kind: str = "wrong-annotation",
) -> None:
    """Add a fault of a box, for which its picture is left out."""
    file, line, which = place(gathered, rows, box)
    gathered.wrong(problem + which, file=file, line=line, kind=kind)
    damaged[rows.picture_of[box]] = True


def shown(corners: Float64[np.ndarray, " 4"]) -> str:
    """Return the corners of a box as people read them."""
    return ", ".join(f"{value:.6g}" for value in corners.tolist())


def sorted_boxes(rows: Rows, keep: Bool[np.ndarray, " boxes"]) -> Boxes:
    """Return the boxes that are kept, picture by picture, each in the order of its annotation."""
    kept = np.flatnonzero(keep)
    kept = kept[np.argsort(rows.picture_of[kept], kind="stable")]
    corners = rows.corners[kept]
    extent = corners[:, 2:] - corners[:, :2]
    areas = rows.areas[kept]
    counts = np.bincount(rows.picture_of[kept], minlength=len(rows.damaged))
    return Boxes(
        ends=np.cumsum(counts).astype(np.int64),
        corners=corners,
        labels=rows.labels[kept],
        crowd=rows.crowd[kept],
        difficult=rows.difficult[kept],
        areas=np.where(np.isfinite(areas) & (areas > 0), areas, extent[:, 0] * extent[:, 1]),
    )


def divided_rows(
    rows: Rows, good: Bool[np.ndarray, " pictures"], seed: int
) -> tuple[Int64[np.ndarray, " pictures"], list[Fault], list[str]]:
    """Return the split of each picture, what is wrong with the splits, and what was decided."""
    split_of = rows.split_of.copy()
    given = set(split_of[good].tolist())
    if TRAIN not in given:
        problem = "there is no training split; the data can only be evaluated on"
        names = ", ".join(SPLITS[index] for index in sorted(given))
        fault = Fault(kind="no-training-split", file=names, problem=problem)
        return split_of, [fault], []
    if VAL in given:
        notes = [] if TEST in given else ["There is no test split: evaluation uses val."]
        return split_of, [], notes
    wanted = (VAL,) if TEST in given else (VAL, TEST)
    training = np.flatnonzero(good & (split_of == TRAIN))
    if len(training) <= len(wanted):
        problem = (
            f"{counted(len(training), 'picture')}; at least {len(wanted) + 1} are needed to be "
            "split: add pictures, or give val and test splits of your own"
        )
        return split_of, [Fault(kind="class-too-small", file="train", problem=problem)], []
    files = [readable(name_at(rows.names, row)) for row in training.tolist()]
    split_of[training] = held_out(files, wanted=wanted, seed=seed)
    sizes = np.bincount(split_of[good], minlength=3).tolist()
    what = ", ".join(f"{format_count(sizes[index])} {SPLITS[index]}" for index in range(3))
    taken = "val was taken from train" if TEST in given else "Split by octavolt"
    return split_of, [], [f"{taken}: {what} (seed {seed}, by picture)."]


def strangers(classes: Sequence[str], splits: Mapping[str, BoxedPictures]) -> list[Fault]:
    """Return a warning for each class that train lacks once octavolt has taken val from it."""
    counts = {
        split: np.bincount(pictures.boxes.labels, minlength=len(classes))
        for split, pictures in splits.items()
    }
    if "train" not in counts:
        return []
    return [
        Fault(
            kind="class-unknown",
            file=split,
            problem=f"class '{classes[label]}' has no box in train",
            stops=False,
        )
        for split in counts
        for label in np.flatnonzero((counts["train"] == 0) & (counts[split] > 0)).tolist()
    ]


def untrainable(splits: Mapping[str, BoxedPictures]) -> list[Fault]:
    """Return the fault of a training split without a box."""
    if "train" not in splits or not splits["train"].boxes.crowd.all():
        return []
    problem = "no picture of the training split has a box, so there is nothing to learn"
    return [Fault(kind="no-boxes", file="train", problem=problem)]


def figures(
    classes: Sequence[str], splits: Mapping[str, BoxedPictures], declared: bool
) -> list[str]:
    """Return sentences on how many boxes there are, and on what trains nothing."""
    held = [pictures.boxes for pictures in splits.values()]
    count = sum(len(boxes.labels) for boxes in held)
    crowds = sum(int(boxes.crowd.sum()) for boxes in held)
    empty = sum(int((np.diff(boxes.ends, prepend=0) == 0).sum()) for boxes in held)
    notes = [f"{counted(count, 'box', 'boxes')}."]
    if empty:
        notes.append(f"{counted(empty, 'picture has', 'pictures have')} no box: background.")
    if crowds:
        verb = "surrounds" if crowds == 1 else "surround"
        notes.append(
            f"{counted(crowds, 'box', 'boxes')} {verb} a crowd: not trained on, and neither found "
            "nor missed in evaluation."
        )
    if declared and "train" in splits:
        trained = np.bincount(splits["train"].boxes.labels, minlength=len(classes))
        unseen = [classes[label] for label in np.flatnonzero(trained == 0).tolist()]
        if unseen:
            more = f" and {len(unseen) - MOST_NAMED} more" if len(unseen) > MOST_NAMED else ""
            notes.append(
                f"{counted(len(unseen), 'class has', 'classes have')} no box in train: "
                f"{', '.join(unseen[:MOST_NAMED])}{more}."
            )
    return notes


def no_boxes(gathered: Gathered, origin: Origin, picture_count: int) -> str:
    """Return the message for data without a box that can be used."""
    if not gathered.faults.kept:
        return (
            f"'{origin.source}' has {counted(picture_count, 'picture')} and no box. Annotate the "
            "objects in some."
        )
    first = gathered.faults.kept[0]
    line = f", line {first.line}" if first.line else ""
    return (
        f"No box of '{origin.source}' can be used, for "
        f"{counted(sum(gathered.faults.counts.values()), 'fault')}; the first: '{first.file}'"
        f"{line}: {first.problem}."
    )
