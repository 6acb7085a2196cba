"""Question answering: the words of a context that answer a question, as in SQuAD."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import log_softmax

from octavolt.contract import Mistake, Score, Task
from octavolt.tasks.classification import UNIT, in_units
from octavolt.tasks.text import TextBatch, moved

MOST_CANDIDATES = 20
"""Likeliest starts, and ends, of a window that are tried together: Devlin et al.'s run_squad."""
MOST_ANSWER_TOKENS = 30
"""Tokens of the longest answer: Devlin et al.'s run_squad."""
NO_ANSWER = "no answer"
"""How people read that a context holds no answer."""


@dataclass(frozen=True, kw_only=True)
class QuestionBatch(TextBatch):
    """Windows: a question and as much of its context as fits. A long context takes several.

    What evaluation and prediction need beside the tensors stands in the tuples below them, which
    training leaves empty.
    """

    owners: Int[Tensor, " rows"]
    """Which question of the batch a window belongs to, from 0."""
    starts: Int[Tensor, " rows"]
    """The answer's first token in the window, or 0, the first of all, if it isn't in there."""
    ends: Int[Tensor, " rows"]
    """The answer's last token, or 0."""
    offsets: tuple[Int[np.ndarray, "_ 2"], ...] = ()
    """Of each window's tokens: the first character in the context and the one behind the last.

    It is -1 for tokens that aren't the context's.
    """
    contexts: tuple[str, ...] = ()
    """Of each question."""
    answers: tuple[tuple[str, ...], ...] = ()
    """Of each question: all that count as right; none means that there is no answer."""
    identities: tuple[str, ...] = ()
    """Of each question: its name in the data."""
    may_be_empty: bool = False
    """Whether the data have questions without an answer, so that the network may say so."""

    @property
    def weight(self) -> float:
        """Return the number of windows."""
        return float(len(self.owners))

    def to(self, device: torch.device) -> "QuestionBatch":
        """Return the batch on that device."""
        return moved(self, device)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the network takes for an answer; an empty text says that there is none."""

    text: str
    start: int
    """The first character in the context; 0 for no answer."""
    score: float
    """The sum of the logits of its start and end."""


class AnswerScore(Score):
    """Exact matches and F1, apart for questions with and without an answer, and the loss."""

    def __init__(self, _classes: Sequence[str]) -> None:
        self.totals = torch.zeros(2, 3, dtype=torch.int64)
        """Questions, exact matches, and F1 in units of 1/UNIT; first of those with an answer."""
        self.loss = torch.zeros(2, dtype=torch.int64)
        """Windows, and nats of a start or end in units of 1/UNIT."""

    def update(self, logits: Float[Tensor, "rows length 2"], batch: QuestionBatch, /) -> None:
        """Count one batch."""
        for given, right in zip(answers(logits, batch), batch.answers, strict=True):
            matches, f1 = agreement(given[0].text, right)
            row = 0 if right else 1
            self.totals[row] += torch.tensor([1, int(matches), round(f1 * UNIT)])
        nats = in_units(span_nats(logits.double(), batch).cpu())
        self.loss += torch.tensor([len(nats), int(nats.sum())])

    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted."""
        return torch.cat([self.totals.flatten(), self.loss])

    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""
        totals, loss = sums.split([self.totals.numel(), self.loss.numel()])
        self.totals, self.loss = totals.reshape_as(self.totals).clone(), loss.clone()

    def result(self) -> dict[str, Any]:
        """Return the metrics, shares from 0 to 1: Rajpurkar et al. 2016, section 6.1, and 2018."""
        samples = int(self.totals[:, 0].sum())
        if samples == 0:
            return {"samples": 0}
        windows, nats = self.loss.tolist()
        return {
            **shares(self.totals.sum(0)),
            "negative_log_likelihood_nats": nats / UNIT / windows,
            "has_answer": shares(self.totals[0]),
            "no_answer": shares(self.totals[1]),
        }


def shares(totals: Int[Tensor, "counts=3"]) -> dict[str, Any]:
    """Return the metrics of some questions; None where there are no such questions."""
    samples, matches, f1 = totals.tolist()
    return {
        "samples": samples,
        "exact_match": matches / samples if samples else None,
        "f1": f1 / UNIT / samples if samples else None,
    }


def span_nats(
    logits: Float[Tensor, "rows length 2"], batch: QuestionBatch
) -> Float[Tensor, " rows"]:
    """Return the mean of the starts' and ends' negative log-likelihood among the real tokens.

    Padding has no part in it, so that a window's loss doesn't depend on the others of its batch.
    """
    logs = log_softmax(logits.masked_fill(~batch.mask[:, :, None], float("-inf")), dim=1)
    places = torch.stack([batch.starts, batch.ends], dim=1)
    return -logs.gather(1, places[:, None, :])[:, 0].mean(1)


