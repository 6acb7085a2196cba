"""COCO's JSON: pictures, categories and boxes in one file a split."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

import numpy as np

from octavolt.contract import DataSet
from octavolt.data.boxes.common import from_files, named_picture, unannotated
from octavolt.data.boxes.files import (
    Files,
    Finder,
    folder_of,
    is_picture,
    looked_at,
    printable,
    split_named,
    stem,
)
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.boxes.json_stream import Element, elements
from octavolt.data.pictures import readable
from octavolt.data.splits import SPLITS, TRAIN
from octavolt.errors import OctavoltError
from octavolt.units import counted

LOOKED_AT_BYTES = 1 << 20
LISTS = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
OTHER_KINDS = (b"captions", b"person_keypoints", b"panoptic", b"stuff", b"image_info")
"""Beginnings of files that lie beside COCO's boxes and annotate something else, or nothing."""
LARGEST = 2**31
"""Of a side in pixels and of an id: larger ones are told by their place."""


@dataclass(kw_only=True)
class Table:
    """What one file says; its lists may stand in any order."""

    file: str
    source: int
    split: int
    hints: tuple[str, ...]
    """Folders in which its pictures probably lie."""
    first_box: int
    categories: dict[Any, str] = field(default_factory=dict)
    pictures: dict[Any, int] = field(default_factory=dict)
    """Rows by id; -1 for a picture that has its fault already."""
    picture_codes: dict[Any, int] = field(default_factory=dict)
    """Ids that boxes name, counted from 0: what stands for a picture until all are known."""
    category_codes: dict[Any, int] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    """Which lists the file has."""


def recognises(files: Files) -> bool:
    """Tell whether there is a JSON file with lists of pictures and boxes."""
    return any(is_coco(files, name) for name in candidates(files))


def candidates(files: Files) -> list[bytes]:
    """Return the JSON files that may hold annotations."""
    return list(looked_at(files, {b".json"}))


def is_coco(files: Files, name: bytes) -> bool:
    """Tell whether a file begins as one of COCO."""
    beginning = files.beginning(name, LOOKED_AT_BYTES)
    is_object = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return is_object and LISTS.search(beginning) is not None


def open_coco(files: Files, seed: int) -> DataSet:
    """Return the pictures and boxes of one or several files."""
    gathered = Gathered(declared=True)
    chosen = with_splits(files, gathered)
    finder = Finder(name for name in files.below() if is_picture(name))
    tables = [read(files, name, split, gathered, finder) for name, split in chosen]
    number(tables, gathered)
    unannotated(gathered, finder)
    return from_files(files, gathered, "coco", seed)


def with_splits(files: Files, gathered: Gathered) -> list[tuple[bytes, int]]:
    """Return the files of annotations with their splits, train first."""
    names = [name for name in candidates(files) if is_coco(files, name)]
    instances = [name for name in names if stem(name).startswith(b"instances")]
    plain = [name for name in names if not stem(name).startswith(OTHER_KINDS)]
    kept = instances or plain or names
    found = [(name, split_named(name)) for name in kept]
    given = [(name, split) for name, split in found if split is not None]
    unused = sorted(set(names) - {name for name, _ in given}) if given else []
    gathered.notes += [f"'{readable(name)}' is not used." for name in unused]
    if len(kept) == 1:
        return [(kept[0], TRAIN)] if not files.is_folder or not given else given
    return sorted(given or [(name, TRAIN) for name in kept], key=lambda one: one[1])


def read(files: Files, name: bytes, split: int, gathered: Gathered, finder: Finder) -> Table:
    """Add the pictures and boxes of one file; labels are codes of the categories until `number`."""
    folder = readable(folder_of(name).rpartition(b"/")[2])
    table = Table(
        file=readable(name),
        source=gathered.source(readable(name)),
        split=split,
        hints=(folder, readable(stem(name)).removeprefix("instances_"), SPLITS[split]),
        first_box=len(gathered.picture_of),
    )
    for one in elements(files.full(name)):
        table.listed.add(one.key)
        if one.number and one.key in READERS:
            if not isinstance(one.value, dict):
                problem = f"{one.key}[{one.number - 1}] is no object"
                gathered.wrong(problem, file=table.file, line=one.line)
                continue
            READERS[one.key](table, one, gathered, finder)
    lacking = [key for key in READERS if key not in table.listed]
    if lacking:
        raise OctavoltError(
            f"'{table.file}' has no list '{lacking[0]}'; COCO's files have images, annotations and "
            f"categories. It has {', '.join(sorted(table.listed)) or 'nothing'}."
        )
    give_pictures(table, gathered)
    return table


def read_category(table: Table, one: Element, gathered: Gathered, finder: Finder) -> None:
    """Add a category."""
    del finder
    key, name = one.value.get("id"), one.value.get("name")
    if not is_id(key) or not isinstance(name, str | int):
        problem = f"categories[{one.number - 1}] needs an 'id' and a 'name'"
        gathered.wrong(problem, file=table.file, line=one.line)
    elif key in table.categories:
        problem = f"the category id {key} stands twice: '{table.categories[key]}' and '{name}'"
        gathered.wrong(problem, file=table.file, line=one.line)
    else:
        table.categories[key] = printable(" ".join(str(name).split()))


