from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode
from torchvision.models import mobilenet_v3_large, resnet50
from torchvision.models.detection import (
    fasterrcnn_mobilenet_v3_large_fpn,
    fasterrcnn_resnet50_fpn,
    ssd300_vgg16,
    ssdlite320_mobilenet_v3_large,
)
from torchvision.models.detection._utils import SSDMatcher
from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.models.vgg import cfgs, make_layers
from torchvision.ops import FrozenBatchNorm2d, box_iou

from octavolt.contract import Entry, Published, Shape
from octavolt.errors import OctavoltError
from octavolt.networks import faster_rcnn, ssd
from octavolt.networks.torchvision_detector import TorchvisionDetector
from octavolt.networks.weights import Weights, fitting, read_weights, take
from octavolt.tasks.object_detection import DetectionBatch, Detections, Frame, Limits, Scene

CLASSES = 4
SHAPE = Shape(task="object-detection", classes=CLASSES)
ENTRIES = {entry.name: entry for entry in (*faster_rcnn.ENTRIES, *ssd.ENTRIES)}
each_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
TORCHVISION = {
    "faster-rcnn": fasterrcnn_resnet50_fpn,
    "faster-rcnn-mobilenet": fasterrcnn_mobilenet_v3_large_fpn,
    "ssd300": ssd300_vgg16,
    "ssdlite": ssdlite320_mobilenet_v3_large,
}
PROPOSALS = 80
SIZES = {"faster-rcnn": 96, "faster-rcnn-mobilenet": 128, "ssd300": 300, "ssdlite": 320}


def scene(filled: tuple[int, int], boxes: list[list[float]], labels: list[int]) -> Scene:
    return Scene(
        frame=Frame(scale_x=1.0, scale_y=1.0, left=0.0, top=0.0, height=filled[0], width=filled[1]),
        filled=filled,
        boxes=torch.tensor(boxes).reshape(-1, 4),
        labels=torch.tensor(labels, dtype=torch.int64),
    )


def batch_of(size: int, *, filled: bool = True, pictures: int = 3) -> DetectionBatch:
    """Return pictures, of which the second has no boxes; unless told, some fill only a part."""
    random = torch.Generator().manual_seed(3)
    sizes = [(size, size)] * 3 if filled else [(size, size), (size - 24, size - 7), (40, size)]
    part = size / 12
    scenes = (
        scene(sizes[0], [[part, part, 6 * part, 5 * part], [0, 0, size, size / 2]], [0, 3]),
        scene(sizes[1], [], []),
        scene(sizes[2], [[part, part, 4 * part, 3 * part]], [1]),
    )[:pictures]
    images = torch.rand(pictures, 3, size, size, generator=random)
    return DetectionBatch(images=images, sizes=torch.tensor(sizes[:pictures]), scenes=scenes)


def parity_batch(entry: Entry) -> DetectionBatch:
    """Return pictures for a whole network: SSD's fill the input, Faster R-CNN's some of it."""
    return batch_of(
        SIZES[entry.name],
        filled=entry.name.startswith("ssd"),
        pictures=2 if entry.name == "ssd300" else 3,
    )


def normalized(body: Any, batch: DetectionBatch) -> ImageList:
    """Return the pictures as torchvision makes them of several sizes, without resizing."""
    pictures = [
        body.transform.normalize(one[:, : int(height), : int(width)])
        for one, (height, width) in zip(batch.images, batch.sizes, strict=True)
    ]
    together = torch.zeros_like(batch.images)
    for place, one in zip(together, pictures, strict=True):
        place[:, : one.shape[1], : one.shape[2]] = one
    return ImageList(together, [(int(high), int(wide)) for high, wide in batch.sizes])


def random_state(body: nn.Module, gain: float) -> dict[str, Tensor]:
    """Return weights under which the answers are neither all alike nor unlimited.

    The gain of norms decides it, since the branches of ResNet-50 add up, and those of MobileNetV3
    hardly do.
    """
    random = torch.Generator().manual_seed(5)
    state = {}
    for name, one in body.state_dict().items():
        if name.endswith("running_var"):
            state[name] = 0.5 + torch.rand(one.shape, generator=random)
        elif name.endswith(("running_mean", "bias")):
            state[name] = 0.1 * torch.randn(one.shape, generator=random)
        elif one.ndim > 1:
            fan = one[0].numel()
            # Of variance 1.6 / fan: a uniform one from -1 to 1 has a third.
            uniform = torch.rand(one.shape, generator=random).mul_(2).sub_(1)
            state[name] = uniform.mul_((4.8 / fan) ** 0.5)
        elif name.endswith("weight"):  # of a norm
            state[name] = torch.full_like(one, gain)
        else:
            state[name] = one.clone()
    return state


