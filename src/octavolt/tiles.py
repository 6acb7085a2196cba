"""Pictures much larger than a network's input: found in overlapping tiles and in the whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from octavolt.data.decode import Window
from octavolt.tasks.boxes import area, non_maximum_suppression
from octavolt.tasks.object_detection import Limits

Ask = Callable[[Sequence[Any]], Sequence[dict[str, Any]]]
"""Takes pictures as RGB of 8 bits and returns an answer each, as `present` does for detectors."""

SHARED_FRACTION = 0.25
"""Of a tile, at least, that its neighbor sees too: what is smaller than that is seen whole."""
NEAR_PIXELS = 4.0
"""A box that ends so close to an edge of its tile may go on beyond it."""
COVERED_FRACTION = 0.6
"""Of a cut box that a larger one must cover to be taken for the same thing."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The boxes of several windows, in pixels of the whole picture."""

    boxes: Float[Tensor, "boxes 4"]
    scores: Float[Tensor, " boxes"]
    labels: tuple[str, ...]
    cut: Bool[Tensor, " boxes"]
    """Whether a box ends at an edge of its window that is none of the picture."""
    view: Int[Tensor, " boxes"]
    """Which window shows it."""


def windows(height: int, width: int, tile_height: int, tile_width: int) -> list[Window]:
    """Return tiles that cover a picture evenly, none if it is no larger than one."""
    if height <= tile_height and width <= tile_width:
        return []
    return [
        Window(
            top=top,
            left=left,
            height=min(tile_height, height),
            width=min(tile_width, width),
        )
        for top in starts(height, tile_height)
        for left in starts(width, tile_width)
    ]


def starts(length: int, tile: int) -> list[int]:
    """Return where tiles begin along one side: the first at 0, the last at the end."""
    if length <= tile:
        return [0]
    steps = ceil((length - tile) / (tile * (1 - SHARED_FRACTION)))
    return [round(step * (length - tile) / steps) for step in range(steps + 1)]


def tiled(
    ask: Ask,
    pixels: UInt8[np.ndarray, "height width 3"],
    *,
    tile_height: int,
    tile_width: int,
    limits: Limits,
    batch_size: int = 8,
) -> dict[str, Any]:
    """Return the answer to a picture, found in tiles of the input's size and in the whole.

    The whole is for what is large: a thing smaller than tiles share is whole in one of them, and
    seen there at more pixels. Of what a tile cuts, the part is dropped where another tile, or the
    whole picture, saw more of it. Then follows the usual suppression of overlaps, in pixels of the
    picture.
    """
    height, width = pixels.shape[:2]
    whole = Window(top=0, left=0, height=height, width=width)
    views = [whole, *windows(height, width, tile_height, tile_width)]
    answers: list[dict[str, Any]] = []
    for first in range(0, len(views), batch_size):
        answers += ask([part(pixels, view) for view in views[first : first + batch_size]])
    if len(views) == 1:
        return answers[0]
    least_height = SHARED_FRACTION * tile_height if height > tile_height else 0.0
    least_width = SHARED_FRACTION * tile_width if width > tile_width else 0.0
    answers[0] = larger(answers[0], least_height, least_width)
    found = together(answers, views, height, width)
    return {"boxes": merged(found, limits), "height": height, "width": width}


def larger(answer: dict[str, Any], height: float, width: float) -> dict[str, Any]:
    """Return an answer without the boxes that are no higher and no wider than that."""
    sides = [one["box"] for one in answer["boxes"]]
    large = [bottom - top > height or right - left > width for left, top, right, bottom in sides]
    return answer | {"boxes": [*compress(answer["boxes"], large)]}


def part(
    pixels: UInt8[np.ndarray, "height width 3"], view: Window
) -> UInt8[np.ndarray, "tile_height tile_width 3"]:
    """Return a window of a picture."""
    rows, columns = (
        slice(view.top, view.top + view.height),
        slice(view.left, view.left + view.width),
    )
    return np.ascontiguousarray(pixels[rows, columns])


def together(
    answers: Sequence[dict[str, Any]], views: Sequence[Window], height: int, width: int
) -> Found:
    """Return the boxes of all windows in pixels of the picture."""
    boxes, scores, labels, cut, own = [], [], [], [], []
    for place, (answer, view) in enumerate(zip(answers, views, strict=True)):
        for one in answer["boxes"]:
            left, top, right, bottom = one["box"]
            boxes.append([left + view.left, top + view.top, right + view.left, bottom + view.top])
            scores.append(float(one["score"]))
            labels.append(one["label"])
            own.append(place)
            cut.append(
                (left < NEAR_PIXELS and view.left > 0)
                or (top < NEAR_PIXELS and view.top > 0)
                or (right > view.width - NEAR_PIXELS and view.left + view.width < width)
                or (bottom > view.height - NEAR_PIXELS and view.top + view.height < height)
            )
    return Found(
        boxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        scores=torch.tensor(scores, dtype=torch.float32),
        labels=tuple(labels),
        cut=torch.tensor(cut, dtype=torch.bool),
        view=torch.tensor(own, dtype=torch.int64),
    )


def merged(found: Found, limits: Limits) -> list[dict[str, Any]]:
    """Return the boxes that remain, the surest first."""
    numbers = {name: place for place, name in enumerate(dict.fromkeys(found.labels))}
    labels = torch.tensor([numbers[one] for one in found.labels], dtype=torch.int64)
    rows = (~seen_better(found, labels)).nonzero()[:, 0]
    kept = non_maximum_suppression(
        found.boxes[rows], found.scores[rows], labels[rows], overlap=limits.overlap
    )
    return [
        {
            "label": found.labels[row],
            "score": round(float(found.scores[row]), 6),
            "box": [round(side, 2) for side in found.boxes[row].tolist()],
        }
        for row in rows[kept[: limits.most]].tolist()
    ]


def seen_better(found: Found, labels: Int[Tensor, " boxes"]) -> Bool[Tensor, " boxes"]:
    """Return which boxes are cut parts of what another window shows more of."""
    areas = area(found.boxes)
    dropped = torch.zeros(len(labels), dtype=torch.bool)
    for row in found.cut.nonzero()[:, 0].tolist():
        same = (labels == labels[row]) & (found.view != found.view[row])
        others = found.boxes[same & (areas > areas[row])]
        first = torch.maximum(found.boxes[row, :2], others[:, :2])
        last = torch.minimum(found.boxes[row, 2:], others[:, 2:])
        shared = (last - first).clamp(min=0).prod(dim=1)
        dropped[row] = bool((shared > COVERED_FRACTION * areas[row]).any())
    return dropped
