"""JSON objects that know where they stand, so that a message about one says file and line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavolt.errors import OctavoltError

SCHEMA = 1
"""Of the documents in a run folder. A larger one was written by a newer octavolt."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One JSON object."""

    values: Mapping[str, Any]
    place: str
    """The file, and the line or the entry in it."""

    def number(self, key: str) -> float:
        """Return a number; NaN and infinities are numbers."""
        found = self.optional_number(key)
        if found is None:
            raise self.fault(key, "a number")
        return found

    def optional_number(self, key: str) -> float | None:
        """Return a number, or None where there is null or nothing."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(key, "a number")
        return float(value)

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fault(key, "a whole number")
        return value

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.fault(key, "a text")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a text, or None where there is null or nothing."""
        return None if self.values.get(key) is None else self.text(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.fault(key, "a list of texts")
        return tuple(value)

    def shares(self, key: str) -> tuple[float, ...]:
        """Return a list of numbers; none where there is null or nothing."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, int | float) for one in value):
            raise self.fault(key, "a list of numbers")
        return tuple(float(one) for one in value)

    def row(self, key: str) -> "Row":
        """Return an object inside this one."""
        return as_row(self.values.get(key), f"{self.place}, '{key}'")

    def rows(self, key: str) -> tuple["Row", ...]:
        """Return a list of objects inside this one; none where the key is missing."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise self.fault(key, "a list")
        return tuple(
            as_row(one, f"{self.place}, '{key}' {number}")
            for number, one in enumerate(value, start=1)
        )

    def fault(self, key: str, wanted: str) -> OctavoltError:
        """Return the error for a value that is missing or of another kind."""
        if key not in self.values:
            return OctavoltError(f"{self.place}: '{key}' is missing; it must be {wanted}.")
        shown = json.dumps(self.values[key], ensure_ascii=False)[:60]
        return OctavoltError(f"{self.place}: '{key}' is {shown}; it must be {wanted}.")


def as_row(value: Any, place: str) -> Row:
    """Return a JSON value as a row; raises unless it is an object."""
    if not isinstance(value, dict):
        shown = json.dumps(value, ensure_ascii=False)[:60]
        raise OctavoltError(f"{place}: {shown} is not a JSON object.")
    return Row(values=value, place=place)


def read_document(path: Path) -> Any:
    """Return the JSON in a file, or None if there is no such file."""
    if not path.exists():
        return None
    try:
        value = json.loads(readable_text(path))
    except json.JSONDecodeError as error:
        raise OctavoltError(f"{path}, line {error.lineno}: not JSON: {error.msg}.") from error
    schema = value.get("schema", SCHEMA) if isinstance(value, dict) else SCHEMA
    if schema != SCHEMA:
        raise OctavoltError(
            f"{path} has schema {schema}; this octavolt reads {SCHEMA}. "
            "Use the octavolt that wrote it: pip install --upgrade octavolt"
        )
    return value


def read_lines(path: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines; none if there is no such file.

    A last line without its end was being written when the run stopped, and is passed over.
    """
    if not path.exists():
        return
    for number, line in enumerate(readable_text(path).split("\n")[:-1], start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            yield as_row(json.loads(line), place)
        except json.JSONDecodeError as error:
            raise OctavoltError(f"{place}: not JSON: {error.msg}.") from error


def readable_text(path: Path) -> str:
    """Return what is in a file, up to the last whole character."""
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise OctavoltError(f"Can't read {path}: {error.strerror}.") from error
