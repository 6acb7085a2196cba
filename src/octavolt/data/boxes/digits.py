"""scikit-learn's real handwritten digits, set on canvases of several sizes."""

import numpy as np
from jaxtyping import Int64, UInt8, UInt64
from numpy.typing import NDArray

from octavolt.contract import DataSet
from octavolt.data.boxes.raw import completed, divided
from octavolt.data.boxes.samples import BoxedPictures, Boxes
from octavolt.data.demo import WHITE
from octavolt.data.pictures import Stamped
from octavolt.data.splits import TRAIN

CANVASES = ((160, 160), (128, 192), (208, 144))
"""Heights and widths in pixels."""
PICTURES = 300
MOST_DIGITS = 6
TRIES = 20
SCALES = (3, 4, 6)
"""How many times larger than its 8 x 8 pixels a digit is drawn."""


class Canvases(Stamped):
    """Pictures in memory, of several sizes."""

    def __init__(
        self, canvases: tuple[UInt8[np.ndarray, "_ _"], ...], rows: Int64[np.ndarray, " pictures"]
    ) -> None:
        self.canvases = canvases
        self.rows = rows
        self.labels = np.zeros(len(rows), np.int64)

    def read(self, index: int) -> NDArray[np.uint8]:
        """Return the pixels."""
        return self.canvases[int(self.rows[index])]

    def name(self, index: int) -> str:
        """Return the number of the picture."""
        return f"digits:{int(self.rows[index])}"

    def select(self, indices: NDArray[np.int64]) -> "Canvases":
        """Return only those pictures, in that order."""
        return Canvases(self.canvases, self.rows[indices])

    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return zeros: what is in memory is looked at anew."""
        return np.zeros(len(self), np.uint64)


def recognises(source: str) -> bool:
    """Tell whether the demo is meant; a folder of that name is './demo'."""
    return source == "demo"


def open_digits(source: str, seed: int) -> DataSet:
    """Return canvases with one to six digits each, which hardly overlap."""
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    ink = np.round(digits.images * (255 / WHITE)).astype(np.uint8)
    random = np.random.Generator(np.random.SFC64([seed]))
    canvases, corners, labels, ends = [], [], [], []
    for turn in range(PICTURES):
        canvas = np.zeros(CANVASES[turn % len(CANVASES)], np.uint8)
        taken = np.zeros_like(canvas, dtype=bool)
        for _ in range(1 + int(random.integers(MOST_DIGITS))):
            which = int(random.integers(len(ink)))
            box = drawn(canvas, taken, ink[which], random)
            if box is not None:
                corners.append(box)
                labels.append(int(digits.target[which]))
        canvases.append(canvas)
        ends.append(len(labels))
    boxes = np.array(corners, np.float64)
    pictures = BoxedPictures(
        Canvases(tuple(canvases), np.arange(PICTURES, dtype=np.int64)),
        np.array([one.shape for one in canvases], np.int64),
        Boxes(
            ends=np.array(ends, np.int64),
            corners=boxes,
            labels=np.array(labels, np.int64),
            crowd=np.zeros(len(labels), bool),
            difficult=np.zeros(len(labels), bool),
            areas=(boxes[:, 2:] - boxes[:, :2]).prod(axis=1),
        ),
    )
    split_of = np.full(PICTURES, TRAIN, np.int64)
    split_of, notes = completed(split_of, [pictures.name(one) for one in range(PICTURES)], seed)
    return DataSet(
        source=source,
        format="demo",
        classes=tuple("0123456789"),
        splits=divided(pictures, split_of),
        notes=("scikit-learn's handwritten digits on canvases of three sizes.", *notes),
        mirrorable=False,
    )


def drawn(
    canvas: UInt8[np.ndarray, "height width"],
    taken: NDArray[np.bool_],
    ink: UInt8[np.ndarray, "8 8"],
    random: np.random.Generator,
) -> tuple[int, int, int, int] | None:
    """Draw a digit where nothing is, and return the box around its ink; None without room."""
    scale = SCALES[int(random.integers(len(SCALES)))]
    large = ink.repeat(scale, axis=0).repeat(scale, axis=1)
    rows, columns = np.flatnonzero(large.any(axis=1)), np.flatnonzero(large.any(axis=0))
    large = large[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = large.shape
    for _ in range(TRIES):
        top = int(random.integers(canvas.shape[0] - height + 1))
        left = int(random.integers(canvas.shape[1] - width + 1))
        place = slice(top, top + height), slice(left, left + width)
        if not taken[place].any():
            canvas[place] = large
            taken[place] = True
            return left, top, left + width, top + height
    return None
