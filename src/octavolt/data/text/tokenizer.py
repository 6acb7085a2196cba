"""Text to numbers and back, for all kinds of tokenizers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32
from numpy.typing import NDArray

from octavolt.data.text import vocabulary
from octavolt.data.text.vocabulary import Rust
from octavolt.data.text.words import (
    ByteStream,
    CharacterStream,
    Stream,
    WordStream,
    bytes_of,
    cut,
)
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.runs import write_bytes, write_json
from octavolt.units import format_count

Ids = NDArray[np.int32]

ROLES: Mapping[str, tuple[str, ...]] = {
    "pad_token": ("[PAD]", "<pad>", "<|pad|>"),
    "unk_token": ("[UNK]", "<unk>", vocabulary.UNKNOWN_CHARACTER),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
    "mask_token": ("[MASK]",),
    "eos_token": (vocabulary.END, "</s>", "[SEP]"),
}
"""What special tokens are for, as a tokenizer_config.json says it, and what they are called where
it says nothing. BERT's vocabularies have no end of text but [SEP]."""

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, as a faulty escape in JSON leaves it: no UTF-8 can hold it."""


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """One text or two, as BERT takes them."""

    ids: Ids
    kinds: Ids
    """0 up to the first [SEP], 1 after it."""
    cut: bool
    """Whether tokens were left out."""


class Tokenizer:
    """Turns text into numbers and back. It never changes, so that threads may share it."""

    def __init__(self, rust: Rust, names: Mapping[str, str] | None = None) -> None:
        """Take over the library's tokenizer; `names` are those of special tokens, by `ROLES`."""
        self._rust = rust
        # Text is text: "[MASK]" in it is a word in brackets, not the token.
        self._rust.encode_special_tokens = True
        given = names or {}
        self._names = {
            role: name
            for role, usual in ROLES.items()
            for name in [first_known(self._rust, [given.get(role), *usual])]
            if name is not None
        }

    @property
    def kind(self) -> str:
        """Return 'wordpiece', 'bpe' or 'characters'."""
        if type(self._rust.model).__name__ == "WordPiece":
            return "wordpiece"
        return "characters" if vocabulary.is_characters(self._rust) else "bpe"

    @cached_property
    def size(self) -> int:
        """Return the rows that a network needs: one more than the largest number of a token."""
        known = self._rust.get_vocab(with_added_tokens=True)
        return max(len(known), 1 + max(known.values(), default=-1))

    def id(self, name: str) -> int:
        """Return the number of a token."""
        number = self._rust.token_to_id(name)
        if number is None:
            raise UnknownNameError("token", name, list(self.special))
        return int(number)

    @cached_property
    def special(self) -> Mapping[str, int]:
        """Return the special tokens, by name: they stand for no text."""
        added = self._rust.get_added_tokens_decoder()
        return {token.content: number for number, token in sorted(added.items()) if token.special}

    @property
    def padding_id(self) -> int:
        """Return what fills up short texts: any token will do where it is masked anyhow."""
        for number in (self._role("pad_token"), self.end_id):
            if number is not None:
                return number
        return 0

    @property
    def end_id(self) -> int | None:
        """Return the token that ends a text."""
        return self._role("eos_token")

    @property
    def mask_id(self) -> int | None:
        """Return the token that hides another."""
        return self._role("mask_token")

    @property
    def classification_id(self) -> int | None:
        """Return [CLS], with which BERT's inputs begin."""
        return self._role("cls_token")

    @property
    def separator_id(self) -> int | None:
        """Return [SEP], with which BERT's texts end."""
        return self._role("sep_token")

    @property
    def unknown_id(self) -> int | None:
        """Return what stands for text that the vocabulary can't name; bytes it always can."""
        return None if self.kind == "bpe" else self._role("unk_token")

    @cached_property
    def continues(self) -> Bool[np.ndarray, " vocabulary"]:
        """Return, for each token, whether it goes on with the word before it, as '##ing' does.

        Only WordPiece tells; other kinds have no such tokens.
        """
        marks = np.zeros(self.size, bool)
        if self.kind == "wordpiece":
            prefix = self._rust.model.continuing_subword_prefix
            for name, number in self._rust.get_vocab().items():
                marks[number] = name.startswith(prefix) and name != prefix
        return marks

    @cached_property
    def byte_counts(self) -> Int32[np.ndarray, " vocabulary"]:
        """Return the bytes in UTF-8 of each token's text; special ones have none.

        They add up to those of the text, except with WordPiece, which forgets spaces.
        """
        if self.kind == "bpe":
            counts = [len(piece) for piece in self._plain_bytes]
        else:
            counts = [len(piece.encode(errors="replace")) for piece in self._plain_pieces]
        return np.array(counts, np.int32)

    def encode(self, texts: Sequence[str], *, special: bool = False) -> list[Ids]:
        """Return the tokens of each text, without any around them; other threads go on meanwhile.

        With `special`, names of special tokens in the text, such as [MASK], are those tokens.
        """
        rust = self._naming if special else self._rust
        encodings = rust.encode_batch_fast(
            [whole(text) for text in texts], add_special_tokens=False
        )
        return [np.array(encoding.ids, np.int32) for encoding in encodings]

    def encode_with_offsets(self, text: str) -> tuple[Ids, Int32[np.ndarray, "tokens ends=2"]]:
        """Return the tokens, and where each one's text begins and ends, in characters.

        Tokens that share a character, as bytes of an emoji do, have the same place.
        """
        encoding = self._rust.encode(whole(text), add_special_tokens=False)
        return np.array(encoding.ids, np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2)

    def encode_words(self, text: str) -> tuple[Ids, Ids]:
        """Return the tokens, and the number of the word, from 0, that each belongs to."""
        encoding = self._rust.encode(whole(text), add_special_tokens=False)
        return np.array(encoding.ids, np.int32), np.array(encoding.word_ids, np.int32)

    def decode(self, ids: Sequence[int] | NDArray[Any], *, special: bool = False) -> str:
        """Return the text of tokens; special ones are left out unless asked for.

        WordPiece forgot the spaces: they are set as one usually does, and not in Chinese.
        """
        stream = self.stream(special=special)
        numbers = ids.tolist() if isinstance(ids, np.ndarray) else ids
        return "".join([*map(stream.add, numbers), stream.finish()])

    def stream(self, *, special: bool = False) -> Stream:
        """Return a decoder that takes tokens one by one and hands out what is certain.

        What it hands out together is what `decode` returns.
        """
        pieces = self._pieces if special else self._plain_pieces
        if self.kind == "wordpiece":
            return WordStream(pieces, prefix=self._rust.model.continuing_subword_prefix)
        if self.kind == "characters":
            return CharacterStream(pieces)
        return ByteStream(self._bytes if special else self._plain_bytes)

    def wrap(self, first: Ids, second: Ids | None = None, *, length: int) -> Wrapped:
        """Return [CLS] first [SEP], or [CLS] first [SEP] second [SEP], of at most `length` tokens.

        Of a pair that is too long, the longer text loses its last token until both fit; where they
        are equally long the second does: Devlin et al. 2019, in the code published with it.
        """
        start, separator = self.classification_id, self.separator_id
        if start is None or separator is None:
            raise OctavoltError(
                f"This tokenizer is of the kind {self.kind} and has no [CLS] and [SEP], which BERT "
                "needs. Give a WordPiece vocabulary with --tokenizer."
            )
        room = length - (2 if second is None else 3)
        if room < 0:
            raise OctavoltError(
                f"A length of {length} has no room for [CLS] and [SEP]. Give --length "
                f"{length - room + 1} or more."
            )
        others = 0 if second is None else len(second)
        kept = min(len(first), max(room - others, (room + 1) // 2 if others else room))
        parts = [np.array([start], np.int32), first[:kept], np.array([separator], np.int32)]
        kinds = np.zeros(kept + 2, np.int32)
        kept_others = min(others, room - kept)
        if second is not None:
            parts += [second[:kept_others], np.array([separator], np.int32)]
            kinds = np.append(kinds, np.ones(kept_others + 1, np.int32))
        return Wrapped(
            ids=np.concatenate(parts),
            kinds=kinds,
            cut=kept < len(first) or kept_others < others,
        )

    def add_special(self, names: Sequence[str]) -> "Tokenizer":
        """Return a tokenizer with more special tokens, numbered from the end on."""
        rust = copy_of(self._rust)
        rust.add_special_tokens(list(names))
        return Tokenizer(rust, self._names)

    def to_json(self) -> str:
        """Return the content of its tokenizer.json: equal tokenizers have equal ones."""
        text: str = self._rust.to_str()
        return text

    def save(self, folder: Path, *, length: int, chat_template: str | None = None) -> None:
        """Write tokenizer.json and tokenizer_config.json, as `read_tokenizer` and others read them.

        `length` is that of the longest input in tokens.
        """
        names = {role: name for role, name in self._names.items() if self._is_declared(role, name)}
        settings: dict[str, Any] = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": length,
            "clean_up_tokenization_spaces": False,
            **names,
        }
        if self.kind == "wordpiece":
            settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        if chat_template is not None:
            settings["chat_template"] = chat_template
        write_bytes(folder / "tokenizer.json", self.to_json().encode())
        write_json(folder / vocabulary.SETTINGS, settings)

    def _is_declared(self, role: str, name: str) -> bool:
        """Return whether others are told: not of what would make a plain token a special one."""
        return name in self.special and (role != "unk_token" or self.kind == "wordpiece")

    def _role(self, role: str) -> int | None:
        """Return the token of a role, if there is one."""
        name = self._names.get(role)
        return None if name is None else self.id(name)

    @cached_property
    def _naming(self) -> Rust:
        """Return the same tokenizer, to which names of special tokens are those tokens."""
        return copy_of(self._rust)

    @cached_property
    def _pieces(self) -> list[str]:
        """Return the name of each token; a number without one stands for nothing."""
        return [self._rust.id_to_token(number) or "" for number in range(self.size)]

    @cached_property
    def _plain_pieces(self) -> list[str]:
        """Return the names, without those of special tokens."""
        hidden = set(self.special.values())
        return ["" if number in hidden else name for number, name in enumerate(self._pieces)]

    @cached_property
    def _bytes(self) -> list[bytes]:
        """Return the bytes of each token of a byte-level vocabulary."""
        return [bytes_of(name) for name in self._pieces]

    @cached_property
    def _plain_bytes(self) -> list[bytes]:
        """Return the bytes, without those of special tokens."""
        return [bytes_of(name) for name in self._plain_pieces]


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer in a file, or in a folder as Hugging Face's libraries write them.

    That is a tokenizer.json, the vocab.txt of a BERT, or the vocabulary and merges of a GPT-2.
    """
    rust, settings = vocabulary.open_rust(path)
    tokenizer = Tokenizer(rust, declared(settings))
    if not 0 < tokenizer.size <= vocabulary.MOST_TOKENS:
        raise OctavoltError(
            f"{path} needs {format_count(tokenizer.size)} rows of a network, by its largest "
            f"number; it must be from 1 to {format_count(vocabulary.MOST_TOKENS)}."
        )
    return tokenizer


def declared(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of special tokens in a tokenizer_config.json: texts, or objects with one."""
    names: dict[str, str] = {}
    for role in ROLES:
        value = settings.get(role)
        name = value.get("content") if isinstance(value, dict) else value
        if isinstance(name, str):
            names[role] = name
    return names


def train_tokenizer(pieces: Iterator[str], *, kind: str, vocabulary_size: int) -> Tokenizer:
    """Return a tokenizer of the text that the pieces make up: equal texts give equal ones.

    It has at most so many tokens, fewer if the text supports no more. Only the first
    `vocabulary.MOST_TRAINING_CHARACTERS` are looked at, so mix what is not alike before.
    """
    if kind not in vocabulary.TRAINED:
        raise UnknownNameError("kind of tokenizer", kind, vocabulary.TRAINED)
    vocabulary.check_size(vocabulary_size)
    limit = None if kind == "characters" else vocabulary.MOST_TRAINING_CHARACTERS
    train = vocabulary.TRAINED[kind]
    return Tokenizer(train(cut_small(pieces, limit=limit), vocabulary_size=vocabulary_size))


def cut_small(pieces: Iterator[str], *, limit: int | None) -> Iterator[str]:
    """Yield the text in small pieces, up to a number of characters."""
    seen = 0
    for small in cut(pieces):
        yield whole(small)
        seen += len(small)
        if limit is not None and seen >= limit:
            return


def whole(text: str) -> str:
    """Return the text with U+FFFD for halves of characters; nothing moves."""
    return text if text.isascii() else LONE_SURROGATE.sub("\ufffd", text)


def copy_of(rust: Rust) -> Rust:
    """Return a tokenizer of one's own; names of special tokens in text are those tokens."""
    return type(rust).from_str(rust.to_str())


def first_known(rust: Rust, names: Sequence[str | None]) -> str | None:
    """Return the first of the names that the vocabulary holds."""
    known = (name for name in names if name and rust.token_to_id(name) is not None)
    return next(known, None)
