"""How texts become a network's input: its tokenizer and the length of what it reads."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from octavolt.contract import (
    Batch,
    Entry,
    Examples,
    Input,
    Making,
    Preparation,
    Reading,
    Shape,
    TextLimits,
    Wanted,
)
from octavolt.data.text.dialogue import CHAT_TEMPLATE, END, ROLES
from octavolt.data.text.dialogues import DialogueExamples
from octavolt.data.text.inputs import read_inputs
from octavolt.data.text.labelled import (
    LabelledExamples,
    empty_batch,
    put,
    row_lengths,
    tokens_of_rows,
)
from octavolt.data.text.packed_text import CausalExamples, MaskedExamples
from octavolt.data.text.questions import (
    LEAST_LENGTH,
    QuestionExamples,
    batch_of,
    tokenized,
    windows_of,
)
from octavolt.data.text.samples import Conversations, Documents, Question, Questions, Rows
from octavolt.data.text.tokenizer import Tokenizer, read_tokenizer, train_tokenizer
from octavolt.errors import OctavoltError
from octavolt.runs import SCHEMA, read_fields, write_json
from octavolt.tasks.causal_language_modeling import CausalBatch
from octavolt.tasks.masked_language_modeling import MaskedBatch
from octavolt.tasks.text import NOT_ASKED

SMALL_TEXT_CHARACTERS = 2**24
SMALL_VOCABULARY, LARGE_VOCABULARY = 8_192, 32_768
"""Tokens that are trained from a text smaller than that, and from a larger one."""
QUESTION_LENGTH, QUESTION_STRIDE = 384, 128
"""Devlin et al. 2019, in the code published with it: windows begin so many tokens apart."""
MASKED_LENGTH = 128
"""Of most of the training in Devlin et al. 2019, appendix A.2."""
LONGEST = 2**16
MODELING = ("causal-language-modeling", "dialogue", "masked-language-modeling")
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "encoder.json",
)


class TextPreparation(Preparation):
    """A tokenizer, a length and a task, which together say what a batch is."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        task: str,
        classes: tuple[str, ...],
        reading: Reading,
        may_be_empty: bool = False,
    ) -> None:
        assert reading.length is not None, reading
        self.may_be_empty = may_be_empty
        """Whether some questions of the training have no answer, so that the network may say so."""
        self.tokenizer = tokenizer
        self.task = task
        self.classes = classes
        self.reading = reading
        self.length: int = reading.length

    def output_names(self) -> Sequence[str]:
        """Return the classes or, where the outputs are tokens, their texts."""
        return self._token_texts if self.task in MODELING else self.classes

    @cached_property
    def _token_texts(self) -> Sequence[str]:
        return [self.tokenizer.decode([number]) for number in range(self.tokenizer.size)]

    def shape(self, *, task: str) -> Shape:
        """Return what of a network follows from tokenizer, length and classes."""
        return Shape(
            task=task,
            classes=len(self.classes),
            vocabulary_size=self.tokenizer.size,
            length=self.length,
            padding_id=self.tokenizer.padding_id,
            end_id=self.tokenizer.end_id,
        )

    def save(self, run: Path) -> None:
        """Write the tokenizer's files and preprocessing.json."""
        template = CHAT_TEMPLATE if self.task == "dialogue" else None
        self.tokenizer.save(run, length=self.length, chat_template=template)
        write_json(
            run / "preprocessing.json",
            {
                "schema": SCHEMA,
                "task": self.task,
                "reading": asdict(self.reading),
                "may_be_empty": self.may_be_empty,
            },
        )

    def examples(self, samples: Any, making: Making) -> Examples:
        """Return a split's samples as the task takes them."""
        if self.task == "question-answering":
            return QuestionExamples(
                samples,
                self.tokenizer,
                length=self.length,
                stride=making.stride or self.reading.stride or QUESTION_STRIDE,
                may_be_empty=self.may_be_empty,
                making=making,
            )
        if self.task == "dialogue":
            return DialogueExamples(samples, self.tokenizer, length=self.length, making=making)
        if self.task == "causal-language-modeling":
            stride = making.stride or self.reading.stride or self.length
            check_stride(stride, self.length)
            return CausalExamples(
                samples, self.tokenizer, length=self.length, stride=stride, making=making
            )
        if self.task == "masked-language-modeling":
            return MaskedExamples(
                samples,
                self.tokenizer,
                length=self.length,
                whole_words=self.reading.whole_words,
                making=making,
            )
        return LabelledExamples(
            samples,
            self.tokenizer,
            length=self.length,
            class_count=len(self.classes),
            several=self.task.startswith("multi-label"),
            making=making,
        )

    def inputs(self, named: Sequence[str]) -> Iterator[Input]:
        """Yield the texts of files, or of the lines of standard input with '-'."""
        return read_inputs(named, task=self.task, reading=self.reading)

    def ready(self, one: Input) -> Any:
        """Return an input's tokens: windows of them for a question."""
        if isinstance(one.content, Exception):
            raise one.content
        if isinstance(one.content, Question):
            windows = windows_of(
                one.content,
                tokenized(one.content, self.tokenizer),
                self.tokenizer,
                length=self.length,
                stride=self.reading.stride or QUESTION_STRIDE,
            )
            return one.content, windows
        texts = (one.content,) if isinstance(one.content, str) else one.content.texts
        if not any(text.strip() for text in texts):
            raise ValueError("the text is empty")
        if self.task == "masked-language-modeling":
            (ids,) = self.tokenizer.encode(texts[:1], special=True)
            if self.tokenizer.mask_id not in ids:
                raise ValueError("the text holds no [MASK] to be found")
            return self.tokenizer.wrap(ids, length=self.length)
        if self.task in ("causal-language-modeling", "dialogue"):
            (ids,) = self.tokenizer.encode(texts[:1])
            return ids[-self.length :]
        return self.tokenizer.wrap(*self.tokenizer.encode(texts), length=self.length)

    def collate(self, ready: Sequence[Any]) -> Batch:
        """Return the batch of several inputs."""
        padding_id = self.tokenizer.padding_id
        if self.task == "question-answering":
            return batch_of(
                [windows for _, windows in ready],
                [question for question, _ in ready],
                padding_id=padding_id,
                may_be_empty=self.may_be_empty,
            )
        if self.task in ("causal-language-modeling", "dialogue"):
            return next_tokens(ready, padding_id)
        batch = empty_batch(
            len(ready),
            max(len(one.ids) for one in ready),
            targets=torch.zeros(len(ready), max(1, len(self.classes))),
            labels=torch.zeros(len(ready), dtype=torch.int64),
            padding_id=padding_id,
            pin=False,
        )
        for row, one in enumerate(ready):
            put(batch, row, one)
        if self.task != "masked-language-modeling":
            return batch
        asked = batch.ids == (self.tokenizer.mask_id or 0)
        targets = torch.where(asked, batch.ids, NOT_ASKED)
        return MaskedBatch(ids=batch.ids, mask=batch.mask, kinds=batch.kinds, targets=targets)


