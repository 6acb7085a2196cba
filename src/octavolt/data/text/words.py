"""Where a long text may be cut, and how tokens become text again, one at a time."""

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

PIECE_CHARACTERS = 2**14
"""Of a long text that one thread tokenizes at once: the library needs some 100 bytes for each."""
UNCUT_FACTOR = 64
"""By which a piece may be longer where no word ends."""
CUT = re.compile(r"[^\W_](?=[ \n\r\t.,;:!?\u3001\u3002\uff0c\uff01\uff1a\uff1b\uff1f])")
"""The end of a word or number before a space or a sign that ends one. Each pattern by which
tokenizers split text into words ends a word there and looks at nothing before it: that of GPT-2,
whose spaces belong to the word after them, those made after it, which put line ends to the signs
before them, and BERT's. An apostrophe is no such sign, nor is a space after another."""

TIGHT = frozenset(".,!?")
"""Before these stands no space: the rule that BERT's own decoder has."""
UNSPACED = (
    (0x2E80, 0x312F),
    (0x31A0, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE4F),
    (0xFF00, 0xFFEF),
    (0x1F200, 0x1F2FF),
    (0x20000, 0x3FFFF),
)
"""Blocks of the Unicode standard, first and last code point, of scripts without spaces: Chinese
and Japanese with their punctuation."""


class Stream(ABC):
    """Turns tokens into text as they come. What it handed out never changes afterwards."""

    @abstractmethod
    def add(self, token: int, /) -> str:
        """Return what became certain by one token more: possibly nothing, never half a letter."""

    @abstractmethod
    def finish(self) -> str:
        """Return the rest. Nothing is added afterwards."""


class ByteStream(Stream):
    """For byte-level BPE, whose tokens cut letters other than the English ones in pieces.

    Bytes that are no UTF-8 become U+FFFD, at the same places however the tokens cut them.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int, /) -> str:
        """Return the letters that are whole now."""
        return self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        """Return U+FFFD for a letter that was never finished."""
        return self._decoder.decode(b"", final=True)


class WordStream(Stream):
    """For WordPiece: spaces between words, as far as one writes them there.

    A token shows by itself whether it goes on with a word, so nothing is ever held back.
    """

    def __init__(self, pieces: Sequence[str], *, prefix: str) -> None:
        self._pieces = pieces
        self._prefix = prefix
        self._last = ""

    def add(self, token: int, /) -> str:
        """Return the piece, after a space if it begins a word that wants one."""
        piece = self._pieces[token]
        if not piece:
            return ""
        last, self._last = self._last, piece[-1]
        if last and piece.startswith(self._prefix) and piece != self._prefix:
            return piece[len(self._prefix) :]
        if not last or piece in TIGHT or is_unspaced(last) or is_unspaced(piece[0]):
            return piece
        return " " + piece

    def finish(self) -> str:
        """Return nothing: all has been handed out."""
        return ""


class CharacterStream(Stream):
    """For tokens that are characters."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = pieces

    def add(self, token: int, /) -> str:
        """Return the character."""
        return self._pieces[token]

    def finish(self) -> str:
        """Return nothing: all has been handed out."""
        return ""


def cut(pieces: Iterable[str], *, most_characters: int = PIECE_CHARACTERS) -> Iterator[str]:
    """Yield a text, given in pieces of any size, in pieces whose tokens are those of the whole.

    Where words end nowhere in 64 times as many characters, it is cut anywhere.
    """
    pending = ""
    for piece in pieces:
        pending += piece
        first = 0
        while len(pending) - first > most_characters:
            place = cut_place(pending, first, most_characters)
            if place is None:
                break
            yield pending[first:place]
            first = place
        pending = pending[first:]
    if pending:
        yield pending


def cut_place(text: str, first: int, most_characters: int) -> int | None:
    """Return where the piece that begins at `first` may end, or None if it needs more text."""
    last = first + most_characters
    # Looking at the end alone is enough nearly always.
    for begin in (max(first, last - 1024), first):
        ends = [match.end() for match in CUT.finditer(text, begin, last)]
        if ends:
            return ends[-1]
    most = first + UNCUT_FACTOR * most_characters
    match = CUT.search(text, last - 1, most)
    if match:
        return match.end()
    return most if len(text) >= most else None


def is_unspaced(character: str) -> bool:
    """Return whether the character's script sets no spaces between words."""
    code = ord(character)
    return any(first <= code <= last for first, last in UNSPACED)


@lru_cache(maxsize=1)
def bytes_of_letters() -> dict[str, int]:
    """Return the byte that each letter of a byte-level vocabulary stands for.

    Printable characters of Latin-1 stand for themselves, the other bytes, in order, for the
    code points from 256 on: Radford et al. 2019, section 2.2, and the code published with it.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + place): byte for place, byte in enumerate(others)}


def bytes_of(piece: str) -> bytes:
    """Return the bytes of a token of a byte-level vocabulary.

    A token that holds other letters was added to the vocabulary by name, and stands for itself.
    """
    letters = bytes_of_letters()
    if all(letter in letters for letter in piece):
        return bytes(letters[letter] for letter in piece)
    return piece.encode()
