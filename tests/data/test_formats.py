import numpy as np

from octavolt.data import FORMATS, open_data
from octavolt.data.check import check


def test_the_demo_is_the_digits_of_scikit_learn() -> None:
    data = open_data("demo")
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 1439,
        "val": 179,
        "test": 179,
    }
    assert data.classes == tuple("0123456789")
    assert not data.mirrorable
    pixels = data.splits["train"].read(0)
    assert isinstance(pixels, np.ndarray)
    assert pixels.shape == (8, 8)
    assert pixels.dtype == np.uint8
    assert max(int(np.max(data.splits["val"].read(row))) for row in range(179)) == 255


def test_the_demo_has_no_fault() -> None:
    assert check(open_data("demo"), threads=2).faults == ()


def test_only_one_format_takes_a_source_but_a_folder_of_idx_files() -> None:
    for source, name in (("demo", "demo"), ("hub:a/b", "hub")):
        assert [one.name for one in FORMATS.values() if one.recognises(source)] == [name]


def test_the_folder_format_stands_last_as_it_takes_any_folder() -> None:
    assert list(FORMATS)[-1] == "folder"
