"""Text from a language model: several prompts at once, a piece at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from octavolt.contract import Say
from octavolt.devices import Machine, gpu_count
from octavolt.errors import OctavoltError
from octavolt.generate.decoder import Decoder
from octavolt.generate.sampling import Sampling, next_tokens
from octavolt.generate.stops import Stops
from octavolt.networks.opened import Opened

Reason = Literal["end", "stop", "length"]
"""Why a text ended: the network ended it, a stop string came, or it has all its tokens."""
TASKS = ("causal-language-modeling", "dialogue")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What a step added to one text."""

    prompt: int
    """Which prompt it answers, from 0."""
    text: str
    """Whole characters; empty at most in a text's last piece."""
    prompt_tokens: int
    tokens: int
    """New tokens of the text so far, one that ended it included."""
    reason: Reason | None = None
    """In a text's last piece, why it ended."""

    @property
    def done(self) -> bool:
        """Whether it is the last piece of its text."""
        return self.reason is not None


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The whole answer to one prompt."""

    prompt: str
    text: str
    """Without the prompt."""
    prompt_tokens: int
    tokens: int
    """That were generated, one that ended the text included."""
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """What writes text, of a network that was opened."""

    body: Any
    """transformers' GPT2LMHeadModel."""
    tokenizer: Any
    machine: Machine

    @property
    def length(self) -> int:
        """Tokens that the network can see at once."""
        return int(self.body.config.n_positions)


def best_precision(asked: str) -> str:
    """Return the precision to write in where a user leaves it open: fp32 on a CPU.

    A text's next token is a product of each matrix with one row: the time is that of reading the
    matrix, and bf16 gains none there (0.85 of the tokens a second with GPT-2 on a Xeon with AMX).
    So fp32 is as fast, and gives a prompt the same answer in any batch.
    """
    return "fp32" if asked == "auto" and gpu_count() == 0 else asked


def language_model(opened: Opened) -> LanguageModel:
    """Return the language model of an opened network; raise if it is something else."""
    if opened.task.name not in TASKS:
        raise OctavoltError(
            f"{opened.run or 'This network'} is a {opened.entry.name} for {opened.task.name}, "
            "which writes no text: use octavolt predict with it. To generate, name a run of gpt2 "
            f"for {' or '.join(TASKS)}."
        )
    preparation: Any = opened.preparation
    return LanguageModel(
        body=opened.network.body, tokenizer=preparation.tokenizer, machine=opened.machine
    )


def generate(
    opened: Opened,
    prompts: Sequence[str],
    *,
    settings: Sampling,
    batch_size: int = 8,
    say: Say = lambda _: None,
) -> Iterator[Piece]:
    """Yield the texts that follow prompts, a piece at a time; those of a batch take turns.

    Raises `OctavoltError` before the first piece if a prompt can't be answered. Equal seeds give
    equal texts, whichever prompts stand beside one.
    """
    model = language_model(opened)
    yield from continued(
        model, encoded(model, prompts), settings=settings, batch_size=batch_size, say=say
    )


