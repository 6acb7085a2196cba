"""Faster R-CNN: Ren et al. 2015, over the feature pyramid of Lin et al. 2017."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad
from torchvision.models import MobileNet_V3_Large_Weights, ResNet50_Weights, mobilenet_v3_large
from torchvision.models.detection import (
    FasterRCNN as Body,
)
from torchvision.models.detection import (
    FasterRCNN_MobileNet_V3_Large_FPN_Weights,
    FasterRCNN_ResNet50_FPN_Weights,
)
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import (
    BackboneWithFPN,
    mobilenet_backbone,
    resnet_fpn_backbone,
)
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.roi_heads import fastrcnn_loss
from torchvision.models.detection.rpn import concat_box_prediction_layers
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.ops import FrozenBatchNorm2d

from octavolt.contract import BoxPreprocessing, Entry, Published, Recipe, Shape, Target
from octavolt.networks import coco
from octavolt.networks.torchvision_detector import (
    Maps,
    TorchvisionDetector,
    best_of,
    clipped_to,
    targets_of,
)
from octavolt.tasks.average_precision import TASK
from octavolt.tasks.boxes import without_autocast
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits

PROPOSALS = 1000
"""Of a picture in the outputs; torchvision's number for testing."""
LEAST_SIDE = 0.01
"""In pixels: narrower or lower boxes are nothing (torchvision's roi_heads.py)."""
FROZEN_EPSILON = 1e-5
"""What torchvision's frozen norms add to the variance."""
ANCHOR_RATIOS = (0.5, 1.0, 2.0)


