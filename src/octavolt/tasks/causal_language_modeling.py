"""Causal language modeling: each next token of a text, or of the answers in a dialogue."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from octavolt.contract import ReadyBatch, Score, Task
from octavolt.tasks.classification import UNIT
from octavolt.tasks.text import NOT_ASKED, moved
from octavolt.tasks.vocabulary import likeliest, nats_and_hits, no_mistakes


@dataclass(frozen=True, kw_only=True)
class CausalBatch(ReadyBatch):
    """Texts or windows of them, padded behind to one length."""

    ids: Int[Tensor, "batch length"]
    targets: Int[Tensor, "batch length"]
    """The token after each, or `NOT_ASKED`: behind the end, and where a dialogue's question is."""
    bytes: int = 0
    """Of the asked tokens' text in UTF-8."""

    @property
    def weight(self) -> float:
        """Return the number of tokens that are asked."""
        return float((self.targets != NOT_ASKED).sum())

    @property
    def inputs(self) -> tuple[Int[Tensor, "batch length"]]:
        """Return the tokens."""
        return (self.ids,)

    def to(self, device: torch.device) -> "CausalBatch":
        """Return the batch on that device."""
        return moved(self, device)


class CausalScore(Score):
    """Windows, tokens that were asked, their bytes, and the loss."""

    def __init__(self, _classes: Sequence[str]) -> None:
        self.totals = torch.zeros(4, dtype=torch.int64)
        """Windows, tokens, bytes, and nats in units of 1/UNIT."""

    def update(
        self, logits: Float[Tensor, "batch length vocabulary"], batch: CausalBatch, /
    ) -> None:
        """Count one batch."""
        nats, _, tokens = nats_and_hits(logits, batch.targets)
        self.totals += torch.tensor([len(batch.ids), tokens, batch.bytes, nats])

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted."""
        return self.totals.clone()

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""
        self.totals = sums.clone()

    def result(self) -> dict[str, Any]:
        """Return the metrics.

        Perplexity is the exponential of the nats a token, and so depends on the tokenizer; bits a
        byte of the text in UTF-8 don't.
        """
        windows, tokens, byte_count, nats = self.totals.tolist()
        if tokens == 0:
            return {"samples": windows, "tokens": 0, "bytes": byte_count}
        nats_per_token = nats / UNIT / tokens
        return {
            "samples": windows,
            "tokens": tokens,
            "bytes": byte_count,
            "nats_per_token": nats_per_token,
            "perplexity": math.exp(min(nats_per_token, 700.0)),
            "bits_per_byte": nats / UNIT / math.log(2) / byte_count if byte_count else None,
        }


def present(
    logits: Float[Tensor, "batch length vocabulary"], batch: CausalBatch, classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the five likeliest tokens after each text.

    The last position that asks is the text's end; where none asks, it is the last of all.
    `classes` are the vocabulary's tokens; without them, tokens are told by their number.
    """
    return [
        {"top": likeliest(logits[row, int(places[-1]) if len(places) else -1], classes)}
        for row, places in enumerate((one != NOT_ASKED).nonzero()[:, 0] for one in batch.targets)
    ]


TASK = Task(
    name="causal-language-modeling",
    modality="text",
    sample="window",
    unit="token",
    new_score=CausalScore,
    present=present,
    mistakes=no_mistakes,
    primary_metric="perplexity",
    tie_metric="nats_per_token",
    less_is_better=True,
)

DIALOGUE_TASK = replace(TASK, name="dialogue", sample="conversation")
