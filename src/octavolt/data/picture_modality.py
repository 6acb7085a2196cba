"""Pictures as a modality: how they are found, checked and made ready."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from octavolt import ranks
from octavolt.contract import (
    Checked,
    DataSet,
    Entry,
    Input,
    Making,
    Modality,
    Pictures,
    Preparation,
    Preprocessing,
    Progress,
    Reading,
    Samples,
    Shape,
    Task,
    Wanted,
)
from octavolt.data import check as checking
from octavolt.data.augment import central_crop
from octavolt.data.balance import class_weights
from octavolt.data.decode import paint, raster
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.data.fingerprint import check_unchanged, fingerprint
from octavolt.data.formats import open_pictures
from octavolt.data.packed import PackedPlan, packed
from octavolt.errors import OctavoltError
from octavolt.runs import read_fields, write_json
from octavolt.tasks.image_classification import PictureBatch
from octavolt.units import counted, format_bytes, format_seconds

LARGEST_IMAGE_PIXELS = 4096
"""Height and width of a network's input; a larger number is a slip of the finger."""
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


class CheckedPictures(Checked):
    """What was found by decoding every picture."""

    def __init__(self, found: checking.Checked) -> None:
        self.found = found
        self.faults = found.faults

    def usable(self, data: DataSet, /) -> DataSet:
        """Return the data set without its damaged pictures."""
        return checking.without_damaged(data, self.found)

    def fingerprint(self, data: DataSet, /) -> bytes:
        """Return a table of all pictures with their digests."""
        return fingerprint(data, self.found)

    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        """Raise, naming pictures, unless the data still are those of the file."""
        check_unchanged(file, data, self.found)

    def digest(self, split: str, /) -> str:
        """Return what changes if a picture of the split does."""
        return blake2b(self.found.splits[split].digests.tobytes(), digest_size=8).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""
        return self.found.to_json()


class PicturePreparation(Preparation):
    """The size to which pictures are cropped and resized, and how they are normalized."""

    def __init__(self, preprocessing: Preprocessing, classes: tuple[str, ...]) -> None:
        self.preprocessing = preprocessing
        self.classes = classes
        self.reading = Reading(image_size=preprocessing.image_size)

    def shape(self, *, task: str) -> Shape:
        """Return what of a network follows from the classes."""
        return Shape(task=task, classes=len(self.classes))

    def save(self, run: Path) -> None:
        """Write preprocessing.json."""
        write_json(run / "preprocessing.json", asdict(self.preprocessing))

    def examples(self, samples: Pictures, making: Making) -> PictureExamples:
        """Return a split's pictures; those of training are augmented as the recipe says."""
        return PictureExamples(
            self._maybe_packed(samples, making),
            self.preprocessing,
            class_count=len(self.classes),
            augmentation=self._augmentation(samples, making),
            pin=making.pin,
        )

    def _augmentation(self, samples: Samples, making: Making) -> Augmentation | None:
        recipe = making.recipe
        if recipe is None:
            return None
        return Augmentation(
            crop_scale_min=recipe.crop_scale_min,
            mirror=recipe.mirror,
            mixup_alpha=recipe.mixup_alpha,
            label_smoothing=recipe.label_smoothing,
            class_weights=class_weights(samples, len(self.classes))
            if recipe.class_weights
            else None,
        )

    def _maybe_packed(self, pictures: Pictures, making: Making) -> Pictures:
        """Return the pictures, re-encoded into one file first if a cache was asked for."""
        if making.cache is None:
            return pictures

        def announce(plan: PackedPlan) -> None:
            making.say(
                f"Packing {counted(len(pictures), 'picture')} of {making.split}: about "
                f"{format_bytes(plan.bytes)} in {making.cache}, {format_seconds(plan.seconds)}."
            )

        for turn in (True, False):  # the first rank of each host builds it, the others find it
            if (making.local_rank == 0) == turn:
                result = packed(
                    pictures,
                    making.cache / f"{making.digest}-{self.preprocessing.image_size}",
                    making.split,
                    image_size=self.preprocessing.image_size,
                    source_digest=making.digest,
                    threads=making.threads,
                    white_level=self.preprocessing.white_level,
                    announce=announce,
                    progress=making.progress,
                )
            ranks.wait()
        return result

    def inputs(self, named: Sequence[str]) -> Iterator[Input]:
        """Yield the files that paths, folders and patterns mean, in order; '-' reads a list."""
        return (Input(name=one) for one in files_meant(named))

    def ready(self, one: Input) -> UInt8[np.ndarray, "height width 3"]:
        """Return a file's picture as the network sees it, but for the normalization."""
        path = Path(one.name)
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ValueError("it is no ordinary file")
        source = raster(path.read_bytes(), white_level=self.preprocessing.white_level)
        size = self.preprocessing.image_size
        window = central_crop(
            source.height,
            source.width,
            image_size=size,
            crop_fraction=self.preprocessing.crop_fraction,
        )
        slot = np.empty((size, size, 3), np.uint8)
        paint(source, window, slot)
        return slot

    def collate(self, ready: Sequence[Any]) -> PictureBatch:
        """Return the batch of several pictures."""
        return PictureBatch(
            pixels=torch.from_numpy(np.stack(ready)),
            labels=torch.zeros(len(ready), dtype=torch.int64),
            class_count=len(self.classes),
            preprocessing=self.preprocessing,
        )


