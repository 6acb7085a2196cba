"""Pictures with boxes, made ready for a detector: the geometry at once, the pixels on threads."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
import torch
from jaxtyping import Float64, UInt8

from octavolt.contract import BoxPreprocessing, Examples, Job, Places, Recipe
from octavolt.data.augment import whole
from octavolt.data.boxes.color import random_color, recolor
from octavolt.data.boxes.geometry import MULTIPLE, Tile, fitted, frame, mapped
from octavolt.data.boxes.layouts import (
    COLOR,
    GEOMETRY,
    Layout,
    evaluated,
    input_size,
    learned,
    size,
    trained,
)
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import Raster, Scratch, paint, raster
from octavolt.errors import OctavoltError
from octavolt.tasks.object_detection import BoxBatch, Detections, Frame, Scene

PICTURES_IN_A_PASS = 4
"""Of evaluation where sizes vary: 800 x 1,333 pixels are twenty times those of a classifier."""
THUMBNAIL_PIXELS = 320
TRUE_COLOR = (0, 158, 115)
FOUND_COLOR = (213, 94, 0)
"""Both can be told apart by the color-blind: Okabe and Ito 2008."""


class BoxExamples(Examples):
    """The pictures of one split as batches of bytes, augmented by a recipe and their places."""

    def __init__(
        self,
        pictures: BoxedPictures,
        preprocessing: BoxPreprocessing,
        *,
        recipe: Recipe | None,
        pin: bool = False,
    ) -> None:
        self.pictures = pictures
        self.preprocessing = preprocessing
        self.recipe = recipe
        """In training; None makes the examples of evaluation, of which nothing is random."""
        self.pin = pin
        """Whether batches lie in pinned memory, from which a GPU copies while others work."""
        if preprocessing.fit == "shorter-side":
            height, width = np.maximum(pictures.sizes, 1).T
            self.lengths = np.rint(100 * width / height).astype(np.int64)
            self.evaluation_batch_size = PICTURES_IN_A_PASS
        self._scratch = Scratch()

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.pictures)

    def name(self, index: int) -> str:
        """Return the picture's file, or file and row."""
        return self.pictures.name(index)

    def begin(self, places: Places) -> tuple[BoxBatch, Sequence[Job]]:
        """Return a batch whose boxes are known, and a job a picture that paints it."""
        layouts = self._layouts(places)
        pixels = torch.empty(
            (len(layouts), *batch_size([one.filled for one in layouts], self.preprocessing), 3),
            dtype=torch.uint8,
            pin_memory=self.pin,
        )
        slots = pixels.numpy()
        jobs = [
            partial(self._fill, slots[at], layout, places, at) for at, layout in enumerate(layouts)
        ]
        return BoxBatch(pixels=pixels, scenes=tuple(map(self._scene, layouts))), jobs

    def show(self, index: int) -> dict[str, str]:
        """Return a picture with its true boxes, as a small JPEG."""
        nothing = Detections(
            boxes=torch.zeros(0, 4), scores=torch.zeros(0), labels=torch.zeros(0, dtype=torch.int64)
        )
        return self.show_marked(index, nothing)

    def show_marked(self, index: int, marks: Detections) -> dict[str, str]:
        """Return a picture with its true boxes and those that were found, as a small JPEG."""
        height, width = size(self.pictures, index)
        small = fitted(height, width, into_height=THUMBNAIL_PIXELS, into_width=THUMBNAIL_PIXELS)
        tile = Tile(window=whole(height, width), place=whole(*small))
        pixels = np.empty((*small, 3), np.uint8)
        self._paint(index, tile, pixels)
        outline(pixels, mapped(self.pictures.truth(index).boxes.numpy(), tile), TRUE_COLOR, wide=3)
        outline(pixels, mapped(marks.boxes.double().numpy(), tile), FOUND_COLOR, wide=1)
        return {"jpeg_base64": jpeg_base64(pixels)}

    def _layouts(self, places: Places) -> list[Layout]:
        indices = places.indices.tolist()
        if self.recipe is None:
            sizes = [size(self.pictures, index) for index in indices]
            return [
                evaluated(index, *one, self.preprocessing)
                for index, one in zip(indices, sizes, strict=True)
            ]
        height, width = input_size(
            self.preprocessing.height,
            self.preprocessing.width,
            multi_scale=self.recipe.multi_scale,
            batch_size=self.recipe.batch_size,
            seed=places.seed,
            epoch=places.epoch,
            first=places.first,
        )
        preprocessing = replace(self.preprocessing, height=height, width=width)
        return [
            trained(
                self.pictures,
                index,
                recipe=self.recipe,
                preprocessing=preprocessing,
                random=places.random(at, GEOMETRY),
            )
            for at, index in enumerate(indices)
        ]

    def _scene(self, layout: Layout) -> Scene:
        index, first = layout.tiles[0]
        height, width = size(self.pictures, index)
        training = self.recipe is not None
        boxes, labels = (
            learned(self.pictures, layout)
            if training
            else (np.zeros((0, 4)), np.zeros(0, np.int64))
        )
        return Scene(
            frame=frame(first, height=height, width=width),
            filled=layout.filled,
            boxes=torch.from_numpy(boxes).float(),
            labels=torch.from_numpy(labels),
            truth=None if training else self.pictures.truth(index),
            index=index,
        )

    def _fill(
        self,
        slot: UInt8[np.ndarray, "height width 3"],
        layout: Layout,
        places: Places,
        at: int,
    ) -> None:
        pad(slot, layout.tiles[0][1], self.preprocessing.padding)
        random = places.random(at, COLOR)
        strength = self.recipe.color_jitter if self.recipe else 0
        for index, tile in layout.tiles:
            part = slot_of(slot, tile)
            self._paint(index, tile, part)
            if strength:
                recolor(part, random_color(random, strength=strength))

    def _paint(self, index: int, tile: Tile, part: UInt8[np.ndarray, "height width 3"]) -> None:
        try:
            source = raster(self.pictures.read(index), white_level=self.preprocessing.white_level)
            check_same_size(source, *self.pictures.sizes[index].tolist())
            paint(source, tile.window, part, quick=True, mirror=tile.mirror, scratch=self._scratch)
        except (ValueError, OSError) as error:
            raise OctavoltError(
                f"{self.name(index)}: {error}. Mend or remove it; a training leaves damaged "
                "pictures out with --skip-damaged."
            ) from error


