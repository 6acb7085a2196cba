from pathlib import Path

import pytest

from octavolt.contract import DataSet
from octavolt.data.text.documents import open_plain
from octavolt.errors import OctavoltError

LINES = "".join(f"line {number}\n" for number in range(100))


def texts(data: DataSet) -> dict[str, list[str]]:
    return {
        split: ["".join(samples.read(index)) for index in range(len(samples))]
        for split, samples in data.splits.items()
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_the_last_tenth_of_a_file_is_val(tmp_path: Path, encoding: str) -> None:
    lines = LINES.replace("line", "第几行")
    (tmp_path / "a.txt").write_bytes(lines.encode(encoding))
    data = open_plain(str(tmp_path / "a.txt"), seed=0)
    found = texts(data)
    assert found["train"][0] + found["val"][0] == lines
    assert found["train"][0].endswith("\n")
    assert 0.08 * len(lines) < len(found["val"][0]) <= 0.1 * len(lines)
    assert data.notes[-1] == "There is no test split: evaluation uses val."


@pytest.mark.parametrize(
    "names", [("train", "valid", "test"), ("wiki.train", "wiki.valid", "wiki.test")]
)
def test_files_named_as_splits_are_splits(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / f"{name}.txt").write_text(name)
    (tmp_path / "README.md").write_text("about")
    assert texts(open_plain(str(tmp_path), seed=0)) == {
        split: [name] for split, name in zip(("train", "val", "test"), names, strict=True)
    }


def test_one_title_with_the_word_train_makes_no_splits(tmp_path: Path) -> None:
    for name in ("the last train", "test of time", "emma", "persuasion", "lady susan"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n" * 9)
    found = texts(open_plain(str(tmp_path), seed=0))
    assert sum(map(len, found["train"])) > sum(map(len, found["val"])) > 0
    assert len("".join(found["train"] + found["val"])) == 9 * 55


def test_of_many_files_a_tenth_each_is_val_and_test(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.md").write_text(f"document {number}")
    found = texts(open_plain(str(tmp_path), seed=0))
    assert {split: len(documents) for split, documents in found.items()} == {
        "train": 24,
        "val": 3,
        "test": 3,
    }
    assert sorted(one for documents in found.values() for one in documents) == sorted(
        f"document {number}" for number in range(30)
    )
    assert found != texts(open_plain(str(tmp_path), seed=1))


def test_of_few_files_the_last_tenth_of_all_is_val(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(LINES)
    found = texts(open_plain(str(tmp_path), seed=0))
    assert len(found["train"]) == 3
    assert found["train"][2] + found["val"][0] == LINES


def test_a_file_that_is_no_text_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    (tmp_path / "b.txt").write_bytes(b"PK\3\4\0\0")
    (tmp_path / "c.txt").write_text("")
    faults = open_plain(str(tmp_path), seed=0).faults
    assert [(fault.kind, fault.file, fault.line) for fault in faults] == [
        ("not-text", "b.txt", 1),
        ("empty-text", "c.txt", None),
    ]


def test_a_short_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with pytest.raises(OctavoltError, match="6 bytes long, too short"):
        open_plain(str(tmp_path / "a.txt"), seed=0)


def test_the_digest_of_a_part_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINES)
    before = open_plain(str(tmp_path / "a.txt"), seed=0).splits
    digests = {split: samples.digest() for split, samples in before.items()}
    assert before["train"].measure().characters + before["val"].measure().characters == len(LINES)
    (tmp_path / "a.txt").write_text(LINES.replace("line 99", "LINE 99"))
    after = open_plain(str(tmp_path / "a.txt"), seed=0).splits
    assert after["train"].digest() == digests["train"]
    assert after["val"].digest() != digests["val"]
