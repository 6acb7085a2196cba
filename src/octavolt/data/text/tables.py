"""Tables of texts with labels, or of texts alone: one file, or a folder with a file a split."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from octavolt.contract import DataSet, Fault, Reading, Samples
from octavolt.data.splits import (
    SPLITS,
    TEST,
    TRAIN,
    VAL,
    Division,
    Found,
    divided,
    held_out,
    naturally,
    split_index,
    too_few,
)
from octavolt.data.text.samples import (
    Packing,
    Places,
    Ragged,
    RowDocuments,
    Rows,
    RowStore,
    ragged,
    whole,
)
from octavolt.data.text.split_files import SplitFiles, split_files
from octavolt.data.text.table_columns import TextColumns, text_columns
from octavolt.data.text.table_files import FORMATS, SUFFIXES, Record, Table, table
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_count

CLASSIFICATION = "text-classification"
SEVERAL = "multi-label-text-classification"
NO_LABEL = "the label is missing"
NO_TEXT = "the text is empty"
MOST_SHOWN = 40
"""Characters of a cell in a message."""


class Collected:
    """Good rows as they are read, and a fault for each other."""

    def __init__(self) -> None:
        self.texts = Packing()
        self.width = 0
        self.codes: dict[str, int] = {}
        self.labels: list[tuple[int, ...]] = []
        self.several = False
        self.files: list[str] = []
        self.file_of = array("q")
        self.lines = array("q")
        self.split_of = array("q")
        self.faults: list[Fault] = []
        self.notes: list[str] = []

    def places(self) -> Places:
        """Return where the rows stand."""
        return Places(files=tuple(self.files), file_of=whole(self.file_of), lines=whole(self.lines))

    def splits(self) -> Int64[np.ndarray, " rows"]:
        """Return the split of each row, as an index into `SPLITS`."""
        return whole(self.split_of)


@dataclass(frozen=True, kw_only=True)
class Good:
    """What a row holds."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    several: bool
    split: int | None


def is_table(path: Path) -> bool:
    """Tell whether a path is a file named as a table."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def files_of(path: Path) -> SplitFiles | None:
    """Return the tables that a path means: itself, or those of a folder."""
    if path.is_dir():
        return split_files(path, SUFFIXES)
    if is_table(path):
        return SplitFiles(files=((path.name, TRAIN),), notes=())
    return None


def open_rows(source: str, *, seed: int, reading: Reading) -> DataSet:
    """Return texts and their classes. Raises `OctavoltError` if they can't be found."""
    if reading.label_separator == "":
        raise OctavoltError(
            "--label-separator is empty. Give what stands between labels, such as ';'."
        )
    root, files = located(source)
    collected = collect(tables_in(root, files), reading, labelled=True)
    division = divided_rows(collected, seed=seed)
    return DataSet(
        source=source,
        format=FORMATS[Path(files.files[0][0]).suffix.lower()],
        classes=division.classes,
        splits=division.splits,
        faults=(*collected.faults, *division.faults),
        notes=(*files.notes, *collected.notes, *division.notes),
        task=SEVERAL if collected.several else CLASSIFICATION,
        root=root,
    )


def open_documents(source: str, *, seed: int, reading: Reading) -> DataSet:
    """Return the texts of a table as documents for language modeling. They are held in memory."""
    root, files = located(source)
    collected = collect(tables_in(root, files), reading, labelled=False)
    splits, notes = divided_documents(collected, seed=seed)
    return DataSet(
        source=source,
        format=FORMATS[Path(files.files[0][0]).suffix.lower()],
        classes=(),
        splits=splits,
        faults=tuple(collected.faults),
        notes=(*files.notes, *collected.notes, *notes),
        root=root,
    )


def divided_documents(
    collected: Collected, *, seed: int
) -> tuple[dict[str, RowDocuments], list[str]]:
    """Return the splits of texts that are documents each, and what was decided."""
    places, texts = collected.places(), collected.texts.packed()
    names = [places.name(row) for row in range(len(collected.lines))]
    rows_of, notes = split_by_name(names, collected.splits(), seed, "text", with_test=True)
    return {split: RowDocuments(texts, places, rows) for split, rows in rows_of.items()}, notes


