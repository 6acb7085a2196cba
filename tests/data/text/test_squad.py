import json
from pathlib import Path
from typing import Any

import pytest

from octavolt.contract import DataSet
from octavolt.data.text.samples import Question
from octavolt.data.text.squad import open_questions, recognises
from octavolt.errors import OctavoltError

CONTEXT = "The Normans came from Normandy, and Normandy is in France."


def asked(identity: str, text: str = "Normandy", start: int = 22, **other: Any) -> dict[str, Any]:
    answers = [{"text": text, "answer_start": start}] if text else []
    return {"id": identity, "question": f"Which, {identity}?", "answers": answers, **other}


def written(folder: Path, paragraphs: list[list[dict[str, Any]]], name: str = "a.json") -> str:
    articles = [
        {"title": "x", "paragraphs": [{"context": f"{CONTEXT} {place}", "qas": questions}]}
        for place, questions in enumerate(paragraphs)
    ]
    (folder / name).write_text(json.dumps({"version": "2.0", "data": articles}, indent=1))
    return str(folder / name)


def with_fault(folder: Path, bad: dict[str, Any]) -> DataSet:
    good = [[asked(f"{place}")] for place in range(3)]
    return open_questions(written(folder, [*good, [bad]]), seed=0)


def questions(data: DataSet) -> dict[str, Question]:
    return {
        samples.read(index).identity: samples.read(index)
        for samples in data.splits.values()
        for index in range(len(samples))
    }


def test_a_tenth_of_the_contexts_is_held_out_with_all_its_questions(tmp_path: Path) -> None:
    source = written(tmp_path, [[asked(f"{at} {one}") for one in range(3)] for at in range(20)])
    assert recognises(source)
    data = open_questions(source, seed=0)
    contexts = {
        split: {samples.read(index).context for index in range(len(samples))}
        for split, samples in data.splits.items()
    }
    assert {split: len(found) for split, found in contexts.items()} == {"train": 18, "val": 2}
    assert not contexts["train"] & contexts["val"]
    assert len(data.splits["val"]) == 6
    assert questions(data)["7 1"] == Question(
        identity="7 1",
        question="Which, 7 1?",
        context=f"{CONTEXT} 7",
        answers=(("Normandy", 22),),
    )


def test_a_question_without_an_answer_is_read_as_one(tmp_path: Path) -> None:
    impossible = asked("none", "", is_impossible=True, plausible_answers=[])
    data = with_fault(tmp_path, impossible)
    assert data.faults == ()
    assert questions(data)["none"].answers == ()


@pytest.mark.parametrize(
    ("bad", "kind", "problem"),
    [
        (
            asked("q", "Normandy", 20),
            "wrong-answer",
            "question 'q': the answer 'Normandy' does not start at character 20 of its context, "
            "where 'm Norman' stands; it starts at 22",
        ),
        (
            asked("q", "Paris", 900),
            "wrong-answer",
            "question 'q': the answer 'Paris' does not start at character 900 of its context, "
            "where the context has ended; it does not occur in the context at all",
        ),
        (asked("1"), "wrong-question", "question '1': its id stands already at a.json:"),
        (asked("q", question=" "), "wrong-question", "question 'q': the question is empty"),
        (
            {"id": "q", "question": "Which?"},
            "wrong-question",
            "question 'q': it has no 'answers'",
        ),
        (
            asked("q", "", is_impossible=False),
            "wrong-question",
            "question 'q': 'is_impossible' is false, but there is no answer",
        ),
    ],
    ids=["elsewhere", "nowhere", "twice", "empty", "unanswered", "possible"],
)
def test_a_bad_question_is_a_fault(
    tmp_path: Path, bad: dict[str, Any], kind: str, problem: str
) -> None:
    data = with_fault(tmp_path, bad)
    assert len(data.faults) == 1
    assert (data.faults[0].kind, data.faults[0].damaged) == (kind, True)
    assert data.faults[0].problem.startswith(problem)
    assert len(questions(data)) == 3


def test_a_fault_names_the_line_of_its_question(tmp_path: Path) -> None:
    fault = with_fault(tmp_path, asked("strange", "Normandy", 20)).faults[0]
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert fault.line is not None
    assert '"strange"' in lines[fault.line - 1]


def test_train_and_dev_are_splits(tmp_path: Path) -> None:
    written(tmp_path, [[asked("a")]], "train-v2.0.json")
    written(tmp_path, [[asked("a")]], "dev-v2.0.json")
    data = open_questions(str(tmp_path), seed=0)
    assert {split: len(samples) for split, samples in data.splits.items()} == {"train": 1, "val": 1}
    assert data.splits["val"].name(0).startswith("dev-v2.0.json:")


def test_flat_lines_are_read(tmp_path: Path) -> None:
    answers = {"text": ["Normandy"], "answer_start": [22]}
    lines = [
        json.dumps({"question": "Which?", "context": f"{CONTEXT} {place}", "answers": answers})
        for place in range(5)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert recognises(str(tmp_path / "a.jsonl"))
    found = questions(open_questions(str(tmp_path / "a.jsonl"), seed=0))
    assert found["a.jsonl:3"].answers == (("Normandy", 22),)


def test_broken_json_is_told_with_its_line(tmp_path: Path) -> None:
    source = written(tmp_path, [[asked("a")]])
    text = Path(source).read_text()
    Path(source).write_text(text.replace('"answer_start": 22', '"answer_start": '))
    with pytest.raises(OctavoltError, match=r"'a\.json' is no JSON: line \d+, column"):
        open_questions(source, seed=0)


def test_the_digest_changes_with_an_answer(tmp_path: Path) -> None:
    one = open_questions(written(tmp_path, [[asked("a"), asked("b")], [asked("c")]]), seed=0)
    other = written(tmp_path, [[asked("a"), asked("b", "Normandy", 36)], [asked("c")]])
    found = open_questions(other, seed=0)
    assert [one.splits[split].digest() == found.splits[split].digest() for split in one.splits] in (
        [False, True],
        [True, False],
    )


@pytest.mark.parametrize("questions", [5, [5], ["a"], None])
def test_questions_that_are_no_list_of_objects(tmp_path: Path, questions: Any) -> None:
    paragraphs = [{"context": CONTEXT, "qas": questions}]
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with pytest.raises(OctavoltError, match="not built like SQuAD: its lists and objects are othe"):
        open_questions(str(tmp_path / "a.json"), seed=0)
