"""What is asked of the distribution over a vocabulary, without copies of it in double."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import log_softmax

from octavolt.contract import Mistake
from octavolt.tasks.classification import in_units
from octavolt.tasks.text import NOT_ASKED

SLICE_ELEMENTS = 2**24
"""Logits that are turned into log-probabilities at once: 128 MiB of them in double."""


def nats_and_hits(
    logits: Float[Tensor, "batch length vocabulary"], targets: Int[Tensor, "batch length"]
) -> tuple[int, int, int]:
    """Return the loss of the asked tokens in nats of 1/UNIT, how many were hit, and how many are.

    A slice of positions at a time is held in double, since a batch of long texts has logits of
    gigabytes.
    """
    flat, wanted = logits.flatten(0, 1), targets.flatten()
    places = (wanted != NOT_ASKED).nonzero()[:, 0]
    nats, hits = 0, 0
    for some in places.split(max(1, SLICE_ELEMENTS // logits.shape[2])):
        logs = log_softmax(flat[some].double(), dim=1)
        right = wanted[some]
        nats += int(in_units(-logs.gather(1, right[:, None])[:, 0]).sum())
        hits += int((logs.argmax(1) == right).sum())
    return nats, hits, len(places)


def likeliest(logits: Float[Tensor, " vocabulary"], tokens: Sequence[str]) -> list[dict[str, Any]]:
    """Return the five likeliest tokens with their probabilities, the likeliest first."""
    probabilities = torch.softmax(logits.float(), dim=0)
    values, indices = probabilities.topk(min(5, len(probabilities)))
    return [
        {"label": tokens[index] if index < len(tokens) else str(index), "probability": share}
        for index, share in zip(indices.tolist(), values.tolist(), strict=True)
    ]


def no_mistakes(
    _logits: Any, _batch: Any, _indices: Int[np.ndarray, " batch"], _classes: Sequence[str]
) -> list[Mistake]:
    """Return none: that another token was right is no mistake of the text as a whole."""
    return []
