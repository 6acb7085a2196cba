"""Metrics and numbers as people read them."""

import math
from dataclasses import dataclass

from octavolt.report.intervals import Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """How a metric is named and shown."""

    label: str
    is_fraction: bool = True
    counts_samples: bool = False
    """Whether it is a share of the samples, so that the Wilson interval holds."""
    explanation: str = ""
    """What a reader must know; up to its first semicolon also where there is little room."""


LESS = "less is better"
METRICS = {
    "ap50": Metric(
        label="AP50", explanation="average precision at an overlap of 0.5, mean of classes"
    ),
    "ap": Metric(
        label="AP", explanation="mean over overlaps 0.5 to 0.95; by COCO's method, mean of classes"
    ),
    "ap75": Metric(label="AP75"),
    "ap_small": Metric(label="AP, small", explanation="boxes below 32 x 32 pixels"),
    "ap_medium": Metric(label="AP, medium", explanation="boxes of 32 x 32 to 96 x 96 pixels"),
    "ap_large": Metric(label="AP, large", explanation="boxes above 96 x 96 pixels"),
    "ar_1": Metric(label="Recall, 1 box", explanation="of a picture and class; COCO's mean"),
    "ar_10": Metric(label="Recall, 10 boxes"),
    "ar_100": Metric(label="Recall, 100 boxes"),
    "ar_small": Metric(label="Recall, small"),
    "ar_medium": Metric(label="Recall, medium"),
    "ar_large": Metric(label="Recall, large"),
    "voc_ap50": Metric(label="AP50 by Pascal VOC", explanation="the area under the curve"),
    "missed_fraction": Metric(label="Boxes missed", explanation=LESS),
    "top1_fraction": Metric(label="Top-1 accuracy", counts_samples=True),
    "top5_fraction": Metric(label="Top-5 accuracy", counts_samples=True),
    "exact_match": Metric(label="Exact match", counts_samples=True),
    "exact_match_fraction": Metric(label="All labels right", counts_samples=True),
    # Of tokens, whose neighbors in the same text are hit and missed together.
    "accuracy_fraction": Metric(label="Hidden tokens found"),
    "f1": Metric(label="F1 over words"),
    "macro_precision": Metric(label="Precision, mean of classes"),
    "macro_recall": Metric(label="Recall, mean of classes"),
    "macro_f1": Metric(label="F1, mean of classes"),
    "micro_f1": Metric(label="F1 of all decisions"),
    "matthews_correlation": Metric(label="Matthews correlation", is_fraction=False),
    "calibration_error": Metric(label="Calibration error", explanation=LESS),
    "negative_log_likelihood_nats": Metric(
        label="Loss in nats", is_fraction=False, explanation=LESS
    ),
    "nats_per_token": Metric(label="Loss in nats a token", is_fraction=False, explanation=LESS),
    "bits_per_byte": Metric(label="Bits a byte", is_fraction=False, explanation=LESS),
    "perplexity": Metric(
        label="Perplexity",
        is_fraction=False,
        explanation=f"{LESS}; the exponential of the loss a token, so it depends on the tokenizer",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Nouns:
    """What things of a task are called, in the singular."""

    sample: str
    """What is evaluated."""
    unit: str
    """What the speed of training counts: the task's own unit, told here without torch."""


NOUNS = {
    "image-classification": Nouns(sample="picture", unit="picture"),
    "object-detection": Nouns(sample="picture", unit="picture"),
    "text-classification": Nouns(sample="text", unit="text"),
    "multi-label-text-classification": Nouns(sample="text", unit="text"),
    "question-answering": Nouns(sample="question", unit="text"),
    "masked-language-modeling": Nouns(sample="text", unit="token"),
    "causal-language-modeling": Nouns(sample="text", unit="token"),
    "dialogue": Nouns(sample="conversation", unit="token"),
}


def nouns(task: object) -> Nouns:
    """Return the nouns of a task; one unknown here has samples."""
    return NOUNS.get(str(task), Nouns(sample="sample", unit="sample"))


NOTHING = "–"  # noqa: RUF001 - an en dash, as tables print it


def metric(name: str) -> Metric:
    """Return how a metric is shown; one of a task unknown here keeps its own name."""
    plain = name.removesuffix("_fraction").replace("_", " ")
    fallback = Metric(label=plain[:1].upper() + plain[1:], is_fraction=name.endswith("_fraction"))
    return METRICS.get(name, fallback)


def shown(name: str, value: float | None) -> str:
    """Return the value of a metric with its unit."""
    return percent(value) if metric(name).is_fraction else decimal(value)


def percent(fraction: float | None, digits: int = 1) -> str:
    """Return a share in per cent: '92.6 %'."""
    if fraction is None or not math.isfinite(fraction):
        return NOTHING
    return f"{100 * fraction:.{digits}f}\N{NO-BREAK SPACE}%"


def decimal(value: float | None) -> str:
    """Return a number with three or more digits that count: '0.0123', '1.23', '1,234'."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 1 or value == 0:
        return f"{value:.{2 if size < 10 else 1}f}"
    return f"{value:.3g}"


def interval_words(interval: Interval) -> str:
    """Return an interval of shares: '91.2 to 93.8 %'."""
    return f"{100 * interval.low:.1f} to {percent(interval.high)}"
