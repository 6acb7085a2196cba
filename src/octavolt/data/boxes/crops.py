"""What is seen of a picture in training: pure functions of a generator.

A view is a window that may reach beyond its picture.
"""

import math

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from octavolt.data.decode import Window

EXPANDED_SHARE = 0.5
"""Of the pictures; Liu et al. 2016 name no number, their published code has this one."""
OVERLAPS_MIN = (0.1, 0.3, 0.5, 0.7, 0.9, 0.0)
"""Of a patch with a box, as Jaccard index; the last is a patch of any: section 2.2."""
PATCH_SHARE_MIN = 0.1
"""Of the area, section 2.2: 'the size of each sampled patch is [0.1, 1]'."""
PATCH_ASPECT_MIN, PATCH_ASPECT_MAX = 1 / 2, 2
"""Width by height: section 2.2."""
TRIES = 50
"""Patches that are drawn before the picture stays whole, as in the code of Liu et al."""
CENTER_MIN = 0.2
"""Share of the sides that a mosaic's smallest picture has at least, as in Darknet's."""


def expanded(height: int, width: int, *, most: float, random: np.random.Generator) -> Window:
    """Return a view up to `most` times as high and wide, the picture anywhere in it.

    Half of the pictures stay as they are: Liu et al. 2016, section 3.6.
    """
    chance, times, down, across = random.random(4).tolist()
    if most <= 1 or chance >= EXPANDED_SHARE:
        return Window(top=0, left=0, height=height, width=width)
    ratio = 1 + (most - 1) * times
    high, wide = round(height * ratio), round(width * ratio)
    return Window(
        top=-int(down * (high - height + 1)),
        left=-int(across * (wide - width + 1)),
        height=high,
        width=wide,
    )


def box_crop(
    view: Window, corners: Float64[np.ndarray, "boxes 4"], *, random: np.random.Generator
) -> Window:
    """Return a part of a view by the rules of Liu et al. 2016, section 2.2.

    It is all of it, or a patch with the center of a box inside that overlaps enough with a box. In
    a picture without boxes its outline is meant, given by the caller.
    """
    # So many are always drawn: what is drawn next doesn't depend on how many of them failed.
    choice, draws = random.random(), random.random((TRIES, 4))
    turn = int(choice * (len(OVERLAPS_MIN) + 1))
    if turn == len(OVERLAPS_MIN):
        return view
    patches = drawn_patches(view, draws)
    patches = patches[fulfils(patches, corners, overlap_min=OVERLAPS_MIN[turn])]
    if not len(patches):
        return view
    left, top, right, bottom = patches[0].tolist()
    return Window(top=top, left=left, height=bottom - top, width=right - left)


def drawn_patches(
    view: Window, draws: Float64[np.ndarray, "tries 4"]
) -> Int64[np.ndarray, "patches 4"]:
    """Return the corners of those patches that are no larger than the view, in its order."""
    areas = view.height * view.width * (PATCH_SHARE_MIN + (1 - PATCH_SHARE_MIN) * draws[:, 0])
    aspects = PATCH_ASPECT_MIN * (PATCH_ASPECT_MAX / PATCH_ASPECT_MIN) ** draws[:, 1]
    heights = np.maximum(np.rint(np.sqrt(areas / aspects)), 1)
    widths = np.maximum(np.rint(np.sqrt(areas * aspects)), 1)
    tops = view.top + np.floor(draws[:, 2] * (view.height - heights + 1))
    lefts = view.left + np.floor(draws[:, 3] * (view.width - widths + 1))
    fits = (heights <= view.height) & (widths <= view.width)
    corners = np.stack([lefts, tops, lefts + widths, tops + heights], axis=1)
    return corners[fits].astype(np.int64)


def fulfils(
    patches: Int64[np.ndarray, "patches 4"],
    corners: Float64[np.ndarray, "boxes 4"],
    *,
    overlap_min: float,
) -> NDArray[np.bool_]:
    """Return which patches overlap enough with some box, and have the center of some inside."""
    first = np.maximum(patches[:, None, :2], corners[None, :, :2])
    last = np.minimum(patches[:, None, 2:], corners[None, :, 2:])
    shared = np.maximum(last - first, 0).prod(axis=2)
    area = (patches[:, 2:] - patches[:, :2]).prod(axis=1)
    own = (corners[:, 2:] - corners[:, :2]).prod(axis=1)
    overlaps = shared / (area[:, None] + own[None] - shared)
    centers = (corners[:, :2] + corners[:, 2:]) / 2
    holds = (patches[:, None, :2] < centers[None]) & (centers[None] < patches[:, None, 2:])
    return np.asarray((overlaps.max(axis=1) >= overlap_min) & holds.all(axis=2).any(axis=1))


def jittered(
    place: Window, onto: tuple[int, int], *, strength: float, random: np.random.Generator
) -> Window:
    """Return where a view lies on a canvas, resized by a factor in [1 - strength, 1 + strength].

    Where there is room it lies anywhere on the canvas, else anywhere over it: as Darknet places its
    training pictures. Without strength it lies where evaluation puts it.
    """
    grow, down, across = random.random(3).tolist()
    if strength <= 0:
        return place
    factor = 1 + strength * (2 * grow - 1)
    height = max(1, round(place.height * factor))
    width = max(1, round(place.width * factor))
    return Window(
        top=shift(onto[0] - height, down),
        left=shift(onto[1] - width, across),
        height=height,
        width=width,
    )


def shift(room: int, share: float) -> int:
    """Return a whole number between 0 and `room`, which may be negative, for a share below 1."""
    return math.floor(share * (room + 1)) if room >= 0 else -math.floor(share * (1 - room))


def quarters(height: int, width: int, *, random: np.random.Generator) -> tuple[Window, ...]:
    """Return the four parts around a random center of a mosaic: Bochkovskiy et al. 2020."""
    down, across = (CENTER_MIN + (1 - 2 * CENTER_MIN) * random.random(2)).tolist()
    rows, columns = round(height * down), round(width * across)
    return tuple(
        Window(top=top, left=left, height=high, width=wide)
        for top, high in ((0, rows), (rows, height - rows))
        for left, wide in ((0, columns), (columns, width - columns))
        if high and wide
    )