def tables_in(root: Path, files: SplitFiles) -> list[tuple[Table, int]]:
    """Return the tables of a folder with the split of each."""
    return [(table(root, file), split) for file, split in files.files]


def located(source: str) -> tuple[Path, SplitFiles]:
    """Return the folder of a data set and its tables."""
    path = Path(source).expanduser()
    files = files_of(path)
    if files is None:
        raise OctavoltError(
            f"'{source}' holds no table named as a split, such as train.csv. Name the file itself."
        )
    return (path if path.is_dir() else path.parent), files


def collect(tables: Sequence[tuple[Table, int]], reading: Reading, *, labelled: bool) -> Collected:
    """Return the rows of tables, of which the first is to train on.

    Raises `OctavoltError` if nothing can be used.
    """
    collected = Collected()
    columns: TextColumns | None = None
    for one, split in tables:
        collected.notes += one.notes
        columns = text_columns(one, reading, labelled=labelled, like=columns)
        if labelled and columns.label is None:
            if split == TRAIN:
                raise OctavoltError(without_labels(one))
            collected.notes.append(f"{one.file} has no labels and is not used.")
            continue
        read_table(one, columns, split, reading.label_separator, collected)
    if not any(index == TRAIN for index in collected.split_of):
        raise OctavoltError(nothing_to_train_on(tables[0][0].file, collected.faults))
    collected.notes = list(dict.fromkeys(collected.notes))
    if labelled:
        check_classes(collected, tables[0][0].file)
    return collected


def without_labels(one: Table) -> str:
    """Return the message for a table in which no column is named as one of labels."""
    if one.names is not None:
        names: Sequence[Any] = one.names
    else:
        names = next(one.records()).cells
    return (
        f"'{one.file}' has no column for the label among {', '.join(map(str, names))}. Name it "
        "with --label-column."
    )


def nothing_to_train_on(file: str, faults: Sequence[Fault]) -> str:
    """Return the message for tables without a good row of the training split."""
    if not faults:
        return f"'{file}' has no rows to train on. Give each text a row."
    first = faults[0]
    return (
        f"None of the {counted(len(faults), 'row')} of '{file}' can be used; the first, line "
        f"{first.line}: {first.problem}."
    )


def read_table(
    one: Table, columns: TextColumns, split: int, separator: str | None, into: Collected
) -> None:
    """Add the rows of a table, and a fault for each that can't be used."""
    faults: list[Fault] = []
    unlabelled = good_count = empty_count = 0
    into.width = into.width or len(columns.texts)
    if into.width != len(columns.texts):
        raise OctavoltError(
            f"'{one.file}' has {counted(len(columns.texts), 'text')} a row, another split "
            f"{into.width}. Name the columns with --text-column."
        )
    into.notes += columns.notes
    into.files.append(one.file)
    for record in rows_below(one, columns):
        good = record.problem or good_row(record, columns, separator)
        if good == NO_TEXT and columns.label is None:
            # Between documents, as the Hub's tables of lines have them; a label would be lost.
            empty_count += 1
            continue
        if isinstance(good, str):
            unlabelled += good == NO_LABEL
            kind = "empty-text" if good == NO_TEXT else "wrong-row"
            faults.append(
                Fault(kind=kind, file=one.file, line=record.line, problem=good, damaged=True)
            )
            continue
        good_count += 1
        add(into, good, record.line, split if good.split is None else good.split)
    if empty_count:
        into.notes.append(f"{one.file}: {counted(empty_count, 'empty row')} left out.")
    if split != TRAIN and good_count == 0 and unlabelled == len(faults) > 0:
        into.notes.append(f"{one.file} has no labels and is not used.")
    else:
        into.faults += faults


def rows_below(one: Table, columns: TextColumns) -> Iterator[Record]:
    """Yield the rows below the header, if there is one."""
    header_awaited = columns.has_header
    for record in one.records():
        if header_awaited:
            header_awaited = False
            continue
        yield record


