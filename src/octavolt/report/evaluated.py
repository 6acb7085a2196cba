"""One evaluation as the page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from octavolt.report.files import Evaluation
from octavolt.report.intervals import wilson_interval
from octavolt.report.mistakes import Shot, shot
from octavolt.report.plots import (
    calibration_plot,
    classes_a_point,
    heat_map,
    precision_recall_plot,
)
from octavolt.report.rows import Row
from octavolt.report.words import NOTHING, interval_words, metric, nouns, percent, shown
from octavolt.units import counted, format_count

MOST_CLASSES_IN_MATRIX = 30
MOST_PAIRS = 20
MOST_CLASSES_OPEN = 30
"""Rows of the table of classes that are seen without unfolding it."""
FAINTEST, DENSEST = 0.1, 1.0
"""How strongly the cells of the least and the largest share are coloured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """One metric in words."""

    label: str
    value: str
    interval: str
    """Empty where none is known."""
    explanation: str
    """What to know of the metric; often nothing."""

    @property
    def note(self) -> str:
        """Return what stands below the value, where there is little room."""
        return self.interval or self.explanation.partition(";")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassRow:
    """How well one class is known."""

    name: str
    samples: str
    precision: str
    recall: str
    recall_interval: str
    f1: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxRow:
    """How well the boxes of one class are found."""

    name: str
    boxes: str
    ap: str
    ap50: str
    recall: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One count of the confusion matrix."""

    count: int
    strength: float
    """Of its colour, from 0 to 1."""
    is_right: bool
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Samples of one class that were taken for another."""

    label: str
    predicted: str
    count: int
    of: int
    share: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """How well the questions of one kind were answered."""

    name: str
    questions: str
    exact_match: str
    exact_match_interval: str
    f1: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationView:
    """All that the page shows of one evaluation."""

    anchor: str
    data: str
    split: str
    noun: str
    """What a sample is called."""
    measured: str
    """How much was measured: '180 pictures'."""
    finds_boxes: bool
    headline: Headline
    others: tuple[Headline, ...]
    parts: tuple[Part, ...]
    """Empty where the questions are all of one kind, or none."""
    classes: tuple[ClassRow, ...]
    """The worst first."""
    box_classes: tuple[BoxRow, ...]
    """The worst first; empty where nothing is boxed."""
    precision_recall: Markup | None
    """Of the boxes."""
    absent: int
    """Classes without a sample in the split."""
    names: tuple[str, ...]
    matrix: tuple[tuple[Cell, ...], ...]
    """Empty where there are too many classes to read it, or no counts."""
    pairs: tuple[Pair, ...]
    heat_map: Markup | None
    classes_a_point: int
    """Of the heat map."""
    calibration: Markup | None
    calibration_error: str
    mistakes: tuple[Shot, ...]

    @property
    def has_details(self) -> bool:
        """Whether there is more to show than figures."""
        return bool(self.classes or self.box_classes or self.parts or self.mistakes)


def evaluation_view(found: Evaluation, number: int) -> EvaluationView:
    """Return an evaluation ready for the page."""
    confusion = np.array(found.metrics.values.get("confusion") or np.zeros((0, 0)), dtype=float)
    few = len(confusion) <= MOST_CLASSES_IN_MATRIX
    bins = found.metrics.rows("calibration_bins")
    rows = sorted(found.metrics.rows("per_class"), key=worst_first)
    boxed = sorted(found.metrics.rows("boxes_per_class"), key=worst_boxes_first)
    return EvaluationView(
        anchor=f"evaluation-{number}",
        data=found.data,
        split=found.split,
        noun=nouns(found.task).sample,
        measured=measured(found),
        finds_boxes=found.finds_boxes,
        headline=headline(found, found.primary_metric),
        others=tuple(headline(found, name) for name in other_metrics(found)),
        parts=parts(found),
        classes=tuple(class_row(row) for row in rows),
        box_classes=tuple(box_row(row) for row in boxed),
        precision_recall=precision_recall_plot(boxed, f"precision-{number}") if boxed else None,
        absent=sum(row.whole("samples") == 0 for row in rows),
        names=found.classes,
        matrix=matrix(confusion, found.classes) if few else (),
        pairs=() if few else pairs(confusion, found.classes),
        heat_map=None if few else heat_map(confusion, f"heat-{number}"),
        classes_a_point=classes_a_point(len(confusion)),
        calibration=(
            calibration_plot(bins, f"calibration-{number}")
            if any(row.whole("samples") for row in bins)
            else None
        ),
        calibration_error=shown(
            "calibration_error", found.metrics.optional_number("calibration_error")
        ),
        mistakes=tuple(shot(mistake, found.task) for mistake in found.mistakes),
    )


def measured(found: Evaluation) -> str:
    """Return how much was measured, in what the metrics are means over."""
    if found.finds_boxes:
        boxes = counted(found.metrics.whole("boxes"), "box", "boxes")
        return f"{boxes} in {counted(samples_of(found), nouns(found.task).sample)}"
    if "tokens" not in found.metrics.values:
        return counted(samples_of(found), nouns(found.task).sample)
    hidden = "hidden " if found.task == "masked-language-modeling" else ""
    words = counted(found.metrics.whole("tokens"), f"{hidden}token")
    if "bytes" in found.metrics.values:
        words += f", {counted(found.metrics.whole('bytes'), 'byte')} of text"
    return words


