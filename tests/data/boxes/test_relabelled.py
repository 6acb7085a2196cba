import numpy as np

from octavolt.data.boxes.opened import open_boxes
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.relabel import joined, relabelled


def test_classes_of_other_data_are_matched_by_name() -> None:
    data = open_boxes("demo", seed=0)
    other = relabelled(data, ["none", *reversed(data.classes)])
    for name, split in data.splits.items():
        expected = len(data.classes) - split.boxes.labels
        assert other.splits[name].boxes.labels.tolist() == expected.tolist()
        assert other.splits[name].labels.tolist() == [0] * len(split)


def test_splits_together_keep_the_boxes_of_each_picture() -> None:
    data = open_boxes("demo", seed=0)
    parts = [*data.splits.values()]
    whole = joined(parts)
    assert isinstance(whole, BoxedPictures)
    assert len(whole) == sum(map(len, parts))
    rows = [(part, row) for part in parts for row in range(len(part))]
    for place in (0, len(parts[0]), len(whole) - 1):
        part, row = rows[place]
        assert whole.truth(place).boxes.tolist() == part.truth(row).boxes.tolist()
        assert np.array_equal(whole.read(place), part.read(row))
        assert whole.sizes[place].tolist() == part.sizes[row].tolist()
