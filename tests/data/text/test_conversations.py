import json
from pathlib import Path

import pytest

from octavolt.data.text.conversations import open_conversations, recognises
from octavolt.data.text.samples import Message

GOOD = [("user", "hi"), ("assistant", "hello")]


def line(turns: list[tuple[str, str]]) -> str:
    return json.dumps({"messages": [{"role": role, "content": said} for role, said in turns]})


def test_conversations_are_read_and_a_tenth_is_held_out(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([line([("system", "be kind"), *GOOD * 2])] * 20))
    assert recognises(str(file))
    data = open_conversations(str(file), seed=0)
    assert data.task == "dialogue"
    assert {split: len(samples) for split, samples in data.splits.items()} == {
        "train": 18,
        "val": 2,
    }
    assert data.splits["val"].read(0)[:2] == (
        Message(role="system", content="be kind"),
        Message(role="user", content="hi"),
    )


def test_human_and_gpt_are_user_and_assistant(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
    (tmp_path / "a.jsonl").write_text("\n".join([json.dumps({"conversations": turns})] * 3))
    data = open_conversations(str(tmp_path / "a.jsonl"), seed=0)
    assert [message.role for message in data.splits["train"].read(0)] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (line([("assistant", "hello")]), "the first message is of assistant; it must be of user"),
        (line([*GOOD, ("user", "and?")]), "the last message is of user; the assistant must answer"),
        (line([*GOOD, ("assistant", "x")]), "message 3 is of assistant, where user has its turn"),
        (line([("user", "hi"), ("system", "x")]), "message 2 is of system, where assistant has"),
        (line([("user", " "), ("assistant", "x")]), "message 1: the content is empty"),
        (line([("robot", "hi")]), "message 1: the role is 'robot'; it must be system, user or"),
        (line([("system", "hi")]), "there is no message of a user and an assistant"),
        ('{"text": "hi"}', "the object has no list 'messages', only text"),
        ("{", "this is no JSON: "),
    ],
)
def test_what_is_no_conversation_is_a_fault_with_its_line(
    tmp_path: Path, bad: str, problem: str
) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join([line(GOOD), bad, line(GOOD), line(GOOD)]))
    data = open_conversations(str(tmp_path / "a.jsonl"), seed=0)
    assert len(data.faults) == 1
    fault = data.faults[0]
    assert (fault.kind, fault.line, fault.damaged) == ("wrong-conversation", 2, True)
    assert fault.problem.startswith(problem)
    assert sum(map(len, data.splits.values())) == 3
