"""Anchors of YOLO, fitted to the boxes of a data set."""

import numpy as np
from jaxtyping import Float

ROUNDS = 300


def overlaps(
    sides: Float[np.ndarray, "boxes 2"], anchors: Float[np.ndarray, "anchors 2"]
) -> Float[np.ndarray, "boxes anchors"]:
    """Return the intersection over union of boxes and anchors laid on one corner."""
    shared = np.minimum(sides[:, None], anchors[None]).prod(axis=2)
    union = sides.prod(axis=1)[:, None] + anchors.prod(axis=1)[None] - shared
    return np.asarray(shared / union)


def fit_anchors(
    sides: Float[np.ndarray, "boxes 2"], count: int, *, seed: int
) -> tuple[tuple[tuple[float, float], ...], float, float]:
    """Return anchors from small to large, their mean best overlap, and the share above 0.5.

    K-means with 1 - intersection over union as the distance: Redmon and Farhadi 2017, section 2.
    The first are drawn far from one another, as in Arthur and Vassilvitskii 2007.
    """
    sides = np.asarray(sides, np.float64)
    random = np.random.Generator(np.random.SFC64([seed]))
    anchors = sides[random.integers(len(sides))][None]
    while len(anchors) < count:
        far = (1 - overlaps(sides, anchors).max(axis=1)) ** 2
        share = far / far.sum() if far.sum() else np.full(len(sides), 1 / len(sides))
        anchors = np.concatenate([anchors, sides[random.choice(len(sides), p=share)][None]])
    nearest = None
    for _ in range(ROUNDS):
        now = overlaps(sides, anchors).argmax(axis=1)
        if nearest is not None and (now == nearest).all():
            break
        nearest = now
        anchors = np.stack(
            [
                sides[nearest == place].mean(axis=0) if (nearest == place).any() else one
                for place, one in enumerate(anchors)
            ]
        )
    anchors = anchors[np.argsort(anchors.prod(axis=1))]
    best = overlaps(sides, anchors).max(axis=1)
    rounded = tuple((round(float(one), 1), round(float(other), 1)) for one, other in anchors)
    return rounded, float(best.mean()), float((best > 0.5).mean())
