"""Masked language modeling: the tokens that a text hides."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from octavolt.contract import Score, Task
from octavolt.tasks.classification import UNIT
from octavolt.tasks.text import NOT_ASKED, TextBatch, moved
from octavolt.tasks.vocabulary import likeliest, nats_and_hits, no_mistakes


@dataclass(frozen=True, kw_only=True)
class MaskedBatch(TextBatch):
    """Texts of which some tokens are hidden."""

    targets: Int[Tensor, "batch length"]
    """The hidden tokens where they stood, elsewhere `NOT_ASKED`.

    In prediction nobody knows them: any token stands where one is asked.
    """

    @property
    def weight(self) -> float:
        """Return the number of hidden tokens."""
        return float((self.targets != NOT_ASKED).sum())

    def to(self, device: torch.device) -> "MaskedBatch":
        """Return the batch on that device."""
        return moved(self, device)


class MaskedScore(Score):
    """Texts, hidden tokens, those that were found, and the loss."""

    def __init__(self, _classes: Sequence[str]) -> None:
        self.totals = torch.zeros(4, dtype=torch.int64)
        """Texts, tokens, hits, and nats in units of 1/UNIT."""

    def update(
        self, logits: Float[Tensor, "batch length vocabulary"], batch: MaskedBatch, /
    ) -> None:
        """Count one batch."""
        nats, hits, tokens = nats_and_hits(logits, batch.targets)
        self.totals += torch.tensor([len(batch.ids), tokens, hits, nats])

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted."""
        return self.totals.clone()

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""
        self.totals = sums.clone()

    def result(self) -> dict[str, Any]:
        """Return the metrics; perplexity is the exponential of the nats a token."""
        texts, tokens, hits, nats = self.totals.tolist()
        if tokens == 0:
            return {"samples": texts, "tokens": 0}
        nats_per_token = nats / UNIT / tokens
        return {
            "samples": texts,
            "tokens": tokens,
            "accuracy_fraction": hits / tokens,
            "nats_per_token": nats_per_token,
            "perplexity": math.exp(min(nats_per_token, 700.0)),
        }


def present(
    logits: Float[Tensor, "batch length vocabulary"], batch: MaskedBatch, classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return for each text its hidden positions, each with the five likeliest tokens.

    `classes` are the vocabulary's tokens; without them, tokens are told by their number.
    """
    return [
        {
            "hidden": [
                {"position": position, "top": likeliest(logits[row, position], classes)}
                for position in (asked != NOT_ASKED).nonzero()[:, 0].tolist()
            ]
        }
        for row, asked in enumerate(batch.targets)
    ]


TASK = Task(
    name="masked-language-modeling",
    modality="text",
    sample="window",
    unit="token",
    new_score=MaskedScore,
    present=present,
    mistakes=no_mistakes,
    primary_metric="perplexity",
    tie_metric="nats_per_token",
    less_is_better=True,
)
