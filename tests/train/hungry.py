"""The tiny network on a rank whose memory holds two samples."""

import os
from dataclasses import replace

import torch
from torch import Tensor

from octavolt.contract import Shape
from octavolt.networks.classifier import Classifier
from octavolt.tasks.image_classification import ImageBatch
from tests.train import tiny


class Hungry(Classifier):
    """Runs out of memory with more than two samples."""

    def losses(self, batch: ImageBatch, /) -> dict[str, Tensor]:
        """Return the cross-entropy, after the norms have already seen the batch."""
        losses = Classifier.losses(self, batch)
        hungry = os.environ.get("RANK", "0") == os.environ["HUNGRY_RANK"]
        if hungry and self.training and len(batch.labels) > 2:
            raise torch.OutOfMemoryError("made by a test")
        return losses


def build(shape: Shape) -> Hungry:
    """Return the tiny network."""
    network = tiny.ENTRY.build(shape)
    return Hungry(network.body, head=network.head())


ENTRY = replace(tiny.ENTRY, name="hungry", build=build)
