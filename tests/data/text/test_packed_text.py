"""A corpus as windows: each token is asked once, and what is masked is what BERT masks."""

from collections import Counter
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
import torch

from octavolt.contract import Making
from octavolt.data.order import epoch_order
from octavolt.data.text.packed_text import (
    MOST_LOGITS,
    CausalExamples,
    MaskedExamples,
    Windows,
    windows_in_a_pass,
)
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.errors import OctavoltError
from octavolt.tasks.text import NOT_ASKED
from tests.data.text.made import EVALUATION, TRAINING, at, documents, evaluated, filled, trained

TEXTS = (
    "It was the best of times, it was the worst of times.\n" * 3,
    "机器学习很有意思。你好吗。 👩\u200d👩\u200d👧 😀 naïve café\n" * 4,
    "x",
    "the age of wisdom, the age of foolishness, the season of light",
)
WHOLE = "".join(TEXTS)
BPE = trained(WHOLE, "bpe", 300)
CHARACTERS = trained(WHOLE, "characters", 1000)


def causal(
    tokenizer: Tokenizer = BPE,
    *,
    length: int = 7,
    stride: int = 7,
    making: Making = TRAINING,
    texts: tuple[str, ...] = TEXTS,
) -> CausalExamples:
    return CausalExamples(documents(*texts), tokenizer, length=length, stride=stride, making=making)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 16])
def test_each_asked_token_is_in_one_window_and_their_number_stays(length: int) -> None:
    for asked in range(1, 4 * length + 3):
        windows = Windows(asked=asked, length=length)
        firsts = set()
        for seed in (0, 7):
            for epoch in range(1, 9):
                first = windows.first_length(seed=seed, epoch=epoch)
                firsts.add(first)
                spans = [windows.span(index, first) for index in range(windows.count)]
                places = [place for begin, end in spans for place in range(begin, end)]
                assert places == list(range(asked)), (asked, seed, epoch)
                assert all(1 <= end - begin <= length for begin, end in spans)
        # Half of all lengths or more can be drawn, wherever the text ends.
        choices = windows.rest - 1 if windows.starts_short else length - windows.rest + 1
        assert choices >= length / 2
        if choices > 1:
            assert len(firsts) > 1


@pytest.mark.parametrize("tokenizer", [BPE, CHARACTERS], ids=["bpe", "characters"])
@pytest.mark.parametrize("length", [5, 64, 10_000])
def test_an_epoch_asks_for_each_token_once_in_its_place(tokenizer: Tokenizer, length: int) -> None:
    examples = causal(tokenizer, length=length)
    stream = examples.tokens.ids.tolist()
    for epoch in (1, 2, 3):
        order = epoch_order(len(examples), seed=4, epoch=epoch).tolist()
        first_length = examples.windows.first_length(seed=4, epoch=epoch)
        found: list[tuple[int, int, int]] = []
        for first in range(0, len(order), 3):
            some = order[first : first + 3]
            batch = filled(examples, at(some, seed=4, epoch=epoch, first=first))
            for row, index in enumerate(some):
                begin, end = examples.windows.span(index, first_length)
                asked = (batch.targets[row] != NOT_ASKED).nonzero()[:, 0].tolist()
                assert asked == list(range(end - begin))
                found += [
                    (begin + place, int(batch.ids[row, place]), int(batch.targets[row, place]))
                    for place in asked
                ]
        expected = [(place, *stream[place : place + 2]) for place in range(len(stream) - 1)]
        assert sorted(found) == expected


def test_windows_begin_elsewhere_in_another_epoch() -> None:
    examples = causal(length=16)
    firsts = {examples.windows.first_length(seed=0, epoch=epoch) for epoch in range(1, 20)}
    assert len(firsts) > 3


