import numpy as np
import pytest

from octavolt.report.plots import classes_a_point, pooled


def test_pooling_adds_neighbours() -> None:
    counts = np.arange(250 * 250, dtype=np.float64).reshape(250, 250)
    points = pooled(counts)
    assert points.shape == (125, 125)
    assert points[0, 0] == 0 + 1 + 250 + 251


def test_pooling_keeps_every_count() -> None:
    counts = np.arange(131 * 131, dtype=np.float64).reshape(131, 131)
    assert pooled(counts).sum() == counts.sum()


@pytest.mark.parametrize(("classes", "each"), [(31, 1), (125, 1), (126, 2), (1000, 8)])
def test_classes_a_point_are_the_fewest_that_can_be_seen(classes: int, each: int) -> None:
    assert classes_a_point(classes) == each