def real(body: Any) -> Any:
    """Return a body that was built without values, with those that no state dict has."""
    body.to_empty(device="cpu")
    anchors = body.rpn.anchor_generator if hasattr(body, "rpn") else body.anchor_generator
    if isinstance(anchors, DefaultBoxGenerator):
        anchors._wh_pairs = anchors._generate_wh_pairs(len(anchors.aspect_ratios))
    else:
        anchors.cell_anchors = [
            anchors.generate_anchors(*one)
            for one in zip(anchors.sizes, anchors.aspect_ratios, strict=True)
        ]
    return body


def network_and_reference(name: str) -> tuple[TorchvisionDetector, Any]:
    """Return a network and torchvision's, with the same weights, for which no time is lost."""
    with torch.device("meta"):
        network = ENTRIES[name].build(SHAPE)
        reference = TORCHVISION[name](weights=None, weights_backbone=None, num_classes=CLASSES + 1)
    assert isinstance(network, TorchvisionDetector)
    tiny: Any = ENTRIES[name].build_tiny(SHAPE)
    network.mean, network.deviation = tiny.mean, tiny.deviation
    state = random_state(real(network.body), 0.4 if name == "faster-rcnn" else 1.0)
    if name == "ssd300":
        state["backbone.features.0.weight"] /= 100  # levels go up to 255
    for body in (network.body, real(reference)):
        body.load_state_dict(state)
        if name.startswith("faster"):  # as published, but fewer, for the time it takes
            body.rpn._post_nms_top_n = {"training": 2 * PROPOSALS, "testing": PROPOSALS}
            body.roi_heads.fg_bg_sampler.batch_size_per_image = PROPOSALS
    if isinstance(network, faster_rcnn.FasterRCNN):
        network.proposals = PROPOSALS
    return network, reference


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Small products gain nothing by two, and lose much where the processor is shared."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[TorchvisionDetector, Any]]:
    """Return each network and torchvision's, with the same weights."""
    return {name: network_and_reference(name) for name in TORCHVISION}


def reference_detections(reference: Any, batch: DetectionBatch) -> list[dict[str, Tensor]]:
    """Return torchvision's own answers, by its own path but for the resizing."""
    images = normalized(reference, batch)
    features = reference.backbone(images.tensors)
    if hasattr(reference, "rpn"):
        proposals, _ = reference.rpn(images, features)
        return list(reference.roi_heads(features, proposals, images.image_sizes)[0])
    maps = list(features.values())
    return list(
        reference.postprocess_detections(
            reference.head(maps), reference.anchor_generator(images, maps), images.image_sizes
        )
    )


@each_entry
def test_answers_are_those_of_torchvision(
    entry: Entry, pairs: Mapping[str, tuple[TorchvisionDetector, Any]]
) -> None:
    network, reference = pairs[entry.name]
    batch = parity_batch(entry)
    with torch.inference_mode():
        expected = reference_detections(reference.eval(), batch)
        found = network.eval().decode(network(*batch.inputs))
    assert [len(one.labels) for one in found] == [len(one["labels"]) for one in expected]
    assert sum(len(one.labels) for one in found) > 30
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours.labels, theirs["labels"] - 1, rtol=0, atol=0)
        # Of up to 320 pixels, by products that may be added in another order.
        assert_close(ours.boxes, theirs["boxes"], rtol=0, atol=2e-3)
        assert_close(ours.scores, theirs["scores"], rtol=1e-4, atol=1e-6)


@each_entry
def test_losses_are_those_of_torchvision(
    entry: Entry, pairs: Mapping[str, tuple[TorchvisionDetector, Any]]
) -> None:
    network, reference = pairs[entry.name]
    batch = parity_batch(entry)
    with torch.no_grad():
        torch.manual_seed(1)
        ours = network.train().losses(batch)
        torch.manual_seed(1)
        theirs = reference_losses(reference.train(), batch)
    assert set(ours) == set(theirs)
    for name, one in ours.items():
        assert float(one) > 0
        assert_close(one, theirs[name], rtol=1e-4, atol=1e-6)


