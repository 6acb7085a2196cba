"""What splits of text are made of. Texts lie end to end in bytes, not in a million strings."""

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt64
from numpy.typing import NDArray

from octavolt.contract import Samples
from octavolt.data.relabel import Joined
from octavolt.data.text.encodings import Part, pieces, raw_chunks
from octavolt.units import MIB

PIECE_CHARACTERS = MIB
"""Of one piece of a document, about: so much of it is in memory at a time."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A text, or a pair of them, and the classes that it belongs to."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the passage that holds its answer."""

    identity: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]
    """Text, and the character of the context at which it starts; none if it can't be answered."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: str
    """'system', 'user' or 'assistant'."""
    content: str


@dataclass(frozen=True, kw_only=True)
class Packed:
    """Texts end to end, in UTF-8."""

    buffer: bytes
    ends: Int64[np.ndarray, " texts"]

    def raw(self, index: int) -> memoryview:
        """Return the bytes of one text; they are not copied."""
        first = int(self.ends[index - 1]) if index else 0
        return memoryview(self.buffer)[first : int(self.ends[index])]

    def text(self, index: int) -> str:
        """Return one text."""
        return str(self.raw(index), "utf-8")


class Packing:
    """Collects texts one by one."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.ends = array("q")

    def __len__(self) -> int:
        """Return how many there are so far."""
        return len(self.ends)

    def add(self, text: str) -> None:
        """Append a text. Raises `UnicodeEncodeError` for half a surrogate pair."""
        self.buffer += text.encode()
        self.ends.append(len(self.buffer))

    def packed(self) -> Packed:
        """Return what was collected."""
        return Packed(buffer=bytes(self.buffer), ends=whole(self.ends))


def packed_texts(texts: Iterable[str]) -> Packed:
    """Return the texts end to end."""
    packing = Packing()
    for text in texts:
        packing.add(text)
    return packing.packed()


def whole(numbers: Any) -> Int64[np.ndarray, " numbers"]:
    """Return an array of numbers that were collected one by one."""
    return np.frombuffer(array("q", numbers).tobytes(), np.int64)


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """Several numbers a row, end to end."""

    numbers: Int64[np.ndarray, " numbers"]
    ends: Int64[np.ndarray, " rows"]

    def at(self, row: int) -> tuple[int, ...]:
        """Return the numbers of a row."""
        first = int(self.ends[row - 1]) if row else 0
        return tuple(self.numbers[first : int(self.ends[row])].tolist())


def ragged(rows: Iterable[Sequence[int]]) -> Ragged:
    """Return the numbers of all rows end to end."""
    numbers, ends = array("q"), array("q")
    for row in rows:
        numbers.extend(row)
        ends.append(len(numbers))
    return Ragged(numbers=whole(numbers), ends=whole(ends))


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where samples stand: which file, and which line of it."""

    files: tuple[str, ...]
    file_of: Int64[np.ndarray, " samples"]
    lines: Int64[np.ndarray, " samples"] | None
    """As the file counts them; None where each file as a whole is a sample."""

    def name(self, index: int) -> str:
        """Return 'file:line', or the file."""
        file = self.files[self.file_of[index]]
        return file if self.lines is None else f"{file}:{self.lines[index]}"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a split's samples come to."""

    digests: UInt64[np.ndarray, " samples"]
    """BLAKE2b of what a network reads of each, without its labels."""
    characters: int


class TextSamples(Samples):
    """Samples of text, which can say how much they are and whether they changed."""

    @abstractmethod
    def measure(self) -> Measure:
        """Return the digests of the samples and their characters in all. Reads everything."""

    @abstractmethod
    def answers(self) -> bytes:
        """Return what is to be learned of the samples, as bytes that change with it."""

    def digest(self) -> bytes:
        """Return 16 bytes that change if a sample or its labels do, or their order."""
        return digest_of(self, self.measure())


def characters_of(samples: Samples) -> int:
    """Return the characters of samples of text, or of several splits of them. Reads everything."""
    if isinstance(samples, Joined):
        return sum(map(characters_of, samples.parts))
    assert isinstance(samples, TextSamples), samples
    return samples.measure().characters


def digest_of(samples: TextSamples, measure: Measure) -> bytes:
    """Return the digest of samples that are measured already."""
    content = blake2b(measure.digests.astype("<u8").tobytes(), digest_size=16)
    content.update(samples.answers())
    return content.digest()


def hashed(parts: Iterable[bytes | memoryview]) -> int:
    """Return a number made of the parts and of where each ends; 0 is kept for 'none'."""
    content = blake2b(digest_size=8)
    for part in parts:
        content.update(len(part).to_bytes(8, "little"))
        content.update(part)
    return int.from_bytes(content.digest(), "little") or 1


