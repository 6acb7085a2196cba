"""Pictures with annotated boxes. Those of all pictures lie end to end in a few arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64, UInt64
from numpy.typing import NDArray

from octavolt.contract import Samples
from octavolt.data.decode import Encoded
from octavolt.data.pictures import Stamped
from octavolt.tasks.object_detection import Truth


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """The boxes of many pictures, end to end."""

    ends: Int64[np.ndarray, " pictures"]
    """After the last box of each picture."""
    corners: Float64[np.ndarray, "boxes 4"]
    """x1, y1, x2, y2 in pixels of the upright picture."""
    labels: Int64[np.ndarray, " boxes"]
    crowd: Bool[np.ndarray, " boxes"]
    difficult: Bool[np.ndarray, " boxes"]
    areas: Float64[np.ndarray, " boxes"]
    """In square pixels, of the outline where one is annotated."""

    def rows(self, picture: int) -> slice:
        """Return where the boxes of a picture stand."""
        return slice(int(self.ends[picture - 1]) if picture else 0, int(self.ends[picture]))

    def truth(self, picture: int) -> Truth:
        """Return the boxes of a picture."""
        rows = self.rows(picture)
        return Truth(
            boxes=torch.from_numpy(self.corners[rows]),
            labels=torch.from_numpy(self.labels[rows]),
            crowd=torch.from_numpy(self.crowd[rows]),
            difficult=torch.from_numpy(self.difficult[rows]),
            areas=torch.from_numpy(self.areas[rows]),
        )

    def select(self, pictures: NDArray[np.int64]) -> "Boxes":
        """Return only the boxes of those pictures, in that order."""
        counts = np.diff(self.ends, prepend=0)[pictures]
        ends = np.cumsum(counts)
        # Each row is its place among all that are chosen, moved to where its picture's boxes stand.
        rows = np.arange(counts.sum()) + np.repeat(self.ends[pictures] - ends, counts)
        return Boxes(
            ends=ends,
            corners=self.corners[rows],
            labels=self.labels[rows],
            crowd=self.crowd[rows],
            difficult=self.difficult[rows],
            areas=self.areas[rows],
        )


def end_to_end(parts: Sequence[Boxes]) -> Boxes:
    """Return the boxes of several splits, one after the other."""
    firsts = np.cumsum([0, *(len(one.labels) for one in parts)])
    return Boxes(
        ends=np.concatenate([one.ends + first for one, first in zip(parts, firsts, strict=False)]),
        corners=np.concatenate([one.corners for one in parts]),
        labels=np.concatenate([one.labels for one in parts]),
        crowd=np.concatenate([one.crowd for one in parts]),
        difficult=np.concatenate([one.difficult for one in parts]),
        areas=np.concatenate([one.areas for one in parts]),
    )


@dataclass(frozen=True, kw_only=True)
class Annotated:
    """Where the annotations of pictures stand."""

    files: tuple[str, ...]
    file_of: Int64[np.ndarray, " pictures"]
    """Indices into `files`."""
    lines: Int64[np.ndarray, " pictures"]
    """0 where a file has no lines."""

    def select(self, pictures: NDArray[np.int64]) -> "Annotated":
        """Return only those pictures, in that order; the names are shared."""
        return Annotated(
            files=self.files, file_of=self.file_of[pictures], lines=self.lines[pictures]
        )

    def place(self, picture: int) -> tuple[str, int | None]:
        """Return file and line."""
        return self.files[int(self.file_of[picture])], int(self.lines[picture]) or None


class BoxedPictures(Stamped):
    """The pictures of one split with their boxes; a picture may have none."""

    def __init__(
        self,
        pictures: Samples,
        sizes: Int64[np.ndarray, "pictures 2"],
        boxes: Boxes,
        annotated: Annotated | None = None,
    ) -> None:
        self.pictures = pictures
        self.sizes = sizes
        """Height and width of each upright picture; zeros where it can't be read."""
        self.boxes = boxes
        self.annotated = annotated
        self.labels = pictures.labels
        """Zeros: the boxes have the labels."""

    def truth(self, index: int) -> Truth:
        """Return the boxes of a picture."""
        return self.boxes.truth(index)

    def read(self, index: int) -> Encoded:
        """Return the bytes of an encoded picture, or its pixels."""
        content: Encoded = self.pictures.read(index)
        return content

    def name(self, index: int) -> str:
        """Return the file relative to the data set."""
        return self.pictures.name(index)

    def select(self, indices: NDArray[np.int64]) -> "BoxedPictures":
        """Return only those pictures, in that order."""
        chosen = self.pictures.select(indices)
        annotated = self.annotated.select(indices) if self.annotated is not None else None
        return BoxedPictures(chosen, self.sizes[indices], self.boxes.select(indices), annotated)

    def annotation(self, index: int) -> tuple[str, int | None]:
        """Return file and line of a picture's annotation; its own name if they aren't known."""
        return self.annotated.place(index) if self.annotated else (self.name(index), None)

    def stamps(self) -> UInt64[np.ndarray, " pictures"]:
        """Return a number a picture: another one as soon as its file changes."""
        assert isinstance(self.pictures, Stamped)
        return self.pictures.stamps()

    def relabelled(self, index: NDArray[np.int64]) -> "BoxedPictures":
        """Return the pictures with the labels that `index` has in place of their boxes'."""
        boxes = replace(self.boxes, labels=index[self.boxes.labels])
        return BoxedPictures(self.pictures, self.sizes, boxes, self.annotated)
