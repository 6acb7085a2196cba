"""Questions in windows: every token of the context is in one, and answers are found again."""

from random import Random
from typing import Any

import numpy as np
import pytest

from octavolt.contract import Making
from octavolt.data.text.questions import (
    LEAST_LENGTH,
    QuestionExamples,
    Window,
    tokenized,
    windows_of,
)
from octavolt.data.text.samples import Question
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.errors import OctavoltError
from tests.data.text.made import EVALUATION, TRAINING, Heard, at, filled, questions, trained

PIECES = (
    "the",
    "cat",
    "Sat",
    "naïve",
    "café",
    "你好",
    "机器学习",
    "😀",
    "3.14",
    "x-ray",
    "İ",
    "...",
)
TOKENIZER = trained(" ".join(PIECES * 20), "wordpiece", 300)
ASKED = "the cat?"


def windows_over(
    question: Question, tokenizer: Tokenizer, *, length: int, stride: int
) -> list[Window]:
    tokens = tokenized(question, tokenizer)
    return windows_of(question, tokens, tokenizer, length=length, stride=stride)


def made_question(seed: int, *, count: int = 40) -> Question:
    """Return a question whose answer is some words of its context."""
    random = Random(seed)
    context, begins = "", []
    for _ in range(count):
        context += random.choice((" ", "  ", "\n", " "))
        begins.append(len(context))
        context += random.choice(PIECES)
    first = random.randrange(count - 3)
    begin, end = begins[first], begins[first + random.randrange(1, 3)]
    answer = context[begin:end].strip()
    return Question(identity="q", question=ASKED, context=context, answers=((answer, begin),))


@pytest.mark.parametrize(("length", "stride"), [(16, 4), (16, 128), (24, 5), (512, 128)])
def test_windows_cover_the_context_in_steps(length: int, stride: int) -> None:
    for seed in range(10):
        question = made_question(seed)
        ids, offsets = TOKENIZER.encode_with_offsets(question.context)
        windows = windows_over(question, TOKENIZER, length=length, stride=stride)
        seen: set[int] = set()
        step = min(stride, length - len(TOKENIZER.encode([ASKED])[0]) - 3)
        for number, window in enumerate(windows):
            assert len(window.ids) <= length
            inside = np.flatnonzero(window.offsets[:, 0] >= 0)
            assert (window.kinds[inside] == 1).all()
            first = number * step
            assert window.ids[inside].tolist() == ids[first : first + len(inside)].tolist()
            assert window.offsets[inside].tolist() == offsets[first:][: len(inside)].tolist()
            seen |= set(range(first, first + len(inside)))
        assert seen == set(range(len(ids)))


def test_answers_are_found_again_by_their_places() -> None:
    """Of each window with the answer in it: the text between start and end is the answer."""
    found = 0
    for seed in range(60):
        question = made_question(seed)
        (answer, begin), *_ = question.answers
        windows = windows_over(question, TOKENIZER, length=32, stride=8)
        holding = 0
        for window in windows:
            inside = window.offsets[window.offsets[:, 0] >= 0]
            whole = inside[0, 0] <= begin and begin + len(answer) <= inside[-1, 1]
            assert bool(window.end) == whole
            if window.end:
                first, last = window.offsets[window.start, 0], window.offsets[window.end, 1]
                assert question.context[first:last] == answer
                assert first == begin
                holding += 1
        found += holding > 0
    assert found == 60


def numbered(count: int) -> str:
    return " ".join(f"w{number}" for number in range(count))


NUMBERS = trained(numbered(100) + " who", "wordpiece", 400)


def straddling(answer: str) -> Question:
    context = numbered(30)
    return Question(
        identity="q", question="who", context=context, answers=((answer, context.index(answer)),)
    )


def test_an_answer_across_a_windows_edge_is_in_the_next() -> None:
    length = 1 + 3 + 10
    assert len(NUMBERS.encode(["who"])[0]) == 1
    assert len(NUMBERS.encode([numbered(30)])[0]) == 30
    first, second, *_ = windows_over(straddling("w9 w10"), NUMBERS, length=length, stride=5)
    assert (first.start, first.end) == (0, 0)
    assert (second.start, second.end) == (3 + 9 - 5, 3 + 10 - 5)


def test_spaces_around_an_answer_are_no_part_of_it() -> None:
    context = numbered(10)
    place = context.index(" w3 ")
    question = Question(identity="q", question="who", context=context, answers=((" w3 ", place),))
    (window,) = windows_over(question, NUMBERS, length=64, stride=32)
    assert (window.start, window.end) == (3 + 3, 3 + 3)


def examples(*, length: int = 14, stride: int = 5, making: Making = TRAINING) -> QuestionExamples:
    context = numbered(30)
    asked = questions(
        ("who", context, [("w9 w10", context.index("w9 w10"))]),
        ("who", numbered(5), []),
        ("who who", context, [("w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 w20", 27)]),
    )
    return QuestionExamples(
        asked, NUMBERS, length=length, stride=stride, may_be_empty=True, making=making
    )


def test_answers_that_fit_in_no_window_are_counted() -> None:
    heard = Heard()
    made = examples(making=Making(recipe=TRAINING.recipe, say=heard))
    context = made.questions.read(2).context
    (answer, begin), *_ = made.questions.read(2).answers
    assert context[begin:].startswith(answer)
    assert heard == [
        "1 answer of 3 fit in no window of 14 tokens and teach nothing: a smaller --stride or a "
        "larger --length reads them."
    ]
    heard.clear()
    examples(length=64, making=Making(recipe=TRAINING.recipe, say=heard))
    assert heard == []


def test_a_sample_is_a_window_in_training_and_a_question_in_evaluation() -> None:
    training, evaluation = examples(), examples(making=EVALUATION)
    counts = [
        len(windows_over(training.questions.read(index), NUMBERS, length=14, stride=5))
        for index in range(3)
    ]
    assert len(training) == sum(counts)
    assert len(evaluation) == 3
    assert [training.name(index) for index in (0, counts[0])] == ["a.json:1", "a.json:2"]
    one: Any = filled(training, at([1]))
    assert (one.starts.tolist(), one.ends.tolist()) == ([7], [8])
    whole: Any = filled(evaluation, at([1, 0]))
    assert whole.owners.tolist() == [0, *[1] * counts[0]]
    assert whole.answers == ((), ("w9 w10",))
    assert whole.mask[0].sum() == 1 + 3 + 5
    assert (whole.ids[0, 9:] == NUMBERS.padding_id).all()
    assert training.lengths is not None
    assert training.lengths.tolist() == [
        len(window.ids)
        for index in range(3)
        for window in windows_over(training.questions.read(index), NUMBERS, length=14, stride=5)
    ]


def test_the_shortest_length_has_room_for_a_context() -> None:
    question = Question(identity="q", question=numbered(9), context=numbered(20), answers=())
    windows = windows_over(question, NUMBERS, length=LEAST_LENGTH, stride=1)
    assert all((window.offsets[:, 0] >= 0).any() for window in windows)


def test_no_questions_are_an_error() -> None:
    with pytest.raises(OctavoltError, match=r"^The train split holds no questions\.$"):
        QuestionExamples(
            questions(), NUMBERS, length=14, stride=5, may_be_empty=False, making=TRAINING
        )
