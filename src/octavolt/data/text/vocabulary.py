"""Where tokenizers come from: files that others publish, and text that one is trained on."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from octavolt.errors import OctavoltError
from octavolt.units import MIB, counted, format_bytes, format_count

Rust = Any
"""A `tokenizers.Tokenizer`; the library is imported where it is used."""

MOST_FILE_BYTES = 200 * MIB
MOST_TOKENS = 2**24
"""Rows that a network would need: a number far above any vocabulary is damage."""
MOST_CHARACTERS = 2**16
MOST_TRAINING_CHARACTERS = 2**26
"""What a vocabulary is trained on at most: more text hardly changes it, but needs more memory."""

END = "<|endoftext|>"
UNKNOWN_CHARACTER = "\ufffd"
"""The replacement character of Unicode: what stands for a character outside the vocabulary."""
BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MOST_WORD_CHARACTERS = 100
"""Of a word that WordPiece splits; a longer one is unknown. BERT's own limit."""

SETS: tuple[tuple[str, ...], ...] = (
    ("tokenizer.json",),
    ("vocab.json", "merges.txt"),
    ("encoder.json", "vocab.bpe"),
    ("vocab.txt",),
)
"""Files that make a tokenizer, in the order in which they are looked for."""

SETTINGS = "tokenizer_config.json"


def open_rust(path: Path) -> tuple[Rust, dict[str, Any]]:
    """Return what a file or folder holds, and the settings beside it."""
    files = files_of(path)
    settings_file = files[0].with_name(SETTINGS)
    settings = read_object(settings_file) if settings_file.is_file() else {}
    if len(files) == 2:
        return open_byte_level(*files), settings
    if files[0].suffix == ".json":
        return open_whole(files[0], settings), settings
    return open_word_pieces(files[0], settings), settings


def files_of(path: Path) -> list[Path]:
    """Return the files that make the tokenizer that the user named."""
    if path.is_file():
        for names in SETS[1:3]:
            if path.name in names:
                return complete(path.parent, names)
        if path.suffix not in (".json", ".txt"):
            raise OctavoltError(
                f"{path} is no tokenizer's file: give a tokenizer.json, a vocab.txt, or a folder "
                "that holds one."
            )
        return [path]
    if not path.is_dir():
        raise OctavoltError(
            f"There is no tokenizer at {path}: no such file or folder. Give a tokenizer.json, a "
            "vocab.txt, or a folder that holds one; 'train' trains one from the data."
        )
    for names in SETS:
        if (path / names[0]).is_file():
            return complete(path, names)
    looked = ", ".join(" with ".join(names) for names in SETS)
    raise OctavoltError(f"{path} holds no tokenizer. Looked for: {looked}.")


def complete(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the files of those names, all of which are needed."""
    for name in names:
        if not (folder / name).is_file():
            others = ", ".join(one for one in names if one != name)
            raise OctavoltError(f"{folder} holds {others} but no {name}, which belongs to it.")
    return [folder / name for name in names]


def read_text(file: Path) -> str:
    """Return the text of a file of bounded size."""
    try:
        size = file.stat().st_size
        if size > MOST_FILE_BYTES:
            raise OctavoltError(
                f"{file} has {format_bytes(size)}; a tokenizer's file has at most "
                f"{format_bytes(MOST_FILE_BYTES)}. It is something else."
            )
        return file.read_bytes().decode()
    except OSError as error:
        raise OctavoltError(f"Can't read {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise OctavoltError(f"{file} is not UTF-8 text (byte {error.start}).") from error


def read_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file."""
    try:
        value = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise OctavoltError(f"{file}, line {error.lineno}: not JSON: {error.msg}.") from error
    except RecursionError as error:
        raise OctavoltError(f"{file} is nested too deeply to be read.") from error
    if not isinstance(value, dict):
        raise OctavoltError(f"{file} holds {type(value).__name__}, not an object.")
    return value


def built(file: Path, build: Callable[[], Rust]) -> Rust:
    """Return what the library builds from a file; what it can't read is the file's fault."""
    try:
        return build()
    # The library raises bare exceptions, and lets its own panics through as no exceptions at all.
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError, OctavoltError)):
            raise
        raise OctavoltError(
            f"{file} is no tokenizer that can be read: {str(error)[:200]}. Fetch it again, or give "
            "another with --tokenizer."
        ) from error


