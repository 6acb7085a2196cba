"""Darknet's .weights: a short header, then all numbers of all layers in fp32, nothing else."""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from octavolt.errors import OctavoltError
from octavolt.networks.darknet.cfg import Config, with_classes
from octavolt.networks.darknet.layers import Body, Convolutional

VERSION = (0, 2, 5)
"""Of the files written here: the one of the published YOLOv3."""
MOST_CLASSES = 100_000
OTHER_FILES = (
    (b"PK\x03\x04", "a file of torch or a zip archive"),
    (b"\x80\x02", "a pickle"),
    (b"\x08", "an ONNX file"),
    (b"\x89HDF", "a file of Keras"),
    (b"[net]", "a cfg"),
)


def tensors_in_order(body: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield names and tensors of a body in the order of the file."""
    state = body.state_dict()
    for place, layer in enumerate(body.layers):  # type: ignore[arg-type]
        if not isinstance(layer, Convolutional):
            continue
        names = ["convolution.bias"]
        if layer.norm is not None:
            names = ["norm.bias", "norm.weight", "norm.running_mean", "norm.running_var"]
        for name in (*names, "convolution.weight"):
            full = f"layers.{place}.{name}"
            yield full, state[full]


def read_weights(path: Path, config: Config) -> dict[str, Tensor]:
    """Return the body's state dict that a .weights file holds, of as many classes as it has.

    Raises `OctavoltError` with the bytes expected and found if it is no file of this network.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OctavoltError(f"{path} can't be read: {error.strerror}.") from error
    refuse_others(path, content)
    header = header_bytes(content)
    found = len(content) - header
    classes = class_count(found, config)
    if classes is None:
        expected = header + 4 * numbers_of(config)
        raise OctavoltError(
            f"{path} is {'shorter' if len(content) < expected else 'longer'} than the network's "
            f"weights: {expected:,} bytes expected, {len(content):,} found, and no other number of "
            "classes fits. Fetch it again, or give the .weights that belong to this cfg."
        )
    with torch.device("meta"):
        body = Body(with_classes(config, classes))
    numbers = np.frombuffer(content, "<f4", offset=header)
    tensors, first = {}, 0
    for name, like in tensors_in_order(body):
        values = numbers[first : first + like.numel()].astype(np.float32)
        tensors[name] = torch.from_numpy(values).reshape(like.shape)
        first += like.numel()
    counters = {
        name: torch.zeros((), dtype=torch.int64)
        for name in body.state_dict()
        if name.endswith("num_batches_tracked")
    }
    return tensors | counters


def refuse_others(path: Path, content: bytes) -> None:
    """Raise if a file is of another kind, as far as its beginning tells."""
    if len(content) < 16:
        raise OctavoltError(f"{path} is no .weights file: it has only {len(content)} bytes.")
    major, minor, _ = struct.unpack("<3i", content[:12])
    if 0 <= major < 1000 and 0 <= minor < 1000 and not content.startswith(b"[net]"):
        return
    what = next(
        (what for start, what in OTHER_FILES if content.startswith(start)), "something else"
    )
    raise OctavoltError(
        f"{path} is no .weights file of Darknet but {what}: its version would be {major}.{minor}. "
        "Give the .weights file, or a state dict (.safetensors, .pth)."
    )


def header_bytes(content: bytes) -> int:
    """Return the length of the header: pictures seen count in 64 bits from version 0.2 on."""
    major, minor, _ = struct.unpack("<3i", content[:12])
    return 20 if 10 * major + minor >= 2 else 16


def numbers_of(config: Config) -> int:
    """Return how many numbers the weights of a network are."""
    with torch.device("meta"):
        return sum(one.numel() for _, one in tensors_in_order(Body(config)))


def class_count(size_bytes: int, config: Config) -> int | None:
    """Return the number of classes with which the weights have that size; None if there is none.

    The layers before the heads have as many filters as classes ask for; the rest don't change.
    """
    own = config.layers[config.heads()[0]].whole("classes")
    if size_bytes == 4 * numbers_of(config):
        return own
    one, two = (numbers_of(with_classes(config, count)) for count in (1, 2))
    more, rest = divmod(size_bytes - 4 * one, 4 * (two - one))
    return more + 1 if rest == 0 and 0 <= more < MOST_CLASSES else None


def write_weights(path: Path, body: nn.Module, *, seen: int = 0) -> None:
    """Write a body's weights as Darknet and OpenCV 4 read them; `seen` pictures were trained on."""
    with path.open("wb") as file:
        file.write(struct.pack("<3iq", *VERSION, seen))
        for _, tensor in tensors_in_order(body):
            file.write(tensor.detach().cpu().float().contiguous().numpy().astype("<f4").tobytes())


def seen_pictures(path: Path) -> int:
    """Return on how many pictures the weights of a file were trained, as it says itself."""
    content = path.read_bytes()[:20]
    form = "<q" if header_bytes(content) == 20 else "<i"
    return int(struct.unpack_from(form, content, 12)[0])
