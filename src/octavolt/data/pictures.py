"""Pictures as files or as one array. Names lie in two arrays, not in a million Python strings."""

import errno
import os
from abc import abstractmethod
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt, UInt8, UInt64
from numpy.typing import NDArray

from octavolt.contract import Pictures
from octavolt.units import GIB, format_bytes

MOST_FILE_BYTES = 2 * GIB
"""A larger file is no picture that could be decoded: 178 million pixels of 12 bytes each."""
ODD = np.uint64(0x9E3779B97F4A7C15)
"""An odd factor maps rows to keys one to one, far apart: Knuth, volume 3, section 6.4."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """File names, end to end. Forked workers share them, as reading counts no references."""

    text: UInt8[np.ndarray, " characters"]
    ends: Int64[np.ndarray, " names"]


def packed(
    rows: Iterable[tuple[bytes, tuple[int, ...]]], *, columns: int
) -> tuple[Names, Int64[np.ndarray, "names columns"]]:
    """Return the names, and the numbers that came with each as a row."""
    text, ends, numbers = bytearray(), array("q"), array("q")
    for name, row in rows:
        text += name
        ends.append(len(text))
        numbers.extend(row)
    names = Names(
        text=np.frombuffer(bytes(text), np.uint8), ends=np.frombuffer(ends.tobytes(), np.int64)
    )
    return names, np.frombuffer(numbers.tobytes(), np.int64).reshape(len(ends), columns)


def name_at(names: Names, row: int) -> bytes:
    """Return one name as the file system spells it."""
    first = int(names.ends[row - 1]) if row else 0
    return names.text[first : int(names.ends[row])].tobytes()


def readable(name: bytes) -> str:
    """Return a file name that can be printed and written as UTF-8, whatever its bytes are."""
    return name.decode("utf-8", "backslashreplace")


class Stamped(Pictures):
    """Pictures that can tell without being read whether they changed."""

    @abstractmethod
    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return a number a picture: another one as soon as its file changes."""


class FilePictures(Stamped):
    """A file a picture."""

    def __init__(
        self,
        root: Path,
        names: Names,
        rows: Int64[np.ndarray, " pictures"],
        labels: Int64[np.ndarray, " pictures"],
    ) -> None:
        self.root = root
        self.names = names
        self.rows = rows
        self.labels = labels

    def path(self, index: int) -> Path:
        """Return where the file is; a name may be absolute."""
        return self.root / os.fsdecode(name_at(self.names, int(self.rows[index])))

    def read(self, index: int) -> bytes:
        """Return the bytes of the file."""
        path = self.path(index)
        with path.open("rb", buffering=0) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes > MOST_FILE_BYTES:
                limit = f"{format_bytes(size_bytes)}, more than {format_bytes(MOST_FILE_BYTES)}"
                raise OSError(errno.EFBIG, limit, str(path))
            return file.read()

    def name(self, index: int) -> str:
        """Return the file relative to the data set."""
        return readable(name_at(self.names, int(self.rows[index])))

    def select(self, indices: NDArray[np.int64]) -> "FilePictures":
        """Return only those pictures, in that order; the names are shared."""
        return FilePictures(self.root, self.names, self.rows[indices], self.labels[indices])

    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return a hash of name, size and times of each file; 0 for one that is gone."""
        # Joined as bytes: a path object each would double the time of a check of a million files.
        root = os.fsencode(self.root.absolute()) + b"/"
        names = (name_at(self.names, row) for row in self.rows.tolist())
        paths = (name if name.startswith(b"/") else root + name for name in names)
        return np.fromiter(map(file_stamp, paths), np.uint64, len(self))


def file_stamp(path: bytes) -> int:
    """Return a hash of name, size and times, or 0 if the file can't be asked."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0
    # The time of the last change of status can't be set back, as `cp -p` does with the other.
    times = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} ".encode()
    return int.from_bytes(blake2b(times + path, digest_size=8).digest(), "little")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Pictures of one size in one array, in memory or mapped from a file."""

    title: str
    """What the array is called: its pictures are named 'title:row'."""
    origin: Path
    """The file that it came from."""
    pixels: UInt[np.ndarray, "pictures height width *channels"]


class ArrayPictures(Stamped):
    """Rows of one or several stacks; rows are counted through all of them."""

    def __init__(
        self,
        stacks: tuple[Stack, ...],
        rows: Int64[np.ndarray, " pictures"],
        labels: Int64[np.ndarray, " pictures"],
    ) -> None:
        self.stacks = stacks
        self.rows = rows
        self.labels = labels

    def place(self, index: int) -> tuple[Stack, int]:
        """Return the stack that holds the picture, and its row in there."""
        row = int(self.rows[index])
        for stack in self.stacks:
            if row < len(stack.pixels):
                return stack, row
            row -= len(stack.pixels)
        raise IndexError(index)

    def read(self, index: int) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """Return the pixels."""
        stack, row = self.place(index)
        pixels: NDArray[np.uint8] = stack.pixels[row]
        return pixels

    def name(self, index: int) -> str:
        """Return 'title:row', rows counted from 0 as in the array."""
        stack, row = self.place(index)
        return f"{stack.title}:{row}"

    def select(self, indices: NDArray[np.int64]) -> "ArrayPictures":
        """Return only those pictures, in that order; the arrays are shared."""
        return ArrayPictures(self.stacks, self.rows[indices], self.labels[indices])

    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return a number made of the row and of name, size and times of the file."""
        stamps = np.zeros(len(self), np.uint64)
        first = 0
        for stack in self.stacks:
            inside = (self.rows >= first) & (self.rows < first + len(stack.pixels))
            title = blake2b(stack.title.encode(), digest_size=8).digest()
            base = file_stamp(os.fsencode(stack.origin.absolute())) ^ int.from_bytes(
                title, "little"
            )
            stamps[inside] = np.uint64(base) ^ (self.rows[inside].astype(np.uint64) * ODD)
            first += len(stack.pixels)
        return stamps
