"""Pictures made up in memory, for tests."""

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from octavolt.contract import Pictures


class MemoryPictures(Pictures):
    """Encoded pictures, or arrays, in a list."""

    def __init__(
        self, files: list[bytes | NDArray[np.uint8] | NDArray[np.uint16]], labels: list[int]
    ) -> None:
        self.files = files
        self.labels = np.array(labels, np.int64)

    def read(self, index: int) -> bytes | NDArray[np.uint8] | NDArray[np.uint16]:
        """Return the picture."""
        return self.files[index]

    def name(self, index: int) -> str:
        """Return a file name made of the index."""
        return f"photos/{index}.jpg"

    def select(self, indices: NDArray[np.int64]) -> "MemoryPictures":
        """Return only those pictures."""
        return MemoryPictures(
            [self.files[index] for index in indices], self.labels[indices].tolist()
        )


def photos(count: int, *, height: int = 40, width: int = 52) -> MemoryPictures:
    """Return JPEGs of colored noise, no two alike, with labels 0, 1, 2, 0, ..."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, height // 4, width // 4, 3), dtype=np.uint8)
    fine = coarse.repeat(4, axis=1).repeat(4, axis=2)
    files: list[bytes | NDArray[np.uint8] | NDArray[np.uint16]] = [
        simplejpeg.encode_jpeg(np.ascontiguousarray(one), quality=92) for one in fine
    ]
    return MemoryPictures(files, [index % 3 for index in range(count)])
