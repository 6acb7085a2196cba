"""torchvision's detectors behind our calls give what they give by themselves."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from octavolt.contract import Shape
from octavolt.networks import faster_rcnn, ssd
from octavolt.networks.torchvision_detector import (
    FasterRcnnDetector,
    TorchvisionDetector,
    targets_of,
)
from octavolt.tasks.object_detection import DetectionBatch, Frame, Limits, Scene

each_detector = pytest.mark.parametrize(
    ("entry", "side"),
    [
        pytest.param(ssd.SSD300, 300, id="ssd300", marks=pytest.mark.slow),
        pytest.param(ssd.SSDLITE, 160, id="ssdlite"),
        pytest.param(faster_rcnn.FASTER_RCNN, 96, id="faster-rcnn"),
        pytest.param(faster_rcnn.FASTER_RCNN_MOBILENET, 96, id="faster-rcnn-mobilenet"),
    ],
)


def built(entry: Any, side: int) -> TorchvisionDetector:
    """Return a network of four classes with random weights, whose own resizing does nothing."""
    torch.manual_seed(0)
    network: TorchvisionDetector = entry.build(Shape(task="object-detection", classes=4))
    # Fresh logits are alike; spread, so that boxes of several classes pass the threshold.
    for name, parameter in network.body.named_parameters():
        if name.endswith("cls_score.weight"):
            nn.init.normal_(parameter, std=0.02)
        if entry is ssd.SSD300 and name.startswith("head.classification"):
            nn.init.normal_(parameter, std=1e-3)  # no score so near 1 that others equal it
    transform = network.body.transform
    transform.min_size, transform.max_size, transform.fixed_size = (side,), 4 * side, None
    transform.torch_choice = lambda sizes: sizes[0]  # draws no random number
    return network


def batch(side: int, *, boxes: bool = True) -> DetectionBatch:
    """Return two pictures, of which the second has no box."""
    random = torch.Generator().manual_seed(1)
    frame = Frame(scale_x=1, scale_y=1, left=0, top=0, height=side, width=side)
    own = [[10.0, 12, 50, 60], [5, 5, 30, 28]] if boxes else []
    corners = torch.tensor(own).reshape(-1, 4)
    labels = torch.tensor([0, 3] if boxes else [], dtype=torch.int64)
    scenes = [
        Scene(frame=frame, filled=(side, side), boxes=corners, labels=labels),
        Scene(frame=frame, filled=(side, side), boxes=corners[:0], labels=labels[:0]),
    ]
    return DetectionBatch(
        images=torch.rand(2, 3, side, side, generator=random),
        sizes=torch.tensor([[side, side]] * 2),
        scenes=tuple(scenes),
    )


@each_detector
def test_boxes_are_those_of_torchvision(entry: Any, side: int) -> None:
    network = built(entry, side).eval()
    pictures = batch(side)
    with torch.inference_mode():
        own = network.decode(network(*pictures.inputs))
        reference = network.body([*pictures.images])
    assert any(len(one["scores"]) for one in reference)
    for one, other in zip(own, reference, strict=True):
        # The same operations in the same order.
        assert torch.equal(one.boxes, other["boxes"])
        assert torch.equal(one.scores, other["scores"])
        assert torch.equal(one.labels, other["labels"] - 1)


@each_detector
def test_losses_are_those_of_torchvision(entry: Any, side: int) -> None:
    network = built(entry, side).train()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.Dropout):
            module.eval()  # the same in both passes
    pictures = batch(side)
    torch.manual_seed(2)
    own = network.losses(pictures)
    torch.manual_seed(2)  # of the anchors and proposals that are sampled
    reference = network.body([*pictures.images], targets_of(pictures))
    names = {
        "box": ("bbox_regression", "loss_box_reg"),
        "class": ("classification", "loss_classifier"),
        "objectness": ("loss_objectness",),
        "proposal": ("loss_rpn_box_reg",),
    }
    assert len(own) == len(reference)
    for name, loss in own.items():
        (other,) = [reference[one] for one in names[name] if one in reference]
        assert torch.equal(loss, other), name


TINY = [
    pytest.param(ssd.build_tiny, id="ssd"),
    pytest.param(faster_rcnn.build_tiny, id="faster-rcnn"),
]


def tiny(build: Any) -> TorchvisionDetector:
    torch.manual_seed(0)
    network: TorchvisionDetector = build(Shape(task="object-detection", classes=4))
    return network


@pytest.mark.parametrize("build", TINY)
def test_boxes_are_in_fp32_under_autocast(build: Any) -> None:
    network = tiny(build)
    pictures = batch(64)
    with torch.autocast("cpu", torch.bfloat16):
        assert {one.dtype for one in network.losses(pictures).values()} == {torch.float32}
        outputs = network.eval()(*pictures.inputs)
    assert outputs.dtype == torch.float32
    assert all(one.boxes.dtype == torch.float32 for one in network.decode(outputs))


@pytest.mark.parametrize("build", TINY)
def test_pictures_without_boxes_are_learned_from(build: Any) -> None:
    network = tiny(build).train()
    losses = network.losses(batch(64, boxes=False))
    loss = torch.stack([*losses.values()]).sum()
    loss.backward()
    assert bool(loss.isfinite())
    assert float(losses["box"].detach()) == 0.0


@pytest.mark.parametrize("build", TINY)
def test_limits_are_kept(build: Any) -> None:
    network = tiny(build).eval()
    network.limits = Limits(score=0.0, overlap=0.5, most=7, classes=(1, 3))
    with torch.inference_mode():
        found = network.decode(network(*batch(64).inputs))
    for one in found:
        assert len(one.scores) == 7
        assert set(one.labels.tolist()) <= {1, 3}


def test_what_lies_beside_a_picture_changes_nothing() -> None:
    network = tiny(faster_rcnn.build_tiny).eval()
    assert isinstance(network, FasterRcnnDetector)
    images = torch.rand(1, 3, 64, 96, generator=torch.Generator().manual_seed(3))
    sizes = torch.tensor([[64, 70]])
    other = images.clone()
    other[..., 70:] = 1.0
    with torch.inference_mode():
        one, two = network(images, sizes), network(other, sizes)
    assert_close(one, two, rtol=0, atol=0)
    assert float(one[..., 2].max()) <= 70


def test_as_many_proposals_come_out_however_few_there_are() -> None:
    network = tiny(faster_rcnn.build_tiny).eval()
    network.body.rpn.nms_thresh = 0.01
    with torch.inference_mode():
        outputs: Tensor = network(*batch(64).inputs)
    most = network.body.rpn.post_nms_top_n()
    assert outputs.shape == (2, most, 25)
    shares = outputs[:, :, 20:].softmax(dim=-1)
    lacking = shares[:, -1]
    assert torch.equal(lacking, torch.tensor([[1.0, 0, 0, 0, 0]] * 2))
