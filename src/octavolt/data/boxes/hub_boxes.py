"""Data sets of the Hugging Face Hub with a list of objects, a box and a category each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from octavolt.contract import DataSet
from octavolt.data.boxes.coco import is_number
from octavolt.data.boxes.files import Files
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.boxes.settled import Origin, settled
from octavolt.data.boxes.sizes import upright_size
from octavolt.data.hub import PREFIX, HubPictures, Table, loaded, tables_of
from octavolt.data.splits import naturally
from octavolt.errors import OctavoltError

OBJECTS = ("objects", "annotations", "faces", "boxes")
BOXES = ("bbox", "box", "bboxes", "boxes")
LABELS = ("category", "categories", "label", "labels", "category_id", "class", "classes")
AREAS = ("area", "areas")
CROWDS = ("iscrowd", "is_crowd")
TOLERANCE = 0.02
"""Of an area, which some sets round."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """What the parts of an object are called; None stands for what there is not."""

    objects: str
    box: str
    label: str
    area: str | None
    crowd: str | None
    names: Sequence[str] | None
    """Of the classes by their numbers."""


def recognises(files: Files) -> bool:
    """Tell whether the source begins with 'hub:'."""
    return files.source.startswith(PREFIX)


def open_hub(files: Files, seed: int) -> DataSet:
    """Return the data set, from the library's cache or fetched by it."""
    name, _, configuration = files.source.removeprefix(PREFIX).partition(":")
    splits = loaded(
        name,
        configuration or None,
        example="rishitdagli/cppe-5",
        instead="pictures and boxes elsewhere and give the path of their folder",
    )
    tables, notes = tables_of(name, splits)
    keys = keys_of(name, splits[tables[0].title])
    gathered = Gathered(declared=keys.names is not None)
    gathered.notes += notes
    rows = [row for table in tables for row in objects_of(table, keys)]
    sizes = sizes_of(tables, [one for table in tables for one in stated(table)])
    gather(gathered, tables, rows, sizes, keys)
    return settled(
        gathered,
        Origin(source=files.source, format="hub", root=None),
        build=partial(HubPictures, tables),
        seed=seed,
    )


def keys_of(name: str, rows: Any) -> Keys:
    """Return what the parts of an object are called."""
    for objects in sorted(
        rows.features, key=lambda key: OBJECTS.index(key) if key in OBJECTS else len(OBJECTS)
    ):
        inner = fields_of(rows.features[objects])
        box = next((key for key in BOXES if key in inner), None)
        label = next((key for key in LABELS if key in inner), None)
        if box is not None and label is not None:
            kind = inner[label]
            kind = getattr(kind, "feature", kind)
            return Keys(
                objects=objects,
                box=box,
                label=label,
                area=next((key for key in AREAS if key in inner), None),
                crowd=next((key for key in CROWDS if key in inner), None),
                names=getattr(kind, "names", None),
            )
    raise OctavoltError(
        f"The data set '{name}' has no column of objects with a box ({', '.join(BOXES)}) and a "
        f"category ({', '.join(LABELS)}); its columns: {', '.join(rows.features)}."
    )


def fields_of(feature: Any) -> dict[str, Any]:
    """Return the fields of a list of objects, however the library writes it: a mapping, or none."""
    inner = getattr(feature, "feature", feature)
    if isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return dict(inner) if isinstance(inner, dict) else {}


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of one picture, as they stand."""

    boxes: Sequence[Any]
    labels: Sequence[Any]
    areas: Sequence[Any]
    crowds: Sequence[Any]


def objects_of(table: Table, keys: Keys) -> Iterator[Objects]:
    """Yield the objects of each picture of a table; no picture is read."""
    for row in table.rows.select_columns([keys.objects]):
        given = row[keys.objects]
        if isinstance(given, list):
            given = {key: [one.get(key) for one in given] for key in parts(keys)}
        given = given or {}
        yield Objects(
            boxes=given.get(keys.box) or [],
            labels=given.get(keys.label) or [],
            areas=(given.get(keys.area) if keys.area else None) or [],
            crowds=(given.get(keys.crowd) if keys.crowd else None) or [],
        )


def parts(keys: Keys) -> list[str]:
    """Return the fields of an object that are read."""
    return [key for key in (keys.box, keys.label, keys.area, keys.crowd) if key is not None]


def stated(table: Table) -> Iterator[tuple[int, int]]:
    """Yield height and width of each picture as the table states them, or zeros."""
    names = table.rows.column_names
    if not {"height", "width"} <= set(names):
        yield from ((0, 0) for _ in range(len(table.rows)))
        return
    for row in table.rows.select_columns(["height", "width"]):
        given = row["height"], row["width"]
        yield (int(given[0]), int(given[1])) if all(map(is_number, given)) else (0, 0)


def sizes_of(tables: tuple[Table, ...], known: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the sizes, read from the pictures where the tables don't state them."""
    pictures = HubPictures(tables, np.arange(len(known)), np.zeros(len(known), np.int64))
    return [size if min(size) > 0 else size_at(pictures, row) for row, size in enumerate(known)]


