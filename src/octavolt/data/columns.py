"""Which column of a table holds the path, the label and the split: found by name, or by looking."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from octavolt.data.splits import split_index
from octavolt.errors import OctavoltError

DELIMITERS = "\t,;| "
"""In the order of preference: a space separates columns only if nothing else does."""
PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")
PATHS = (
    *("path", "file", "filename", "file_name", "filepath", "file_path"),
    *("image", "image_path", "img", "img_path", "picture", "image_name", "image_file"),
)
LABELS = (
    *("label", "class", "class_name", "category", "target", "label_name", "labels"),
    *("species", "diagnosis"),
)
SPLITS = ("split", "set", "subset", "partition", "usage", "fold")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where things stand in a row, counted from 0."""

    width: int
    path: int
    label: int
    split: int | None
    has_header: bool
    notes: tuple[str, ...] = ()


def delimiter_of(lines: Sequence[str], delimiters: str = DELIMITERS) -> str:
    """Return what separates the columns: what splits most lines into as many as the first."""

    def agreeing(delimiter: str) -> int:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        return sum(width == widths[0] for width in widths) if max(widths[:1], default=0) > 1 else 0

    return max(delimiters, key=agreeing)


def columns_of(path: Path, rows: Sequence[Sequence[str]]) -> Columns:
    """Return where things stand, or raise, naming the columns that there are."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    cells = [cell.strip().lower() for cell in rows[0]]
    if not set(cells) & {*PATHS, *LABELS}:
        return without_header(path, rows)
    split, notes = split_column(first_of(SPLITS, cells), rows)
    picture = named(path, "path", PATHS, rows[0])
    label = named(path, "label", LABELS, rows[0])
    used = [rows[0][place].strip() for place in (picture, label)]
    return Columns(
        width=len(cells),
        path=picture,
        label=label,
        split=split,
        has_header=True,
        notes=(f"Paths are read from the column '{used[0]}', labels from '{used[1]}'.", *notes),
    )


def first_of(names: Sequence[str], cells: Sequence[str]) -> int | None:
    """Return the column that has the first of the names, or None."""
    return next((cells.index(name) for name in names if name in cells), None)


def named(path: Path, what: str, names: Sequence[str], header: Sequence[str]) -> int:
    """Return the column with one of the names."""
    place = first_of(names, [cell.strip().lower() for cell in header])
    if place is None:
        raise OctavoltError(
            f"'{path.name}' has no column for the {what} among {', '.join(header)}. Name one of "
            f"them '{what}' (or {', '.join(names[1:])})."
        )
    return place


def split_column(
    place: int | None, rows: Sequence[Sequence[str]]
) -> tuple[int | None, tuple[str, ...]]:
    """Return the column if its first values name splits, as those of 'fold' often don't."""
    if place is None:
        return None, ()
    values = [row[place] for row in rows[1:] if len(row) > place]
    if any(split_index(value) is not None for value in values):
        return place, ()
    name = rows[0][place].strip()
    return None, (f"The column '{name}' is not used: it names no train, val or test.",)


def without_header(path: Path, rows: Sequence[Sequence[str]]) -> Columns:
    """Return where things stand in a table of pictures from its first row on."""
    first = rows[0]
    pictures = [place for place, cell in enumerate(first) if is_picture(path.parent, cell)]
    rest = [place for place in range(len(first)) if place not in pictures]
    splits = [place for place in rest if split_index(first[place]) is not None]
    labels = [place for place in rest if place not in splits]
    if len(rest) == 1:
        splits, labels = [], rest
    if not (len(pictures) == len(labels) == 1 and len(splits) <= 1):
        raise OctavoltError(
            f"'{path.name}' begins with {', '.join(first)[:200]}: it is not clear which column "
            "holds the paths and which the labels. Add a first line that says 'path' and 'label'."
        )
    return Columns(
        width=len(first),
        path=pictures[0],
        label=labels[0],
        split=splits[0] if splits else None,
        has_header=False,
        notes=(f"'{path.name}' has no header: labels are read from column {labels[0] + 1}.",),
    )


def is_picture(folder: Path, cell: str) -> bool:
    """Tell whether a cell names a picture: one that exists, or by the end of its name."""
    if cell.strip().lower().endswith(PICTURE_SUFFIXES):
        return True
    return existing(folder, cell) is not None


def existing(folder: Path, cell: str) -> str | None:
    """Return the path in the cell as the file system spells it, or None if there is no file."""
    stripped = cell.strip()
    for text in (cell, stripped, stripped.replace("\\", "/")):
        # A path may hold no zero byte, and asking for one raises.
        if text and "\0" not in text and (folder / text).is_file():
            return text
    return None
