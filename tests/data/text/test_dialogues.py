"""Conversations as batches: only what the assistant says is learned, and its end."""

from typing import Any

import pytest

from octavolt.contract import Making
from octavolt.data.text.dialogue import END, ROLES
from octavolt.data.text.dialogues import DialogueExamples
from octavolt.tasks.text import NOT_ASKED
from tests.data.text.made import (
    EVALUATION,
    TRAINING,
    Heard,
    at,
    conversations,
    evaluated,
    filled,
    trained,
)

TALKS = (
    [("user", "hi"), ("assistant", "hello")],
    [
        ("system", "be kind"),
        ("user", "你好"),
        ("assistant", "好 😀"),
        ("user", "x"),
        ("assistant", ""),
    ],
)
TOKENIZER = trained("hi hello be kind 你好 😀", "bpe", 300).add_special([*ROLES.values(), END])


def examples(*, length: int = 64, making: Making = TRAINING) -> DialogueExamples:
    return DialogueExamples(conversations(*TALKS), TOKENIZER, length=length, making=making)


def asked(batch: Any, row: int) -> str:
    """Return the text that a row asks for, ends of messages included."""
    targets = batch.targets[row]
    return TOKENIZER.decode(targets[targets != NOT_ASKED].tolist(), special=True)


def test_answers_and_their_ends_alone_are_asked() -> None:
    batch = filled(examples(), at([0, 1]))
    assert asked(batch, 0) == f"hello{END}"
    assert asked(batch, 1) == f"好 😀{END}{END}"
    assert TOKENIZER.decode(batch.ids[0][:3].tolist(), special=True).startswith("<|user|>h")


def test_each_target_is_the_token_that_comes_next() -> None:
    batch = filled(examples(), at([1, 0]))
    for row in range(2):
        for place in (batch.targets[row] != NOT_ASKED).nonzero()[:, 0].tolist()[:-1]:
            assert int(batch.targets[row, place]) == int(batch.ids[row, place + 1])


def test_of_one_that_is_too_long_the_end_is_read_and_that_is_said() -> None:
    heard = Heard()
    whole = filled(examples(), at([1]))
    size = int(examples().token_counts[1])
    short = examples(length=4, making=Making(recipe=TRAINING.recipe, split="train", say=heard))
    batch = filled(short, at([1]))
    assert batch.ids.shape == (1, 4)
    assert batch.ids[0].tolist() == whole.ids[0, size - 4 : size].tolist()
    assert batch.targets[0].tolist() == whole.targets[0, size - 4 : size].tolist()
    assert batch.weight >= 1
    assert heard == [
        "2 texts of 2 of train (100.0 %) are longer than 4 tokens: what is over is not read. A "
        "larger --length reads more."
    ]


def test_what_fits_exactly_is_not_called_too_long() -> None:
    longest = int(examples().token_counts.max())
    for length, said in ((longest, 0), (longest - 1, 1)):
        heard = Heard()
        examples(length=length, making=Making(recipe=TRAINING.recipe, say=heard))
        assert len(heard) == said


def test_bytes_of_evaluation_are_those_of_the_answers() -> None:
    batches: list[Any] = [batch for _, batch in evaluated(examples(making=EVALUATION), 1)]
    assert sorted(batch.bytes for batch in batches) == [5, len("好 😀".encode())]
    assert filled(examples(), at([0])).bytes == 0


@pytest.mark.parametrize("making", [TRAINING, EVALUATION], ids=["training", "evaluation"])
def test_padding_is_not_asked(making: Making) -> None:
    batch = filled(examples(making=making), at([0, 1]))
    size = int(examples().token_counts[0])
    assert (batch.targets[0, size:] == NOT_ASKED).all()
    assert (batch.ids[0, size:] == TOKENIZER.padding_id).all()


def test_conversations_are_named_and_shown() -> None:
    assert examples().name(1) == "a.jsonl:2"
    assert examples().show(0) == {"text": "user: hi\nassistant: hello"}