def size_at(pictures: HubPictures, row: int) -> tuple[int, int]:
    """Return height and width of a picture; zeros if its header can't be read."""
    try:
        return upright_size(pictures.read(row))
    except (OSError, ValueError):
        return 0, 0


def gather(
    gathered: Gathered,
    tables: tuple[Table, ...],
    rows: list[Objects],
    sizes: list[tuple[int, int]],
    keys: Keys,
) -> None:
    """Add all pictures and boxes."""
    labels = [label for row in rows for label in row.labels]
    if keys.names is None:
        names = naturally({str(label) for label in labels if label is not None})
        gathered.classes = tuple(names)
        code_of: dict[Any, int] = {name: code for code, name in enumerate(names)}
    else:
        gathered.classes = tuple(keys.names)
        code_of = {str(code): code for code in range(len(keys.names))}
    has_corners = are_corners(rows, sizes)
    gathered.notes.append(
        f"The boxes of '{keys.objects}' are read as "
        f"{'xmin, ymin, xmax, ymax' if has_corners else 'x, y, width, height'}."
    )
    row = 0
    for table in tables:
        for place in range(len(table.rows)):
            name = f"{table.title}:{place}"
            height, width = sizes[row]
            picture = gathered.picture(
                name.encode(),
                split=table.split,
                source=gathered.source(name),
                height=height,
                width=width,
            )
            add(gathered, picture, name, rows[row], code_of, has_corners=has_corners)
            row += 1


def add(
    gathered: Gathered,
    picture: int,
    name: str,
    row: Objects,
    code_of: dict[Any, int],
    *,
    has_corners: bool,
) -> None:
    """Add the boxes of a picture, and a fault for each that can't be used."""
    if len(row.boxes) != len(row.labels):
        problem = f"{len(row.boxes)} boxes and {len(row.labels)} categories"
        gathered.wrong(problem, file=name, picture=picture)
        return
    for place, (box, label) in enumerate(zip(row.boxes, row.labels, strict=True)):
        code = code_of.get(str(label)) if label is not None else None
        if code is None:
            problem = f"object {place + 1} is of the category {label!r}, which has no name"
            gathered.wrong(problem, file=name, kind="unknown-category", picture=picture)
            continue
        area = row.areas[place] if place < len(row.areas) else None
        gathered.box(
            picture,
            corners_of(box, has_corners=has_corners),
            code,
            crowd=place < len(row.crowds) and bool(row.crowds[place]),
            area=number_or_nan(area),
        )


def number_or_nan(value: Any) -> float:
    """Return the number, or NaN if it is none."""
    return float(value) if is_number(value) else nan


def corners_of(box: Any, *, has_corners: bool) -> Corners:
    """Return the corners of a box; they are no numbers where it is none."""
    if box is None or len(box) != 4 or not all(map(is_number, box)):
        return (nan, nan, nan, nan)
    x, y, third, fourth = map(float, box)
    return (x, y, third, fourth) if has_corners else (x, y, x + third, y + fourth)


def are_corners(rows: list[Objects], sizes: list[tuple[int, int]]) -> bool:
    """Tell whether boxes are given by two corners, rather than by one and their sides.

    Areas tell where they are given: those of boxes, not of outlines, which are smaller. Otherwise
    what would reach out of its picture more often is not what is meant.
    """
    boxes, extents, areas = [], [], []
    for row, (height, width) in zip(rows, sizes, strict=True):
        for place, box in enumerate(row.boxes):
            if box is not None and len(box) == 4 and all(map(is_number, box)):
                boxes.append(box)
                extents.append((width, height))
                given = row.areas[place] if place < len(row.areas) else None
                areas.append(number_or_nan(given))
    if not boxes:
        return False
    numbers, most = np.array(boxes, np.float64), np.array(extents, np.float64)
    stated_areas = np.array(areas, np.float64)
    as_sides = matches(numbers[:, 2] * numbers[:, 3], stated_areas)
    spans = numbers[:, 2:] - numbers[:, :2]
    as_corners = matches(spans[:, 0] * spans[:, 1], stated_areas)
    if as_sides.sum() != as_corners.sum():
        return bool(as_corners.sum() > as_sides.sum())
    swapped = (spans <= 0).any(axis=1).sum()
    outside = ((numbers[:, :2] + numbers[:, 2:] > most + 1) & (most > 0)).any(axis=1).sum()
    return bool(outside > swapped)


def matches(
    found: Float64[np.ndarray, " boxes"], given: Float64[np.ndarray, " boxes"]
) -> Bool[np.ndarray, " boxes"]:
    """Return which areas are those that are given."""
    same: Bool[np.ndarray, " boxes"] = np.abs(found - given) <= TOLERANCE * np.abs(given)
    return same


FORMAT = BoxFormat(
    name="hub",
    description="hub:NAME or hub:NAME:CONFIG, a data set of the Hugging Face Hub with objects",
    recognises=recognises,
    open=open_hub,
)
