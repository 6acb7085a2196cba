import json
import random
from pathlib import Path
from typing import Any

import pytest

from octavolt.data.boxes import json_stream
from octavolt.data.boxes.json_stream import elements
from octavolt.errors import OctavoltError


def document(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    values: list[Any] = [
        1.5e-7,
        -12,
        True,
        None,
        'x\u2028\\"é]',
        [],
        {},
        [[1], {"a": [2]}],
        "long " * 40,
    ]
    return {
        "info": {"a": 1},
        "number": 12345,
        "list": [chance.choice(values) for _ in range(60)],
        "empty": [],
        "last": 7,
    }


@pytest.mark.parametrize("part", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("indent", [None, 2])
def test_elements_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_stream, "PART_CHARACTERS", part)
    whole = document(part)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(whole, indent=indent, ensure_ascii=False), encoding="utf-8")
    found = [*elements(file)]
    assert [one.value for one in found if one.key == "list"] == whole["list"]
    assert {one.key: one.value for one in found if not one.number} == {
        key: value for key, value in whole.items() if key != "list"
    }
    assert [one.number for one in found if one.key == "list"] == [*range(1, 61)]


def test_lines_are_those_where_elements_begin(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{\n"a": [\n1, 2,\n\n{"b":\n3}\n], "c": 4}')
    assert [one.line for one in elements(tmp_path / "a.json")] == [3, 3, 5, 7]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": [1,\n2,\n]}', 3),
        ('{"a": [1,\n2', 2),
        ('{"a": [{"b":\n "c}]}', 2),
        ('{"a": 1}\n}', 2),
        ('\n{"a" 1}', 2),
        ("{1: 2}", 1),
        ("[1]", 1),
        ("", 1),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(OctavoltError, match=rf"'a\.json', line {line}: no JSON that can be read"):
        [*elements(tmp_path / "a.json")]


def test_an_endless_element_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "PART_CHARACTERS", 16)
    monkeypatch.setattr(json_stream, "MOST_CHARACTERS", 1024)
    (tmp_path / "a.json").write_text('{"a": ["' + "x" * 5000)
    with pytest.raises(OctavoltError, match="one element has more than"):
        [*elements(tmp_path / "a.json")]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(OctavoltError, match="is no text in UTF-8"):
        [*elements(tmp_path / "a.json")]
