"""One evaluation as the page shows it."""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from octavolt.report.files import Evaluation, Mistake
from octavolt.report.intervals import wilson_interval
from octavolt.report.plots import calibration_plot, classes_a_point, heat_map
from octavolt.report.rows import Row
from octavolt.report.words import NOTHING, interval_words, metric, percent, shown
from octavolt.units import format_count

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
    pictures: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassRow:
    """How well one class is known."""

    name: str
    pictures: str
    precision: str
    recall: str
    recall_interval: str
    f1: str


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
    """Pictures of one class that were taken for another."""

    label: str
    predicted: str
    count: int
    of: int
    share: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """A mistake as a picture."""

    name: str
    label: str
    predicted: str
    probability: str
    jpeg_base64: str
    """Empty where there is no picture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationView:
    """All that the page shows of one evaluation."""

    anchor: str
    data: str
    split: str
    headline: Headline
    others: tuple[Headline, ...]
    classes: tuple[ClassRow, ...]
    """The worst first."""
    absent: int
    """Classes without a picture in the split."""
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


def evaluation_view(found: Evaluation, number: int) -> EvaluationView:
    """Return an evaluation ready for the page."""
    confusion = np.array(found.metrics.values.get("confusion") or np.zeros((0, 0)), dtype=float)
    few = len(confusion) <= MOST_CLASSES_IN_MATRIX
    bins = found.metrics.rows("calibration_bins")
    rows = sorted(found.metrics.rows("per_class"), key=worst_first)
    return EvaluationView(
        anchor=f"evaluation-{number}",
        data=found.data,
        split=found.split,
        headline=headline(found, found.primary_metric),
        others=tuple(
            headline(found, name)
            for name, value in found.metrics.values.items()
            if name not in {found.primary_metric, "pictures"} and isinstance(value, float)
        ),
        classes=tuple(class_row(row) for row in rows),
        absent=sum(row.whole("pictures") == 0 for row in rows),
        names=found.classes,
        matrix=matrix(confusion, found.classes) if few else (),
        pairs=() if few else pairs(confusion, found.classes),
        heat_map=None if few else heat_map(confusion, f"heat-{number}"),
        classes_a_point=classes_a_point(len(confusion)),
        calibration=(
            calibration_plot(bins, f"calibration-{number}")
            if any(row.whole("pictures") for row in bins)
            else None
        ),
        calibration_error=shown(
            "calibration_error", found.metrics.optional_number("calibration_error")
        ),
        mistakes=tuple(shot(mistake) for mistake in found.mistakes),
    )


def headline(found: Evaluation, name: str) -> Headline:
    """Return a metric with its interval, where it is a share of the pictures."""
    pictures = found.metrics.whole("pictures") if "pictures" in found.metrics.values else 0
    value = found.metrics.optional_number(name)
    known = value is not None and pictures > 0 and metric(name).counts_samples
    return Headline(
        label=metric(name).label,
        value=shown(name, value),
        interval=(
            interval_words(wilson_interval(round((value or 0.0) * pictures), pictures))
            if known
            else ""
        ),
        pictures=pictures,
    )


def worst_first(row: Row) -> tuple[bool, float, str]:
    """Return what to sort classes by: F1, those without pictures last."""
    f1 = row.optional_number("f1")
    return row.whole("pictures") == 0, 0.0 if f1 is None else f1, row.text("class")


def class_row(row: Row) -> ClassRow:
    """Return one line of the table of classes."""
    pictures, recall = row.whole("pictures"), row.optional_number("recall")
    reach = wilson_interval(round(recall * pictures), pictures) if recall is not None else None
    return ClassRow(
        name=row.text("class"),
        pictures=format_count(pictures),
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


def shot(mistake: Mistake) -> Shot:
    """Return a mistake for the page; what is no base64 is left out rather than shown broken."""
    return Shot(
        name=mistake.name,
        label=mistake.label,
        predicted=mistake.predicted,
        probability=percent(mistake.probability),
        jpeg_base64=picture(mistake.jpeg_base64 or ""),
    )


def picture(jpeg_base64: str) -> str:
    """Return the base64 of a JPEG, or nothing if it isn't one."""
    text = re.sub(r"\s", "", jpeg_base64)
    try:
        return text if base64.b64decode(text, validate=True).startswith(b"\xff\xd8") else ""
    except binascii.Error:
        return ""
