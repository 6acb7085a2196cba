"""Labelled texts as batches: padding, kinds, what is cut, and targets."""

import csv
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from octavolt.contract import Making
from octavolt.data.order import epoch_order, epoch_updates, evaluation_batches
from octavolt.data.text.labelled import LabelledExamples
from octavolt.networks.recipes import SMALL_DATA
from tests.data.text.made import EVALUATION, Heard, at, evaluated, filled, rows, trained
from tests.data.text.texts import shared

TEXTS = ["a", "b a b a", "你 好", "", "a b", "b"]
TOKENIZER = trained("a b 你 好 " * 20, "wordpiece", 100)
PLAIN = replace(SMALL_DATA, label_smoothing=0.0)
CLS, SEP, PAD = (TOKENIZER.id(name) for name in ("[CLS]", "[SEP]", "[PAD]"))


def examples(
    texts: list[str] | None = None,
    labels: tuple[int, ...] = (0, 1, 2, 0, 0, 1),
    *,
    length: int = 16,
    width: int = 1,
    several: list[tuple[int, ...]] | None = None,
    making: Making | None = None,
) -> LabelledExamples:
    return LabelledExamples(
        rows(texts or TEXTS, labels, width=width, several=several),
        TOKENIZER,
        length=length,
        class_count=3,
        several=several is not None,
        making=making or Making(recipe=PLAIN, split="train"),
    )


def words(*texts: str) -> list[int]:
    return [TOKENIZER.id(text) for text in texts]


def test_texts_are_padded_to_the_longest_and_the_mask_says_where_they_are() -> None:
    batch = filled(examples(), at([1, 3, 2]))
    assert batch.ids.tolist() == [
        [CLS, *words("b", "a", "b", "a"), SEP],
        [CLS, SEP, *[PAD] * 4],
        [CLS, *words("你", "好"), SEP, PAD, PAD],
    ]
    assert batch.mask.sum(1).tolist() == [6, 2, 4]
    assert not batch.kinds.any()
    assert batch.labels.tolist() == [1, 0, 2]


def test_kinds_tell_the_texts_of_a_pair_apart() -> None:
    batch = filled(examples(width=2, labels=(0, 1, 2)), at([0, 1]))
    assert batch.ids.tolist() == [
        [CLS, *words("a"), SEP, *words("b", "a", "b", "a"), SEP],
        [CLS, *words("你", "好"), SEP, SEP, PAD, PAD, PAD],
    ]
    assert batch.kinds.tolist() == [[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 0, 0, 0]]


def test_each_text_is_what_the_tokenizer_wraps() -> None:
    for width, labels in ((1, (0,) * 6), (2, (0,) * 3)):
        made = examples(width=width, labels=labels, length=5)
        for places, batch in evaluated(made, 2):
            padded: Any = batch
            for row, index in enumerate(places.indices.tolist()):
                texts = TOKENIZER.encode(made.rows.read(index).texts)
                wrapped = TOKENIZER.wrap(*texts, length=5)
                assert padded.ids[row][padded.mask[row]].tolist() == wrapped.ids.tolist()
                assert padded.kinds[row][padded.mask[row]].tolist() == wrapped.kinds.tolist()
                assert made.token_counts[index] == len(wrapped.ids)


def test_what_is_cut_is_said_with_its_share() -> None:
    for length, said in (
        (6, []),
        (
            5,
            [
                "1 text of 6 of train (16.7 %) are longer than 5 tokens: what is over is not "
                "read. A larger --length reads more."
            ],
        ),
    ):
        heard = Heard()
        made = examples(length=length, making=Making(recipe=PLAIN, split="train", say=heard))
        assert heard == said
        assert filled(made, at([1])).ids.shape == (1, length)


def test_targets_are_smoothed_in_training_alone() -> None:
    smooth = Making(recipe=replace(PLAIN, label_smoothing=0.3))
    batch = filled(examples(making=smooth), at([0, 2]))
    expected = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    torch.testing.assert_close(batch.targets, expected)
    assert filled(examples(making=EVALUATION), at([2])).targets.tolist() == [[0, 0, 1]]


def test_rows_of_targets_sum_to_the_weight_of_their_class() -> None:
    """Of 6 texts 3, 2 and 1: 6 / (3 x 3), 6 / (3 x 2) and 6 / (3 x 1)."""
    weighed = Making(recipe=replace(PLAIN, class_weights=True, label_smoothing=0.3))
    batch = filled(examples(making=weighed), at([0, 1, 2]))
    assert batch.targets.sum(1).tolist() == pytest.approx([2 / 3, 1.0, 2.0])
    assert batch.targets[2].tolist() == pytest.approx([0.2, 0.2, 1.6])


def test_a_text_may_have_several_labels_or_none() -> None:
    several: list[tuple[int, ...]] = [(0, 2), (), (1,), (), (0,), (2,)]
    made = examples(several=several)
    assert filled(made, at([0, 1, 2])).targets.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    smooth = examples(several=several, making=Making(recipe=replace(PLAIN, label_smoothing=0.2)))
    batch = filled(smooth, at([0, 1]))
    assert batch.targets.flatten().tolist() == pytest.approx([0.9, 0.1, 0.9, 0.1, 0.1, 0.1])


def test_samples_are_named_and_shown() -> None:
    made = examples(width=2, labels=(0, 1, 2))
    assert made.name(1) == "a.csv:2"
    assert made.show(0) == {"text": "a\nb a b a"}


def padding(lengths: Any, batch_size: int, *, near: bool) -> float:
    """Return the share of padding in the tokens of three epochs."""
    real = all_tokens = 0
    for epoch in (1, 2, 3):
        order = epoch_order(
            len(lengths),
            seed=0,
            epoch=epoch,
            batch_size=batch_size,
            lengths=lengths if near else None,
        )
        for update in epoch_updates(
            order, seed=0, epoch=epoch, batch_size=batch_size, micro_batch_size=batch_size
        ):
            for places in update:
                some = lengths[places.indices]
                real += int(some.sum())
                all_tokens += len(some) * int(some.max())
    return 1 - real / all_tokens


def skewed() -> Any:
    """Return lengths of which most are short and some ten times as long."""
    random = np.random.default_rng(0)
    return np.clip(random.lognormal(2.5, 0.6, 3000), 3, 128).astype(np.int64)


def of_banking77() -> Any:
    with shared("banking77", "train.csv").open(newline="", encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    made = trained(" ".join(texts), "wordpiece", 2000)
    return np.array([len(ids) + 2 for ids in made.encode(texts)], np.int64)


@pytest.mark.parametrize("lengths_of", [skewed, of_banking77], ids=["skewed", "banking77"])
def test_texts_of_like_length_together_need_little_padding(lengths_of: Any) -> None:
    lengths = lengths_of()
    assert padding(lengths, 32, near=True) < 0.1
    assert padding(lengths, 32, near=False) > 0.25


def test_evaluation_needs_next_to_no_padding_and_begins_with_the_longest() -> None:
    lengths = skewed()
    places = [*evaluation_batches(len(lengths), batch_size=32, lengths=lengths)]
    batches = [lengths[one.indices] for one in places]
    assert batches[0].max() == lengths.max()
    all_tokens = sum(len(one) * int(one.max()) for one in batches)
    assert 1 - lengths.sum() / all_tokens < 0.05
