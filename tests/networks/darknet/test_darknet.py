"""Our Darknet networks beside what OpenCV 4 made of the same weights, and their losses."""

import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from octavolt.contract import Shape
from octavolt.errors import OctavoltError
from octavolt.networks.darknet import (
    Config,
    DarknetDetector,
    anchors_of,
    build_detector,
    read_cfg,
    read_weights,
    write_cfg,
    write_weights,
    written,
)
from octavolt.networks.darknet.cfg import parse_cfg, with_anchors, with_classes
from octavolt.networks.darknet.layers import MaxPool
from octavolt.networks.darknet.weights import seen_pictures
from octavolt.tasks.boxes import intersection_over_union
from octavolt.tasks.object_detection import DetectionBatch, Frame, Limits, Scene

SHARED = Path(__file__).parents[4] / "shared/weights"
REAL = [
    pytest.param(folder, name, id=name)
    for folder, name in (
        ("yolov3-tiny", "yolov3-tiny"),
        ("yolo-fastest", "yolo-fastest-1.1"),
        ("yolo-fastest", "yolo-fastest-1.1-xl"),
    )
]
NET = "[net]\nwidth=64\nheight=64\nchannels=3\n"
LAST = "[convolutional]\nfilters=21\nsize=1\nactivation=linear\n"
HEAD = "[yolo]\nmask=0,1,2\nanchors=4,4, 8,8, 16,16\nclasses=2\nnum=3\n"


def real(folder: str, name: str) -> tuple[Config, Path, dict[str, Tensor]]:
    """Return a published cfg, its weights, and OpenCV's input and outputs."""
    if not (SHARED / folder).exists():
        pytest.skip(f"needs {folder} in ../shared")
    stored = np.load(SHARED / folder / "reference-opencv4" / f"{name}.npz")
    config = read_cfg(SHARED / folder / f"{name}.cfg")
    return (
        config,
        SHARED / folder / f"{name}.weights",
        {key: torch.from_numpy(stored[key]) for key in stored},
    )


@pytest.mark.parametrize(("folder", "name"), REAL)
def test_heads_are_those_of_opencv(folder: str, name: str) -> None:
    config, weights, stored = real(folder, name)
    network = DarknetDetector(config).eval()
    network.body.load_state_dict(read_weights(weights, config))
    with torch.inference_mode():
        (outputs,) = network(stored["blob"])
    reference = torch.cat([stored["o0"], stored["o1"]])
    side = config.width
    first, last = outputs[:, :2] / side, outputs[:, 2:4] / side
    objectness = outputs[:, 4:5].sigmoid()
    own = torch.cat(
        [(first + last) / 2, last - first, objectness, objectness * outputs[:, 5:].sigmoid()], dim=1
    )
    # OpenCV sets to nothing what is below its threshold.
    seen = reference[:, 5:] > 0
    assert seen.any()
    # As the issue asks: sums of a thousand products in another order.
    assert_close(own[:, :5], reference[:, :5], rtol=0, atol=1e-5)
    assert_close(own[:, 5:][seen], reference[:, 5:][seen], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("folder", "name"), REAL)
def test_written_files_are_the_ones_that_were_read(folder: str, name: str, tmp_path: Path) -> None:
    config, weights, _ = real(folder, name)
    network = DarknetDetector(config)
    network.body.load_state_dict(read_weights(weights, config))
    copy = tmp_path / "copy.weights"
    write_weights(copy, network.body, seen=seen_pictures(weights))
    # The revision is ours; the rest is the same bit for bit.
    assert copy.read_bytes()[12:] == weights.read_bytes()[12:]
    again = parse_cfg(write_cfg(config), source="again")
    assert [(one.kind, one.values) for one in again.layers] == [
        (one.kind, one.values) for one in config.layers
    ]


def test_tiny_is_laid_out_as_the_published_cfg() -> None:
    config, _, _ = real("yolov3-tiny", "yolov3-tiny")
    own = written.yolov3_tiny()
    assert str(DarknetDetector(own).body) == str(DarknetDetector(config).body)
    assert anchors_of(own) == anchors_of(config)


def test_classes_of_a_file_are_found_by_its_size(tmp_path: Path) -> None:
    config = written.yolov3_tiny(stem=2)
    torch.manual_seed(0)
    body = DarknetDetector(with_classes(config, 7)).body
    write_weights(tmp_path / "seven.weights", body)
    state = read_weights(tmp_path / "seven.weights", config)
    assert state.keys() == body.state_dict().keys()
    for name, tensor in body.state_dict().items():
        assert torch.equal(state[name], tensor), name