class FasterRCNN(TorchvisionDetector):
    """The network. Its outputs have a fixed number of proposals a picture.

    Where fewer are proposed, the rest are boxes without area and with probabilities of 0, of which
    none is ever detected.
    """

    def __init__(self, body: nn.Module, *, frozen_norms: bool) -> None:
        super().__init__(
            body,
            head=("roi_heads.box_predictor.",),
            limits=Limits(score=0.05, overlap=0.5, most=100),
            mean=(0.485, 0.456, 0.406),
            deviation=(0.229, 0.224, 0.225),
        )
        self.frozen_norms = frozen_norms
        self.proposals: int = self.body.rpn._post_nms_top_n["testing"]

    def files(self, classes: Sequence[str], /) -> Mapping[str, Any]:
        """Return what tells a run that the backbone's norms are constant."""
        del classes
        return {"config.json": {"frozen_norms": True}} if self.frozen_norms else {}

    def forward(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> tuple[
        Float[Tensor, "batch proposals classes 4"], Float[Tensor, "batch proposals classes"]
    ]:
        """Return a box a class for each proposal, and the probabilities of the classes."""
        features = self.body.backbone(self.normalized(images, sizes))
        proposals, _ = self.proposed(features, images, sizes)
        logits, offsets = self.looked_at(features, proposals, images)
        heads = self.body.roi_heads
        with without_autocast(images.device):
            boxes = heads.box_coder.decode(offsets, proposals).reshape(*logits.shape, 4)[:, 1:]
            scores = logits.softmax(dim=1)[:, 1:]
            counts = [len(one) for one in proposals]
            return (
                clipped_to(sizes, padded(boxes.split(counts), self.proposals)),
                padded(scores.split(counts), self.proposals),
            )

    def proposed(
        self, features: Mapping[str, Tensor], images: Tensor, sizes: Tensor
    ) -> tuple[list[Tensor], tuple[Tensor, Tensor, Tensor]]:
        """Return each picture's proposals, and the objectness, offsets and anchors behind them."""
        rpn = self.body.rpn
        maps = list(features.values())
        objectness, offsets = rpn.head(maps)
        with without_autocast(images.device):
            counts = [one[0].numel() for one in objectness]
            objectness, offsets = concat_box_prediction_layers(
                [one.float() for one in objectness], [one.float() for one in offsets]
            )
            anchors = self.anchors(maps, images)
            if images.is_meta:  # nothing can depend on values there
                return [anchors.new_empty(self.proposals, 4)] * len(images), (
                    objectness,
                    offsets,
                    anchors,
                )
            boxes = rpn.box_coder.decode(offsets.detach(), [anchors] * len(images))
            shapes = [(height, width) for height, width in sizes.tolist()]
            proposals, _ = rpn.filter_proposals(
                boxes.view(len(images), -1, 4), objectness, shapes, counts
            )
        return proposals, (objectness, offsets, anchors)

    def anchors(self, maps: Maps, images: Tensor) -> Float[Tensor, "anchors 4"]:
        """Return the anchors over all maps, in fp32 whatever the maps are in."""
        generator = self.body.rpn.anchor_generator
        generator.set_cell_anchors(torch.float32, images.device)
        height, width = images.shape[2:]
        cells = [list(one.shape[2:]) for one in maps]
        strides = [
            [torch.tensor(height // rows), torch.tensor(width // columns)]
            for rows, columns in cells
        ]
        return torch.cat(generator.grid_anchors(cells, strides))

    def looked_at(
        self, features: Mapping[str, Tensor], proposals: list[Tensor], images: Tensor
    ) -> tuple[Float[Tensor, "proposals outcomes"], Tensor]:
        """Return logits and offsets of boxes for each proposal; the first outcome is background."""
        heads = self.body.roi_heads
        if images.is_meta:
            high, wide = heads.box_roi_pool.output_size
            channels = features["0"].shape[1]
            pooled = images.new_empty(sum(map(len, proposals)), channels, high, wide)
        else:
            # Scales follow from the padded input, of which the strides are exact divisors.
            shapes = [(int(images.shape[2]), int(images.shape[3]))] * len(images)
            pooled = heads.box_roi_pool(features, proposals, shapes)
        logits, offsets = heads.box_predictor(heads.box_head(pooled))
        return logits.float(), offsets.float()

    def losses(self, batch: DetectionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return four losses, each a mean over the anchors or proposals that are drawn.

        Where they suffice, as many are drawn from each picture.
        """
        images, sizes = batch.inputs
        targets = targets_of(batch.scenes)
        features = self.body.backbone(self.normalized(images, sizes))
        proposals, (objectness, offsets, anchors) = self.proposed(features, images, sizes)
        rpn, heads = self.body.rpn, self.body.roi_heads
        every = [anchors] * len(images)
        with without_autocast(images.device):
            labels, matched = rpn.assign_targets_to_anchors(every, targets)
            wanted = rpn.box_coder.encode(matched, every)
            # Of boxes that are not to be found there is nothing to encode, and the logarithm of
            # their width is infinite; the loss never looks at them.
            object_loss, anchor_loss = rpn.compute_loss(objectness, offsets, labels, wanted)
            drawn, _, drawn_labels, drawn_wanted = heads.select_training_samples(proposals, targets)
        logits, box_offsets = self.looked_at(features, drawn, images)
        with without_autocast(images.device):
            class_loss, box_loss = fastrcnn_loss(logits, box_offsets, drawn_labels, drawn_wanted)
        return {
            "objectness": object_loss,
            "proposal_boxes": anchor_loss,
            "classification": class_loss,
            "boxes": box_loss,
        }

    def picked(
        self,
        boxes: Float[Tensor, "proposals classes 4"],
        scores: Float[Tensor, "proposals classes"],
    ) -> Detections:
        """Return the boxes that `limits` leaves of one picture."""
        boxes, scores = boxes.float(), scores.float()
        sides = boxes[..., 2:] - boxes[..., :2]
        rows, labels = torch.where(
            (scores >= self.limits.score) & (sides >= LEAST_SIDE).all(dim=-1)
        )
        return best_of(boxes[rows, labels], scores[rows, labels], labels, self.limits)


def padded(parts: Sequence[Tensor], count: int) -> Tensor:
    """Return the parts as one tensor, each with zeros behind up to a number of rows."""
    return torch.stack([pad(one, (0, 0) * (one.ndim - 1) + (0, count - len(one))) for one in parts])


def norms(shape: Shape) -> tuple[bool, type[nn.Module]]:
    """Return whether the backbone's norms are constant, and their class.

    As in torchvision, they are where weights are given, since few pictures at a time tell little of
    a mean; `networks.weights` sees it by the missing counters. From nothing they must be trained.
    The state dicts have the same names either way, counters apart.
    """
    frozen = bool(shape.sizes.get("frozen_norms"))
    return frozen, FrozenBatchNorm2d if frozen else nn.BatchNorm2d


def build(shape: Shape) -> FasterRCNN:
    """Return the network over ResNet-50 with fresh weights."""
    frozen, norm = norms(shape)
    backbone = resnet_fpn_backbone(
        backbone_name="resnet50", weights=None, norm_layer=norm, trainable_layers=5
    )
    return FasterRCNN(Body(backbone, shape.classes + 1), frozen_norms=frozen)


def build_mobilenet(shape: Shape) -> FasterRCNN:
    """Return the network over MobileNetV3-large, with three anchors' maps as torchvision has it."""
    frozen, norm = norms(shape)
    backbone = mobilenet_backbone(
        backbone_name="mobilenet_v3_large",
        weights=None,
        fpn=True,
        norm_layer=norm,
        trainable_layers=6,
    )
    sizes = ((32, 64, 128, 256, 512),) * 3
    body = Body(
        backbone,
        shape.classes + 1,
        rpn_anchor_generator=AnchorGenerator(sizes, (ANCHOR_RATIOS,) * 3),
        rpn_score_thresh=0.05,
    )
    return FasterRCNN(body, frozen_norms=frozen)


def tiny(backbone: nn.Module, shape: Shape, sizes: tuple[tuple[int, ...], ...]) -> FasterRCNN:
    """Return the same code with few channels and proposals, and small anchors."""
    body = Body(
        backbone,
        rpn_anchor_generator=AnchorGenerator(sizes, (ANCHOR_RATIOS,) * len(sizes)),
        box_head=TwoMLPHead(16 * 7**2, 32),
        box_predictor=FastRCNNPredictor(32, shape.classes + 1),
        rpn_post_nms_top_n_train=64,
        rpn_post_nms_top_n_test=32,
        rpn_batch_size_per_image=64,
        box_batch_size_per_image=32,
    )
    return FasterRCNN(body, frozen_norms=norms(shape)[0])


def build_tiny(shape: Shape) -> FasterRCNN:
    """Return the network over a ResNet of one narrow block a stage."""
    residual = ResNet(Bottleneck, [1, 1, 1, 1], width_per_group=4, norm_layer=norms(shape)[1])
    stages = {f"layer{stage + 1}": str(stage) for stage in range(4)}
    backbone = BackboneWithFPN(residual, stages, [256, 512, 1024, 2048], 16)
    return tiny(backbone, shape, ((8,), (16,), (24,), (32,), (64,)))


def build_tiny_mobilenet(shape: Shape) -> FasterRCNN:
    """Return the network over MobileNetV3-large with an eighth of its channels."""
    features = mobilenet_v3_large(norm_layer=norms(shape)[1], width_mult=0.125).features
    strided = [index for index, one in enumerate(features) if getattr(one, "_is_cn", False)]
    stages = {strided[-1]: "0", len(features) - 1: "1"}
    backbone = BackboneWithFPN(
        features,
        {str(index): name for index, name in stages.items()},
        [features[index].out_channels for index in stages],
        16,
    )
    return tiny(backbone, shape, ((8, 16, 24, 32, 64),) * 3)


def resnet_backbone(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a classifier's tensors as those of the backbone; counters go, as norms are frozen."""
    return {
        f"backbone.body.{name}": one
        for name, one in tensors.items()
        if not name.endswith("num_batches_tracked")
    }


def mobilenet_backbone_of(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a classifier's tensors as those of the backbone; counters go, as norms are frozen.

    The classifier's norms add more to the variance, 0.001, which is made up for.
    """
    return {
        name.replace("features.", "backbone.body.", 1): (
            one + (0.001 - FROZEN_EPSILON) if name.endswith("running_var") else one
        )
        for name, one in tensors.items()
        if not name.endswith("num_batches_tracked")
    }


def without_epsilon(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with variances from which what a norm adds is taken off.

    torchvision's file was trained with norms that add nothing, and it sets theirs to 0 for it.
    """
    return {
        name: one - FROZEN_EPSILON if name.endswith("running_var") else one
        for name, one in tensors.items()
    }


def example_inputs(pictures: int) -> tuple[Tensor, Tensor]:
    """Return pictures of 800 x 1066 pixels, as those of 480 x 640 become, padded to cells of 32."""
    return torch.zeros(pictures, 3, 800, 1088), torch.tensor([[800, 1066]] * pictures)


PREPROCESSING = BoxPreprocessing(height=800, width=1333, fit="shorter-side", padding=0)
PUBLISHED = Recipe(
    source="torchvision references/detection (8 GPUs, 2 pictures each), but for the second fall of "
    "the learning rate after 22 epochs, and its decay of norms and biases",
    epochs=26,
    batch_size=16,
    optimizer="sgd",
    learning_rate=0.02,
    weight_decay=1e-4,
    schedule="step",
    step_epochs=16,
    warmup_epochs=1000 / 7330,  # of so many updates
    crop_scale_min=1.0,
)
SMALL_DATA = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019; "
    "one cycle: Smith and Topin 2019",
    epochs=60,
    batch_size=4,
    optimizer="adamw",
    learning_rate=5e-4,
    weight_decay=0.02,
    schedule="one-cycle",
    warmup_epochs=3.0,
    max_gradient_norm=5.0,
    crop_scale_min=1.0,
)
FINE_TUNE = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019",
    epochs=12,
    batch_size=4,
    optimizer="adamw",
    learning_rate=1e-4,
    weight_decay=0.02,
    schedule="cosine",
    warmup_epochs=1.0,
    max_gradient_norm=5.0,
    crop_scale_min=1.0,
)
RECIPES = {"published": PUBLISHED, "small-data": SMALL_DATA, "fine-tune": FINE_TUNE}
SHAPE = Shape(task="object-detection", classes=90, sizes={"frozen_norms": True})
"""Of COCO, whose categories have numbers up to 90."""

FASTER_RCNN = Entry(
    name="faster-rcnn",
    tasks=(TASK,),
    build=build,
    build_tiny=build_tiny,
    tiny_image_size=64,
    example_inputs=example_inputs,
    preprocessing=PREPROCESSING,
    recipes=RECIPES,
    targets=(Target(metric="ap", value=0.370, source="torchvision COCO_V1, val2017"),),
    published_shape=SHAPE,
    parameter_count=41_755_286,
    # With 1,000 proposals, of which each passes through 14 million.
    forward_multiply_adds=177_581_734_144,
    weights={
        "coco": Published(
            name="FasterRCNN_ResNet50_FPN_Weights.COCO_V1",
            address=FasterRCNN_ResNet50_FPN_Weights.COCO_V1.url,
            file="fasterrcnn_resnet50_fpn_coco-258fb6c6.pth",
            classes=coco.numbered,
            licence="BSD-3-Clause, trained on COCO 2017",
            converted=without_epsilon,
        ),
        "imagenet": Published(
            name="ResNet50_Weights.IMAGENET1K_V1",
            address=ResNet50_Weights.IMAGENET1K_V1.url,
            file="resnet50-0676ba61.pth",
            classes=tuple,
            licence="BSD-3-Clause, trained on ImageNet-1k",
            converted=resnet_backbone,
        ),
    },
    explain_layer="body.backbone.body.layer4",
    paper="arXiv:1506.01497",
    smallest_image_size=64,
)
FASTER_RCNN_MOBILENET = Entry(
    name="faster-rcnn-mobilenet",
    tasks=(TASK,),
    build=build_mobilenet,
    build_tiny=build_tiny_mobilenet,
    tiny_image_size=64,
    example_inputs=example_inputs,
    preprocessing=PREPROCESSING,
    recipes=RECIPES,
    targets=(Target(metric="ap", value=0.328, source="torchvision COCO_V1, val2017"),),
    published_shape=SHAPE,
    parameter_count=19_386_354,
    # With 1,000 proposals, of which each passes through 14 million.
    forward_multiply_adds=20_464_911_104,
    weights={
        "coco": Published(
            name="FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1",
            address=FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1.url,
            file="fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7.pth",
            classes=coco.numbered,
            licence="BSD-3-Clause, trained on COCO 2017",
        ),
        "imagenet": Published(
            name="MobileNet_V3_Large_Weights.IMAGENET1K_V1",
            address=MobileNet_V3_Large_Weights.IMAGENET1K_V1.url,
            file="mobilenet_v3_large-8738ca79.pth",
            classes=tuple,
            licence="BSD-3-Clause, trained on ImageNet-1k",
            converted=mobilenet_backbone_of,
        ),
    },
    explain_layer="body.backbone.body.16",
    paper="arXiv:1506.01497",
    smallest_image_size=64,
)
ENTRIES = (FASTER_RCNN, FASTER_RCNN_MOBILENET)
