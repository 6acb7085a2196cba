"""Boxes follow their pictures exactly; what is cut away of a picture is cut away of its boxes."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from octavolt.contract import BoxPreprocessing
from octavolt.data.augment import whole
from octavolt.data.boxes.geometry import (
    Tile,
    canvas,
    covering,
    fitted,
    frame,
    mapped,
    placed_on,
    seen,
    tile,
)
from octavolt.data.decode import Window, paint, raster
from octavolt.tasks.object_detection import Detections, restored


def array(*boxes: tuple[float, float, float, float]) -> NDArray[np.float64]:
    return np.array(boxes, np.float64).reshape(-1, 4)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # 427 * 416 / 640 is 277.55, and 416 - 277 is 139.
        ((427, 640), Window(top=69, left=0, height=277, width=416)),
        ((640, 427), Window(top=0, left=69, height=416, width=277)),
        ((500, 500), Window(top=0, left=0, height=416, width=416)),
        ((10, 20), Window(top=104, left=0, height=208, width=416)),
        ((1, 5000), Window(top=207, left=0, height=1, width=416)),
    ],
)
def test_letterbox_is_that_of_darknet(size: tuple[int, int], expected: Window) -> None:
    """As `letterbox_image` has it: sides rounded down, half of the rest above and to the left."""
    assert placed_on(*size, (416, 416), fit="letterbox") == expected


def test_stretched_pictures_fill_the_input() -> None:
    assert placed_on(30, 90, (64, 32), fit="stretch") == whole(64, 32)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # The shorter side becomes 800, but where the longer one would be more than 1333.
        ((480, 640), (800, 1066)),
        ((640, 480), (1066, 800)),
        ((300, 900), (444, 1333)),
        ((900, 300), (1333, 444)),
        ((1, 9000), (1, 1333)),
    ],
)
def test_shorter_side_by_hand(size: tuple[int, int], expected: tuple[int, int]) -> None:
    preprocessing = BoxPreprocessing(height=800, width=1333, fit="shorter-side")
    assert canvas(*size, preprocessing) == expected


def test_fitted_and_covering_sizes_touch_from_both_sides() -> None:
    rng = np.random.default_rng(0)
    for height, width, high, wide in rng.integers(1, 700, (200, 4)).tolist():
        inner = fitted(height, width, into_height=high, into_width=wide)
        outer = covering(height, width, over_height=high, over_width=wide)
        assert inner[0] <= high <= outer[0]
        assert inner[1] <= wide <= outer[1]
        assert high in {inner[0]} & {outer[0]} or wide in {inner[1], outer[1]}


def test_a_whole_picture_takes_the_place_it_is_given() -> None:
    found = tile(
        whole(30, 90),
        Window(top=5, left=2, height=20, width=60),
        height=30,
        width=90,
        inside=whole(64, 64),
    )
    assert found == Tile(window=whole(30, 90), place=Window(top=5, left=2, height=20, width=60))


def test_what_reaches_beyond_picture_and_input_is_cut_by_hand() -> None:
    """A view of 40 x 40 from (-10, -20) on is doubled, and begins 30 pixels left of the input."""
    found = tile(
        Window(top=-10, left=-20, height=40, width=40),
        Window(top=0, left=-30, height=80, width=80),
        height=100,
        width=100,
        inside=whole(64, 64),
    )
    # Pixel 0 of the picture lies at row 20, column 10; the input ends at row 64, the view at 50.
    assert found.place == Window(top=20, left=10, height=44, width=40)
    assert found.window == Window(top=0, left=0, height=22, width=20)


def random_tile(rng: np.random.Generator) -> tuple[Tile, tuple[int, int], Window, Window, Window]:
    height, width = rng.integers(1, 120, 2).tolist()
    high, wide = rng.integers(1, 200, 2).tolist()
    # The view always holds a pixel of the picture.
    view = Window(
        top=int(rng.integers(1 - high, height)),
        left=int(rng.integers(1 - wide, width)),
        height=high,
        width=wide,
    )
    onto_high, onto_wide = rng.integers(20, 90, 2).tolist()
    onto = Window(
        top=int(rng.integers(-9, 10)),
        left=int(rng.integers(-9, 10)),
        height=onto_high,
        width=onto_wide,
    )
    inside = Window(top=3, left=4, height=60, width=50)
    found = tile(view, onto, height=height, width=width, inside=inside)
    return found, (height, width), view, onto, inside


def is_inside(inner: Window, outer: Window) -> bool:
    return (
        outer.top <= inner.top
        and outer.left <= inner.left
        and inner.top + inner.height <= outer.top + outer.height
        and inner.left + inner.width <= outer.left + outer.width
        and inner.height >= 1
        and inner.width >= 1
    )


def test_tiles_lie_in_picture_view_and_input() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        found, size, view, _, inside = random_tile(rng)
        assert is_inside(found.window, whole(*size))
        assert is_inside(found.window, view)
        assert is_inside(found.place, inside)


def test_tiles_map_as_the_view_does_but_for_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        found, _, view, onto, _ = random_tile(rng)
        down, across = onto.height / view.height, onto.width / view.width
        if min(found.place.height, found.place.width) < 2:
            continue  # where nothing is seen, a pixel is painted all the same
        corners = array(
            (
                found.window.left,
                found.window.top,
                found.window.left + found.window.width,
                found.window.top + found.window.height,
            )
        )
        exact = (corners - [view.left, view.top] * 2) * [across, down, across, down]
        exact += [onto.left, onto.top] * 2
        # Edges are rounded in the input, then in the picture, where no part has less than a pixel.
        bound = 0.5 + np.array([across, down] * 2)
        assert (np.abs(mapped(corners, found) - exact) <= bound).all()


@pytest.mark.parametrize("mirror", [False, True])
def test_a_frame_says_where_boxes_come_from(mirror: bool) -> None:
    one = Tile(
        window=Window(top=7, left=3, height=50, width=80),
        place=Window(top=11, left=0, height=30, width=64),
        mirror=mirror,
    )
    corners = array((5, 9, 40, 50), (10.5, 20.25, 11, 30))
    found = torch.from_numpy(mapped(corners, one))
    if mirror:
        # The scale is negative: what was left of it lies on its right.
        found = found[:, [2, 1, 0, 3]]
    detections = Detections(boxes=found, scores=torch.ones(2), labels=torch.zeros(2).long())
    back = restored(detections, frame(one, height=90, width=120)).boxes
    # Of fp32, in which detections are.
    np.testing.assert_allclose(back.numpy(), corners, atol=1e-4)


def test_a_flip_twice_is_the_identity_of_boxes() -> None:
    corners = array((5, 9, 40, 50), (0, 0, 64, 64), (10.5, 20.25, 11, 30))
    flip = Tile(window=whole(64, 64), place=whole(64, 64), mirror=True)
    once = mapped(corners, flip)
    assert (once != corners).any()
    assert (once[:, :2] < once[:, 2:]).all()
    np.testing.assert_array_equal(mapped(once, flip), corners)


def test_a_flip_twice_is_the_identity_of_pixels() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    once, twice = np.empty_like(pixels), np.empty_like(pixels)
    paint(raster(pixels), whole(9, 13), once, quick=True, mirror=True)
    paint(raster(once), whole(9, 13), twice, quick=True, mirror=True)
    assert (once != pixels).any()
    np.testing.assert_array_equal(twice, pixels)


def test_boxes_are_cut_at_the_edge_of_their_tile() -> None:
    one = Tile(window=whole(20, 20), place=Window(top=10, left=10, height=40, width=40))
    found, kept = seen(array((-2, 5, 10, 30), (0, 0, 20, 20)), one)
    assert found.tolist() == [[10, 20, 30, 50], [10, 10, 50, 50]]
    assert kept.tolist() == [0, 1]


def test_boxes_of_which_too_little_is_seen_are_dropped() -> None:
    one = Tile(window=whole(100, 100), place=whole(100, 100))
    corners = array(
        (90, 0, 190, 100),  # a tenth is seen
        (91, 0, 191, 100),  # less
        (10, 10, 12, 90),  # two pixels wide
        (10, 10, 11.9, 90),  # less
        (10, 10, 90, 11.9),
        (200, 200, 300, 300),
    )
    assert seen(corners, one)[1].tolist() == [0, 2]