def open_whole(file: Path, settings: Mapping[str, Any]) -> Rust:
    """Return the tokenizer of a tokenizer.json."""
    import tokenizers

    value = read_object(file)
    if "model" not in value:
        raise OctavoltError(
            f"{file} holds no tokenizer: it has no 'model'. A vocab.json needs its merges.txt "
            "beside it, under these names."
        )
    rust = built(file, lambda: tokenizers.Tokenizer.from_str(json.dumps(value)))
    rust.no_padding()
    rust.no_truncation()
    check_kind(file, rust)
    if type(rust.model).__name__ == "BPE":
        # Tokens left out at random in training would make texts no two times the same.
        rust.model.dropout = None
    obey(rust, settings)
    return rust


def check_kind(file: Path, rust: Rust) -> None:
    """Raise unless the tokenizer is one of those that we know how to undo."""
    model, decoder = type(rust.model).__name__, type(rust.decoder).__name__
    if model == "WordPiece":
        if rust.model.unk_token not in rust.get_vocab():
            raise OctavoltError(f"{file}: its vocabulary lacks '{rust.model.unk_token}'.")
        return
    if model == "BPE" and (decoder == "ByteLevel" or is_characters(rust)):
        return
    raise OctavoltError(
        f"{file} holds a tokenizer of the kind {model} with {decoder}; octavolt reads WordPiece, "
        "as BERT has, and byte-level BPE, as GPT-2 has."
    )


def is_characters(rust: Rust) -> bool:
    """Return whether each character is a token: byte-pair encoding without a single pair."""
    return type(rust.decoder).__name__ == "Fuse" and rust.pre_tokenizer is None


def obey(rust: Rust, settings: Mapping[str, Any]) -> None:
    """Normalize as the settings beside a tokenizer.json say: they win over it."""
    if type(rust.normalizer).__name__ != "BertNormalizer":
        return
    names = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_chinese_chars",
    }
    for theirs, name in names.items():
        if isinstance(settings.get(theirs), bool):
            setattr(rust.normalizer, name, settings[theirs])


def open_word_pieces(file: Path, settings: Mapping[str, Any]) -> Rust:
    """Return the tokenizer of a WordPiece vocabulary, one piece a line."""
    # Not `splitlines`: pieces such as U+2028 are line ends to it.
    rows = read_text(file).split("\n")
    if rows[-1] == "":
        rows.pop()
    vocabulary = {row.rstrip("\r"): number for number, row in enumerate(rows)}
    missing = [name for name in BERT_SPECIAL if name not in vocabulary]
    if missing:
        raise OctavoltError(
            f"{file} is no WordPiece vocabulary: none of its {counted(len(rows), 'line')} is "
            f"{', '.join(missing)}."
        )
    lowercase = settings.get("do_lower_case")
    return word_pieces(
        vocabulary,
        lowercase=lowercase if isinstance(lowercase, bool) else not is_cased(vocabulary),
        strip_accents=settings.get("strip_accents"),
        split_chinese=settings.get("tokenize_chinese_chars") is not False,
    )


def is_cased(vocabulary: Mapping[str, int]) -> bool:
    """Return whether a WordPiece vocabulary tells upper from lower case: some words have one."""
    words = (piece.removeprefix("##") for piece in vocabulary)
    return any(word.isalpha() and word != word.lower() for word in words)