def reference_losses(reference: Any, batch: DetectionBatch) -> dict[str, Tensor]:
    """Return torchvision's own losses, by its own path but for the resizing, with our names."""
    images = normalized(reference, batch)
    targets = [{"boxes": one.boxes, "labels": one.labels + 1} for one in batch.scenes]
    features = reference.backbone(images.tensors)
    if hasattr(reference, "rpn"):
        proposals, first = reference.rpn(images, features, targets)
        _, second = reference.roi_heads(features, proposals, images.image_sizes, targets)
        return {
            "objectness": first["loss_objectness"],
            "proposal_boxes": first["loss_rpn_box_reg"],
            "classification": second["loss_classifier"],
            "boxes": second["loss_box_reg"],
        }
    maps = list(features.values())
    outputs = reference.head(maps)
    anchors = reference.anchor_generator(images, maps)
    matches = [
        reference.proposal_matcher(box_iou(one["boxes"], own))
        if len(one["boxes"])
        else torch.full((len(own),), -1)
        for one, own in zip(targets, anchors, strict=True)
    ]
    losses = reference.compute_loss(targets, outputs, anchors, matches)
    return {"boxes": losses["bbox_regression"], "classification": losses["classification"]}


@each_entry
def test_size_and_work_are_as_published(entry: Entry) -> None:
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = entry.build(entry.published_shape).eval()
        network(*[one.to("meta") for one in entry.example_inputs(1)])
    assert sum(one.numel() for one in network.body.parameters()) == entry.parameter_count
    assert counter.get_total_flops() == 2 * entry.forward_multiply_adds
    assert network.get_submodule(entry.explain_layer) is not None


@each_entry
def test_names_of_published_weights_are_the_bodys(entry: Entry) -> None:
    published = entry.weights["coco"]
    assert isinstance(published, Published)
    assert len(published.classes()) == 90
    assert published.classes()[:2] == ("person", "bicycle")
    with torch.device("meta"):
        ours = entry.build(entry.published_shape).body.state_dict()
        theirs = TORCHVISION[entry.name](weights=None, weights_backbone=None).state_dict()
    # torchvision has frozen norms, which don't count batches, where it loads weights.
    frozen = entry.name.startswith("faster")
    expected = {
        name: one.shape
        for name, one in theirs.items()
        if not (frozen and name.endswith("num_batches_tracked"))
    }
    assert {name: one.shape for name, one in ours.items()} == expected


@each_entry
def test_head_is_what_depends_on_the_classes(entry: Entry) -> None:
    with torch.device("meta"):
        few, many = (
            entry.build_tiny(replace(SHAPE, classes=count)).body.state_dict() for count in (3, 7)
        )
        heads = tuple(entry.build_tiny(SHAPE).head())
    differing = [name for name in few if few[name].shape != many[name].shape]
    assert differing == [name for name in few if name.startswith(heads)] != []


def classifier(name: str) -> Any:
    """Return the network whose published weights the backbone of another takes."""
    if name == "faster-rcnn":
        network: Any = resnet50()
    elif name == "ssd300":
        network = nn.Module()
        network.features = make_layers(cfgs["D"])
    else:
        network = mobilenet_v3_large()
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.uniform_(norm.running_mean, -0.1, 0.1)  # type: ignore[arg-type]
            # So little that what is added to it matters.
            nn.init.uniform_(norm.running_var, 0.01, 0.02)  # type: ignore[arg-type]
            nn.init.uniform_(norm.weight, 0.05, 0.1)
    return network.eval()


