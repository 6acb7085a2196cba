from pathlib import Path

import pytest

from octavolt.contract import DataSet, Reading
from octavolt.data.text.checked import check_text
from octavolt.data.text.tables import open_rows
from octavolt.errors import OctavoltError

ROWS = [f"text {at},{'ab'[at % 2]}" for at in range(8)]


def opened(folder: Path, train: list[str], val: list[str] | None = None) -> DataSet:
    (folder / "train.csv").write_text("text,label\n" + "\n".join(train))
    (folder / "val.csv").write_text("text,label\n" + "\n".join(val or ["one,a", "two,b"]))
    return open_rows(str(folder), seed=0, reading=Reading())


def test_a_text_in_two_splits_is_a_warning(tmp_path: Path) -> None:
    data = opened(tmp_path, ROWS, ["one,a", "text 3,b"])
    assert [(fault.kind, fault.problem, fault.stops) for fault in check_text(data).faults] == [
        (
            "in-two-splits",
            "val text 'val.csv:3' is the same text as train text 'train.csv:5'",
            False,
        )
    ]


def test_a_text_with_two_labels_is_a_warning(tmp_path: Path) -> None:
    faults = check_text(opened(tmp_path, [*ROWS, "text 0,b"])).faults
    assert [(fault.kind, fault.stops) for fault in faults] == [("label-conflict", False)]
    assert faults[0].problem.endswith("labelled 'b' here and 'a' there")


def test_faults_that_stop_come_first_by_line(tmp_path: Path) -> None:
    data = opened(tmp_path, [*ROWS, "bad,", " ,a", "text 0,b", "worse,"])
    faults = check_text(data).faults
    assert [(fault.kind, fault.line) for fault in faults] == [
        ("wrong-row", 10),
        ("wrong-row", 13),
        ("empty-text", 11),
        ("label-conflict", None),
    ]


def test_what_is_usable_has_no_damaged_faults_but_keeps_others(tmp_path: Path) -> None:
    data = opened(tmp_path, ["text 0,a", "text 1,a", "bad,"])
    kinds = [fault.kind for fault in check_text(data).usable(data).faults]
    assert "wrong-row" not in kinds
    assert "too-few-classes" in kinds


def test_the_same_data_are_unchanged(tmp_path: Path) -> None:
    data = opened(tmp_path, ROWS)
    file = tmp_path / "data.tsv.gz"
    file.write_bytes(check_text(data).fingerprint(data))
    again = opened(tmp_path, ROWS)
    check_text(again).check_unchanged(file, again)
    assert check_text(again).fingerprint(again) == file.read_bytes()


@pytest.mark.parametrize(
    ("train", "problem"),
    [
        (ROWS[:-1], "train had 8 samples and has 7 now"),
        ([*ROWS[:-1], "other,b"], "train has other texts or labels, 8 samples as before"),
        ([*ROWS[:-1], "text 7,a"], "train has other texts or labels, 8 samples as before"),
        ([*ROWS, "new,c"], "the classes changed, 2 before and 3 now"),
    ],
    ids=["fewer", "text", "label", "class"],
)
def test_a_changed_split_is_named(tmp_path: Path, train: list[str], problem: str) -> None:
    data = opened(tmp_path, ROWS)
    file = tmp_path / "data.tsv.gz"
    file.write_bytes(check_text(data).fingerprint(data))
    now = opened(tmp_path, train)
    with pytest.raises(OctavoltError) as caught:
        check_text(now).check_unchanged(file, now)
    assert problem in str(caught.value)


def test_a_file_that_is_no_fingerprint_is_told(tmp_path: Path) -> None:
    data = opened(tmp_path, ROWS)
    (tmp_path / "data.tsv.gz").write_bytes(b"no gzip")
    with pytest.raises(OctavoltError, match="can't be read"):
        check_text(data).check_unchanged(tmp_path / "data.tsv.gz", data)


def test_figures_are_of_each_split_and_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    data = opened(tmp_path, ROWS)
    found = check_text(data, progress=lambda done, total: told.append((done, total))).to_json()
    assert found["splits"] == {
        "train": {"samples": 8, "characters": 48},
        "val": {"samples": 2, "characters": 6},
    }
    assert told == [(8, 10), (10, 10)]
