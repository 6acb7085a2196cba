from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from octavolt.tasks.object_detection import Limits
from octavolt.tiles import merged, part, starts, tiled, together, windows
from tests.video.squares import Square, painted

LIMITS = Limits(score=0.1, overlap=0.5, most=100)
TILE = 64
SMALLEST = 6
"""Pixels of the input of the smallest square that is found."""


def look(pictures: Sequence[NDArray[np.uint8]]) -> list[dict[str, Any]]:
    """Find red and green squares as a network with an input of 64 x 64 pixels would."""
    return [found(one) for one in pictures]


def found(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    scale = max(1.0, max(pixels.shape[:2]) / TILE)
    boxes = []
    for channel, name in enumerate(("red", "green")):
        mask = (pixels[:, :, channel] > 128).astype(np.uint8)
        for left, top, width, height, area in cv2.connectedComponentsWithStats(mask)[2][
            1:
        ].tolist():
            if min(width, height) >= SMALLEST * scale:
                box = [float(one) for one in (left, top, left + width, top + height)]
                # What is whole looks surer, by little.
                boxes.append({"label": name, "score": 0.5 + area / 10**6, "box": box})
    return {"boxes": boxes, "height": pixels.shape[0], "width": pixels.shape[1]}


def answer(pixels: NDArray[np.uint8], **changes: Any) -> set[tuple[str, Square]]:
    limits = Limits(**{"score": 0.1, "overlap": 0.5, "most": 100, **changes})
    result = tiled(look, pixels, tile_height=TILE, tile_width=TILE, limits=limits)
    assert (result["height"], result["width"]) == pixels.shape[:2]
    scores = [one["score"] for one in result["boxes"]]
    assert scores == sorted(scores, reverse=True)
    squares = set()
    for one in result["boxes"]:
        left, top, right, bottom = map(round, one["box"])
        assert right - left == bottom - top
        squares.add((one["label"], (left, top, right - left)))
    assert len(squares) == len(result["boxes"])
    return squares


@pytest.mark.parametrize("length", [1, 63, 64, 65, 100, 112, 113, 500, 1001])
def test_tiles_cover_all_and_share_a_quarter(length: int) -> None:
    first = starts(length, TILE)
    assert first[0] == 0
    assert max(first) + TILE >= length
    assert all(start + min(TILE, length) <= length for start in first)
    shared = [one + TILE - other for one, other in pairwise(first)]
    # Places are whole pixels.
    assert all(one >= TILE / 4 - 1 for one in shared)


def test_no_more_tiles_than_needed() -> None:
    assert starts(64, TILE) == [0]
    assert starts(112, TILE) == [0, 48]
    assert starts(113, TILE) == [0, 24, 49]
    assert windows(64, 64, TILE, TILE) == []
    assert len(windows(64, 112, TILE, TILE)) == 2


def test_parts_of_a_picture_are_where_windows_say() -> None:
    pixels = np.arange(100 * 120 * 3, dtype=np.uint32).reshape(100, 120, 3).astype(np.uint8)
    for view in windows(100, 120, TILE, TILE):
        own = part(pixels, view)
        assert own.shape == (TILE, TILE, 3)
        assert (own == pixels[view.top :, view.left :][:TILE, :TILE]).all()


def test_small_things_of_a_large_picture_are_found_once_each() -> None:
    # Of all sides and at all places, across edges of tiles too.
    squares = [(7 + 41 * x, 9 + 37 * y, 8 + (x + y) % 7) for x in range(10) for y in range(8)]
    pixels = painted(310, 430, red=squares)
    assert found(pixels)["boxes"] == []
    assert answer(pixels) == {("red", one) for one in squares}


def test_large_thing_is_found_whole_and_not_in_parts() -> None:
    pixels = painted(300, 400, red=[(40, 50, 200)], green=[(300, 10, 12)])
    assert answer(pixels) == {("red", (40, 50, 200)), ("green", (300, 10, 12))}


def test_thing_at_the_picture_edge_is_not_taken_for_cut() -> None:
    squares = [(0, 0, 12), (388, 0, 12), (0, 288, 12), (388, 288, 12), (194, 288, 12)]
    assert answer(painted(300, 400, red=squares)) == {("red", one) for one in squares}


def test_part_that_nothing_shows_whole_is_kept() -> None:
    views = windows(64, 112, TILE, TILE)
    cut = {"label": "red", "score": 0.9, "box": [40.0, 10.0, 64.0, 30.0]}
    answers: list[dict[str, Any]] = [{"boxes": [cut]}, {"boxes": []}]
    kept = merged(together(answers, views, 64, 112), LIMITS)
    assert [one["box"] for one in kept] == [[40.0, 10.0, 64.0, 30.0]]


@pytest.mark.parametrize(
    ("label", "left", "kept"),
    [("red", 2.0, 1), ("green", 2.0, 2), ("red", 14.0, 2)],
    ids=["the same", "another class", "beside it"],
)
def test_part_is_dropped_for_what_shows_more_of_it(label: str, left: float, kept: int) -> None:
    views = windows(64, 112, TILE, TILE)
    cut = {"label": "red", "score": 0.9, "box": [50.0, 10.0, 64.0, 30.0]}
    whole = {"label": label, "score": 0.6, "box": [left, 10.0, left + 33, 30.0]}
    answers = [{"boxes": [cut]}, {"boxes": [whole]}]
    assert len(merged(together(answers, views, 64, 112), LIMITS)) == kept


def test_two_things_that_one_tile_shows_stay_two() -> None:
    views = windows(64, 112, TILE, TILE)
    behind = {"label": "red", "score": 0.9, "box": [10.0, 10.0, 64.0, 60.0]}
    before = {"label": "red", "score": 0.8, "box": [50.0, 20.0, 64.0, 40.0]}
    answers: list[dict[str, Any]] = [{"boxes": [behind, before]}, {"boxes": []}]
    assert len(merged(together(answers, views, 64, 112), LIMITS)) == 2


def test_most_boxes_and_batches() -> None:
    squares = [(7 + 41 * x, 9, 8 + x) for x in range(10)]
    pixels = painted(64, 430, red=squares)
    assert len(answer(pixels, most=3)) == 3
    sizes: list[int] = []

    def counting(pictures: Sequence[NDArray[np.uint8]]) -> list[dict[str, Any]]:
        sizes.append(len(pictures))
        return look(pictures)

    tiled(counting, pixels, tile_height=64, tile_width=64, limits=LIMITS, batch_size=4)
    assert sizes == [4, 4, 2]


def test_small_picture_is_asked_about_once() -> None:
    pixels = painted(60, 50, red=[(10, 10, 20)])
    assert answer(pixels) == {("red", (10, 10, 20))}
