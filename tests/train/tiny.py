"""A network that trains in a moment, and data for it: what tests of whole runs use."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from octavolt.contract import Network, Preprocessing
from octavolt.networks import mobilenet_v2
from octavolt.tasks.image_classification import ImageBatch
from octavolt.train import Request

ENTRY = replace(
    mobilenet_v2.ENTRY,
    name="tiny",
    build=mobilenet_v2.build_tiny,
    preprocessing=Preprocessing(image_size=32),
)
"""MobileNetV2 with dropout and batch norm, two stages deep."""


def write_pictures(path: Path, *, train: int = 44, val: int = 9, seed: int = 0) -> Path:
    """Write pictures of three classes in MedMNIST's layout; a class is a colour with noise."""
    random = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    for split, count in (("train", train), ("val", val), ("test", val)):
        labels = np.arange(count) % 3
        pictures = random.integers(0, 120, (count, 16, 16, 3), dtype=np.uint8)
        pictures[np.arange(count), :, :, labels] += 100
        arrays |= {f"{split}_images": pictures, f"{split}_labels": labels[:, None]}
    np.savez(path, allow_pickle=False, **arrays)
    return path


def request(data: Path, output: Path, **changes: Any) -> Request:
    """Return a request for a run of a second: 3 epochs of 6 updates, the last a short one."""
    recipe = {"epochs": 3, "batch_size": 8, "ema_decay": 0.9} | changes.pop("changes", {})
    return Request(
        **(
            {
                "network": "tests.train.tiny",
                "data": str(data),
                "output": output,
                "changes": recipe,
                "precision": "fp32",
                "log_steps": 1,
                "threads": 1,
            }
            | changes
        )
    )


class Linear(Network):
    """A network without batch norm, so that a batch is the sum of its parts."""

    body: nn.Linear

    def __init__(self, most_samples: int = 10**9) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(0)
        self.body = nn.Linear(12, 3)
        with torch.no_grad():
            self.body.weight.copy_(torch.randn(3, 12, generator=random))
            self.body.bias.zero_()
        self.most_samples = most_samples

    def losses(self, batch: ImageBatch) -> dict[str, Tensor]:
        """Return the cross-entropy; more samples than `most_samples` don't fit into memory."""
        if len(batch.labels) > self.most_samples:
            raise torch.OutOfMemoryError("made by a test")
        logits = self.body(batch.images.flatten(1))
        return {"classification": nn.functional.cross_entropy(logits, batch.labels)}

    def decode(self, outputs: Tensor) -> Tensor:
        """Return the logits."""
        return outputs

    def head(self) -> tuple[str, ...]:
        """Return that no part is a head."""
        return ()
