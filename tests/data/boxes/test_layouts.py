"""What lies where in an input follows from sizes, boxes and a generator, before pixels are read."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from octavolt.contract import BoxPreprocessing, Recipe
from octavolt.data.boxes.geometry import canvas
from octavolt.data.boxes.layouts import (
    Layout,
    evaluated,
    input_size,
    learnable,
    learned,
    trained,
)
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import Window

from .squares import Box, boxed, fits, painted, recipe, squares

ALL = recipe(mirror=True, mosaic_share=0.5, expand_max=3.0, box_crop=True, scale_jitter=0.5)


def layouts(
    pictures: BoxedPictures,
    preprocessing: BoxPreprocessing,
    of: Recipe = ALL,
    count: int = 100,
) -> Iterator[Layout]:
    random = np.random.default_rng(0)
    for turn in range(count):
        yield trained(
            pictures,
            turn % len(pictures),
            recipe=of,
            preprocessing=preprocessing,
            random=random,
        )


@pytest.mark.parametrize("preprocessing", fits())
def test_tiles_lie_in_their_pictures_and_in_the_input_side_by_side(
    preprocessing: BoxPreprocessing,
) -> None:
    pictures = squares()
    for layout in layouts(pictures, preprocessing):
        hits = np.zeros(layout.filled, int)
        for index, tile in layout.tiles:
            height, width = pictures.sizes[index]
            window, place = tile.window, tile.place
            assert min(window.top, window.left, place.top, place.left) >= 0
            assert window.top + window.height <= height
            assert window.left + window.width <= width
            assert place.top + place.height <= layout.filled[0]
            assert place.left + place.width <= layout.filled[1]
            hits[place.top : place.top + place.height, place.left : place.left + place.width] += 1
        assert hits.max() == 1
        if len(layout.tiles) == 4:
            assert hits.min() == 1


@pytest.mark.parametrize("preprocessing", fits())
def test_learned_boxes_lie_in_what_is_filled(preprocessing: BoxPreprocessing) -> None:
    pictures = squares()
    found = 0
    for layout in layouts(pictures, preprocessing):
        boxes, labels = learned(pictures, layout)
        assert len(boxes) == len(labels)
        assert (boxes >= 0).all()
        assert (boxes[:, 2:] <= [layout.filled[1], layout.filled[0]]).all()
        assert (boxes[:, 2:] - boxes[:, :2] >= 2).all()
        found += len(boxes)
    assert found > 100


@pytest.mark.parametrize("preprocessing", fits())
def test_without_augmentation_training_lays_out_as_evaluation(
    preprocessing: BoxPreprocessing,
) -> None:
    pictures = squares()
    for turn, layout in enumerate(layouts(pictures, preprocessing, recipe(), len(pictures))):
        height, width = pictures.sizes[turn].tolist()
        assert layout == evaluated(turn, height, width, preprocessing)


def test_with_shorter_sides_a_picture_fills_what_its_view_needs() -> None:
    preprocessing = fits()[2]
    alone = replace(ALL, mosaic_share=0.0, scale_jitter=0.0)
    shapes = {layout.filled for layout in layouts(squares(), preprocessing, alone)}
    assert len(shapes) > 10
    assert {min(shape) for shape in shapes} <= set(range(1, 33))


def test_the_share_of_mosaics_is_as_asked() -> None:
    preprocessing = fits()[0]
    for share in (0.0, 1.0):
        of = replace(ALL, mosaic_share=share)
        counts = {len(one.tiles) for one in layouts(squares(), preprocessing, of, 40)}
        assert counts == {1 + 3 * int(share)}
    found = [len(one.tiles) for one in layouts(squares(), preprocessing, ALL, 200)]
    # Five deviations of a fair coin thrown 200 times are 35.
    assert abs(found.count(4) - 100) < 35


def test_mosaics_take_the_others_from_the_whole_split() -> None:
    of = recipe(mosaic_share=1.0)
    found = [*layouts(squares(), fits()[0], of, 60)]
    assert [one.tiles[0][0] for one in found] == [turn % 6 for turn in range(60)]
    assert {index for one in found for index, _ in one.tiles[1:]} == set(range(6))


def test_a_picture_of_a_mosaic_keeps_its_aspect_and_covers_its_quarter() -> None:
    of = recipe(mosaic_share=1.0)
    pictures = boxed([painted(600, 900, [])] * 2, [(600, 900)] * 2, [[], []])
    for layout in layouts(pictures, fits(640)[0], of, 20):
        for _, tile in layout.tiles:
            down = tile.place.height / tile.window.height
            across = tile.place.width / tile.window.width
            # Sides are rounded, of windows of 120 pixels at least.
            assert down == pytest.approx(across, rel=1 / 120)
            assert tile.window.height == 600 or tile.window.width == 900


def test_mirrors_are_drawn_for_each_picture_of_a_mosaic_if_at_all() -> None:
    for mirror in (True, False):
        of = recipe(mirror=mirror, mosaic_share=1.0)
        found = {
            tuple(tile.mirror for _, tile in one.tiles) for one in layouts(squares(), fits()[0], of)
        }
        assert found == (set(product((True, False), repeat=4)) if mirror else {(False,) * 4})


def test_mirroring_does_not_change_what_else_is_drawn() -> None:
    preprocessing = fits()[0]
    mirrored = layouts(squares(), preprocessing, ALL)
    straight = layouts(squares(), preprocessing, replace(ALL, mirror=False))
    for one, other in zip(mirrored, straight, strict=True):
        for (index, tile), (other_index, other_tile) in zip(one.tiles, other.tiles, strict=True):
            assert (index, replace(tile, mirror=False)) == (other_index, other_tile)


def test_crowds_and_boxes_without_area_are_not_learned() -> None:
    boxes: list[list[Box]] = [
        [(10, 10, 40, 40), (5, 5, 50, 50), (20, 20, 20, 40), (-9, 20, 30, 99), (70, 0, 80, 9)]
    ]
    crowd = [False, True, False, False, False]
    pictures = boxed([painted(60, 60, [])], [(60, 60)], boxes, crowd=crowd)
    corners, labels = learnable(pictures, 0)
    # The fourth is cut at the picture's edges; of the fifth nothing is left.
    assert labels.tolist() == [0, 3]
    assert corners.tolist() == [[10, 10, 40, 40], [0, 20, 30, 60]]


@pytest.mark.parametrize("preprocessing", fits())
def test_pictures_without_boxes_are_laid_out_too(preprocessing: BoxPreprocessing) -> None:
    pictures = boxed([painted(40, 60, [])] * 3, [(40, 60)] * 3, [[], [], []])
    for layout in layouts(pictures, preprocessing, ALL, 50):
        boxes, labels = learned(pictures, layout)
        assert boxes.shape == (0, 4)
        assert labels.shape == (0,)


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (900, 1), (2, 3)])
@pytest.mark.parametrize("preprocessing", fits())
def test_pictures_of_extreme_sizes_are_laid_out(
    size: tuple[int, int], preprocessing: BoxPreprocessing
) -> None:
    pictures = boxed([painted(*size, [])] * 2, [size] * 2, [[(0, 0, size[1], size[0])], []])
    for layout in layouts(pictures, preprocessing, ALL, 30):
        for _, tile in layout.tiles:
            assert min(tile.place.height, tile.place.width) >= 1
            assert tile.window.top + tile.window.height <= size[0]
            assert tile.window.left + tile.window.width <= size[1]
            assert tile.place.top + tile.place.height <= layout.filled[0]
            assert tile.place.left + tile.place.width <= layout.filled[1]


def test_a_picture_of_the_letterbox_has_grey_on_both_sides() -> None:
    layout = evaluated(3, 427, 640, BoxPreprocessing(height=416, width=416))
    assert layout.filled == (416, 416)
    index, tile = layout.tiles[0]
    assert index == 3
    assert tile.place == Window(top=69, left=0, height=277, width=416)


def sizes(
    multi_scale: float, *, batch_size: int = 4, seed: int = 0, height: int = 416, width: int = 416
) -> list[tuple[int, int]]:
    return [
        input_size(
            height,
            width,
            multi_scale=multi_scale,
            batch_size=batch_size,
            seed=seed,
            epoch=1,
            first=first,
        )
        for first in range(0, 8000, batch_size)
    ]


def test_sizes_are_all_the_multiples_of_32_within_reach_by_hand() -> None:
    """0.75 * 416 = 312 and 1.25 * 416 = 520."""
    assert {high for high, _ in sizes(0.25)} == set(range(320, 513, 32))
    assert all(high == wide for high, wide in sizes(0.25))


def test_sizes_change_every_ten_batches_and_no_sooner() -> None:
    found = sizes(0.25)
    tens = [found[first : first + 10] for first in range(0, len(found), 10)]
    assert all(len(set(ten)) == 1 for ten in tens)
    changes = sum(one[0] != other[0] for one, other in pairwise(tens))
    # Of 199 changes one in seven leads to the same size.
    assert changes > 140


def test_sizes_differ_by_seed() -> None:
    assert sizes(0.25) != sizes(0.25, seed=1)


def test_inputs_that_are_no_squares_keep_their_aspect_as_near_as_can_be() -> None:
    for high, wide in sizes(0.5, height=320, width=640):
        assert wide == 2 * high
    for high, wide in sizes(0.3, height=300, width=500):
        assert high % 32 == wide % 32 == 0
        assert abs(wide - high * 5 / 3) <= 16


def test_without_multi_scale_the_size_is_left_alone() -> None:
    assert set(sizes(0.0, height=300, width=301)) == {(300, 301)}


def test_a_reach_without_a_multiple_gives_the_next_one() -> None:
    assert {high for high, _ in sizes(0.001, height=300, width=300)} == {320}


def test_canvases_of_multi_scale_keep_the_shorter_side() -> None:
    assert canvas(30, 60, replace(fits()[2], height=96, width=256)) == (96, 192)
