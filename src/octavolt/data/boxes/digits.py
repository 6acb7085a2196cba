"""scikit-learn's handwritten digits on canvases of several sizes: real data, always at hand."""

from functools import partial
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from octavolt.contract import DataSet
from octavolt.data.boxes.files import Files
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.boxes.settled import Origin, settled
from octavolt.data.demo import WHITE
from octavolt.data.pictures import ArrayPictures, Stack
from octavolt.data.splits import TRAIN

CANVASES = ((160, 160), (160, 224), (224, 160), (192, 256), (240, 240))
"""Heights and widths in pixels."""
MOST_DIGITS = 8
SMALLEST_PIXELS, LARGEST_PIXELS = 28, 72
"""Side of the square that a digit of 8 x 8 pixels is enlarged to."""
INK = 0.25
"""Share of white from which on a pixel belongs to a digit, and so to its box."""
MOST_OVERLAP_PIXELS = 3
"""How far the boxes of two digits may reach into each other, along either axis."""
TRIES = 40
"""Places that are tried for a digit; then it goes onto the next canvas."""
SEED = 0
"""Of the canvases; that of the splits is the user's."""


class Canvas:
    """A picture that digits are set on."""

    def __init__(self, height: int, width: int, generator: np.random.Generator) -> None:
        ground, grain = generator.integers(0, 60), generator.integers(1, 8)
        noise = generator.integers(0, grain, (height, width), endpoint=True)
        self.pixels = (ground + noise).astype(np.uint8)
        self.generator = generator
        self.boxes: list[tuple[Corners, int]] = []

    def place(self, digit: UInt8[np.ndarray, "8 8"], label: int) -> bool:
        """Set a digit where there is room, and return whether there is."""
        side = int(self.generator.integers(SMALLEST_PIXELS, LARGEST_PIXELS, endpoint=True))
        ink = cv2.resize(
            digit.astype(np.float32) / WHITE, (side, side), interpolation=cv2.INTER_CUBIC
        ).clip(0, 1)
        rows, columns = (np.flatnonzero((ink > INK).any(axis=axis)) for axis in (1, 0))
        height, width = self.pixels.shape
        for _ in range(TRIES):
            top = int(self.generator.integers(0, height - side, endpoint=True))
            left = int(self.generator.integers(0, width - side, endpoint=True))
            box = (
                float(left + columns[0]),
                float(top + rows[0]),
                float(left + columns[-1] + 1),
                float(top + rows[-1] + 1),
            )
            if all(apart(box, other) for other, _ in self.boxes):
                bright = float(self.generator.integers(170, 255, endpoint=True))
                part = self.pixels[top : top + side, left : left + side]
                part[:] = np.maximum(part, part + ink * (bright - part)).round().astype(np.uint8)
                self.boxes.append((box, label))
                return True
        return False


def apart(one: Corners, other: Corners) -> bool:
    """Tell whether two boxes reach into each other by no more than is allowed."""
    shared = [min(one[2 + axis], other[2 + axis]) - max(one[axis], other[axis]) for axis in (0, 1)]
    return min(shared) <= MOST_OVERLAP_PIXELS


def canvases(seed: int = SEED) -> list[Canvas]:
    """Return the pictures: each of the 1,797 digits stands on one, so no two splits share any."""
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    generator = np.random.default_rng(seed)
    waiting = generator.permutation(len(digits.target)).tolist()
    found: list[Canvas] = []
    while waiting:
        height, width = CANVASES[int(generator.integers(len(CANVASES)))]
        canvas = Canvas(height, width, generator)
        for _ in range(int(generator.integers(1, MOST_DIGITS, endpoint=True))):
            if not waiting:
                break
            image = digits.images[waiting[-1]].astype(np.uint8)
            if canvas.place(image, int(digits.target[waiting[-1]])):
                waiting.pop()
        found.append(canvas)
    return found


def recognises(files: Files) -> bool:
    """Tell whether the demo is meant; a folder of that name is './demo'."""
    return files.source == "demo"


def open_digits(files: Files, seed: int) -> DataSet:
    """Return the digits on their canvases, made anew in memory."""
    import sklearn.datasets

    found = sorted(canvases(), key=lambda one: one.pixels.shape)
    origin = Path(sklearn.datasets.__file__).parent / "data" / "digits.csv.gz"
    gathered = Gathered(declared=True)
    gathered.classes = tuple(str(digit) for digit in range(10))
    source = gathered.source("demo")
    stacks: list[Stack] = []
    for shape in dict.fromkeys(one.pixels.shape for one in found):
        own = [one for one in found if one.pixels.shape == shape]
        title = f"digits-{shape[0]}x{shape[1]}"
        stacks.append(
            Stack(title=title, origin=origin, pixels=np.stack([one.pixels for one in own]))
        )
        for row, canvas in enumerate(own):
            height, width = canvas.pixels.shape
            name = f"{title}:{row}".encode()
            picture = gathered.picture(name, split=TRAIN, source=source, height=height, width=width)
            for corners, label in canvas.boxes:
                gathered.box(picture, corners, label)
    gathered.notes.append("scikit-learn's handwritten digits, set on canvases of several sizes.")
    return settled(
        gathered,
        Origin(source=files.source, format="demo", root=None, mirrorable=False),
        build=partial(ArrayPictures, tuple(stacks)),
        seed=seed,
    )


FORMAT = BoxFormat(
    name="demo",
    description="scikit-learn's 1,797 handwritten digits, set on canvases of several sizes",
    recognises=recognises,
    open=open_digits,
)
