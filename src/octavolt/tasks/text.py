"""Texts as networks take them: tokens, padded to one length."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from octavolt.contract import ReadyBatch

NOT_ASKED = -100
"""The target of a token that is not predicted; torch's own choice for `ignore_index`."""

Moved = TypeVar("Moved", bound=ReadyBatch)


def moved(batch: Moved, device: torch.device) -> Moved:
    """Return a batch with all its tensors on that device."""
    tensors: dict[str, Any] = {
        field.name: value.to(device, non_blocking=True)
        for field in fields(batch)  # type: ignore[arg-type]
        if isinstance(value := getattr(batch, field.name), Tensor)
    }
    return replace(batch, **tensors)  # type: ignore[type-var]


@dataclass(frozen=True, kw_only=True)
class TextBatch(ReadyBatch):
    """Texts or pairs of them, for a network that sees each from both its sides."""

    ids: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]
    """Where real tokens are."""
    kinds: Int[Tensor, "batch length"]
    """1 for the tokens of the second text of a pair, 0 elsewhere."""

    @property
    def inputs(
        self,
    ) -> tuple[
        Int[Tensor, "batch length"], Bool[Tensor, "batch length"], Int[Tensor, "batch length"]
    ]:
        """Return tokens, where they are real, and their kinds."""
        return self.ids, self.mask, self.kinds
