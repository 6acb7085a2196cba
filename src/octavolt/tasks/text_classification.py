"""Text classification: one label a text or pair of texts, or several labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from octavolt.contract import Mistake, Score, Task
from octavolt.tasks.classification import UNIT, ClassificationScore, in_units, mistakes, present
from octavolt.tasks.text import TextBatch, moved

THRESHOLD = 0.5
"""The probability from which on a text has a label, where it may have several."""
NO_LABELS = "none"
"""How people read that a text has no label."""


@dataclass(frozen=True, kw_only=True)
class LabelledTextBatch(TextBatch):
    """Texts with what is to be said of them."""

    targets: Float[Tensor, "batch classes"]
    """Share of each class, whose rows sum to 1 or to the weight; with several labels 0 or 1."""
    labels: Int[Tensor, " batch"]
    """The one label of each text; not read where a text has several."""

    @property
    def weight(self) -> float:
        """Return the number of texts."""
        return float(len(self.labels))

    def to(self, device: torch.device) -> "LabelledTextBatch":
        """Return the batch on that device."""
        return moved(self, device)


class MultiLabelScore(Score):
    """What is right and wrong of each label, texts that are right in all, and the loss."""

    def __init__(self, classes: Sequence[str]) -> None:
        self.classes = tuple(classes)
        self.counts = torch.zeros(3, len(self.classes), dtype=torch.int64)
        """Of each label: hits, texts that have it, texts that are said to have it."""
        self.totals = torch.zeros(3, dtype=torch.int64)
        """Texts, those right in all labels, and nats a label in units of 1/UNIT."""

    def update(self, logits: Float[Tensor, "batch classes"], batch: LabelledTextBatch, /) -> None:
        """Count one batch."""
        truth, said = has_labels(batch.targets).cpu(), has_labels(logits.float().sigmoid()).cpu()
        self.counts += torch.stack([(truth & said).sum(0), truth.sum(0), said.sum(0)])
        nats = binary_cross_entropy_with_logits(
            logits.double(), batch.targets.double(), reduction="none"
        ).mean(1)
        self.totals += torch.stack(
            [torch.tensor(len(truth)), (truth == said).all(1).sum(), in_units(nats.cpu()).sum()]
        )

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted."""
        return torch.cat([self.counts.flatten(), self.totals])

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""
        counts, totals = sums.split([self.counts.numel(), self.totals.numel()])
        self.counts, self.totals = counts.reshape_as(self.counts).clone(), totals.clone()

    def result(self) -> dict[str, Any]:
        """Return the metrics, shares from 0 to 1: a text has a label from `THRESHOLD` on.

        The macro average is over the labels that some text has; micro F1 counts all decisions
        together: Lewis et al. 2004, section 5.3.
        """
        samples, exact, nats = self.totals.tolist()
        if samples == 0:
            return {"samples": 0}
        hits, true, said = self.counts.double()
        f1 = 2 * hits / (true + said).clamp(min=1)
        present = true > 0
        return {
            "samples": samples,
            "micro_f1": float(2 * hits.sum() / (true.sum() + said.sum()).clamp(min=1)),
            "macro_f1": float(f1[present].mean()) if present.any() else 0.0,
            "exact_match_fraction": exact / samples,
            "negative_log_likelihood_nats": nats / UNIT / samples,
            "per_class": [
                {
                    "class": name,
                    "samples": int(true[row]),
                    "precision": float(hits[row] / said[row]) if said[row] > 0 else None,
                    "recall": float(hits[row] / true[row]) if present[row] else None,
                    "f1": float(f1[row]) if present[row] or said[row] > 0 else None,
                }
                for row, name in enumerate(self.classes)
            ],
        }


def has_labels(
    shares: Float[Tensor, "batch classes"],
) -> Bool[Tensor, "batch classes"]:
    """Return which labels each text has."""
    return shares >= THRESHOLD


def present_several(
    logits: Float[Tensor, "batch classes"], _batch: Any, classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the labels of each text, and the five likeliest with their probabilities."""
    probabilities = logits.float().sigmoid().cpu()
    values, indices = probabilities.topk(min(5, len(classes)), dim=1)
    return [
        {
            "labels": [classes[index] for index in said.nonzero()[:, 0].tolist()],
            "top": [
                {"label": classes[int(index)], "probability": float(share)}
                for index, share in zip(row, shares, strict=True)
            ],
        }
        for said, row, shares in zip(has_labels(probabilities), indices, values, strict=True)
    ]


def mistakes_of_several(
    logits: Float[Tensor, "batch classes"],
    batch: LabelledTextBatch,
    indices: Int[np.ndarray, " batch"],
    classes: Sequence[str],
) -> list[Mistake]:
    """Return the texts of which some label is wrong, as sure as the surest wrong one is."""
    probabilities = logits.float().sigmoid().cpu()
    truth, said = has_labels(batch.targets).cpu(), has_labels(probabilities)
    sureness = torch.where(said, probabilities, 1 - probabilities)
    wrong = truth != said
    return [
        Mistake(
            probability=float(sureness[row][wrong[row]].max()),
            index=int(indices[row]),
            label=listed(truth[row], classes),
            predicted=listed(said[row], classes),
        )
        for row in wrong.any(1).nonzero()[:, 0].tolist()
    ]


def listed(has: Bool[Tensor, " classes"], classes: Sequence[str]) -> str:
    """Return the labels of a text as people read them."""
    return ", ".join(classes[index] for index in has.nonzero()[:, 0].tolist()) or NO_LABELS


TASK = Task(
    name="text-classification",
    modality="text",
    sample="text",
    unit="text",
    new_score=ClassificationScore,
    present=present,
    mistakes=mistakes,
    primary_metric="top1_fraction",
    tie_metric="negative_log_likelihood_nats",
)

MULTI_LABEL_TASK = Task(
    name="multi-label-text-classification",
    modality="text",
    sample="text",
    unit="text",
    new_score=MultiLabelScore,
    present=present_several,
    mistakes=mistakes_of_several,
    primary_metric="micro_f1",
    tie_metric="negative_log_likelihood_nats",
)
