"""SSD300: Liu et al. 2016; SSDLite: Sandler et al. 2018, over MobileNetV3: Howard et al. 2019."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from math import sqrt
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import batch_norm, cross_entropy, pad, smooth_l1_loss
from torch.nn.utils.rnn import pad_sequence
from torchvision.models import MobileNet_V3_Large_Weights, VGG16_Weights, mobilenet_v3_large
from torchvision.models.detection import (
    SSD300_VGG16_Weights,
    SSDLite320_MobileNet_V3_Large_Weights,
)
from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from torchvision.models.detection.ssd import SSD as Body  # noqa: N811
from torchvision.models.detection.ssd import SSDFeatureExtractorVGG
from torchvision.models.detection.ssdlite import SSDLiteFeatureExtractorMobileNet, SSDLiteHead
from torchvision.models.vgg import cfgs, make_layers

from octavolt.contract import BoxPreprocessing, Entry, Published, Recipe, Shape, Target
from octavolt.networks import coco
from octavolt.networks.depthwise import quick_on_cpus
from octavolt.networks.torchvision_detector import (
    TorchvisionDetector,
    best_of,
    clipped_to,
    targets_of,
)
from octavolt.tasks.average_precision import TASK
from octavolt.tasks.boxes import intersection_over_union, without_autocast
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits

SHARED_PART = 0.5
"""Intersection over union from which on a default box is to find a box: section 2.2."""
NEGATIVES = 3
"""Default boxes of background to learn for each that is to find a box: section 2.2."""
STRIDES = (8, 16, 32, 64)
"""Pixels from cell to cell of SSD300's first maps, as in the paper's code."""


class SSD(TorchvisionDetector):
    """The network; the input may have any size, to which the default boxes adapt."""

    def __init__(
        self,
        body: nn.Module,
        *,
        head: Sequence[str],
        limits: Limits,
        mean: tuple[float, float, float],
        deviation: tuple[float, float, float],
        strides: Sequence[int] = (),
    ) -> None:
        super().__init__(body, head=head, limits=limits, mean=mean, deviation=deviation)
        self.strides = tuple(strides)
        self.known_boxes: dict[Any, Tensor] = {}

    def forward(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> tuple[Float[Tensor, "batch boxes 4"], Float[Tensor, "batch boxes classes"]]:
        """Return the default boxes as they were moved, and the probabilities of the classes."""
        offsets, logits, defaults = self.looked(images, sizes)
        with without_autocast(images.device):
            coder = self.body.box_coder
            every = defaults.repeat(len(images), 1)
            boxes = coder.decode_single(offsets.flatten(0, 1), every).reshape(offsets.shape)
            return clipped_to(sizes, boxes), logits.softmax(dim=2)[..., 1:]

    def looked(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> tuple[
        Float[Tensor, "batch boxes 4"],
        Float[Tensor, "batch boxes outcomes"],
        Float[Tensor, "boxes 4"],
    ]:
        """Return offsets and logits, the first of background, and the default boxes, in fp32."""
        maps = list(self.body.backbone(self.normalized(images, sizes)).values())
        outputs = self.body.head(maps)
        defaults = self.default_boxes(images, maps)
        return outputs["bbox_regression"].float(), outputs["cls_logits"].float(), defaults

    def default_boxes(self, images: Tensor, maps: list[Tensor]) -> Float[Tensor, "boxes 4"]:
        """Return the default boxes over all maps, made once for each size of the input."""
        height, width = images.shape[2:]
        key = (height, width, images.device)
        if key not in self.known_boxes:
            # Made in evaluation they would otherwise be of no use to training.
            with torch.inference_mode(False), torch.device("cpu"):
                cells = [(int(one.shape[2]), int(one.shape[3])) for one in maps]
                boxes = default_boxes(
                    self.body.anchor_generator, cells, self.strides, height=height, width=width
                )
                self.known_boxes[key] = boxes.to(images.device)
        return self.known_boxes[key]

    def losses(self, batch: DetectionBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the losses of Liu et al. 2016, equation 1.

        They are sums over the batch, divided by the number of its default boxes that are to find a
        box: a picture without a box teaches nothing.
        """
        offsets, logits, defaults = self.looked(batch.images, batch.sizes)
        with without_autocast(batch.images.device):
            targets = targets_of(batch.scenes)
            boxes, labels, found = matched(
                [one["boxes"] for one in targets], [one["labels"] for one in targets], defaults
            )
            every = defaults.expand_as(boxes)
            wanted = self.body.box_coder.encode_single(
                # Itself where there is nothing to find, of which the logarithms are finite.
                torch.where(found[..., None], boxes, every).flatten(0, 1),
                every.flatten(0, 1),
            ).reshape(offsets.shape)
            count = found.sum().clamp(min=1)
            moved = smooth_l1_loss(offsets, wanted, reduction="none").sum(dim=2)
            surprise = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
            counted = found | hardest(surprise.detach().reshape(labels.shape), found)
            return {
                "boxes": torch.where(found, moved, 0.0).sum() / count,
                "classification": torch.where(counted.flatten(), surprise, 0.0).sum() / count,
            }

    def picked(
        self, boxes: Float[Tensor, "boxes 4"], scores: Float[Tensor, "boxes classes"]
    ) -> Detections:
        """Return the boxes that `limits` leaves of one picture, of the surest of each class."""
        boxes, scores = boxes.float(), scores.float()
        rows, labels = torch.where(scores >= self.limits.score)
        most = self.body.topk_candidates
        if len(rows) > most:  # else no class can have more
            surest, rows_of = scores.topk(min(most, len(scores)), dim=0)
            places, labels = torch.where(surest >= self.limits.score)
            rows = rows_of[places, labels]
        return best_of(boxes[rows], scores[rows, labels], labels, self.limits)


