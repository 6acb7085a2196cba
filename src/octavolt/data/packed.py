"""Pictures re-encoded once to a bounded size, in one memory-mapped file a split (`--cache`).

Layout: `MAGIC` and a JSON header, filled up to `TABLES` bytes; count + 1 offsets and count labels,
8 bytes each, little endian; then the JPEGs, back to back. A file is used only if its header is word
for word the one that would be written today. It gets its name when all of it is on disk.
"""

import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from octavolt.contract import Pictures
from octavolt.data.augment import whole
from octavolt.data.decode import paint, raster
from octavolt.errors import OctavoltError
from octavolt.units import format_bytes

MAGIC = b"octavolt packed pictures\n"
VERSION = 1
TABLES = 4096
SIZE_FACTOR = 1.15
"""Shorter side by input size: a little over the 1 / 0.875 that evaluation resizes to."""
QUALITY, SUBSAMPLING = 90, "420"
"""On 258-pixel photos: 29 kB, 36 dB and 0.73 ms to decode; with colors at full size (4:4:4) 36 kB,
38 dB and 1.02 ms. Photos come with colors at half the size already, and reading is what counts."""
SAMPLE = 64
LEFTOVER_SECONDS = 3600.0
"""An unfinished file that nobody wrote to for so long was left by a process that was killed."""
UNFINISHED = ".unfinished"
AHEAD = 16
"""Pictures under way for each thread."""


@dataclass(frozen=True, kw_only=True)
class PackedPlan:
    """What packing will take, by a sample of the pictures."""

    bytes: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Packing:
    """How pictures are packed: a file that was packed otherwise is made anew."""

    image_size: int
    source_digest: str
    white_level: int = 65535

    def shorter_side(self) -> int:
        """Return the pixels that the shorter side of a packed picture has at most."""
        return math.ceil(SIZE_FACTOR * self.image_size)


class PackedPictures(Pictures):
    """The pictures of a packed file, with the names of those it was made from."""

    def __init__(
        self,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        source: Pictures,
        rows: NDArray[np.int64],
    ) -> None:
        self.labels = source.labels[rows]
        self._data = data
        self._offsets = offsets
        self._source = source
        self._rows = rows

    def read(self, index: int) -> memoryview:
        """Return the JPEG as it lies in the file: nothing is copied."""
        row = self._rows[index]
        return self._data[self._offsets[row] : self._offsets[row + 1]].data

    def name(self, index: int) -> str:
        """Return the name of the picture that was packed."""
        return self._source.name(int(self._rows[index]))

    def select(self, indices: NDArray[np.int64]) -> "PackedPictures":
        """Return only those pictures, in that order."""
        return PackedPictures(self._data, self._offsets, self._source, self._rows[indices])


