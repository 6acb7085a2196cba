"""What `predict` is asked: a line, a row, a question; and an error for each that is none."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavolt.contract import Input, Reading
from octavolt.data.text.inputs import read_inputs
from octavolt.data.text.samples import Question, Row

LABELS, QUESTIONS = "text-classification", "question-answering"


def found(*named: object, task: str = LABELS, reading: Reading | None = None) -> list[Input]:
    return [*read_inputs([str(one) for one in named], task=task, reading=reading or Reading())]


def plain(inputs: list[Input]) -> list[tuple[str, Any]]:
    """Return names and contents, an error as 'error: message', a row as its texts."""
    return [(one.name, shown(one.content)) for one in inputs]


def shown(content: Any) -> Any:
    if isinstance(content, Exception):
        return f"error: {content}"
    if isinstance(content, Question):
        return content.identity, content.question, content.context
    return content.texts if isinstance(content, Row) else content


def test_a_plain_file_holds_a_text_a_line(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_bytes("\ufeffgood 你好\r\n\n  \n last 😀".encode())
    assert plain(found(file)) == [
        (f"{file}:1", "good 你好"),
        (f"{file}:2", "error: the line is empty"),
        (f"{file}:3", "error: the line is empty"),
        (f"{file}:4", " last 😀"),
    ]


def test_standard_input_is_read_by_lines(standard_input: Callable[[bytes], None]) -> None:
    standard_input("\ufeffone 你好\r\n\ntwo".encode() + b" \xff\n")
    assert plain(found("-")) == [
        ("standard input:1", "one 你好"),
        ("standard input:2", "error: the line is empty"),
        ("standard input:3", "two \ufffd"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.csv", 'label,text\nx,"good, 你好"\ny,\n,"two\nlines"\n', (2, 3, 4)),
        ("a.tsv", "label\ttext\nx\tgood, 你好\ny\t\n\ttwo\\nlines\n", None),
        (
            "a.jsonl",
            '{"label": "x", "text": "good, 你好"}\n{"text": ""}\n{"text": "two\\nlines"}\n',
            (1, 2, 3),
        ),
    ],
)
def test_a_table_holds_a_text_a_row(
    name: str, content: str, lines: tuple[int, ...] | None, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    inputs = plain(found(file))
    assert [content for _, content in inputs][:2] == [("good, 你好",), ("",)]
    assert len(inputs) == 3
    if lines is not None:
        assert [name for name, _ in inputs] == [f"{file}:{line}" for line in lines]
        assert inputs[2][1] == ("two\nlines",)


def test_columns_are_those_that_the_run_reads(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("a,b,text\nfirst,second,other\n")
    assert plain(found(file, reading=Reading(text_column="a,b"))) == [
        (f"{file}:2", ("first", "second"))
    ]
    assert plain(found(file, reading=Reading(text_column="text"))) == [(f"{file}:2", ("other",))]
    (name, message), *more = plain(found(file, reading=Reading(text_column="c")))
    assert (name, more) == (str(file), [])
    assert message.startswith("error: ")
    assert "'c'" in message


def test_a_row_that_is_broken_is_an_error_and_the_rest_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "one"}\n{"text": \n{"text": "three"}\n')
    inputs = plain(found(file))
    assert [inputs[0], inputs[-1]] == [(f"{file}:1", ("one",)), (f"{file}:3", ("three",))]
    assert inputs[1][0] == f"{file}:2"
    assert str(inputs[1][1]).startswith("error: ")


def test_what_can_not_be_read_is_an_error_among_the_others(tmp_path: Path) -> None:
    good, binary, folder = tmp_path / "good.txt", tmp_path / "photo.jpg", tmp_path / "empty"
    good.write_text("fine\n")
    binary.write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" * 10)
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe")
    missing = tmp_path / "missing.txt"
    inputs = plain(found(missing, binary, folder, tmp_path / "pipe", good))
    assert [name for name, _ in inputs] == [
        str(missing),
        str(binary),
        str(tmp_path / "pipe"),
        f"{good}:1",
    ]
    assert inputs[0][1] == "error: No such file or directory"
    assert str(inputs[1][1]).startswith("error: ")
    assert "byte" in str(inputs[1][1])
    assert inputs[2][1] == "error: it is no ordinary file"
    assert inputs[3][1] == "fine"


def test_folders_and_patterns_are_sorted_and_what_means_nothing_is_said(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden", "c.md"):
        (tmp_path / name).write_text(f"{name}\n")
    assert [one.content for one in found(tmp_path)] == ["a.txt", "b.txt", "c.md"]
    assert [one.content for one in found(tmp_path / "*.txt")] == ["a.txt", "b.txt"]
    (only,) = found(tmp_path / "*.csv")
    assert (only.name, str(only.content)) == (
        str(tmp_path / "*.csv"),
        "No such file or directory",
    )


LACKS = "error: there is no {}: a line holds a question, a tab, and the context"


def test_questions_stand_before_their_context_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text("who?\tthe cat\there\n\twhere\nwhat?\n")
    assert plain(found(file, task=QUESTIONS)) == [
        (f"{file}:1", (f"{file}:1", "who?", "the cat\there")),
        (f"{file}:2", LACKS.format("question")),
        (f"{file}:3", LACKS.format("context")),
    ]


def test_questions_of_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    records: list[dict[str, Any]] = [
        {"id": "q1", "question": "who?", "context": "the cat 😀"},
        {"question": "what?", "context": "x", "answers": {"text": ["x"], "answer_start": [0]}},
        {"question": "where?", "context": " "},
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in records) + "{\n")
    inputs = plain(found(file, task=QUESTIONS))
    assert inputs[:3] == [
        (f"{file}:1", ("q1", "who?", "the cat 😀")),
        (f"{file}:2", (f"{file}:2", "what?", "x")),
        (f"{file}:3", LACKS.format("context")),
    ]
    assert inputs[3][0] == f"{file}:4"
    assert str(inputs[3][1]).startswith("error: ")


def test_questions_of_a_table(tmp_path: Path) -> None:
    file = tmp_path / "asked.csv"
    file.write_text("Question,context\nwho?,the cat\n")
    assert plain(found(file, task=QUESTIONS)) == [(f"{file}:2", (f"{file}:2", "who?", "the cat"))]


def test_questions_of_squad(tmp_path: Path) -> None:
    file = tmp_path / "dev.json"
    asked = {"id": "q7", "question": "who?", "answers": [{"text": "cat", "answer_start": 4}]}
    paragraph = {"context": "the cat", "qas": [asked]}
    file.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}))
    (one,) = found(file, task=QUESTIONS)
    assert shown(one.content) == ("q7", "who?", "the cat")
    assert isinstance(one.content, Question)
    assert one.content.answers == ()
