"""A detector that finds red and green squares without training, and pictures and videos of them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from octavolt.contract import BoxPreprocessing, Network, Shape
from octavolt.networks import ssd
from octavolt.tasks.object_detection import DetectionBatch, Detections, Limits

CLASSES = ("red", "绿色")
SCORES = (0.875, 0.5)
Square = tuple[int, int, int]
"""Left, top and side in pixels."""


class SquareFinder(Network):
    """Finds what is red, surely, and what is green, less surely."""

    body: nn.Linear

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(1, len(CLASSES))
        self.limits = Limits(score=0.01, overlap=0.5, most=100)

    def forward(
        self, images: Float[Tensor, "batch 3 height width"], sizes: Int[Tensor, "batch 2"]
    ) -> Float[Tensor, "batch 3 height width"]:
        """Return the pictures."""
        del sizes
        return images

    def decode(self, outputs: Float[Tensor, "batch 3 height width"]) -> list[Detections]:
        """Return the squares of each."""
        return [self.found(one) for one in outputs]

    def found(self, image: Float[Tensor, "3 height width"]) -> Detections:
        boxes, scores, labels = [], [], []
        for label, score in enumerate(SCORES):
            if score < self.limits.score or label not in (self.limits.classes or (0, 1)):
                continue
            there = (image[label] > 0.6) & (image[1 - label] < 0.4) & (image[2] < 0.4)
            _, _, stats, _ = cv2.connectedComponentsWithStats(there.numpy().astype(np.uint8))
            for left, top, width, height, _ in stats[1:].tolist():
                boxes.append([left, top, left + width, top + height])
                scores.append(score)
                labels.append(label)
        most = self.limits.most
        return Detections(
            boxes=torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)[:most],
            scores=torch.tensor(scores, dtype=torch.float32)[:most],
            labels=torch.tensor(labels, dtype=torch.int64)[:most],
        )

    def losses(self, batch: DetectionBatch) -> dict[str, Tensor]:
        """Return none: it isn't trained."""
        raise NotImplementedError

    def head(self) -> Sequence[str]:
        """Return the prefix of the only layer."""
        return ("",)


def build(shape: Shape) -> SquareFinder:
    """Return the network, whatever the shape."""
    del shape
    return SquareFinder()


PREPROCESSING = BoxPreprocessing(height=64, width=64, padding=0)
ENTRY = replace(
    ssd.SSD300,
    name="squares",
    build=build,
    build_tiny=build,
    preprocessing=PREPROCESSING,
)


def write_run(folder: Path) -> Path:
    """Write the run folder of the detector."""
    folder.mkdir(parents=True)
    files: dict[str, Any] = {
        "settings": {"network": "tests.video.squares", "task": "object-detection"},
        "labels": {"classes": list(CLASSES)},
        "preprocessing": asdict(PREPROCESSING) | {"fit_anchors": False},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    save_file(SquareFinder().body.state_dict(), folder / "weights.safetensors")
    return folder


def painted(
    height: int, width: int, red: Sequence[Square] = (), green: Sequence[Square] = ()
) -> NDArray[np.uint8]:
    """Return a black RGB picture with squares."""
    pixels = np.zeros((height, width, 3), np.uint8)
    for channel, squares in enumerate((red, green)):
        for left, top, side in squares:
            pixels[top : top + side, left : left + side, channel] = 255
    return pixels


def write_png(path: Path, pixels: NDArray[np.uint8]) -> Path:
    """Write a picture, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _, encoded = cv2.imencode(".png", np.ascontiguousarray(pixels[:, :, ::-1]))
    path.write_bytes(encoded.tobytes())
    return path


def write_video(path: Path, frames: int = 8, rate: float = 25.0) -> Path:
    """Write a video of 64 x 48 pixels whose red square moves 4 pixels a frame."""
    writer = cv2.VideoWriter(
        str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"mp4v"), rate, (64, 48)
    )
    for number in range(frames):
        pixels = painted(48, 64, red=[(4 * (number % 10), 8, 24)])
        writer.write(np.ascontiguousarray(pixels[:, :, ::-1]))
    writer.release()
    return path


def read_video(path: Path) -> list[NDArray[np.uint8]]:
    """Return all frames of a video as RGB."""
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    frames: list[NDArray[np.uint8]] = []
    while True:
        fine, pixels = capture.read()
        if not fine:
            return frames
        frames.append(np.ascontiguousarray(pixels[:, :, ::-1]).astype(np.uint8))
