import numpy as np
import pytest

from octavolt.contract import DataSet
from octavolt.data.boxes.digits import CANVASES, MOST_OVERLAP_PIXELS
from octavolt.data.boxes.opened import open_boxes


@pytest.fixture(scope="module")
def demo() -> DataSet:
    return open_boxes("demo")


def test_every_digit_stands_on_one_canvas(demo: DataSet) -> None:
    labels = np.concatenate([pictures.boxes.labels for pictures in demo.splits.values()])
    # What scikit-learn's description of the digits says of each class.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (demo.faults, demo.mirrorable, [*demo.splits]) == ((), False, ["train", "val", "test"])


def test_canvases_have_their_sizes_and_at_most_eight_digits(demo: DataSet) -> None:
    train = demo.splits["train"]
    assert {tuple(size) for size in train.sizes.tolist()} == set(CANVASES)
    assert all(train.read(row).shape == tuple(train.sizes[row]) for row in range(len(train)))
    counts = np.diff(train.boxes.ends, prepend=0)
    assert (counts.min(), counts.max()) == (1, 8)


def test_ink_is_bright_in_boxes_and_nowhere_else(demo: DataSet) -> None:
    train = demo.splits["train"]
    for row in range(0, len(train), 10):
        rest = train.read(row).astype(int)
        for x1, y1, x2, y2 in train.boxes.corners[train.boxes.rows(row)].astype(int).tolist():
            assert train.read(row)[y1:y2, x1:x2].max() >= 160
            rest[y1:y2, x1:x2] = 0
        # Ground and grain reach 67; a quarter of the brightest ink over it is 114.
        assert rest.max() <= 115


def test_boxes_hardly_overlap(demo: DataSet) -> None:
    train = demo.splits["train"]
    for row in range(len(train)):
        own = train.boxes.corners[train.boxes.rows(row)]
        shared = np.minimum(own[:, None, 2:], own[None, :, 2:]) - np.maximum(
            own[:, None, :2], own[None, :, :2]
        )
        between = shared.min(axis=2)[~np.eye(len(own), dtype=bool)]
        assert between.max(initial=0) <= MOST_OVERLAP_PIXELS


def test_the_seed_moves_pictures_between_splits_and_changes_none(demo: DataSet) -> None:
    other = open_boxes("demo", seed=1)
    assert other.splits["val"].name(0) != demo.splits["val"].name(0)
    where = {other.splits["train"].name(row): row for row in range(len(other.splits["train"]))}
    shared = [row for row in range(50) if demo.splits["train"].name(row) in where]
    for row in shared:
        again = other.splits["train"].read(where[demo.splits["train"].name(row)])
        assert np.array_equal(demo.splits["train"].read(row), again)
