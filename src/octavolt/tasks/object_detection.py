"""Object detection: boxes with a class and a score."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from octavolt.contract import Batch, Mistake, ReadyBatch
from octavolt.tasks.boxes import clipped
from octavolt.tasks.matching import SIZES, Annotated, Found, coco_hits

SURE = 0.25
"""The score from which on people are shown a box."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The annotated boxes of one picture, in pixels of the upright original."""

    boxes: Float[Tensor, "boxes 4"]
    """Corners x1, y1, x2, y2, as annotated, in float64."""
    labels: Int[Tensor, " boxes"]
    crowd: Bool[Tensor, " boxes"]
    """Around many at once: counts neither as found nor as missed, and trains nothing (COCO)."""
    difficult: Bool[Tensor, " boxes"]
    """Left out of the average precision of Pascal VOC."""
    areas: Float[Tensor, " boxes"]
    """In square pixels, of the outline where one is annotated: decides what is small or large."""


@dataclass(frozen=True, kw_only=True)
class Detections:
    """The boxes that a network found in one picture, the surest first."""

    boxes: Float[Tensor, "boxes 4"]
    scores: Float[Tensor, " boxes"]
    labels: Int[Tensor, " boxes"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What of the boxes that a network finds is kept."""

    score: float
    """The least."""
    overlap: float
    """Intersection over union above which the less sure of two boxes of a class is dropped."""
    most: int
    """Boxes of a picture."""
    classes: tuple[int, ...] | None = None
    """The only ones to keep; None keeps all."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where a picture lies in the network's input: input = original * scale + offset."""

    scale_x: float
    scale_y: float
    left: float
    """Offset in pixels of the input."""
    top: float
    height: int
    """Of the upright original."""
    width: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """All of one picture of a batch but its pixels."""

    frame: Frame
    filled: tuple[int, int]
    """Height and width that the picture fills of the input, from its top left corner on; with a
    letterbox that is all of it."""
    boxes: Float[Tensor, "boxes 4"]
    """To be learned, in pixels of the input; none in evaluation."""
    labels: Int[Tensor, " boxes"]
    truth: Truth | None = None
    """To be scored by; None in training and prediction."""
    index: int = 0
    """Of the sample in its split."""


@dataclass(frozen=True, kw_only=True)
class DetectionBatch(ReadyBatch):
    """Pictures as a detector takes them."""

    images: Float[Tensor, "batch 3 height width"]
    """RGB in 0 to 1, in memory as channels last."""
    sizes: Int[Tensor, "batch 2"]
    """`Scene.filled` of each."""
    scenes: tuple[Scene, ...]

    @property
    def weight(self) -> float:
        """Return the number of pictures."""
        return float(len(self.scenes))

    @property
    def inputs(
        self,
    ) -> tuple[Float[Tensor, "batch 3 height width"], Int[Tensor, "batch 2"]]:
        """Return the pictures, and how much of the input each fills."""
        return self.images, self.sizes

    def to(self, device: torch.device) -> "DetectionBatch":
        """Return the batch on that device; truths stay where they are."""
        return replace(
            self,
            images=self.images.to(device, non_blocking=True),
            sizes=self.sizes.to(device, non_blocking=True),
            scenes=moved(self.scenes, device),
        )


@dataclass(frozen=True, kw_only=True)
class BoxBatch(Batch):
    """Pictures and boxes as the loader gives them: bytes travel four times as fast."""

    pixels: UInt8[Tensor, "batch height width 3"]
    scenes: tuple[Scene, ...]

    @property
    def weight(self) -> float:
        """Return the number of pictures."""
        return float(len(self.scenes))

    def to(self, device: torch.device) -> DetectionBatch:
        """Return what the network takes."""
        pixels = self.pixels.to(device, non_blocking=True).permute(0, 3, 1, 2)
        return DetectionBatch(
            images=pixels.float().mul_(1 / 255),
            sizes=torch.tensor([one.filled for one in self.scenes]).reshape(-1, 2).to(device),
            scenes=moved(self.scenes, device),
        )


def moved(scenes: tuple[Scene, ...], device: torch.device) -> tuple[Scene, ...]:
    """Return the scenes with the boxes to be learned on a device, all copied at once."""
    counts = [len(one.labels) for one in scenes]
    boxes = torch.cat([one.boxes for one in scenes]).to(device).split(counts)
    labels = torch.cat([one.labels for one in scenes]).to(device).split(counts)
    return tuple(
        replace(one, boxes=own_boxes, labels=own_labels)
        for one, own_boxes, own_labels in zip(scenes, boxes, labels, strict=True)
    )


def restored(found: Detections, frame: Frame) -> Detections:
    """Return detections in pixels of the upright original, on the CPU, clipped to it."""
    offset = torch.tensor([frame.left, frame.top, frame.left, frame.top])
    scale = torch.tensor([frame.scale_x, frame.scale_y, frame.scale_x, frame.scale_y])
    boxes = (found.boxes.float().cpu() - offset) / scale
    return Detections(
        boxes=clipped(boxes, height=frame.height, width=frame.width),
        scores=found.scores.float().cpu(),
        labels=found.labels.cpu(),
    )


def present(
    found: Sequence[Detections], batch: DetectionBatch, classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the boxes of each picture in pixels of the original, the surest first."""
    return [
        {
            "boxes": [
                {
                    "label": classes[label],
                    "score": round(score, 6),
                    "box": [round(side, 2) for side in box],
                }
                for box, score, label in zip(
                    own.boxes.tolist(), own.scores.tolist(), own.labels.tolist(), strict=True
                )
            ],
            "height": scene.frame.height,
            "width": scene.frame.width,
        }
        for own, scene in (
            (restored(one, scene.frame), scene)
            for one, scene in zip(found, batch.scenes, strict=True)
        )
    ]


def mistakes(
    found: Sequence[Detections],
    batch: DetectionBatch,
    indices: Int[np.ndarray, " batch"],
    classes: Sequence[str],
) -> list[Mistake]:
    """Return the pictures in which boxes of a score of 0.25 or more are missing or too many.

    Instead of a probability stands the share of these among all that are true or found.
    """
    result = []
    for one, scene, index in zip(found, batch.scenes, indices, strict=True):
        assert scene.truth is not None, "there is nothing to compare with"
        own = sure(restored(one, scene.frame))
        right, wrong = compared(own, scene.truth)
        if wrong:
            result.append(
                Mistake(
                    probability=wrong / (wrong + right),
                    index=int(index),
                    label=in_words(scene.truth.labels[~idle(scene.truth)], classes),
                    predicted=in_words(own.labels, classes),
                    marks=own,
                )
            )
    return result


def sure(found: Detections) -> Detections:
    """Return the boxes that people are shown."""
    kept = found.scores >= SURE
    return Detections(boxes=found.boxes[kept], scores=found.scores[kept], labels=found.labels[kept])


def idle(truth: Truth) -> Bool[Tensor, " boxes"]:
    """Return which boxes count neither as found nor as missed."""
    return truth.crowd | truth.difficult


def compared(found: Detections, truth: Truth) -> tuple[int, int]:
    """Return how many boxes are found, and how many are missed or too many.

    By COCO's rule at an overlap of 0.5; those that are difficult count as little as crowds.
    """
    # Boxes of one class go together, as otherwise those of one picture do.
    order, true_order = (one.labels.argsort(stable=True) for one in (found, truth))
    crowd = idle(truth)[true_order].numpy()
    hits = coco_hits(
        Found(
            groups=found.labels[order].numpy(),
            scores=found.scores[order].double().numpy(),
            corners=found.boxes[order].double().numpy(),
        ),
        Annotated(
            groups=truth.labels[true_order].numpy(),
            corners=truth.boxes[true_order].double().numpy(),
            crowd=crowd,
            difficult=crowd,
            areas=truth.areas[true_order].double().numpy(),
        ),
    )[SIZES.index("all"), 0]
    right = int((hits == 1).sum())
    return right, int((~crowd).sum()) - right + int((hits == -1).sum())


def in_words(labels: Int[Tensor, " boxes"], classes: Sequence[str]) -> str:
    """Return how many boxes there are of each class, such as '3 RBC, 1 WBC'."""
    counts = Counter(classes[label] for label in labels.tolist())
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "no box"