def default_boxes(
    generator: DefaultBoxGenerator,
    cells: Sequence[tuple[int, int]],
    strides: Sequence[int],
    *,
    height: int,
    width: int,
) -> Float[Tensor, "boxes 4"]:
    """Return the default boxes of maps of so many rows and columns, in pixels of the input.

    Of maps whose strides are not given, the cells share the input evenly: SSD300's last steps of
    100 and 300 pixels are just that, and so at other sizes no box stands outside.
    """
    size = torch.tensor([width, height])
    parts = []
    for index, ((rows, columns), stride) in enumerate(zip_longest(cells, strides)):
        across, down = (width / stride, height / stride) if stride else (columns, rows)
        centers_x = (torch.arange(columns) + 0.5) / across
        centers_y = (torch.arange(rows) + 0.5) / down
        grid_y, grid_x = torch.meshgrid(centers_y, centers_x, indexing="ij")
        centers = torch.stack([grid_x, grid_y], dim=-1).reshape(-1, 1, 2)
        half = 0.5 * sides(generator, index)
        corners = torch.cat([(centers - half) * size, (centers + half) * size], dim=-1)
        parts.append(corners.flatten(0, 1))
    return torch.cat(parts)


def sides(generator: DefaultBoxGenerator, index: int) -> Float[Tensor, "boxes 2"]:
    """Return widths and heights of a map's default boxes as shares of the input: section 2.2."""
    scale, next_scale = generator.scales[index : index + 2]
    between = sqrt(scale * next_scale)
    pairs = [(scale, scale), (between, between)]
    for ratio in generator.aspect_ratios[index]:
        large, small = scale * sqrt(ratio), scale / sqrt(ratio)
        pairs += [(large, small), (small, large)]
    return torch.tensor(pairs).clamp(max=1)


def matched(
    boxes: Sequence[Float[Tensor, "_ 4"]],
    labels: Sequence[Int[Tensor, " _"]],
    defaults: Float[Tensor, "defaults 4"],
) -> tuple[
    Float[Tensor, "batch defaults 4"],
    Int[Tensor, "batch defaults"],
    Bool[Tensor, "batch defaults"],
]:
    """Return what each default box of each picture is to find: a box, its label, and whether any.

    It is the box that it overlaps most, if by enough; and each box is found by the default box that
    overlaps it most, the last such box where several share that one: section 2.2. All pictures of a
    batch at once, in which those with fewer boxes have boxes without area.
    """
    gathered = pad_sequence(list(boxes), batch_first=True)
    if not gathered.shape[1]:
        gathered = pad(gathered, (0, 0, 0, 1))
    names = pad_sequence(list(labels), batch_first=True)
    names = pad(names, (0, gathered.shape[1] - names.shape[1]))
    real = names > 0
    overlaps = overlaps_of(gathered, defaults).masked_fill(~real[..., None], -1.0)
    most, chosen = overlaps.max(dim=1)
    order = torch.arange(real.shape[1], device=defaults.device).where(real, -1)
    forced = torch.full_like(chosen, -1).scatter_reduce(1, overlaps.argmax(dim=2), order, "amax")
    chosen = torch.where(forced >= 0, forced, chosen)
    found = (forced >= 0) | (most >= SHARED_PART)
    wanted = gathered.gather(1, chosen[..., None].expand(-1, -1, 4))
    return wanted, names.gather(1, chosen) * found, found