@pytest.mark.parametrize("tokenizer", [BPE, CHARACTERS], ids=["bpe", "characters"])
@pytest.mark.parametrize(("length", "stride"), [(8, 8), (8, 3), (8, 1), (16, 15), (10_000, 9)])
def test_evaluation_asks_each_token_once_with_enough_before_it(
    tokenizer: Tokenizer, length: int, stride: int
) -> None:
    examples = causal(tokenizer, length=length, stride=stride, making=EVALUATION)
    stream = examples.tokens.ids.tolist()
    found = []
    byte_count = 0
    for places, batch in evaluated(examples):
        causal_batch: Any = batch
        byte_count += causal_batch.bytes
        for row, index in enumerate(places.indices.tolist()):
            begin = index * stride
            for place in (causal_batch.targets[row] != NOT_ASKED).nonzero()[:, 0].tolist():
                found.append((begin + place, int(causal_batch.targets[row, place])))
                seen = causal_batch.ids[row, : place + 1].tolist()
                assert seen == stream[begin : begin + place + 1]
                assert begin == 0 or len(seen) > length - stride
    assert sorted(found) == [(place, token) for place, token in enumerate(stream[1:])]
    first_token = int(tokenizer.byte_counts[stream[0]])
    assert byte_count == len(WHOLE.encode()) - first_token


def test_bytes_are_not_counted_in_training() -> None:
    assert filled(causal(), at([0, 1])).bytes == 0


def test_too_little_text_is_named() -> None:
    with pytest.raises(OctavoltError) as raised:
        causal(CHARACTERS, texts=("",), making=EVALUATION)
    assert str(raised.value) == (
        "The val split holds 1 tokens, and at least 2 are needed. Add text."
    )


def test_windows_are_named_and_shown() -> None:
    examples = causal(CHARACTERS, length=8, stride=4, making=EVALUATION)
    assert examples.name(300) == "token 1,200"
    assert examples.show(1) == {"text": WHOLE[4:13]}


def test_a_pass_of_evaluation_keeps_its_logits_within_bounds() -> None:
    large = trained("x", "characters", 8)
    large.size = 50_257
    for length in (16, 1024, 10**6):
        count = windows_in_a_pass(length, large)
        assert count >= 1
        assert count * length * large.size <= MOST_LOGITS or count == 1
    assert windows_in_a_pass(1024, large) == 2


WORDS = " ".join(f"{one}{two}ing{three}" for one in "abcdefgh" for two in "xyz" for three in "pq")
CORPUS = (f"{WORDS}. 你好 机器 😀 " * 40).strip()
PIECES = trained(CORPUS[: len(WORDS)] + " the 你 好", "wordpiece", 60)
LENGTH = 66


def masked(*, whole_words: bool = False, making: Making = TRAINING) -> MaskedExamples:
    return MaskedExamples(
        documents(CORPUS), PIECES, length=LENGTH, whole_words=whole_words, making=making
    )


def originals(examples: MaskedExamples, indices: list[int]) -> list[Any]:
    return [examples.tokens.ids[one * 64 : (one + 1) * 64].astype(np.int64) for one in indices]