def characters_in(text: bytes | memoryview) -> int:
    """Return the characters of UTF-8: all bytes but those that continue one."""
    units = np.frombuffer(text, np.uint8)
    return int(np.count_nonzero((units & 0xC0) != 0x80))


@dataclass(frozen=True, kw_only=True)
class RowStore:
    """All rows of a data set, which its splits share."""

    texts: Packed
    """`width` texts a row."""
    width: int
    """1, or 2 for pairs."""
    places: Places


class Rows(TextSamples):
    """Texts, or pairs of them, with a label or several."""

    def __init__(
        self,
        store: RowStore,
        rows: Int64[np.ndarray, " samples"],
        labels: Int64[np.ndarray, " samples"],
        several: Ragged | None = None,
    ) -> None:
        """Take all labels of each row of the store as `several`, where a text may have several."""
        self.store = store
        self.rows = rows
        self.labels = labels
        self.several = several

    def read(self, index: int) -> Row:
        """Return the texts and all labels of a row."""
        row = int(self.rows[index])
        width = self.store.width
        return Row(
            texts=tuple(self.store.texts.text(row * width + place) for place in range(width)),
            labels=self.several.at(row) if self.several else (int(self.labels[index]),),
        )

    def name(self, index: int) -> str:
        """Return 'file:line', or the file where it is the text."""
        return self.store.places.name(int(self.rows[index]))

    def select(self, indices: NDArray[np.int64]) -> "Rows":
        """Return only those rows, in that order; the texts are shared."""
        return Rows(self.store, self.rows[indices], self.labels[indices], self.several)

    def measure(self) -> Measure:
        """Return the digests of the rows, and their characters in all."""
        digests, characters = np.empty(len(self), np.uint64), 0
        width, texts = self.store.width, self.store.texts
        for index, row in enumerate(self.rows.tolist()):
            parts = [texts.raw(row * width + place) for place in range(width)]
            digests[index] = hashed(parts)
            characters += sum(map(characters_in, parts))
        return Measure(digests=digests, characters=characters)

    def answers(self) -> bytes:
        """Return the labels."""
        if self.several is None:
            return self.labels.astype("<i8").tobytes()
        return repr([self.several.at(row) for row in self.rows.tolist()]).encode()


@dataclass(frozen=True, kw_only=True)
class QuestionStore:
    """All questions of a data set, which its splits share; a context is kept once."""

    identities: Packed
    questions: Packed
    contexts: Packed
    context_of: Int64[np.ndarray, " questions"]
    answer_texts: Packed
    answer_starts: Ragged
    """Starts of the answers, by question; their texts lie in the same order."""
    places: Places


class Questions(TextSamples):
    """Questions, each with the passage that answers it or does not."""

    def __init__(self, store: QuestionStore, rows: Int64[np.ndarray, " samples"]) -> None:
        self.store = store
        self.rows = rows
        self.labels = np.zeros(len(rows), np.int64)

    def read(self, index: int) -> Question:
        """Return one question."""
        row = int(self.rows[index])
        return Question(
            identity=self.store.identities.text(row),
            question=self.store.questions.text(row),
            context=self.store.contexts.text(int(self.store.context_of[row])),
            answers=self.answers_of(row),
        )

    def answers_of(self, row: int) -> tuple[tuple[str, int], ...]:
        """Return texts and starts of the answers to a question of the store."""
        starts = self.store.answer_starts.at(row)
        first = int(self.store.answer_starts.ends[row]) - len(starts)
        return tuple(
            (self.store.answer_texts.text(first + place), start)
            for place, start in enumerate(starts)
        )

    def name(self, index: int) -> str:
        """Return 'file:line'."""
        return self.store.places.name(int(self.rows[index]))

    def select(self, indices: NDArray[np.int64]) -> "Questions":
        """Return only those questions, in that order; the texts are shared."""
        return Questions(self.store, self.rows[indices])

    def measure(self) -> Measure:
        """Return the digests of the questions with their contexts, and the characters of both.

        The characters of a context count once, however many questions are asked about it.
        """
        store = self.store
        contexts = {int(row) for row in store.context_of[self.rows]}
        context_digests = {row: hashed([store.contexts.raw(row)]) for row in contexts}
        characters = sum(characters_in(store.contexts.raw(row)) for row in contexts)
        digests = np.empty(len(self), np.uint64)
        for index, row in enumerate(self.rows.tolist()):
            question = store.questions.raw(row)
            context = context_digests[int(store.context_of[row])]
            digests[index] = hashed([question, context.to_bytes(8, "little")])
            characters += characters_in(question)
        return Measure(digests=digests, characters=characters)

    def answers(self) -> bytes:
        """Return identities and answers."""
        content = blake2b()
        for row in self.rows.tolist():
            content.update(self.store.identities.raw(row))
            content.update(repr(self.answers_of(row)).encode())
        return content.digest()


