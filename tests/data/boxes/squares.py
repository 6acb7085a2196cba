"""Black pictures with white rectangles, and the boxes around them."""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octavolt.contract import BoxPreprocessing, Recipe
from octavolt.data.boxes.samples import BoxedPictures, Boxes
from octavolt.data.pictures import Stamped
from tests.data.memory import MemoryPictures

Box = tuple[float, float, float, float]
SIZES = ((60, 90), (90, 60), (64, 64), (200, 130), (20, 80), (33, 47))
"""Height and width of the pictures."""


class MemoryStamped(MemoryPictures, Stamped):
    """Pictures in a list that never change."""

    def select(self, indices: NDArray[np.int64]) -> "MemoryStamped":
        """Return only those pictures."""
        return MemoryStamped([self.files[index] for index in indices], [0] * len(indices))

    def stamps(self) -> NDArray[np.uint64]:
        """Return zeros."""
        return np.zeros(len(self), np.uint64)


def recipe(**settings: object) -> Recipe:
    """Return a recipe that augments as told, with 2 pictures an update."""
    base: dict[str, object] = {
        "source": "a test",
        "epochs": 1,
        "batch_size": 2,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "mirror": False,
    }
    return Recipe(**{**base, **settings})  # type: ignore[arg-type]


def fits(size: int = 64) -> list[BoxPreprocessing]:
    """Return one of each way in which pictures are fitted, with black padding."""
    return [
        BoxPreprocessing(height=size, width=size, fit="letterbox", padding=0),
        BoxPreprocessing(height=size, width=size, fit="stretch", padding=0),
        BoxPreprocessing(height=size // 2, width=size, fit="shorter-side", padding=0),
    ]


def painted(height: int, width: int, boxes: list[Box]) -> NDArray[np.uint8]:
    """Return a black picture with white rectangles."""
    pixels = np.zeros((height, width, 3), np.uint8)
    for left, top, right, bottom in boxes:
        pixels[int(top) : int(bottom), int(left) : int(right)] = 255
    return pixels


def turned(pixels: NDArray[np.uint8]) -> bytes:
    """Return a JPEG of a picture that is stored lying on its side."""
    image = Image.fromarray(np.ascontiguousarray(np.rot90(pixels)))
    exif = Image.Exif()
    exif[0x0112] = 6
    file = BytesIO()
    image.save(file, "JPEG", quality=95, exif=exif.tobytes())
    return file.getvalue()


def boxed(
    files: list[bytes | NDArray[np.uint8] | NDArray[np.uint16]],
    sizes: list[tuple[int, int]],
    boxes: list[list[Box]],
    *,
    crowd: list[bool] | None = None,
) -> BoxedPictures:
    """Return pictures with those boxes; the label of a box is its number within the picture."""
    corners = np.array([box for one in boxes for box in one], np.float64).reshape(-1, 4)
    return BoxedPictures(
        MemoryStamped(files, [0] * len(files)),
        np.array(sizes, np.int64).reshape(-1, 2),
        Boxes(
            ends=np.cumsum([len(one) for one in boxes]).astype(np.int64),
            corners=corners,
            labels=np.array([at for one in boxes for at in range(len(one))], np.int64),
            crowd=np.array(crowd or [False] * len(corners), bool),
            difficult=np.zeros(len(corners), bool),
            areas=(corners[:, 2:] - corners[:, :2]).prod(axis=1),
        ),
    )


def squares(*, jpeg: bool = False) -> BoxedPictures:
    """Return a picture of each size; the rectangles are nowhere in the middle."""
    files: list[bytes | NDArray[np.uint8] | NDArray[np.uint16]] = []
    boxes: list[list[Box]] = []
    for height, width in SIZES:
        own: list[Box] = [
            (width // 8, height // 8, width // 2, height // 2),
            (width * 3 // 4, height * 2 // 3, width - 1, height - 2),
        ]
        pixels = painted(height, width, own)
        files.append(turned(pixels) if jpeg else pixels)
        boxes.append(own)
    return boxed(files, list(SIZES), boxes)
