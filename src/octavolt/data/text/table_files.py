"""Tables as they lie in files: CSV, TSV, JSON and Parquet, row by row with the line of each."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from octavolt.data.columns import delimiter_of
from octavolt.data.text.encodings import (
    Part,
    decoded,
    encoding_note,
    lines,
    opened,
    text_file,
)
from octavolt.errors import OctavoltError
from octavolt.units import counted

SUFFIXES = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")
"""In the order of preference, where the same data lie in several."""
FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json-lines",
    ".ndjson": "json-lines",
    ".json": "json-lines",
}
DELIMITERS = ",\t;|"
SNIFFED_LINES = 200
SNIFFED_ROWS = 1000
MOST_CELL_CHARACTERS = 100_000_000
"""A cell that is longer is a quote that is never closed."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One row."""

    line: int
    """The first of its lines, from 1; its number in Parquet, which has no lines."""
    cells: tuple[Any, ...] = ()
    problem: str | None = None
    """Why the row can't be read, if so."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that can be read from its beginning, any number of times."""

    file: str
    names: tuple[str, ...] | None
    """Of the columns; None where the first row may name them."""
    records: Callable[[], Iterator[Record]]
    class_names: dict[str, list[str]] = field(default_factory=dict)
    """By column, where the numbers in it stand for names."""
    notes: tuple[str, ...] = ()


def table(root: Path, file: str) -> Table:
    """Return the table in a file. Raises `OctavoltError` if there is none."""
    suffix = Path(file).suffix.lower()
    try:
        if suffix == ".parquet":
            return parquet_table(root, file)
        part = text_file(root, file)
    except OSError as error:
        raise OctavoltError(f"'{file}' can't be read: {error.strerror or error}.") from error
    if suffix in (".jsonl", ".ndjson", ".json"):
        return json_table(root, part)
    return delimited_table(root, part, tabs=suffix == ".tsv")


def delimited_table(root: Path, part: Part, *, tabs: bool) -> Table:
    """Return a table of CSV or TSV."""
    with opened(root, part, newline="") as text:
        sample = list(islice(text, SNIFFED_LINES))
    if not "".join(sample).strip():
        raise OctavoltError(f"'{part.file}' is empty. Give each text a row.")
    with long_cells():
        delimiter = "\t" if tabs else delimiter_of(sample, DELIMITERS)
    quotes = delimiter != "\t" or closes_quotes(root, part)

    def records() -> Iterator[Record]:
        return delimited(root, part, delimiter, quotes=quotes)

    return Table(file=part.file, names=None, records=records, notes=encoding_note(part))


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the module `csv` read cells that are longer than its usual limit."""
    before = csv.field_size_limit(MOST_CELL_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def closes_quotes(root: Path, part: Part) -> bool:
    """Tell whether quotes in a table with tabs hold cells together: in many they are just text."""
    rows = list(islice(delimited(root, part, "\t", quotes=True), SNIFFED_ROWS))
    return all(row.problem is None and len(row.cells) == len(rows[0].cells) for row in rows)


def delimited(root: Path, part: Part, delimiter: str, *, quotes: bool) -> Iterator[Record]:
    """Yield the rows that are not blank."""
    with opened(root, part, newline="") as text:
        if quotes:
            reader = csv.reader(text, delimiter=delimiter, strict=True)
        else:
            reader = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        while True:
            line = reader.line_num + 1
            try:
                # Around a single row: who reads the rows may never come back for the rest.
                with long_cells():
                    row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Record(line=line, problem=quote_problem(error, line, reader.line_num))
                continue
            if any(cell.strip() for cell in row):
                yield Record(line=line, cells=tuple(map(unix_lines, row)))


def unix_lines(cell: str) -> str:
    """Return a cell whose lines end with a line feed alone."""
    return cell.replace("\r\n", "\n").replace("\r", "\n") if "\r" in cell else cell


def quote_problem(error: csv.Error, line: int, last: int) -> str:
    """Return what is wrong with the quotes of a row, in other words than the parser's."""
    if "unexpected end" in str(error) or "field limit" in str(error):
        return (
            f"a quote that opens here is never closed; {counted(last - line + 1, 'line')} to the "
            "end went into it. Double a quote inside of a text"
        )
    if "expected after" in str(error):
        return "a quote inside of a quoted text is not doubled"
    return f"the row is no CSV: {error}"


