"""Where pictures lie in a network's input: on whole pixels, so that boxes follow exactly.

A window may reach beyond the picture that it is measured in: what lies there is padding.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from octavolt.contract import BoxPreprocessing
from octavolt.data.decode import Window
from octavolt.tasks.object_detection import Frame

SEEN_MIN = 0.1
"""Share of its area that must be seen of a box to be learned, as in YOLOv5's mosaic."""
SIDE_MIN_PIXELS = 2.0
"""Of a box in the input, as there: of a smaller one, no more than a smear is left to learn."""
MULTIPLE = 32
"""Of pixels, that a batch of several sizes is padded to: the largest stride of the networks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A part of a picture, and where it lies in an input."""

    window: Window
    """The part, in pixels of the upright picture."""
    place: Window
    """What it fills, in pixels of the input."""
    mirror: bool = False
    """Whether it is mirrored within that."""


def fitted(height: int, width: int, *, into_height: int, into_width: int) -> tuple[int, int]:
    """Return the largest height and width of the same aspect that fit.

    Rounded down in whole numbers, as Darknet's `letterbox_image` does, but never to nothing.
    """
    if width * into_height <= height * into_width:
        return into_height, max(1, width * into_height // height)
    return max(1, height * into_width // width), into_width


def covering(height: int, width: int, *, over_height: int, over_width: int) -> tuple[int, int]:
    """Return the smallest height and width of the same aspect that leave nothing open."""
    if width * over_height >= height * over_width:
        return over_height, -(-width * over_height // height)
    return -(-height * over_width // width), over_width


def canvas(height: int, width: int, preprocessing: BoxPreprocessing) -> tuple[int, int]:
    """Return how much of the input a picture of that size has for itself, padding counted."""
    if preprocessing.fit != "shorter-side":
        return preprocessing.height, preprocessing.width
    shorter, longest = preprocessing.height, preprocessing.width
    if width >= height:
        return fitted(height, width, into_height=shorter, into_width=longest)
    return fitted(height, width, into_height=longest, into_width=shorter)


def placed_on(height: int, width: int, onto: tuple[int, int], *, fit: str) -> Window:
    """Return where something of that size lies on a canvas: as large as fits, in the middle."""
    if fit == "letterbox":
        size = fitted(height, width, into_height=onto[0], into_width=onto[1])
    else:
        # A canvas for the shorter side has the aspect already.
        size = onto
    return Window(
        top=(onto[0] - size[0]) // 2, left=(onto[1] - size[1]) // 2, height=size[0], width=size[1]
    )


def tile(
    view: Window,
    onto: Window,
    *,
    height: int,
    width: int,
    inside: Window,
    mirror: bool = False,
) -> Tile:
    """Return what is painted of a picture of that size whose view is spread over part of an input.

    It is what lies both in the picture and `inside`, but a pixel at least. Edges are rounded to
    whole pixels, of the input first and then of the picture.
    """
    down = Span(view.top, view.height, onto.top, onto.height).clipped(
        height, inside.top, inside.top + inside.height
    )
    across = Span(view.left, view.width, onto.left, onto.width).clipped(
        width, inside.left, inside.left + inside.width
    )
    return Tile(
        window=Window(top=down.first, left=across.first, height=down.length, width=across.length),
        place=Window(
            top=down.onto_first,
            left=across.onto_first,
            height=down.onto_length,
            width=across.onto_length,
        ),
        mirror=mirror,
    )


class Span(NamedTuple):
    """A view and where it lies in the input, along one axis."""

    first: int
    length: int
    onto_first: int
    onto_length: int

    def clipped(self, length: int, inside_first: int, inside_last: int) -> "Span":
        """Return what of it lies in a picture of that length and in that part of the input."""
        scale = self.onto_length / self.length
        least, most = max(self.first, 0), min(self.first + self.length, length)
        start = round(self.onto_first + (least - self.first) * scale)
        stop = round(self.onto_first + (most - self.first) * scale)
        start = min(max(start, inside_first), inside_last - 1)
        stop = max(min(stop, inside_last), start + 1)
        first = round(self.first + (start - self.onto_first) / scale)
        last = round(self.first + (stop - self.onto_first) / scale)
        first = min(max(first, least), most - 1)
        last = max(min(last, most), first + 1)
        return Span(first, last - first, start, stop - start)


def frame(tile: Tile, *, height: int, width: int) -> Frame:
    """Return the same map as a frame of a picture of that size; mirrored, its scale is negative."""
    scale_x = tile.place.width / tile.window.width
    scale_y = tile.place.height / tile.window.height
    left = tile.place.left - tile.window.left * scale_x
    if tile.mirror:
        scale_x = -scale_x
        left = tile.place.left + tile.place.width - tile.window.left * scale_x
    return Frame(
        scale_x=scale_x,
        scale_y=scale_y,
        left=left,
        top=tile.place.top - tile.window.top * scale_y,
        height=height,
        width=width,
    )


def mapped(corners: Float64[np.ndarray, "boxes 4"], tile: Tile) -> Float64[np.ndarray, "boxes 4"]:
    """Return boxes of a picture in pixels of the input, also what of them lies off the tile."""
    window, place = tile.window, tile.place
    scale = np.array([place.width / window.width, place.height / window.height] * 2)
    boxes = (corners - np.array([window.left, window.top] * 2)) * scale
    if tile.mirror:
        boxes[:, [0, 2]] = place.width - boxes[:, [2, 0]]
    return np.asarray(boxes + np.array([place.left, place.top] * 2))


def seen(
    corners: Float64[np.ndarray, "boxes 4"], tile: Tile
) -> tuple[Float64[np.ndarray, "seen 4"], Int64[np.ndarray, " seen"]]:
    """Return what can be seen of boxes on a tile, in pixels of the input, and of which boxes.

    Those of which too little is left are not among them: see `SEEN_MIN` and `SIDE_MIN_PIXELS`.
    """
    whole = mapped(corners, tile)
    boxes = within(whole, tile.place)
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = (whole[:, 2:] - whole[:, :2]).prod(axis=1)
    enough = (sides >= SIDE_MIN_PIXELS).all(axis=1) & (sides.prod(axis=1) >= SEEN_MIN * areas)
    kept = np.flatnonzero(enough).astype(np.int64)
    return boxes[kept], kept


def within(boxes: Float64[np.ndarray, "boxes 4"], place: Window) -> NDArray[np.float64]:
    """Return what of boxes lies in a window."""
    first = [place.left, place.top] * 2
    last = [place.left + place.width, place.top + place.height] * 2
    return np.asarray(np.clip(boxes, first, last), np.float64)
