"""Samples of text made by hand, and batches of them as a loader fills them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from octavolt.contract import Batch, Examples, Making, Places
from octavolt.data.order import evaluation_batches
from octavolt.data.text.samples import (
    Conversations,
    ConversationStore,
    Questions,
    QuestionStore,
    RowDocuments,
    Rows,
    RowStore,
    packed_texts,
    ragged,
)
from octavolt.data.text.samples import Places as Lines
from octavolt.data.text.tokenizer import Tokenizer, train_tokenizer
from octavolt.networks.recipes import SMALL_DATA

TRAINING = Making(recipe=SMALL_DATA, split="train")
EVALUATION = Making(split="val")
ROLES = ("system", "user", "assistant")


def lines(count: int, file: str = "a.csv") -> Lines:
    return Lines(files=(file,), file_of=np.zeros(count, np.int64), lines=np.arange(1, count + 1))


def documents(*texts: str) -> RowDocuments:
    return RowDocuments(packed_texts(texts), lines(len(texts)), np.arange(len(texts)))


def rows(
    texts: Sequence[str],
    labels: Sequence[int],
    *,
    width: int = 1,
    several: Sequence[Sequence[int]] | None = None,
) -> Rows:
    count = len(texts) // width
    store = RowStore(texts=packed_texts(texts), width=width, places=lines(count))
    found = None if several is None else ragged(several)
    return Rows(store, np.arange(count), np.array(labels, np.int64), found)


def questions(*asked: tuple[str, str, Sequence[tuple[str, int]]]) -> Questions:
    """Return questions, each with its context and its answers."""
    count = len(asked)
    store = QuestionStore(
        identities=packed_texts(f"q{number}" for number in range(count)),
        questions=packed_texts(question for question, _, _ in asked),
        contexts=packed_texts(context for _, context, _ in asked),
        context_of=np.arange(count),
        answer_texts=packed_texts(text for _, _, answers in asked for text, _ in answers),
        answer_starts=ragged([start for _, start in answers] for _, _, answers in asked),
        places=lines(count, "a.json"),
    )
    return Questions(store, np.arange(count))


def conversations(*talks: Sequence[tuple[str, str]]) -> Conversations:
    store = ConversationStore(
        contents=packed_texts(content for talk in talks for _, content in talk),
        roles=ragged([ROLES.index(role) for role, _ in talk] for talk in talks),
        places=lines(len(talks), "a.jsonl"),
    )
    return Conversations(store, np.arange(len(talks)))


def trained(text: str, kind: str, size: int) -> Tokenizer:
    return train_tokenizer(iter([text]), kind=kind, vocabulary_size=size)


def filled(examples: Examples, places: Places) -> Any:
    """Return a batch whose jobs are done."""
    batch, jobs = examples.begin(places)
    for job in jobs:
        job()
    return batch


def at(indices: Sequence[int], *, seed: int = 0, epoch: int = 1, first: int = 0) -> Places:
    return Places(seed=seed, epoch=epoch, first=first, indices=np.array(indices, np.int64))


def evaluated(examples: Examples, batch_size: int = 3) -> list[tuple[Places, Batch]]:
    """Return all batches of an evaluation."""
    places = evaluation_batches(len(examples), batch_size=batch_size, lengths=examples.lengths)
    return [(one, filled(examples, one)) for one in places]


class Heard(list[str]):
    """Notes what is said."""

    def __call__(self, text: str) -> None:
        self.append(text)
