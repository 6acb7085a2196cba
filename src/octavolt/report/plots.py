"""The plots of one run."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from octavolt.report.curves import numbers, smoothed, thinned
from octavolt.report.files import EpochRow, StepRow
from octavolt.report.intervals import wilson_interval
from octavolt.report.rows import Row
from octavolt.report.svg import COLOURS, RUN_COLOURS, plot
from octavolt.report.words import metric

FAINT = 0.28
FEW_POINTS = 40
"""Up to which each point gets a dot."""
LEAST_TOP_FRACTION = 0.05
"""Of the upright axis of a share of the time."""
CLASS_COLOURS = RUN_COLOURS[1:]
"""Of classes beside their mean: of so many each has a curve."""
MOST_HEAT_POINTS = 125
"""Of a heat map, on each side: smaller points can't be seen."""
VAL_LOSSES = ("negative_log_likelihood_nats", "nats_per_token")
"""Of validation, in the units of the training's: a task has one of them."""
LOG_RATIO = 4.0
"""Of the largest to the smallest value, from which a metric without an upper end is drawn on a
logarithmic axis."""


def loss_plot(steps: Sequence[StepRow], epochs: Sequence[EpochRow]) -> Markup:
    """Return the loss of training, raw and smoothed, and that of validation."""
    raw = numbers([row.loss for row in steps])
    measured = [row for row in epochs if val_loss(row) is not None]
    val = numbers([val_loss(row) for row in measured])

    def draw(axes: Axes) -> None:
        if steps:
            every = thinned(len(steps))
            places = [row.step for row in steps][every]
            axes.plot(places, raw[every], color=COLOURS["first"], alpha=FAINT, linewidth=1)
            axes.plot(places, smoothed(raw)[every], color=COLOURS["first"])
        curve(axes, numbers([row.step for row in measured]), val, "second")
        limit_to_most(axes, raw, val)
        whole_x(axes, "step")

    return plot(draw, name="loss", title="Loss against step")


def metric_plot(epochs: Sequence[EpochRow], name: str) -> Markup:
    """Return a validation metric against the epoch; a ring marks the best one."""
    measured = [row for row in epochs if row.val and name in row.val]

    def draw(axes: Axes) -> None:
        places = numbers([row.epoch for row in measured])
        values = numbers([value(row, name) for row in measured])
        curve(axes, places, values, "second")
        best = [place for place, row in enumerate(measured) if row.best][-1:]
        axes.plot(
            places[best],
            values[best],
            "o",
            markersize=10,
            markerfacecolor="none",
            markeredgewidth=1.8,
            markeredgecolor=COLOURS["ink"],
            clip_on=False,
        )
        scaled(axes, name, values)
        whole_x(axes, "epoch")

    return plot(draw, name="metric", title=f"{metric(name).label} of validation against epoch")


def learning_rate_plot(steps: Sequence[StepRow]) -> Markup:
    """Return the learning rate against the step."""

    def draw(axes: Axes) -> None:
        rows = steps[thinned(len(steps))]
        rates = numbers([row.learning_rate for row in rows])
        curve(axes, numbers([row.step for row in rows]), rates, "first")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:.3g}")
        whole_x(axes, "step")

    return plot(draw, name="learning-rate", title="Learning rate against step")


def speed_plot(steps: Sequence[StepRow], unit: str) -> Markup:
    """Return units a second against the step, raw and smoothed."""
    title = f"{unit.capitalize()}s a second against step"
    return raw_and_smoothed(steps, [row.samples_per_second for row in steps], "speed", title)


def gradient_plot(steps: Sequence[StepRow]) -> Markup:
    """Return the norm of the gradient before clipping against the step."""
    norms = [row.gradient_norm for row in steps]
    return raw_and_smoothed(steps, norms, "gradient", "Norm of the gradient against step", "first")


