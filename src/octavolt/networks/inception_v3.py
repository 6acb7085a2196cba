"""Inception-v3: Szegedy et al. 2016, with its auxiliary classifier."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torchvision.models import Inception3, Inception_V3_Weights

from octavolt.contract import Entry, Preprocessing, Published, Recipe, Shape, Target
from octavolt.networks.classifier import Classifier, soft_cross_entropy
from octavolt.networks.recipes import FINE_TUNE, SMALL_DATA
from octavolt.tasks import image_classification
from octavolt.tasks.image_classification import ImageBatch

AUXILIARY_WEIGHT = 0.4
"""Share of the auxiliary loss: torchvision references/classification and its training script."""
AUXILIARY_PIXELS = 17
"""Height and width of what the auxiliary classifier looks at, with pictures of 299 pixels."""


class InceptionV3(Classifier):
    """The network; the auxiliary classifier works in training only."""

    def losses(self, batch: ImageBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the cross-entropy, in training with the auxiliary one."""
        outputs = self.body(batch.images)
        if isinstance(outputs, Tensor):
            return {"classification": soft_cross_entropy(outputs, batch.targets)}
        auxiliary = soft_cross_entropy(outputs.aux_logits, batch.targets)
        return {
            "classification": soft_cross_entropy(outputs.logits, batch.targets),
            "auxiliary": AUXILIARY_WEIGHT * auxiliary,
        }

    def forward(
        self, images: Float[Tensor, "batch 3 height width"]
    ) -> Float[Tensor, "batch classes"]:
        """Return logits."""
        outputs = self.body(images)
        logits: Tensor = outputs if isinstance(outputs, Tensor) else outputs.logits
        return logits


def enlarged(
    _auxiliary: nn.Module, inputs: tuple[Float[Tensor, "batch channels height width"]]
) -> tuple[Float[Tensor, "batch channels large_height large_width"]]:
    """Return what the auxiliary classifier sees, enlarged if its convolutions wouldn't fit."""
    (features,) = inputs
    if min(features.shape[2:]) >= AUXILIARY_PIXELS:
        return inputs
    return (interpolate(features, size=(AUXILIARY_PIXELS, AUXILIARY_PIXELS), mode="bilinear"),)


def build(shape: Shape) -> InceptionV3:
    """Return the network with fresh weights."""
    body = Inception3(
        num_classes=shape.classes, aux_logits=True, transform_input=False, init_weights=True
    )
    body.AuxLogits.register_forward_pre_hook(enlarged)
    return InceptionV3(body, head=("fc.", "AuxLogits.fc."))


ENTRY = Entry(
    name="inception-v3",
    tasks=(image_classification.TASK,),
    build=build,
    # torchvision's blocks have fixed widths: what makes it quick is the smallest picture.
    build_tiny=build,
    tiny_image_size=75,
    example_inputs=lambda samples: (torch.zeros(samples, 3, 299, 299),),
    preprocessing=Preprocessing(
        image_size=299,
        crop_fraction=299 / 342,
        # The published weights were trained on pictures from -1 to 1.
        mean=(0.5, 0.5, 0.5),
        deviation=(0.5, 0.5, 0.5),
    ),
    recipes={
        "published": Recipe(
            source="sections 8 and 7 of the paper: RMSProp, 100 epochs, 50 replicas of 32, "
            "gradients clipped at 2, labels smoothed by 0.1",
            epochs=100,
            batch_size=1600,
            optimizer="rmsprop",
            learning_rate=0.045,
            weight_decay=4e-5,
            schedule="step",
            step_epochs=2,
            step_factor=0.94,
            label_smoothing=0.1,
            ema_decay=0.9999,
            max_gradient_norm=2.0,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(
        Target(metric="top1_fraction", value=0.788, source="table 4 of the paper, one crop"),
        Target(metric="top1_fraction", value=0.77294, source="torchvision IMAGENET1K_V1"),
    ),
    published_shape=Shape(task=image_classification.TASK.name, classes=1000),
    parameter_count=27_161_264,
    forward_multiply_adds=5_713_216_096,
    weights={
        "imagenet": Published(
            name="Inception_V3_Weights.IMAGENET1K_V1",
            address=Inception_V3_Weights.IMAGENET1K_V1.url,
            file="inception_v3_google-0cc3c7bd.pth",
            classes=lambda: tuple(Inception_V3_Weights.IMAGENET1K_V1.meta["categories"]),
            licence="BSD-3-Clause, trained on ImageNet-1k",
        )
    },
    explain_layer="body.Mixed_7c",
    paper="arXiv:1512.00567",
    smallest_image_size=75,
)
