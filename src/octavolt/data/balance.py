"""Classes weighed by their rarity."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from octavolt.contract import Samples


def class_weights(samples: Samples, class_count: int) -> Float[Tensor, " classes"]:
    """Return a weight a class, inverse to its samples, whose mean over the samples is 1."""
    counts = np.bincount(samples.labels, minlength=class_count)
    return torch.tensor(len(samples) / (class_count * np.maximum(counts, 1)), dtype=torch.float32)
