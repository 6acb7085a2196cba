"""Formats of text, found by looking at what the user named. A new one is a line here."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from octavolt.contract import DataSet, Reading
from octavolt.data.columns import PICTURE_SUFFIXES, is_picture
from octavolt.data.folder import content, files_below, layout_of
from octavolt.data.formats import unreadable
from octavolt.data.hub import PREFIX
from octavolt.data.text import conversations, documents, squad, tables
from octavolt.data.text.docstrings import open_docstrings
from octavolt.data.text.encodings import NotTextError
from octavolt.data.text.folders import open_text_folder
from octavolt.data.text.hub_text import open_hub_text
from octavolt.data.text.table_columns import text_columns
from octavolt.data.text.table_files import sampled, table
from octavolt.errors import OctavoltError, UnknownNameError

CLASSIFICATION = "text-classification"
SEVERAL = "multi-label-text-classification"
QUESTIONS = "question-answering"
MASKED = "masked-language-modeling"
CAUSAL = "causal-language-modeling"
DIALOGUE = "dialogue"
TASKS = (CLASSIFICATION, SEVERAL, QUESTIONS, MASKED, CAUSAL, DIALOGUE)
MODELING = (MASKED, CAUSAL)
LOOKED_AT = 20
"""Files of a folder, of which most tell what it holds."""


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """One row of the table of formats."""

    name: str
    description: str
    """One line for messages."""
    tasks: tuple[str, ...]
    recognises: Callable[[str], bool]
    """Takes the source as the user named it; looks at a beginning."""
    open: Callable[[str, str, int, Reading], DataSet]
    """Takes source, task, seed and reading."""


def is_hub(source: str) -> bool:
    """Tell whether the source begins with 'hub:'."""
    return source.startswith(PREFIX)


def has_tables(source: str) -> bool:
    """Tell whether the source is a table, or a folder with tables named as splits."""
    path = Path(source).expanduser()
    try:
        return tables.files_of(path) is not None
    except OSError:
        return False


def is_folder(source: str) -> bool:
    """Tell whether the source is a folder."""
    return Path(source).expanduser().is_dir()


def is_plain(source: str) -> bool:
    """Tell whether the source is a folder, or a file named as plain text or as nothing known."""
    path = Path(source).expanduser()
    return path.is_dir() or documents.is_text(path) or (path.is_file() and not path.suffix)


FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        name="demo",
        description="the docstrings of Python's standard library",
        tasks=TASKS,
        recognises=lambda source: source == "demo",
        open=lambda _source, task, seed, _reading: open_docstrings(task=task, seed=seed),
    ),
    TextFormat(
        name="hub",
        description="hub:NAME or hub:NAME:CONFIG, a data set of the Hugging Face Hub",
        tasks=TASKS,
        recognises=is_hub,
        open=lambda source, task, seed, reading: open_hub_text(
            source, task=task, seed=seed, reading=reading
        ),
    ),
    TextFormat(
        name="squad",
        description="a .json file of SQuAD, JSON lines or Parquet with question, context and "
        "answers, or a folder with such files for train and dev",
        tasks=(QUESTIONS,),
        recognises=squad.recognises,
        open=lambda source, _task, seed, _reading: squad.open_questions(source, seed=seed),
    ),
    TextFormat(
        name="conversations",
        description="a .jsonl file, or a folder with such files for train and val, of objects with "
        "a list 'messages'",
        tasks=(CAUSAL, DIALOGUE),
        recognises=conversations.recognises,
        open=lambda source, _task, seed, _reading: conversations.open_conversations(
            source, seed=seed
        ),
    ),
    TextFormat(
        name="table",
        description="a .csv, .tsv, .jsonl or .parquet file with columns for text and label, or a "
        "folder with such files for train, val and test",
        tasks=(CLASSIFICATION, SEVERAL),
        recognises=has_tables,
        open=lambda source, _task, seed, reading: tables.open_rows(
            source, seed=seed, reading=reading
        ),
    ),
    TextFormat(
        name="text-folder",
        description="one folder of text files a class, with or without train, val and test folders "
        "around them",
        tasks=(CLASSIFICATION, SEVERAL),
        recognises=is_folder,
        open=lambda source, _task, seed, _reading: open_text_folder(source, seed=seed),
    ),
    TextFormat(
        name="text-table",
        description="a .csv, .tsv, .jsonl or .parquet file with a column of text, or a folder with "
        "such files for train, val and test",
        tasks=MODELING,
        recognises=has_tables,
        open=lambda source, _task, seed, reading: tables.open_documents(
            source, seed=seed, reading=reading
        ),
    ),
    TextFormat(
        name="text",
        description=f"a file of text ({', '.join(documents.SUFFIXES)}), or a folder of such files",
        tasks=MODELING,
        recognises=is_plain,
        open=lambda source, _task, seed, _reading: documents.open_plain(source, seed=seed),
    ),
)
"""The first of a task's formats that recognises a source opens it."""


