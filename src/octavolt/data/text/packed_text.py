"""A corpus as one stream of tokens, cut into windows: for causal and masked language modeling."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from jaxtyping import Bool, Int

from octavolt.contract import Examples, Job, Making, Places, Samples
from octavolt.data.text.samples import characters_of
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.data.text.tokens import (
    Tokens,
    Writer,
    cache_key,
    cached,
    default_folder,
    tokenize_documents,
)
from octavolt.errors import OctavoltError
from octavolt.tasks.causal_language_modeling import CausalBatch
from octavolt.tasks.masked_language_modeling import MaskedBatch
from octavolt.tasks.text import NOT_ASKED

MOST_LOGITS = 2**27
"""Of one pass of evaluation: 512 MiB in fp32."""
MOST_WINDOWS = 32
"""In one pass of evaluation."""
SHIFT = 2**32
"""Stands for the position in the generator of an epoch's shift: no sample has it."""
MASKED_FRACTION = 0.15
MASK_TOKEN_FRACTION, RANDOM_TOKEN_FRACTION = 0.8, 0.1
"""Of the tokens that are asked for: Devlin et al. 2019, section 3.1. The rest stay as they are."""


def windows_in_a_pass(length: int, tokenizer: Tokenizer) -> int:
    """Return as many windows as keep the logits of a pass of evaluation within `MOST_LOGITS`."""
    return max(1, min(MOST_WINDOWS, MOST_LOGITS // (length * tokenizer.size)))


def stream_of(documents: Samples, tokenizer: Tokenizer, making: Making) -> Tokens:
    """Return the tokens of all documents back to back, from the cache if they are there."""

    def make(writer: Writer) -> None:
        tokenize_documents(
            (documents.read(index) for index in range(len(documents))),
            tokenizer,
            writer,
            total_bytes=characters_of(documents),
            progress=making.progress,
        )

    return cached(
        default_folder() if making.digest else None,
        cache_key(making.digest, tokenizer, what="documents"),
        make,
        vocabulary_size=tokenizer.size,
    )


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Where the windows of an epoch lie on the stream: each asked token is in exactly one."""

    asked: int
    """Tokens that are asked for: all but the first of the stream."""
    length: int

    @property
    def rest(self) -> int:
        """Return the tokens of the last window if the first one is whole."""
        return (self.asked - 1) % self.length + 1

    @property
    def starts_short(self) -> bool:
        """Whether first windows are cut shorter than the rest, which leaves more of them to choose.

        The first window's length is drawn anew in each epoch, so that windows don't begin at the
        same tokens every time. Their number stays the same: either all lengths from `rest` up, or
        all below it.
        """
        return self.rest - 1 > self.length - self.rest + 1

    @property
    def count(self) -> int:
        """Return the number of windows, the same in each epoch."""
        return (self.asked - 1) // self.length + (2 if self.starts_short else 1)

    def first_length(self, *, seed: int, epoch: int) -> int:
        """Return the tokens of an epoch's first window."""
        random = np.random.Generator(np.random.SFC64([seed, epoch, SHIFT]))
        if self.starts_short:
            return int(random.integers(1, self.rest))
        return int(random.integers(self.rest, self.length + 1))

    def span(self, index: int, first_length: int) -> tuple[int, int]:
        """Return where a window begins and ends, in tokens that are asked for."""
        begin = max(0, first_length + (index - 1) * self.length)
        return begin, min(first_length + index * self.length, self.asked)


class CausalExamples(Examples):
    """Windows over a corpus; the network is asked for each token once.

    In training they stand side by side. In evaluation each begins `stride` after the one before and
    is asked only for what that wasn't, so that each token has at least `length - stride` before it.
    """

    def __init__(
        self,
        documents: Samples,
        tokenizer: Tokenizer,
        *,
        length: int,
        stride: int,
        making: Making,
    ) -> None:
        self.tokenizer = tokenizer
        self.length = length
        self.stride = stride
        self.training = making.recipe is not None
        self.evaluation_batch_size = windows_in_a_pass(length, tokenizer)
        self.pin = making.pin
        self.tokens = stream_of(documents, tokenizer, making)
        asked = len(self.tokens.ids) - 1
        if asked < 1:
            raise OctavoltError(
                f"The {making.split} split holds {len(self.tokens.ids)} tokens, and at least 2 are "
                "needed. Add text."
            )
        self.windows = Windows(asked=asked, length=length)

    def __len__(self) -> int:
        """Return the number of windows."""
        if self.training:
            return self.windows.count
        return 1 + max(0, -(-(self.windows.asked - self.length) // self.stride))

    def name(self, index: int) -> str:
        """Return where the window begins, in tokens of its split."""
        return f"token {index * (self.length if self.training else self.stride):,}"

    def show(self, index: int) -> dict[str, str]:
        """Return the window's text."""
        begin, _, end = self._window(index, first_length=self.length)
        return {"text": self.tokenizer.decode(self.tokens.ids[begin : end + 1].astype(np.int32))}

    def begin(self, places: Places) -> tuple[CausalBatch, Sequence[Job]]:
        """Return a batch to be filled, and the one job that fills it."""
        first = self.windows.first_length(seed=places.seed, epoch=places.epoch)
        spans = [self._window(int(index), first_length=first) for index in places.indices]
        shape = (len(spans), max(end - begin for begin, _, end in spans))
        ids = torch.full(shape, self.tokenizer.padding_id, dtype=torch.int64, pin_memory=self.pin)
        targets = torch.full(shape, NOT_ASKED, dtype=torch.int64, pin_memory=self.pin)
        text_bytes = 0
        if not self.training:
            text_bytes = sum(self._bytes(asked + 1, end + 1) for _, asked, end in spans)
        batch = CausalBatch(ids=ids, targets=targets, bytes=text_bytes)
        return batch, [partial(self._fill, batch, spans)]

    def _window(self, index: int, *, first_length: int) -> tuple[int, int, int]:
        """Return where a window begins, where what it is asked for begins, and where it ends."""
        if self.training:
            begin, end = self.windows.span(index, first_length)
            return begin, begin, end
        begin = index * self.stride
        end = min(begin + self.length, self.windows.asked)
        return begin, begin if index == 0 else min(end, begin + self.length - self.stride), end

    def _fill(self, batch: CausalBatch, spans: Sequence[tuple[int, int, int]]) -> None:
        ids, targets = batch.ids.numpy(), batch.targets.numpy()
        for row, (begin, asked, end) in enumerate(spans):
            stream = self.tokens.ids[begin : end + 1]
            ids[row, : end - begin] = stream[:-1]
            targets[row, asked - begin : end - begin] = stream[1 + asked - begin :]

    def _bytes(self, begin: int, end: int) -> int:
        return int(self.tokenizer.byte_counts[self.tokens.ids[begin:end]].sum())


class MaskedExamples(Examples):
    """A corpus in windows, in each of which some tokens are hidden and asked for.

    Which ones follows from a window's place alone: others in each epoch of training, and always the
    same ones in evaluation.
    """

    def __init__(
        self,
        documents: Samples,
        tokenizer: Tokenizer,
        *,
        length: int,
        whole_words: bool,
        making: Making,
    ) -> None:
        self.tokenizer = tokenizer
        self.room = length - 2
        self.length = length
        self.whole_words = whole_words
        self.evaluation_batch_size = windows_in_a_pass(length, tokenizer)
        self.pin = making.pin
        self.tokens = stream_of(documents, tokenizer, making)
        if len(self.tokens.ids) < 1:
            raise OctavoltError(f"The {making.split} split holds no tokens. Add text.")
        self.special = np.zeros(tokenizer.size, bool)
        self.special[[*tokenizer.special.values()]] = True

    def __len__(self) -> int:
        """Return the number of windows."""
        return (len(self.tokens.ids) + self.room - 1) // self.room

    def name(self, index: int) -> str:
        """Return where the window begins, in tokens of its split."""
        return f"token {index * self.room:,}"

    def show(self, index: int) -> dict[str, str]:
        """Return the window's text."""
        return {"text": self.tokenizer.decode(self._window(index))}

    def begin(self, places: Places) -> tuple[MaskedBatch, Sequence[Job]]:
        """Return a batch to be filled, and the one job that fills it."""
        windows = [self._window(int(index)) for index in places.indices]
        shape = (len(windows), 2 + max(len(window) for window in windows))
        batch = MaskedBatch(
            ids=torch.full(
                shape, self.tokenizer.padding_id, dtype=torch.int64, pin_memory=self.pin
            ),
            mask=torch.zeros(shape, dtype=torch.bool, pin_memory=self.pin),
            kinds=torch.zeros(shape, dtype=torch.int64, pin_memory=self.pin),
            targets=torch.full(shape, NOT_ASKED, dtype=torch.int64, pin_memory=self.pin),
        )
        return batch, [partial(self._fill, batch, windows, places)]

    def _window(self, index: int) -> Int[np.ndarray, " tokens"]:
        first = index * self.room
        window: Int[np.ndarray, " tokens"] = self.tokens.ids[first : first + self.room].astype(
            np.int32
        )
        return window

    def _fill(
        self, batch: MaskedBatch, windows: Sequence[Int[np.ndarray, " _"]], places: Places
    ) -> None:
        for row, window in enumerate(windows):
            random = places.random(row)
            asked = self._asked(window, random)
            text = self.tokenizer.wrap(
                hidden(window, asked, self.tokenizer, random), length=self.length
            )
            size = len(text.ids)
            batch.ids.numpy()[row, :size] = text.ids
            batch.mask.numpy()[row, :size] = True
            batch.targets.numpy()[row, 1 : 1 + len(window)][asked] = window[asked]

    def _asked(
        self, window: Int[np.ndarray, " tokens"], random: np.random.Generator
    ) -> Bool[np.ndarray, " tokens"]:
        """Return which tokens are asked for: at least one, if there is any that isn't special."""
        plain = ~self.special[window]
        if self.whole_words:
            begins = ~self._continues[window]
            begins[:1] = True
            words = np.cumsum(begins) - 1
        else:
            words = np.arange(len(window))
        candidates = np.unique(words[plain])
        if len(candidates) == 0:
            return np.zeros(len(window), bool)
        count = max(1, round(MASKED_FRACTION * len(candidates)))
        # Sorting random words draws them: NumPy promises these, not those of `choice`.
        turns = np.argsort(random.random(len(candidates)), kind="stable")
        chosen: Bool[np.ndarray, " tokens"] = plain & np.isin(words, candidates[turns[:count]])
        return chosen

    @cached_property
    def _continues(self) -> Bool[np.ndarray, " vocabulary"]:
        continues: Bool[np.ndarray, " vocabulary"] = self.tokenizer.continues
        return continues


def hidden(
    window: Int[np.ndarray, " tokens"],
    asked: Bool[np.ndarray, " tokens"],
    tokenizer: Tokenizer,
    random: np.random.Generator,
) -> Int[np.ndarray, " tokens"]:
    """Return the window with [MASK] or a random token in the place of most of those asked for."""
    shares = random.random(len(window))
    strangers = random.integers(0, tokenizer.size, len(window))
    masked = asked & (shares < MASK_TOKEN_FRACTION)
    replaced = asked & ~masked & (shares < MASK_TOKEN_FRACTION + RANDOM_TOKEN_FRACTION)
    mask_id = tokenizer.mask_id
    assert mask_id is not None, "the preparation asks for it"
    return np.where(masked, mask_id, np.where(replaced, strangers, window)).astype(np.int32)
