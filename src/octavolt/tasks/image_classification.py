"""Image classification: one label a picture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn.functional import log_softmax

from octavolt.contract import Batch, Mistake, Preprocessing, ReadyBatch, Score, Task

CALIBRATION_BINS = 15
"""As in Guo et al. 2017, section 2."""
UNIT = 2**30
"""Sums of shares and losses are kept as whole numbers of 1/UNIT, so that adding is exact."""


@dataclass(frozen=True, kw_only=True)
class ImageBatch(ReadyBatch):
    """Pictures as the network takes them."""

    images: Float[Tensor, "batch 3 height width"]
    """Normalized, in memory as channels last."""
    targets: Float[Tensor, "batch classes"]
    """Share of each class; the rows sum to 1 or, with class weights, to the weight."""
    labels: Int[Tensor, " batch"]

    @property
    def weight(self) -> float:
        """Return the number of pictures."""
        return float(len(self.labels))

    @property
    def inputs(self) -> tuple[Float[Tensor, "batch 3 height width"]]:
        """Return the pictures."""
        return (self.images,)

    def to(self, device: torch.device) -> "ImageBatch":
        """Return the batch on that device."""
        return replace(
            self,
            images=self.images.to(device, non_blocking=True),
            targets=self.targets.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
        )


@dataclass(frozen=True, kw_only=True)
class PictureBatch(Batch):
    """Pictures as the loader gives them: bytes, that travel to the device four times as fast."""

    pixels: UInt8[Tensor, "batch height width 3"]
    labels: Int[Tensor, " batch"]
    class_count: int
    preprocessing: Preprocessing
    label_smoothing: float = 0.0
    """Share of each target that is spread evenly over all classes: Szegedy et al. 2016."""
    own_share: Float[Tensor, " batch"] | None = None
    """With mixup, the share of the picture itself; the rest is its partner's.

    Partners are the places 2k and 2k + 1, so a pair never depends on how a batch is split.
    """
    class_weights: Float[Tensor, " classes"] | None = None

    @property
    def weight(self) -> float:
        """Return the number of pictures."""
        return float(len(self.labels))

    def to(self, device: torch.device) -> ImageBatch:
        """Return what the network takes: normalized, mixed and softened on the device."""
        labels = self.labels.to(device, non_blocking=True)
        pixels = self.pixels.to(device, non_blocking=True).permute(0, 3, 1, 2)
        scale = torch.tensor(self.preprocessing.deviation, device=device).mul(255).reciprocal()
        shift = torch.tensor(self.preprocessing.mean, device=device).mul(255).mul(scale)
        # A permuted view of packed pixels already is channels last, and arithmetic keeps that.
        images = pixels.float().mul_(scale[:, None, None]).sub_(shift[:, None, None])
        targets = torch.full(
            (len(labels), self.class_count), self.label_smoothing / self.class_count, device=device
        )
        targets[torch.arange(len(labels), device=device), labels] += 1 - self.label_smoothing
        if self.class_weights is not None:
            targets *= self.class_weights.to(device)[labels, None]
        if self.own_share is not None:
            # The last picture of an epoch of an odd number has none, and a share of 1.
            partner = (torch.arange(len(labels), device=device) ^ 1).clamp(max=len(labels) - 1)
            share = self.own_share.to(device)[:, None]
            targets = share * targets + (1 - share) * targets[partner]
            share = share[:, :, None, None]
            images = share * images + (1 - share) * images[partner]
        return ImageBatch(images=images, targets=targets, labels=labels)


class ClassificationScore(Score):
    """Confusion matrix, top-5 hits, confidence bins and loss, as whole numbers."""

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        count = len(self.classes)
        self.confusion = torch.zeros(count, count, dtype=torch.int64)
        """Rows are true classes, columns predicted ones."""
        self.bins = torch.zeros(3, CALIBRATION_BINS, dtype=torch.int64)
        """Pictures, hits, and confidence in units of 1/UNIT, by confidence."""
        self.totals = torch.zeros(2, dtype=torch.int64)
        """Hits among the five likeliest; negative log-likelihood in nats, in units of 1/UNIT."""

    def update(self, logits: Float[Tensor, "batch classes"], batch: ImageBatch, /) -> None:
        """Count one batch."""
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
        self.totals[1] += (nats.clamp(max=1e4) * UNIT).long().sum()

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
        """Return the metrics; shares are from 0 to 1.

        Macro averages are over the classes that have pictures; one that is never predicted counts
        with a precision of 0.
        The calibration error is the expected one of Guo et al. 2017, equation 3.
        """
        pictures = int(self.confusion.sum())
        if pictures == 0:
            return {"pictures": 0}
        hits = self.confusion.diagonal().double()
        true, predicted = self.confusion.sum(1).double(), self.confusion.sum(0).double()
        precision = hits / predicted.clamp(min=1)
        recall = hits / true.clamp(min=1)
        f1 = 2 * hits / (true + predicted).clamp(min=1)
        present = true > 0
        held, right, confident = self.bins.double()
        gap = (right - confident / UNIT).abs().sum() / pictures
        return {
            "pictures": pictures,
            "top1_fraction": float(hits.sum() / pictures),
            "top5_fraction": int(self.totals[0]) / pictures,
            "macro_precision": float(precision[present].mean()),
            "macro_recall": float(recall[present].mean()),
            "macro_f1": float(f1[present].mean()),
            "calibration_error": float(gap),
            "negative_log_likelihood_nats": int(self.totals[1]) / UNIT / pictures,
            "per_class": [
                {
                    "class": name,
                    "pictures": int(true[row]),
                    "precision": float(precision[row]) if predicted[row] > 0 else None,
                    "recall": float(recall[row]) if present[row] else None,
                    "f1": float(f1[row]) if present[row] or predicted[row] > 0 else None,
                }
                for row, name in enumerate(self.classes)
            ],
            "confusion": self.confusion.tolist(),
            "calibration_bins": [
                {
                    "pictures": int(count),
                    "accuracy": float(hit / count) if count else None,
                    "confidence": float(sure / UNIT / count) if count else None,
                }
                for count, hit, sure in zip(held, right, confident, strict=True)
            ],
        }


def present(logits: Float[Tensor, "batch classes"], classes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the five likeliest classes of each picture with their probabilities."""
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
        for row, shares in zip(indices, values, strict=True)
    ]


def mistakes(
    logits: Float[Tensor, "batch classes"], batch: ImageBatch, indices: Int[np.ndarray, " batch"]
) -> list[Mistake]:
    """Return the pictures whose likeliest class is not theirs."""
    shares, predicted = (one.cpu() for one in logits.float().softmax(dim=1).max(dim=1))
    truth = batch.labels.cpu()
    return [
        Mistake(
            probability=float(shares[row]),
            index=int(indices[row]),
            label=int(truth[row]),
            predicted=int(predicted[row]),
        )
        for row in (predicted != truth).nonzero()[:, 0].tolist()
    ]


TASK = Task(
    name="image-classification",
    new_score=ClassificationScore,
    present=present,
    mistakes=mistakes,
    primary_metric="top1_fraction",
    tie_metric="negative_log_likelihood_nats",
)
