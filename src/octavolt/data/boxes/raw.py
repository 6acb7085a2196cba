"""What every format of boxes gives, and how it becomes a data set: one set of rules for all."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.samples import BoxedPictures, Boxes
from octavolt.data.damage import size_of
from octavolt.data.decode import raster
from octavolt.data.pictures import FilePictures, packed
from octavolt.data.splits import SPLITS, TRAIN, held_out, naturally
from octavolt.errors import OctavoltError
from octavolt.units import counted

HEADER_BYTES = 2**16
"""Of a picture's file are read to know its size; all of it where that is not enough."""
EDGE_PIXELS = 1.0
"""What a box may stand out of its picture without a word: annotators round."""
FEWEST_TO_DIVIDE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RawBox:
    """A box as it is annotated."""

    corners: tuple[float, float, float, float]
    """x1, y1, x2, y2 in pixels."""
    label: str
    crowd: bool = False
    difficult: bool = False
    area: float | None = None
    """In square pixels, of the outline; None for that of the box."""
    file: str
    line: int | None = None
    what: str = "the box"
    """What people call it: 'box 3', 'annotation 1773'."""


@dataclass(kw_only=True, slots=True)
class RawPicture:
    """A picture with its boxes as annotated."""

    file: str
    """Relative to the root, as the file system spells it; '/' between folders."""
    boxes: list[RawBox] = field(default_factory=list)
    height: int = 0
    """As annotated; 0 if it isn't."""
    width: int = 0
    stated: str = ""
    """The file that states the size, for messages."""
    split: int = TRAIN


@dataclass(frozen=True, kw_only=True)
class Raw:
    """All that a format found."""

    root: Path
    pictures: Sequence[RawPicture]
    classes: Sequence[str] | None = None
    """In their order; None sorts those that boxes have."""
    faults: Sequence[Fault] = ()
    notes: Sequence[str] = ()


def assembled(source: str, form: str, raw: Raw, *, seed: int) -> DataSet:
    """Return the data set, divided if it isn't; boxes that can't be used are left out, and said."""
    faults = [*raw.faults]
    there, sizes = [], []
    for one in raw.pictures:
        height, width, problem = size_on_disk(raw.root / one.file)
        if problem is not None:
            faults.append(
                Fault(kind="missing-file", file=shown(one.file), problem=problem, damaged=True)
            )
            continue
        if one.height and (one.height, one.width) != (height, width):
            faults.append(
                Fault(
                    kind="size-differs",
                    file=one.stated or shown(one.file),
                    problem=f"says that {shown(one.file)} has {one.width} x {one.height} pixels, "
                    f"but it has {width} x {height}",
                    stops=False,
                )
            )
        there.append(one)
        sizes.append((height, width))
    names = raw.classes or naturally({box.label for one in there for box in one.boxes})
    boxes, more = checked_boxes(there, sizes, names)
    faults += [*more, *unannotated(there), *same_names(there)]
    if not len(boxes.labels):
        faults.append(
            Fault(kind="no-boxes", file=source, problem="holds no box that can be trained with")
        )
    rows = [(os.fsencode(one.file), ()) for one in there]
    files = FilePictures(
        raw.root,
        packed(rows, columns=0)[0],
        np.arange(len(there), dtype=np.int64),
        np.zeros(len(there), np.int64),
    )
    everything = BoxedPictures(files, np.array(sizes, np.int64).reshape(-1, 2), boxes)
    split_of = np.array([one.split for one in there], np.int64)
    split_of, notes = completed(split_of, [shown(one.file) for one in there], seed)
    return DataSet(
        source=source,
        format=form,
        classes=tuple(names),
        splits=divided(everything, split_of),
        faults=tuple(faults),
        notes=(*raw.notes, *notes),
        root=raw.root,
    )


def divided(
    pictures: BoxedPictures, split_of: Int64[np.ndarray, " pictures"]
) -> dict[str, BoxedPictures]:
    """Return the pictures of each split that has any."""
    return {
        name: pictures.select(np.flatnonzero(split_of == place))
        for place, name in enumerate(SPLITS)
        if (split_of == place).any()
    }


def completed(
    split_of: NDArray[np.int64], names: Sequence[str], seed: int
) -> tuple[Int64[np.ndarray, " pictures"], list[str]]:
    """Return the split of each picture, those that are missing drawn, and what was decided."""
    given = set(split_of.tolist())
    if 1 in given or TRAIN not in given:
        return split_of, []
    train = np.flatnonzero(split_of == TRAIN)
    if len(train) < FEWEST_TO_DIVIDE:
        return split_of, []
    wanted = [1] if 2 in given else [1, 2]
    split_of = split_of.copy()
    split_of[train] = held_out([names[row] for row in train.tolist()], wanted=wanted, seed=seed)
    counts = ", ".join(
        f"{int((split_of == place).sum())} {name}" for place, name in enumerate(SPLITS)
    )
    return split_of, [f"Split by octavolt: {counts} (seed {seed})."]


def size_on_disk(path: Path) -> tuple[int, int, str | None]:
    """Return a picture's upright height and width by its header, or why there is none."""
    try:
        with path.open("rb") as file:
            beginning = file.read(HEADER_BYTES)
            try:
                one = raster(beginning) if beginning[:3] == b"\xff\xd8\xff" else None
                if one is not None:
                    return one.height, one.width, None
                return (*size_of(beginning), None)
            except (ValueError, OSError):
                whole = raster(beginning + file.read())
                return whole.height, whole.width, None
    except FileNotFoundError:
        return 0, 0, "is annotated, but there is no such file"
    except OSError as error:
        return 0, 0, error.strerror or str(error)
    except ValueError as error:
        return 0, 0, str(error)


