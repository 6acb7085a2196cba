import numpy as np
import pytest

from octavolt.report.curves import mean, median, smoothed, thinned, window_sums


def test_window_sums_by_hand() -> None:
    assert window_sums(np.array([1.0, 2.0, 4.0, 8.0]), 1).tolist() == [3.0, 7.0, 14.0, 12.0]


def test_constant_curve_stays_as_it_is() -> None:
    np.testing.assert_allclose(smoothed(np.full(500, 2.5)), 2.5, rtol=1e-12)


def test_smoothing_does_not_lag_behind_a_slope() -> None:
    slope = np.arange(600, dtype=np.float64)
    np.testing.assert_allclose(smoothed(slope)[40:-40], slope[40:-40], rtol=1e-9)


def test_values_that_are_not_finite_leave_their_neighbours_as_they_are() -> None:
    values = np.full(300, 2.0)
    values[[7, 100, 101]] = np.nan, np.inf, -np.inf
    np.testing.assert_allclose(smoothed(values), 2.0, rtol=1e-12)


def test_curve_without_a_finite_value_has_no_mean() -> None:
    assert np.isnan(smoothed(np.full(9, np.nan))).all()


def test_few_points_are_not_smoothed() -> None:
    values = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(smoothed(values), values)


@pytest.mark.parametrize("count", [1, 800, 801, 100_000])
def test_thinned_curve_has_at_most_800_points(count: int) -> None:
    assert count / 126 < len(range(count)[thinned(count)]) <= 800


def test_missing_values_are_left_out_of_mean_and_median() -> None:
    values = [None, 1.0, float("nan"), 3.0, 8.0]
    assert (median(values), mean(values)) == (3.0, 4.0)


def test_nothing_has_no_mean() -> None:
    assert mean([None]) is None