def add(into: Collected, good: Good, line: int, split: int) -> None:
    """Add a good row."""
    for text in good.texts:
        into.texts.add(text)
    into.labels.append(tuple(into.codes.setdefault(name, len(into.codes)) for name in good.labels))
    into.several = into.several or good.several
    into.file_of.append(len(into.files) - 1)
    into.lines.append(line)
    into.split_of.append(split)


def good_row(record: Record, columns: TextColumns, separator: str | None) -> Good | str:
    """Return what a row holds, or what is wrong with it."""
    cells = record.cells
    if len(cells) != columns.width:
        return (
            f"{counted(len(cells), 'column')}, where the first row has {columns.width}; put a text "
            "that holds a delimiter between quotes"
        )
    texts = []
    for place in columns.texts:
        problem = text_problem(cells[place])
        if problem is not None:
            return problem
        texts.append(cells[place])
    split = None
    if columns.split is not None:
        split = split_index(str(cells[columns.split]))
        if split is None:
            return f"the split '{cells[columns.split]}' is not train, val or test"
    if columns.label is None:
        return Good(texts=tuple(texts), labels=(), several=False, split=split)
    labels = label_names(cells[columns.label], columns.class_names, separator)
    if labels is None:
        return NO_LABEL
    several = isinstance(cells[columns.label], list) or separator is not None
    return Good(texts=tuple(texts), labels=labels, several=several, split=split)