def waiting_plot(steps: Sequence[StepRow]) -> Markup:
    """Return the share of the time spent waiting for data against the step."""
    return raw_and_smoothed(
        steps,
        [row.waiting_fraction for row in steps],
        "waiting_fraction",
        "Share of the time waiting for data against step",
    )


def raw_and_smoothed(
    steps: Sequence[StepRow],
    values: Sequence[float | None],
    name: str,
    title: str,
    colour: str = "third",
) -> Markup:
    """Return a series from 0 up, against the step."""

    def draw(axes: Axes) -> None:
        every = thinned(len(steps))
        raw, places = numbers(values), [row.step for row in steps][every]
        axes.plot(places, raw[every], color=COLOURS[colour], alpha=FAINT, linewidth=1)
        axes.plot(places, smoothed(raw)[every], color=COLOURS[colour])
        # On a scale of thousandths, waiting that costs nothing would look like trouble.
        least_top = LEAST_TOP_FRACTION if metric(name).is_fraction else 0.0
        axes.set_ylim(0, max(axes.get_ylim()[1], least_top))
        ticked(axes, name)
        whole_x(axes, "step")

    return plot(draw, name=name, title=title)


def calibration_plot(bins: Sequence[Row], name: str) -> Markup:
    """Return the accuracy of each bin of confidence with its interval: Guo et al. 2017, figure 1.

    The faint bars are the bins' shares of all samples.
    """
    filled = [row for row in bins if row.whole("samples")]
    counts = [row.whole("samples") for row in filled]
    sure = numbers([row.number("confidence") for row in filled])
    right = numbers([row.number("accuracy") for row in filled])

    def draw(axes: Axes) -> None:
        share = np.array(counts) / max(1, sum(counts))
        axes.bar(sure, share, width=0.04, color=COLOURS["muted"], alpha=FAINT)
        axes.plot([0, 1], [0, 1], color=COLOURS["muted"], linewidth=1, linestyle=(0, (3, 3)))
        ends = [wilson_interval(a * n, n) for a, n in zip(right.tolist(), counts, strict=True)]
        axes.vlines(
            sure,
            *zip(*[(end.low, end.high) for end in ends], strict=True),
            color=COLOURS["first"],
            alpha=0.45,
        )
        axes.plot(sure, right, "o-", color=COLOURS["first"], markersize=5)
        axes.set(xlim=(-0.02, 1.03), ylim=(0, 1.03), xlabel="confidence", ylabel="accuracy")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(per_cent)

    return plot(draw, name=name, title="Accuracy against confidence", size=(380, 300))


def precision_recall_plot(rows: Sequence[Row], name: str) -> Markup | None:
    """Return the precision at each recall, at an overlap of 0.5: the first classes by name.

    The thick line is the mean over all classes that have boxes.
    """
    curves = {row.text("class"): row.shares("precisions") for row in rows}
    known = {label: values for label, values in curves.items() if values}
    if not known:
        return None
    recalls = np.linspace(0, 1, len(next(iter(known.values()))))

    def draw(axes: Axes) -> None:
        for shade, (label, values) in zip(CLASS_COLOURS, known.items(), strict=False):
            axes.plot(recalls, values, color=COLOURS[shade], linewidth=1.2, label=label[:24])
        mean = np.mean([*known.values()], axis=0)
        axes.plot(recalls, mean, color=COLOURS["first"], linewidth=2.4, label="mean of classes")
        axes.set(xlim=(0, 1.01), ylim=(0, 1.03), xlabel="recall", ylabel="precision")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(per_cent)
        # Where there is room: good curves are above and on the right, bad ones below on the left.
        axes.legend(loc="best", frameon=False)

    return plot(draw, name=name, title="Precision against recall", size=(380, 300))


