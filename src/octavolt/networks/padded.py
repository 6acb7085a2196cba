"""Vocabularies padded to a multiple of 8 rows, which nobody outside sees.

Half-precision products of a V100 take tensor cores where the sizes are multiples of 8. State dicts
show the real rows alone, so that weights go to and fro unchanged. The others start at zero, and no
loss has a gradient for them, so they stay there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

MULTIPLE = 8


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Which tensors of a body have a row a token."""

    rows: int
    """The real ones."""
    names: tuple[str, ...]
    ties: Mapping[str, str]
    """Second names of such tensors, to the first one: state dicts have the first alone."""


def padded_rows(rows: int) -> int:
    """Return the rows that a network has inside."""
    return -(-rows // MULTIPLE) * MULTIPLE


def hide_padding(body: nn.Module, vocabulary: Vocabulary) -> None:
    """Set a fresh body's padded rows to zero, and keep them out of its state dicts."""
    with torch.no_grad():
        for name in vocabulary.names:
            body.get_parameter(name)[vocabulary.rows :] = 0
    body.register_state_dict_post_hook(partial(trim, vocabulary))
    body.register_load_state_dict_pre_hook(partial(pad, vocabulary))


def trim(
    vocabulary: Vocabulary, _body: nn.Module, state: dict[str, Any], prefix: str, _metadata: Any
) -> None:
    """Leave the real rows in a state dict: views, so that writing to them changes the weights."""
    for tie in vocabulary.ties:
        state.pop(prefix + tie, None)
    for name in vocabulary.names:
        state[prefix + name] = state[prefix + name][: vocabulary.rows]


def pad(
    vocabulary: Vocabulary,
    _body: nn.Module,
    state: dict[str, Any],
    prefix: str,
    _metadata: Any,
    _strict: bool,
    _missing: list[str],
    _unexpected: list[str],
    errors: list[str],
) -> None:
    """Give a state dict that is to be loaded its padded rows and second names."""
    for tie, name in vocabulary.ties.items():
        second = state.pop(prefix + tie, None)
        if second is not None:
            state.setdefault(prefix + name, second)
    for name in vocabulary.names:
        given = state.get(prefix + name)
        if given is None:
            continue
        if len(given) != vocabulary.rows:
            errors.append(f"{name} has {len(given)} rows, the vocabulary {vocabulary.rows}.")
            continue
        missing = padded_rows(vocabulary.rows) - len(given)
        state[prefix + name] = torch.cat([given, given.new_zeros(missing, *given.shape[1:])])
    for tie, name in vocabulary.ties.items():
        if prefix + name in state:
            state[prefix + tie] = state[prefix + name]


def without_padding(
    logits: Float[Tensor, "*batch padded"], rows: int
) -> Float[Tensor, "*batch padded"]:
    """Return logits by which no padded row is ever likely; changes them in place.

    No gradient goes through what is filled in: with a probability of 0 it would be 0 anyway.
    """
    if logits.shape[-1] > rows:
        with torch.no_grad():
            logits[..., rows:] = float("-inf")
    return logits