@each_entry
def test_backbone_sees_what_the_classifier_saw(entry: Entry, tmp_path: Path) -> None:
    published = entry.weights["imagenet"]
    assert isinstance(published, Published)
    given = classifier(entry.name)
    torch.save(given.state_dict(), tmp_path / published.file)
    weights = read_weights(entry, str(tmp_path / published.file))
    assert weights.classes is None
    network: Any = entry.build(replace(SHAPE, sizes=weights.sizes)).eval()
    take(network, weights, ["a", "b", "c", "d"])
    backbone = network.body.backbone
    images = torch.randn(1, 3, 64, 64)
    with torch.inference_mode():
        if entry.name == "faster-rcnn":
            expected = nn.Sequential(*list(given.children())[:-2])(images)
            found = backbone.body(images)["3"]
        elif entry.name == "faster-rcnn-mobilenet":
            expected, found = given.features(images), backbone.body(images)["1"]
        elif entry.name == "ssd300":
            # Up to the last pooling; the third one rounds up here, of which 64 pixels know nothing.
            expected = given.features[:-1](images)
            found = backbone.extra[0][:-1](backbone.features(images))
        else:
            strided = given.features[13].block
            expected = strided[:3](given.features[:13](images))
            found = backbone.features[1][0][:2](backbone.features[0](images))
    assert float(expected.std()) > 0
    assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_norms_of_given_weights_are_constant_and_of_none_trained(tmp_path: Path) -> None:
    entry = replace(ENTRIES["faster-rcnn"], build=faster_rcnn.build_tiny)
    trained = entry.build(SHAPE)
    assert not trained.files(())
    frozen = entry.build(replace(SHAPE, sizes={"frozen_norms": True}))
    assert frozen.files(()) == {"config.json": {"frozen_norms": True}}
    norm = "backbone.body.layer1.0.bn1"
    assert f"{norm}.weight" in dict(trained.body.named_parameters())
    assert f"{norm}.weight" not in dict(frozen.body.named_parameters())
    for network, expected in ((trained, {}), (frozen, {"frozen_norms": True})):
        torch.save(network.body.state_dict(), tmp_path / "w.pth")
        weights = read_weights(entry, str(tmp_path / "w.pth"))
        assert weights.sizes == expected
        other = entry.build(replace(SHAPE, sizes=weights.sizes))
        taken = take(other, weights, ["a", "b", "c", "d"])
        assert (taken.missing, taken.unused) == ((), ())