@pytest.mark.parametrize("whole_words", [False, True])
def test_masked_tokens_are_hidden_as_often_as_the_paper_says(whole_words: bool) -> None:
    examples = masked(whole_words=whole_words)
    special = [*PIECES.special.values()]
    count = asked_count = plain_count = hidden_count = kept = 0
    for epoch in range(1, 9):
        order = epoch_order(len(examples), seed=1, epoch=epoch).tolist()
        batch = filled(examples, at(order, seed=1, epoch=epoch))
        for row, window in enumerate(originals(examples, order)):
            size = len(window)
            asked = (batch.targets[row] != NOT_ASKED).numpy()
            assert not asked[0]
            assert not asked[1 + size :].any()
            asked = asked[1 : 1 + size]
            ids = batch.ids[row, 1 : 1 + size].numpy()
            plain = ~np.isin(window, special)
            assert not (asked & ~plain).any()
            assert asked.any() or not plain.any()
            assert (ids[~asked] == window[~asked]).all()
            assert (batch.targets[row, 1 : 1 + size].numpy()[asked] == window[asked]).all()
            count += 1
            asked_count += int(asked.sum())
            plain_count += int(plain.sum())
            hidden_count += int((ids[asked] == PIECES.mask_id).sum())
            kept += int((ids[asked] == window[asked]).sum())
    assert count > 200
    # A window asks for round(0.15 x candidates), which is off by half a token of about 60. Whole
    # words have 1 to 5 tokens, which averages out over more than a thousand of them.
    assert asked_count / plain_count == pytest.approx(0.15, abs=0.01)
    for found, share in (
        # A random token is the mask, or the token itself, once in the vocabulary's size.
        (hidden_count, 0.8 + 0.1 / PIECES.size),
        (kept, 0.1 + 0.1 / PIECES.size),
    ):
        # Four standard deviations of a binomial: passed but once in 16,000 seeds.
        bound = 4 * sqrt(asked_count * share * (1 - share))
        assert abs(found - share * asked_count) < bound


def test_whole_words_are_hidden_together() -> None:
    examples = masked(whole_words=True)
    continues = PIECES.continues
    indices = list(range(len(examples)))
    batch = filled(examples, at(indices))
    joined = 0
    for row, window in enumerate(originals(examples, indices)):
        asked = (batch.targets[row, 1 : 1 + len(window)] != NOT_ASKED).numpy()
        for place in range(1, len(window)):
            if continues[window[place]]:
                assert asked[place] == asked[place - 1]
                joined += bool(asked[place])
    assert joined > 20
    alone = filled(masked(), at(indices))
    assert any(
        continues[window[place]] and apart[place] != apart[place - 1]
        for row, window in enumerate(originals(examples, indices))
        for apart in [(alone.targets[row, 1 : 1 + len(window)] != NOT_ASKED).numpy()]
        for place in range(1, len(window))
    )


def test_masks_follow_from_the_place_alone() -> None:
    examples = masked()
    together = filled(examples, at([3, 1, 2], seed=5, epoch=2, first=10))
    alone = filled(examples, at([2], seed=5, epoch=2, first=12))
    assert torch.equal(together.targets[2], alone.targets[0])
    assert torch.equal(together.ids[2], alone.ids[0])
    for other in ({"epoch": 3}, {"seed": 6}, {"first": 13}):
        changed = filled(examples, at([2], **({"seed": 5, "epoch": 2, "first": 12} | other)))
        assert not torch.equal(changed.targets, alone.targets)


def test_evaluation_hides_the_same_in_batches_of_any_size() -> None:
    examples = masked(making=EVALUATION)
    rows: list[list[list[int]]] = [
        [
            row[mask].tolist()
            for _, batch in evaluated(examples, size)
            for made in [batch]
            for row, mask in zip(made.ids, made.mask, strict=True)  # type: ignore[attr-defined]
        ]
        for size in (1, 4)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == len(examples)


def test_windows_of_masked_text_hold_each_token_once() -> None:
    examples = masked(making=EVALUATION)
    found: list[int] = []
    for _, batch in evaluated(examples):
        made: Any = batch
        ids = torch.where(made.targets == NOT_ASKED, made.ids, made.targets)
        for row, mask in zip(ids, made.mask, strict=True):
            text = row[mask].tolist()
            assert (text[0], text[-1]) == (PIECES.classification_id, PIECES.separator_id)
            found += text[1:-1]
    assert found == examples.tokens.ids.tolist()


def test_a_window_of_special_tokens_alone_asks_nothing() -> None:
    examples = MaskedExamples(
        documents("☃ ☃ ☃"), PIECES, length=8, whole_words=False, making=replace(EVALUATION)
    )
    assert Counter(examples.tokens.ids.tolist())[PIECES.id("[UNK]")] == 3
    assert filled(examples, at([0])).weight == 0
