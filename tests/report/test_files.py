import json
from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.report.files import read_run
from tests.report.made_run import made_run, write, write_lines


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made_run(tmp_path / "fruit", epochs=2, pictures=20)


def fault(run: Path) -> str:
    with pytest.raises(OctavoltError) as raised:
        read_run(run)
    return str(raised.value).removeprefix(f"{run}/")


def test_last_line_that_was_cut_off_is_passed_over(run: Path) -> None:
    whole = read_run(run).steps
    with (run / "steps.jsonl").open("a") as file:
        file.write('{"step": 91, "lo')
    assert read_run(run).steps == whole


def test_last_line_cut_off_within_a_character_is_passed_over(run: Path) -> None:
    with (run / "events.jsonl").open("ab") as file:
        file.write('{"step": 13, "kind": "saved", "message": "中'.encode()[:-1])
    assert len(read_run(run).events) == 1


def test_malformed_line_is_named(run: Path) -> None:
    lines = (run / "steps.jsonl").read_text().splitlines(keepends=True)
    (run / "steps.jsonl").write_text("".join([*lines[:2], "nonsense\n", *lines[2:]]))
    assert fault(run) == "steps.jsonl, line 3: not JSON: Expecting value."


def test_missing_value_is_named_with_its_line(run: Path) -> None:
    write_lines(run / "epochs.jsonl", [{"epoch": 1, "step": 45, "train_loss": 1.0, "val": None}])
    assert fault(run) == "epochs.jsonl, line 1: 'seconds' is missing; it must be a number."


def test_value_of_another_kind_is_named_with_its_line(run: Path) -> None:
    write_lines(run / "events.jsonl", [{"step": "x", "kind": "saved"}])
    assert fault(run) == "events.jsonl, line 1: 'step' is \"x\"; it must be a whole number."


def test_malformed_document_is_named_with_its_line(run: Path) -> None:
    (run / "settings.json").write_text('{\n"schema": 1,\n]')
    assert fault(run).startswith("settings.json, line 3: not JSON: ")


def test_list_where_an_object_belongs_is_refused(run: Path) -> None:
    (run / "environment.json").write_text("[]")
    assert fault(run) == "environment.json: [] is not a JSON object."


def test_newer_schema_is_refused(run: Path) -> None:
    write(run / "settings.json", {"schema": 2})
    assert fault(run) == (
        "settings.json has schema 2; this octavolt reads 1. "
        "Use the octavolt that wrote it: pip install --upgrade octavolt"
    )


def test_confusion_matrix_of_other_classes_is_refused(run: Path) -> None:
    found = json.loads((run / "evaluation.json").read_text())
    found["evaluations"][0]["metrics"]["confusion"].pop()
    write(run / "evaluation.json", found)
    assert fault(run) == (
        "evaluation.json, 'evaluations' 1, 'metrics': 'confusion' must have 10 rows of 10 counts, "
        "one a class. Measure again: octavolt evaluate"
    )


def test_seconds_go_on_when_a_resumed_run_counts_anew(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()[:4]]
    for row, seconds in zip(rows, (1.0, 2.0, 0.5, 1.5), strict=True):
        row["seconds"] = seconds
    write_lines(run / "steps.jsonl", rows)
    assert [row.seconds for row in read_run(run).steps] == [1.0, 2.0, 2.5, 3.5]
