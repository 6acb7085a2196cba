"""MobileNetV2: Sandler et al. 2018."""

import torch
from torchvision.models import MobileNet_V2_Weights, MobileNetV2

from octavolt.contract import Entry, Preprocessing, Published, Recipe, Shape, Target
from octavolt.networks.classifier import Classifier
from octavolt.networks.depthwise import quick_on_cpus
from octavolt.networks.recipes import FINE_TUNE, SMALL_DATA
from octavolt.tasks import image_classification


def build(shape: Shape) -> Classifier:
    """Return the network with fresh weights."""
    body = quick_on_cpus(MobileNetV2(num_classes=shape.classes))
    return Classifier(body, head=("classifier.1.",))


def build_tiny(shape: Shape) -> Classifier:
    """Return the same code with two stages of eight channels."""
    stages = [[1, 8, 1, 1], [6, 8, 2, 2]]  # expansion, channels, blocks, stride
    body = MobileNetV2(num_classes=shape.classes, width_mult=0.25, inverted_residual_setting=stages)
    return Classifier(quick_on_cpus(body), head=("classifier.1.",))


ENTRY = Entry(
    name="mobilenet-v2",
    tasks=(image_classification.TASK,),
    build=build,
    build_tiny=build_tiny,
    tiny_image_size=32,
    example_inputs=lambda samples: (torch.zeros(samples, 3, 224, 224),),
    preprocessing=Preprocessing(image_size=224),
    recipes={
        "published": Recipe(
            source="torchvision references/classification, MobileNetV2 (8 GPUs, 32 pictures each)",
            epochs=300,
            batch_size=256,
            optimizer="sgd",
            learning_rate=0.045,
            weight_decay=4e-5,
            decay_norms_and_biases=True,
            schedule="step",
            step_epochs=1,
            step_factor=0.98,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(
        Target(metric="top1_fraction", value=0.720, source="table 4 of the paper"),
        Target(metric="top1_fraction", value=0.71878, source="torchvision IMAGENET1K_V1"),
    ),
    published_shape=Shape(task=image_classification.TASK.name, classes=1000),
    parameter_count=3_504_872,
    forward_multiply_adds=300_774_272,
    weights={
        "imagenet": Published(
            name="MobileNet_V2_Weights.IMAGENET1K_V1",
            address=MobileNet_V2_Weights.IMAGENET1K_V1.url,
            file="mobilenet_v2-b0353104.pth",
            classes=lambda: tuple(MobileNet_V2_Weights.IMAGENET1K_V1.meta["categories"]),
            licence="BSD-3-Clause, trained on ImageNet-1k",
        )
    },
    explain_layer="body.features.18",
    paper="arXiv:1801.04381",
)
