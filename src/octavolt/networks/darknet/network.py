"""A Darknet detector behind the calls that all verbs use."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from octavolt.contract import Network, Shape
from octavolt.networks.darknet.cfg import Config, with_anchors, with_classes, write_cfg
from octavolt.networks.darknet.layers import Body, Convolutional, Head
from octavolt.networks.darknet.losses import gathered, head_losses
from octavolt.tasks.boxes import non_maximum_suppression, without_autocast
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits

EVALUATION = Limits(score=0.001, overlap=0.45, most=100)
"""The overlap of Darknet; the rest as COCO's evaluation asks for all that may be a box."""
PRIOR = 0.01
"""Objectness of fresh heads, so that thousands of empty cells don't drown the boxes at first: Lin
et al. 2017, section 4.1."""
MOST_CANDIDATES = 4096
"""Of a picture's boxes so many at most, the surest, are compared with one another."""
WIDEST = 8.0
"""The logarithm of how many times an anchor a box may be as wide: no exponential overflows."""


class DarknetDetector(Network):
    """The heads' maps as boxes, the losses, and what is kept of them."""

    body: Body

    def __init__(self, config: Config, *, box_loss: str | None = None) -> None:
        super().__init__()
        self.config = config
        self.body = Body(config)
        self.limits = EVALUATION
        self.box_loss = box_loss or "squared"
        for place in config.heads():
            quieten(self.body.layers[place - 1], self.body.layers[place])

    def forward(
        self,
        images: Float[Tensor, "batch 3 height width"],
        sizes: Int[Tensor, "batch 2"] | None = None,
    ) -> Float[Tensor, "batch boxes values"]:
        """Return all boxes in fp32: corners in pixels, then logits of objectness and classes."""
        del sizes  # the grey around a picture holds no boxes
        outputs = []
        for head, features in zip(self.body.heads(), self.body(images), strict=True):
            raw = separated(head, features)
            boxes = boxes_of(head, raw, images.shape[2:])
            # Cells in rows, the anchors of a cell together: the order of Darknet.
            both = torch.cat([boxes, raw[..., 4:]], dim=-1).permute(0, 2, 3, 1, 4)
            outputs.append(both.flatten(1, 3))
        return torch.cat(outputs, dim=1)

    def losses(self, batch: DetectionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the losses, summed over a picture's boxes, as means over the pictures."""
        maps = self.body(batch.images)
        truths = gathered([one.boxes for one in batch.scenes], [one.labels for one in batch.scenes])
        size = (batch.images.shape[2], batch.images.shape[3])
        totals: dict[str, Tensor] = {}
        with without_autocast(batch.images.device):
            for head, features in zip(self.body.heads(), maps, strict=True):
                raw = separated(head, features)
                boxes = boxes_of(head, raw, size)
                parts = head_losses(
                    head, raw, boxes, truths, input_size=size, box_loss=self.box_loss
                )
                for name, loss in parts.items():
                    totals[name] = totals.get(name, loss.new_zeros(())) + loss
        return {name: loss / len(batch.scenes) for name, loss in totals.items()}

    def decode(self, outputs: Float[Tensor, "batch boxes values"], /) -> list[Detections]:
        """Return the boxes of each picture in pixels of the input, the surest first."""
        # Where the objectness alone is below the limit, so is its product with any class.
        floor = logit(self.limits.score)
        return [kept(one[one[:, 4] > floor], self.limits) for one in outputs]

    def head(self) -> Sequence[str]:
        """Return the convolutions before the heads."""
        return [f"layers.{place - 1}.convolution." for place in self.config.heads()]

    def files(self, classes: Sequence[str], /) -> Mapping[str, Any]:
        """Return the cfg, with which Darknet and OpenCV 4 open the weights, and the names."""
        return {"network.cfg": write_cfg(self.config), "network.names": "\n".join([*classes, ""])}


def build_detector(config: Config, shape: Shape) -> DarknetDetector:
    """Return the detector of a cfg, for other classes and anchors if the shape says so."""
    config = with_classes(config, shape.classes)
    if shape.anchors:
        config = with_anchors(config, shape.anchors)
    return DarknetDetector(config, box_loss=shape.box_loss)


def quieten(before: nn.Module, head: nn.Module) -> None:
    """Start a fresh head from the belief that hardly any cell holds a box."""
    assert isinstance(before, Convolutional)
    assert isinstance(head, Head)
    if before.convolution.bias is not None:
        with torch.no_grad():
            values = before.convolution.bias.view(len(head.anchors), -1)
            values[:, 4] = logit(PRIOR)
            values[:, 5:] = logit(min(0.5, 1 / head.classes))


def logit(share: float) -> float:
    """Return the logit of a share; minus infinity for 0."""
    return math.log(share / (1 - share)) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)


def separated(
    head: Head, features: Float[Tensor, "batch channels rows columns"]
) -> Float[Tensor, "batch anchors rows columns values"]:
    """Return a head's map with the values of each anchor apart, in fp32."""
    batch, _, rows, columns = features.shape
    apart = features.float().reshape(batch, len(head.anchors), -1, rows, columns)
    return apart.permute(0, 1, 3, 4, 2)


def boxes_of(
    head: Head,
    raw: Float[Tensor, "batch anchors rows columns values"],
    input_size: Sequence[int],
) -> Float[Tensor, "batch anchors rows columns 4"]:
    """Return the corners of all boxes in pixels of the input: the paper's section 2.1.

    `scale_x_y` lets centers reach the edges of their cells.
    """
    rows, columns = raw.shape[2:4]
    height, width = input_size
    device = raw.device
    step = torch.tensor([width / columns, height / rows], device=device)
    down, across = torch.meshgrid(
        torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij"
    )
    cells = torch.stack([across, down], dim=-1).float()
    margin = (head.scale_x_y - 1) / 2
    centers = (raw[..., :2].sigmoid() * head.scale_x_y - margin + cells) * step
    anchors = torch.tensor(head.anchors, device=device)[:, None, None]
    halves = raw[..., 2:4].clamp(max=WIDEST).exp() * anchors / 2
    return torch.cat([centers - halves, centers + halves], dim=-1)


def kept(boxes: Float[Tensor, "boxes values"], limits: Limits) -> Detections:
    """Return what the limits leave of one picture's boxes, the surest first."""
    scores = boxes[:, 4:5].sigmoid() * boxes[:, 5:].sigmoid()
    if limits.classes is not None:
        wanted = torch.zeros_like(scores[0] if len(scores) else boxes.new_zeros(boxes.shape[1] - 5))
        wanted[[*limits.classes]] = 1
        scores = scores * wanted
    rows, labels = (scores > limits.score).nonzero(as_tuple=True)
    values = scores[rows, labels]
    if len(values) > MOST_CANDIDATES:
        values, best = values.topk(MOST_CANDIDATES)
        rows, labels = rows[best], labels[best]
    corners = boxes[rows, :4]
    keep = non_maximum_suppression(corners, values, labels, overlap=limits.overlap)[: limits.most]
    return Detections(boxes=corners[keep], scores=values[keep], labels=labels[keep])
