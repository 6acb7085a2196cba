"""Arithmetic of boxes, always in fp32 or better: corners x1, y1, x2, y2 in pixels.

A box from 10 to 20 is 10 pixels wide, as in COCO.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torchvision.ops import batched_nms


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """Return a block whose arithmetic keeps its precision; fake tensors have none to keep."""
    if device.type == "meta":
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def exact(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes 4"]:
    """Return boxes of fp16 or bf16, whose steps are whole pixels from 2,048 or 256 on, as fp32."""
    return boxes if boxes.dtype in {torch.float32, torch.float64} else boxes.float()


def area(boxes: Float[Tensor, "*boxes 4"]) -> Float[Tensor, "*boxes"]:
    """Return the areas in square pixels; boxes whose corners are swapped have none."""
    boxes = exact(boxes)
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(dim=-1)


def clipped(boxes: Float[Tensor, "*boxes 4"], *, height: float, width: float) -> Tensor:
    """Return what of the boxes lies inside a picture."""
    limits = torch.tensor([width, height, width, height], dtype=torch.float32, device=boxes.device)
    return exact(boxes).clamp(min=0).minimum(limits)


def intersection_over_union(
    ones: Float[Tensor, "ones 4"], others: Float[Tensor, "others 4"]
) -> Float[Tensor, "ones others"]:
    """Return the Jaccard index of each with each, 0 where neither has an area."""
    ones, others = exact(ones), exact(others)
    first = torch.maximum(ones[:, None, :2], others[None, :, :2])
    last = torch.minimum(ones[:, None, 2:], others[None, :, 2:])
    shared = (last - first).clamp(min=0).prod(dim=-1)
    union = area(ones)[:, None] + area(others)[None, :] - shared
    return shared / union.clamp(min=torch.finfo(union.dtype).tiny)


def non_maximum_suppression(
    boxes: Float[Tensor, "boxes 4"],
    scores: Float[Tensor, " boxes"],
    labels: Int[Tensor, " boxes"],
    *,
    overlap: float,
) -> Int[Tensor, " kept"]:
    """Return which boxes to keep, best first: within a class none overlaps a better one by more."""
    kept: Tensor = batched_nms(exact(boxes).float(), scores.float(), labels, overlap)
    return kept