def test_a_file_of_another_length_is_refused_with_both_lengths(tmp_path: Path) -> None:
    config = written.yolov3_tiny(stem=2)
    path = tmp_path / "net.weights"
    write_weights(path, DarknetDetector(config).body)
    whole = path.read_bytes()
    for content, word in ((whole[:-40], "shorter"), (whole + b"\0" * 6, "longer")):
        path.write_bytes(content)
        with pytest.raises(OctavoltError) as caught:
            read_weights(path, config)
        assert word in str(caught.value)
        assert f"{len(whole):,} bytes expected, {len(content):,} found" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x08\x07\x12\x07pytorch" + b"x" * 50, "an ONNX file"),
        (b"PK\x03\x04" + b"x" * 50, "torch"),
        (b"[net]\nwidth=416\n", "a cfg"),
        (b"short", "only 5 bytes"),
    ],
)
def test_other_files_are_refused_by_their_kind(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "model.weights"
    path.write_bytes(content)
    with pytest.raises(OctavoltError, match=what):
        read_weights(path, written.yolov3_tiny(stem=2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NET + LAST + "[gru]\noutput=3\n" + HEAD, "line 9: .*gru"),
        (NET + LAST.replace("filters=21", "filters=many") + HEAD, "line 6: filters is 'many'"),
        (NET + LAST.replace("filters=21\n", "") + HEAD, "line 5: .* has no filters"),
        (NET + LAST.replace("linear", "tanhh") + HEAD, "line 8: activation is 'tanhh'"),
        (NET + LAST + HEAD.replace("classes=2", "classes=9"), "line 12: classes is '9'"),
        (NET + "[route]\nlayers=3\n" + LAST + HEAD, "line 6: layers is '3'"),
        (NET + LAST + HEAD.replace("mask=0,1,2", "mask=0,1,7"), "line 10: mask is '0,1,7'"),
        (LAST + HEAD, "line 1: a cfg begins with"),
        (NET + LAST, "has no \\[yolo\\]"),
        (NET + "what is this\n" + LAST + HEAD, "line 5: 'what is this'"),
        ("", "begins with \\[net\\]"),
    ],
)
def test_a_wrong_cfg_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my.cfg"
    path.write_text(text)
    with pytest.raises(OctavoltError, match=message):
        DarknetDetector(read_cfg(path))


def test_every_kind_of_layer_is_run() -> None:
    text = (
        NET
        + "[convolutional]\nfilters=8\nsize=3\nstride=2\npad=1\nbatch_normalize=1\n"
        + "activation=mish\n"
        + "[convolutional]\nfilters=8\nsize=3\ngroups=4\npadding=1\nactivation=relu\n"
        + "[dropout]\nprobability=0.1\n[shortcut]\nfrom=-3\nactivation=linear\n"
        + "[route]\nlayers=-1,-3\ngroups=2\ngroup_id=1\n[maxpool]\nsize=2\nstride=2\n"
        + "[upsample]\nstride=2\n[maxpool]\nsize=4\nstride=1\n"
        + LAST
        + HEAD
        + "scale_x_y=1.05\n"
    )
    network = DarknetDetector(parse_cfg(text, source="my.cfg")).eval()
    maps = network.body(torch.rand(2, 3, 64, 64))
    assert [one.shape for one in maps] == [(2, 21, 32, 32)]
    assert network(torch.rand(2, 3, 64, 64)).shape == (2, 3 * 32 * 32, 7)


