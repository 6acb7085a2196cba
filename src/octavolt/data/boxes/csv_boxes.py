"""A table of boxes, one a row, whose columns are found by their names."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

from octavolt.contract import DataSet
from octavolt.data.boxes.common import (
    MISSING,
    from_files,
    name_classes,
    named_picture,
    number,
    unannotated,
)
from octavolt.data.boxes.files import (
    Files,
    Finder,
    folder_of,
    is_picture,
    looked_at,
    split_named,
)
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.columns import LABELS, PATHS, SPLITS, delimiter_of, first_of
from octavolt.data.manifest import SNIFFED_LINES, encoding_of, first_foreign_line
from octavolt.data.pictures import readable
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError
from octavolt.units import counted

ENDINGS = (b".csv", b".tsv")
SNIFFED_BYTES = 64 * 1024
CORNERS = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("x1", "y1", "x2", "y2"),
    ("left", "top", "right", "bottom"),
)
"""In pixels, the last ones outside of the box."""
SIDES = (
    ("x", "y", "width", "height"),
    ("x", "y", "w", "h"),
    ("left", "top", "width", "height"),
    ("bbox_x", "bbox_y", "bbox_width", "bbox_height"),
)
"""Of the upper left corner, and the extent, in pixels."""
PICTURE_SIDES = (("height", "width"), ("image_height", "image_width"), ("img_height", "img_width"))
YES = {"1", "1.0", "true", "yes"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Where things stand in a row, counted from 0."""

    width: int
    path: int
    label: int
    box: tuple[int, ...]
    has_corners: bool
    """Whether the box is given by its corners; otherwise by one corner and its sides."""
    split: int | None
    size: tuple[int, int] | None
    """Height and width of the picture."""
    crowd: int | None
    difficult: int | None
    area: int | None


def columns_of(header: Sequence[str]) -> Columns | None:
    """Return where things stand, or None if the header has no columns of a box."""
    cells = [cell.strip().lower() for cell in header]
    path, label = first_of(PATHS, cells), first_of(LABELS, cells)
    groups = [names for names in (*CORNERS, *SIDES) if set(names) <= set(cells)]
    if path is None or label is None or not groups:
        return None
    box = tuple(cells.index(name) for name in groups[0])
    sizes = [tuple(map(cells.index, names)) for names in PICTURE_SIDES if set(names) <= set(cells)]
    free = [(height, width) for height, width in sizes if height not in box and width not in box]
    return Columns(
        width=len(cells),
        path=path,
        label=label,
        box=box,
        has_corners=groups[0] in CORNERS,
        split=first_of(SPLITS, cells),
        size=free[0] if free else None,
        crowd=first_of(("crowd", "iscrowd", "is_crowd"), cells),
        difficult=first_of(("difficult",), cells),
        area=first_of(("area",), cells),
    )


def recognises(files: Files) -> bool:
    """Tell whether there are tables with columns of a box."""
    return next(tables(files), None) is not None


