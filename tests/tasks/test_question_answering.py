"""The figures are worked out by hand from the rules of SQuAD's evaluation, versions 1.1 and 2.0."""

import numpy as np
import pytest
import torch
from torch import Tensor

from octavolt.tasks.question_answering import (
    AnswerScore,
    QuestionBatch,
    agreement,
    answers,
    mistakes,
    normalized,
    present,
)

CONTEXT = "The cat sat on the mat."
WORDS = [(0, 3), (4, 7), (8, 11), (12, 14), (15, 18), (19, 22), (22, 23)]
OFFSETS = np.array([(-1, -1), (-1, -1), (-1, -1), *WORDS, (-1, -1)])
"""[CLS] where [SEP] The cat sat on the mat . [SEP]"""
FIRST = 3
LENGTH = len(OFFSETS)


def batch(
    *,
    owners: tuple[int, ...] = (0,),
    right: tuple[tuple[str, ...], ...] = (("mat",),),
    offsets: tuple[np.ndarray, ...] | None = None,
    may_be_empty: bool = False,
    places: tuple[int, int] = (0, 0),
) -> QuestionBatch:
    rows = len(owners)
    nothing = torch.zeros(rows, LENGTH, dtype=torch.int64)
    return QuestionBatch(
        ids=nothing,
        mask=nothing == 0,
        kinds=nothing,
        owners=torch.tensor(owners),
        starts=torch.full((rows,), places[0]),
        ends=torch.full((rows,), places[1]),
        offsets=offsets or (OFFSETS,) * rows,
        contexts=(CONTEXT,) * len(right),
        answers=right,
        identities=tuple(f"q{index}" for index in range(len(right))),
        may_be_empty=may_be_empty,
    )


def logits(*rows: dict[tuple[int, int], float]) -> Tensor:
    """Return zeros but where a token (and 0 for start, 1 for end) is given another value."""
    result = torch.zeros(len(rows), LENGTH, 2)
    for row, values in enumerate(rows):
        for place, value in values.items():
            result[row][place] = value
    return result


def span(start: int, end: int, value: float = 5.0) -> dict[tuple[int, int], float]:
    """Return what makes the words from `start` to `end` of the context the answer."""
    return {(FIRST + start, 0): value, (FIRST + end, 1): value}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("The  Cat!", ["cat"]),
        ("an apple a day", ["apple", "day"]),
        ("U.S.A.", ["usa"]),
        ("theatre", ["theatre"]),
        ("rock 'n' roll, the-best", ["rock", "n", "roll", "thebest"]),
        ("$1,000.50", ["100050"]),
        ("the", []),
        ("“quoted”", ["“quoted”"]),
        ("Ünï\tcode\n", ["ünï", "code"]),
    ],
)
def test_answers_are_compared_without_case_punctuation_and_articles(
    answer: str, words: list[str]
) -> None:
    assert normalized(answer) == words


@pytest.mark.parametrize(
    ("given", "right", "matches", "f1"),
    [
        ("The mat", ("mat.",), True, 1.0),
        # One of 2 given words and of 3 right ones in common: 2 * 1 / (2 + 3).
        ("red mat", ("mat of straw",), False, 0.4),
        # The best of several right ones counts.
        ("red mat", ("mat of straw", "a red mat"), True, 1.0),
        # A word counts as often as it stands in both: 2 in common of 3 and 2.
        ("no no no", ("no no",), False, 0.8),
        ("dog", ("cat",), False, 0.0),
        ("", (), True, 1.0),
        ("dog", (), False, 0.0),
        ("the", (), True, 1.0),
        ("", ("cat",), False, 0.0),
        # A right answer of which nothing is left doesn't make an empty one right.
        ("", ("the", "cat"), False, 0.0),
        ("", ("the",), True, 1.0),
    ],
)
def test_agreement_is_that_of_squad(
    given: str, right: tuple[str, ...], matches: bool, f1: float
) -> None:
    found, found_f1 = agreement(given, right)
    assert found is matches
    assert found_f1 == pytest.approx(f1)


def test_answer_is_the_words_between_the_likeliest_start_and_end() -> None:
    ((best, *_),) = answers(logits(span(4, 5)), batch())
    assert (best.text, best.start, best.score) == ("the mat", 15, 10.0)


def test_end_is_not_before_the_start() -> None:
    values = {**span(5, 1), (FIRST + 2, 1): 4.0, (FIRST + 1, 0): 3.0}
    ((best, *_),) = answers(logits(values), batch())
    # 5 to 1 would have 10; 1 to 1 has 3 + 5, and 1 to 2 has 3 + 4.
    assert (best.text, best.score) == ("cat", 8.0)


def test_answer_is_of_the_context_alone() -> None:
    values = {(1, 0): 9.0, (2, 1): 9.0, (LENGTH - 1, 1): 9.0, **span(1, 1, 1.0)}
    ((best, *_),) = answers(logits(values), batch())
    assert best.text == "cat"


