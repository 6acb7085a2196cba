"""Pictures with boxes as a modality: how they are found, checked and made ready."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from octavolt.contract import (
    BoxPreprocessing,
    Checked,
    DataSet,
    Entry,
    Input,
    Making,
    Modality,
    Preparation,
    Progress,
    Reading,
    Shape,
    Task,
    Wanted,
)
from octavolt.data.boxes.checked import BoxesChecked, check_boxes
from octavolt.data.boxes.examples import BoxExamples, placed, together
from octavolt.data.boxes.opened import open_boxes
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import raster
from octavolt.data.picture_modality import LARGEST_IMAGE_PIXELS, files_meant
from octavolt.errors import OctavoltError
from octavolt.runs import read_fields, write_json
from octavolt.tasks.anchors import fit_anchors
from octavolt.tasks.object_detection import BoxBatch
from octavolt.units import counted

STRIDE = 32
"""Pixels of the input a cell of the coarsest map sees: sides are multiples of it."""


class BoxPreparation(Preparation):
    """How pictures are fitted into the input, and anchors fitted to the boxes."""

    def __init__(
        self, preprocessing: BoxPreprocessing, classes: tuple[str, ...], *, fit_anchors: bool
    ) -> None:
        self.preprocessing = preprocessing
        self.classes = classes
        self.reading = Reading(image_size=preprocessing.height, fit_anchors=fit_anchors)

    def shape(self, *, task: str) -> Shape:
        """Return what of a network follows from the classes and the anchors."""
        return Shape(task=task, classes=len(self.classes), anchors=self.preprocessing.anchors)

    def save(self, run: Path) -> None:
        """Write preprocessing.json."""
        value = asdict(self.preprocessing) | {"fit_anchors": self.reading.fit_anchors}
        write_json(run / "preprocessing.json", value)

    def examples(self, samples: BoxedPictures, making: Making) -> BoxExamples:
        """Return a split's pictures; those of training are augmented as the recipe says."""
        return BoxExamples(samples, self.preprocessing, recipe=making.recipe, pin=making.pin)

    def inputs(self, named: Sequence[str]) -> Iterator[Input]:
        """Yield the files that paths, folders and patterns mean, in order; '-' reads a list."""
        return (Input(name=one) for one in files_meant(named))

    def ready(self, one: Input) -> Any:
        """Return a picture, of a file or already in memory, as the network sees it."""
        encoded = one.content
        if encoded is None:
            path = Path(one.name)
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise ValueError("it is no ordinary file")
            encoded = path.read_bytes()
        source = raster(encoded, white_level=self.preprocessing.white_level)
        return placed(source, self.preprocessing)

    def collate(self, ready: Sequence[Any]) -> BoxBatch:
        """Return the batch of several pictures, the smaller ones padded right and below."""
        return together(ready, self.preprocessing)


