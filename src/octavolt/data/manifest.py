"""A table of paths and labels as text, with or without a header."""

import codecs
import csv
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jaxtyping import Int64

from octavolt.contract import DataSet, Fault
from octavolt.data.columns import Columns, columns_of, delimiter_of, existing
from octavolt.data.format import Format
from octavolt.data.pictures import FilePictures, Names, packed
from octavolt.data.splits import TRAIN, Found, divided, naturally, split_index
from octavolt.errors import OctavoltError
from octavolt.units import counted

SUFFIXES = (".csv", ".tsv", ".txt", ".lst")
SNIFFED_LINES = 20


def recognises(source: str) -> bool:
    """Tell whether the source is a file named as a table of text."""
    path = Path(source).expanduser()
    return path.suffix.lower() in SUFFIXES and path.is_file()


def open_manifest(source: str, seed: int) -> DataSet:
    """Return the pictures that the table lists; a path is relative to the table's folder."""
    path = Path(source).expanduser()
    try:
        with path.open(encoding=encoding_of(path), newline="") as text:
            columns, found, faults = read(path, text)
    except UnicodeError as error:
        raise OctavoltError(
            f"'{path.name}' is no UTF-8 text from line {first_foreign_line(path)} on. Save it as "
            "UTF-8; spreadsheets call that 'CSV UTF-8'."
        ) from error
    except csv.Error as error:
        raise OctavoltError(f"'{path.name}' is no table: {error}. Save it as CSV again.") from error
    except OSError as error:
        raise OctavoltError(f"'{path.name}' can't be read: {error.strerror}.") from error
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="manifest",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=(*columns.notes, *division.notes),
        root=path,
    )


def encoding_of(path: Path) -> str:
    """Return UTF-16 if its mark stands at the beginning, as spreadsheets write it; else UTF-8."""
    with path.open("rb") as file:
        beginning = file.read(2)
    wide = beginning in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "utf-16" if wide else "utf-8-sig"


def first_foreign_line(path: Path) -> int:
    """Return the first line that is not UTF-8, counted from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def read(path: Path, text: TextIO) -> tuple[Columns, Found, list[Fault]]:
    """Return where things stand, the pictures with their labels, and the rows that are wrong."""
    sample = list(islice(text, SNIFFED_LINES))
    if not "".join(sample).strip():
        raise OctavoltError(
            f"'{path.name}' is empty. Give each picture a row: its path and its label."
        )
    delimiter = delimiter_of(sample)
    columns = columns_of(path, list(csv.reader(sample, delimiter=delimiter)))
    text.seek(0)
    codes: dict[str, int] = {}
    faults: list[Fault] = []
    rows = good_rows(path, csv.reader(text, delimiter=delimiter), columns, codes, faults)
    names, numbers = packed(rows, columns=2)
    if len(numbers) == 0:
        raise OctavoltError(no_rows(path, faults))
    if not np.any(numbers[:, 1] == TRAIN):
        raise OctavoltError(
            f"No row of '{path.name}' is of the training split. Write 'train' into its column of "
            "splits for the pictures to learn from."
        )
    return columns, found_in(path.parent, names, numbers, codes), faults


def found_in(
    folder: Path, names: Names, numbers: Int64[np.ndarray, "rows 2"], codes: dict[str, int]
) -> Found:
    """Return the pictures, with the classes in natural order instead of that of appearance."""
    classes = naturally(codes)
    rank = {name: place for place, name in enumerate(classes)}
    label_of_code = np.array([rank[name] for name in codes], np.int64)
    return Found(
        build=partial(FilePictures, folder, names),
        names=classes,
        labels=label_of_code[numbers[:, 0]],
        split_of=numbers[:, 1],
    )


def good_rows(
    path: Path, table: Any, columns: Columns, codes: dict[str, int], faults: list[Fault]
) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    """Yield path, code of the label and split of each good row; add a fault for each other."""
    header_awaited = columns.has_header
    lines_done = 0
    for row in table:
        # A quoted cell may hold line breaks: a row is named by its first line.
        line, lines_done = lines_done + 1, table.line_num
        if not any(cell.strip() for cell in row):
            continue
        if header_awaited:
            header_awaited = False
            continue
        wrong = problem_of(row, columns)
        picture = None if wrong else existing(path.parent, row[columns.path])
        if wrong or picture is None:
            kind = "wrong-row" if wrong else "missing-file"
            problem = wrong or f"there is no file '{row[columns.path].strip()}'"
            faults.append(
                Fault(kind=kind, file=path.name, line=line, problem=problem, damaged=True)
            )
            continue
        label = codes.setdefault(row[columns.label].strip(), len(codes))
        split = TRAIN if columns.split is None else split_index(row[columns.split])
        yield os.fsencode(picture), (label, TRAIN if split is None else split)


def problem_of(row: Sequence[str], columns: Columns) -> str | None:
    """Return what is wrong with a row as it stands, or None."""
    if len(row) != columns.width:
        return f"{counted(len(row), 'column')}, where the first row has {columns.width}"
    if not row[columns.path].strip():
        return "the path is empty"
    if not row[columns.label].strip():
        return "the label is empty"
    if columns.split is not None and split_index(row[columns.split]) is None:
        return f"the split '{row[columns.split].strip()}' is not train, val or test"
    return None


def no_rows(path: Path, faults: Sequence[Fault]) -> str:
    """Return the message for a table of which no row can be used."""
    if not faults:
        return f"'{path.name}' has a header and no rows. Give each picture a row."
    first = faults[0]
    return (
        f"None of the {counted(len(faults), 'row')} of '{path.name}' can be used; the first, line "
        f"{first.line}: {first.problem}. Paths are relative to '{path.parent}'."
    )


FORMAT = Format(
    name="manifest",
    description="a .csv, .tsv or .txt file with columns for path and label, and maybe split",
    recognises=recognises,
    open=open_manifest,
)
