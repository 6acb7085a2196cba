"""torchvision's detectors behind the contract: what Faster R-CNN and SSD share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from octavolt.contract import Network
from octavolt.tasks.boxes import non_maximum_suppression
from octavolt.tasks.object_detection import Detections, Limits, Scene

Maps = list[Tensor]
"""Of features, from fine to coarse."""
Found = tuple[Tensor, Tensor]
"""Boxes in pixels of the input and probabilities of the classes, both in fp32."""


class TorchvisionDetector(Network):
    """A detector of torchvision without its resizing, which the data pipeline does.

    torchvision's class 0 is the background; outside of this module classes are counted without it.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        body: nn.Module,
        *,
        head: Sequence[str],
        limits: Limits,
        mean: tuple[float, float, float],
        deviation: tuple[float, float, float],
    ) -> None:
        super().__init__()
        self.body: Any = body
        self.limits = limits
        self.head_prefixes = tuple(head)
        for name, levels in (("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, torch.tensor(levels).reshape(3, 1, 1), persistent=False)

    def normalized(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> Float[Tensor, "batch 3 height width"]:
        """Return the pictures as the body takes them: zeros where a picture doesn't reach."""
        normal = (images - self.mean) / self.deviation
        height, width = images.shape[2:]
        rows = torch.arange(height, device=images.device) < sizes[:, :1]
        columns = torch.arange(width, device=images.device) < sizes[:, 1:]
        # Not a product: zeros of padding are exact, and what lies there may be anything.
        return torch.where((rows[:, :, None] & columns[:, None])[:, None], normal, 0.0)

    def head(self) -> Sequence[str]:
        """Return the prefixes of what depends on the classes."""
        return self.head_prefixes

    def decode(self, outputs: Found, /) -> list[Detections]:
        """Return the boxes that `limits` leaves of each picture, the surest first."""
        boxes, scores = outputs
        return [self.picked(*one) for one in zip(boxes, scores, strict=True)]

    @abstractmethod
    def picked(self, boxes: Tensor, scores: Tensor) -> Detections:
        """Return the boxes that `limits` leaves of one picture."""


def clipped_to(sizes: Int[Tensor, "batch 2"], boxes: Float[Tensor, "batch *boxes 4"]) -> Tensor:
    """Return what of the boxes of each picture lies inside it."""
    limits = sizes.flip(1).repeat(1, 2).to(boxes.dtype)
    return boxes.clamp(min=0).minimum(limits.reshape(-1, *[1] * (boxes.ndim - 2), 4))


def targets_of(scenes: Sequence[Scene]) -> list[dict[str, Tensor]]:
    """Return what is to be learned as torchvision takes it: labels from 1, boxes in fp32."""
    return [{"boxes": one.boxes.float(), "labels": one.labels.long() + 1} for one in scenes]


def best_of(
    boxes: Float[Tensor, "boxes 4"],
    scores: Float[Tensor, " boxes"],
    labels: Int[Tensor, " boxes"],
    limits: Limits,
) -> Detections:
    """Return what is left of candidates after suppression, the surest first."""
    if limits.classes is not None:
        wanted = torch.isin(labels, torch.tensor(limits.classes, device=labels.device).long())
        boxes, scores, labels = boxes[wanted], scores[wanted], labels[wanted]
    kept = non_maximum_suppression(boxes, scores, labels, overlap=limits.overlap)[: limits.most]
    return Detections(boxes=boxes[kept], scores=scores[kept], labels=labels[kept])
