"""torchvision's classifiers behind the contract."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import log_softmax

from octavolt.contract import Network
from octavolt.tasks.image_classification import ImageBatch


def soft_cross_entropy(
    logits: Float[Tensor, "batch classes"], targets: Float[Tensor, "batch classes"]
) -> Float[Tensor, ""]:
    """Return the mean over the batch of the targets' negative log-likelihood in nats, in fp32."""
    with torch.autocast(logits.device.type, enabled=False):
        return -(targets * log_softmax(logits.float(), dim=1)).sum(1).mean()


class Classifier(Network):
    """A body that maps pictures to logits."""

    def __init__(self, body: nn.Module, *, head: Sequence[str]) -> None:
        super().__init__()
        self.body = body
        self.head_prefixes = tuple(head)

    def forward(
        self, images: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch classes"]:
        """Return logits."""
        logits: Tensor = self.body(images)
        return logits

    def losses(self, batch: ImageBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the cross-entropy."""
        return {"classification": soft_cross_entropy(self.forward(batch.images), batch.targets)}

    def decode(self, outputs: Float[Tensor, "batch classes"], /) -> Float[Tensor, "batch classes"]:
        """Return the logits in fp32."""
        return outputs.float()

    def head(self) -> Sequence[str]:
        """Return the prefixes of the last layer."""
        return self.head_prefixes
