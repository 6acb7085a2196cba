"""Which token comes next: the settings, and one draw from the logits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from octavolt.errors import OctavoltError

MOST_TOKENS = 10_000_000
"""Of one text; a larger number is a slip of the finger, and its text would never end."""
LEAST_TEMPERATURE = 1e-6
"""Below it quotients of fp32 logits overflow."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn, and when a text ends. Raises `OctavoltError` with all that is wrong."""

    temperature: float = 0.8
    """The logits are divided by it; 0 always takes the likeliest token."""
    top_k: int = 50
    """Only so many of the likeliest tokens are drawn from; 0 means all."""
    top_p: float = 1.0
    """Only the fewest likeliest tokens with this much probability together are drawn from."""
    repetition_penalty: float = 1.0
    """Makes tokens of the text so far less likely; 1 leaves them alone."""
    seed: int = 0
    max_tokens: int = 256
    """New tokens of a text at most."""
    stop: tuple[str, ...] = ()
    """A text ends before the first of these."""

    def __post_init__(self) -> None:
        wrong = [
            f"{name} is {value}; it must be {limit}"
            for name, value, limit, fine in (
                (
                    "temperature",
                    self.temperature,
                    f"0 (always the likeliest token) or {LEAST_TEMPERATURE:g} or more",
                    self.temperature == 0 or LEAST_TEMPERATURE <= self.temperature < math.inf,
                ),
                ("top-k", self.top_k, "0 (all tokens) or more", self.top_k >= 0),
                ("top-p", self.top_p, "above 0 and at most 1", 0 < self.top_p <= 1),
                (
                    "repetition-penalty",
                    self.repetition_penalty,
                    "above 0; 1 is none",
                    self.repetition_penalty > 0 and math.isfinite(self.repetition_penalty),
                ),
                ("seed", self.seed, "0 or more", self.seed >= 0),
                (
                    "max-tokens",
                    self.max_tokens,
                    f"from 1 to {MOST_TOKENS:,}",
                    1 <= self.max_tokens <= MOST_TOKENS,
                ),
            )
            if not fine
        ]
        if "" in self.stop:
            wrong.append("one text to stop at is empty; it would end every text at once")
        if wrong:
            raise OctavoltError(f"These settings can't generate: {'; '.join(wrong)}.")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken, and nothing is random."""
        return self.temperature == 0


def penalized(
    logits: Float[Tensor, "rows vocabulary"],
    seen: Bool[Tensor, "rows vocabulary"],
    penalty: float,
) -> Float[Tensor, "rows vocabulary"]:
    """Return logits in which the tokens of the text so far are less likely.

    Keskar et al. 2019, section 4.1. Dividing a negative logit would make its token likelier, so
    those are multiplied, as has become usual.
    """
    if penalty == 1:
        return logits
    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def distribution(
    logits: Float[Tensor, "rows vocabulary"], settings: Sampling
) -> Float[Tensor, "rows vocabulary"]:
    """Return the probabilities of the tokens that are drawn from; those of others are 0.

    Top-k first (Fan et al. 2018), then top-p of what is left (Holtzman et al. 2020), which always
    keeps the likeliest token. Equal logits at the edge are cut wherever the count is reached.
    """
    vocabulary = logits.shape[1]
    # The likeliest becomes 0 first, so that a small temperature makes no infinity of it.
    logits = (logits - logits.amax(-1, keepdim=True)) / settings.temperature
    kept = min(settings.top_k or vocabulary, vocabulary)
    if settings.top_p == 1 and kept == vocabulary:
        return logits.softmax(-1)
    ordered, tokens = logits.topk(kept) if kept < vocabulary else logits.sort(-1, descending=True)
    chances = ordered.softmax(-1)
    if settings.top_p < 1:
        # Exactly 0 for the first, which so stays whatever top-p is.
        before = chances.cumsum(-1) - chances
        chances = torch.where(before < settings.top_p, chances, 0)
        chances = chances / chances.sum(-1, keepdim=True)
    return torch.zeros_like(logits).scatter_(1, tokens, chances)


def uniforms(seed: int, positions: Sequence[int], step: int) -> Float[Tensor, " rows"]:
    """Return a number from [0, 1) for each prompt: a function of the seed, its place and the step.

    No prompt's number depends on which others are answered beside it.
    """
    drawn = [
        np.random.Generator(np.random.SFC64([seed, position, step])).random()
        for position in positions
    ]
    return torch.tensor(drawn, dtype=torch.float64)


def drawn(
    chances: Float[Tensor, "rows vocabulary"], numbers: Float[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """Return the token of each row at whose share of the sum its number lies."""
    sums = chances.double().cumsum(-1)
    total = sums[:, -1:].contiguous()
    wanted = numbers.to(sums.device)[:, None] * total
    # To the right of equal sums, so that a token without any probability is never taken.
    found = torch.searchsorted(sums, wanted, right=True)[:, 0]
    # A number next to 1 may round up to the whole sum: the last token that has a share then.
    last = torch.searchsorted(sums, total)[:, 0]
    return torch.minimum(found, last)


def next_tokens(
    logits: Float[Tensor, "rows vocabulary"],
    seen: Bool[Tensor, "rows vocabulary"] | None,
    settings: Sampling,
    *,
    positions: Sequence[int],
    step: int,
) -> Int[Tensor, " rows"]:
    """Return the next token of each row; `seen` are the tokens of its text so far."""
    if seen is not None:
        logits = penalized(logits, seen, settings.repetition_penalty)
    if settings.greedy:
        return logits.argmax(-1)
    return drawn(distribution(logits, settings), uniforms(settings.seed, positions, step))
