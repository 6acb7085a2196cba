"""torchvision's detectors behind the calls that all verbs use.

Their own resizing is left out, since the data are resized before; the rest is theirs, called in
their order, with all arithmetic of boxes in fp32.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torchvision.models.detection.faster_rcnn import FasterRCNN
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.roi_heads import fastrcnn_loss
from torchvision.models.detection.rpn import concat_box_prediction_layers
from torchvision.models.detection.ssd import SSD
from torchvision.ops import box_iou, clip_boxes_to_image, remove_small_boxes

from octavolt.contract import Network
from octavolt.tasks.boxes import non_maximum_suppression, without_autocast
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits

SMALLEST_SIDE = 1e-2
"""Pixels: Faster R-CNN drops boxes below, as torchvision does."""


class TorchvisionDetector(Network):
    """What both kinds have in common: normalization, and labels that begin after the background."""

    body: Any

    def __init__(self, body: nn.Module, head: Sequence[str], limits: Limits) -> None:
        super().__init__()
        self.body = body
        self._head = tuple(head)
        self.limits = limits

    def head(self) -> Sequence[str]:
        """Return the prefixes of what depends on the classes."""
        return self._head

    def normalized(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> Float[Tensor, "batch 3 height width"]:
        """Return pictures as the weights know them, and nothing where none is."""
        transform = self.body.transform
        mean = torch.tensor(transform.image_mean, device=images.device)[:, None, None]
        deviation = torch.tensor(transform.image_std, device=images.device)[:, None, None]
        result = (images - mean) / deviation
        height, width = images.shape[2:]
        down = torch.arange(height, device=images.device) < sizes[:, :1]
        across = torch.arange(width, device=images.device) < sizes[:, 1:]
        return result * (down[:, None, :, None] & across[:, None, None, :])

    @abstractmethod
    def decode(self, outputs: Tensor, /) -> list[Detections]:
        """Return the boxes of each picture in pixels of the input, the surest first."""

    def kept(
        self,
        boxes: Float[Tensor, "boxes 4"],
        scores: Float[Tensor, " boxes"],
        labels: Int[Tensor, " boxes"],
    ) -> Detections:
        """Return what the limits leave of one picture's boxes, the surest first."""
        limits = self.limits
        wanted = scores > limits.score
        if limits.classes is not None:
            wanted &= torch.isin(labels, torch.tensor(limits.classes, device=labels.device))
        boxes, scores, labels = boxes[wanted], scores[wanted], labels[wanted]
        keep = non_maximum_suppression(boxes, scores, labels, overlap=limits.overlap)
        keep = keep[: limits.most]
        return Detections(boxes=boxes[keep], scores=scores[keep], labels=labels[keep])


def targets_of(batch: DetectionBatch) -> list[dict[str, Tensor]]:
    """Return the boxes to be learned as torchvision takes them: label 0 is the background."""
    return [{"boxes": one.boxes.float(), "labels": one.labels + 1} for one in batch.scenes]


