"""Views follow from a generator, within what the papers allow."""

import numpy as np
import pytest
from numpy.typing import NDArray

from octavolt.data.augment import whole
from octavolt.data.boxes.crops import box_crop, expanded, fulfils, jittered, quarters, shift
from octavolt.data.decode import Window

CORNERS = np.array([[10.0, 20.0, 60.0, 70.0], [100.0, 5.0, 130.0, 25.0]])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def expansions(most: float, count: int = 400) -> list[Window]:
    random = rng()
    return [expanded(30, 50, most=most, random=random) for _ in range(count)]


def test_expanded_views_hold_their_picture() -> None:
    for view in expansions(4.0):
        assert view.top <= 0
        assert view.left <= 0
        assert view.top + view.height >= 30
        assert view.left + view.width >= 50
        # Sides are rounded, of at least 30 pixels.
        assert view.height / 30 == pytest.approx(view.width / 50, rel=0.5 / 30 + 0.5 / 50)


def test_half_of_the_views_are_expanded_up_to_the_most() -> None:
    ratios = [view.height / 30 for view in expansions(4.0)]
    # Five deviations of a fair coin thrown 400 times are 50.
    assert abs(sum(ratio > 1 for ratio in ratios) - 200) < 50
    assert 3.9 < max(ratios) <= 4


def test_without_expansion_a_view_is_its_picture() -> None:
    assert set(expansions(1.0, 20)) == {whole(30, 50)}


def crops(view: Window, corners: NDArray[np.float64], count: int = 400) -> list[Window]:
    random = rng()
    return [box_crop(view, corners, random=random) for _ in range(count)]


def overlap(crop: Window, box: NDArray[np.float64]) -> float:
    wide = min(crop.left + crop.width, box[2]) - max(crop.left, box[0])
    high = min(crop.top + crop.height, box[3]) - max(crop.top, box[1])
    shared = max(wide, 0) * max(high, 0)
    area = (box[2] - box[0]) * (box[3] - box[1])
    return float(shared / (crop.height * crop.width + area - shared))


def test_crops_lie_in_the_view_within_the_limits_and_hold_a_center() -> None:
    view = Window(top=-20, left=-10, height=120, width=180)
    found = [crop for crop in crops(view, CORNERS) if crop != view]
    assert len(found) > 200
    for crop in found:
        assert view.top <= crop.top <= crop.top + crop.height <= view.top + view.height
        assert view.left <= crop.left <= crop.left + crop.width <= view.left + view.width
        # Sides are rounded, of at least 30 pixels.
        assert 0.097 < crop.height * crop.width / (120 * 180) <= 1
        assert 0.49 < crop.width / crop.height < 2.04
        centers = (CORNERS[:, :2] + CORNERS[:, 2:]) / 2
        first = np.array([crop.left, crop.top])
        last = first + np.array([crop.width, crop.height])
        assert ((first < centers) & (centers < last)).all(axis=1).any()


def test_crops_overlap_with_a_box_by_all_the_shares() -> None:
    found = [crop for crop in crops(whole(100, 150), CORNERS) if crop != whole(100, 150)]
    best = [max(overlap(crop, box) for box in CORNERS) for crop in found]
    # A sixth of the patches may be any; the others overlap by at least a tenth.
    assert 0 < sum(one < 0.1 for one in best) < len(best) / 4
    assert max(best) > 0.7


@pytest.mark.parametrize(("least", "expected"), [(0.24, True), (0.26, False)])
def test_overlap_by_hand(least: float, expected: bool) -> None:
    """A patch of 20 x 20 in a box of 40 x 40: a quarter."""
    patch = np.array([[10, 10, 30, 30]], np.int64)
    box = np.array([[0.0, 0.0, 40.0, 40.0], [0.0, 0.0, 2.0, 2.0]])
    assert fulfils(patch, box, overlap_min=least).tolist() == [expected]


def test_a_box_whose_center_is_outside_does_not_count() -> None:
    patch = np.array([[0, 0, 20, 20]], np.int64)
    assert fulfils(patch, np.array([[0.0, 0.0, 41.0, 20.0]]), overlap_min=0.1).tolist() == [False]
    assert fulfils(patch, np.array([[0.0, 0.0, 39.0, 20.0]]), overlap_min=0.1).tolist() == [True]


def test_a_view_that_no_patch_fits_in_stays_whole() -> None:
    """Of 2 x 900 pixels no patch of a tenth has an aspect of at most 2."""
    view = whole(2, 900)
    assert set(crops(view, np.array([[0.0, 0.0, 900.0, 2.0]]), 30)) == {view}


@pytest.mark.parametrize(("height", "width"), [(30, 64), (64, 30), (64, 64), (1, 64)])
def test_jittered_pictures_lie_on_their_canvas_or_over_it(height: int, width: int) -> None:
    random = rng()
    place = Window(top=(64 - height) // 2, left=(64 - width) // 2, height=height, width=width)
    found = [jittered(place, (64, 64), strength=0.5, random=random) for _ in range(300)]
    for one in found:
        for first, length in ((one.top, one.height), (one.left, one.width)):
            assert min(0, 64 - length) <= first <= max(0, 64 - length)
        # Both sides are rounded.
        rounding = 0.5 / height + 0.5 / width
        assert one.width / width == pytest.approx(one.height / height, abs=rounding)
    longest = [max(one.height, one.width) / 64 for one in found]
    assert 0.5 <= min(longest) < 0.55
    assert 1.45 < max(longest) <= 1.5


def test_without_jitter_a_picture_lies_as_in_evaluation() -> None:
    place = Window(top=17, left=0, height=30, width=64)
    assert jittered(place, (64, 64), strength=0.0, random=rng()) == place


def test_shifts_reach_both_ends() -> None:
    shares = np.linspace(0, 0.999, 50).tolist()
    assert {shift(3, share) for share in shares} == {0, 1, 2, 3}
    assert {shift(-3, share) for share in shares} == {0, -1, -2, -3}
    assert {shift(0, share) for share in shares} == {0}


@pytest.mark.parametrize(("height", "width"), [(64, 96), (7, 5), (1, 64), (1, 1)])
def test_quarters_cover_a_canvas_once(height: int, width: int) -> None:
    random = rng()
    for _ in range(30):
        hits = np.zeros((height, width), int)
        for part in quarters(height, width, random=random):
            assert part.height * part.width > 0
            hits[part.top : part.top + part.height, part.left : part.left + part.width] += 1
        assert (hits == 1).all()


def test_no_quarter_is_smaller_than_a_fifth_of_a_side() -> None:
    random = rng()
    sides = [quarters(100, 100, random=random)[0] for _ in range(300)]
    assert 20 <= min(one.height for one in sides) < 23
    assert 77 < max(one.width for one in sides) <= 80
