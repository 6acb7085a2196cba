from functools import partial
from pathlib import Path

import numpy as np
import pytest

from octavolt.data.pictures import FilePictures, packed
from octavolt.data.splits import TEST, TRAIN, VAL, Division, Found, divided, naturally

SIZES = (30, 10, 3)


def found(names: list[str], labels: list[int], split_of: list[int]) -> Found:
    packed_names, _ = packed(((name.encode(), ()) for name in names), columns=0)
    return Found(
        build=partial(FilePictures, Path("root"), packed_names),
        names=["cat", "dog", "emu", "fox"],
        labels=np.array(labels),
        split_of=np.array(split_of),
    )


def undivided(*, backwards: bool = False) -> Found:
    rows = [(f"{label}/{row}", label) for label, size in enumerate(SIZES) for row in range(size)]
    rows = rows[::-1] if backwards else rows
    return found([name for name, _ in rows], [label for _, label in rows], [TRAIN] * len(rows))


def members(division: Division) -> dict[str, set[str]]:
    return {
        split: {pictures.name(index) for index in range(len(pictures))}
        for split, pictures in division.splits.items()
    }


def test_each_class_gives_a_tenth_to_val_and_test_and_at_least_one() -> None:
    splits = divided(undivided(), seed=0).splits
    assert np.bincount(splits["train"].labels).tolist() == [24, 8, 1]
    assert np.bincount(splits["val"].labels).tolist() == [3, 1, 1]
    assert np.bincount(splits["test"].labels).tolist() == [3, 1, 1]


def test_the_splits_share_no_picture_and_lose_none() -> None:
    splits = members(divided(undivided(), seed=0))
    assert sum(map(len, splits.values())) == len(set.union(*splits.values())) == sum(SIZES)


def test_the_same_seed_gives_the_same_splits_in_any_order_of_listing() -> None:
    assert members(divided(undivided(), seed=3)) == members(
        divided(undivided(backwards=True), seed=3)
    )


def test_another_seed_gives_other_splits() -> None:
    assert members(divided(undivided(), seed=0)) != members(divided(undivided(), seed=1))


def test_the_split_of_a_picture_is_the_same_for_ever() -> None:
    """A run that is resumed by a later version must not train on what it was tested on."""
    assert members(divided(undivided(), seed=0))["val"] == {
        "0/2",
        "0/3",
        "0/9",
        "1/5",
        "2/1",
    }


def test_val_is_taken_from_train_if_only_test_is_given() -> None:
    given = found([f"p{row}" for row in range(44)], [0, 1] * 22, [TRAIN] * 40 + [TEST] * 4)
    division = divided(given, seed=0)
    assert {split: len(pictures) for split, pictures in division.splits.items()} == {
        "train": 36,
        "val": 4,
        "test": 4,
    }
    assert division.notes == (
        "val was taken from train: 36 train, 4 val, 4 test (seed 0, stratified).",
    )


def test_without_a_test_split_evaluation_uses_val() -> None:
    division = divided(found(["a", "b", "c", "d"], [0, 1] * 2, [TRAIN] * 2 + [VAL] * 2), seed=0)
    assert list(division.splits) == ["train", "val"]
    assert division.notes == ("There is no test split: evaluation uses val.",)


def test_a_class_that_train_lacks_is_left_out_with_a_warning() -> None:
    given = found(list("abcdef"), [0, 2, 0, 1, 2, 1], [TRAIN, TRAIN, VAL, VAL, VAL, VAL])
    division = divided(given, seed=0)
    assert division.classes == ("cat", "emu")
    assert division.splits["val"].labels.tolist() == [0, 1]
    assert [(fault.problem, fault.stops) for fault in division.faults if fault.file == "val"] == [
        ("class 'dog' is not in train; its 2 pictures are left out", False)
    ]


def test_a_class_that_val_lacks_is_a_warning() -> None:
    given = found(list("abcde"), [0, 0, 1, 1, 0], [TRAIN] * 4 + [VAL])
    faults = divided(given, seed=0).faults
    assert [(fault.file, fault.problem, fault.stops) for fault in faults] == [
        ("val", "class 'dog' has no picture in val", False)
    ]


def test_a_class_too_small_to_be_split_stops() -> None:
    given = found(list("abcdefgh"), [0, 0, 0, 0, 0, 0, 1, 1], [TRAIN] * 8)
    faults = divided(given, seed=0).faults
    assert [(fault.kind, fault.problem, fault.stops) for fault in faults] == [
        (
            "class-too-small",
            "class 'dog' has 2 pictures; it needs at least 3 to be split: add pictures, or give "
            "val and test folders of your own",
            True,
        )
    ]


def test_a_class_of_one_picture_is_a_warning_if_the_splits_are_given() -> None:
    given = found(list("abcde"), [0, 0, 1, 0, 1], [TRAIN] * 3 + [VAL] * 2)
    faults = divided(given, seed=0).faults
    assert [(fault.problem, fault.stops) for fault in faults] == [
        ("class 'dog' has only 1 picture in train", False)
    ]


def test_a_single_class_stops() -> None:
    faults = divided(found(list("abcd"), [1] * 4, [TRAIN] * 3 + [VAL]), seed=0).faults
    assert [(fault.problem, fault.stops) for fault in faults] == [
        ("1 class ('dog'); at least 2 are needed", True)
    ]


@pytest.mark.parametrize(
    "names",
    [
        ["1", "2", "10"],
        ["a2b", "a10b", "b"],
        ["img", "Img 1", "img 1b"],
        ["7", "0" * 5000 + "8", "9" * 5000],
    ],
)
def test_names_sort_naturally(names: list[str]) -> None:
    assert naturally(reversed(names)) == names