def json_table(root: Path, part: Part) -> Table:
    """Return a table of an object a line, or of one array of objects."""

    def objects() -> Iterator[tuple[int, Any]]:
        return json_objects(root, part)

    first = [one for _, one in islice(objects(), SNIFFED_ROWS) if isinstance(one, dict)]
    names = tuple(dict.fromkeys(name for one in first for name in one))
    if not names:
        found = next(objects(), None)
        why = f"; line {found[0]}: {not_object(found[1])}" if found else ""
        raise OctavoltError(
            f"'{part.file}' holds no JSON objects{why}. Write one a line, such as "
            '{"text": "...", "label": "..."}.'
        )

    def records() -> Iterator[Record]:
        for line, one in objects():
            if isinstance(one, dict):
                yield Record(line=line, cells=tuple(one.get(name) for name in names))
            else:
                yield Record(line=line, problem=not_object(one))

    return Table(file=part.file, names=names, records=records, notes=encoding_note(part))


def not_object(one: Any) -> str:
    """Return what is wrong with a line that holds no object."""
    if isinstance(one, json.JSONDecodeError):
        return f"this is no JSON: {one.msg}, column {one.colno}"
    if isinstance(one, RecursionError):
        return "too many brackets are open at once for it to be data"
    return f"this is no JSON object but {json.dumps(one, ensure_ascii=False)[:40]}"


def json_objects(root: Path, part: Part) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each line, or of each element of one array.

    What is no JSON is yielded as its error.
    """
    if first_character(root, part) == "[":
        yield from array_elements(root, part)
        return
    for number, line in enumerate(lines(root, part), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                value = error
            yield number, value


def first_character(root: Path, part: Part) -> str:
    """Return the first character that is no space, or nothing."""
    for text in decoded(root, part):
        if stripped := text.lstrip():
            return stripped[0]
    return ""


def array_elements(root: Path, part: Part) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each element of an array, which is read as a whole."""
    text = "".join(decoded(root, part))
    decoder = json.JSONDecoder()
    place, line = text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    while True:
        start = place
        while text[place : place + 1].isspace() or text[place : place + 1] == ",":
            place += 1
        line += text.count("\n", start, place)
        if text[place : place + 1] in ("]", ""):
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError) as error:
            yield line, error
            return
        yield line, value
        line += text.count("\n", place, end)
        place = end


def parquet_table(root: Path, file: str) -> Table:
    """Return a table of Parquet."""
    import pyarrow
    import pyarrow.parquet

    try:
        parquet = pyarrow.parquet.ParquetFile(root / file)
    except (pyarrow.ArrowException, OSError) as error:
        raise not_parquet(file, error) from error

    def records() -> Iterator[Record]:
        number = 0
        try:
            for batch in parquet.iter_batches(batch_size=SNIFFED_ROWS):
                columns = [column.to_pylist() for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield Record(line=number, cells=tuple(cells))
        except (pyarrow.ArrowException, OSError) as error:
            raise not_parquet(file, error) from error

    return Table(
        file=file,
        names=tuple(parquet.schema_arrow.names),
        records=records,
        class_names=class_names(parquet.schema_arrow.metadata or {}),
    )


def not_parquet(file: str, error: Exception) -> OctavoltError:
    """Return the error on a file of Parquet that is damaged, or is none."""
    why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return OctavoltError(f"'{file}' can't be read as Parquet: {why}. Get it once more.")


def class_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """Return the names of the classes that the library `datasets` wrote into a Parquet file."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {
        column: list(kind["names"])
        for column, kind in features.items()
        if isinstance(kind, dict) and kind.get("_type") == "ClassLabel" and kind.get("names")
    }


def sampled(of: Table) -> Sequence[Record]:
    """Return the first rows that can be read."""
    rows = islice(of.records(), SNIFFED_ROWS)
    return [row for row in rows if row.problem is None]
