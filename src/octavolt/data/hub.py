"""Data sets of the Hugging Face Hub, or folders that its library `datasets` reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt64
from numpy.typing import NDArray

from octavolt.contract import DataSet, Fault
from octavolt.data.format import Format
from octavolt.data.pictures import ODD, Stamped, file_stamp
from octavolt.data.splits import TRAIN, Found, divided, naturally, split_index
from octavolt.errors import OctavoltError
from octavolt.units import counted

PREFIX = "hub:"
IMAGES = ("image", "img", "picture", "pixel_values")
LABELS = ("label", "labels", "fine_label", "class", "category", "target")
UNLABELLED = -1
"""What the Hub writes for a label that is withheld."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """One split as Arrow maps it from disk."""

    split: int
    title: str
    """As the Hub calls the split."""
    rows: Any
    """A `datasets.Dataset` whose pictures are not decoded."""
    image: str
    """Name of the column of pictures."""


class HubPictures(Stamped):
    """Rows of one or several tables; rows are counted through all of them."""

    def __init__(
        self,
        tables: tuple[Table, ...],
        rows: Int64[np.ndarray, " pictures"],
        labels: Int64[np.ndarray, " pictures"],
    ) -> None:
        self.tables = tables
        self.rows = rows
        self.labels = labels

    def place(self, index: int) -> tuple[Table, int]:
        """Return the table that holds the picture, and its row in there."""
        row = int(self.rows[index])
        for table in self.tables:
            if row < len(table.rows):
                return table, row
            row -= len(table.rows)
        raise IndexError(index)

    def read(self, index: int) -> bytes:
        """Return the bytes from the table, or those of the file that it names."""
        table, row = self.place(index)
        picture = table.rows[row][table.image]
        if picture is None:
            return b""
        if picture["bytes"] is not None:
            return bytes(picture["bytes"])
        return Path(picture["path"]).read_bytes()

    def name(self, index: int) -> str:
        """Return 'split:row', rows counted from 0 as the Hub shows them."""
        table, row = self.place(index)
        return f"{table.title}:{row}"

    def select(self, indices: NDArray[np.int64]) -> "HubPictures":
        """Return only those pictures, in that order; the tables are shared."""
        return HubPictures(self.tables, self.rows[indices], self.labels[indices])

    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return a number made of the row, the files of the table and, if outside it, the file."""
        everything = np.concatenate([stamps_of(table) for table in self.tables])
        stamps: NDArray[np.uint64] = everything[self.rows]
        return stamps


def stamps_of(table: Table) -> UInt64[np.ndarray, " rows"]:
    """Return the stamps of all rows of a table."""
    base = 0
    for cached in table.rows.cache_files:
        base ^= file_stamp(cached["filename"].encode())
    if base == 0:
        return np.zeros(len(table.rows), np.uint64)
    stamps: NDArray[np.uint64] = np.uint64(base) ^ (
        np.arange(1, len(table.rows) + 1).astype(np.uint64) * ODD
    )
    chunks = table.rows.data.column(table.image).chunks
    outside = np.concatenate([chunk.field("bytes").is_null().to_numpy(False) for chunk in chunks])
    if outside.any():
        paths = [path for chunk in chunks for path in chunk.field("path").to_pylist()]
        for row in np.flatnonzero(outside).tolist():
            stamps[row] ^= np.uint64(file_stamp(paths[row].encode()) if paths[row] else 0)
    return stamps


def recognises(source: str) -> bool:
    """Tell whether the source begins with 'hub:'."""
    return source.startswith(PREFIX)


def open_hub(source: str, seed: int) -> DataSet:
    """Return the data set, from the library's cache or fetched by it."""
    name, _, configuration = source.removeprefix(PREFIX).partition(":")
    splits = loaded(name, configuration or None)
    tables, notes = tables_of(name, splits)
    label = label_column(name, splits[tables[0].title])
    found, faults, withheld = found_in(tables, label)
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="hub",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=(*notes, *withheld, *division.notes),
    )


def loaded(
    name: str,
    configuration: str | None,
    *,
    example: str = "ylecun/mnist",
    instead: str = "pictures elsewhere and give the path of their folder",
) -> Mapping[str, Any]:
    """Return the splits by their names; `example` and `instead` stand in messages."""
    import datasets

    if not name:
        raise OctavoltError(f"'hub:' names no data set. Write hub:NAME, such as hub:{example}.")
    try:
        splits: Mapping[str, Any] = datasets.load_dataset(name, configuration)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        what = f"{name}' in the configuration '{configuration}" if configuration else name
        reason = " ".join(str(error).split()).rstrip(".")
        raise OctavoltError(
            f"The data set '{what}' can't be loaded from the Hub: {reason}. HF_ENDPOINT (a mirror) "
            "and HF_HUB_OFFLINE (only what was fetched before) are honoured; or download its "
            f"{instead} instead."
        ) from error
    return splits