def word_pieces(
    vocabulary: Mapping[str, int],
    *,
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> Rust:
    """Return a tokenizer as BERT has it; accents go where upper case does, unless told."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    rust = Tokenizer(
        models.WordPiece(
            vocab=dict(vocabulary),
            unk_token="[UNK]",
            max_input_chars_per_word=MOST_WORD_CHARACTERS,
        )
    )
    rust.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents, handle_chinese_chars=split_chinese
    )
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rust.decoder = decoders.WordPiece(prefix="##")
    rust.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    rust.add_special_tokens(list(BERT_SPECIAL))
    return rust


def open_byte_level(vocabulary_file: Path, merges_file: Path) -> Rust:
    """Return the tokenizer of a byte-level vocabulary and the pairs that are merged, in order."""
    vocabulary = read_object(vocabulary_file)
    for token, number in vocabulary.items():
        if not isinstance(number, int) or not 0 <= number < MOST_TOKENS:
            raise OctavoltError(
                f"{vocabulary_file}: the number of '{token[:40]}' is {json.dumps(number)[:40]}; it "
                f"must be a whole number from 0 to {format_count(MOST_TOKENS - 1)}."
            )
    merges = list(read_merges(merges_file))
    return built(merges_file, lambda: byte_level(vocabulary, merges))


def read_merges(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a merges.txt; a first line may name its version."""
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        row = line.rstrip("\r")
        if not row or (number == 1 and row.startswith("#version")):
            continue
        pair = row.split(" ")
        if len(pair) != 2:
            raise OctavoltError(
                f"{file}, line {number}: '{row[:40]}' is no pair of tokens with a space between."
            )
        yield pair[0], pair[1]


def byte_level(vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> Rust:
    """Return a tokenizer as GPT-2 has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    rust = Tokenizer(models.BPE(vocab=dict(vocabulary), merges=list(merges)))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    rust.post_processor = processors.ByteLevel(trim_offsets=True)
    if END in vocabulary:
        rust.add_special_tokens([END])
    return rust


def characters(alphabet: Sequence[str]) -> Rust:
    """Return a tokenizer whose tokens are those characters, in order."""
    from tokenizers import Tokenizer, decoders, models

    names = [*alphabet, UNKNOWN_CHARACTER]
    vocabulary = {name: number for number, name in enumerate(names)}
    rust = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN_CHARACTER, fuse_unk=False)
    )
    rust.decoder = decoders.Fuse()
    rust.add_special_tokens([END])
    return rust


def train_characters(pieces: Iterator[str], *, vocabulary_size: int) -> Rust:
    """Return a tokenizer of all characters of the text, in the order of their code points."""
    alphabet: set[str] = set()
    for piece in pieces:
        alphabet |= set(piece)
    alphabet.discard(UNKNOWN_CHARACTER)
    needed = len(alphabet) + 2
    if needed > MOST_CHARACTERS:
        raise OctavoltError(
            f"The text has {format_count(len(alphabet))} different characters; a tokenizer of "
            f"characters holds {format_count(MOST_CHARACTERS - 2)}. Use --tokenizer train."
        )
    check_room(needed, vocabulary_size, what="each character, the unknown one and the end of text")
    return characters(sorted(alphabet))


def train_byte_level(pieces: Iterator[str], *, vocabulary_size: int) -> Rust:
    """Return a byte-level tokenizer whose pairs are the most frequent ones of the text."""
    from tokenizers import pre_tokenizers, trainers

    check_room(257, vocabulary_size, what="256 bytes and the end of text")
    rust = byte_level({}, [])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    rust.train_from_iterator(pieces, trainer)
    return rust


def train_word_pieces(pieces: Iterator[str], *, vocabulary_size: int) -> Rust:
    """Return a WordPiece tokenizer without upper case, trained on the text."""
    from tokenizers import trainers

    kept = list(pieces)
    rust = word_pieces({name: number for number, name in enumerate(BERT_SPECIAL)}, lowercase=True)
    starts, continuing = alphabets(rust, set().union(*map(set, kept)))
    # The library numbers letters inside words as it meets them, in an order that chance decides,
    # and breaks ties by number. Named first, they have the same numbers every time.
    first = [*BERT_SPECIAL, *starts, *(f"##{letter}" for letter in continuing)]
    check_room(len(first), vocabulary_size, what="each letter at the start of words and inside")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=first,
        limit_alphabet=len(first),
        show_progress=False,
    )
    rust.train_from_iterator(iter(kept), trainer)
    # Made anew, so that the letters are no special tokens.
    return word_pieces(rust.get_vocab(), lowercase=True)


def alphabets(rust: Rust, letters: set[str]) -> tuple[list[str], list[str]]:
    """Return, sorted, what letters become at the start of words, and what inside words."""
    starts: set[str] = set()
    continuing: set[str] = set()
    for letter in letters:
        words = rust.pre_tokenizer.pre_tokenize_str(rust.normalizer.normalize_str("a" + letter))
        became = "".join(word for word, _ in words)[1:]
        starts.update(became)
        if len(words) == 1:
            continuing.update(became)
    return sorted(starts), sorted(continuing)


def check_size(size: int) -> None:
    """Raise if a vocabulary is too large to be trained: memory for all of it is taken at once."""
    if size > LARGEST_TRAINED:
        raise OctavoltError(
            f"A vocabulary of {format_count(size)} tokens is too large: at most "
            f"{format_count(LARGEST_TRAINED)} are trained. Give a smaller --vocabulary-size."
        )


def check_room(needed: int, size: int, *, what: str) -> None:
    """Raise unless a vocabulary has room for what it must hold."""
    if needed > size:
        raise OctavoltError(
            f"A vocabulary of {counted(size, 'token')} is too small: {what} need "
            f"{format_count(needed)}. Give --vocabulary-size {needed} or more."
        )


LARGEST_TRAINED = 1_000_000
"""Tokens: several times as many as any vocabulary that is in use."""
TRAINED: Mapping[str, Callable[..., Rust]] = {
    "wordpiece": train_word_pieces,
    "bpe": train_byte_level,
    "characters": train_characters,
}
