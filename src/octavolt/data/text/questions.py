"""Questions with their contexts, which are read in windows where they are long."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from octavolt.contract import Examples, Job, Making, Places, Samples
from octavolt.data.text.samples import Question
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.data.text.tokens import Writer, cache_key, cached, default_folder
from octavolt.errors import OctavoltError
from octavolt.tasks.question_answering import QuestionBatch
from octavolt.units import counted

QUESTIONS_IN_A_PASS = 8
"""Of evaluation: a question may have many windows."""
MOST_QUESTION_FRACTION = 0.5
"""Of a window; a longer question is cut, so that there is room for the context."""
LEAST_LENGTH = 8
"""Tokens of a window that leave room for the context beside half of it and three special ones."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """A question and as much of its context as fits."""

    ids: Int[np.ndarray, " tokens"]
    kinds: Int[np.ndarray, " tokens"]
    offsets: Int[np.ndarray, "tokens 2"]
    """Characters of the context, or -1."""
    start: int = 0
    """The answer's first token, or 0 if it isn't in there."""
    end: int = 0


@dataclass(frozen=True, kw_only=True)
class Tokenized:
    """A question and its context as tokens."""

    asked: Int[np.ndarray, " question"]
    context: Int[np.ndarray, " context"]
    offsets: Int[np.ndarray, "context 2"]
    """Where each token of the context begins and ends, in characters."""


def tokenized(question: Question, tokenizer: Tokenizer) -> Tokenized:
    """Return a question and its context as tokens."""
    (asked,) = tokenizer.encode([question.question])
    context, offsets = tokenizer.encode_with_offsets(question.context)
    return Tokenized(asked=asked, context=context, offsets=offsets)


def windows_of(
    question: Question, tokens: Tokenized, tokenizer: Tokenizer, *, length: int, stride: int
) -> list[Window]:
    """Return the windows over a context; each begins `stride` tokens after the one before."""
    context, offsets = tokens.context, tokens.offsets
    answer = answer_in(question, offsets)
    asked = tokens.asked[: int(MOST_QUESTION_FRACTION * length)]
    room = length - len(asked) - 3
    begin = len(asked) + 2
    windows = []
    for first in range(0, max(1, len(context)), min(stride, room)):
        part, places = context[first : first + room], offsets[first : first + room]
        wrapped = tokenizer.wrap(asked, part, length=length)
        shown = np.full((len(wrapped.ids), 2), -1, np.int32)
        shown[begin : begin + len(part)] = places
        inside = answer is not None and first <= answer[0] and answer[1] < first + len(part)
        start, end = (begin - first + one for one in answer) if answer and inside else (0, 0)
        windows.append(
            Window(ids=wrapped.ids, kinds=wrapped.kinds, offsets=shown, start=start, end=end)
        )
        if first + room >= len(context):
            break
    return windows


def answer_in(question: Question, offsets: Int[np.ndarray, "tokens 2"]) -> tuple[int, int] | None:
    """Return the first and last token of the context that the first answer touches, if any.

    Spaces at its ends belong to no token, and are not missed.
    """
    if not question.answers:
        return None
    text, begin = question.answers[0]
    inside = np.flatnonzero((offsets[:, 1] > begin) & (offsets[:, 0] < begin + len(text)))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def batch_of(
    groups: Sequence[Sequence[Window]],
    questions: Sequence[Question],
    *,
    padding_id: int,
    may_be_empty: bool,
) -> QuestionBatch:
    """Return the windows of several questions as one batch."""
    windows = [window for group in groups for window in group]
    shape = (len(windows), max(len(window.ids) for window in windows))
    batch = QuestionBatch(
        ids=torch.full(shape, padding_id, dtype=torch.int64),
        mask=torch.zeros(shape, dtype=torch.bool),
        kinds=torch.zeros(shape, dtype=torch.int64),
        owners=torch.tensor([owner for owner, group in enumerate(groups) for _ in group]),
        starts=torch.tensor([window.start for window in windows]),
        ends=torch.tensor([window.end for window in windows]),
        offsets=tuple(window.offsets for window in windows),
        contexts=tuple(one.context for one in questions),
        answers=tuple(tuple(text for text, _ in one.answers) for one in questions),
        identities=tuple(one.identity for one in questions),
        may_be_empty=may_be_empty,
    )
    for row, window in enumerate(windows):
        size = len(window.ids)
        batch.ids.numpy()[row, :size] = window.ids
        batch.mask.numpy()[row, :size] = True
        batch.kinds.numpy()[row, :size] = window.kinds
    return batch


class TokenizedQuestions:
    """The tokens of a split's questions and contexts, each context once, from the cache if there.

    In the stream a question has one sample and, where its context is new, that has two: its tokens,
    and the ends of their places, two for each.
    """

    def __init__(self, questions: Samples, tokenizer: Tokenizer, making: Making) -> None:
        self.asked_at: list[int] = []
        self.context_at: list[int] = []
        known: dict[str, int] = {}
        samples = 0
        for index in range(len(questions)):
            context = questions.read(index).context
            self.asked_at.append(samples)
            samples += 1
            if context not in known:
                known[context] = samples
                samples += 2
            self.context_at.append(known[context])

        def make(writer: Writer) -> None:
            for index in range(len(questions)):
                question = questions.read(index)
                (asked,) = tokenizer.encode([question.question])
                writer.add(asked)
                if self.context_at[index] == self.asked_at[index] + 1:
                    context, offsets = tokenizer.encode_with_offsets(question.context)
                    writer.add(context)
                    writer.add(offsets.reshape(-1))
                making.progress(index + 1, len(questions))

        self.tokens = cached(
            default_folder() if making.digest else None,
            cache_key(making.digest, tokenizer, what="questions"),
            make,
            vocabulary_size=2**31 - 1,  # places of characters stand among the tokens
        )

    def read(self, index: int) -> Tokenized:
        """Return the tokens of one question and its context."""
        place = self.context_at[index]
        return Tokenized(
            asked=self.tokens.sample(self.asked_at[index]),
            context=self.tokens.sample(place),
            offsets=self.tokens.sample(place + 1).reshape(-1, 2),
        )


class QuestionExamples(Examples):
    """The questions of one split: in training a sample is a window, in evaluation a question."""

    def __init__(
        self,
        questions: Samples,
        tokenizer: Tokenizer,
        *,
        length: int,
        stride: int,
        may_be_empty: bool,
        making: Making,
    ) -> None:
        self.questions = questions
        self.tokenizer = tokenizer
        self.length = length
        self.stride = stride
        self.training = making.recipe is not None
        self.evaluation_batch_size = QUESTIONS_IN_A_PASS
        self.may_be_empty = may_be_empty
        self.tokens = TokenizedQuestions(questions, tokenizer, making)
        found = []
        lost = 0
        for index in range(len(questions)):
            windows = self._windows(index)
            found.append(tuple(len(window.ids) for window in windows))
            answered = bool(questions.read(index).answers)
            lost += answered and not any(window.end for window in windows)
        if self.training and lost:
            making.say(
                f"{counted(lost, 'answer')} of {len(questions):,} fit in no window of {length} "
                "tokens and teach nothing: a smaller --stride or a larger --length reads them."
            )
        self.places = [
            (index, number) for index, sizes in enumerate(found) for number in range(len(sizes))
        ]
        if not found:
            raise OctavoltError(f"The {making.split} split holds no questions.")
        self.count = len(self.places) if self.training else len(found)
        self.lengths = np.array(
            [size for sizes in found for size in sizes]
            if self.training
            else [len(sizes) * max(sizes) for sizes in found],
            np.int64,
        )

    def __len__(self) -> int:
        """Return the number of windows or, in evaluation, of questions."""
        return self.count

    def name(self, index: int) -> str:
        """Return the question's name and place."""
        return self.questions.name(self.places[index][0] if self.training else index)

    def show(self, index: int) -> dict[str, str]:
        """Return the question with its context."""
        question = self.questions.read(self.places[index][0] if self.training else index)
        return {"text": f"{question.question}\n\n{question.context}"}

    def begin(self, places: Places) -> tuple[QuestionBatch, Sequence[Job]]:
        """Return a filled batch: how many windows it has, only making them tells."""
        groups, questions = [], []
        for index in places.indices.tolist():
            number, which = self.places[index] if self.training else (index, None)
            windows = self._windows(number)
            groups.append(windows if which is None else [windows[which]])
            questions.append(self.questions.read(number))
        batch = batch_of(
            groups,
            questions,
            padding_id=self.tokenizer.padding_id,
            may_be_empty=self.may_be_empty,
        )
        return batch, ()

    def _windows(self, index: int) -> list[Window]:
        return windows_of(
            self.questions.read(index),
            self.tokens.read(index),
            self.tokenizer,
            length=self.length,
            stride=self.stride,
        )