class BoxModality(Modality):
    """Pictures with boxes, each of a class."""

    sample = "picture"
    metavar = "files, folders, patterns or a video to predict, or - for a list"
    smaller = "--image-size"

    def open(self, source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
        """Return the data set that the user named."""
        del task, reading  # found by looking
        return open_boxes(source, seed=seed)

    def check(self, data: DataSet, *, threads: int, progress: Progress) -> Checked:
        """Return what was found by decoding every picture once and looking at every box."""
        return check_boxes(data, threads=threads, progress=progress)

    def prepare(self, wanted: Wanted) -> BoxPreparation:
        """Decide the size of the input, and fit anchors if asked."""
        assert isinstance(wanted.checked, BoxesChecked)
        own = box_preprocessing(wanted.entry)
        sized = sized_input(wanted.entry, asked=wanted.reading.image_size)
        sized = replace(sized, white_level=wanted.checked.white_level)
        if not wanted.reading.fit_anchors:
            return BoxPreparation(sized, wanted.data.classes, fit_anchors=False)
        if not own.anchors:
            raise OctavoltError(
                f"--fit-anchors: {wanted.entry.name} has no anchors that could be fitted to boxes; "
                "YOLOv3 has. Leave it away."
            )
        anchors = fitted(wanted, sized, count=len(own.anchors))
        return BoxPreparation(
            replace(sized, anchors=anchors), wanted.data.classes, fit_anchors=True
        )

    def published(
        self, entry: Entry, task: Task, classes: tuple[str, ...], folder: Path | None
    ) -> BoxPreparation:
        """Return what the network's table says."""
        del task, folder
        return BoxPreparation(box_preprocessing(entry), classes, fit_anchors=False)

    def read(self, run: Path) -> BoxPreparation:
        """Return what preprocessing.json and labels.json of a run hold."""
        value = read_fields(
            run / "preprocessing.json",
            height=int,
            width=int,
            fit=str,
            padding=int,
            white_level=int,
            anchors=list,
            fit_anchors=bool,
        )
        preprocessing = BoxPreprocessing(
            height=value["height"],
            width=value["width"],
            fit=value["fit"],
            padding=value["padding"],
            white_level=value["white_level"],
            anchors=tuple((float(width), float(height)) for width, height in value["anchors"]),
        )
        classes = read_fields(run / "labels.json", classes=list)["classes"]
        return BoxPreparation(preprocessing, tuple(classes), fit_anchors=value["fit_anchors"])


def box_preprocessing(entry: Entry) -> BoxPreprocessing:
    """Return how a network of the table takes its pictures."""
    assert isinstance(entry.preprocessing, BoxPreprocessing), entry.name
    return entry.preprocessing


def sized_input(entry: Entry, *, asked: int | None) -> BoxPreprocessing:
    """Return the network's own input, or one of the size asked for."""
    own = box_preprocessing(entry)
    if asked is None:
        return own
    if not entry.smallest_image_size <= asked <= LARGEST_IMAGE_PIXELS:
        raise OctavoltError(
            f"--image-size is {asked}; {entry.name} takes {entry.smallest_image_size} to "
            f"{LARGEST_IMAGE_PIXELS} pixels."
        )
    if own.fit == "shorter-side":
        return replace(own, height=asked, width=max(asked, round(asked * own.width / own.height)))
    if asked % STRIDE and own.anchors:
        raise OctavoltError(
            f"--image-size is {asked}; {entry.name} takes multiples of {STRIDE}, such as "
            f"{max(entry.smallest_image_size, round(asked / STRIDE) * STRIDE)}."
        )
    return replace(own, height=asked, width=asked)


def fitted(
    wanted: Wanted, preprocessing: BoxPreprocessing, *, count: int
) -> tuple[tuple[float, float], ...]:
    """Return anchors fitted to the training boxes as the network's input shows them."""
    pictures = wanted.data.splits["train"]
    sides = input_sides(pictures, preprocessing)
    if len(sides) < count:
        raise OctavoltError(
            f"--fit-anchors: {wanted.data.source} has {counted(len(sides), 'box', 'boxes')} to "
            f"train with, fewer than the {count} anchors of {wanted.entry.name}. Leave it away."
        )
    anchors, mean_overlap, recall = fit_anchors(sides, count, seed=0)
    own = ", ".join(f"{width:.0f} x {height:.0f}" for width, height in anchors)
    wanted.say(
        f"Anchors fitted to {counted(len(sides), 'box', 'boxes')}: {own} pixels; the best one "
        f"overlaps a box by {mean_overlap:.2f} on average, {100 * recall:.1f} % by more than 0.5."
    )
    return anchors


def input_sides(pictures: BoxedPictures, preprocessing: BoxPreprocessing) -> Any:
    """Return widths and heights of all boxes in pixels of a letterboxed input."""
    boxes = pictures.boxes
    counts = np.diff(boxes.ends, prepend=0)
    heights, widths = np.repeat(pictures.sizes, counts, axis=0).T
    scale = np.minimum(
        preprocessing.height / np.maximum(heights, 1), preprocessing.width / np.maximum(widths, 1)
    )
    sides = (boxes.corners[:, 2:] - boxes.corners[:, :2]) * scale[:, None]
    return sides[~boxes.crowd & (sides > 0).all(axis=1)]


BOXES = BoxModality()
