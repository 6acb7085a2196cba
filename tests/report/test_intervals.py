import pytest

from octavolt.report.intervals import wilson_interval


def test_interval_by_hand() -> None:
    """8 of 10: (0.8 + 0.19207) / 1.38415 = 0.71674; 1.95996 / 1.38415 * sqrt(0.025604) = 0.22658.

    0.19207 is 3.84146 / 20, 1.38415 is 1 + 3.84146 / 10, 0.025604 is 0.016 + 3.84146 / 400.
    """
    interval = wilson_interval(8, 10)
    assert interval.low == pytest.approx(0.71674 - 0.22658, abs=2e-5)
    assert interval.high == pytest.approx(0.71674 + 0.22658, abs=2e-5)


def test_nothing_measured_says_nothing() -> None:
    interval = wilson_interval(0, 0)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_interval_of_all_hits_has_a_width_and_ends_at_1() -> None:
    interval = wilson_interval(20, 20)
    assert interval.low == pytest.approx(20 / (20 + 3.841459), abs=1e-6)
    assert interval.high == pytest.approx(1.0)


def test_interval_of_misses_mirrors_that_of_hits() -> None:
    hits, misses = wilson_interval(171, 180), wilson_interval(9, 180)
    assert misses.low == pytest.approx(1 - hits.high)
    assert misses.high == pytest.approx(1 - hits.low)