def checked_boxes(
    pictures: Sequence[RawPicture], sizes: Sequence[tuple[int, int]], names: Sequence[str]
) -> tuple[Boxes, list[Fault]]:
    """Return the boxes that can be used, clipped to their pictures, and what is wrong with any."""
    place_of = {name: place for place, name in enumerate(names)}
    faults: list[Fault] = []
    ends, rows = [], []
    for one, (height, width) in zip(pictures, sizes, strict=True):
        known: set[tuple[object, ...]] = set()
        for box in one.boxes:
            fault, corners = looked_at(box, height, width, shown(one.file))
            if fault is not None:
                faults.append(fault)
            if corners is None:
                continue
            if (corners, box.label) in known:
                faults.append(
                    box_fault(box, "box-twice", f"{box.what} on {shown(one.file)} stands twice")
                )
                continue
            known.add((corners, box.label))
            area = (corners[2] - corners[0]) * (corners[3] - corners[1])
            rows.append(
                (
                    *corners,
                    area if box.area is None else box.area,
                    place_of[box.label],
                    box.crowd,
                    box.difficult,
                )
            )
        ends.append(len(rows))
    table = np.array(rows, np.float64).reshape(-1, 8)
    return (
        Boxes(
            ends=np.array(ends, np.int64),
            corners=np.ascontiguousarray(table[:, :4]),
            areas=np.ascontiguousarray(table[:, 4]),
            labels=table[:, 5].astype(np.int64),
            crowd=table[:, 6] > 0,
            difficult=table[:, 7] > 0,
        ),
        faults,
    )


def looked_at(
    box: RawBox, height: int, width: int, picture: str
) -> tuple[Fault | None, tuple[float, float, float, float] | None]:
    """Return what is wrong with a box, and its corners inside the picture if it can be used."""
    left, top, right, bottom = box.corners
    fault = None
    if right < left or bottom < top:
        left, right, top, bottom = (
            min(left, right),
            max(left, right),
            min(top, bottom),
            max(top, bottom),
        )
        fault = box_fault(
            box,
            "corners-swapped",
            f"{box.what} on {picture}: its corners are swapped, and were put right",
        )
    inside = (max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height)))
    if right <= left or bottom <= top:
        size = f"{right - left:g} x {bottom - top:g} pixels"
        return box_fault(
            box, "box-without-area", f"{box.what} on {picture} has no area ({size}) and is left out"
        ), None
    if inside[2] <= inside[0] or inside[3] <= inside[1]:
        return box_fault(
            box,
            "box-outside",
            f"{box.what} lies outside {picture} ({width} x {height} pixels) and is left out",
        ), None
    out = max(
        abs(one - other) for one, other in zip((left, top, right, bottom), inside, strict=True)
    )
    if out > EDGE_PIXELS:
        fault = box_fault(
            box,
            "box-outside",
            f"{box.what} stands {out:g} pixels out of {picture} ({width} x {height} pixels) and "
            "is clipped",
        )
    return fault, inside


def box_fault(box: RawBox, kind: str, problem: str) -> Fault:
    """Return a warning on a box."""
    return Fault(kind=kind, file=box.file, line=box.line, problem=problem, stops=False)


def unannotated(pictures: Sequence[RawPicture]) -> Iterator[Fault]:
    """Yield a warning if pictures have no box: they teach what is nothing, if that is meant."""
    empty = [shown(one.file) for one in pictures if not one.boxes]
    if empty:
        yield Fault(
            kind="picture-unannotated",
            file=empty[0],
            problem=f"has no box{f', and so have {len(empty) - 1:,} more' if empty[1:] else ''}: "
            "trained with as pictures of nothing",
            stops=False,
        )


def same_names(pictures: Sequence[RawPicture]) -> Iterator[Fault]:
    """Yield a warning for pictures that differ only in their ending: they share an annotation."""
    known: dict[str, str] = {}
    for one in pictures:
        stem = os.path.splitext(one.file)[0]  # noqa: PTH122  (a folder may have a dot)
        if stem in known:
            yield Fault(
                kind="same-name",
                file=shown(one.file),
                problem=f"has the name of {shown(known[stem])}, but for the ending",
                stops=False,
            )
        known[stem] = one.file


def number(text: str, file: str, line: int | None, what: str) -> float:
    """Return a number; raise with the place if it is none, such as one with a comma."""
    try:
        return float(text)
    except ValueError as error:
        hint = " Write it with a point." if "," in text else ""
        place = f"{file}, line {line}" if line else file
        raise OctavoltError(f"{place}: {what} is '{text[:40]}', no number.{hint}") from error


def wrong_row(file: str, line: int | None, problem: str) -> Fault:
    """Return a fault of an annotation that can't be used; --skip-damaged leaves it out."""
    return Fault(kind="wrong-row", file=file, line=line, problem=problem, damaged=True)


def shown(file: str) -> str:
    """Return a file name that can be printed and written as UTF-8, whatever its bytes are."""
    return os.fsencode(file).decode("utf-8", "backslashreplace")


def summary(pictures: Sequence[RawPicture]) -> str:
    """Return how many pictures and boxes there are."""
    boxes = sum(len(one.boxes) for one in pictures)
    return f"{counted(len(pictures), 'picture')}, {counted(boxes, 'box', 'boxes')}"
