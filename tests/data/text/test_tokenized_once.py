"""Tokenizing costs more than anything else done to text, so nothing is tokenized twice."""

from collections.abc import Callable
from typing import Any

import pytest

from octavolt.contract import Examples
from octavolt.data.text.dialogue import END, ROLES
from octavolt.data.text.dialogues import DialogueExamples
from octavolt.data.text.labelled import LabelledExamples
from octavolt.data.text.packed_text import CausalExamples, MaskedExamples
from octavolt.data.text.questions import QuestionExamples
from octavolt.data.text.tokenizer import Tokenizer
from tests.data.text.made import (
    TRAINING,
    at,
    conversations,
    documents,
    filled,
    questions,
    rows,
    trained,
)

TEXT = "the cat sat on the mat and the dog on the cat " * 5
WORDS = trained(TEXT, "wordpiece", 60)
TALK = trained(TEXT, "bpe", 300).add_special([*ROLES.values(), END])


def labelled() -> Examples:
    made = rows(["the cat", "the dog sat"], [0, 1])
    return LabelledExamples(made, WORDS, length=16, class_count=2, several=False, making=TRAINING)


def asked() -> Examples:
    made = questions(("the cat?", TEXT, [("sat", 8)]), ("the dog?", TEXT, [("dog", 31)]))
    return QuestionExamples(made, WORDS, length=24, stride=8, may_be_empty=False, making=TRAINING)


def talked() -> Examples:
    talk = [("user", "the cat"), ("assistant", "the dog")]
    made = conversations(talk, talk)
    return DialogueExamples(made, TALK, length=32, making=TRAINING)


def packed() -> Examples:
    return CausalExamples(documents(TEXT), TALK, length=8, stride=8, making=TRAINING)


def masked() -> Examples:
    made = documents(TEXT)
    return MaskedExamples(made, WORDS, length=10, whole_words=True, making=TRAINING)


@pytest.mark.parametrize("make", [labelled, asked, talked, packed, masked])
def test_no_batch_is_tokenized_again(
    make: Callable[[], Examples], monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = make()

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("tokenized again")

    for name in ("encode", "encode_with_offsets", "encode_words"):
        monkeypatch.setattr(Tokenizer, name, again)
    first, second = (filled(examples, at([0, 1], epoch=epoch)) for epoch in (1, 2))
    assert first.weight > 0
    assert second.weight > 0