@pytest.mark.parametrize(("size", "stride"), [(2, 2), (2, 1), (3, 1), (5, 1), (4, 1), (3, 2)])
def test_pooling_is_that_of_its_definition(size: int, stride: int) -> None:
    """Cell i takes size inputs from i * stride - (size - 1) // 2 on; outside is nothing."""
    section = parse_cfg(
        NET + f"[maxpool]\nsize={size}\nstride={stride}\n" + LAST + HEAD, source="a"
    )
    features = torch.randn(1, 2, 10, 10)
    found = MaxPool(section.layers[0], 2)(features)
    count = (10 - 1) // stride + 1
    assert found.shape == (1, 2, count, count)
    for row in range(count):
        for column in range(count):
            top, left = (one * stride - (size - 1) // 2 for one in (row, column))
            window = features[
                :, :, max(0, top) : max(0, top + size), max(0, left) : max(0, left + size)
            ]
            assert torch.equal(found[:, :, row, column], window.amax(dim=(2, 3)))


def batch(
    boxes: list[list[list[float]]], labels: list[list[int]], size: int = 64
) -> DetectionBatch:
    """Return pictures of noise with those boxes."""
    random = torch.Generator().manual_seed(0)
    frame = Frame(scale_x=1, scale_y=1, left=0, top=0, height=size, width=size)
    return DetectionBatch(
        images=torch.rand(len(boxes), 3, size, size, generator=random),
        sizes=torch.tensor([[size, size]] * len(boxes)),
        scenes=tuple(
            Scene(
                frame=frame,
                filled=(size, size),
                boxes=torch.tensor(own, dtype=torch.float32).reshape(-1, 4),
                labels=torch.tensor(kinds, dtype=torch.int64),
            )
            for own, kinds in zip(boxes, labels, strict=True)
        ),
    )


def tiny(**changes: object) -> DarknetDetector:
    """Return a small network of two heads and three classes."""
    torch.manual_seed(0)
    shape = Shape(task="object-detection", classes=3, **changes)  # type: ignore[arg-type]
    return build_detector(written.yolov3_tiny(stem=4), shape)


TWO = batch([[[4.0, 4, 30, 20], [40, 30, 60, 62]], [[10, 10, 50, 50]]], [[0, 2], [1]])


@pytest.mark.parametrize("box_loss", ["squared", "giou", "ciou"])
def test_boxes_are_learned(box_loss: str) -> None:
    network = tiny(
        box_loss=box_loss, anchors=((8, 8), (12, 12), (16, 16), (24, 16), (20, 32), (40, 40))
    )
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), 5e-3)
    for _ in range(120):
        optimizer.zero_grad()
        torch.stack([*network.losses(TWO).values()]).sum().backward()
        optimizer.step()
    network.eval()
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.train()  # two pictures are too few for running statistics
    network.limits = Limits(score=0.3, overlap=0.45, most=10)
    with torch.no_grad():
        found = network.decode(network(*TWO.inputs))
    for one, scene in zip(found, TWO.scenes, strict=True):
        assert sorted(one.labels.tolist()) == sorted(scene.labels.tolist())
        for box, label in zip(scene.boxes, scene.labels, strict=True):
            overlap = intersection_over_union(one.boxes[one.labels == label][:1], box[None])
            assert float(overlap) > 0.5


def test_losses_of_a_batch_are_means_over_its_pictures() -> None:
    network = tiny().eval()
    whole = network.losses(TWO)
    alone = [
        network.losses(
            DetectionBatch(
                images=TWO.images[row : row + 1],
                sizes=TWO.sizes[row : row + 1],
                scenes=TWO.scenes[row : row + 1],
            )
        )
        for row in range(2)
    ]
    for name, loss in whole.items():
        # Sums of a thousand cells in another order.
        assert_close(loss, (alone[0][name] + alone[1][name]) / 2, rtol=1e-5, atol=1e-5)


