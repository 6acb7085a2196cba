import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from octavolt.report.plots import (
    classes_a_point,
    plain,
    pooled,
    precision_recall_plot,
    scaled,
)
from octavolt.report.rows import Row


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


@pytest.mark.parametrize(
    ("name", "values", "scale"),
    [
        ("perplexity", [900.0, 120.0, 45.0], "log"),
        ("perplexity", [45.0, 41.0, 40.0], "linear"),
        ("perplexity", [float("nan"), 900.0, 45.0], "log"),
        ("matthews_correlation", [-0.1, 0.9], "linear"),
        ("top1_fraction", [0.05, 0.9], "linear"),
        ("perplexity", [float("nan")], "linear"),
    ],
)
def test_metric_that_falls_manyfold_has_a_logarithmic_axis(
    name: str, values: list[float], scale: str
) -> None:
    axes = Figure().add_axes((0, 0, 1, 1))
    scaled(axes, name, np.array(values))
    assert axes.get_yscale() == scale
    assert axes.yaxis.get_major_formatter()(0.5) in ("0.5", "50 %")


@pytest.mark.parametrize(
    ("number", "words"),
    [(0.5, "0.5"), (20.0, "20"), (2_500.0, "2,500"), (250_000.0, "250k"), (2e6, "2M")],
)
def test_ticks_are_plain_numbers(number: float, words: str) -> None:
    assert plain(number) == words


@pytest.mark.parametrize(("reached", "share"), [(95, 1.0), (60, 0.1)])
def test_names_of_curves_do_not_lie_on_them(reached: int, share: float) -> None:
    precisions = [share] * reached + [0.0] * (101 - reached)
    row = Row(values={"class": "cell", "precisions": precisions}, place="here")
    drawn = precision_recall_plot([row], "precision")
    assert drawn is not None
    # The plot is 300 points high; its axis goes from the top of 10 to the bottom of 260.
    heights = [
        float(height)
        for height in re.findall(r'y="([\d.]+)"[^>]*>(?:cell|mean of classes)<', drawn)
    ]
    curve = 10 + 250 * (1 - share / 1.03)
    assert len(heights) == 2
    assert all(abs(height - curve) > 12 for height in heights)
