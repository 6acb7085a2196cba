from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.runs import Lines, read_fields, read_json, read_lines


def test_json_nested_without_end_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(OctavoltError) as raised:
        read_json(path)
    assert str(raised.value) == f"{path} is nested too deeply to be read."


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [row["step"] for row in read_lines(path)] == [1, 2]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(OctavoltError, match=r"steps\.jsonl, line 2: not JSON"):
        [*read_lines(path)]


def test_lines_that_are_not_to_be_kept_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    lines = Lines(path, keep=lambda row: bool(row["step"] <= 1))
    lines.add({"step": 9})
    lines.close()
    assert [row["step"] for row in read_lines(path)] == [1, 9]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds list, not an object."),
        ("{}", ": network is missing; it must be str. The run was edited or is not whole."),
        (
            '{"network": 5}',
            ": network is 5; it must be str. The run was edited or is not whole.",
        ),
    ],
)
def test_a_file_of_a_run_that_was_edited_is_named_with_the_field(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(content)
    with pytest.raises(OctavoltError) as raised:
        read_fields(path, network=str)
    assert str(raised.value).removeprefix(str(path)).lstrip() == message
