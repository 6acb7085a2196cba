"""Series of numbers made fit to be drawn."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

MOST_POINTS = 800
"""Of one curve: more than a screen has columns, and few enough for a small file."""
SMOOTHED_REACH = 1 / 60
"""Share of the points on either side over which a window of the smoothed curve reaches."""


def smoothed(values: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
    """Return the mean of the points around each, weighed by a triangle: it doesn't lag behind.

    Values that are not finite are passed over; NaN stands where none near is finite.
    """
    reach = int(len(values) * SMOOTHED_REACH)
    finite = np.isfinite(values)
    totals = window_sums(window_sums(np.where(finite, values, 0.0), reach), reach)
    weights = window_sums(window_sums(finite.astype(np.float64), reach), reach)
    found = weights > 0.5  # weights are whole numbers, but for rounding
    return np.where(found, totals / np.where(found, weights, 1.0), np.nan)


def window_sums(values: Float[np.ndarray, " points"], reach: int) -> Float[np.ndarray, " points"]:
    """Return the sum of each value and up to `reach` on either side."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    ends = np.minimum(places + reach + 1, len(values))
    return np.asarray(running[ends] - running[np.maximum(places - reach, 0)])


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
    return np.asarray(array[~np.isnan(array)])