def tables_of(name: str, splits: Mapping[str, Any]) -> tuple[tuple[Table, ...], list[str]]:
    """Return the splits that have a use, train first, and what was decided on the others."""
    import datasets

    first = next(iter(splits.values()))
    columns = [key for key, kind in first.features.items() if isinstance(kind, datasets.Image)]
    chosen = sorted(columns, key=lambda key: IMAGES.index(key) if key in IMAGES else len(IMAGES))
    if not chosen:
        raise OctavoltError(
            f"The data set '{name}' has no column of pictures; its columns: "
            f"{', '.join(first.features)}. Name one for image classification."
        )
    known = {title: split_index(title) for title in splits}
    notes = [f"The split '{title}' is not used." for title, index in known.items() if index is None]
    if len(splits) == 1 and notes:
        known, notes = dict.fromkeys(splits, TRAIN), []
    tables = [
        Table(
            split=index,
            title=title,
            rows=splits[title].cast_column(chosen[0], datasets.Image(decode=False)),
            image=chosen[0],
        )
        for title, index in known.items()
        if index is not None and len(splits[title]) > 0
    ]
    tables.sort(key=lambda table: table.split)
    if not tables or tables[0].split != TRAIN:
        raise OctavoltError(
            f"The data set '{name}' has no training split, only {', '.join(splits)}. Name one that "
            "has."
        )
    return tuple(tables), notes


def label_column(name: str, rows: Any) -> str:
    """Return the name of the column of labels."""
    import datasets

    classes: list[str] = [
        key for key, kind in rows.features.items() if isinstance(kind, datasets.ClassLabel)
    ]
    named = [key for key in LABELS if key in rows.features]
    best = [*(key for key in named if key in classes), *named, *classes]
    if best:
        return best[0]
    raise OctavoltError(
        f"The data set '{name}' has no column of labels; its columns: {', '.join(rows.features)}. "
        f"One of {', '.join(LABELS)} is needed."
    )


def found_in(tables: tuple[Table, ...], label: str) -> tuple[Found, list[Fault], list[str]]:
    """Return the pictures that have a label, a fault for the others, and splits without labels."""
    names, codes = coded([list(table.rows[label]) for table in tables], tables[0], label)
    faults, notes = [], []
    for table, column in zip(tables, codes, strict=True):
        bad = np.flatnonzero(column < 0)
        if len(bad) == len(column):
            notes.append(f"The split '{table.title}' has no labels and is not used.")
        elif len(bad) > 0:
            faults.append(without_label(table, bad))
    labels = np.concatenate(codes)
    good = np.flatnonzero(labels >= 0)
    if not np.any(codes[0] >= 0):
        raise OctavoltError(
            f"No picture of the split '{tables[0].title}' has a label in the column '{label}'. "
            "Name a data set with labels."
        )
    split_of = np.repeat([table.split for table in tables], [len(column) for column in codes])
    found = Found(
        build=partial(built, tables, good),
        names=names,
        labels=labels[good],
        split_of=split_of[good],
    )
    return found, faults, notes


def coded(
    given: Sequence[Sequence[Any]], table: Table, label: str
) -> tuple[list[str], list[NDArray[np.int64]]]:
    """Return the names of the classes, and the labels of each split as indices or `UNLABELLED`."""
    names = getattr(table.rows.features[label], "names", None)
    if names is None:
        values = {value for column in given for value in column} - {None, UNLABELLED, ""}
        names = naturally(str(value) for value in values)
        rank = {name: place for place, name in enumerate(names)}
        code_of: dict[Any, int] = {value: rank[str(value)] for value in values}
    else:
        code_of = {code: code for code in range(len(names))}
    codes = [
        np.array([code_of.get(one, UNLABELLED) for one in column], np.int64) for column in given
    ]
    return list(names), codes


def without_label(table: Table, rows: Int64[np.ndarray, " rows"]) -> Fault:
    """Return the fault of rows whose label is missing or no class."""
    count = counted(len(rows), "picture")
    return Fault(
        kind="label-out-of-range",
        file=f"{table.title}:{rows[0]}",
        problem=f"the label is missing or names no class; so with {count}, this one first",
        damaged=True,
    )


def built(
    tables: tuple[Table, ...],
    places: Int64[np.ndarray, " found"],
    rows: Int64[np.ndarray, " pictures"],
    labels: Int64[np.ndarray, " pictures"],
) -> HubPictures:
    """Return the pictures at those rows of `places`, the rows of the tables that are kept."""
    return HubPictures(tables, places[rows], labels)


FORMAT = Format(
    name="hub",
    description="hub:NAME or hub:NAME:CONFIG, a data set of the Hugging Face Hub",
    recognises=recognises,
    open=open_hub,
)