@dataclass(frozen=True, kw_only=True)
class ConversationStore:
    """All conversations of a data set, which its splits share."""

    contents: Packed
    roles: Ragged
    """Indices into `ROLES`, by conversation; the contents lie in the same order."""
    places: Places


ROLES = ("system", "user", "assistant")


class Conversations(TextSamples):
    """Conversations of a user and an assistant."""

    def __init__(self, store: ConversationStore, rows: Int64[np.ndarray, " samples"]) -> None:
        self.store = store
        self.rows = rows
        self.labels = np.zeros(len(rows), np.int64)

    def read(self, index: int) -> tuple[Message, ...]:
        """Return the messages in their order."""
        row = int(self.rows[index])
        roles = self.store.roles.at(row)
        first = int(self.store.roles.ends[row]) - len(roles)
        return tuple(
            Message(role=ROLES[role], content=self.store.contents.text(first + place))
            for place, role in enumerate(roles)
        )

    def name(self, index: int) -> str:
        """Return 'file:line'."""
        return self.store.places.name(int(self.rows[index]))

    def select(self, indices: NDArray[np.int64]) -> "Conversations":
        """Return only those conversations, in that order; the texts are shared."""
        return Conversations(self.store, self.rows[indices])

    def measure(self) -> Measure:
        """Return the digests of the conversations, and their characters in all."""
        digests, characters = np.empty(len(self), np.uint64), 0
        for index in range(len(self)):
            messages = self.read(index)
            digests[index] = hashed(
                text.encode() for message in messages for text in (message.role, message.content)
            )
            characters += sum(len(message.content) for message in messages)
        return Measure(digests=digests, characters=characters)

    def answers(self) -> bytes:
        """Return nothing: what is learned is in the conversation."""
        return b""


class Documents(TextSamples):
    """Plain text for language modeling, read piece by piece."""

    @abstractmethod
    def read(self, index: int) -> Iterator[str]:
        """Yield the document in pieces of about a million characters, cut at ends of lines.

        A line that is longer is cut between any two characters. Lines end with a line feed alone.
        """

    def answers(self) -> bytes:
        """Return nothing: what is learned is the text."""
        return b""


class FileDocuments(Documents):
    """Files, or parts of files."""

    def __init__(self, root: Path, parts: Sequence[Part]) -> None:
        """Take the folder to which the paths of the parts are relative."""
        self.root = root
        self.parts = tuple(parts)
        self.labels = np.zeros(len(self.parts), np.int64)

    def read(self, index: int) -> Iterator[str]:
        """Yield the document in pieces. Raises `OSError` if the file can't be read."""
        return pieces(self.root, self.parts[index], PIECE_CHARACTERS)

    def name(self, index: int) -> str:
        """Return the file; a part of one is told by its bytes."""
        part = self.parts[index]
        return part.file if part.whole else f"{part.file}[{part.begin}:{part.end}]"

    def select(self, indices: NDArray[np.int64]) -> "FileDocuments":
        """Return only those documents, in that order."""
        return FileDocuments(self.root, [self.parts[index] for index in indices.tolist()])

    def measure(self) -> Measure:
        """Return the digests of the documents' bytes, and their characters in all."""
        digests, characters = np.empty(len(self), np.uint64), 0
        for index, part in enumerate(self.parts):
            content = blake2b(digest_size=8)
            for chunk in raw_chunks(self.root, part):
                content.update(chunk)
                if part.encoding == "utf-8":
                    characters += characters_in(chunk)
            if part.encoding != "utf-8":
                characters += sum(map(len, self.read(index)))
            digests[index] = int.from_bytes(content.digest(), "little") or 1
        return Measure(digests=digests, characters=characters)


class RowDocuments(Documents):
    """Rows of a table, each a document."""

    def __init__(self, texts: Packed, places: Places, rows: Int64[np.ndarray, " samples"]) -> None:
        self.texts = texts
        self.places = places
        self.rows = rows
        self.labels = np.zeros(len(rows), np.int64)

    def read(self, index: int) -> Iterator[str]:
        """Yield the text, as one piece."""
        yield self.texts.text(int(self.rows[index]))

    def name(self, index: int) -> str:
        """Return 'file:line'."""
        return self.places.name(int(self.rows[index]))

    def select(self, indices: NDArray[np.int64]) -> "RowDocuments":
        """Return only those documents, in that order; the texts are shared."""
        return RowDocuments(self.texts, self.places, self.rows[indices])

    def measure(self) -> Measure:
        """Return the digests of the documents, and their characters in all."""
        digests, characters = np.empty(len(self), np.uint64), 0
        for index, row in enumerate(self.rows.tolist()):
            text = self.texts.raw(row)
            digests[index] = hashed([text])
            characters += characters_in(text)
        return Measure(digests=digests, characters=characters)
