"""Which pictures lie where in one input: decided from sizes and boxes, before a pixel is read."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from octavolt.contract import BoxPreprocessing, Recipe
from octavolt.data.augment import whole
from octavolt.data.boxes.crops import box_crop, expanded, jittered, quarters, shift
from octavolt.data.boxes.geometry import Tile, canvas, covering, placed_on, seen, tile, within
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import Window

SIZE_STEP = 32
"""Pixels between sizes of the input: Redmon and Farhadi 2017, section 2."""
SIZE_BATCHES = 10
"""Batches of one size, as there."""
GEOMETRY, COLOR, SIZE = 0, 1, 2
"""Purposes of what is drawn, so that what one draws doesn't depend on the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """What lies in one input."""

    filled: tuple[int, int]
    """Height and width of what isn't padding of the batch."""
    tiles: tuple[tuple[int, Tile], ...]
    """Samples and where they lie; the first is the one whose place it is."""


def evaluated(index: int, height: int, width: int, preprocessing: BoxPreprocessing) -> Layout:
    """Return the layout of a picture of that size alone, with nothing random."""
    filled = canvas(height, width, preprocessing)
    place = placed_on(height, width, filled, fit=preprocessing.fit)
    return Layout(filled=filled, tiles=((index, Tile(window=whole(height, width), place=place)),))


def trained(
    pictures: BoxedPictures,
    index: int,
    *,
    recipe: Recipe,
    preprocessing: BoxPreprocessing,
    random: np.random.Generator,
) -> Layout:
    """Return the layout of a picture in training: alone, or as the first of four."""
    chance, *mirrors = random.random(5).tolist()
    flips = [recipe.mirror and one < 0.5 for one in mirrors]
    if chance < recipe.mosaic_share:
        return mosaic(pictures, index, flips, preprocessing=preprocessing, random=random)
    height, width = size(pictures, index)
    view = expanded(height, width, most=recipe.expand_max, random=random)
    if recipe.box_crop:
        corners = learnable(pictures, index)[0]
        outline = np.array([[0.0, 0.0, width, height]])
        view = box_crop(view, corners if len(corners) else outline, random=random)
    filled = canvas(view.height, view.width, preprocessing)
    onto = placed_on(view.height, view.width, filled, fit=preprocessing.fit)
    onto = jittered(onto, filled, strength=recipe.scale_jitter, random=random)
    only = tile(view, onto, height=height, width=width, inside=whole(*filled), mirror=flips[0])
    return Layout(filled=filled, tiles=((index, only),))


def mosaic(
    pictures: BoxedPictures,
    index: int,
    flips: list[bool],
    *,
    preprocessing: BoxPreprocessing,
    random: np.random.Generator,
) -> Layout:
    """Return four pictures around a random center, of which each covers its quarter.

    The three others may be any of the split. What isn't as long as its quarter is cut at random.
    """
    filled = canvas(*size(pictures, index), preprocessing)
    others = [int(share * len(pictures)) for share in random.random(3).tolist()]
    shares = random.random((4, 2)).tolist()
    # A canvas that is a pixel high has but two.
    parts = quarters(*filled, random=random)
    tiles = [
        (one, covered(*size(pictures, one), part, mirror=flip, down=down, across=across))
        for one, part, flip, (down, across) in zip(
            [index, *others], parts, flips, shares, strict=False
        )
    ]
    return Layout(filled=filled, tiles=tuple(tiles))


def covered(
    height: int, width: int, part: Window, *, mirror: bool, down: float, across: float
) -> Tile:
    """Return the tile of a picture that covers a part of the input, no larger than it must be."""
    over = covering(height, width, over_height=part.height, over_width=part.width)
    onto = Window(
        top=part.top + shift(part.height - over[0], down),
        left=part.left + shift(part.width - over[1], across),
        height=over[0],
        width=over[1],
    )
    return tile(whole(height, width), onto, height=height, width=width, inside=part, mirror=mirror)


def size(pictures: BoxedPictures, index: int) -> tuple[int, int]:
    """Return height and width of a picture; of one that can't be read a pixel, until it is read."""
    height, width = pictures.sizes[index].tolist()
    return max(1, height), max(1, width)


def learnable(
    pictures: BoxedPictures, index: int
) -> tuple[Float64[np.ndarray, "boxes 4"], Int64[np.ndarray, " boxes"]]:
    """Return the boxes and labels of a picture that train: no crowds, and none without an area.

    What of them lies outside the picture is cut away.
    """
    height, width = size(pictures, index)
    boxes = pictures.boxes
    rows = boxes.rows(index)
    corners = within(boxes.corners[rows], whole(height, width))
    kept = ~boxes.crowd[rows] & (corners[:, 2:] > corners[:, :2]).all(axis=1)
    return corners[kept], boxes.labels[rows][kept]


def learned(
    pictures: BoxedPictures, layout: Layout
) -> tuple[Float64[np.ndarray, "boxes 4"], Int64[np.ndarray, " boxes"]]:
    """Return the boxes of a layout, in pixels of the input, and their labels."""
    boxes, labels = [], []
    for index, one in layout.tiles:
        corners, own = learnable(pictures, index)
        found, kept = seen(corners, one)
        boxes.append(found)
        labels.append(own[kept])
    return np.concatenate(boxes), np.concatenate(labels)


def input_size(
    height: int,
    width: int,
    *,
    multi_scale: float,
    batch_size: int,
    seed: int,
    epoch: int,
    first: int,
) -> tuple[int, int]:
    """Return the input's height and width of the batch that starts at a position of an epoch.

    The height is a multiple of 32 at most `multi_scale` away, the width has the same aspect as near
    as multiples of 32 come. They change every ten updates of the parameters: on all ranks at once,
    and the same however an update is split.
    """
    if multi_scale <= 0:
        return height, width
    turn = first // (SIZE_BATCHES * batch_size)
    share = np.random.Generator(np.random.SFC64([seed, epoch, turn, SIZE])).random()
    fewest = max(1, -int(-height * (1 - multi_scale) // SIZE_STEP))
    most = max(fewest, int(height * (1 + multi_scale) // SIZE_STEP))
    steps = fewest + int(share * (most - fewest + 1))
    wide = max(1, round(width * steps / height))
    return steps * SIZE_STEP, wide * SIZE_STEP