def overlaps_of(
    boxes: Float[Tensor, "batch boxes 4"], defaults: Float[Tensor, "defaults 4"]
) -> Float[Tensor, "batch boxes defaults"]:
    """Return the intersection over union of each box with each default box."""
    flat = intersection_over_union(boxes.flatten(0, 1), defaults)
    return flat.reshape(*boxes.shape[:2], len(defaults))


def hardest(
    surprise: Float[Tensor, "batch boxes"], found: Bool[Tensor, "batch boxes"]
) -> Bool[Tensor, "batch boxes"]:
    """Return the default boxes of background with the largest losses of each picture."""
    wanted = NEGATIVES * found.sum(dim=1, keepdim=True)
    order = surprise.masked_fill(found, float("-inf")).argsort(dim=1, descending=True)
    chosen = torch.arange(order.shape[1], device=order.device) < wanted
    return torch.zeros_like(found).scatter(1, order, chosen)


class Norm(nn.BatchNorm2d):
    """A norm that takes its running statistics where a batch has one value a channel.

    That is the last map of a single picture, of which the variance would be nothing.
    """

    def forward(
        self, input: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height width"]:
        """Return the normalized maps."""
        if self.training and input.numel() == input.shape[1]:
            return batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        normal: Tensor = super().forward(input)
        return normal


def vgg(body: nn.Module) -> SSD:
    """Return SSD300 as it is fed and asked in the paper: colors as levels of 255, their mean 0."""
    return SSD(
        body,
        head=("head.classification_head.",),
        limits=Limits(score=0.01, overlap=0.45, most=200),
        mean=(0.48235, 0.45882, 0.40784),
        deviation=(1 / 255, 1 / 255, 1 / 255),
        strides=STRIDES,
    )


def build(shape: Shape) -> SSD:
    """Return SSD300 over VGG-16 with fresh weights."""
    backbone: Any = SSDFeatureExtractorVGG(fresh(make_layers(cfgs["D"])), highres=False)
    backbone.out_channels = [512, 1024, 512, 256, 256, 256]  # or a picture is run to find out
    generator = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2, 3], [2], [2]],
        scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
        steps=[*STRIDES, 100, 300],
    )
    return vgg(Body(backbone, generator, (300, 300), shape.classes + 1))


def build_tiny(shape: Shape) -> SSD:
    """Return the same code with one narrow convolution a stage, and without the last two maps.

    Those have no padding, and so nothing to look at in a small picture.
    """
    layers = fresh(make_layers([8, "M", 8, "M", 8, "M", 16, "M", 16, "M"]))
    backbone: Any = SSDFeatureExtractorVGG(layers, highres=False)
    # torchvision fixes the channels of what follows.
    backbone.scale_weight = nn.Parameter(torch.full((16,), 20.0))
    backbone.out_channels = [16, 32, 32, 32]
    backbone.extra = nn.ModuleList(
        nn.Sequential(
            *(list(layers)[-4:-1] if before == 16 else []),
            nn.Conv2d(before, 32, 3, stride=1 if before == 16 else 2, padding=1),
            nn.ReLU(),
        )
        for before in (16, 32, 32)
    )
    generator = DefaultBoxGenerator(
        [[2], [2, 3], [2, 3], [2]], scales=[0.1, 0.2, 0.4, 0.6, 0.9], steps=[*STRIDES]
    )
    return vgg(Body(backbone, generator, (64, 64), shape.classes + 1))


def fresh(layers: nn.Sequential) -> nn.Sequential:
    """Start the convolutions as torchvision does: He et al. 2015."""
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
    return layers


