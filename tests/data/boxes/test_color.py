"""Colors turn, spread and brighten around the axis of greys."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from octavolt.data.boxes.color import color_matrix, random_color, recolor


def changed(
    color: tuple[int, int, int], *, turn: float = 0, saturation: float = 1, brightness: float = 1
) -> list[int]:
    pixels = np.full((1, 1, 3), color, np.uint8)
    recolor(pixels, color_matrix(turn=turn, saturation=saturation, brightness=brightness))
    values: list[int] = pixels[0, 0].tolist()
    return values


def noise() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (9, 11, 3), dtype=np.uint8)


def test_no_change_changes_nothing() -> None:
    pixels = noise()
    recolor(pixels, color_matrix(turn=0, saturation=1, brightness=1))
    np.testing.assert_array_equal(pixels, noise())


def test_a_third_of_a_turn_takes_red_to_green_and_green_to_blue() -> None:
    assert changed((200, 0, 0), turn=1 / 3) == [0, 200, 0]
    assert changed((0, 200, 0), turn=1 / 3) == [0, 0, 200]
    assert changed((200, 0, 0), turn=-1 / 3) == [0, 0, 200]


def test_saturation_spreads_from_the_mean_by_hand() -> None:
    assert changed((90, 120, 150), saturation=1.5) == [75, 120, 165]
    assert changed((90, 120, 150), saturation=0) == [120, 120, 120]


def test_brightness_multiplies_and_stops_at_white() -> None:
    assert changed((10, 100, 200), brightness=1.5) == [15, 150, 255]


def test_greys_have_no_hue_and_no_saturation() -> None:
    assert changed((77, 77, 77), turn=0.1, saturation=1.5) == [77, 77, 77]


def test_a_part_of_a_picture_is_changed_in_place_and_nothing_around_it() -> None:
    matrix = color_matrix(turn=0.1, saturation=1.4, brightness=0.8)
    whole, part = noise(), noise()
    recolor(whole, matrix)
    recolor(part[2:7, 3:8], matrix)
    np.testing.assert_array_equal(part[2:7, 3:8], whole[2:7, 3:8])
    part[2:7, 3:8] = noise()[2:7, 3:8]
    np.testing.assert_array_equal(part, noise())


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_draws_reach_as_far_as_in_darknet(strength: float) -> None:
    random = np.random.default_rng(0)
    matrices = [random_color(random, strength=strength).astype(float) for _ in range(2000)]
    most = 1 + 0.5 * strength
    # White shows the brightness alone: the sum of a row.
    brightness = [matrix[0].sum() for matrix in matrices]
    assert 1 / most - 1e-6 < min(brightness) < 1.02 / most
    assert 0.98 * most < max(brightness) < most + 1e-6
    # The rest is a turn times a spread: the determinant has its square.
    spreads = [
        math.sqrt(np.linalg.det(matrix / bright))
        for matrix, bright in zip(matrices, brightness, strict=True)
    ]
    assert 1 / most - 1e-5 < min(spreads) < 1.02 / most
    assert 0.98 * most < max(spreads) < most + 1e-5
    turns = [
        math.acos(min(1.0, (np.trace(matrix) / bright - 1) / (2 * spread))) / (2 * math.pi)
        for matrix, bright, spread in zip(matrices, brightness, spreads, strict=True)
    ]
    assert 0.095 * strength < max(turns) < 0.1 * strength + 1e-3
