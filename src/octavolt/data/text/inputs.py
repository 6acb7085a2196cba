"""What `predict` is asked: lines of text, rows of tables, questions with their contexts."""

import glob
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from octavolt.contract import Fault, Input, Reading
from octavolt.data.text import squad
from octavolt.data.text.encodings import lines, text_file
from octavolt.data.text.samples import Question, Row
from octavolt.data.text.table_columns import text_columns
from octavolt.data.text.table_files import table
from octavolt.data.text.tables import is_table, rows_below
from octavolt.errors import OctavoltError

QUESTIONS = "question-answering"


def read_inputs(named: Sequence[str], *, task: str, reading: Reading) -> Iterator[Input]:
    """Yield the texts that files, folders, patterns and '-' hold, in order, as they are read.

    A plain file holds a text a line, a table a text a row. What can't be read is an input with an
    error, so that the others still are answered.
    """
    for one in files_meant(named):
        if one == "-":
            yield from from_lines("standard input", standard_lines(), task)
            continue
        found = False
        try:
            for each in from_file(Path(one), one, task=task, reading=reading):
                found = True
                yield each
            if not found:
                yield Input(name=one, content=ValueError("the file holds no text"))
        except OSError as error:
            yield Input(name=one, content=ValueError(error.strerror or str(error)))
        except OctavoltError as error:
            yield Input(name=one, content=ValueError(str(error)))


def files_meant(named: Iterable[str]) -> Iterator[str]:
    """Yield the files that paths, folders and patterns mean; a folder's are sorted."""
    for one in named:
        path = Path(one)
        if one != "-" and one and path.is_dir():
            inside = sorted(str(file) for file in path.rglob("*") if file.is_file())
            yield from (file for file in inside if not Path(file).name.startswith("."))
        elif one != "-" and not path.exists() and glob.has_magic(one):
            yield from sorted(glob.glob(one, recursive=True)) or [one]  # noqa: PTH207  (** and /)
        else:
            yield one


def standard_lines() -> Iterator[str]:
    """Yield the lines of standard input as UTF-8; bytes that are not become a mark."""
    with io.TextIOWrapper(
        os.fdopen(os.dup(0), "rb"), encoding="utf-8-sig", errors="replace", newline=None
    ) as text:
        for line in text:
            yield line.rstrip("\n")


def from_lines(name: str, texts: Iterable[str], task: str) -> Iterator[Input]:
    """Yield a text a line; a question stands before its context, with a tab between."""
    for number, line in enumerate(texts, start=1):
        place = f"{name}:{number}"
        if task == QUESTIONS:
            question, _, context = line.partition("\t")
            yield asked(place, question, context)
        elif line.strip():
            yield Input(name=place, content=line)
        else:
            yield Input(name=place, content=ValueError("the line is empty"))


def asked(name: str, question: str, context: str, identity: str | None = None) -> Input:
    """Return a question, or what it lacks."""
    if not question.strip() or not context.strip():
        lacking = "question" if not question.strip() else "context"
        return Input(
            name=name,
            content=ValueError(
                f"there is no {lacking}: a line holds a question, a tab, and the context"
            ),
        )
    return Input(
        name=name,
        content=Question(identity=identity or name, question=question, context=context, answers=()),
    )


def from_file(path: Path, name: str, *, task: str, reading: Reading) -> Iterator[Input]:
    """Yield what a file holds."""
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OctavoltError("it is no ordinary file")
    if task == QUESTIONS and path.suffix.lower() in (".json", ".jsonl", ".csv", ".tsv", ".parquet"):
        yield from questions_in(path, name)
    elif is_table(path):
        yield from rows_in(path, name, task=task, reading=reading)
    else:
        yield from from_lines(name, lines(path.parent, text_file(path.parent, path.name)), task)


def questions_in(path: Path, name: str) -> Iterator[Input]:
    """Yield the questions of a SQuAD file or of a table; answers in it are passed over."""
    for one in asked_in(path):
        place = f"{name}:{one.line}"
        if isinstance(one, squad.Asked):
            identity = None if one.identity is None else str(one.identity)
            yield asked(place, str(one.question or ""), str(one.context or ""), identity)
        else:
            yield Input(name=place, content=ValueError(one.problem))


def asked_in(path: Path) -> Iterator[squad.Asked | Fault]:
    """Yield the questions of a file as they stand in it."""
    if path.suffix.lower() in (".json", ".jsonl"):
        yield from squad.asked_in_json(path.parent, text_file(path.parent, path.name))
        return
    found = table(path.parent, path.name)
    records = found.records()
    names = found.names or tuple(str(cell).strip().lower() for cell in next(records).cells)
    for record in records:
        if record.problem is not None:
            problem = record.problem
            yield Fault(kind="wrong-row", file=path.name, line=record.line, problem=problem)
        else:
            yield squad.flat(record.line, dict(zip(names, record.cells, strict=False)))


def rows_in(path: Path, name: str, *, task: str, reading: Reading) -> Iterator[Input]:
    """Yield the texts of a table's rows; its labels are passed over."""
    one = table(path.parent, path.name)
    columns = text_columns(one, reading, labelled=False)
    for record in rows_below(one, columns):
        place = f"{name}:{record.line}"
        if record.problem is not None:
            yield Input(name=place, content=ValueError(record.problem))
            continue
        texts = tuple(str(record.cells[place] or "") for place in columns.texts)
        yield Input(name=place, content=Row(texts=texts, labels=()))
