"""Classification of anything: one label a sample."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import log_softmax

from octavolt.contract import Mistake, Score

CALIBRATION_BINS = 15
"""As in Guo et al. 2017, section 2."""
UNIT = 2**30
"""Sums of shares and losses are kept as whole numbers of 1/UNIT, so that adding is exact."""
MOST_NATS = 1e4
"""What one answer adds to a loss at most, so that no answer of probability 0 makes it infinite."""


def in_units(amounts: Float[Tensor, " amounts"]) -> Int[Tensor, " amounts"]:
    """Return amounts as whole numbers of 1/UNIT, of nats `MOST_NATS` at most."""
    return (amounts.double().clamp(max=MOST_NATS) * UNIT).round().long()


class ClassificationScore(Score):
    """Confusion matrix, top-5 hits, confidence bins and loss, as whole numbers."""

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        count = len(self.classes)
        self.confusion = torch.zeros(count, count, dtype=torch.int64)
        """Rows are true classes, columns predicted ones."""
        self.bins = torch.zeros(3, CALIBRATION_BINS, dtype=torch.int64)
        """Samples, hits, and confidence in units of 1/UNIT, by confidence."""
        self.totals = torch.zeros(2, dtype=torch.int64)
        """Hits among the five likeliest; negative log-likelihood in nats, in units of 1/UNIT."""

    def update(self, logits: Float[Tensor, "batch classes"], batch: Any, /) -> None:
        """Count one batch, which has `labels`."""
        logs = log_softmax(logits.double(), dim=1).cpu()
        labels = batch.labels.cpu()
        count = len(self.classes)
        confidence, predicted = logs.exp().max(dim=1)
        self.confusion += torch.bincount(
            labels * count + predicted, minlength=count * count
        ).reshape(count, count)
        slots = (confidence * CALIBRATION_BINS).long().clamp_(max=CALIBRATION_BINS - 1)
        hits = (predicted == labels).long()
        for row, amount in enumerate((torch.ones_like(hits), hits, (confidence * UNIT).long())):
            self.bins[row].index_add_(0, slots, amount)
        likeliest = logs.topk(min(5, count)).indices
        nats = -logs.gather(1, labels[:, None])
        self.totals[0] += (likeliest == labels[:, None]).sum()
        self.totals[1] += (nats.clamp(max=MOST_NATS) * UNIT).long().sum()

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted."""
        return torch.cat([self.confusion.flatten(), self.bins.flatten(), self.totals])

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""
        parts = sums.split([self.confusion.numel(), self.bins.numel(), self.totals.numel()])
        self.confusion = parts[0].reshape_as(self.confusion).clone()
        self.bins = parts[1].reshape_as(self.bins).clone()
        self.totals = parts[2].clone()

    def result(self) -> dict[str, Any]:
        """Return the metrics; shares are from 0 to 1, the correlation from -1 to 1.

        Macro averages are over the classes that have samples; one that is never predicted counts
        with a precision of 0.
        The calibration error is the expected one of Guo et al. 2017, equation 3.
        """
        samples = int(self.confusion.sum())
        if samples == 0:
            return {"samples": 0}
        hits = self.confusion.diagonal().double()
        true, predicted = self.confusion.sum(1).double(), self.confusion.sum(0).double()
        precision = hits / predicted.clamp(min=1)
        recall = hits / true.clamp(min=1)
        f1 = 2 * hits / (true + predicted).clamp(min=1)
        present = true > 0
        held, right, confident = self.bins.double()
        gap = (right - confident / UNIT).abs().sum() / samples
        return {
            "samples": samples,
            "top1_fraction": float(hits.sum() / samples),
            "top5_fraction": int(self.totals[0]) / samples,
            "macro_precision": float(precision[present].mean()),
            "macro_recall": float(recall[present].mean()),
            "macro_f1": float(f1[present].mean()),
            "matthews_correlation": matthews_correlation(self.confusion),
            "calibration_error": float(gap),
            "negative_log_likelihood_nats": int(self.totals[1]) / UNIT / samples,
            "per_class": [
                {
                    "class": name,
                    "samples": int(true[row]),
                    "precision": float(precision[row]) if predicted[row] > 0 else None,
                    "recall": float(recall[row]) if present[row] else None,
                    "f1": float(f1[row]) if present[row] or predicted[row] > 0 else None,
                }
                for row, name in enumerate(self.classes)
            ],
            "confusion": self.confusion.tolist(),
            "calibration_bins": [
                {
                    "samples": int(count),
                    "accuracy": float(hit / count) if count else None,
                    "confidence": float(sure / UNIT / count) if count else None,
                }
                for count, hit, sure in zip(held, right, confident, strict=True)
            ],
        }


def matthews_correlation(confusion: Int[Tensor, "classes classes"]) -> float:
    """Return the correlation of true and predicted classes: Gorodkin 2004, equation 8.

    It is 0 where all samples are of one class or all are predicted to be.
    """
    samples = int(confusion.sum())
    # Python's whole numbers: products of counts outgrow those of 64 bits.
    true, predicted = confusion.sum(1).tolist(), confusion.sum(0).tolist()
    together = sum(one * other for one, other in zip(true, predicted, strict=True))
    covariance = int(confusion.trace()) * samples - together
    spread = samples**2 - sum(one**2 for one in true)
    spread_predicted = samples**2 - sum(one**2 for one in predicted)
    if spread == 0 or spread_predicted == 0:
        return 0.0
    return float(covariance / (spread * spread_predicted) ** 0.5)


def present(
    logits: Float[Tensor, "batch classes"], _batch: Any, classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the five likeliest classes of each sample with their probabilities."""
    probabilities = logits.float().softmax(dim=1)
    values, indices = probabilities.topk(min(5, len(classes)), dim=1)
    return [
        {
            "label": classes[int(row[0])],
            "probability": float(shares[0]),
            "top": [
                {"label": classes[int(index)], "probability": float(share)}
                for index, share in zip(row, shares, strict=True)
            ],
        }
        for row, shares in zip(indices.cpu(), values.cpu(), strict=True)
    ]


def mistakes(
    logits: Float[Tensor, "batch classes"],
    batch: Any,
    indices: Int[np.ndarray, " batch"],
    classes: Sequence[str],
) -> list[Mistake]:
    """Return the samples whose likeliest class is not theirs."""
    shares, predicted = (one.cpu() for one in logits.float().softmax(dim=1).max(dim=1))
    truth = batch.labels.cpu()
    return [
        Mistake(
            probability=float(shares[row]),
            index=int(indices[row]),
            label=classes[int(truth[row])],
            predicted=classes[int(predicted[row])],
        )
        for row in (predicted != truth).nonzero()[:, 0].tolist()
    ]