def read_picture(table: Table, one: Element, gathered: Gathered, finder: Finder) -> None:
    """Add a picture, if its file exists."""
    key, name = one.value.get("id"), one.value.get("file_name")
    if not is_id(key) or not isinstance(name, str):
        problem = f"images[{one.number - 1}] needs an 'id' and a 'file_name'"
        gathered.wrong(problem, file=table.file, line=one.line)
        return
    if key in table.pictures:
        problem = f"the picture id {key} stands twice; '{name}' is passed over"
        gathered.warn("duplicate-picture", problem, file=table.file, line=one.line)
        return
    height, width = side(one.value.get("height")), side(one.value.get("width"))
    known = bool(height and width)
    table.pictures[key] = named_picture(
        gathered,
        finder,
        name,
        split=table.split,
        source=table.source,
        line=one.line,
        height=height if known else 0,
        width=width if known else 0,
        hints=table.hints,
    )


def read_box(table: Table, one: Element, gathered: Gathered, finder: Finder) -> None:
    """Add a box; which picture and category it is of is looked up once all are read."""
    del finder
    value = one.value
    picture, category = value.get("image_id"), value.get("category_id")
    if not is_id(picture) or not is_id(category):
        problem = f"annotations[{one.number - 1}] needs an 'image_id' and a 'category_id'"
        gathered.wrong(problem, file=table.file, line=one.line)
        return
    key = value.get("id")
    own = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < LARGEST
    area = value.get("area")
    gathered.box(
        table.picture_codes.setdefault(picture, len(table.picture_codes)),
        corners(value.get("bbox")),
        table.category_codes.setdefault(category, len(table.category_codes)),
        line=one.line,
        mark=key if own else -1 - one.number,
        crowd=bool(value.get("iscrowd")),
        difficult=bool(value.get("difficult")),
        area=float(area) if is_number(area) else nan,
    )


READERS = {"images": read_picture, "annotations": read_box, "categories": read_category}


def corners(box: Any) -> Corners:
    """Return the corners of a box that COCO gives as x, y, width and height.

    What is no such box has corners that are no numbers: the check of all boxes reports it.
    """
    if not isinstance(box, list) or len(box) != 4 or not all(map(is_number, box)):
        return (nan, nan, nan, nan)
    x, y, width, height = map(float, box)
    return (x, y, x + width, y + height)


def is_number(value: Any) -> bool:
    """Tell whether a value is a number as JSON has them, and finite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def is_id(value: Any) -> bool:
    """Tell whether a value can be an id."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def side(value: Any) -> int:
    """Return a number of pixels; 0 if it is none."""
    return int(value) if is_number(value) and 0 < value < LARGEST else 0


def give_pictures(table: Table, gathered: Gathered) -> None:
    """Put rows in place of the codes of pictures, and report boxes of unknown pictures."""
    unknown = {code for key, code in table.picture_codes.items() if key not in table.pictures}
    rows = np.array([table.pictures.get(key, -1) for key in table.picture_codes], np.int64)
    codes = np.frombuffer(gathered.picture_of.tobytes(), np.int64)[table.first_box :]
    by_code = {code: key for key, code in table.picture_codes.items() if code in unknown}
    for place in np.flatnonzero(np.isin(codes, sorted(unknown))).tolist():
        box = table.first_box + place
        problem = f"the image_id {by_code[int(codes[place])]!r} is no id of 'images'"
        gathered.wrong(
            f"{problem} ({which(gathered.marks[box])})",
            file=table.file,
            line=line_of(gathered, box),
        )
    labels = np.frombuffer(gathered.labels.tobytes(), np.int64)[table.first_box :]
    gathered.replace_codes(table.first_box, rows[codes] if len(codes) else codes, labels)


def number(tables: Sequence[Table], gathered: Gathered) -> None:
    """Put labels in place of the codes of categories: classes stand in the order of the ids."""
    classes: dict[str, int] = {}
    for table in tables:
        for key in sorted(table.categories, key=lambda one: (isinstance(one, str), one)):
            classes.setdefault(table.categories[key], len(classes))
    gathered.classes = tuple(classes)
    ids = [key for key in tables[0].categories if isinstance(key, int)]
    if ids and max(ids) - min(ids) >= len(ids):
        gathered.notes.append(
            f"Category ids run from {min(ids)} to {max(ids)} with gaps: their "
            f"{counted(len(ids), 'class is', 'classes are')} numbered without."
        )
    ends = [table.first_box for table in tables[1:]] + [len(gathered.labels)]
    picture_of = np.frombuffer(gathered.picture_of.tobytes(), np.int64).copy()
    labels = np.frombuffer(gathered.labels.tobytes(), np.int64).copy()
    for table, end in zip(tables, ends, strict=True):
        own = slice(table.first_box, end)
        if table.first_box == end:
            continue
        keys = list(table.category_codes)
        labels_of = [
            classes[table.categories[key]] if key in table.categories else -1 for key in keys
        ]
        codes = labels[own].copy()
        labels[own] = np.array(labels_of, np.int64)[codes]
        for box in (table.first_box + np.flatnonzero(labels[own] < 0)).tolist():
            if picture_of[box] >= 0:
                key = keys[int(codes[box - table.first_box])]
                gathered.wrong(
                    f"the category_id {key!r} is no id of 'categories' "
                    f"({which(gathered.marks[box])})",
                    file=table.file,
                    line=line_of(gathered, box),
                    kind="unknown-category",
                    picture=int(picture_of[box]),
                )
    picture_of[labels < 0] = -1
    gathered.replace_codes(0, picture_of, labels)


def which(mark: int) -> str:
    """Return how a box is told from others."""
    return f"annotation id {mark}" if mark >= 0 else f"annotation {-1 - mark}"


def line_of(gathered: Gathered, box: int) -> int:
    """Return the line of a box."""
    return gathered.lines[box]


FORMAT = BoxFormat(
    name="coco",
    description="a .json file of COCO, or a folder with such files for train, val and test in it "
    "or in 'annotations'",
    recognises=recognises,
    open=open_coco,
)
