"""A table of boxes: a row each, with the columns named in its first line."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.raw import Raw, RawBox, RawPicture, assembled, wrong_row
from octavolt.data.manifest import encoding_of
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError

NAMES: Mapping[str, Sequence[str]] = {
    "file": ("file", "filename", "file_name", "image", "image_path", "path", "picture"),
    "label": ("label", "class", "class_name", "category", "name"),
    "split": ("split", "set", "subset"),
    "left": ("xmin", "x_min", "x1", "left"),
    "top": ("ymin", "y_min", "y1", "top"),
    "right": ("xmax", "x_max", "x2", "right"),
    "bottom": ("ymax", "y_max", "y2", "bottom"),
    "x": ("x",),
    "y": ("y",),
    "width": ("w", "box_width", "width"),
    "height": ("h", "box_height", "height"),
}
CORNERS, SIDES = ("left", "top", "right", "bottom"), ("x", "y", "width", "height")


def columns_in(header: Sequence[str]) -> dict[str, str] | None:
    """Return which column is what; None if they are not those of boxes."""
    typed = {one.strip().lower(): one for one in header}
    found = {
        what: typed[name]
        for what, names in NAMES.items()
        for name in reversed(names)
        if name in typed
    }
    enough = {"file", "label"} <= found.keys() and (
        set(CORNERS) <= found.keys() or set(SIDES) <= found.keys()
    )
    return found if enough else None


def header_of(path: Path) -> list[str]:
    """Return the first line's cells."""
    with path.open(encoding=encoding_of(path), newline="") as text:
        line = text.readline(2**16)
    delimiter = max(",;\t", key=line.count)
    return next(csv.reader([line], delimiter=delimiter), [])


def recognises(source: str) -> bool:
    """Tell whether the source is a table of boxes."""
    path = Path(source).expanduser()
    try:
        return (
            path.suffix.lower() in {".csv", ".tsv"}
            and path.is_file()
            and columns_in(header_of(path)) is not None
        )
    except (OSError, UnicodeError, csv.Error):
        return False


def open_table(source: str, seed: int) -> DataSet:
    """Return the pictures that a table names; a row with a file alone is one without boxes."""
    path = Path(source).expanduser()
    columns = columns_in(header_of(path))
    assert columns is not None
    pictures: dict[str, RawPicture] = {}
    faults: list[Fault] = []
    try:
        with path.open(encoding=encoding_of(path), newline="") as text:
            first = text.readline(2**16)
            text.seek(0)
            reader = csv.DictReader(text, delimiter=max(",;\t", key=first.count))
            for row in reader:
                place = (path.name, reader.line_num)
                read_row(row, columns, place, pictures, faults)
    except (UnicodeError, csv.Error) as error:
        raise OctavoltError(f"'{path.name}' is no table in UTF-8: {error}.") from error
    raw = Raw(root=path.parent, pictures=[*pictures.values()], faults=faults)
    return assembled(source, "boxes-csv", raw, seed=seed)


def read_row(
    row: Mapping[str, str],
    columns: Mapping[str, str],
    place: tuple[str, int],
    pictures: dict[str, RawPicture],
    faults: list[Fault],
) -> None:
    """Take a row, whose place is a file and a line, into the pictures, or into the faults."""
    file, line = place
    cells = {what: (row.get(name) or "").strip() for what, name in columns.items()}
    if not cells["file"]:
        faults.append(wrong_row(file, line, "names no picture"))
        return
    split = split_index(cells.get("split", "")) or TRAIN
    picture = pictures.setdefault(cells["file"], RawPicture(file=cells["file"], split=split))
    sides = CORNERS if set(CORNERS) <= columns.keys() else SIDES
    values = [cells[one] for one in sides]
    if not any(values) and not cells["label"]:
        return
    try:
        left, top, right, bottom = (float(one) for one in values)
    except ValueError:
        hint = "; write numbers with a point" if any("," in one for one in values) else ""
        faults.append(wrong_row(file, line, f"'{', '.join(values)}' are not four numbers{hint}"))
        return
    if not cells["label"]:
        faults.append(wrong_row(file, line, "has a box without a class"))
        return
    if sides is SIDES:
        right, bottom = left + right, top + bottom
    picture.boxes.append(
        RawBox(
            corners=(left, top, right, bottom),
            label=cells["label"],
            file=file,
            line=line,
            what=f"the box of line {line}",
        )
    )