def lite(shape: Shape, *, width: float, size: int) -> SSD:
    """Return SSDLite over MobileNetV3-large, with that share of its channels."""
    norm = partial(Norm, eps=0.001, momentum=0.03)
    # The last blocks are half as wide as for classification: table 6 of the paper.
    features = mobilenet_v3_large(norm_layer=norm, reduced_tail=True, width_mult=width).features
    fourth = max(index for index, one in enumerate(features) if getattr(one, "_is_cn", False))
    backbone = SSDLiteFeatureExtractorMobileNet(features, fourth, norm, width_mult=width)
    channels = [
        features[fourth].block[0].out_channels,
        features[-1].out_channels,
        *(one[-1].out_channels for one in backbone.extra),
    ]
    generator = DefaultBoxGenerator([[2, 3]] * len(channels), min_ratio=0.2, max_ratio=0.95)
    anchors = generator.num_anchors_per_location()
    body = Body(
        backbone,
        generator,
        (size, size),
        shape.classes + 1,
        head=SSDLiteHead(channels, anchors, shape.classes + 1, norm),
        topk_candidates=300,
    )
    return SSD(
        quick_on_cpus(body),
        head=[f"head.classification_head.module_list.{at}.1." for at in range(len(channels))],
        limits=Limits(score=0.001, overlap=0.55, most=300),
        mean=(0.5, 0.5, 0.5),
        deviation=(0.5, 0.5, 0.5),
    )


def build_lite(shape: Shape) -> SSD:
    """Return SSDLite with fresh weights."""
    return lite(shape, width=1.0, size=320)


def build_tiny_lite(shape: Shape) -> SSD:
    """Return the same code with an eighth of the channels."""
    return lite(shape, width=0.125, size=64)


