"""Where crops lie, what is mirrored, how much is mixed: pure functions of a generator."""

import math

import numpy as np

from octavolt.data.decode import Window

ASPECT_MIN, ASPECT_MAX = 3 / 4, 4 / 3
"""Width by height of a random crop: Szegedy et al. 2015, section 6."""
TRIES = 10


def whole(height: int, width: int) -> Window:
    """Return the window that is all of the picture."""
    return Window(top=0, left=0, height=height, width=width)


def random_crop(
    height: int, width: int, *, scale_min: float, random: np.random.Generator
) -> Window:
    """Return a window of a random share of the area, in [scale_min, 1], and a random aspect.

    Shares are uniform, aspects log-uniform: Szegedy et al. 2015. After ten windows that do not fit
    it is the largest central one whose aspect is allowed. With `scale_min` 1 it is the whole
    picture, whatever its aspect: nothing is cut away, and the resize may distort it.
    """
    if scale_min >= 1:
        return whole(height, width)
    for _ in range(TRIES):
        share, stretch, down, across = random.random(4).tolist()
        area = height * width * (scale_min + (1 - scale_min) * share)
        aspect = ASPECT_MIN * (ASPECT_MAX / ASPECT_MIN) ** stretch
        crop_height, crop_width = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
        if 0 < crop_height <= height and 0 < crop_width <= width:
            return Window(
                top=int(down * (height - crop_height + 1)),
                left=int(across * (width - crop_width + 1)),
                height=crop_height,
                width=crop_width,
            )
    return central(
        height,
        width,
        crop_height=min(height, max(1, round(width / ASPECT_MIN))),
        crop_width=min(width, max(1, round(height * ASPECT_MAX))),
    )


def central_crop(height: int, width: int, *, image_size: int, crop_fraction: float) -> Window:
    """Return the window of evaluation.

    It is what the usual two steps show, resizing the shorter side to image_size / crop_fraction and
    cutting out the middle, without the picture in between; its edges lie on whole pixels.
    """
    resized = max(image_size, round(image_size / crop_fraction))
    side = max(1, round(min(height, width) * image_size / resized))
    return central(height, width, crop_height=side, crop_width=side)


def central(height: int, width: int, *, crop_height: int, crop_width: int) -> Window:
    """Return the window of that size in the middle."""
    return Window(
        top=(height - crop_height) // 2,
        left=(width - crop_width) // 2,
        height=crop_height,
        width=crop_width,
    )


def is_mirrored(random: np.random.Generator) -> bool:
    """Return whether a picture is mirrored: every second one is."""
    return bool(random.random() < 0.5)


def mixup_share(random: np.random.Generator, *, alpha: float) -> float:
    """Return the share of the first of two mixed pictures: Zhang et al. 2018."""
    return float(random.beta(alpha, alpha))
