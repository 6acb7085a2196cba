from pathlib import Path

import pytest

from octavolt.data.text.split_files import split_files, split_of_file
from octavolt.errors import OctavoltError

SUFFIXES = (".csv", ".json")


def found(root: Path, *names: str) -> tuple[tuple[str, int], ...] | None:
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    files = split_files(root, SUFFIXES)
    return files.files if files else None


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00001.parquet", 0),
        ("wiki.valid.tokens", 1),
        ("dev-v2.0.json", 1),
        ("my_test.csv", 2),
        ("training.csv", 0),
        ("contest.csv", None),
    ],
)
def test_a_file_is_of_the_split_that_a_word_of_its_name_says(name: str, split: int | None) -> None:
    assert split_of_file(name) == split


def test_files_of_a_later_kind_are_not_used_beside_a_training_split(tmp_path: Path) -> None:
    assert found(tmp_path, "train.csv", "test.csv", "train.json") == (
        ("train.csv", 0),
        ("test.csv", 2),
    )


def test_a_lone_file_of_any_name_is_the_data_set_beside_its_licence(tmp_path: Path) -> None:
    assert found(tmp_path, "reviews.csv", "LICENSE", "README.md") == (("reviews.csv", 0),)


def test_a_file_of_any_name_is_none_beside_other_data(tmp_path: Path) -> None:
    assert found(tmp_path, "categories.json", "corpus.txt") is None


def test_what_tells_of_the_data_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, "MANIFEST.json", "dataset_infos.json") is None


def test_files_in_the_folder_data_are_found(tmp_path: Path) -> None:
    assert found(tmp_path, "README.md", "data/train.csv") == (("data/train.csv", 0),)


def test_splits_without_one_to_train_on_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"no training split, only dev\.csv, test\.csv"):
        found(tmp_path, "dev.csv", "test.csv")
