"""SSD: Liu et al. 2016; SSDLite: Sandler et al. 2018, section 6.2."""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torchvision.models.detection import (
    SSD300_VGG16_Weights,
    SSDLite320_MobileNet_V3_Large_Weights,
    ssd300_vgg16,
    ssdlite320_mobilenet_v3_large,
)
from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from torchvision.models.detection.ssd import SSD

from octavolt.contract import BoxPreprocessing, Entry, Published, Recipe, Shape, Target
from octavolt.networks import coco
from octavolt.networks.depthwise import quick_on_cpus
from octavolt.networks.torchvision_detector import SsdDetector
from octavolt.tasks.average_precision import TASK
from octavolt.tasks.object_detection import Limits

MAPS = 6
"""Feature maps with a head each."""


class TinyBackbone(nn.Module):
    """Two maps of a few channels."""

    out_channels = (16, 16)

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


def limits_of(body: SSD) -> Limits:
    """Return what torchvision keeps."""
    return Limits(score=body.score_thresh, overlap=body.nms_thresh, most=body.detections_per_img)


def build_ssd300(shape: Shape) -> SsdDetector:
    """Return SSD with fresh weights."""
    body = ssd300_vgg16(weights=None, weights_backbone=None, num_classes=shape.classes + 1)
    heads = [f"head.classification_head.module_list.{place}." for place in range(MAPS)]
    return SsdDetector(body, heads, limits_of(body))


def build_ssdlite(shape: Shape) -> SsdDetector:
    """Return SSDLite with fresh weights."""
    body = ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=shape.classes + 1
    )
    heads = [f"head.classification_head.module_list.{place}.1." for place in range(MAPS)]
    return SsdDetector(quick_on_cpus(body), heads, limits_of(body))


def build_tiny(shape: Shape) -> SsdDetector:
    """Return the same code with a small backbone of two maps."""
    body = SSD(
        TinyBackbone(),
        DefaultBoxGenerator([[2], [2]], min_ratio=20, max_ratio=80),
        (64, 64),
        shape.classes + 1,
    )
    heads = [f"head.classification_head.module_list.{place}." for place in range(2)]
    return SsdDetector(body, heads, limits_of(body))


def example_inputs(samples: int, *, side: int) -> tuple[Tensor, Tensor]:
    """Return pictures, and that they fill the input."""
    return torch.zeros(samples, 3, side, side), torch.tensor([[side, side]] * samples)


SMALL_DATA = Recipe(
    source="our own choice, measured in docs/benchmarks.md; augmentation: Liu et al. 2016",
    epochs=120,
    batch_size=16,
    optimizer="adamw",
    learning_rate=1e-3,
    weight_decay=0.02,
    schedule="one-cycle",
    warmup_epochs=5.0,
    max_gradient_norm=10.0,
    box_crop=True,
    expand_max=2.0,
    color_jitter=0.5,
    ema_decay=0.99,
)
FINE_TUNE = Recipe(
    source="our own choice; augmentation: Liu et al. 2016",
    epochs=30,
    batch_size=16,
    optimizer="adamw",
    learning_rate=3e-4,
    weight_decay=0.02,
    schedule="cosine",
    warmup_epochs=1.0,
    max_gradient_norm=10.0,
    box_crop=True,
    expand_max=2.0,
    color_jitter=0.5,
    ema_decay=0.98,
)
SSD300 = Entry(
    name="ssd300",
    tasks=(TASK,),
    build=build_ssd300,
    build_tiny=build_tiny,
    tiny_image_size=64,
    smallest_image_size=200,
    example_inputs=lambda samples: example_inputs(samples, side=300),
    preprocessing=BoxPreprocessing(height=300, width=300, fit="stretch"),
    recipes={
        "published": Recipe(
            source="torchvision references/detection, SSD300 (8 GPUs, 4 pictures each)",
            epochs=120,
            batch_size=32,
            optimizer="sgd",
            learning_rate=0.002,
            weight_decay=5e-4,
            decay_norms_and_biases=True,
            schedule="step",
            step_epochs=80,
            box_crop=True,
            expand_max=4.0,
            color_jitter=1.0,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(Target(metric="ap", value=0.251, source="torchvision COCO_V1"),),
    published_shape=Shape(task=TASK.name, classes=len(coco.categories()) - 1),
    parameter_count=35_641_826,
    forward_multiply_adds=34_858_153_472,
    weights={
        "coco": Published(
            name="SSD300_VGG16_Weights.COCO_V1",
            address=SSD300_VGG16_Weights.COCO_V1.url,
            file="ssd300_vgg16_coco-b556d3b4.pth",
            classes=lambda: coco.categories()[1:],
            licence="BSD-3-Clause, trained on COCO",
        )
    },
    explain_layer="body.backbone.features",
    paper="arXiv:1512.02325",
)
SSDLITE = Entry(
    name="ssdlite",
    tasks=(TASK,),
    build=build_ssdlite,
    build_tiny=build_tiny,
    tiny_image_size=64,
    smallest_image_size=96,
    example_inputs=lambda samples: example_inputs(samples, side=320),
    preprocessing=BoxPreprocessing(height=320, width=320, fit="stretch"),
    recipes={
        "published": Recipe(
            source="torchvision references/detection, SSDLite320 (8 GPUs, 24 pictures each)",
            epochs=660,
            batch_size=192,
            optimizer="sgd",
            learning_rate=0.15,
            weight_decay=4e-5,
            decay_norms_and_biases=True,
            schedule="cosine",
            box_crop=True,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(Target(metric="ap", value=0.213, source="torchvision COCO_V1"),),
    published_shape=Shape(task=TASK.name, classes=len(coco.categories()) - 1),
    parameter_count=3_440_060,
    forward_multiply_adds=583_171_904,
    weights={
        "coco": Published(
            name="SSDLite320_MobileNet_V3_Large_Weights.COCO_V1",
            address=SSDLite320_MobileNet_V3_Large_Weights.COCO_V1.url,
            file="ssdlite320_mobilenet_v3_large_coco-a79551df.pth",
            classes=lambda: coco.categories()[1:],
            licence="BSD-3-Clause, trained on COCO",
        )
    },
    explain_layer="body.backbone.features",
    paper="arXiv:1801.04381",
)
ENTRIES = (SSD300, SSDLITE)
