"""Image classification: one label a picture."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from octavolt.contract import Batch, Preprocessing, ReadyBatch, Task
from octavolt.tasks.classification import ClassificationScore, mistakes, present


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


TASK = Task(
    name="image-classification",
    modality="pictures",
    sample="picture",
    unit="picture",
    new_score=ClassificationScore,
    present=present,
    mistakes=mistakes,
    primary_metric="top1_fraction",
    tie_metric="negative_log_likelihood_nats",
)
