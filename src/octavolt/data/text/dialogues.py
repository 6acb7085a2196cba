"""Conversations as batches of like length; only the answers are learned."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Int

from octavolt.contract import Examples, Job, Making, Places, Samples
from octavolt.data.text.dialogue import encode_conversation
from octavolt.data.text.labelled import tell_cut
from octavolt.data.text.packed_text import windows_in_a_pass
from octavolt.data.text.tokenizer import Tokenizer
from octavolt.data.text.tokens import Tokens, Writer, cache_key, cached, default_folder
from octavolt.tasks.causal_language_modeling import CausalBatch
from octavolt.tasks.text import NOT_ASKED


class DialogueExamples(Examples):
    """The conversations of one split. Of one that is too long the end is read."""

    def __init__(
        self, conversations: Samples, tokenizer: Tokenizer, *, length: int, making: Making
    ) -> None:
        self.conversations = conversations
        self.tokenizer = tokenizer
        self.length = length
        self.evaluates = making.recipe is None
        self.pin = making.pin
        self.evaluation_batch_size = windows_in_a_pass(length, tokenizer)
        self.tokens = tokens_of_conversations(conversations, tokenizer, making)
        counts = self.tokens.lengths()
        self.token_counts = np.minimum(counts - 1, length)
        self.lengths = self.token_counts
        tell_cut(int((counts - 1 > length).sum()), len(counts), length, making)

    def __len__(self) -> int:
        """Return the number of conversations."""
        return len(self.conversations)

    def name(self, index: int) -> str:
        """Return the conversation's file and line."""
        return self.conversations.name(index)

    def show(self, index: int) -> dict[str, str]:
        """Return the conversation, a line a message."""
        messages = self.conversations.read(index)
        return {"text": "\n".join(f"{one.role}: {one.content}" for one in messages)}

    def begin(self, places: Places) -> tuple[CausalBatch, Sequence[Job]]:
        """Return a batch to be filled, and the one job that fills it."""
        indices = places.indices
        shape = (len(indices), int(self.token_counts[indices].max()))
        text_bytes = 0
        if self.evaluates:
            counts = self.tokenizer.byte_counts
            for index in indices.tolist():
                ids, answers = self._cut(index)
                text_bytes += int(counts[ids[1:][answers[1:]]].sum())
        batch = CausalBatch(
            ids=torch.full(
                shape, self.tokenizer.padding_id, dtype=torch.int64, pin_memory=self.pin
            ),
            targets=torch.full(shape, NOT_ASKED, dtype=torch.int64, pin_memory=self.pin),
            bytes=text_bytes,
        )
        return batch, [partial(self._fill, batch, indices)]

    def _fill(self, batch: CausalBatch, indices: Int[np.ndarray, " batch"]) -> None:
        for row, index in enumerate(indices.tolist()):
            ids, answers = self._cut(index)
            size = len(ids) - 1
            batch.ids.numpy()[row, :size] = ids[:-1]
            batch.targets.numpy()[row, :size] = np.where(answers[1:], ids[1:], NOT_ASKED)

    def _cut(self, index: int) -> tuple[Int[np.ndarray, " tokens"], Bool[np.ndarray, " tokens"]]:
        """Return the end of a conversation, and which of its tokens belong to answers."""
        both = self.tokens.sample(index)[-self.length - 1 :]
        return both >> 1, (both & 1).astype(bool)


def tokens_of_conversations(conversations: Samples, tokenizer: Tokenizer, making: Making) -> Tokens:
    """Return twice each token, and one more if it belongs to an answer; from the cache if there."""

    def make(writer: Writer) -> None:
        for index in range(len(conversations)):
            messages = conversations.read(index)
            ids, answers = encode_conversation(
                tokenizer, [{"role": one.role, "content": one.content} for one in messages]
            )
            writer.add(2 * ids + answers)
            making.progress(index + 1, len(conversations))

    return cached(
        default_folder() if making.digest else None,
        cache_key(making.digest, tokenizer, what="conversations"),
        make,
        vocabulary_size=2 * tokenizer.size,
    )
