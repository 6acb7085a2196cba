"""What YOLOv3 minimizes: Redmon and Farhadi 2018, section 2. All in fp32."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torchvision.ops import complete_box_iou_loss, generalized_box_iou_loss

from octavolt.networks.darknet.layers import Head

OVERLAP_LOSSES = {"giou": generalized_box_iou_loss, "ciou": complete_box_iou_loss}


@dataclass(frozen=True, kw_only=True)
class Truths:
    """The boxes of a batch, end to end."""

    pictures: Int[Tensor, " truths"]
    corners: Float[Tensor, "truths 4"]
    """In pixels of the input."""
    labels: Int[Tensor, " truths"]

    @property
    def sides(self) -> Float[Tensor, "truths 2"]:
        """Return widths and heights."""
        return self.corners[:, 2:] - self.corners[:, :2]

    @property
    def centers(self) -> Float[Tensor, "truths 2"]:
        """Return the centers."""
        return (self.corners[:, 2:] + self.corners[:, :2]) / 2


def gathered(boxes: Sequence[Tensor], labels: Sequence[Tensor]) -> Truths:
    """Return the boxes of several pictures end to end."""
    counts = torch.tensor([len(one) for one in labels])
    device = boxes[0].device
    return Truths(
        pictures=torch.repeat_interleave(counts).to(device),
        corners=torch.cat([*boxes]).float(),
        labels=torch.cat([*labels]),
    )


def shape_overlap(
    sides: Float[Tensor, "truths 2"], anchors: Float[Tensor, "anchors 2"]
) -> Float[Tensor, "truths anchors"]:
    """Return the intersection over union of boxes and anchors laid on one corner."""
    shared = torch.minimum(sides[:, None], anchors[None]).prod(dim=-1)
    union = sides.prod(dim=-1)[:, None] + anchors.prod(dim=-1)[None] - shared
    return shared / union.clamp(min=1e-9)


def best_overlap(
    boxes: Float[Tensor, "batch boxes 4"], truths: Truths
) -> Float[Tensor, "batch boxes"]:
    """Return each predicted box's largest intersection over union with a true box."""
    best = boxes.new_zeros(boxes.shape[:2])
    areas = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)
    for picture in range(len(boxes)):
        corners = truths.corners[truths.pictures == picture]
        if not len(corners):
            continue
        first = torch.maximum(boxes[picture, :, None, :2], corners[None, :, :2])
        last = torch.minimum(boxes[picture, :, None, 2:], corners[None, :, 2:])
        shared = (last - first).clamp(min=0).prod(dim=-1)
        own = (corners[:, 2:] - corners[:, :2]).prod(dim=-1)
        union = areas[picture, :, None] + own[None] - shared
        best[picture] = (shared / union.clamp(min=1e-9)).amax(dim=1)
    return best


def head_losses(
    head: Head,
    raw: Float[Tensor, "batch anchors rows columns values"],
    boxes: Float[Tensor, "batch anchors rows columns 4"],
    truths: Truths,
    *,
    input_size: tuple[int, int],
    box_loss: str,
) -> dict[str, Float[Tensor, ""]]:
    """Return the losses of one head, summed over the batch.

    A true box is learned by the anchor whose shape is nearest among those of all heads, in the cell
    of its center. A predicted box that overlaps any true one by more than the ignore threshold is
    not told that it holds nothing. With 'squared', x and y go through a sigmoid and its
    cross-entropy, whose gradient is the difference to the truth, as in Darknet; widths and heights
    are squared errors of logarithms; small boxes weigh up to twice as much.
    """
    batch, _, rows, columns, _ = raw.shape
    height, width = input_size
    anchors = raw.new_tensor(head.all_anchors)
    best = shape_overlap(truths.sides, anchors).argmax(dim=1)
    own = raw.new_tensor(head.mask, dtype=torch.int64)
    slots = (best[:, None] == own[None]).nonzero()
    which, anchor = slots[:, 0], slots[:, 1]
    step = raw.new_tensor([width / columns, height / rows])
    places = truths.centers[which] / step
    limits = raw.new_tensor([columns - 1, rows - 1]).long()
    cells = places.long().clamp(min=0).minimum(limits)
    column, row = cells[:, 0], cells[:, 1]
    at = (truths.pictures[which], anchor, row, column)

    with torch.no_grad():
        overlaps = best_overlap(boxes.detach().reshape(batch, -1, 4), truths)
        told = (overlaps <= head.ignore_threshold).reshape(raw.shape[:4]).float()
        holds = torch.zeros_like(told)
        told[at] = 1.0
        holds[at] = 1.0
    nothing_or_something = cross_entropy(raw[..., 4], holds, reduction="none") * told

    values, corners = raw[at], truths.corners[which]
    kinds = torch.zeros_like(values[:, 5:])
    kinds[torch.arange(len(kinds), device=kinds.device), truths.labels[which]] = 1.0
    sides = corners[:, 2:] - corners[:, :2]
    weight = 2.0 - sides.prod(dim=-1) / (height * width)
    if box_loss == "squared":
        margin = (head.scale_x_y - 1) / 2
        target = ((places - cells + margin) / head.scale_x_y).clamp(0, 1)
        centers = cross_entropy(values[:, :2], target, reduction="none").sum(dim=-1)
        wanted = (sides / anchors[own[anchor]]).clamp(min=1e-6).log()
        shapes = 0.5 * (values[:, 2:4] - wanted).square().sum(dim=-1)
        box = (weight * (centers + shapes)).sum()
    else:
        box = (weight * OVERLAP_LOSSES[box_loss](boxes[at], corners, reduction="none")).sum()
    return {
        "box": box,
        "objectness": nothing_or_something.sum(),
        "class": cross_entropy(values[:, 5:], kinds, reduction="sum"),
    }
