"""Which columns of a table hold the text, the label and the split: said, named, or looked at."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from octavolt.contract import Reading
from octavolt.data.columns import SPLITS, first_of, split_column
from octavolt.data.text.table_files import Table, sampled
from octavolt.errors import OctavoltError, nearest

TEXTS = (
    *("text", "sentence", "question", "review", "content", "query", "utterance", "body"),
    *("comment", "document", "tweet", "message", "article", "description", "title"),
    *("文本", "内容", "评论", "句子", "正文"),
)
PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
)
LABELS = (
    *("label", "labels", "category", "class", "intent", "sentiment", "target", "label_name"),
    *("class_name", "topic", "emotion", "标签", "类别", "分类", "意图", "情感"),
)
KNOWN = {*TEXTS, *LABELS, *(name for pair in PAIRS for name in pair)}
FEWEST_LOOKED_AT = 4
"""Rows, below which values that recur say nothing."""


@dataclass(frozen=True, kw_only=True)
class TextColumns:
    """Where things stand in a row, counted from 0."""

    width: int
    texts: tuple[int, ...]
    """One, or the two of a pair."""
    label: int | None
    split: int | None
    has_header: bool
    class_names: Sequence[str] = ()
    """What the numbers in the column of labels stand for, where the file says so."""
    notes: tuple[str, ...] = field(default=())


def text_columns(
    table: Table, reading: Reading, *, labelled: bool, like: TextColumns | None = None
) -> TextColumns:
    """Return where things stand; `like` is of a file of the same data set, read before.

    Raises `OctavoltError`, naming the columns that there are, if it is not clear.
    """
    rows = [tuple(row.cells) for row in sampled(table)]
    if not rows:
        first = next(table.records(), None)
        why = f"; line {first.line}: {first.problem}" if first else ""
        raise OctavoltError(f"No row of '{table.file}' can be read{why}. Give each text a row.")
    if table.names is not None:
        return with_header(table, table.names, rows, reading, labelled=labelled)
    if names_columns(rows, reading):
        names = tuple(cell.strip() for cell in rows[0])
        return with_header(table, names, rows[1:], reading, labelled=labelled)
    if like is not None and not like.has_header and like.width == len(rows[0]):
        return like
    return without_header(table, rows, reading, labelled=labelled)


def names_columns(rows: Sequence[tuple[Any, ...]], reading: Reading) -> bool:
    """Tell whether the first row holds names: ones that are known or asked for, and only there."""
    asked = [*asked_names(reading.text_column), *asked_names(reading.label_column)]
    for place, cell in enumerate(rows[0]):
        name = cell.strip()
        below = {row[place] for row in rows[1:] if len(row) > place}
        if cell not in below and (name.lower() in KNOWN or name in asked):
            return True
    return False


def asked_names(said: str | None) -> list[str]:
    """Return the columns that the user named."""
    return [one.strip() for one in said.split(",")] if said else []


def with_header(
    table: Table,
    names: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    reading: Reading,
    *,
    labelled: bool,
) -> TextColumns:
    """Return where things stand in a table whose columns have names."""
    lower = [name.strip().lower() for name in names]
    label = labels_place(table, names, reading) if labelled else None
    split, split_notes = split_column(first_of(SPLITS, lower), [names, *map(shown_cells, rows)])
    taken = [place for place in (label, split) if place is not None]
    texts = texts_place(table, names, rows, reading, taken)
    if label in texts:
        raise OctavoltError(
            f"'{table.file}': texts and labels would both be read from '{names[label]}'. Name "
            "another with --text-column or --label-column."
        )
    used = " and ".join(f"'{names[place]}'" for place in texts)
    columns = "columns" if len(texts) > 1 else "column"
    note = f"Texts are read from the {columns} {used}"
    note += f", labels from '{names[label]}'." if label is not None else "."
    return TextColumns(
        width=len(names),
        texts=texts,
        label=label,
        split=split,
        has_header=table.names is None,
        class_names=table.class_names.get(names[label], ()) if label is not None else (),
        notes=(note, *split_notes),
    )


def shown_cells(row: tuple[Any, ...]) -> list[str]:
    """Return the cells of a row as text."""
    return [str(cell) for cell in row]


def labels_place(table: Table, names: Sequence[str], reading: Reading) -> int | None:
    """Return the column of labels; None if none is named as one."""
    if reading.label_column is not None:
        return column(table, names, reading.label_column, "--label-column")
    return first_of(LABELS, [name.strip().lower() for name in names])


def texts_place(
    table: Table,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    reading: Reading,
    taken: Sequence[int],
) -> tuple[int, ...]:
    """Return the column of texts, or the two of a pair."""
    if reading.text_column is not None:
        asked = asked_names(reading.text_column)
        if len(asked) > 2:
            raise OctavoltError(
                f"--text-column names {len(asked)} columns, '{reading.text_column}'; a sample is "
                "one text or a pair. Name one or two."
            )
        return tuple(column(table, names, one, "--text-column") for one in asked)
    lower = [name.strip().lower() for name in names]
    for pair in PAIRS:
        if all(name in lower for name in pair):
            return tuple(lower.index(name) for name in pair)
    place = first_of(TEXTS, [name if at not in taken else "" for at, name in enumerate(lower)])
    if place is not None:
        return (place,)
    rest = [
        place
        for place in range(len(names))
        if place not in taken and all(isinstance(row[place], str) for row in rows if row[place:])
    ]
    if len(rest) == 1:
        return (rest[0],)
    raise OctavoltError(
        f"'{table.file}' has no column for the text among {', '.join(names)}. Name it with "
        f"--text-column{near_hint(names, TEXTS)}."
    )


def near_hint(names: Sequence[str], known: Sequence[str]) -> str:
    """Return which of the columns is named nearly as one that is known, as part of a sentence."""
    near = next((name for name in names if nearest(name, known)), None)
    return f", such as --text-column '{near}'" if near else ""


def column(table: Table, names: Sequence[str], said: str, flag: str) -> int:
    """Return the column that the user named, or numbered from 1."""
    if said in names:
        return list(names).index(said)
    lower = [name.strip().lower() for name in names]
    if said.strip().lower() in lower:
        return lower.index(said.strip().lower())
    if said.strip().isdecimal() and 1 <= int(said) <= len(names):
        return int(said) - 1
    near = nearest(said, names)
    guess = f" Did you mean '{near}'?" if near else ""
    raise OctavoltError(
        f"'{table.file}' has no column '{said}', which {flag} names.{guess} It has "
        f"{', '.join(names)}."
    )


def without_header(
    table: Table, rows: Sequence[tuple[Any, ...]], reading: Reading, *, labelled: bool
) -> TextColumns:
    """Return where things stand in a table from its first row on, by what the columns hold."""
    width = len(rows[0])
    same = [row for row in rows if len(row) == width]
    numbers = tuple(str(place + 1) for place in range(width))
    for said in (*asked_names(reading.text_column), *asked_names(reading.label_column)):
        if not said.isdecimal():
            raise OctavoltError(
                f"'{table.file}' has no column '{said}': its first line, "
                f"{', '.join(rows[0])[:100]}, names none so. Give the number of the column, from 1."
            )
    split = next((at for at in range(width) if holds_splits(same, at)), None)
    label = label_by_looking(table, same, numbers, reading, split) if labelled else None
    if reading.text_column is not None:
        texts = texts_place(table, numbers, same, reading, ())
    else:
        rest = [place for place in range(width) if place not in (label, split)]
        if not rest:
            raise OctavoltError(no_label(table, rows[0]))
        texts = (max(rest, key=lambda place: sum(len(row[place]) for row in same)),)
    header = label is not None and is_header(same, label)
    return TextColumns(
        width=width,
        texts=texts,
        label=label,
        split=split,
        has_header=header,
        notes=(looked_note(table, texts, label, header=header),),
    )


def holds_splits(rows: Sequence[tuple[Any, ...]], place: int) -> bool:
    """Tell whether a column holds nothing but 'train', 'val' and 'test'."""
    values = {row[place].strip().lower() for row in rows}
    return "train" in values and values <= {"train", "val", "valid", "validation", "dev", "test"}


def label_by_looking(
    table: Table,
    rows: Sequence[tuple[Any, ...]],
    numbers: Sequence[str],
    reading: Reading,
    split: int | None,
) -> int:
    """Return the column with the fewest different values, of those whose values recur."""
    if reading.label_column is not None:
        return column(table, numbers, reading.label_column, "--label-column")
    texts = {int(one) - 1 for one in asked_names(reading.text_column)}
    places = [place for place in range(len(numbers)) if place not in texts and place != split]
    kinds = {place: len({row[place] for row in rows}) for place in places}
    recurring = [place for place in places if 1 < kinds[place] <= len(rows) / 2]
    if len(places) == 1 and texts:
        return places[0]
    if len(rows) < FEWEST_LOOKED_AT or not recurring or len(numbers) < 2:
        raise OctavoltError(no_label(table, rows[0]))
    return min(recurring, key=lambda place: (kinds[place], sum(len(row[place]) for row in rows)))


def no_label(table: Table, first: Sequence[str]) -> str:
    """Return the message for a table without a header in which no column looks like labels."""
    return (
        f"'{table.file}' begins with {', '.join(first)[:200]}: it is not clear which column holds "
        "the texts and which the labels. Add a first line that says 'text' and 'label', or give "
        "their numbers with --text-column and --label-column."
    )


def is_header(rows: Sequence[tuple[Any, ...]], label: int) -> bool:
    """Tell whether the first row holds names after all: short words, and a label of its own."""
    words = all(re.fullmatch(r"\w[\w .-]{0,30}", cell.strip()) for cell in rows[0])
    below = [row[label] for row in rows[1:]]
    return words and rows[0][label] not in below and len(set(below)) <= len(below) / 2


def looked_note(table: Table, texts: Sequence[int], label: int | None, *, header: bool) -> str:
    """Return the sentence on what was decided by looking."""
    which = " and ".join(str(place + 1) for place in texts)
    where = f"texts are read from column {which}"
    where += f", labels from column {label + 1}" if label is not None else ""
    if header:
        return f"The first line of '{table.file}' is taken for names of columns: {where}."
    return f"'{table.file}' has no header: {where}."