def test_answer_has_thirty_tokens_at_most() -> None:
    context = " ".join("x" * 40)
    offsets = np.array([(-1, -1), *((2 * place, 2 * place + 1) for place in range(40))])
    made = torch.zeros(1, 41, 2)
    made[0, 1, 0], made[0, 31, 1], made[0, 30, 1] = 5.0, 5.0, 4.0
    nothing = torch.zeros(1, 41, dtype=torch.int64)
    asked = QuestionBatch(
        ids=nothing,
        mask=nothing == 0,
        kinds=nothing,
        owners=torch.zeros(1, dtype=torch.int64),
        starts=nothing[:, 0],
        ends=nothing[:, 0],
        offsets=(offsets,),
        contexts=(context,),
        answers=(("x",),),
        identities=("q",),
    )
    ((best, *_),) = answers(made, asked)
    assert len(best.text.split()) == 30


def test_best_window_of_a_question_answers_it() -> None:
    asked = batch(owners=(0, 1, 0), right=(("mat",), ("cat",)))
    found = answers(logits(span(5, 5, 2.0), span(1, 1), span(2, 2, 3.0)), asked)
    assert [one[0].text for one in found] == ["sat", "cat"]


@pytest.mark.parametrize(("may_be_empty", "text"), [(True, ""), (False, "mat")])
def test_no_answer_where_it_is_likelier_and_allowed(may_be_empty: bool, text: str) -> None:
    values = {**span(5, 5, 2.0), (0, 0): 4.0, (0, 1): 4.0}
    ((best, *_),) = answers(logits(values), batch(may_be_empty=may_be_empty))
    assert best.text == text


def test_no_answer_scores_as_in_its_worst_window() -> None:
    """8 in one window, 3 in the other: the answer's 4 lies between."""
    first = {(0, 0): 4.0, (0, 1): 4.0}
    second = {(0, 0): 1.0, (0, 1): 2.0, **span(5, 5, 2.0)}
    ((best, *_),) = answers(logits(first, second), batch(owners=(0, 0), may_be_empty=True))
    assert best.text == "mat"


def test_score_tells_questions_with_and_without_an_answer_apart() -> None:
    """F1: 'the mat' 1, 'cat sat' of 'cat' 2/3; no answer: one right, one wrong."""
    asked = batch(owners=(0, 1, 2, 3), right=(("mat", "rug"), ("cat",), (), ()), may_be_empty=True)
    nothing = {(0, 0): 9.0, (0, 1): 9.0}
    score = AnswerScore(())
    score.update(logits(span(4, 5), span(1, 2), nothing, span(0, 1)), asked)
    result = score.result()
    assert result["has_answer"] == {
        "samples": 2,
        "exact_match": 0.5,
        "f1": pytest.approx((1 + 2 / 3) / 2),
    }
    assert result["no_answer"] == {"samples": 2, "exact_match": 0.5, "f1": 0.5}
    assert (result["samples"], result["exact_match"]) == (4, 0.5)
    assert result["f1"] == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)


def test_scores_of_shards_add_up() -> None:
    rows = (span(4, 5), span(1, 2), span(2, 2))
    whole = AnswerScore(())
    whole.update(logits(*rows), batch(owners=(0, 1, 2), right=(("mat",), ("cat",), ())))
    sums = torch.zeros_like(whole.sums())
    for row, right in zip(rows, (("mat",), ("cat",), ()), strict=True):
        part = AnswerScore(())
        part.update(logits(row), batch(right=(right,)))
        sums += part.sums()
    merged = AnswerScore(())
    merged.load(sums)
    assert merged.result() == whole.result()


def test_loss_is_the_mean_of_start_and_end() -> None:
    """Start: softmax of one 5 among 11 tokens. End: of one 0 among ten and a 5."""
    asked = batch(places=(FIRST + 1, FIRST + 2))
    score = AnswerScore(())
    score.update(logits(span(1, 3)), asked)
    total = float(np.log(np.exp(5) + 10))
    assert score.result()["negative_log_likelihood_nats"] == pytest.approx(total - 2.5)


def test_answers_are_shown_with_where_they_stand() -> None:
    (shown,) = present(logits(span(4, 5)), batch(may_be_empty=True), ())
    assert (shown["question"], shown["answer"], shown["start"]) == ("q0", "the mat", 15)
    assert len(shown["top"]) == 5
    assert shown["top"][0]["probability"] == shown["probability"] > 0.9


def test_mistakes_are_questions_without_an_exact_match() -> None:
    asked = batch(owners=(0, 1, 2), right=(("mat",), ("cat",), ()), may_be_empty=True)
    nothing = {(0, 0): 9.0, (0, 1): 9.0}
    found = mistakes(logits(span(5, 5), nothing, span(2, 2)), asked, np.array([7, 8, 9]), ())
    assert [(one.index, one.label, one.predicted) for one in found] == [
        (8, "cat", "no answer"),
        (9, "no answer", "sat"),
    ]


def test_window_shorter_than_its_batch_is_read_to_its_end() -> None:
    short = OFFSETS[: FIRST + 2]
    values = {**span(1, 1, 1.0), **span(5, 5)}
    ((best, *_),) = answers(logits(values), batch(offsets=(short,)))
    assert best.text == "cat"
