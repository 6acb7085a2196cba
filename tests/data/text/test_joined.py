"""All splits as one, as `--split all` and other data than a run's are evaluated."""

from pathlib import Path

import pytest

from octavolt.contract import Making, Reading
from octavolt.data.relabel import Joined
from octavolt.data.text.dialogue import END, ROLES
from octavolt.data.text.opened import open_text
from octavolt.data.text.preparation import TextPreparation
from octavolt.data.text.tokenizer import train_tokenizer

TABLE = "text,label\n" + "".join(f"a text of {one},{'xy'[one % 2]}\n" for one in range(20))
MESSAGES = '[{"role": "user", "content": "%s"}, {"role": "assistant", "content": "so"}]'
CONVERSATIONS = "".join('{"messages": ' + MESSAGES % f"hello {one}" + "}\n" for one in range(20))


@pytest.mark.parametrize(
    ("task", "name", "content", "kind"),
    [
        ("text-classification", "a.csv", TABLE, "wordpiece"),
        ("causal-language-modeling", "a.csv", TABLE, "bpe"),
        ("causal-language-modeling", "a.txt", "some words\n" * 90, "bpe"),
        ("masked-language-modeling", "a.txt", "some words\n" * 90, "wordpiece"),
        ("dialogue", "a.jsonl", CONVERSATIONS, "bpe"),
    ],
)
def test_all_splits_are_read_as_one(
    tmp_path: Path, task: str, name: str, content: str, kind: str
) -> None:
    (tmp_path / name).write_text(content)
    reading = Reading(length=16)
    data = open_text(str(tmp_path / name), task=task, seed=0, reading=reading)
    tokenizer = train_tokenizer(iter([content]), kind=kind, vocabulary_size=300)
    if task == "dialogue":
        tokenizer = tokenizer.add_special([*ROLES.values(), END])
    preparation = TextPreparation(tokenizer, task=task, classes=data.classes, reading=reading)
    joined = Joined([*data.splits.values()])
    making = Making(split="all", threads=1)
    examples = preparation.examples(joined, making)
    each = [len(preparation.examples(one, making)) for one in data.splits.values()]
    assert sum(each) - len(each) < len(examples) <= sum(each)
