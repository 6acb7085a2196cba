"""ResNet-50: He et al. 2016, with the stride in the 3x3 convolution as torchvision has it."""

import torch
from torchvision.models import ResNet50_Weights, resnet50
from torchvision.models.resnet import Bottleneck, ResNet

from octavolt.contract import Entry, Preprocessing, Published, Recipe, Shape, Target
from octavolt.networks.classifier import Classifier
from octavolt.networks.recipes import FINE_TUNE, SMALL_DATA
from octavolt.tasks import image_classification


def build(shape: Shape) -> Classifier:
    """Return the network with fresh weights."""
    return Classifier(resnet50(weights=None, num_classes=shape.classes), head=("fc.",))


def build_tiny(shape: Shape) -> Classifier:
    """Return the same code with one block a stage, a quarter as wide inside."""
    return Classifier(
        ResNet(Bottleneck, [1, 1, 1, 1], num_classes=shape.classes, width_per_group=16),
        head=("fc.",),
    )


ENTRY = Entry(
    name="resnet50",
    tasks=(image_classification.TASK,),
    build=build,
    build_tiny=build_tiny,
    tiny_image_size=32,
    example_inputs=lambda samples: (torch.zeros(samples, 3, 224, 224),),
    preprocessing=Preprocessing(image_size=224),
    recipes={
        "published": Recipe(
            source="torchvision references/classification, ResNet (8 GPUs, 32 pictures each)",
            epochs=90,
            batch_size=256,
            optimizer="sgd",
            learning_rate=0.1,
            weight_decay=1e-4,
            decay_norms_and_biases=True,
            schedule="step",
            step_epochs=30,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(
        Target(metric="top1_fraction", value=0.7613, source="torchvision IMAGENET1K_V1"),
        Target(metric="top1_fraction", value=0.80858, source="torchvision IMAGENET1K_V2"),
    ),
    published_shape=Shape(task=image_classification.TASK.name, classes=1000),
    parameter_count=25_557_032,
    forward_multiply_adds=4_089_184_256,
    weights={
        "imagenet": Published(
            name="ResNet50_Weights.IMAGENET1K_V2",
            address=ResNet50_Weights.IMAGENET1K_V2.url,
            file="resnet50-11ad3fa6.pth",
            classes=lambda: tuple(ResNet50_Weights.IMAGENET1K_V2.meta["categories"]),
            licence="BSD-3-Clause, trained on ImageNet-1k",
        )
    },
    explain_layer="body.layer4",
    paper="arXiv:1512.03385",
)