class SsdDetector(TorchvisionDetector):
    """SSD and SSDLite."""

    body: SSD

    def __init__(self, body: SSD, head: Sequence[str], limits: Limits) -> None:
        super().__init__(body, head, limits)
        self._anchors: dict[tuple[Any, ...], Tensor] = {}

    def forward(
        self,
        images: Float[Tensor, "batch 3 height width"],
        sizes: Int[Tensor, "batch 2"] | None = None,
    ) -> Float[Tensor, "batch anchors values"]:
        """Return all boxes in fp32: corners in pixels, then logits, the background's first."""
        sizes = filled(images) if sizes is None else sizes
        offsets, logits, features = self.heads(images, sizes)
        anchors = self.anchors(images, features)
        with without_autocast(images.device):
            batch, count = logits.shape[:2]
            decoded = self.body.box_coder.decode_single(
                offsets.reshape(-1, 4), anchors.repeat(batch, 1)
            )
            size = (images.shape[2], images.shape[3])
            boxes = clip_boxes_to_image(decoded, size).reshape(batch, count, 4)
            return torch.cat([boxes, logits], dim=-1)

    def heads(
        self, images: Tensor, sizes: Tensor
    ) -> tuple[Float[Tensor, "batch anchors 4"], Float[Tensor, "batch anchors logits"], Any]:
        """Return offsets and logits in fp32, and the feature maps."""
        features = [*self.body.backbone(self.normalized(images, sizes)).values()]
        outputs = self.body.head(features)
        return outputs["bbox_regression"].float(), outputs["cls_logits"].float(), features

    def anchors(self, images: Tensor, features: Sequence[Tensor]) -> Float[Tensor, "anchors 4"]:
        """Return the default boxes in pixels: the same for all pictures of a size."""
        size = (images.shape[2], images.shape[3])
        key = (size, images.device, *(one.shape[2:] for one in features))
        if key not in self._anchors:
            with without_autocast(images.device):
                pictures = ImageList(images[:1], [size])
                maps = [one.float() for one in features]
                self._anchors[key] = self.body.anchor_generator(pictures, maps)[0]
        return self._anchors[key]

    def losses(self, batch: DetectionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the losses as means over the boxes that are learned in the batch."""
        offsets, logits, features = self.heads(batch.images, batch.sizes)
        anchors = self.anchors(batch.images, features)
        with without_autocast(batch.images.device):
            targets = targets_of(batch)
            matched = [
                self.body.proposal_matcher(box_iou(one["boxes"], anchors))
                if len(one["boxes"])
                else torch.full((len(anchors),), -1, dtype=torch.int64, device=anchors.device)
                for one in targets
            ]
            outputs = {"bbox_regression": offsets, "cls_logits": logits}
            found = self.body.compute_loss(targets, outputs, [anchors] * len(targets), matched)
        return {"box": found["bbox_regression"], "class": found["classification"]}

    def decode(self, outputs: Float[Tensor, "batch anchors values"], /) -> list[Detections]:
        """Return the boxes of each picture in pixels of the input, the surest first."""
        return [self.one_decoded(one) for one in outputs]

    def one_decoded(self, boxes: Float[Tensor, "anchors values"]) -> Detections:
        """Return one picture's boxes; of each class its surest candidates alone are compared."""
        scores = boxes[:, 4:].softmax(dim=-1)[:, 1:]
        most = min(self.body.topk_candidates, len(scores))
        best, rows = scores.topk(most, dim=0)
        labels = torch.arange(scores.shape[1], device=scores.device).expand_as(rows)
        # Class after class, the order of torchvision, which decides between equal scores.
        rows, best, labels = (one.T.reshape(-1) for one in (rows, best, labels))
        return self.kept(boxes[rows, :4], best, labels)


class FasterRcnnDetector(TorchvisionDetector):
    """Faster R-CNN with a pyramid of features."""

    body: FasterRCNN

    def forward(
        self,
        images: Float[Tensor, "batch 3 height width"],
        sizes: Int[Tensor, "batch 2"] | None = None,
    ) -> Float[Tensor, "batch proposals values"]:
        """Return the boxes of all proposals in fp32.

        A row is the four corners in pixels for each class, then the logits, the background's first.
        There are always as many proposals as are kept at most; those that are lacking are
        background for sure.
        """
        sizes = filled(images) if sizes is None else sizes
        features, pictures = self.features(images, sizes)
        proposals, _ = self.proposals(pictures, features, None)
        logits, offsets = self.classified(features, proposals, pictures)
        with without_autocast(images.device):
            boxes = self.body.roi_heads.box_coder.decode(offsets, proposals)
            counts = [len(one) for one in proposals]
            most = self.body.rpn.post_nms_top_n()
            rows = [
                padded(clip_boxes_to_image(own, size), own_logits, most)
                for own, own_logits, size in zip(
                    boxes.split(counts), logits.split(counts), pictures.image_sizes, strict=True
                )
            ]
            return torch.stack(rows)

    def features(self, images: Tensor, sizes: Tensor) -> tuple[dict[str, Tensor], ImageList]:
        """Return the maps of the pyramid, and the pictures with what they fill."""
        inputs = self.normalized(images, sizes)
        maps: dict[str, Tensor] = self.body.backbone(inputs)
        filled_sizes = [(int(height), int(width)) for height, width in sizes.tolist()]
        return maps, ImageList(inputs, filled_sizes)

    def proposals(
        self,
        pictures: ImageList,
        features: dict[str, Tensor],
        targets: list[dict[str, Tensor]] | None,
    ) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return each picture's proposals, and with targets the losses of what proposes."""
        network = self.body.rpn
        maps = [*features.values()]
        objectness, offsets = network.head(maps)
        with without_autocast(pictures.tensors.device):
            maps = [one.float() for one in maps]
            anchors = network.anchor_generator(pictures, maps)
            counts = [one[0].numel() for one in objectness]
            flat, flat_offsets = concat_box_prediction_layers(
                [one.float() for one in objectness], [one.float() for one in offsets]
            )
            boxes = network.box_coder.decode(flat_offsets.detach(), anchors)
            boxes = boxes.reshape(len(anchors), -1, 4)
            found, _ = network.filter_proposals(boxes, flat, pictures.image_sizes, counts)
            if targets is None:
                return found, {}
            labels, matched = network.assign_targets_to_anchors(anchors, targets)
            wanted = network.box_coder.encode(matched, anchors)
            is_object, position = network.compute_loss(flat, flat_offsets, labels, wanted)
            return found, {"objectness": is_object, "proposal": position}

    def classified(
        self, features: dict[str, Tensor], proposals: list[Tensor], pictures: ImageList
    ) -> tuple[Float[Tensor, "proposals logits"], Float[Tensor, "proposals offsets"]]:
        """Return logits and offsets of all pictures' proposals, end to end, in fp32."""
        heads = self.body.roi_heads
        with without_autocast(pictures.tensors.device):
            exact = {name: one.float() for name, one in features.items()}
            pooled = heads.box_roi_pool(exact, proposals, pictures.image_sizes)
        logits, offsets = heads.box_predictor(heads.box_head(pooled))
        return logits.float(), offsets.float()

    def losses(self, batch: DetectionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the losses, means over sampled anchors and proposals, as torchvision samples."""
        targets = targets_of(batch)
        features, pictures = self.features(batch.images, batch.sizes)
        proposals, losses = self.proposals(pictures, features, targets)
        device = batch.images.device
        with without_autocast(device):
            proposals, _, labels, wanted = self.body.roi_heads.select_training_samples(
                proposals, targets
            )
        logits, offsets = self.classified(features, proposals, pictures)
        with without_autocast(device):
            kind, box = fastrcnn_loss(logits, offsets, labels, wanted)
        return losses | {"class": kind, "box": box}

    def decode(self, outputs: Float[Tensor, "batch proposals values"], /) -> list[Detections]:
        """Return the boxes of each picture in pixels of the input, the surest first."""
        return [self.one_decoded(one) for one in outputs]

    def one_decoded(self, rows: Float[Tensor, "proposals values"]) -> Detections:
        """Return one picture's boxes, each class's own."""
        kinds = rows.shape[1] // 5
        boxes = rows[:, 4 * 1 : 4 * kinds].reshape(-1, 4)
        scores = rows[:, 4 * kinds :].softmax(dim=-1)[:, 1:]
        labels = torch.arange(kinds - 1, device=rows.device).expand_as(scores).reshape(-1)
        scores = scores.reshape(-1)
        large = remove_small_boxes(boxes, SMALLEST_SIDE)
        return self.kept(boxes[large], scores[large], labels[large])


def filled(images: Tensor) -> Int[Tensor, "batch 2"]:
    """Return the sizes of pictures that fill the input."""
    return torch.tensor([images.shape[2:]] * len(images), device=images.device)


def padded(
    boxes: Float[Tensor, "proposals kinds 4"], logits: Float[Tensor, "proposals kinds"], most: int
) -> Float[Tensor, "most values"]:
    """Return rows of boxes and logits; what is lacking to `most` is background for sure."""
    rows = torch.cat([boxes.flatten(1), logits], dim=1)
    lacking = logits.new_zeros(most - len(rows), rows.shape[1])
    lacking[:, -logits.shape[1] + 1 :] = -torch.inf
    return torch.cat([rows, lacking])