def test_weights_of_torchvision_whose_norms_add_nothing_answer_alike(tmp_path: Path) -> None:
    entry = replace(ENTRIES["faster-rcnn"], build=faster_rcnn.build_tiny)
    published = entry.weights["coco"]
    assert isinstance(published, Published)
    shape = replace(SHAPE, sizes={"frozen_norms": True})
    given: Any = entry.build(shape).eval()
    for module in given.body.modules():
        if isinstance(module, FrozenBatchNorm2d):
            nn.init.uniform_(module.running_var, 1e-5, 1e-4)
            nn.init.uniform_(module.weight, 1e-3, 3e-3)
            module.eps = 0.0
    torch.save(given.body.state_dict(), tmp_path / published.file)
    network: Any = entry.build(shape).eval()
    take(network, read_weights(entry, str(tmp_path / published.file)), ["a", "b", "c", "d"])
    images = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        expected, found = (one.body.backbone(images)["0"] for one in (given, network))
    assert_close(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_partial_weights_of_another_network_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavolt.networks.weights.ENTRIES", {})  # whose they are isn't asked here
    network = ENTRIES["ssd300"].build_tiny(SHAPE)
    tensors = {f"other.{index}": torch.zeros(1) for index in range(26)}
    weights = Weights(tensors=tensors, classes=None, source="w.pth", partial=True)
    with pytest.raises(OctavoltError, match=r"another network's: 0 of 26 tensors fit"):
        fitting(network, weights, ["a", "b", "c", "d"])


def tiny_batch(size: int = 64) -> DetectionBatch:
    return batch_of(size)


def total(losses: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([*losses.values()]).sum()


@each_entry
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_overfits_one_batch(entry: Entry, precision: str) -> None:
    network = entry.build_tiny(SHAPE).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=5e-3)
    sums = []
    for _ in range(8):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            losses = network.losses(tiny_batch())
        assert all(one.dtype == torch.float32 for one in losses.values())
        loss = total(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums.append(float(loss.detach()))
    assert sums[-1] < 0.6 * sums[0]


@each_entry
def test_every_parameter_is_trained(entry: Entry) -> None:
    network = entry.build_tiny(SHAPE).train()
    total(network.losses(tiny_batch())).backward()
    assert [name for name, one in network.named_parameters() if one.grad is None] == []


@each_entry
def test_pictures_without_boxes_are_learned_from(entry: Entry) -> None:
    batch = tiny_batch()
    empty = replace(batch, scenes=tuple(scene(one.filled, [], []) for one in batch.scenes))
    network = entry.build_tiny(SHAPE).train()
    losses = network.losses(empty)
    total(losses).backward()
    assert all(bool(one.isfinite()) for one in losses.values())
    assert all(
        bool(one.grad.isfinite().all()) for one in network.parameters() if one.grad is not None
    )
    assert float(losses["boxes"].detach()) == 0


@each_entry
def test_single_picture_is_trained_on(entry: Entry) -> None:
    """The norms of the coarsest maps then see one value a channel."""
    network = entry.build_tiny(SHAPE).train()
    loss = total(network.losses(batch_of(64, pictures=1)))
    loss.backward()
    assert bool(loss.isfinite())


def in_bf16(network: Any, batch: DetectionBatch) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        boxes, scores = network(*batch.inputs)
        found = network.decode((boxes, scores))
    assert boxes.dtype == scores.dtype == torch.float32
    assert all(one.boxes.dtype == one.scores.dtype == torch.float32 for one in found)
    return boxes, scores


@pytest.mark.parametrize("entry", ssd.ENTRIES, ids=lambda one: one.name)
def test_boxes_of_ssd_are_exact_in_narrow_types(entry: Entry) -> None:
    """Convolutions alone are in bf16, of which 64 pixels would be at steps of a quarter."""
    network: Any = entry.build_tiny(SHAPE).eval()
    batch = tiny_batch()
    boxes, scores = in_bf16(network, batch)
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            offsets, logits, defaults = network.looked(*batch.inputs)
        assert_close(offsets.bfloat16().float(), offsets, rtol=0, atol=0)
        coder = network.body.box_coder
        expected = torch.stack([coder.decode_single(one, defaults) for one in offsets])
    assert_close(boxes, expected.clamp(0, 64), rtol=0, atol=0)
    assert_close(scores, logits.softmax(2)[..., 1:], rtol=0, atol=0)


@pytest.mark.parametrize("entry", faster_rcnn.ENTRIES, ids=lambda one: one.name)
def test_proposals_are_exact_in_narrow_types(entry: Entry) -> None:
    network: Any = entry.build_tiny(SHAPE).eval()
    images, sizes = (batch := tiny_batch()).inputs
    in_bf16(network, batch)
    rpn = network.body.rpn
    with torch.inference_mode():
        with torch.autocast("cpu", torch.bfloat16):
            maps = network.body.backbone(network.normalized(images, sizes))
            narrow, _ = network.proposed(maps, images, sizes)
            said = rpn.head(list(maps.values()))
        assert said[0][0].dtype == torch.bfloat16
        rpn.head.forward = lambda _: tuple([one.float() for one in kind] for kind in said)
        exact, _ = network.proposed(maps, images, sizes)
    for found, expected in zip(narrow, exact, strict=True):
        assert found.dtype == torch.float32
        assert_close(found, expected, rtol=0, atol=0)


@each_entry
def test_answers_of_a_batch_are_those_of_each_alone(entry: Entry) -> None:
    network = entry.build_tiny(SHAPE).eval()
    batch = tiny_batch()
    with torch.inference_mode():
        together = network(*batch.inputs)
        alone = [network(*(one[row : row + 1] for one in batch.inputs)) for row in range(3)]
    for whole, parts in zip(together, zip(*alone, strict=True), strict=True):
        # Products of another batch size may add in another order.
        assert_close(whole, torch.cat(parts), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("entry", faster_rcnn.ENTRIES, ids=lambda one: one.name)
def test_proposals_that_fill_up_are_never_detected(entry: Entry) -> None:
    network = entry.build_tiny(SHAPE).eval()
    assert isinstance(network, faster_rcnn.FasterRCNN)
    network.limits = replace(network.limits, score=0.0, overlap=1.0, most=10_000)
    network.body.rpn._post_nms_top_n["testing"] = 5
    batch = tiny_batch()
    with torch.inference_mode():
        boxes, scores = network(*batch.inputs)
        found = network.decode((boxes, scores))
        network.body.rpn.score_thresh = 1.1
        nothing = network.decode(network(*batch.inputs))
    assert boxes.shape == (3, 32, CLASSES, 4)
    assert not bool(boxes[:, 5:].any())
    assert not bool(scores[:, 5:].any())
    assert all(0 < len(one.labels) <= 5 * CLASSES for one in found)
    assert [len(one.labels) for one in nothing] == [0, 0, 0]


@each_entry
def test_padding_of_the_input_is_not_seen(entry: Entry) -> None:
    network = entry.build_tiny(SHAPE).eval()
    images = torch.rand(1, 3, 64, 64)
    sizes = torch.tensor([[40, 64]])
    other = images.clone()
    other[:, :, 40:] = 0.7
    with torch.inference_mode():
        for one, same in zip(network(images, sizes), network(other, sizes), strict=True):
            assert_close(one, same, rtol=0, atol=0)
            if one.shape[-1] == 4:
                assert float(one[..., 1::2].max()) <= 40


def test_limits_are_kept() -> None:
    network: Any = ENTRIES["ssdlite"].build_tiny(SHAPE)
    boxes = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 9], [30, 30, 40, 40]])
    scores = torch.tensor([[0.9, 0.1, 0.3, 0.0], [0.8, 0.0, 0.4, 0.0], [0.5, 0.6, 0.0, 0.0]])

    def found(**changes: Any) -> Detections:
        network.limits = replace(Limits(score=0.3, overlap=0.45, most=200), **changes)
        found: list[Detections] = network.decode((boxes[None], scores[None]))
        return found[0]

    assert found().labels.tolist() == [0, 1, 0, 2]
    assert_close(found().scores, torch.tensor([0.9, 0.6, 0.5, 0.4]))
    assert_close(found().boxes, boxes[[0, 2, 2, 1]])
    assert found(overlap=0.95).labels.tolist() == [0, 0, 1, 0, 2, 2]
    assert found(score=0.55).labels.tolist() == [0, 1]
    assert found(most=1).labels.tolist() == [0]
    assert found(classes=(1, 2)).labels.tolist() == [1, 2]


