"""In which encoding a file of text is, decided on all of it, and its text piece by piece."""

import codecs
import io
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octavolt.contract import Fault
from octavolt.errors import OctavoltError
from octavolt.units import MIB

CHUNK_BYTES = MIB
UTF_8 = "utf-8"
GB18030 = "gb18030"
MARKS = {
    codecs.BOM_UTF8: UTF_8,
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""What may stand at the beginning of a file, to say its encoding."""
SHOWN = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16", GB18030: "GB18030", UTF_8: "UTF-8"}
CONTROLS = "\t\n\r\f\v\x1a\x1b\b"
"""Control characters that texts hold: old systems end files with 26 and color with 27."""
SAMPLE_CHARACTERS = 4096
COMMON_FRACTION = 0.7
"""Share of the foreign characters that are of GB 2312 in a text that is taken for GB18030.

Those 7,445 are nearly all that Chinese is written with, while accented letters of Western Europe
that are read as GB18030 land outside of them.
"""


class NotTextError(OctavoltError):
    """A file that is no text, or in no encoding that is read; says where."""

    def __init__(self, file: str, line: int | None, problem: str) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        at = f", line {line}" if line is not None else ""
        super().__init__(f"'{file}'{at}: {problem}. Save it as UTF-8 text.")

    def fault(self) -> Fault:
        """Return the fault of the file; without it the rest of a data set can be used."""
        return Fault(
            kind="not-text", file=self.file, line=self.line, problem=self.problem, damaged=True
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """Bytes of a file of text, and how they are read."""

    file: str
    """Relative to the data set's folder."""
    encoding: str
    """As Python calls it; a mark at the beginning is outside of the bytes."""
    begin: int
    end: int
    whole: bool = True
    """Whether it is all of the file, but for the mark."""


def encoding_note(part: Part) -> tuple[str, ...]:
    """Return the sentence on an encoding that is not UTF-8."""
    if part.encoding == UTF_8:
        return ()
    return (f"{part.file} is in {SHOWN[part.encoding]}.",)


def text_file(root: Path, file: str) -> Part:
    """Return the file and its encoding, from reading all of it.

    Raises `NotTextError`, or `OSError` if it can't be read. UTF-8 goes before GB18030, since hardly
    any text of another encoding is valid UTF-8.
    """
    path = root / file
    size = path.stat().st_size
    with path.open("rb") as opened:
        beginning = opened.read(4)
    for mark, encoding in MARKS.items():
        if beginning.startswith(mark):
            part = Part(file=file, encoding=encoding, begin=len(mark), end=size)
            wrong = first_wrong(root, part)
            if wrong is not None:
                raise unreadable(root, part, wrong)
            return part
    wide = zero_bytes(path)
    if wide is not None:
        return without_mark(root, file, size, wide)
    return narrow(root, file, size)


def narrow(root: Path, file: str, size: int) -> Part:
    """Return a file without zero bytes as UTF-8 or GB18030."""
    utf_8 = Part(file=file, encoding=UTF_8, begin=0, end=size)
    wrong = first_wrong(root, utf_8)
    if wrong is None:
        return utf_8
    chinese = Part(file=file, encoding=GB18030, begin=0, end=size)
    wrong_chinese = first_wrong(root, chinese)
    if wrong_chinese is None and looks_chinese(root, chinese):
        return chinese
    # What got further is what the file most likely is meant to be.
    if wrong_chinese is not None and wrong_chinese > wrong and looks_chinese(root, chinese):
        raise unreadable(root, chinese, wrong_chinese)
    raise unreadable(root, utf_8, wrong)


def zero_bytes(path: Path) -> tuple[int, bool, bool] | None:
    """Return where the first zero byte is, and whether any is at an even and at an odd place."""
    first, even, odd, before = -1, False, False, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if b"\0" in chunk:
                first = before + chunk.index(b"\0") if first < 0 else first
                even = even or b"\0" in chunk[::2]
                odd = odd or b"\0" in chunk[1::2]
                if even and odd:
                    break
            before += len(chunk)
    return (first, even, odd) if first >= 0 else None


def without_mark(root: Path, file: str, size: int, zeros: tuple[int, bool, bool]) -> Part:
    """Return a file with zero bytes as UTF-16, if all of them are the same half of a character."""
    first, even, odd = zeros
    if even != odd and size % 2 == 0 and not reads_as_utf_8(root / file):
        part = Part(file=file, encoding="utf-16-be" if even else "utf-16-le", begin=0, end=size)
        if first_wrong(root, part) is None and plausible(beginning_of(root, part)):
            return part
    line = line_at(root, Part(file=file, encoding=UTF_8, begin=0, end=size), first)
    raise NotTextError(file, line, f"byte {first:,} is zero, so this is no text")


def reads_as_utf_8(path: Path) -> bool:
    """Tell whether a file begins as text in UTF-8 in which at most a few bytes are zero.

    In UTF-16 half of the bytes of Latin text are zero; of other text the first halves are no UTF-8,
    or control characters.
    """
    with path.open("rb") as file:
        beginning = file.read(SAMPLE_CHARACTERS)
    try:
        text = codecs.getincrementaldecoder(UTF_8)("strict").decode(beginning)
    except UnicodeDecodeError:
        return False
    return 4 * text.count("\0") < len(text) and plausible(text.replace("\0", ""))


def plausible(text: str) -> bool:
    """Tell whether no character is one that texts don't hold."""
    return not any(
        unicodedata.category(one) in ("Cn", "Co", "Cs")
        or (unicodedata.category(one) == "Cc" and one not in CONTROLS)
        for one in text
    )


def looks_chinese(root: Path, part: Part) -> bool:
    """Tell whether most characters that are not ASCII are of the usual ones of Chinese."""
    foreign = [one for one in foreign_characters(root, part) if one not in "\ufffd"]
    usual = sum(is_usual(one) for one in foreign)
    return usual >= COMMON_FRACTION * len(foreign)


def foreign_characters(root: Path, part: Part) -> str:
    """Return the first characters outside of ASCII."""
    found = ""
    for text in decoded(root, part, errors="replace"):
        found += "".join(one for one in text if not one.isascii())
        if len(found) >= SAMPLE_CHARACTERS:
            break
    return found[:SAMPLE_CHARACTERS]


def is_usual(character: str) -> bool:
    """Tell whether a character is in GB 2312, the first Chinese standard."""
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def beginning_of(root: Path, part: Part) -> str:
    """Return the first characters of a file."""
    return next(decoded(root, part), "")[:SAMPLE_CHARACTERS]


def first_wrong(root: Path, part: Part) -> int | None:
    """Return the place of the first byte that the encoding doesn't allow, or None."""
    decoder = codecs.getincrementaldecoder(part.encoding)("strict")
    place = part.begin
    for chunk in raw_chunks(root, part):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            return place - pending + error.start
        place += len(chunk)
    pending = len(decoder.getstate()[0])
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return place - pending
    return first_zero(root, part)


def first_zero(root: Path, part: Part) -> int | None:
    """Return the place of the first zero character, which no text holds, or None."""
    if part.encoding not in (UTF_8, GB18030):
        return None
    place = part.begin
    for chunk in raw_chunks(root, part):
        if b"\0" in chunk:
            return place + chunk.index(b"\0")
        place += len(chunk)
    return None


def unreadable(root: Path, part: Part, place: int) -> NotTextError:
    """Return the error on a byte that an encoding doesn't allow."""
    with (root / part.file).open("rb") as file:
        file.seek(place)
        value = file.read(1)
    shown = f"byte {place:,}" + (f", 0x{value[0]:02X}," if value else "")
    wanted = SHOWN[part.encoding]
    if part.begin:
        wanted += ", which its first bytes say it is"
    elif part.encoding == UTF_8:
        wanted += " and no GB18030"
    return NotTextError(part.file, line_at(root, part, place), f"{shown} is no {wanted}")


def line_at(root: Path, part: Part, place: int) -> int:
    """Return the line on which a byte stands, counted from 1."""
    before = Part(file=part.file, encoding=part.encoding, begin=part.begin, end=place)
    feed = "\n".encode(part.encoding)
    if len(feed) == 1:
        return 1 + sum(chunk.count(feed) for chunk in raw_chunks(root, before))
    return 1 + sum(text.count("\n") for text in decoded(root, before, errors="replace"))


def raw_chunks(root: Path, part: Part) -> Iterator[bytes]:
    """Yield the bytes of a part, a MiB at a time. Raises `OSError` if the file can't be read."""
    with (root / part.file).open("rb") as file:
        file.seek(part.begin)
        left = part.end - part.begin
        while left > 0 and (chunk := file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk


def decoded(root: Path, part: Part, *, errors: str = "strict") -> Iterator[str]:
    """Yield the text of a part as it comes; lines end with a line feed alone."""
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(part.encoding)(errors), translate=True
    )
    for chunk in raw_chunks(root, part):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def pieces(root: Path, part: Part, characters: int) -> Iterator[str]:
    """Yield the text of a part in pieces of about so many characters, cut at ends of lines.

    A line that is longer is cut between two characters.
    """
    waiting = ""
    for text in decoded(root, part):
        waiting += text
        while len(waiting) >= characters:
            end = waiting.rfind("\n", 0, characters) + 1 or characters
            yield waiting[:end]
            waiting = waiting[end:]
    if waiting:
        yield waiting


def lines(root: Path, part: Part) -> Iterator[str]:
    """Yield the lines of a part without their ends."""
    with opened(root, part, newline=None) as text:
        for line in text:
            yield line.removesuffix("\n")


def opened(root: Path, part: Part, *, newline: str | None) -> io.TextIOWrapper:
    """Return a whole file as text behind its mark, as `open` does."""
    file = (root / part.file).open("rb")
    file.seek(part.begin)
    return io.TextIOWrapper(file, encoding=part.encoding, newline=newline)


def cut(root: Path, part: Part, place: int) -> int:
    """Return the first place from `place` on at which a line, or else a word, ends.

    Raises `OctavoltError` if neither ends within the part.
    """
    for end in ("\n", " "):
        found = first_end(root, part, place, end.encode(part.encoding))
        if found is not None and found < part.end:
            return found
    raise OctavoltError(
        f"'{part.file}' is one line without a space in its last tenth, so it can't be divided. "
        "Give a folder with train.txt and valid.txt, or break the text into lines."
    )


def first_end(root: Path, part: Part, place: int, end: bytes) -> int | None:
    """Return the place behind the first `end` from `place` on, or None."""
    width = len(end)
    at = place - (place - part.begin) % width
    # Bytes of chunks of an even length: a character of two bytes is never cut.
    for chunk in raw_chunks(root, Part(file=part.file, encoding="", begin=at, end=part.end)):
        found = chunk.find(end)
        while found >= 0 and found % width:
            found = chunk.find(end, found + 1)
        if found >= 0:
            return at + found + width
        at += len(chunk)
    return None
