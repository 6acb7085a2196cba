"""Height and width of upright pictures, from what stands in front of their pixels."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from jaxtyping import Int64
from PIL import Image

from octavolt.data.damage import full_decode, opened
from octavolt.data.decode import TURNED
from octavolt.data.jpeg import ORIENTATION_TAG, START, jpeg_header

HEADER_BYTES = 64 * 1024
"""Holds the header of nearly all files; where it does not, all of the file is read."""
THREADS = 8
"""Reading a header is waiting, mostly for a disk or a network."""
CHUNK = 256
"""Pictures a job."""


def upright_size(payload: bytes | memoryview) -> tuple[int, int]:
    """Return height and width of the upright picture. Raises `ValueError` with the reason."""
    if payload[:3] == START:
        header = jpeg_header(payload)
        size = header.height, header.width
        turned = header.is_turned
    else:
        with opened(payload) as picture:
            size = picture.height, picture.width
            turned = orientation(picture) >= TURNED
    return (size[1], size[0]) if turned else size


def orientation(picture: Image.Image) -> int:
    """Return how a picture is stored, 1 to 8 as in EXIF."""
    try:
        value = picture.getexif().get(ORIENTATION_TAG, 1)
    except (SyntaxError, ValueError, OSError, KeyError, TypeError):
        return 1
    return value if isinstance(value, int) else 1


def upright_decode(payload: bytes | memoryview) -> tuple[int, int, int]:
    """Return height and width of the upright picture, and the level of white: all is decoded.

    Raises `ValueError` with the reason.
    """
    _, _, white = full_decode(payload)
    return *upright_size(payload), white


def size_in(path: Path) -> tuple[int, int]:
    """Return height and width of a file's upright picture; zeros where its header can't be read.

    What is wrong with such a file is said by the check, which decodes it.
    """
    try:
        with path.open("rb") as file:
            payload = file.read(HEADER_BYTES)
            try:
                return upright_size(payload)
            except ValueError:
                return upright_size(payload + file.read())
    except (OSError, ValueError):
        return 0, 0


def sizes_of(path: Callable[[int], Path], count: int) -> Int64[np.ndarray, "pictures 2"]:
    """Return the sizes of that many files, whose paths the function gives."""

    def part(first: int) -> list[tuple[int, int]]:
        return [size_in(path(row)) for row in range(first, min(first + CHUNK, count))]

    with ThreadPoolExecutor(THREADS) as pool:
        found = [size for sizes in pool.map(part, range(0, count, CHUNK)) for size in sizes]
    return np.array(found, np.int64).reshape(-1, 2)
