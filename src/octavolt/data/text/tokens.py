"""Text tokenized once, kept in files that are mapped into memory.

A folder for each key: `tokens.bin`, all numbers back to back, 2 bytes each where the vocabulary
allows, else 4; `samples.bin`, where each sample ends, then how many bytes each one's text has, 8
bytes each; `header.json`. Little endian. A folder gets its name when all of it is on disk.
"""

import io
import json
import os
import secrets
import shutil
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavolt.contract import Progress
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.data.text.words import cut
from octavolt.errors import OctavoltError
from octavolt.units import MIB, format_bytes

SCHEMA = 1
MOST_MEMORY_BYTES = 64 * MIB
"""What is tokenized into memory where the cache can't be written."""
BATCH_CHARACTERS, BATCH_TEXTS = 2**20, 4096
"""Of texts that are tokenized together, on all threads."""
LEFTOVER_SECONDS = 3600.0
"""An unfinished folder that nobody wrote to for so long was left by a process that was killed."""
UNFINISHED = ".unfinished"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Tokenized samples. Arrays are read only, and read from the disk when they are looked at."""

    ids: NDArray[np.uint16] | NDArray[np.int32]
    """Of all samples, back to back."""
    ends: NDArray[np.int64]
    """Where each sample ends in `ids`."""
    text_bytes: NDArray[np.int64]
    """Of each sample's text in UTF-8; 0 where nobody counted."""

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.ends)

    def sample(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of one sample."""
        first = int(self.ends[index - 1]) if index else 0
        return self.ids[first : int(self.ends[index])].astype(np.int32)

    def lengths(self) -> NDArray[np.int64]:
        """Return the tokens of each sample."""
        return np.diff(self.ends, prepend=0)


class CacheUnwritableError(Exception):
    """The place for tokens can't be written, or no further."""


@contextmanager
def writing() -> Iterator[None]:
    """Tell what goes wrong in keeping tokens from what goes wrong in reading their texts."""
    try:
        yield
    except OSError as error:
        raise CacheUnwritableError from error


class Writer:
    """Takes the tokens of one sample after another."""

    def __init__(
        self, file: io.BufferedIOBase, *, vocabulary_size: int, most_bytes: int | None = None
    ) -> None:
        self._file = file
        self._vocabulary_size = vocabulary_size
        self._most_bytes = most_bytes
        self._dtype = dtype_of(vocabulary_size)
        self._ends = array("q")
        self._text_bytes = array("q")
        self._open_text_bytes = 0
        self.token_count = 0

    def extend(self, ids: NDArray[Any], *, text_bytes: int = 0) -> None:
        """Go on with a sample."""
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self._vocabulary_size:
            # An assertion would be left out by -O, and numbers would wrap around unseen.
            raise ValueError(
                f"tokens from {ids.min()} to {ids.max()} with a vocabulary of "
                f"{self._vocabulary_size}"
            )
        self.token_count += len(ids)
        self._open_text_bytes += text_bytes
        if self._most_bytes is not None and self.token_count * self._dtype.itemsize > (
            self._most_bytes
        ):
            raise CacheUnwritableError
        with writing():
            self._file.write(np.ascontiguousarray(ids, self._dtype).data)

    def add(self, ids: NDArray[Any], *, text_bytes: int = 0) -> None:
        """End a sample with these tokens: all of it, unless `extend` began it."""
        self.extend(ids, text_bytes=text_bytes)
        self._ends.append(self.token_count)
        self._text_bytes.append(self._open_text_bytes)
        self._open_text_bytes = 0

    def samples(self) -> NDArray[np.int64]:
        """Return where the samples end, and the bytes of their texts."""
        return np.array([self._ends, self._text_bytes], "<i8")


Make = Callable[[Writer], None]
"""Writes all samples. It may be called again if a disk is full, so it begins its texts anew."""


def dtype_of(vocabulary_size: int) -> np.dtype[Any]:
    """Return what holds a token of such a vocabulary."""
    return np.dtype("<u2" if vocabulary_size <= 2**16 else "<i4")


def default_folder() -> Path:
    """Return where tokens are kept, in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "octavolt" / "tokens"


def cache_key(digest: str, tokenizer: Tokenizer, **settings: Any) -> str:
    """Return what changes if the texts, by their digest, the tokenizer or a setting does."""
    said = json.dumps([SCHEMA, digest, settings], sort_keys=True).encode()
    made = blake2b(said + b"\0" + tokenizer.to_json().encode(), digest_size=16)
    return made.hexdigest()


def cached(folder: Path | None, key: str, make: Make, *, vocabulary_size: int) -> Tokens:
    """Return the tokens kept in `folder` under that key, made first if there are none.

    Without a folder they are kept for this process. Where the folder can't be written they are
    too, if they are few. Two processes may make the same at once: one of them is used by both.
    """
    if folder is None:
        return made_aside(make, vocabulary_size=vocabulary_size)
    place = folder / key
    found = open_tokens(place, vocabulary_size=vocabulary_size)
    if found is not None:
        return found
    try:
        write_tokens(place, make, vocabulary_size=vocabulary_size)
        made = open_tokens(place, vocabulary_size=vocabulary_size)
    except CacheUnwritableError as error:
        return made_in_memory(folder, make, error, vocabulary_size=vocabulary_size)
    if made is None:
        raise OctavoltError(f"{place} was changed while it was written. Remove it, and begin anew.")
    return made


def open_tokens(place: Path, *, vocabulary_size: int) -> Tokens | None:
    """Return what a folder holds, or None if it is not whole, or not of such a vocabulary."""
    try:
        header = json.loads((place / "header.json").read_bytes())
        expected = header_of(
            token_count=header["tokens"],
            sample_count=header["samples"],
            vocabulary_size=vocabulary_size,
        )
        if header != expected:
            return None
        ids = mapped(place / "tokens.bin", dtype_of(vocabulary_size), header["tokens"])
        samples = mapped(place / "samples.bin", np.dtype("<i8"), 2 * header["samples"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    ends, text_bytes = samples.reshape(2, -1)
    if len(ids) != (int(ends[-1]) if len(ends) else 0) or (np.diff(ends, prepend=0) < 0).any():
        return None
    return Tokens(ids=ids, ends=ends, text_bytes=text_bytes)


def mapped(file: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return the numbers in a file. Raises `ValueError` unless it holds just so many."""
    size = file.stat().st_size
    if size != count * dtype.itemsize:
        raise ValueError(f"{file} has {size} bytes, not {count * dtype.itemsize}")
    # Nothing can't be mapped.
    return np.memmap(file, dtype, mode="r") if count else np.zeros(0, dtype)


def header_of(*, token_count: int, sample_count: int, vocabulary_size: int) -> dict[str, Any]:
    """Return what stands in header.json."""
    return {
        "schema": SCHEMA,
        "dtype": dtype_of(vocabulary_size).str,
        "vocabulary": vocabulary_size,
        "tokens": token_count,
        "samples": sample_count,
    }


def write_tokens(place: Path, make: Make, *, vocabulary_size: int) -> None:
    """Make tokens aside, then move them to their place, unless another process was first."""
    with writing():
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place.parent)
    aside = place.with_name(f"{place.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        write_files(aside, make, vocabulary_size=vocabulary_size)
        with writing():
            move(aside, place, vocabulary_size=vocabulary_size)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def move(aside: Path, place: Path, *, vocabulary_size: int) -> None:
    """Give a folder its name, which one that is whole keeps."""
    try:
        aside.rename(place)
    except OSError:
        if open_tokens(place, vocabulary_size=vocabulary_size) is not None:
            return
        # What is there was cut off, or is of an older octavolt.
        old = place.with_name(f"{place.name}.{secrets.token_hex(4)}{UNFINISHED}")
        place.rename(old)
        aside.rename(place)
        shutil.rmtree(old, ignore_errors=True)


def write_files(folder: Path, make: Make, *, vocabulary_size: int) -> None:
    """Write the files of a new folder, and wait until they are on disk."""
    with writing():
        folder.mkdir()
        file = (folder / "tokens.bin").open("xb")
    try:
        writer = Writer(file, vocabulary_size=vocabulary_size)
        make(writer)
        with writing():
            file.flush()
            os.fsync(file.fileno())
    finally:
        # On a full disk closing fails as writing did.
        with suppress(OSError):
            file.close()
    samples = writer.samples()
    header = header_of(
        token_count=writer.token_count,
        sample_count=samples.shape[1],
        vocabulary_size=vocabulary_size,
    )
    with writing():
        write_bytes_through(folder / "samples.bin", samples.tobytes())
        write_bytes_through(folder / "header.json", json.dumps(header).encode())


def write_bytes_through(path: Path, data: bytes) -> None:
    """Write a new file, and wait until it is on disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left unfinished; on newer folders another may be at work."""
    for left in folder.glob(f"*{UNFINISHED}"):
        try:
            newest = max(path.stat().st_mtime for path in (left, *left.iterdir()))
        except OSError:
            continue
        if time.time() - newest > LEFTOVER_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def made_aside(make: Make, *, vocabulary_size: int) -> Tokens:
    """Return tokens in a file without a name: the system forgets it when the process ends."""
    with tempfile.TemporaryDirectory(prefix="octavolt-tokens-") as folder:
        place = Path(folder) / "tokens"
        try:
            write_files(place, make, vocabulary_size=vocabulary_size)
        except CacheUnwritableError as error:
            return made_in_memory(Path(folder).parent, make, error, vocabulary_size=vocabulary_size)
        made = open_tokens(place, vocabulary_size=vocabulary_size)
        assert made is not None, place
        return made


def made_in_memory(
    folder: Path, make: Make, why: CacheUnwritableError, *, vocabulary_size: int
) -> Tokens:
    """Return tokens in memory, as `folder` can't be written; raise if they are many."""
    file = io.BytesIO()
    writer = Writer(file, vocabulary_size=vocabulary_size, most_bytes=MOST_MEMORY_BYTES)
    try:
        make(writer)
    except CacheUnwritableError:
        reason = why.__cause__.strerror if isinstance(why.__cause__, OSError) else None
        raise OctavoltError(
            f"Can't keep tokens in {folder}: {reason or 'no room'}; and they take more than "
            f"{format_bytes(MOST_MEMORY_BYTES)} of memory. Make room, or set XDG_CACHE_HOME to a "
            "folder that has some."
        ) from why
    ends, text_bytes = writer.samples()
    ids = np.frombuffer(file.getvalue(), dtype_of(vocabulary_size))
    return Tokens(ids=ids, ends=ends, text_bytes=text_bytes)


def tokenize_documents(
    documents: Iterable[Iterable[str]],
    tokenizer: Tokenizer,
    writer: Writer,
    *,
    total_bytes: int = 0,
    progress: Progress = lambda _done, _total: None,
    batch_characters: int = BATCH_CHARACTERS,
) -> None:
    """Write each document, given in pieces of any size, as a sample that ends in the end of text.

    Memory does not grow with the text, but for 16 bytes a document. `progress` is told the bytes of
    text that are done.
    """
    end = np.array([] if tokenizer.end_id is None else [tokenizer.end_id], np.int32)
    done_bytes = 0
    for batch in batches(documents, batch_characters):
        for text, ids in zip(batch, tokenizer.encode([text or "" for text in batch]), strict=True):
            if text is None:
                writer.add(end)
            else:
                size = len(text.encode(errors="replace"))
                writer.extend(ids, text_bytes=size)
                done_bytes += size
        progress(done_bytes, max(total_bytes, done_bytes))


def batches(
    documents: Iterable[Iterable[str]], batch_characters: int
) -> Iterator[list[str | None]]:
    """Yield pieces of text, as many as are tokenized together; None where a document ends."""
    batch: list[str | None] = []
    characters = 0
    for document in documents:
        for text in cut(document):
            batch.append(text)
            characters += len(text)
            if characters >= batch_characters:
                yield batch
                batch, characters = [], 0
        batch.append(None)
        if len(batch) >= BATCH_TEXTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