def answers(logits: Float[Tensor, "rows length 2"], batch: QuestionBatch) -> list[list[Answer]]:
    """Return the best answers of each question over all its windows, the best first.

    No answer, where there may be none, scores as in the window where the first token scores least.
    """
    found: list[list[Answer]] = [[] for _ in batch.contexts]
    nothing = [float("inf")] * len(found)
    for row, (window, owner) in enumerate(
        zip(logits.float().cpu().numpy(), batch.owners.tolist(), strict=True)
    ):
        nothing[owner] = min(nothing[owner], float(window[0].sum()))
        found[owner] += candidates(window, batch.offsets[row], batch.contexts[owner])
    for several, score in zip(found, nothing, strict=True):
        if batch.may_be_empty or not several:
            several.append(Answer(text="", start=0, score=score))
        several.sort(key=lambda one: -one.score)
        del several[MOST_CANDIDATES:]
    return found


def candidates(
    logits: Float[np.ndarray, "length 2"], offsets: Int[np.ndarray, "tokens 2"], context: str
) -> list[Answer]:
    """Return the best answers of one window: all of the context's tokens and short enough."""
    places = np.flatnonzero(offsets[:, 0] >= 0)
    starts, ends = (
        places[np.argsort(-logits[places, column], kind="stable")[:MOST_CANDIDATES]]
        for column in (0, 1)
    )
    lengths = ends[None, :] - starts[:, None] + 1
    pairs = np.argwhere((lengths >= 1) & (lengths <= MOST_ANSWER_TOKENS))
    answers = [
        Answer(
            text=context[offsets[start, 0] : offsets[end, 1]],
            start=int(offsets[start, 0]),
            score=float(logits[start, 0] + logits[end, 1]),
        )
        for start, end in ((starts[one], ends[other]) for one, other in pairs)
    ]
    return sorted(answers, key=lambda one: -one.score)[:MOST_CANDIDATES]


def normalized(answer: str) -> list[str]:
    """Return an answer's words as they are compared: SQuAD's rules for English.

    Lower case, without punctuation in ASCII and without the articles a, an and the.
    """
    bare = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def agreement(given: str, right: Sequence[str]) -> tuple[bool, float]:
    """Return whether an answer matches one of the right ones, and the best F1 over words.

    Where there is no right one, or nothing of it is left, only an empty answer is right.
    Right answers of which nothing is left are passed over where others have words.
    """
    wanted = [words for one in right if (words := normalized(one))] or [[]]
    words = normalized(given)
    return words in wanted, max(overlap(words, one) for one in wanted)


def overlap(given: Sequence[str], right: Sequence[str]) -> float:
    """Return F1 over words, each counted as often as it stands in both."""
    if not given or not right:
        return float(given == right)
    common = (Counter(given) & Counter(right)).total()
    return 2 * common / (len(given) + len(right))


def present(
    logits: Float[Tensor, "rows length 2"], batch: QuestionBatch, _classes: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the answer to each question, where it stands, and the best five with probabilities.

    Those are among the best answers: they sum to 1 over `MOST_CANDIDATES`.
    """
    results = []
    for identity, found in zip(batch.identities, answers(logits, batch), strict=True):
        shown = [
            {"answer": one.text, "start": one.start, "probability": share}
            for one, share in zip(found, probabilities(found), strict=True)
        ]
        results.append({"question": identity, **shown[0], "top": shown[:5]})
    return results


def probabilities(found: Sequence[Answer]) -> list[float]:
    """Return the share of each answer among those that were found."""
    scores = torch.tensor([one.score for one in found], dtype=torch.float64)
    result: list[float] = scores.softmax(0).tolist()
    return result


def mistakes(
    logits: Float[Tensor, "rows length 2"],
    batch: QuestionBatch,
    indices: Int[np.ndarray, " questions"],
    _classes: Sequence[str],
) -> list[Mistake]:
    """Return the questions whose answer matches none of the right ones."""
    return [
        Mistake(
            probability=probabilities(found)[0],
            index=int(indices[place]),
            label=right[0] if right else NO_ANSWER,
            predicted=found[0].text or NO_ANSWER,
        )
        for place, (found, right) in enumerate(
            zip(answers(logits, batch), batch.answers, strict=True)
        )
        if not agreement(found[0].text, right)[0]
    ]


TASK = Task(
    name="question-answering",
    modality="text",
    sample="question",
    unit="text",
    new_score=AnswerScore,
    present=present,
    mistakes=mistakes,
    primary_metric="f1",
    tie_metric="negative_log_likelihood_nats",
)
