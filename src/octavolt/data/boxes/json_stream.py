"""A large JSON file, one element of its lists at a time: all at once would take ten times it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from octavolt.errors import OctavoltError
from octavolt.units import MIB, format_bytes

PART_CHARACTERS = 1 * MIB
MOST_CHARACTERS = 64 * MIB
"""Of one element: a larger one annotates no picture and no box."""
SPACE = " \t\r\n"
MARGIN = 64
"""So near to the end of what is read, what looks wrong may be what is cut: no word is longer."""

EXPONENT = 3
"""Characters behind a number that show whether it goes on."""


@dataclass(frozen=True, kw_only=True)
class Element:
    """One element of a list, or a value that is no list."""

    key: str
    """Of the outermost object."""
    value: Any
    line: int
    """Where it begins, counted from 1."""
    number: int
    """In its list, counted from 1; 0 for what is no list."""


class JsonObject:
    """An object in a file; the elements of its lists are read one by one."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path = path
        self.file = file
        self.buffer = ""
        self.at = 0
        self.line = 1
        self.ended = False
        self.decoder = json.JSONDecoder()

    def elements(self) -> Iterator[Element]:
        """Yield all elements in order. Raises `OctavoltError`, with the line, on what is no JSON.

        An empty list is yielded as a value, so that nobody takes it for one that is missing.
        """
        self.expect("{", "begin with {, as an object does")
        if self.peek() == "}":
            self.skip(1)
        else:
            while True:
                yield from self.member()
                if self.peek() != ",":
                    break
                self.skip(1)
            self.expect("}", "have , or } here")
        if self.peek():
            raise self.wrong("it goes on after its end")

    def member(self) -> Iterator[Element]:
        """Yield the value of the next key, or the elements of its list."""
        key = self.value()
        if not isinstance(key, str):
            raise self.wrong("a key is no text")
        self.expect(":", "have : after a key")
        if self.peek() != "[":
            line = self.line
            yield Element(key=key, value=self.value(), line=line, number=0)
            return
        self.skip(1)
        if self.peek() == "]":
            self.skip(1)
            yield Element(key=key, value=[], line=self.line, number=0)
            return
        number = 1
        while True:
            self.peek()
            line = self.line
            yield Element(key=key, value=self.value(), line=line, number=number)
            number += 1
            if self.peek() != ",":
                break
            self.skip(1)
        self.expect("]", "have , or ] here")

    def value(self) -> Any:
        """Return the value that comes next, whole."""
        self.peek()
        while True:
            try:
                value, end = self.decoder.raw_decode(self.buffer, self.at)
            except json.JSONDecodeError as error:
                # What is cut off may seem wrong wherever it begins, but a text only at its start.
                cut = error.pos >= len(self.buffer) - MARGIN or error.msg.startswith("Unterminated")
                if self.ended or not cut:
                    self.skip(max(0, error.pos - self.at))
                    raise self.wrong(error.msg[0].lower() + error.msg[1:]) from error
            except RecursionError as error:
                raise self.wrong("lists stand in lists too deep") from error
            else:
                # A number may go on: of '1.5e-7' cut behind the minus sign 1.5 can be read.
                is_number = isinstance(value, int | float)
                if end + EXPONENT * is_number <= len(self.buffer) or self.ended:
                    self.skip(end - self.at)
                    return value
            self.more()

    def peek(self) -> str:
        """Return the next character that is no space, without taking it; '' at the end."""
        while True:
            first = self.at
            while first < len(self.buffer) and self.buffer[first] in SPACE:
                first += 1
            self.skip(first - self.at)
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if self.ended:
                return ""
            self.more()

    def expect(self, character: str, what: str) -> None:
        """Take the next character, which must be that."""
        if self.peek() != character:
            raise self.wrong(f"it should {what}")
        self.skip(1)

    def skip(self, count: int) -> None:
        """Take that many characters, counting lines."""
        self.line += self.buffer.count("\n", self.at, self.at + count)
        self.at += count

    def more(self) -> None:
        """Read on: as much again as waits, so that a long element is not tried too often."""
        waiting = len(self.buffer) - self.at
        if waiting > MOST_CHARACTERS:
            raise self.wrong(f"one element has more than {format_bytes(MOST_CHARACTERS)}")
        part = self.file.read(max(PART_CHARACTERS, waiting))
        self.ended = not part
        self.buffer, self.at = self.buffer[self.at :] + part, 0

    def wrong(self, problem: str) -> OctavoltError:
        """Return the error of what stands here."""
        return OctavoltError(
            f"'{self.path.name}', line {self.line}: no JSON that can be read: {problem}. Restore "
            "it, or write it again."
        )


def elements(path: Path) -> Iterator[Element]:
    """Yield the elements of the lists of the object in a file, in order.

    Raises `OctavoltError`, with the line, if the file can't be read or is no JSON object.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from JsonObject(path, file).elements()
    except UnicodeDecodeError as error:
        raise OctavoltError(
            f"'{path.name}' is no text in UTF-8, in which JSON is written. Save it as UTF-8."
        ) from error
    except OSError as error:
        raise OctavoltError(f"'{path.name}' can't be read: {error.strerror}.") from error