def vgg_backbone(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return VGG-16's convolutions as those of the backbone, whose last stage has its own part."""
    stages = {f"features.{old}.": f"backbone.extra.0.{old - 23}." for old in (24, 26, 28)}
    stages |= {f"features.{old}.": f"backbone.features.{old}." for old in range(23)}
    return renamed(tensors, stages)


def mobilenet_backbone(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return MobileNetV3's blocks as those of the backbone, up to those that are narrower here.

    The fourth strided block is cut in two after its expansion, of which the map is a feature.
    """
    blocks = {f"features.{old}.": f"backbone.features.0.{old}." for old in range(13)}
    blocks["features.13.block.0."] = "backbone.features.0.13."
    blocks |= {f"features.13.block.{old}.": f"backbone.features.1.0.{old}." for old in (1, 2)}
    return renamed(tensors, blocks)


def renamed(tensors: Mapping[str, Tensor], prefixes: Mapping[str, str]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with one of the prefixes, with the other instead."""
    return {
        new + name.removeprefix(old): one
        for old, new in prefixes.items()
        for name, one in tensors.items()
        if name.startswith(old)
    }


def example_inputs(size: int, pictures: int) -> tuple[Tensor, Tensor]:
    """Return square pictures that fill the input."""
    return torch.zeros(pictures, 3, size, size), torch.tensor([[size, size]] * pictures)


SHAPE = Shape(task="object-detection", classes=90)
"""Of COCO, whose categories have numbers up to 90."""
SMALL_DATA = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019; "
    "one cycle: Smith and Topin 2019; crops, expansion and colors: Liu et al. 2016, section 2.2",
    epochs=120,
    batch_size=16,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=0.02,
    schedule="one-cycle",
    warmup_epochs=5.0,
    max_gradient_norm=5.0,
    crop_scale_min=1.0,
    box_crop=True,
    expand_max=2.0,
    color_jitter=0.5,
)
FINE_TUNE = Recipe(
    source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019; "
    "crops, expansion and colors: Liu et al. 2016, section 2.2",
    epochs=40,
    batch_size=16,
    optimizer="adamw",
    learning_rate=5e-4,
    weight_decay=0.02,
    schedule="cosine",
    warmup_epochs=1.0,
    ema_decay=0.98,
    max_gradient_norm=5.0,
    crop_scale_min=1.0,
    box_crop=True,
    expand_max=2.0,
    color_jitter=0.5,
)

SSD300 = Entry(
    name="ssd300",
    tasks=(TASK,),
    build=build,
    build_tiny=build_tiny,
    tiny_image_size=64,
    example_inputs=partial(example_inputs, 300),
    preprocessing=BoxPreprocessing(height=300, width=300, fit="stretch"),
    recipes={
        "published": Recipe(
            source="torchvision references/detection (8 GPUs, 4 pictures each), but for the second "
            "fall of the learning rate after 110 epochs; augmentation as in section 3.6 of the "
            "paper",
            epochs=120,
            batch_size=32,
            optimizer="sgd",
            learning_rate=0.002,
            weight_decay=5e-4,
            decay_norms_and_biases=True,
            schedule="step",
            step_epochs=80,
            warmup_epochs=1000 / 3665,  # of so many updates
            crop_scale_min=1.0,
            box_crop=True,
            expand_max=4.0,
            color_jitter=1.0,
        ),
        # Without norms, AdamW at the rate of SSDLite diverges.
        "small-data": replace(SMALL_DATA, learning_rate=2e-4),
        "fine-tune": replace(FINE_TUNE, learning_rate=1e-4),
    },
    targets=(Target(metric="ap", value=0.251, source="torchvision COCO_V1, val2017"),),
    published_shape=SHAPE,
    parameter_count=35_641_826,
    forward_multiply_adds=34_858_153_472,
    weights={
        "coco": Published(
            name="SSD300_VGG16_Weights.COCO_V1",
            address=SSD300_VGG16_Weights.COCO_V1.url,
            file="ssd300_vgg16_coco-b556d3b4.pth",
            classes=coco.numbered,
            licence="BSD-3-Clause, trained on COCO 2017",
        ),
        "imagenet": Published(
            name="VGG16_Weights.IMAGENET1K_FEATURES",
            address=VGG16_Weights.IMAGENET1K_FEATURES.url,
            file="vgg16_features-amdegroot-88682ab5.pth",
            classes=tuple,
            licence="BSD-3-Clause, trained on ImageNet-1k",
            converted=vgg_backbone,
        ),
    },
    explain_layer="body.backbone.extra.0",
    paper="arXiv:1512.02325",
    # Smaller ones leave the last two maps, of convolutions without padding, no pixel.
    smallest_image_size=268,
)
SSDLITE = Entry(
    name="ssdlite",
    tasks=(TASK,),
    build=build_lite,
    build_tiny=build_tiny_lite,
    tiny_image_size=64,
    example_inputs=partial(example_inputs, 320),
    preprocessing=BoxPreprocessing(height=320, width=320, fit="stretch"),
    recipes={
        "published": Recipe(
            source="torchvision references/detection (8 GPUs, 24 pictures each)",
            epochs=660,
            batch_size=192,
            optimizer="sgd",
            learning_rate=0.15,
            weight_decay=4e-5,
            decay_norms_and_biases=True,
            schedule="cosine",
            warmup_epochs=1000 / 611,  # of so many updates
            crop_scale_min=1.0,
            box_crop=True,
        ),
        "small-data": SMALL_DATA,
        "fine-tune": FINE_TUNE,
    },
    targets=(
        Target(metric="ap", value=0.213, source="torchvision COCO_V1, val2017"),
        Target(metric="ap", value=0.220, source="table 6 of Howard et al. 2019, with MobileNetV3"),
    ),
    published_shape=SHAPE,
    parameter_count=3_440_060,
    forward_multiply_adds=583_171_904,
    weights={
        "coco": Published(
            name="SSDLite320_MobileNet_V3_Large_Weights.COCO_V1",
            address=SSDLite320_MobileNet_V3_Large_Weights.COCO_V1.url,
            file="ssdlite320_mobilenet_v3_large_coco-a79551df.pth",
            classes=coco.numbered,
            licence="BSD-3-Clause, trained on COCO 2017",
        ),
        "imagenet": Published(
            name="MobileNet_V3_Large_Weights.IMAGENET1K_V1",
            address=MobileNet_V3_Large_Weights.IMAGENET1K_V1.url,
            file="mobilenet_v3_large-8738ca79.pth",
            classes=tuple,
            licence="BSD-3-Clause, trained on ImageNet-1k",
            converted=mobilenet_backbone,
        ),
    },
    explain_layer="body.backbone.features.1",
    paper="arXiv:1801.04381",
)
ENTRIES = (SSD300, SSDLITE)