def samples_of(found: Evaluation) -> int:
    """Return the number of samples."""
    return found.metrics.whole("samples") if "samples" in found.metrics.values else 0


def other_metrics(found: Evaluation) -> list[str]:
    """Return the metrics beside the primary one that say something.

    Five guesses among five classes or fewer are always right.
    """
    idle = {found.primary_metric} | ({"top5_fraction"} if len(found.classes) <= 5 else set())
    return [
        name
        for name, value in found.metrics.values.items()
        if name not in idle and isinstance(value, float)
    ]


def headline(found: Evaluation, name: str) -> Headline:
    """Return a metric with its interval, where it is a share of the samples."""
    value = found.metrics.optional_number(name)
    return Headline(
        label=metric(name).label,
        value=shown(name, value),
        interval=share_interval(name, value, samples_of(found)),
        explanation=metric(name).explanation,
    )


def share_interval(name: str, value: float | None, samples: int) -> str:
    """Return the interval of a metric in words; nothing where it has none."""
    if value is None or samples == 0 or not metric(name).counts_samples:
        return ""
    return interval_words(wilson_interval(round(value * samples), samples))


PARTS = {"has_answer": "with an answer", "no_answer": "without an answer"}


def parts(found: Evaluation) -> tuple[Part, ...]:
    """Return how well the two kinds of questions were answered, where there are both."""
    rows = {
        name: found.metrics.row(key) for key, name in PARTS.items() if key in found.metrics.values
    }
    if not rows or not all(row.whole("samples") for row in rows.values()):
        return ()
    return tuple(
        Part(
            name=name,
            questions=format_count(row.whole("samples")),
            exact_match=percent(row.optional_number("exact_match")),
            exact_match_interval=share_interval(
                "exact_match", row.optional_number("exact_match"), row.whole("samples")
            ),
            f1=percent(row.optional_number("f1")),
        )
        for name, row in rows.items()
    )


def worst_first(row: Row) -> tuple[bool, float, str]:
    """Return what to sort classes by: F1, those without samples last."""
    f1 = row.optional_number("f1")
    return row.whole("samples") == 0, 0.0 if f1 is None else f1, row.text("class")


def worst_boxes_first(row: Row) -> tuple[bool, float, str]:
    """Return what to sort classes of boxes by: AP50, those without boxes last."""
    value = row.optional_number("ap50")
    return value is None, value or 0.0, row.text("class")


def box_row(row: Row) -> BoxRow:
    """Return one line of the table of classes of boxes."""
    return BoxRow(
        name=row.text("class"),
        boxes=format_count(row.whole("boxes")),
        ap=percent(row.optional_number("ap")),
        ap50=percent(row.optional_number("ap50")),
        recall=percent(row.optional_number("ar_100")),
    )


def class_row(row: Row) -> ClassRow:
    """Return one line of the table of classes."""
    samples, recall = row.whole("samples"), row.optional_number("recall")
    reach = wilson_interval(round(recall * samples), samples) if recall is not None else None
    return ClassRow(
        name=row.text("class"),
        samples=format_count(samples),
        precision=percent(row.optional_number("precision")),
        recall=percent(recall),
        recall_interval=f"{100 * reach.low:.0f} to {100 * reach.high:.0f}" if reach else NOTHING,
        f1=percent(row.optional_number("f1")),
    )


def matrix(
    confusion: Float[np.ndarray, "true predicted"], names: Sequence[str]
) -> tuple[tuple[Cell, ...], ...]:
    """Return the cells of the confusion matrix, coloured by the share of their true class."""
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    return tuple(
        tuple(
            Cell(
                count=int(confusion[row, column]),
                strength=strength(float(shares[row, column])),
                is_right=row == column,
                title=f"{names[row]}, predicted {names[column]}: "
                f"{int(confusion[row, column])} ({percent(float(shares[row, column]))})",
            )
            for column in range(len(names))
        )
        for row in range(len(confusion))
    )


def strength(share: float) -> float:
    """Return how strongly to colour a cell, so that a single mistake still shows."""
    return round(FAINTEST + (DENSEST - FAINTEST) * share, 3) if share else 0.0


def pairs(confusion: Float[np.ndarray, "true predicted"], names: Sequence[str]) -> tuple[Pair, ...]:
    """Return the pairs of classes most often confused, by count and then by share."""
    totals = confusion.sum(axis=1)
    wrong = [
        (int(confusion[row, column]), float(confusion[row, column] / totals[row]), row, column)
        for row, column in zip(*np.nonzero(confusion), strict=True)
        if row != column
    ]
    return tuple(
        Pair(
            label=names[row],
            predicted=names[column],
            count=count,
            of=int(totals[row]),
            share=percent(share),
        )
        for count, share, row, column in sorted(wrong, reverse=True)[:MOST_PAIRS]
    )