def packed(
    pictures: Pictures,
    folder: Path,
    split: str,
    *,
    image_size: int,
    source_digest: str,
    threads: int,
    white_level: int = 65535,
    announce: Callable[[PackedPlan], None] = lambda plan: None,
    progress: Callable[[int, int], None] = lambda done_count, count: None,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> PackedPictures:
    """Return the pictures packed in `folder`, packing them first if they aren't, or not just so.

    `source_digest` must change whenever names, contents or labels of the pictures do. `announce`
    is told what it will take before it starts, `progress` how many pictures are done of how many.
    Random crops from packed pictures are softer than from large originals.
    """
    packing = Packing(image_size=image_size, source_digest=source_digest, white_level=white_level)
    path = folder / f"{split}.octavolt"
    found = find_packed(pictures, path, packing)
    if found is not None:
        return found
    plan = plan_packed(pictures, packing, threads=threads)
    announce(plan)
    remove_leftovers(folder, split)
    present = next(one for one in (folder, *folder.absolute().parents) if one.is_dir())
    check_room(path, plan, free_bytes=free_bytes(present))
    write_packed(pictures, path, packing, threads=threads, progress=progress)
    made = find_packed(pictures, path, packing)
    assert made is not None, path
    return made


def find_packed(pictures: Pictures, path: Path, packing: Packing) -> PackedPictures | None:
    """Return what that file holds, or None unless it is whole and of these pictures, so packed."""
    if not path.is_file() or path.stat().st_size < TABLES:
        return None
    data: NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
    header = data[:TABLES].tobytes().rstrip(b"\0")
    count = len(pictures)
    expected = header_bytes(packing, count=count, file_bytes=len(data))
    if header != expected:
        return None
    tables = data[TABLES : tables_end(count)].view("<i8")
    offsets, labels = tables[: count + 1], tables[count + 1 :]
    if not np.array_equal(labels, pictures.labels):
        return None
    return PackedPictures(data, offsets, pictures, np.arange(count, dtype=np.int64))


def plan_packed(
    pictures: Pictures,
    packing: Packing,
    *,
    threads: int,
    clock: Callable[[], float] = time.perf_counter,
) -> PackedPlan:
    """Return what packing takes, by packing up to 64 pictures from all over the split."""
    count = len(pictures)
    sample = np.unique(np.linspace(0, count - 1, min(SAMPLE, count)).astype(int)).tolist()
    began = clock()
    sizes = [len(packed_jpeg(pictures, index, packing)) for index in sample]
    seconds_each = (clock() - began) / len(sample)
    return PackedPlan(
        bytes=tables_end(count) + count * sum(sizes) // len(sizes),
        seconds=count * seconds_each / threads,
    )


def packed_jpeg(pictures: Pictures, index: int, packing: Packing) -> bytes:
    """Return a picture as it is packed: upright, never enlarged, grey if it shows no color."""
    try:
        source = raster(pictures.read(index), white_level=packing.white_level)
        scale = min(1.0, packing.shorter_side() / min(source.height, source.width))
        size = (max(1, round(source.height * scale)), max(1, round(source.width * scale)))
        pixels = np.empty((*size, 3), np.uint8)
        paint(source, whole(source.height, source.width), pixels)
    except (ValueError, OSError) as error:
        raise OctavoltError(
            f"{pictures.name(index)}: {error}. Mend or remove it; a training leaves damaged "
            "pictures out with --skip-damaged."
        ) from error
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    if np.array_equal(red, green) and np.array_equal(red, blue):
        grey = np.ascontiguousarray(pixels[..., :1])
        return bytes(simplejpeg.encode_jpeg(grey, QUALITY, "GRAY", "Gray"))
    return bytes(simplejpeg.encode_jpeg(pixels, QUALITY, "RGB", SUBSAMPLING))


def check_room(path: Path, plan: PackedPlan, *, free_bytes: int) -> None:
    """Raise `OctavoltError` if the disk has no room for what is planned, and a tenth more."""
    needed_bytes = plan.bytes * 11 // 10
    if needed_bytes > free_bytes:
        raise OctavoltError(
            f"{path} needs {format_bytes(needed_bytes)}; {format_bytes(free_bytes)} are free. "
            "Make room, choose another folder, or train without --cache."
        )


def write_packed(
    pictures: Pictures,
    path: Path,
    packing: Packing,
    *,
    threads: int,
    progress: Callable[[int, int], None],
) -> None:
    """Pack the pictures into that file, which is there once it is whole and on disk."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unlinked_if_interrupted(aside):
            with aside.open("xb") as file:
                write_all(file, pictures, packing, threads=threads, progress=progress)
            aside.replace(path)
    except OSError as error:
        raise OctavoltError(
            f"{path} can't be written: {error.strerror}. Choose another folder, or train without "
            "--cache."
        ) from error


@contextmanager
def unlinked_if_interrupted(aside: Path) -> Iterator[None]:
    """Remove the file on the way out, unless it got another name."""
    try:
        yield
    finally:
        aside.unlink(missing_ok=True)


def write_all(
    file: BinaryIO,
    pictures: Pictures,
    packing: Packing,
    *,
    threads: int,
    progress: Callable[[int, int], None],
) -> None:
    """Write the pictures, then the tables, then the header, and wait until they are on disk."""
    count = len(pictures)
    file.seek(tables_end(count))
    offsets = [file.tell()]
    for jpeg in packed_jpegs(pictures, packing, threads=threads):
        file.write(jpeg)
        offsets.append(file.tell())
        progress(len(offsets) - 1, count)
    file.seek(TABLES)
    file.write(np.array([*offsets, *pictures.labels.tolist()], "<i8").tobytes())
    file.seek(0)
    file.write(header_bytes(packing, count=count, file_bytes=offsets[-1]))
    file.flush()
    os.fsync(file.fileno())


def packed_jpegs(pictures: Pictures, packing: Packing, *, threads: int) -> Iterator[bytes]:
    """Yield the pictures as they are packed, in order; a few for each thread are under way."""
    count = len(pictures)
    with ThreadPoolExecutor(threads, thread_name_prefix="octavolt-packing") as pool:
        for first in range(0, count, AHEAD * threads):
            indices = range(first, min(first + AHEAD * threads, count))
            yield from pool.map(lambda index: packed_jpeg(pictures, index, packing), indices)


def remove_leftovers(folder: Path, split: str) -> None:
    """Remove what killed processes left unfinished; on newer files another may be at work."""
    for left in folder.glob(f"{split}.octavolt.*{UNFINISHED}"):
        if time.time() - left.stat().st_mtime > LEFTOVER_SECONDS:
            left.unlink(missing_ok=True)


def header_bytes(packing: Packing, *, count: int, file_bytes: int) -> bytes:
    """Return the magic and all that decides whether a file can be used."""
    header = {
        "version": VERSION,
        "count": count,
        "file_bytes": file_bytes,
        "quality": QUALITY,
        "subsampling": SUBSAMPLING,
        "shorter_side_pixels": packing.shorter_side(),
        **asdict(packing),
    }
    written = MAGIC + json.dumps(header, sort_keys=True).encode()
    assert len(written) <= TABLES, written
    return written


def tables_end(count: int) -> int:
    """Return where the JPEGs begin: after count + 1 offsets and count labels."""
    return TABLES + 8 * (2 * count + 1)