def placed(
    source: Raster, preprocessing: BoxPreprocessing
) -> tuple[UInt8[np.ndarray, "height width 3"], Frame, tuple[int, int]]:
    """Return one picture as evaluation lays it out, its frame, and the height and width it fills.

    With 'shorter-side' it isn't padded yet: `together` does that. Pixels are resized as in training
    and as published detectors are trained and measured: from the nearest four, where they aren't
    shrunk by much.
    """
    layout = evaluated(0, source.height, source.width, preprocessing)
    tile = layout.tiles[0][1]
    slot = np.empty((*layout.filled, 3), np.uint8)
    pad(slot, tile, preprocessing.padding)
    paint(source, tile.window, slot_of(slot, tile), quick=True)
    return slot, frame(tile, height=source.height, width=source.width), layout.filled


def together(
    ready: Sequence[tuple[UInt8[np.ndarray, "_ _ 3"], Frame, tuple[int, int]]],
    preprocessing: BoxPreprocessing,
) -> BoxBatch:
    """Return the batch of several pictures as `placed` returns them."""
    height, width = batch_size([filled for _, _, filled in ready], preprocessing)
    pixels = np.full((len(ready), height, width, 3), preprocessing.padding, np.uint8)
    for slot, (part, _, filled) in zip(pixels, ready, strict=True):
        slot[: filled[0], : filled[1]] = part
    scenes = (
        Scene(
            frame=one,
            filled=filled,
            boxes=torch.zeros(0, 4),
            labels=torch.zeros(0, dtype=torch.int64),
            index=at,
        )
        for at, (_, one, filled) in enumerate(ready)
    )
    return BoxBatch(pixels=torch.from_numpy(pixels), scenes=tuple(scenes))


def batch_size(
    filled: Sequence[tuple[int, int]], preprocessing: BoxPreprocessing
) -> tuple[int, int]:
    """Return height and width of a batch of pictures that fill so much each."""
    height, width = max(one[0] for one in filled), max(one[1] for one in filled)
    if preprocessing.fit != "shorter-side":
        return height, width
    return -(-height // MULTIPLE) * MULTIPLE, -(-width // MULTIPLE) * MULTIPLE


def slot_of(
    slot: UInt8[np.ndarray, "height width 3"], tile: Tile
) -> UInt8[np.ndarray, "tile_height tile_width 3"]:
    """Return the part of an input that a tile fills."""
    place = tile.place
    return slot[place.top : place.top + place.height, place.left : place.left + place.width]


def pad(slot: UInt8[np.ndarray, "height width 3"], tile: Tile, level: int) -> None:
    """Fill an input with padding, unless a tile covers all of it."""
    if slot_of(slot, tile).shape != slot.shape:
        slot[:] = level


def check_same_size(source: Raster, height: int, width: int) -> None:
    """Raise `ValueError` if a picture has another size than when its boxes were checked."""
    if (source.height, source.width) != (height, width):
        raise ValueError(
            f"it has {source.width} x {source.height} pixels, but had {width} x {height} when the "
            "data were checked"
        )


def outline(
    pixels: UInt8[np.ndarray, "height width 3"],
    boxes: Float64[np.ndarray, "boxes 4"],
    color: tuple[int, int, int],
    *,
    wide: int,
) -> None:
    """Draw boxes in place."""
    for left, top, right, bottom in np.rint(boxes).astype(int).tolist():
        cv2.rectangle(pixels, (left, top), (right - 1, bottom - 1), color, wide)


def jpeg_base64(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Return pixels as a JPEG in base64."""
    reversed_colors = np.ascontiguousarray(pixels[:, :, ::-1])
    _, encoded = cv2.imencode(".jpg", reversed_colors, [cv2.IMWRITE_JPEG_QUALITY, 85])
    return base64.b64encode(encoded.tobytes()).decode()