@pytest.mark.parametrize("size", [(300, 300), (320, 512), (512, 512), (268, 268)])
def test_default_boxes_fit_inputs_of_other_sizes(size: tuple[int, int]) -> None:
    height, width = size
    with torch.device("meta"):
        network: Any = ENTRIES["ssd300"].build(SHAPE).eval()
        maps = network.body.backbone(torch.zeros(1, 3, height, width))
    cells = [(one.shape[2], one.shape[3]) for one in maps.values()]
    boxes = ssd.default_boxes(
        network.body.anchor_generator, cells, network.strides, height=height, width=width
    )
    counts = network.body.anchor_generator.num_anchors_per_location()
    sizes = [rows * columns * count for (rows, columns), count in zip(cells, counts, strict=True)]
    for part, (rows, columns), count in zip(boxes.split(sizes), cells, counts, strict=True):
        centers = (part[::count, :2] + part[::count, 2:]) / 2
        steps = centers.reshape(rows, columns, 2)
        # The grid of cells is that of the input, give or take a part of a cell.
        beyond = steps[-1, -1] + steps[0, 0] - torch.tensor([width, height])
        assert bool((beyond.abs() < 2 * steps[0, 0]).all())


def test_matching_is_that_of_torchvision_whatever_the_boxes() -> None:
    """Boxes that share their best default box, that lie on each other, and pictures without any."""
    random = torch.Generator().manual_seed(0)
    first = torch.rand(200, 2, generator=random) * 80
    defaults = torch.cat([first, first + 5 + 30 * torch.rand(200, 2, generator=random)], dim=1)
    boxes, labels = [], []
    for count in (0, 1, 7, 25, 0, 3):
        corner = torch.rand(count, 2, generator=random) * 80
        sides = 3 + 40 * torch.rand(count, 2, generator=random)
        boxes.append(torch.cat([corner, corner + sides], dim=1))
        labels.append(torch.randint(1, 5, (count,), generator=random))
    boxes[5][1:] = boxes[5][0]
    wanted, names, found = ssd.matched(boxes, labels, defaults)
    reference = SSDMatcher(0.5)
    for row, (own, classes) in enumerate(zip(boxes, labels, strict=True)):
        if not len(own):
            assert not bool(found[row].any())
            assert not bool(names[row].any())
            continue
        chosen = reference(box_iou(own, defaults))
        assert_close(found[row], chosen >= 0, rtol=0, atol=0)
        assert_close(names[row], torch.where(chosen >= 0, classes[chosen], 0), rtol=0, atol=0)
        assert_close(wanted[row][found[row]], own[chosen[chosen >= 0]], rtol=0, atol=0)
    assert int(found.sum()) > 36


def test_hardest_are_three_of_background_for_each_found() -> None:
    surprise = torch.tensor([[9.0, 1, 2, 3, 4, 8], [5, 6, 7, 8, 9, 1], [1, 2, 3, 4, 5, 6]])
    found = torch.zeros(3, 6, dtype=torch.bool)
    found[0, 0] = found[2, 1] = found[2, 2] = True
    expected = torch.tensor([[0, 0, 0, 1, 1, 1], [0] * 6, [1] * 6]).bool()
    assert_close(ssd.hardest(surprise, found) & ~found, expected & ~found, rtol=0, atol=0)


def test_default_boxes_of_evaluation_are_of_use_to_training() -> None:
    network = ENTRIES["ssdlite"].build_tiny(SHAPE)
    with torch.inference_mode():
        network.eval()(*tiny_batch().inputs)
    total(network.train().losses(tiny_batch())).backward()
