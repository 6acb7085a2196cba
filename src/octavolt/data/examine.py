"""Reads and decodes pictures on several threads, and says what each is or why it is none."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from itertools import islice

import numpy as np
from jaxtyping import Int64, UInt

from octavolt.contract import Pictures
from octavolt.data.damage import MOST_PIXELS, diagnosis, level_for, size_of
from octavolt.data.remembered import Problem

CHUNK = 16
"""Pictures a job: fewer cost more in handing over, more make progress coarse."""
JOBS_A_THREAD = 4
"""Jobs that wait for each thread, so that a million pictures are not a million jobs."""

Finding = tuple[int, int, int, int, int]
"""Digest, bytes, height, width and level of white; zeros where they can't be known."""
Decode = Callable[[bytes | memoryview], tuple[int, int, int]]
"""Bytes to height, width and level of white; raises `ValueError` with the reason."""
Progress = Callable[[int, int], None]
"""Takes how many pictures are read, and of how many."""


def silent(done: int, total: int) -> None:
    """Show nothing."""


def findings_of(
    splits: Mapping[str, Pictures],
    todo: Mapping[str, Int64[np.ndarray, " _"]],
    threads: int,
    progress: Progress,
    decode: Decode,
) -> Iterator[tuple[str, int, Finding, Problem | None]]:
    """Yield what is found on each picture, in order, with a bounded number read ahead."""

    def examine_all(split: str, rows: list[int]) -> list[tuple[Finding, Problem | None]]:
        return [examined(splits[split], row, decode) for row in rows]

    chunks = (
        (split, rows[first : first + CHUNK].tolist())
        for split, rows in todo.items()
        for first in range(0, len(rows), CHUNK)
    )
    total, done = sum(map(len, todo.values())), 0
    waiting: deque[tuple[str, list[int], Future[list[tuple[Finding, Problem | None]]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while True:
            for split, rows in islice(chunks, JOBS_A_THREAD * threads - len(waiting)):
                waiting.append((split, rows, pool.submit(examine_all, split, rows)))
            if not waiting:
                return
            split, rows, future = waiting.popleft()
            for row, (finding, problem) in zip(rows, future.result(), strict=True):
                yield split, row, finding, problem
            done += len(rows)
            progress(done, total)


def examined(pictures: Pictures, index: int, decode: Decode) -> tuple[Finding, Problem | None]:
    """Return digest, bytes, height, width and white of a picture, and what is wrong with it."""
    try:
        payload = pictures.read(index)
    except OSError as error:
        return (0, 0, 0, 0, 0), ("unreadable", f"can't be read: {error.strerror or error}")
    if isinstance(payload, np.ndarray):
        return of_pixels(payload), None
    length = len(payload)
    if length == 0:
        return (0, 0, 0, 0, 0), ("zero-byte", "the file is empty")
    digest = int.from_bytes(blake2b(payload, digest_size=8).digest(), "little")
    pixels = pixel_count(payload)
    if pixels > MOST_PIXELS:
        limit = f"{pixels:,} pixels; at most {MOST_PIXELS:,} are decoded"
        return (digest, length, 0, 0, 0), ("too-many-pixels", limit)
    try:
        height, width, white = decode(payload)
    except ValueError as error:
        return (digest, length, 0, 0, 0), diagnosis(payload, str(error))
    return (digest, length, height, width, white), None


def pixel_count(payload: bytes | memoryview) -> int:
    """Return how many pixels the header states, or 0 if it can't be read: decoding will say why."""
    try:
        height, width = size_of(payload)
    except ValueError:
        return 0
    return height * width


def of_pixels(pixels: UInt[np.ndarray, "height width *channels"]) -> Finding:
    """Return the finding on pixels that need no decoding."""
    body = np.ascontiguousarray(pixels)
    digest = blake2b(body.data, digest_size=8, person=repr(body.shape).encode()[:16]).digest()
    deep = body.dtype == np.uint16
    white = level_for(int(body.max())) if deep else 255
    return int.from_bytes(digest, "little"), body.nbytes, *body.shape[:2], white
