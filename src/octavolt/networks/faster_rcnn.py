"""Faster R-CNN: Ren et al. 2015, with the feature pyramid of Lin et al. 2017."""

from collections import OrderedDict
from dataclasses import replace

import torch
from torch import Tensor, nn
from torchvision.models.detection import (
    FasterRCNN,
    FasterRCNN_MobileNet_V3_Large_FPN_Weights,
    FasterRCNN_ResNet50_FPN_Weights,
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
)
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign

from octavolt.contract import BoxPreprocessing, Entry, Published, Recipe, Shape, Target
from octavolt.networks import coco
from octavolt.networks.torchvision_detector import FasterRcnnDetector
from octavolt.tasks.average_precision import TASK
from octavolt.tasks.object_detection import Limits

HEAD = ("roi_heads.box_predictor.",)
PADDING = 0
"""Outside a picture nothing is seen: the network sets it to zero after normalization."""


class TinyBackbone(nn.Module):
    """Two maps of a few channels."""

    out_channels = 16

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=4, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        )
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, stride=2, padding=1), nn.ReLU())

    def forward(self, images: Tensor) -> "OrderedDict[str, Tensor]":
        """Return the maps at an eighth and a sixteenth of the input."""
        fine = self.first(images)
        return OrderedDict([("0", fine), ("1", self.second(fine))])


def detector(body: FasterRCNN) -> FasterRcnnDetector:
    """Return the network, which keeps what torchvision keeps."""
    heads = body.roi_heads
    limits = Limits(
        score=heads.score_thresh, overlap=heads.nms_thresh, most=heads.detections_per_img
    )
    return FasterRcnnDetector(body, HEAD, limits)


def build(shape: Shape) -> FasterRcnnDetector:
    """Return the network on ResNet-50 with fresh weights; its batch norms are trained."""
    body = fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=shape.classes + 1
    )
    return detector(body)


def build_mobilenet(shape: Shape) -> FasterRcnnDetector:
    """Return the network on MobileNetV3 with fresh weights; its batch norms are trained."""
    body = fasterrcnn_mobilenet_v3_large_fpn(
        weights=None, weights_backbone=None, num_classes=shape.classes + 1
    )
    return detector(body)


def build_tiny(shape: Shape) -> FasterRcnnDetector:
    """Return the same code with a small backbone, few proposals and a small head."""
    kinds = shape.classes + 1
    body = FasterRCNN(
        TinyBackbone(),
        rpn_anchor_generator=AnchorGenerator(((16,), (32,)), ((0.5, 1.0, 2.0),) * 2),
        rpn_pre_nms_top_n_train=100,
        rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_train=50,
        rpn_post_nms_top_n_test=50,
        box_roi_pool=MultiScaleRoIAlign(["0", "1"], 3, 2),
        box_head=nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU()),
        box_predictor=FastRCNNPredictor(32, kinds),
    )
    return detector(body)


def example_inputs(samples: int) -> tuple[Tensor, Tensor]:
    """Return pictures of a usual aspect, and that they fill the input."""
    return torch.zeros(samples, 3, 800, 1088), torch.tensor([[800, 1088]] * samples)


PUBLISHED = Recipe(
    source="torchvision references/detection (8 GPUs, 2 pictures each)",
    epochs=26,
    batch_size=16,
    optimizer="sgd",
    learning_rate=0.02,
    weight_decay=1e-4,
    decay_norms_and_biases=True,
    schedule="step",
    step_epochs=16,
)
SMALL_DATA = Recipe(
    source="our own choice, measured in docs/benchmarks.md",
    epochs=60,
    batch_size=8,
    optimizer="adamw",
    learning_rate=5e-4,
    weight_decay=0.02,
    schedule="one-cycle",
    warmup_epochs=3.0,
    max_gradient_norm=10.0,
)
RECIPES = {
    "published": PUBLISHED,
    "small-data": SMALL_DATA,
    "fine-tune": replace(
        SMALL_DATA, epochs=15, learning_rate=2e-4, schedule="cosine", warmup_epochs=1.0
    ),
}
PREPROCESSING = BoxPreprocessing(height=800, width=1333, fit="shorter-side", padding=PADDING)
FASTER_RCNN = Entry(
    name="faster-rcnn",
    tasks=(TASK,),
    build=build,
    build_tiny=build_tiny,
    tiny_image_size=64,
    smallest_image_size=64,
    example_inputs=example_inputs,
    preprocessing=PREPROCESSING,
    recipes=RECIPES,
    targets=(Target(metric="ap", value=0.370, source="torchvision COCO_V1"),),
    published_shape=Shape(task=TASK.name, classes=len(coco.categories()) - 1),
    parameter_count=41_808_406,
    forward_multiply_adds=176_418_610_432,
    weights={
        "coco": Published(
            name="FasterRCNN_ResNet50_FPN_Weights.COCO_V1",
            address=FasterRCNN_ResNet50_FPN_Weights.COCO_V1.url,
            file="fasterrcnn_resnet50_fpn_coco-258fb6c6.pth",
            classes=lambda: coco.categories()[1:],
            licence="BSD-3-Clause, trained on COCO",
        )
    },
    explain_layer="body.backbone.body.layer4",
    paper="arXiv:1506.01497",
)
FASTER_RCNN_MOBILENET = replace(
    FASTER_RCNN,
    name="faster-rcnn-mobilenet",
    build=build_mobilenet,
    targets=(Target(metric="ap", value=0.328, source="torchvision COCO_V1"),),
    parameter_count=19_410_754,
    forward_multiply_adds=20_464_911_104,
    weights={
        "coco": Published(
            name="FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1",
            address=FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1.url,
            file="fasterrcnn_mobilenet_v3_large_fpn-fb6a3cc7.pth",
            classes=lambda: coco.categories()[1:],
            licence="BSD-3-Clause, trained on COCO",
        )
    },
    explain_layer="body.backbone.body.16",
)
ENTRIES = (FASTER_RCNN, FASTER_RCNN_MOBILENET)
