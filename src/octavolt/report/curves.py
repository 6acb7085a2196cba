"""Series of numbers made fit to be drawn."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

MOST_POINTS = 800
"""Of one curve: more than a screen has columns, and few enough for a small file."""
SMOOTHED_SHARE = 1 / 30
"""Of the points, over which the smoothed curve forgets."""


def smoothed(values: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    """Return the running mean, exponentially weighed and free of the bias of its start.

    Values that are not finite are passed over; NaN stands where none was finite yet.
    """
    keep = 1 - 1 / max(2.0, len(values) * SMOOTHED_SHARE)
    total = weight = 0.0
    result = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if math.isfinite(value):
            total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
        if weight:
            result[place] = total / weight
    return result


def thinned(count: int) -> slice:
    """Return which points to draw of a curve of that many."""
    return slice(None, None, max(1, math.ceil(count / MOST_POINTS)))


def numbers(values: Sequence[float | None]) -> Float[np.ndarray, " points"]:
    """Return numbers as an array, NaN where one is missing or infinite."""
    array = np.array([np.nan if one is None else one for one in values], dtype=np.float64)
    array[~np.isfinite(array)] = np.nan
    return array


def median(values: Sequence[float | None]) -> float | None:
    """Return the median of the finite values, or None if there are none."""
    finite = finite_only(values)
    return float(np.median(finite)) if finite.size else None


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the finite values, or None if there are none."""
    finite = finite_only(values)
    return float(finite.mean()) if finite.size else None


def finite_only(values: Sequence[float | None]) -> Float[np.ndarray, " finite"]:
    """Return the values that are finite numbers."""
    array = numbers(values)
    return array[~np.isnan(array)]
