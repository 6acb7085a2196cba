"""Crops, mirroring and mixing follow from a generator, within what the papers allow."""

import numpy as np
import pytest

from octavolt.data.augment import (
    ASPECT_MAX,
    ASPECT_MIN,
    central_crop,
    is_mirrored,
    mixup_share,
    random_crop,
)
from octavolt.data.decode import Window


def crops(height: int, width: int, *, scale_min: float, count: int = 400) -> list[Window]:
    rng = np.random.default_rng(0)
    return [random_crop(height, width, scale_min=scale_min, random=rng) for _ in range(count)]


@pytest.mark.parametrize("size", [(375, 500), (500, 375), (28, 28), (1, 1), (3, 900), (900, 3)])
def test_crops_lie_within_the_picture(size: tuple[int, int]) -> None:
    for crop in crops(*size, scale_min=0.08):
        assert crop.height >= 1
        assert crop.width >= 1
        assert 0 <= crop.top <= size[0] - crop.height
        assert 0 <= crop.left <= size[1] - crop.width


def test_areas_and_aspects_lie_within_the_limits() -> None:
    for crop in crops(1000, 1200, scale_min=0.25):
        # Sides are rounded to pixels, of which there are at least 400.
        assert 0.249 < crop.height * crop.width / 1_200_000 <= 1
        assert 0.995 * ASPECT_MIN < crop.width / crop.height < 1.005 * ASPECT_MAX


def test_areas_and_aspects_reach_across_the_limits() -> None:
    found = crops(1000, 1000, scale_min=0.08)
    areas = [crop.height * crop.width / 1e6 for crop in found]
    aspects = [crop.width / crop.height for crop in found]
    assert min(areas) < 0.1
    assert max(areas) > 0.9
    assert min(aspects) < 0.77
    assert max(aspects) > 1.3


def test_crops_reach_all_edges() -> None:
    found = crops(30, 40, scale_min=0.08)
    assert min(crop.top for crop in found) == min(crop.left for crop in found) == 0
    assert max(crop.top + crop.height for crop in found) == 30
    assert max(crop.left + crop.width for crop in found) == 40


def test_the_same_generator_gives_the_same_crops() -> None:
    assert crops(375, 500, scale_min=0.08) == crops(375, 500, scale_min=0.08)


def test_scale_of_one_takes_the_whole_picture() -> None:
    assert crops(30, 90, scale_min=1.0, count=1) == [Window(top=0, left=0, height=30, width=90)]


def test_picture_too_long_for_any_crop_gives_its_middle() -> None:
    assert crops(30, 900, scale_min=0.5, count=1) == [Window(top=0, left=430, height=30, width=40)]


def test_central_crop_by_hand() -> None:
    """Resized to 256 of 375 pixels, a side of 224 is 328.125 of them: 23 above, 86 to the left."""
    assert central_crop(375, 500, image_size=224, crop_fraction=0.875) == Window(
        top=23, left=86, height=328, width=328
    )


def test_crop_fraction_of_one_keeps_the_shorter_side() -> None:
    assert central_crop(10, 30, image_size=64, crop_fraction=1.0) == Window(
        top=0, left=10, height=10, width=10
    )


def test_a_single_pixel_has_a_central_crop() -> None:
    window = central_crop(1, 1, image_size=224, crop_fraction=0.875)
    assert window == Window(top=0, left=0, height=1, width=1)


def test_half_of_the_pictures_are_mirrored() -> None:
    rng = np.random.default_rng(0)
    # Five deviations of a fair coin thrown 4,000 times are 158.
    assert abs(sum(is_mirrored(rng) for _ in range(4000)) - 2000) < 158


def test_shares_have_the_mean_and_variance_of_their_distribution() -> None:
    """Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)): 0.1786 for a = 0.2."""
    rng = np.random.default_rng(0)
    shares = [mixup_share(rng, alpha=0.2) for _ in range(4000)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.035)  # five deviations of the mean
    assert np.var(shares) == pytest.approx(0.1786, abs=0.01)