class PictureModality(Modality):
    """Pictures with one label each."""

    sample = "picture"
    metavar = "files, folders or patterns to predict, or - for a list"
    smaller = "--image-size"

    def open(self, source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
        """Return the data set that the user named."""
        del task, reading  # found by looking
        return open_pictures(source, seed=seed)

    def check(self, data: DataSet, *, threads: int, progress: Progress) -> CheckedPictures:
        """Return what was found by decoding every picture once."""
        return CheckedPictures(checking.check(data, threads=threads, progress=progress))

    def prepare(self, wanted: Wanted) -> PicturePreparation:
        """Decide the size of the input."""
        assert isinstance(wanted.checked, CheckedPictures)
        found = wanted.checked.found
        size = choose_image_size(
            wanted.entry,
            asked=wanted.reading.image_size,
            middle_side_pixels=middle_side_pixels(found),
        )
        own = picture_preprocessing(wanted.entry)
        preprocessing = replace(own, image_size=size, white_level=found.white_level)
        return PicturePreparation(preprocessing, wanted.data.classes)

    def published(
        self, entry: Entry, task: Task, classes: tuple[str, ...], folder: Path | None
    ) -> PicturePreparation:
        """Return what the network's table says."""
        del task, folder
        return PicturePreparation(picture_preprocessing(entry), classes)

    def read(self, run: Path) -> PicturePreparation:
        """Return what preprocessing.json and labels.json of a run hold."""
        value = read_fields(
            run / "preprocessing.json",
            image_size=int,
            crop_fraction=(int, float),
            mean=list,
            deviation=list,
            white_level=int,
        )
        preprocessing = Preprocessing(
            image_size=value["image_size"],
            crop_fraction=value["crop_fraction"],
            mean=tuple(value["mean"]),
            deviation=tuple(value["deviation"]),
            white_level=value["white_level"],
        )
        classes = read_fields(run / "labels.json", classes=list)["classes"]
        return PicturePreparation(preprocessing, tuple(classes))


def picture_preprocessing(entry: Entry) -> Preprocessing:
    """Return how a network of the table takes its pictures."""
    assert isinstance(entry.preprocessing, Preprocessing), entry.name
    return entry.preprocessing


def choose_image_size(entry: Entry, *, asked: int | None, middle_side_pixels: float) -> int:
    """Return the input's height and width in pixels.

    Without a wish it is the network's own, or the next multiple of 32 from twice the pictures'
    median shorter side, at least 64, if that is less: pictures enlarged more hold no more detail
    and cost more time.
    """
    if asked is not None:
        if asked < entry.smallest_image_size:
            raise OctavoltError(
                f"{entry.name} can't see pictures of {asked} pixels: its smallest --image-size is "
                f"{entry.smallest_image_size}."
            )
        if asked > LARGEST_IMAGE_PIXELS:
            raise OctavoltError(
                f"--image-size is {asked}; it must be at most {LARGEST_IMAGE_PIXELS}."
            )
        return asked
    enough = max(64, 32 * -(-int(2 * middle_side_pixels) // 32), entry.smallest_image_size)
    return min(picture_preprocessing(entry).image_size, enough)


def middle_side_pixels(found: checking.Checked) -> float:
    """Return the median of the training pictures' shorter sides."""
    split = found.splits["train"]
    sides = np.minimum(split.heights, split.widths)[split.good]
    return float(np.median(sides)) if len(sides) else 0.0


def files_meant(named: Iterable[str]) -> Iterator[str]:
    """Yield the files that paths, folders and patterns mean, in order; '-' reads a list.

    A name that means nothing is yielded itself, so that it gets a line of error like a bad file.
    """
    for one in named:
        if one == "-":
            yield from files_meant(line for line in listed() if line)
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


PICTURES = PictureModality()
