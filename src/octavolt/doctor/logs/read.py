"""Reads a log of any size and encoding for known errors, in bounded memory."""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from octavolt.doctor.logs import KNOWN
from octavolt.doctor.logs.known import Known
from octavolt.errors import OctavoltError

CHUNK_BYTES = 2**18
MOST_LINE_CHARACTERS = 2**16
"""A longer line, such as a progress bar's, is searched piece by piece."""
OVERLAP = 2**10
"""Characters that two pieces share, so that what is cut is found."""
SHOWN_LINES = 5
BEFORE, SHOWN_CHARACTERS = 60, 200
COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
GZIP, ZSTD, XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
"""UTF-32's mark begins with UTF-16's and so stands first."""


@dataclass(kw_only=True, slots=True)
class Seen:
    """A known error in a log."""

    known: Known
    line_count: int = 0
    lines: list[int] = field(default_factory=list)
    """The numbers of the first few, from 1."""
    excerpt: str = ""
    """Of the first."""
    last_line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LogRead:
    """What a log tells."""

    line_count: int
    seen: tuple[Seen, ...]
    """In the order in which they came: the first is the likeliest cause of the others."""

    @property
    def has_errors(self) -> bool:
        """Return whether any of them is more than a warning."""
        return any(one.known.severity == "error" for one in self.seen)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON tells it."""
        return {
            "lines": self.line_count,
            "errors": [
                {
                    "name": one.known.name,
                    "severity": one.known.severity,
                    "count": one.line_count,
                    "lines": one.lines,
                    "excerpt": one.excerpt,
                    "means": one.known.means,
                    "remedy": one.known.remedy,
                    "source": one.known.source,
                }
                for one in self.seen
            ],
        }


def read_log_file(path: Path) -> LogRead:
    """Return the known errors of a log file."""
    try:
        with path.open("rb") as stream:
            return read_log(iter(partial(stream.read, CHUNK_BYTES), b""), str(path))
    except OSError as error:
        raise OctavoltError(
            f"Can't read the log {path}: {error.strerror}. Give --log a file, or - for standard "
            "input."
        ) from error


def read_log(chunks: Iterable[bytes], name: str = "standard input") -> LogRead:
    """Return the known errors of a log, which comes in chunks of any size."""
    patterns = [re.compile(one.pattern, re.IGNORECASE) for one in KNOWN]
    hints = {hint for one in KNOWN for hint in one.hints}
    by_name: dict[str, Seen] = {}
    number = 0
    for block in blocks(decoded(iter(chunks), name)):
        number = block[-1][0]
        lowered = [piece.lower() for _, piece in block]
        whole = "\n".join(lowered)
        # Most hints are in no line of a block, and are looked for in all of it at once.
        present = {hint for hint in hints if hint in whole}
        for known, pattern in zip(KNOWN, patterns, strict=True):
            for index in with_hints(lowered, [one for one in known.hints if one in present]):
                line, piece = block[index]
                found = pattern.search(piece)
                if found is not None:
                    seen = by_name.setdefault(known.name, Seen(known=known))
                    count(seen, line, piece, found.start())
    return LogRead(
        line_count=number, seen=tuple(sorted(by_name.values(), key=lambda one: one.lines[0]))
    )


def with_hints(lowered: list[str], hints: list[str]) -> list[int]:
    """Return where the lines are that hold any of the hints."""
    if not hints:
        return []
    if len(hints) == 1:
        (hint,) = hints
        return [index for index, line in enumerate(lowered) if hint in line]
    return [index for index, line in enumerate(lowered) if any(hint in line for hint in hints)]


def count(seen: Seen, number: int, piece: str, at: int) -> None:
    """Take a line into an error's count, once."""
    if seen.last_line == number:
        return
    seen.last_line = number
    seen.line_count += 1
    if len(seen.lines) < SHOWN_LINES:
        seen.lines.append(number)
    if not seen.excerpt:
        start = max(0, at - BEFORE)
        shown = piece[start : start + SHOWN_CHARACTERS]
        printable = "".join(one if one.isprintable() else " " for one in shown)
        seen.excerpt = printable.strip()


def decoded(chunks: Iterator[bytes], name: str) -> Iterator[str]:
    """Yield a log's text chunk by chunk; what is no text becomes a mark that nothing fits."""
    first = next(chunks, b"")
    for magic, program in ((GZIP, "zcat"), (ZSTD, "zstdcat"), (XZ, "xzcat")):
        if first.startswith(magic):
            raise OctavoltError(
                f"The log {name} is compressed. Give it as: {program} FILE | octavolt doctor "
                "--log -"
            )
    decoder = codecs.getincrementaldecoder(encoding_of(first))(errors="replace")
    for chunk in chain([first], chunks):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def encoding_of(first: bytes) -> str:
    """Return a text's encoding: by its mark, or by where its zero bytes are.

    All patterns are ASCII, which every other encoding in use writes as UTF-8 does.
    """
    for mark, encoding in MARKS:
        if first.startswith(mark):
            return encoding
    sample = first[:1024]
    for encoding, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if len(zeros) > 8 and zeros.count(0) > 0.8 * len(zeros):
            return encoding
    return "utf-8"


def blocks(texts: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield lines with their numbers, many at a time; a very long line in pieces that overlap."""
    number, rest = 1, ""
    for text in texts:
        block = []
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            block += [(number, plain(piece)) for piece in parts(line)]
            number += 1
        if len(rest) > MOST_LINE_CHARACTERS:
            *whole, rest = parts(rest)
            block += [(number, plain(piece)) for piece in whole]
        if block:
            yield block
    if rest:
        yield [(number, plain(rest))]


def parts(line: str) -> list[str]:
    """Return a line cut into pieces that overlap, mostly one."""
    step = MOST_LINE_CHARACTERS - OVERLAP
    return [
        line[at : at + MOST_LINE_CHARACTERS] for at in range(0, max(1, len(line) - OVERLAP), step)
    ]


def plain(piece: str) -> str:
    """Return a piece without a terminal's colours and the end of a Windows line."""
    piece = piece.rstrip("\r")
    return COLORS.sub("", piece) if "\x1b" in piece else piece