def open_text(source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
    """Return the data set of that name for a task. Raises `OctavoltError` if there is none."""
    if task not in TASKS:
        raise UnknownNameError("task of text", task, TASKS)
    for one in formats_of(task):
        if one.recognises(source):
            try:
                return one.open(source, task, seed, reading)
            except NotTextError:
                raise
            except OctavoltError as error:
                raise OctavoltError(f"{error}{other_task(source, task)}") from error
            except OSError as error:
                raise OctavoltError(
                    f"'{source}' can't be read: {error.strerror or error}. Make it readable, or "
                    "name another."
                ) from error
    raise OctavoltError(why_not(source, task))


def formats_of(task: str) -> list[TextFormat]:
    """Return the formats that a task's data may be in, in the order in which they are tried."""
    return [one for one in FORMATS if task in one.tasks]


def why_not(source: str, task: str) -> str:
    """Return the message for a source that no format of the task recognises."""
    known = "; ".join(f"{one.name}: {one.description}" for one in formats_of(task))
    unknown = f"'{source}' is in no format that octavolt reads for {task}. It reads {known}."
    return unreadable(source) or f"{unknown}{other_task(source, task)}"


def other_task(source: str, task: str) -> str:
    """Return the sentence on the task that the data look made for, where it is another."""
    kind = kind_of(source)
    if kind is None or kind == task or {kind, task} <= {CLASSIFICATION, SEVERAL}:
        return ""
    if kind == CAUSAL:
        return "" if task == MASKED else f" For a language model of BERT's kind: --task {MASKED}."
    return f" It looks like data for --task {kind}."


def kind_of(source: str) -> str | None:
    """Return the task that the data look made for, or None if they look like pictures.

    Nothing is fetched, and of files only beginnings and encodings are looked at.
    """
    path = Path(source).expanduser()
    if source == "demo" or is_hub(source) or not path.exists():
        return None
    try:
        if squad.recognises(source):
            return QUESTIONS
        if conversations.recognises(source):
            return DIALOGUE
        return kind_of_texts(source, path)
    except OSError:
        return None


def kind_of_texts(source: str, path: Path) -> str | None:
    """Return the task of data that are neither questions nor conversations."""
    if has_tables(source):
        return kind_of_table(path)
    if path.is_dir():
        return kind_of_folder(path)
    return CAUSAL if is_plain(source) and not lists_pictures(path) else None


def kind_of_table(path: Path) -> str | None:
    """Return what a table is for, by its columns; None if its rows name pictures."""
    files = tables.files_of(path)
    assert files is not None, path
    root = path if path.is_dir() else path.parent
    try:
        one = table(root, files.files[0][0])
        rows = sampled(one)
        cells = [str(cell) for row in rows[:LOOKED_AT] for cell in row.cells]
        if sum(is_picture(root, cell[:MOST_PATH]) for cell in cells) * 2 >= len(rows[:LOOKED_AT]):
            return None
        labelled = text_columns(one, Reading(), labelled=True).label is not None
    except OctavoltError:
        return CAUSAL if one_text_column(path) else CLASSIFICATION
    return CLASSIFICATION if labelled else CAUSAL


MOST_PATH = 255
"""Characters of a cell that may be a path: asking for a longer file name is an error."""


def one_text_column(path: Path) -> bool:
    """Tell whether the table has a column of text for language modeling."""
    files = tables.files_of(path)
    assert files is not None, path
    root = path if path.is_dir() else path.parent
    try:
        text_columns(table(root, files.files[0][0]), Reading(), labelled=False)
    except OctavoltError:
        return False
    return True


def kind_of_folder(path: Path) -> str | None:
    """Return what a folder is for, by most of its first files; None if they are no text."""
    start = os.fsencode(path)
    counts = dict.fromkeys(("text", "picture", "other"), 0)
    for count, name in enumerate(files_below(start, b"", set(), []), start=1):
        suffix = Path(os.fsdecode(name)).suffix.lower()
        known: Mapping[bool, str] = {
            suffix in documents.SUFFIXES or not suffix: "text",
            suffix in PICTURE_SUFFIXES: "picture",
        }
        counts[known.get(True, "other")] += 1
        if count >= LOOKED_AT:
            break
    if counts["text"] <= counts["picture"] + counts["other"] // 2 or counts["text"] == 0:
        return None
    if not content(start).folders:
        return CAUSAL
    try:
        layout_of(start, "text")
    except OctavoltError:
        return CAUSAL
    return CLASSIFICATION


def lists_pictures(path: Path) -> bool:
    """Tell whether a file of text is a table of pictures: most of its first lines name one."""
    try:
        with path.open(encoding="utf-8", errors="replace") as text:
            first = [line for _, line in zip(range(LOOKED_AT), text, strict=False) if line.strip()]
    except OSError:
        return False
    named = sum(any(suffix in line.lower() for suffix in PICTURE_SUFFIXES) for line in first)
    return named * 2 > len(first)