def heat_map(confusion: Float[np.ndarray, "true predicted"], name: str) -> Markup:
    """Return the confusion matrix as a picture: the darker, the larger the share of a true class.

    The square root of the share is drawn, as otherwise only the diagonal would be seen. Classes
    that are neighbours share a point where there are more than `MOST_HEAT_POINTS`.
    """
    counts = pooled(confusion)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    def draw(axes: Axes) -> None:
        # Blue, and as dense as the share: so it fits a light and a dark page.
        shade = np.zeros((*share.shape, 4))
        shade[..., :3] = np.array([47, 111, 208]) / 255
        shade[..., 3] = np.sqrt(share)
        ends = (0.5, len(confusion) + 0.5, len(confusion) + 0.5, 0.5)
        axes.imshow(shade, extent=ends, interpolation="none", aspect="equal")
        axes.grid(visible=False)
        axes.set(xlabel="predicted class", ylabel="true class")

    return plot(draw, name=name, title="Confusion matrix as a heat map", size=(420, 400))


def pooled(confusion: Float[np.ndarray, "true predicted"]) -> Float[np.ndarray, "points points"]:
    """Return counts of at most `MOST_HEAT_POINTS` rows and columns: neighbours are added."""
    size = classes_a_point(len(confusion))
    starts = np.arange(0, len(confusion), size)
    rows = np.add.reduceat(confusion, starts, axis=0)
    return np.asarray(np.add.reduceat(rows, starts, axis=1))


def classes_a_point(class_count: int) -> int:
    """Return how many neighbouring classes share a point of the heat map."""
    return -(-class_count // MOST_HEAT_POINTS)


def value(row: EpochRow, name: str) -> float | None:
    """Return a validation metric of an epoch."""
    found = (row.val or {}).get(name)
    return float(found) if isinstance(found, int | float) else None


def val_loss(row: EpochRow) -> float | None:
    """Return the loss of validation after an epoch, if it was measured."""
    return next((found for name in VAL_LOSSES if (found := value(row, name)) is not None), None)


def curve(
    axes: Axes, x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], colour: str
) -> None:
    """Draw a line, with a dot a point when they are few."""
    mark = "o" if len(x) <= FEW_POINTS else ""
    axes.plot(x, y, marker=mark, markersize=4, color=COLOURS[colour], clip_on=False)


def limit_to_most(
    axes: Axes, raw: Float[np.ndarray, " points"], val: Float[np.ndarray, " epochs"]
) -> None:
    """Let a few outliers of a raw curve leave the plot, so that the rest can be read."""
    finite, whole = raw[~np.isnan(raw)], val[~np.isnan(val)]
    tops = [float(np.percentile(finite, 99))] if finite.size else []
    tops += [float(whole.max())] if whole.size else []
    if tops:
        axes.set_ylim(0, max(*tops, 1e-6) * 1.08)


def ticked(axes: Axes, name: str) -> None:
    """Label the upright axis: in per cent, if the metric is a share."""
    axes.yaxis.set_major_formatter(per_cent if metric(name).is_fraction else plain)


def scaled(axes: Axes, name: str, values: Float[np.ndarray, " points"]) -> None:
    """Label the upright axis for a metric; one that falls manyfold gets a logarithmic axis."""
    finite = values[~np.isnan(values)]
    least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if not metric(name).is_fraction and 0 < least <= most / LOG_RATIO:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    ticked(axes, name)  # a new scale forgets the labels


def plain(number: float, _: object = None) -> str:
    """Return the label of a tick, short enough for the room there is: '0.5', '2,000', '250k'."""
    if abs(number) >= 1e6:
        return f"{number / 1e6:.4g}M"
    if abs(number) >= 1e4:
        return f"{number / 1e3:.4g}k"
    return f"{number:,.0f}" if abs(number) >= 1e3 else f"{number:.4g}"


def per_cent(share: float, _: object = None) -> str:
    """Return the label of a tick."""
    return f"{100 * share:.4g} %"


def whole_x(axes: Axes, label: str) -> None:
    """Label the level axis with whole numbers."""
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
