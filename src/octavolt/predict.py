"""Prediction: an answer for each file, and a reason for each that has none."""

import glob
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from octavolt.contract import Preprocessing
from octavolt.data.augment import central_crop
from octavolt.data.decode import paint, raster
from octavolt.errors import OctavoltError
from octavolt.networks.opened import Opened
from octavolt.tasks.image_classification import PictureBatch

PICTURE_ENDINGS = frozenset(
    [
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".webp",
        ".bmp",
        ".gif",
        ".tif",
        ".tiff",
        ".ppm",
        ".pgm",
        ".pbm",
        ".pnm",
        ".ico",
        ".tga",
        ".jp2",
        ".avif",
    ]
)
"""What is taken from a folder; a file that is named itself may end as it likes."""
BATCHES_AHEAD = 2


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the network says of one file, or why it can't."""

    file: str
    answer: dict[str, Any] | None
    error: str | None = None


def inputs(named: Iterable[str]) -> Iterator[str]:
    """Yield the files that paths, folders and patterns mean, in order; '-' reads a list.

    A name that means nothing is yielded itself, so that it gets a line of error like a bad file.
    """
    for one in named:
        if one == "-":
            yield from inputs(line for line in listed() if line)
        elif one and Path(one).is_dir():
            yield from in_folder(Path(one))
        elif not Path(one).exists() and glob.has_magic(one):
            yield from sorted(glob.glob(one, recursive=True)) or [one]  # noqa: PTH207  (** and /)
        else:
            yield one


def listed() -> Iterator[str]:
    """Yield the lines of standard input; bytes that are not UTF-8 stay what they are."""
    with os.fdopen(os.dup(0), "rb") as lines:
        for line in lines:
            yield os.fsdecode(line.rstrip(b"\r\n"))


def in_folder(folder: Path) -> Iterator[str]:
    """Yield the pictures below a folder, sorted; links to folders are not followed."""
    for here, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if Path(name).suffix.lower() in PICTURE_ENDINGS:
                yield str(Path(here, name))


def predict(opened: Opened, named: Iterable[str], *, batch_size: int = 32) -> Iterator[Prediction]:
    """Yield an answer or an error for each file, in order; memory is that of a few batches."""
    files = inputs(named)
    with ThreadPoolExecutor(opened.machine.threads) as pool:
        under_way: deque[list[tuple[str, Future[Any]]]] = deque()
        try:
            while True:
                group = [
                    (file, pool.submit(pixels_of, file, opened.preprocessing))
                    for file in islice(files, batch_size)
                ]
                if group:
                    under_way.append(group)
                if not under_way:
                    return
                if len(under_way) >= BATCHES_AHEAD or not group:
                    yield from answered(opened, under_way.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def pixels_of(file: str, preprocessing: Preprocessing) -> UInt8[np.ndarray, "height width 3"]:
    """Return a file's picture as the network sees it, but for the normalization."""
    if Path(file).exists() and not Path(file).is_file():  # a pipe would be waited for
        raise ValueError("it is no ordinary file")
    source = raster(Path(file).read_bytes(), white_level=preprocessing.white_level)
    size = preprocessing.image_size
    window = central_crop(
        source.height, source.width, image_size=size, crop_fraction=preprocessing.crop_fraction
    )
    slot = np.empty((size, size, 3), np.uint8)
    paint(source, window, slot)
    return slot


def answered(opened: Opened, group: list[tuple[str, Future[Any]]]) -> Iterator[Prediction]:
    """Yield the predictions of one batch of files."""
    pictures: dict[int, np.ndarray] = {}
    errors: dict[int, str] = {}
    for place, (_, future) in enumerate(group):
        try:
            pictures[place] = future.result()
        except OSError as error:
            errors[place] = error.strerror or str(error)
        except (ValueError, MemoryError) as error:
            errors[place] = str(error)
    answers: dict[int, dict[str, Any]] = {}
    if pictures:
        answers = dict(zip(pictures, ask(opened, [*pictures.values()]), strict=True))
    for place, (file, _) in enumerate(group):
        yield Prediction(file=file, answer=answers.get(place), error=errors.get(place))


@torch.inference_mode()
def ask(opened: Opened, pictures: list[np.ndarray]) -> list[dict[str, Any]]:
    """Return what the network says of pictures of the input's size."""
    batch = PictureBatch(
        pixels=torch.from_numpy(np.stack(pictures)),
        labels=torch.zeros(len(pictures), dtype=torch.int64),
        class_count=len(opened.classes),
        preprocessing=opened.preprocessing,
    ).to(opened.machine.device)
    with opened.machine.autocast():
        outputs = opened.network(*batch.inputs)
    return opened.task.present(opened.network.decode(outputs), opened.classes)


def check_inputs(named: list[str]) -> None:
    """Raise if nothing was named to predict."""
    if not named:
        raise OctavoltError("Name files, folders or patterns to predict, or - for a list.")