def next_tokens(texts: Sequence[Int[np.ndarray, " _"]], padding_id: int) -> CausalBatch:
    """Return a batch that asks for the token after each text."""
    shape = (len(texts), max(len(text) for text in texts))
    ids = torch.full(shape, padding_id, dtype=torch.int64)
    targets = torch.full(shape, NOT_ASKED, dtype=torch.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.from_numpy(text.astype(np.int64))
        targets[row, len(text) - 1] = 0
    return CausalBatch(ids=ids, targets=targets)


def read_preparation(run: Path) -> TextPreparation:
    """Return the preparation that a run folder holds."""
    value = read_fields(run / "preprocessing.json", task=str, reading=dict, may_be_empty=bool)
    known = {one.name for one in fields(Reading)}
    if not set(value["reading"]) <= known or not isinstance(value["reading"].get("length"), int):
        raise OctavoltError(
            f"{run / 'preprocessing.json'}: its reading is not that of a run. It was edited or is "
            "not whole."
        )
    classes = read_fields(run / "labels.json", classes=list)["classes"]
    return TextPreparation(
        read_tokenizer(run),
        task=value["task"],
        classes=tuple(classes),
        reading=Reading(**value["reading"]),
        may_be_empty=value["may_be_empty"],
    )


def published_preparation(
    entry: Entry, classes: tuple[str, ...], folder: Path | None, *, task: str
) -> TextPreparation:
    """Return the preparation of weights that come with no run."""
    if folder is None:
        raise OctavoltError(
            f"Weights of {entry.name} in a single file come without their tokenizer. Give the "
            "folder that holds both."
        )
    return TextPreparation(
        read_tokenizer(folder),
        task=task,
        classes=classes,
        reading=Reading(length=longest(limits(entry), folder)),
    )


def prepared(wanted: Wanted) -> TextPreparation:
    """Choose the tokenizer, trained first if need be, and the length."""
    tokenizer, named = chosen_tokenizer(wanted)
    if wanted.task.name == "dialogue":
        tokenizer = tokenizer.add_special([*ROLES.values(), END])
    if wanted.task.name == "masked-language-modeling" and tokenizer.mask_id is None:
        raise OctavoltError(
            f"The tokenizer {named} has no [MASK], which masked language modeling needs. Give "
            "another with --tokenizer."
        )
    length = chosen_length(wanted, tokenizer)
    if wanted.task.name == "causal-language-modeling":
        check_stride(wanted.reading.stride or length, length)
    reading = replace(wanted.reading, length=length, tokenizer=named)
    train = wanted.data.splits["train"]
    return TextPreparation(
        tokenizer,
        task=wanted.task.name,
        classes=wanted.data.classes,
        reading=reading,
        may_be_empty=isinstance(train, Questions)
        and any(not train.read(index).answers for index in range(len(train))),
    )


def limits(entry: Entry) -> TextLimits:
    """Return what a network of the table sets for its texts."""
    assert isinstance(entry.preprocessing, TextLimits), entry.name
    return entry.preprocessing


def chosen_tokenizer(wanted: Wanted) -> tuple[Tokenizer, str]:
    """Return the tokenizer and what it is called in the run's settings."""
    reading, folder = wanted.reading, wanted.weights_folder
    asked = reading.tokenizer
    if asked is None and folder is not None:
        asked = str(folder)
        if not holds_tokenizer(folder):
            raise OctavoltError(
                f"{folder} holds weights but no tokenizer ({', '.join(TOKENIZER_FILES)}). Put its "
                "files there, or name them with --tokenizer."
            )
    if asked in (None, "train", "characters"):
        if folder is not None:
            raise OctavoltError(
                f"--tokenizer {asked} makes new tokens, which the weights of {folder} don't know. "
                "Leave --tokenizer away to use the weights' own, or --weights to train from the "
                "start."
            )
        kind = "characters" if asked == "characters" else limits(wanted.entry).tokenizer
        return trained(wanted, kind), asked or "train"
    if reading.vocabulary_size is not None:
        raise OctavoltError(
            "--vocabulary-size is that of a tokenizer that is trained, but the one of "
            f"{asked} is used. Leave --vocabulary-size away."
        )
    return read_tokenizer(Path(asked).expanduser()), asked


def holds_tokenizer(folder: Path) -> bool:
    """Whether a tokenizer lies in the folder."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def trained(wanted: Wanted, kind: str) -> Tokenizer:
    """Return a tokenizer that is trained on the training split."""
    samples = wanted.data.splits["train"]
    size = wanted.reading.vocabulary_size
    if size is None and kind == "characters":
        size = LONGEST
    if size is None:
        small = samples.measure().characters < SMALL_TEXT_CHARACTERS
        size = SMALL_VOCABULARY if small else LARGE_VOCABULARY
    tokenizer = train_tokenizer(texts_of(samples), kind=kind, vocabulary_size=size)
    wanted.say(f"A tokenizer of the kind {kind} was trained on train: {tokenizer.size:,} tokens.")
    return tokenizer


def texts_of(samples: Any) -> Iterator[str]:
    """Yield all text of a split, in pieces."""
    for index in range(len(samples)):
        one = samples.read(index)
        if isinstance(samples, Documents):
            yield from one
        elif isinstance(samples, Rows):
            yield from one.texts
        elif isinstance(samples, Conversations):
            yield from (message.content for message in one)
        else:
            yield from (one.question, one.context)


def longest(of: TextLimits, folder: Path | None) -> int:
    """Return the most tokens that a network can read: what its weights know, or its own limit."""
    config = folder / "config.json" if folder else None
    sizes = read_fields(config) if config and config.is_file() else {}
    found = sizes.get("max_position_embeddings") or sizes.get("n_positions")
    return int(found) if isinstance(found, int) and found > 0 else of.length


def chosen_length(wanted: Wanted, tokenizer: Tokenizer) -> int:
    """Return the tokens of the longest sample: what was asked for, or what the data need."""
    of = limits(wanted.entry)
    most = longest(of, wanted.weights_folder)
    grows = wanted.weights_folder is None and of.tokenizer == "bpe"
    asked = wanted.reading.length
    if asked is not None:
        if wanted.task.name == "question-answering" and asked < LEAST_LENGTH:
            raise OctavoltError(
                f"--length is {asked}; questions with their contexts need at least {LEAST_LENGTH} "
                "tokens."
            )
        if asked > (LONGEST if grows else most):
            raise OctavoltError(
                f"--length is {asked}; {wanted.entry.name} reads at most "
                f"{LONGEST if grows else most} tokens."
            )
        return asked
    usual = {"question-answering": QUESTION_LENGTH, "masked-language-modeling": MASKED_LENGTH}
    if wanted.task.name in usual:
        return min(most, usual[wanted.task.name])
    samples = wanted.data.splits["train"]
    if not isinstance(samples, Rows):
        return most
    making = Making(digest=wanted.checked.digest("train"), progress=wanted.progress)
    needed = int(row_lengths(samples, tokens_of_rows(samples, tokenizer, making)).max())
    return min(most, max(16, 8 * -(-needed // 8)))


def check_stride(stride: int, length: int) -> None:
    """Raise if windows that begin so many tokens apart would leave some out."""
    if stride > length:
        raise OctavoltError(
            f"--stride is {stride}; with a length of {length} it must be at most that, or tokens "
            "would be left out."
        )
