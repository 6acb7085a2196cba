"""YOLOv3: Redmon and Farhadi 2018."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from octavolt.contract import BoxPreprocessing, Entry, Published, Recipe, Shape, Target
from octavolt.networks import coco
from octavolt.networks.darknet import (
    Config,
    DarknetDetector,
    anchors_of,
    build_detector,
    read_cfg,
    read_weights,
    written,
)
from octavolt.tasks.average_precision import TASK

RUN_CFG = "network.cfg"
"""What the cfg is called in a run folder, where `DarknetDetector.files` puts it."""
RECIPES = {
    "published": Recipe(
        source="Darknet's own settings for COCO: 500,200 batches of 64 pictures",
        epochs=273,
        batch_size=64,
        optimizer="sgd",
        learning_rate=1e-3,
        momentum=0.9,
        weight_decay=5e-4,
        schedule="step",
        step_epochs=218,
        warmup_epochs=0.5,
        scale_jitter=0.3,
        color_jitter=1.0,
        multi_scale=0.4,
    ),
    "small-data": Recipe(
        source="our own choice; AdamW: Loshchilov and Hutter 2019; mosaic: Bochkovskiy et al. 2020",
        epochs=100,
        batch_size=16,
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=0.02,
        schedule="one-cycle",
        warmup_epochs=5.0,
        max_gradient_norm=100.0,
        mosaic_share=0.5,
        scale_jitter=0.3,
        color_jitter=0.7,
        ema_decay=0.99,
    ),
    "fine-tune": Recipe(
        source="our own choice, measured in docs/benchmarks.md; AdamW: Loshchilov and Hutter 2019; "
        "mosaic: Bochkovskiy et al. 2020",
        epochs=40,
        batch_size=16,
        optimizer="adamw",
        learning_rate=5e-4,
        weight_decay=0.02,
        schedule="cosine",
        warmup_epochs=1.0,
        max_gradient_norm=100.0,
        mosaic_share=0.5,
        scale_jitter=0.3,
        color_jitter=0.5,
        ema_decay=0.98,
    ),
}


def example_inputs(samples: int, *, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return pictures, and that they fill the input."""
    return torch.zeros(samples, 3, height, width), torch.tensor([[height, width]] * samples)


def entry_of(
    name: str,
    config: Config,
    *,
    tiny: Config,
    parameter_count: int,
    forward_multiply_adds: int,
    targets: tuple[Target, ...] = (),
    weights: Mapping[str, Published] | None = None,
) -> Entry:
    """Return the entry of a network that a config describes; `tiny` is of the same kind."""
    examples = partial(example_inputs, height=config.height, width=config.width)
    return Entry(
        name=name,
        tasks=(TASK,),
        build=partial(build_detector, config),
        build_tiny=partial(build_detector, tiny),
        tiny_image_size=64,
        smallest_image_size=64,
        example_inputs=examples,
        preprocessing=BoxPreprocessing(
            height=config.height, width=config.width, anchors=anchors_of(config)
        ),
        recipes=RECIPES,
        targets=targets,
        published_shape=Shape(
            task=TASK.name,
            classes=config.layers[config.heads()[0]].whole("classes"),
        ),
        parameter_count=parameter_count,
        forward_multiply_adds=forward_multiply_adds,
        weights=weights or {},
        explain_layer=f"body.layers.{config.heads()[0] - 2}",
        paper="arXiv:1804.02767",
        read_file=partial(read_weights, config=config),
    )


def darknet_entry(path: Path, *, name: str) -> Entry:
    """Return the entry of a user's own cfg."""
    config = read_cfg(path)
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = DarknetDetector(config).eval()
        network(torch.zeros(1, 3, config.height, config.width))
    return entry_of(
        name,
        config,
        tiny=TINY,
        parameter_count=sum(one.numel() for one in network.parameters()),
        forward_multiply_adds=counter.get_total_flops() // 2,
    )


def published(name: str, file: str) -> Published:
    """Return the weights that the authors published for COCO."""
    return Published(
        name=name,
        address=f"https://pjreddie.com/media/files/{file.rpartition('-')[0]}.weights",
        file=file,
        classes=coco.classes,
        licence="public domain, trained on COCO",
    )


TINY = written.yolov3_tiny(stem=4)
ENTRIES = (
    entry_of(
        "yolov3",
        written.yolov3(),
        tiny=written.yolov3(stages=((8, 1), (8, 1), (16, 1)), stem=4),
        parameter_count=61_949_149,
        forward_multiply_adds=32_932_037_632,
        targets=(
            Target(metric="ap50", value=0.553, source="416 pixels: the authors' page"),
            Target(metric="ap", value=0.330, source="608 pixels: table 3 of the paper"),
        ),
    ),
    entry_of(
        "yolov3-spp",
        written.yolov3(pyramid=True),
        tiny=written.yolov3(stages=((8, 1), (8, 1), (16, 1)), stem=4, pyramid=True),
        parameter_count=62_998_749,
        forward_multiply_adds=33_109_246_976,
        targets=(Target(metric="ap50", value=0.606, source="608 pixels: the authors' page"),),
    ),
    entry_of(
        "yolov3-tiny",
        written.yolov3_tiny(),
        tiny=TINY,
        parameter_count=8_852_366,
        forward_multiply_adds=2_782_480_896,
        targets=(Target(metric="ap50", value=0.331, source="416 pixels: the authors' page"),),
        weights={"coco": published("YOLOv3-tiny", "yolov3-tiny-dccea06f.weights")},
    ),
)