def test_a_box_is_told_to_the_anchor_of_its_shape_and_the_cell_of_its_center() -> None:
    network = tiny(anchors=((8, 8), (12, 12), (16, 16), (24, 16), (20, 32), (40, 40))).eval()
    images = batch([[[9.0, 20, 27, 36]]], [[1]])  # 18 x 16, center 18, 28: nearest is 16 x 16
    head = network.body.heads()[1]
    maps: list[Tensor] = []
    original = network.body.forward

    def noted(pictures: Tensor) -> list[Tensor]:
        maps.extend(one.detach().requires_grad_() for one in original(pictures))
        return maps

    network.body.forward = noted  # type: ignore[method-assign,assignment]
    losses = network.losses(images)
    (losses["box"] + losses["class"]).backward()
    assert maps[0].grad is None or not maps[0].grad.any()
    assert maps[1].grad is not None
    touched = maps[1].grad[0].reshape(3, 8, 4, 4).abs().sum(dim=1).nonzero().tolist()
    assert touched == [[head.mask.index(2), 28 // 16, 18 // 16]]


def test_a_picture_without_boxes_has_a_loss_of_objectness_alone() -> None:
    with torch.no_grad():
        losses = tiny().losses(batch([[], []], [[], []]))
    assert float(losses["objectness"]) > 0
    assert float(losses["box"]) == float(losses["class"]) == 0.0


def test_losses_are_in_fp32_under_autocast() -> None:
    network = tiny()
    with torch.autocast("cpu", torch.bfloat16):
        assert {one.dtype for one in network.losses(TWO).values()} == {torch.float32}
        assert network(*TWO.inputs).dtype == torch.float32


def test_limits_are_kept() -> None:
    network = tiny().eval()
    outputs = network(*TWO.inputs).detach()
    outputs[:, :, 4:] = torch.randn(
        (*outputs.shape[:2], 4), generator=torch.Generator().manual_seed(0)
    )
    network.limits = Limits(score=0.2, overlap=0.45, most=5, classes=(0, 2))
    for one in network.decode(outputs):
        assert 0 < len(one.scores) <= 5
        assert set(one.labels.tolist()) <= {0, 2}
        assert one.scores.tolist() == sorted(one.scores.tolist(), reverse=True)
        assert float(one.scores.min()) > 0.2
    network.limits = Limits(score=1.0, overlap=0.45, most=5)
    assert [len(one.scores) for one in network.decode(outputs)] == [0, 0]


def test_anchors_and_classes_are_written_into_the_run(tmp_path: Path) -> None:
    network = tiny(anchors=((8, 8), (12, 12), (16, 16), (24, 16), (20, 32), (40, 40)))
    files = network.files(["a", "b", "c"])
    assert files["network.names"] == "a\nb\nc\n"
    again = parse_cfg(files["network.cfg"], source="run")
    assert anchors_of(again)[-1] == (40.0, 40.0)
    assert str(DarknetDetector(again).body) == str(network.body)
    assert with_anchors(again, anchors_of(again)) == again


def test_a_header_of_the_first_format_is_read(tmp_path: Path) -> None:
    config = written.yolov3_tiny(stem=2)
    body = DarknetDetector(config).body
    path = tmp_path / "old.weights"
    write_weights(path, body)
    path.write_bytes(struct.pack("<4i", 0, 1, 0, 9) + path.read_bytes()[20:])
    assert torch.equal(
        read_weights(path, config)["layers.0.convolution.weight"],
        body.state_dict()["layers.0.convolution.weight"],
    )


@pytest.mark.skipif(
    not hasattr(cv2.dnn, "readNetFromDarknet"), reason="OpenCV 5 reads no Darknet files"
)
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(written.yolov3(), id="yolov3", marks=pytest.mark.slow),
        pytest.param(written.yolov3(pyramid=True), id="yolov3-spp", marks=pytest.mark.slow),
        pytest.param(written.yolov3_tiny(), id="yolov3-tiny"),
    ],
)
def test_written_files_are_read_by_opencv_to_the_same_heads(config: Config, tmp_path: Path) -> None:
    network = DarknetDetector(config).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in network.body.state_dict().items():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2, generator=random)
            elif name.endswith("norm.weight"):
                tensor.uniform_(0.5, 1.0, generator=random)
            elif tensor.is_floating_point():
                fan = tensor[0].numel() if tensor.ndim == 4 else 100
                tensor.normal_(0, (1 / fan) ** 0.5, generator=random)
    write_weights(tmp_path / "net.weights", network.body, seen=64)
    (tmp_path / "net.cfg").write_text(write_cfg(config))
    read = vars(cv2.dnn)["readNetFromDarknet"]  # OpenCV 5 has none, nor do its stubs
    net = read(str(tmp_path / "net.cfg"), str(tmp_path / "net.weights"))
    blob = torch.rand(1, 3, 96, 96, generator=random)
    net.setInput(blob.numpy())
    reference = torch.from_numpy(np.concatenate(net.forward(net.getUnconnectedOutLayersNames())))
    network.body.load_state_dict(read_weights(tmp_path / "net.weights", config))
    with torch.inference_mode():
        (own,) = network(blob)
    corners = own[:, :4] / 96
    boxes = torch.cat(
        [(corners[:, 2:] + corners[:, :2]) / 2, corners[:, 2:] - corners[:, :2]], dim=1
    )
    # Widths of several inputs are exponentials: a relative error stays one.
    assert_close(boxes, reference[:, :4], rtol=1e-4, atol=1e-5)
    assert_close(own[:, 4].sigmoid(), reference[:, 4], rtol=0, atol=1e-5)