def text_problem(cell: Any) -> str | None:
    """Return what is wrong with a text, or None."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return NO_TEXT
    if not isinstance(cell, str):
        return f"the text is no text but {str(cell)[:MOST_SHOWN]}"
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        return f"character {error.start + 1} of the text is half of one (a lone surrogate)"
    return None


def label_names(
    cell: Any, class_names: Sequence[str], separator: str | None
) -> tuple[str, ...] | None:
    """Return the names of the classes in a cell, or None if the label is missing."""
    if isinstance(cell, list):
        names = [label_name(one, class_names) for one in cell]
    elif separator is not None and isinstance(cell, str):
        names = [label_name(one, class_names) for one in cell.split(separator)]
    else:
        names = [label_name(cell, class_names)]
    known = tuple(dict.fromkeys(name for name in names if name is not None))
    return known if len(known) > 0 or cell == [] else None


def label_name(cell: Any, class_names: Sequence[str]) -> str | None:
    """Return the name of a class as a cell gives it: '1' for 1, 1.0 and '1.0'; None if missing."""
    if cell is None or cell != cell:  # noqa: PLR0124 - only what is not a number differs from itself
        return None
    if class_names and isinstance(cell, int):
        return class_names[cell] if 0 <= cell < len(class_names) else None
    name = str(cell).lower() if isinstance(cell, bool) else str(cell).strip()
    return re.sub(r"^(-?\d+)\.0+$", r"\1", name) or None


def check_classes(collected: Collected, file: str) -> None:
    """Raise if the labels are quantities rather than classes."""
    counts = Counter(code for codes in collected.labels for code in codes)
    names = list(collected.codes)
    fractions = sum(count for code, count in counts.items() if is_fraction(names[code]))
    total = sum(counts.values())
    if fractions * 2 > total:
        example = next(name for name in names if is_fraction(name))
        raise OctavoltError(
            f"The labels of '{file}' are numbers such as {example}: quantities, not classes. "
            "octavolt learns classes; put the numbers into a few of them, such as 'low' and 'high'."
        )


def is_fraction(name: str) -> bool:
    """Tell whether a name is a number with something other than 0 behind its point."""
    return re.fullmatch(r"[+-]?\d*\.\d+(e[+-]?\d+)?", name, re.IGNORECASE) is not None


def divided_rows(collected: Collected, *, seed: int) -> Division:
    """Return classes and splits of rows."""
    store = RowStore(
        texts=collected.texts.packed(), width=collected.width, places=collected.places()
    )
    names = naturally(collected.codes)
    rank = {name: place for place, name in enumerate(names)}
    rank_of_code = [rank[name] for name in collected.codes]
    labels = [tuple(rank_of_code[code] for code in codes) for codes in collected.labels]
    if collected.several:
        return divided_several(store, names, labels, collected.splits(), seed)
    first = np.array([codes[0] for codes in labels], np.int64)
    found = Found(
        build=partial(Rows, store),
        names=names,
        labels=first,
        split_of=collected.splits(),
        sample="text",
    )
    return divided(found, seed=seed)


def divided_several(
    store: RowStore,
    names: Sequence[str],
    labels: Sequence[tuple[int, ...]],
    given: Int64[np.ndarray, " rows"],
    seed: int,
) -> Division:
    """Return classes and splits of rows that have several labels, or none."""
    row_names = [store.places.name(row) for row in range(len(labels))]
    rows_of, notes = split_by_name(row_names, given, seed, "text", with_test=True)
    seen = {label for row in rows_of["train"].tolist() for label in labels[row]}
    kept = [label for label in range(len(names)) if label in seen]
    place_of = {label: place for place, label in enumerate(kept)}
    classes = tuple(names[label] for label in kept)
    several = ragged([[place_of[one] for one in row if one in place_of] for row in labels])
    splits: dict[str, Samples] = {
        split: Rows(store, rows, first_labels(several, rows), several)
        for split, rows in rows_of.items()
    }
    faults = [*too_few(classes), *unknown_labels(names, labels, rows_of, seen)]
    return Division(classes=classes, splits=splits, faults=tuple(faults), notes=tuple(notes))


def first_labels(several: Ragged, rows: Int64[np.ndarray, " rows"]) -> Int64[np.ndarray, " rows"]:
    """Return the first label of each row; 0 where there is none."""
    return np.array([next(iter(several.at(row)), 0) for row in rows.tolist()], np.int64)


def unknown_labels(
    names: Sequence[str],
    labels: Sequence[tuple[int, ...]],
    rows_of: Mapping[str, Int64[np.ndarray, " _"]],
    seen: set[int],
) -> list[Fault]:
    """Return a warning for each label of val or test that train lacks: it is left out."""
    faults = []
    for split, rows in rows_of.items():
        counts = Counter(one for row in rows.tolist() for one in labels[row] if one not in seen)
        for label, count in sorted(counts.items()):
            problem = (
                f"label '{names[label]}' is not in train; left out of {counted(count, 'text')}"
            )
            faults.append(Fault(kind="class-unknown", file=split, problem=problem, stops=False))
    return faults


def split_by_name(
    names: Sequence[str],
    given: Int64[np.ndarray, " rows"],
    seed: int,
    sample: str,
    *,
    with_test: bool,
) -> tuple[dict[str, Int64[np.ndarray, " _"]], list[str]]:
    """Return the rows of each split; what is missing is drawn from the names in train, a tenth.

    Names that are equal stay together. A test split is drawn only if asked for.
    """
    split_of = given.copy()
    notes: list[str] = []
    known = set(given.tolist())
    if VAL not in known:
        wanted = (VAL, TEST) if with_test and TEST not in known else (VAL,)
        rows = np.flatnonzero(given == TRAIN)
        split_of[rows] = held_out([names[row] for row in rows.tolist()], wanted=wanted, seed=seed)
        if not np.any(split_of == TRAIN):
            raise OctavoltError(
                f"There {'is' if len(rows) == 1 else 'are'} {counted(len(rows), sample)} to train "
                f"on, too few to hold any out. Add {sample}s, or give a val split of your own."
            )
        notes.append(drawn_note(split_of, known, seed))
    if not np.any(split_of == TEST):
        notes.append("There is no test split: evaluation uses val.")
    found = {split: np.flatnonzero(split_of == index) for index, split in enumerate(SPLITS)}
    return {split: rows for split, rows in found.items() if len(rows) > 0}, notes


def drawn_note(split_of: Int64[np.ndarray, " rows"], known: set[int], seed: int) -> str:
    """Return the sentence on splits that were drawn."""
    sizes = np.bincount(split_of, minlength=3).tolist()
    what = ", ".join(
        f"{format_count(size)} {split}" for size, split in zip(sizes, SPLITS, strict=True) if size
    )
    taken = "val was taken from train" if TEST in known else "Split by octavolt"
    return f"{taken}: {what} (seed {seed})."