def tables(files: Files) -> Iterator[tuple[bytes, str, Columns]]:
    """Yield each table of boxes with what separates its columns, and where things stand."""
    for name in looked_at(files, ENDINGS):
        held = files.beginning(name, SNIFFED_BYTES)
        encoding = "utf-16" if held[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
        lines = held.decode(encoding, "replace").splitlines()[:SNIFFED_LINES]
        if not lines:
            continue
        delimiter = delimiter_of(lines)
        columns = columns_of(next(csv.reader(lines, delimiter=delimiter), []))
        if columns is not None:
            yield name, delimiter, columns


def open_csv(files: Files, seed: int) -> DataSet:
    """Return the pictures and boxes of the tables."""
    gathered = Gathered()
    finder = Finder(name for name in files.below() if is_picture(name))
    codes: dict[str, int] = {}
    found = list(tables(files))
    splits = {name: split_named(name) if files.is_folder else None for name, _, _ in found}
    divided = any(split is not None for split in splits.values())
    for name, delimiter, columns in found:
        if divided and splits[name] is None and columns.split is None:
            gathered.notes.append(f"'{readable(name)}' is not used: it names no split.")
            continue
        split = splits[name]
        table = Table(
            files=files,
            name=name,
            split=TRAIN if split is None else split,
            columns=columns,
            gathered=gathered,
            finder=finder,
        )
        table.read(delimiter, codes)
    name_classes(files, gathered, codes)
    unannotated(gathered, finder)
    return from_files(files, gathered, "csv", seed)


class Table:
    """One table that is being read."""

    def __init__(
        self,
        *,
        files: Files,
        name: bytes,
        split: int,
        columns: Columns,
        gathered: Gathered,
        finder: Finder,
    ) -> None:
        self.path = files.full(name)
        self.file = readable(name)
        self.source = gathered.source(self.file)
        self.split = split
        self.columns = columns
        self.gathered = gathered
        self.finder = finder
        self.hints = tuple(part for part in reversed(readable(folder_of(name)).split("/")) if part)
        self.pictures: dict[str, int] = {}

    def read(self, delimiter: str, codes: dict[str, int]) -> None:
        """Add all rows. Raises `OctavoltError` if the file is no text or no table."""
        try:
            with self.path.open(encoding=encoding_of(self.path), newline="") as text:
                self.read_rows(csv.reader(text, delimiter=delimiter), codes)
        except UnicodeError as error:
            raise OctavoltError(
                f"'{self.file}' is no UTF-8 text from line {first_foreign_line(self.path)} on. "
                "Save it as UTF-8; spreadsheets call that 'CSV UTF-8'."
            ) from error
        except csv.Error as error:
            raise OctavoltError(
                f"'{self.file}' is no table: {error}. Save it as CSV again."
            ) from error
        except OSError as error:
            raise OctavoltError(f"'{self.file}' can't be read: {error.strerror}.") from error

    def read_rows(self, rows: Any, codes: dict[str, int]) -> None:
        """Add the rows below the header."""
        header_awaited, lines_done = True, 0
        for row in rows:
            # A quoted cell may hold line breaks: a row is named by its first line.
            line, lines_done = lines_done + 1, rows.line_num
            if not any(cell.strip() for cell in row):
                continue
            if header_awaited:
                header_awaited = False
                continue
            try:
                self.add(row, line, codes)
            except ValueError as error:
                self.gathered.wrong(str(error), file=self.file, line=line, picture=self.known(row))

    def known(self, row: Sequence[str]) -> int | None:
        """Return the picture of a row that is wrong elsewhere, if it is known."""
        if len(row) <= self.columns.path:
            return None
        found = self.pictures.get(row[self.columns.path].strip(), MISSING)
        return None if found == MISSING else found

    def add(self, row: Sequence[str], line: int, codes: dict[str, int]) -> None:
        """Add the picture of a row, and its box if it has one. Raises `ValueError`."""
        columns = self.columns
        if len(row) != columns.width:
            raise ValueError(f"{counted(len(row), 'column')}, where the header has {columns.width}")
        picture = self.picture(row, line)
        cells = [row[place].strip() for place in columns.box]
        label = row[columns.label].strip()
        if picture == MISSING or not (label or any(cells)):
            return
        if not label:
            raise ValueError("the box has no class")
        self.gathered.box(
            picture,
            corners_of(cells, has_corners=columns.has_corners),
            codes.setdefault(label, len(codes)),
            line=line,
            crowd=columns.crowd is not None and row[columns.crowd].strip().lower() in YES,
            difficult=(
                columns.difficult is not None and row[columns.difficult].strip().lower() in YES
            ),
            area=number(row[columns.area])
            if columns.area is not None and row[columns.area].strip()
            else nan,
        )

    def picture(self, row: Sequence[str], line: int) -> int:
        """Return the picture of a row, or `MISSING`. Raises `ValueError` on what is no split."""
        columns = self.columns
        named = row[columns.path].strip()
        if not named:
            raise ValueError("the path is empty")
        split = self.split
        if columns.split is not None:
            own = split_index(row[columns.split])
            if own is None:
                raise ValueError(
                    f"the split '{row[columns.split].strip()}' is not train, val or test"
                )
            split = own
        if named not in self.pictures:
            height, width = (0, 0) if columns.size is None else sides(row, columns.size)
            self.pictures[named] = named_picture(
                self.gathered,
                self.finder,
                named,
                split=split,
                source=self.source,
                line=line,
                height=height,
                width=width,
                hints=self.hints,
            )
        found = self.pictures[named]
        if found != MISSING and self.gathered.split_of[found] != split:
            raise ValueError("the picture stands in two splits")
        return found


def sides(row: Sequence[str], places: tuple[int, int]) -> tuple[int, int]:
    """Return height and width of the picture; zeros where they are not stated."""
    try:
        height, width = (int(number(row[place])) for place in places)
    except ValueError:
        return 0, 0
    return (height, width) if height > 0 and width > 0 else (0, 0)


def corners_of(cells: Sequence[str], *, has_corners: bool) -> Corners:
    """Return the corners of a box. Raises `ValueError` if a number is none."""
    x, y, third, fourth = map(number, cells)
    return (x, y, third, fourth) if has_corners else (x, y, x + third, y + fourth)


FORMAT = BoxFormat(
    name="csv",
    description="a .csv or .tsv file of boxes, one a row, with columns for path, class, xmin, "
    "ymin, xmax, ymax (or x, y, width, height), or a folder with such files for train, val, test",
    recognises=recognises,
    open=open_csv,
)
