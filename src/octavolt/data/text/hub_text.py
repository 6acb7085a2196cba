"""Texts of the Hugging Face Hub, or of folders that its library `datasets` reads."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from octavolt.contract import DataSet, Reading
from octavolt.data.hub import PREFIX, loaded
from octavolt.data.splits import TRAIN, split_index
from octavolt.data.text.conversations import KEYS, Heard
from octavolt.data.text.squad import FLAT, Gathered, asked_in_table
from octavolt.data.text.table_files import Record, Table
from octavolt.data.text.tables import (
    CLASSIFICATION,
    SEVERAL,
    collect,
    divided_documents,
    divided_rows,
)
from octavolt.errors import OctavoltError


def open_hub_text(source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
    """Return the data set, from the library's cache or fetched by it."""
    name, _, configuration = source.removeprefix(PREFIX).partition(":")
    tables, notes = hub_tables(name, splits_of(name, configuration or None))
    columns = tables[0][0].names or ()
    if task == "question-answering":
        return hub_questions(source, name, tables, notes, seed)
    messages = next((key for key in KEYS if key in columns), None)
    if task == "dialogue" or (task == "causal-language-modeling" and messages is not None):
        return hub_conversations(source, name, tables, notes, seed)
    labelled = task == CLASSIFICATION
    collected = collect(tables, reading, labelled=labelled)
    if not labelled:
        documents, decided = divided_documents(collected, seed=seed)
        return DataSet(
            source=source,
            format="hub",
            classes=(),
            splits=documents,
            faults=tuple(collected.faults),
            notes=(*notes, *collected.notes, *decided),
        )
    division = divided_rows(collected, seed=seed)
    return DataSet(
        source=source,
        format="hub",
        classes=division.classes,
        splits=division.splits,
        faults=(*collected.faults, *division.faults),
        notes=(*notes, *collected.notes, *division.notes),
        task=SEVERAL if collected.several else CLASSIFICATION,
    )


def splits_of(name: str, configuration: str | None) -> Mapping[str, Any]:
    """Return the splits by their names."""
    return loaded(
        name,
        configuration,
        example="rajpurkar/squad",
        instead="files elsewhere and give their path",
    )


def hub_tables(
    name: str, splits: Mapping[str, Any]
) -> tuple[list[tuple[Table, int]], tuple[str, ...]]:
    """Return the splits that have a use, train first, and what was decided on the others."""
    known = {title: split_index(title) for title in splits}
    notes = tuple(
        f"The split '{title}' is not used." for title, index in known.items() if index is None
    )
    if len(splits) == 1 and notes:
        known, notes = dict.fromkeys(splits, TRAIN), ()
    tables = [
        (hub_table(title, splits[title]), index)
        for title, index in known.items()
        if index is not None and len(splits[title]) > 0
    ]
    tables.sort(key=lambda one: one[1])
    if not tables or tables[0][1] != TRAIN:
        raise OctavoltError(
            f"The data set '{name}' has no training split, only {', '.join(splits)}. Name one that "
            "has."
        )
    return tables, notes


def hub_table(title: str, rows: Any) -> Table:
    """Return one split as a table whose rows are counted from 0, as the Hub shows them."""
    return Table(
        file=title,
        names=tuple(rows.column_names),
        records=partial(hub_records, rows),
        class_names={
            column: list(kind.names)
            for column, kind in rows.features.items()
            if getattr(kind, "names", None)
        },
    )


def hub_records(rows: Any) -> Iterator[Record]:
    """Yield the rows as Arrow maps them from disk."""
    names = rows.column_names
    for number, row in enumerate(rows):
        yield Record(line=number, cells=tuple(row[name] for name in names))


def hub_questions(
    source: str, name: str, tables: list[tuple[Table, int]], notes: tuple[str, ...], seed: int
) -> DataSet:
    """Return the questions of a data set like SQuAD."""
    check_columns(name, tables[0][0], FLAT)
    gathered = Gathered()
    for one, split in tables:
        gathered.read(one.file, split, asked_in_table(one))
    splits, decided = gathered.splits(seed)
    return DataSet(
        source=source,
        format="hub",
        classes=(),
        splits=splits,
        faults=tuple(gathered.faults),
        notes=(*notes, *decided),
        task="question-answering",
    )


def hub_conversations(
    source: str, name: str, tables: list[tuple[Table, int]], notes: tuple[str, ...], seed: int
) -> DataSet:
    """Return the conversations of a data set with a column of messages."""
    key = next((key for key in KEYS if key in (tables[0][0].names or ())), "messages")
    check_columns(name, tables[0][0], (key,))
    heard = Heard()
    for one, split in tables:
        heard.files.append(one.file)
        for record in one.records():
            row = dict(zip(one.names or (), record.cells, strict=True))
            heard.add(record.line, split, row)
    splits, decided = heard.splits(seed)
    return DataSet(
        source=source,
        format="hub",
        classes=(),
        splits=splits,
        faults=tuple(heard.faults),
        notes=(*notes, *decided),
        task="dialogue",
    )


def check_columns(name: str, one: Table, wanted: tuple[str, ...]) -> None:
    """Raise unless a table has those columns."""
    missing = [column for column in wanted if column not in (one.names or ())]
    if missing:
        raise OctavoltError(
            f"The data set '{name}' has no column '{missing[0]}'; its columns: "
            f"{', '.join(one.names or ())}. This task needs {', '.join(wanted)}."
        )