def encoded(model: LanguageModel, prompts: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each prompt; an empty one is the token that ends a text."""
    texts = [tokens.tolist() for tokens in model.tokenizer.encode([*prompts])]
    for number, tokens in enumerate(texts, start=1):
        if tokens:
            continue
        if model.tokenizer.end_id is None:
            raise OctavoltError(
                f"Prompt {number} of {len(texts)} is empty, and this run's tokenizer has no token "
                "that a text could begin after. Give the text some beginning."
            )
        tokens.append(model.tokenizer.end_id)
    return texts


def continued(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    *,
    settings: Sampling,
    batch_size: int = 8,
    first: int = 0,
    say: Say = lambda _: None,
) -> Iterator[Piece]:
    """Yield what follows texts of tokens, which count from `first`: see `generate`."""
    for number, text in enumerate(texts, start=1):
        if len(text) > model.length:
            raise OctavoltError(
                f"Prompt {number} of {len(texts)} has {len(text)} tokens; this network sees "
                f"{model.length} at most. Shorten it by {len(text) - model.length} or more."
            )
    said = SayOnce(say)
    for begin in range(0, len(texts), batch_size):
        group = [
            Answer(first + begin + place, text, model, settings)
            for place, text in enumerate(texts[begin : begin + batch_size])
        ]
        yield from written(model, group, settings, said)


def complete(
    opened: Opened,
    prompts: Sequence[str],
    *,
    settings: Sampling,
    batch_size: int = 8,
    say: Say = lambda _: None,
) -> list[Completion]:
    """Return the whole texts that follow prompts: see `generate`."""
    parts: list[list[Piece]] = [[] for _ in prompts]
    for piece in generate(opened, prompts, settings=settings, batch_size=batch_size, say=say):
        parts[piece.prompt].append(piece)
    completions = []
    for prompt, pieces in zip(prompts, parts, strict=True):
        reason = pieces[-1].reason
        assert reason is not None
        completions.append(
            Completion(
                prompt=prompt,
                text="".join(piece.text for piece in pieces),
                prompt_tokens=pieces[-1].prompt_tokens,
                tokens=pieces[-1].tokens,
                reason=reason,
            )
        )
    return completions


class SayOnce:
    """Says the first sentence that it is given, and no other."""

    def __init__(self, say: Say) -> None:
        self.say: Say | None = say

    def __call__(self, sentence: str) -> None:
        """Say it, unless something was said before."""
        say, self.say = self.say, None
        if say is not None:
            say(sentence)


class Answer:
    """A text under way."""

    def __init__(
        self, position: int, prompt: Sequence[int], model: LanguageModel, settings: Sampling
    ) -> None:
        self.position = position
        self.prompt_tokens = len(prompt)
        self.window = [*prompt]
        """The tokens that the network sees."""
        self.new = 0
        self.settings = settings
        self.end_id: int | None = model.tokenizer.end_id
        self.stream = model.tokenizer.stream()
        self.stops = Stops(settings.stop)

    def add(self, token: int) -> Piece:
        """Take the next token, and return what it adds to the text."""
        self.window.append(token)
        self.new += 1
        text, reason = "", self.reason(token)
        if reason != "end":
            text = self.stops.add(self.stream.add(token))
        if reason is not None:
            text += self.stops.add(self.stream.finish())
        if self.stops.found:
            reason = "stop"
        elif reason is not None:
            text += self.stops.finish()
        return Piece(
            prompt=self.position,
            text=text,
            prompt_tokens=self.prompt_tokens,
            tokens=self.new,
            reason=reason,
        )

    def reason(self, token: int) -> Reason | None:
        """Return why the text ends with that token, stop strings aside; None if it goes on."""
        if token == self.end_id:
            return "end"
        return "length" if self.new == self.settings.max_tokens else None


def written(
    model: LanguageModel, answers: list[Answer], settings: Sampling, say: Say
) -> Iterator[Piece]:
    """Yield the pieces of one batch."""
    size = model.tokenizer.size
    decoder = Decoder(model.body, model.machine, vocabulary_size=size, rows=len(answers))
    seen = tokens_seen(answers, size, decoder.device) if settings.repetition_penalty != 1 else None
    logits = decoder.begin([answer.window for answer in answers], columns=columns(answers, decoder))
    for step in range(settings.max_tokens):
        positions = [answer.position for answer in answers]
        tokens = next_tokens(logits, seen, settings, positions=positions, step=step)
        pieces = [answer.add(token) for answer, token in zip(answers, tokens.tolist(), strict=True)]
        yield from (piece for piece in pieces if piece.text or piece.done)
        rows = [row for row, piece in enumerate(pieces) if not piece.done]
        if not rows:
            return
        if seen is not None:
            seen.scatter_(1, tokens[:, None], True)
        if len(rows) < len(answers):
            answers = [answers[row] for row in rows]
            tokens = tokens[rows]
            seen = seen[rows] if seen is not None else None
            decoder.keep(rows)
        if not decoder.full:
            logits = decoder.advance(tokens)
        else:
            for answer in answers:
                slide(answer, model.length, say)
            logits = decoder.begin(
                [answer.window for answer in answers], columns=columns(answers, decoder)
            )


def columns(answers: Sequence[Answer], decoder: Decoder) -> int:
    """Return how many tokens the longest text of a batch can have before it must slide."""
    left = max(len(one.window) + one.settings.max_tokens - one.new for one in answers)
    return min(left, decoder.length)


def slide(answer: Answer, length: int, say: Say) -> None:
    """Forget the older half of a text that the network can't see whole any more.

    Positions are learned, so keys and values can't move: the rest is computed anew, and half a
    window of it makes that as rare as is sensible.
    """
    if len(answer.window) <= length:
        return
    answer.window = answer.window[-max(1, length // 2) :]
    say(
        f"A text is longer than the {length} tokens that this network sees at once: from here on "
        f"it writes with the last {len(answer.window)} in view, and forgets what came before."
    )


def tokens_seen(
    answers: Sequence[Answer], size: int, device: torch.device
) -> Bool[Tensor, "rows vocabulary"]:
    """Return which tokens each prompt holds."""
    seen = torch.zeros((len(answers), size), dtype=torch.bool, device=device)
    for row, answer in enumerate(answers):
        seen[row, torch.tensor(answer.window, device=device)] = True
    return seen
