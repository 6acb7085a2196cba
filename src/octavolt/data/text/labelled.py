"""Texts with labels, or pairs of texts, as batches of like length."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from octavolt.contract import Examples, Job, Making, Places, Samples
from octavolt.data.balance import class_weights
from octavolt.data.text.tokenizer import Tokenizer, Wrapped
from octavolt.data.text.tokens import Tokens, Writer, cache_key, cached, default_folder
from octavolt.tasks.text_classification import LabelledTextBatch
from octavolt.units import counted

TEXTS_TOGETHER = 4096
"""How many are tokenized in one call, on all threads."""


class LabelledExamples(Examples):
    """The rows of one split, tokenized once."""

    def __init__(
        self,
        rows: Samples,
        tokenizer: Tokenizer,
        *,
        length: int,
        class_count: int,
        several: bool,
        making: Making,
    ) -> None:
        self.rows = rows
        self.tokenizer = tokenizer
        self.length = length
        self.class_count = class_count
        self.several = several
        """Whether a text may have several labels, or none."""
        recipe = making.recipe
        self.label_smoothing = recipe.label_smoothing if recipe else 0.0
        self.class_weights = (
            class_weights(rows, class_count) if recipe and recipe.class_weights else None
        )
        self.pin = making.pin
        self.texts_a_row = len(rows.read(0).texts) if len(rows) else 1
        self.tokens = tokens_of_rows(rows, tokenizer, making)
        whole = row_lengths(rows, self.tokens)
        self.token_counts = np.minimum(whole, length)
        self.lengths = self.token_counts
        tell_cut(int((whole > length).sum()), len(rows), length, making)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.rows)

    def name(self, index: int) -> str:
        """Return the text's file and line."""
        return self.rows.name(index)

    def show(self, index: int) -> dict[str, str]:
        """Return the text."""
        return {"text": "\n".join(self.rows.read(index).texts)}

    def begin(self, places: Places) -> tuple[LabelledTextBatch, Sequence[Job]]:
        """Return a batch to be filled, and the one job that fills it."""
        indices = places.indices
        batch = empty_batch(
            len(indices),
            int(self.token_counts[indices].max()),
            targets=self._targets(indices),
            labels=torch.from_numpy(self.rows.labels[indices]),
            padding_id=self.tokenizer.padding_id,
            pin=self.pin,
        )
        return batch, [partial(self._fill, batch, indices)]

    def _fill(self, batch: LabelledTextBatch, indices: Int[np.ndarray, " batch"]) -> None:
        for row, index in enumerate(indices.tolist()):
            first = index * self.texts_a_row
            texts = [self.tokens.sample(first + one) for one in range(self.texts_a_row)]
            put(batch, row, self.tokenizer.wrap(*texts, length=self.length))

    def _targets(self, indices: Int[np.ndarray, " batch"]) -> Float[Tensor, "batch classes"]:
        smooth = self.label_smoothing
        if self.several:
            targets = torch.full((len(indices), self.class_count), smooth / 2)
            for row, index in enumerate(indices.tolist()):
                targets[row, list(self.rows.read(index).labels)] = 1 - smooth / 2
            return targets
        labels = torch.from_numpy(self.rows.labels[indices])
        targets = torch.full((len(indices), self.class_count), smooth / self.class_count)
        targets[torch.arange(len(indices)), labels] += 1 - smooth
        if self.class_weights is not None:
            targets *= self.class_weights[labels, None]
        return targets


def empty_batch(
    count: int,
    length: int,
    *,
    targets: Float[Tensor, "batch classes"],
    labels: Int[Tensor, " batch"],
    padding_id: int,
    pin: bool,
) -> LabelledTextBatch:
    """Return a batch of nothing but padding."""
    shape = (count, length)
    return LabelledTextBatch(
        ids=torch.full(shape, padding_id, dtype=torch.int64, pin_memory=pin),
        mask=torch.zeros(shape, dtype=torch.bool, pin_memory=pin),
        kinds=torch.zeros(shape, dtype=torch.int64, pin_memory=pin),
        targets=targets,
        labels=labels,
    )


def put(batch: LabelledTextBatch, row: int, text: Wrapped) -> None:
    """Write one text into its row of a batch."""
    size = len(text.ids)
    batch.ids.numpy()[row, :size] = text.ids
    batch.mask.numpy()[row, :size] = True
    batch.kinds.numpy()[row, :size] = text.kinds


def tokens_of_rows(rows: Samples, tokenizer: Tokenizer, making: Making) -> Tokens:
    """Return the tokens of all texts of all rows, one text after another, from the cache if there.

    Without a digest of the rows they are kept for this process.
    """

    def make(writer: Writer) -> None:
        for first in range(0, len(rows), TEXTS_TOGETHER):
            last = min(first + TEXTS_TOGETHER, len(rows))
            texts = [text for index in range(first, last) for text in rows.read(index).texts]
            for ids in tokenizer.encode(texts):
                writer.add(ids)
            making.progress(last, len(rows))

    return cached(
        default_folder() if making.digest else None,
        cache_key(making.digest, tokenizer, what="rows"),
        make,
        vocabulary_size=tokenizer.size,
    )


def row_lengths(rows: Samples, tokens: Tokens) -> Int[np.ndarray, " rows"]:
    """Return the tokens of each row, with those around its texts."""
    width = len(rows.read(0).texts) if len(rows) else 1
    counts: Int[np.ndarray, " rows"] = tokens.lengths().reshape(-1, width).sum(axis=1)
    return counts + width + 1


def tell_cut(cut: int, count: int, length: int, making: Making) -> None:
    """Say how many texts are longer than the network reads, if any."""
    if cut:
        making.say(
            f"{counted(cut, 'text')} of {count:,} of {making.split} "
            f"({100 * cut / count:.1f} %) are longer than {length} tokens: what is over is not "
            "read. A larger --length reads more."
        )
