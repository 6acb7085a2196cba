"""Text becomes the numbers that others give it, and comes back."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers

from octavolt.data.text.tokenizer import Tokenizer, read_tokenizer, train_tokenizer
from octavolt.errors import OctavoltError, UnknownNameError

from .texts import made_text, shared

TEXTS = [made_text(seed, 60) for seed in range(20)]
KINDS = ["wordpiece", "bpe", "characters"]


def trained(kind: str, vocabulary_size: int = 700) -> Tokenizer:
    texts = (made_text(seed) for seed in range(10))
    return train_tokenizer(texts, kind=kind, vocabulary_size=vocabulary_size)


def word_pieces(folder: Path, *words: str, name: str = "vocab.txt") -> Path:
    rows = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder / name


def listed(arrays: list[Any]) -> list[list[int]]:
    return [array.tolist() for array in arrays]


def test_word_pieces_are_the_longest_that_fit(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(word_pieces(tmp_path, "un", "##aff", "##able", "##a", "good"))
    assert listed(tokenizer.encode(["unaffable", "Good good bad"])) == [[5, 6, 7], [9, 9, 1]]
    assert (tokenizer.kind, tokenizer.size) == ("wordpiece", 10)
    assert tokenizer.continues.tolist() == [False] * 6 + [True] * 3 + [False]


def test_special_tokens_have_the_numbers_of_their_rows(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(word_pieces(tmp_path, "a"))
    ids = (
        tokenizer.padding_id,
        tokenizer.unknown_id,
        tokenizer.classification_id,
        tokenizer.separator_id,
        tokenizer.mask_id,
    )
    assert ids == (0, 1, 2, 3, 4)
    assert tokenizer.end_id == 3


def test_row_that_is_a_line_separator_moves_no_other(tmp_path: Path) -> None:
    file = word_pieces(tmp_path, "a", "\u2028", "b")
    assert listed(read_tokenizer(file).encode(["b"])) == [[7]]


def test_rows_may_end_as_on_windows(tmp_path: Path) -> None:
    file = word_pieces(tmp_path, "a", "b")
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert listed(read_tokenizer(file).encode(["a b"])) == [[5, 6]]


def test_case_is_told_from_the_vocabulary(tmp_path: Path) -> None:
    assert listed(read_tokenizer(word_pieces(tmp_path, "a", "A")).encode(["A É"])) == [[6, 1]]
    assert listed(read_tokenizer(word_pieces(tmp_path, "a", "e")).encode(["A É"])) == [[5, 6]]


def test_settings_beside_the_vocabulary_decide_on_case(tmp_path: Path) -> None:
    file = word_pieces(tmp_path, "a", "A")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert listed(read_tokenizer(file).encode(["A"])) == [[5]]


def test_settings_beside_a_whole_tokenizer_decide_on_case(tmp_path: Path) -> None:
    trained("wordpiece").save(tmp_path, length=8)
    assert read_tokenizer(tmp_path).decode(read_tokenizer(tmp_path).encode(["Word"])[0]) == "word"
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_lower_case": False}))
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.encode(["W"])[0].tolist() == [tokenizer.unknown_id]


def test_byte_level_merges_in_their_order(tmp_path: Path) -> None:
    vocabulary = {"a": 0, "b": 1, "c": 2, "bc": 3, "ab": 4, "<|endoftext|>": 5}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nb c\na b\n")
    tokenizer = read_tokenizer(tmp_path)
    assert listed(tokenizer.encode(["abc", "ab"])) == [[0, 3], [4]]
    assert (tokenizer.kind, tokenizer.size, tokenizer.end_id) == ("bpe", 6, 5)
    assert tokenizer.padding_id == 5
    assert tokenizer.unknown_id is None
    assert tokenizer.mask_id is None
    assert listed(read_tokenizer(tmp_path / "vocab.json").encode(["abc"])) == [[0, 3]]


def test_rows_are_counted_to_the_largest_number(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 9}))
    (tmp_path / "merges.txt").write_text("")
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.size == 10
    assert tokenizer.decode([0, 5, 9]) == "ab"


def test_name_of_a_special_token_in_text_is_text_unless_asked_for() -> None:
    tokenizer = trained("bpe")
    assert tokenizer.end_id not in tokenizer.encode(["a<|endoftext|>b"])[0]
    assert listed(tokenizer.encode(["<|endoftext|>"], special=True)) == [[tokenizer.end_id]]
    # Asking changes nothing for the next text.
    assert tokenizer.end_id not in tokenizer.encode(["a<|endoftext|>b"])[0]


@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_text_comes_back_as_it_was(kind: str) -> None:
    tokenizer = trained(kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(TEXTS)] == TEXTS


def test_character_outside_the_vocabulary_is_a_replacement_character() -> None:
    tokenizer = train_tokenizer(iter(["ab"]), kind="characters", vocabulary_size=10)
    (ids,) = tokenizer.encode(["azzb"])
    assert ids.tolist() == [0, tokenizer.unknown_id, tokenizer.unknown_id, 1]
    assert tokenizer.decode(ids) == "a\ufffd\ufffdb"


def test_characters_are_numbered_by_code_point() -> None:
    tokenizer = train_tokenizer(iter(["ba\n", "你 "]), kind="characters", vocabulary_size=100)
    assert tokenizer.decode([0, 1, 2, 3, 4]) == "\n ab你"
    assert tokenizer.size == 7
    assert (tokenizer.unknown_id, tokenizer.end_id) == (5, 6)


def test_half_a_character_is_a_replacement_character() -> None:
    tokenizer = trained("bpe")
    assert tokenizer.decode(tokenizer.encode(["a\ud83db"])[0]) == "a\ufffdb"
    _, offsets = tokenizer.encode_with_offsets("a\ud83d")
    assert offsets.max() == 2


def test_offsets_count_characters() -> None:
    tokenizer = trained("bpe")
    text = "the 你好 😀 running"
    ids, offsets = tokenizer.encode_with_offsets(text)
    assert ids.tolist() == tokenizer.encode([text])[0].tolist()
    shown = [text[first:last].strip() for first, last in offsets.tolist()]
    for token, part in zip(ids.tolist(), shown, strict=True):
        said = tokenizer.decode([token]).strip()
        assert part == said or "\ufffd" in said
    assert {"the", "running", "😀"} <= set(shown)


def test_offsets_of_accents_and_chinese_in_word_pieces(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(word_pieces(tmp_path, "cafe", "##s", "你"))
    ids, offsets = tokenizer.encode_with_offsets(" Cafés 你")
    assert ids.tolist() == [5, 6, 7]
    assert offsets.tolist() == [[1, 5], [5, 6], [7, 8]]
    nothing, places = tokenizer.encode_with_offsets("")
    assert (len(nothing), places.shape) == (0, (0, 2))


def test_words_are_numbered(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(word_pieces(tmp_path, "cafe", "##s", "!"))
    ids, words = tokenizer.encode_words("cafes! odd")
    assert ids.tolist() == [5, 6, 7, 1]
    assert words.tolist() == [0, 0, 1, 2]


def test_no_text_has_no_tokens() -> None:
    for kind in KINDS:
        assert listed(trained(kind).encode(["", "x"]))[0] == []


@pytest.mark.parametrize(
    ("texts", "length", "expected", "kinds", "cut"),
    [
        ([[7, 8]], 4, [2, 7, 8, 3], [0] * 4, False),
        ([[7, 8, 9]], 4, [2, 7, 8, 3], [0] * 4, True),
        ([[]], 4, [2, 3], [0, 0], False),
        ([[7], [8, 9]], 6, [2, 7, 3, 8, 9, 3], [0, 0, 0, 1, 1, 1], False),
        # The longer text loses tokens, at an equal length the second.
        ([[7], [8, 9, 10]], 6, [2, 7, 3, 8, 9, 3], [0, 0, 0, 1, 1, 1], True),
        ([[8, 9, 10], [7]], 6, [2, 8, 9, 3, 7, 3], [0, 0, 0, 0, 1, 1], True),
        ([[7, 8], [9, 10]], 6, [2, 7, 8, 3, 9, 3], [0, 0, 0, 0, 1, 1], True),
        ([[7, 8], [9]], 3, [2, 3, 3], [0, 0, 1], True),
        ([[7], []], 4, [2, 7, 3, 3], [0, 0, 0, 1], False),
    ],
)
def test_texts_are_wrapped_as_bert_takes_them(
    texts: list[list[int]], length: int, expected: list[int], kinds: list[int], cut: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = read_tokenizer(word_pieces(Path(folder)))
    wrapped = tokenizer.wrap(*(np.array(text, np.int32) for text in texts), length=length)
    assert wrapped.ids.tolist() == expected
    assert wrapped.kinds.tolist() == kinds
    assert wrapped.cut is cut


def test_pairs_are_cut_as_token_by_token(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(word_pieces(tmp_path))
    for first in range(8):
        for second in range(8):
            for room in range(9):
                left = [first, second]
                while sum(left) > room:
                    left[0 if left[0] > left[1] else 1] -= 1
                ones, twos = np.full(first, 5, np.int32), np.full(second, 6, np.int32)
                ids = tokenizer.wrap(ones, twos, length=room + 3).ids.tolist()
                assert [ids.count(5), ids.count(6)] == left


def test_wrapping_needs_room_and_the_special_tokens() -> None:
    ids = np.array([5], np.int32)
    with pytest.raises(OctavoltError, match=r"A length of 2 has no room .* --length 4 or more"):
        trained("wordpiece").wrap(ids, ids, length=2)
    with pytest.raises(OctavoltError, match=r"kind bpe and has no \[CLS\] and \[SEP\]"):
        trained("bpe").wrap(ids, length=8)


def test_more_special_tokens_are_numbered_from_the_end() -> None:
    before = trained("bpe", 300)
    after = before.add_special(["<|user|>", "<|assistant|>"])
    assert (before.size, after.size) == (300, 302)
    assert (after.id("<|user|>"), after.id("<|assistant|>")) == (300, 301)
    assert after.end_id == before.end_id
    (ids,) = after.encode(["<|user|>hi"], special=True)
    assert ids[0] == 300
    assert after.decode(ids) == "hi"
    assert after.decode(ids, special=True) == "<|user|>hi"
    with pytest.raises(UnknownNameError, match=r"No token is named '<\|usr\|>'"):
        after.id("<|usr|>")


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_train_equal_tokenizers(kind: str) -> None:
    assert len({trained(kind).to_json() for _ in range(4)}) == 1


def test_trained_word_pieces_begin_with_the_special_tokens() -> None:
    tokenizer = trained("wordpiece", 400)
    assert tokenizer.special == {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    assert tokenizer.size <= 400
    (ids,) = tokenizer.encode(["The WORD running, été 你好吗"])
    assert tokenizer.unknown_id not in ids
    assert tokenizer.decode(ids) == "the word running, ete你好吗"


def test_trained_bytes_can_say_anything() -> None:
    tokenizer = train_tokenizer(iter(["aaab aaab"]), kind="bpe", vocabulary_size=260)
    assert tokenizer.size == 260
    text = "\x00😀 你\u2028 Ġ"
    assert tokenizer.decode(tokenizer.encode([text])[0]) == text


def test_text_may_support_fewer_tokens_than_asked_for() -> None:
    for kind in KINDS:
        tokenizer = train_tokenizer(iter(["a few words"]), kind=kind, vocabulary_size=5000)
        assert 5 < tokenizer.size < 300


def test_pieces_may_break_words_in_two() -> None:
    whole = train_tokenizer(iter(["some words words"]), kind="bpe", vocabulary_size=300)
    parts = train_tokenizer(iter(["some wo", "rds wor", "ds"]), kind="bpe", vocabulary_size=300)
    assert whole.to_json() == parts.to_json()


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        (
            "bpe",
            256,
            "A vocabulary of 256 tokens is too small: .* need 257. Give --vocabulary-size",
        ),
        # a, b and c, ##a, ##b and ##c, 5 special ones.
        ("wordpiece", 10, "of 10 tokens is too small: .* need 11. Give --vocabulary-size 11"),
        ("characters", 5, "of 5 tokens is too small: .* need 6. Give --vocabulary-size 6"),
    ],
)
def test_vocabulary_without_room_is_refused(kind: str, size: int, message: str) -> None:
    with pytest.raises(OctavoltError, match=message):
        train_tokenizer(iter(["abc", "cb a"]), kind=kind, vocabulary_size=size)


def test_too_many_characters_are_refused() -> None:
    text = "".join(map(chr, range(0x10000, 0x20001)))
    with pytest.raises(OctavoltError, match=r"65,537 different characters; .* 65,534"):
        train_tokenizer(iter([text]), kind="characters", vocabulary_size=10**6)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'wordpiece'"):
        train_tokenizer(iter([""]), kind="word-piece", vocabulary_size=9)


@pytest.mark.parametrize("model_type", [None, "bert", "gpt2"])
@pytest.mark.parametrize("kind", KINDS)
def test_others_read_what_is_saved(kind: str, model_type: str | None, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = trained(kind).add_special(["<|user|>"])
    tokenizer.save(tmp_path, length=77, chat_template="{{ messages[0].content }}")
    if model_type:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.model_max_length == 77
    assert theirs.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False) == "hi"
    assert theirs.convert_tokens_to_ids("<|user|>") == tokenizer.id("<|user|>")
    for text, ids in zip(TEXTS, tokenizer.encode(TEXTS, special=True), strict=True):
        assert theirs(text, add_special_tokens=False)["input_ids"] == ids.tolist()
        if kind != "wordpiece":
            assert theirs.decode(ids) == tokenizer.decode(ids, special=True)


def test_others_wrap_pairs_as_we_do(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = trained("wordpiece")
    tokenizer.save(tmp_path, length=512)
    theirs = AutoTokenizer.from_pretrained(tmp_path)("the word", "running x")
    ours = tokenizer.wrap(*tokenizer.encode(["the word", "running x"]), length=512)
    assert theirs["input_ids"] == ours.ids.tolist()
    assert theirs["token_type_ids"] == ours.kinds.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_saved_is_read_again(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind).add_special(["<|user|>"])
    tokenizer.save(tmp_path, length=8)
    for again in (read_tokenizer(tmp_path), read_tokenizer(tmp_path / "tokenizer.json")):
        assert again.to_json() == tokenizer.to_json()
        for name in ("kind", "size", "padding_id", "end_id", "mask_id", "unknown_id", "special"):
            assert getattr(again, name) == getattr(tokenizer, name)


def test_padding_and_cutting_of_a_read_tokenizer_are_off(tmp_path: Path) -> None:
    rust = RustTokenizer.from_str(trained("bpe").to_json())
    rust.enable_padding(length=50)
    rust.enable_truncation(3)
    rust.model.dropout = 0.9
    rust.save(str(tmp_path / "tokenizer.json"))
    text = "the running words"
    assert listed(read_tokenizer(tmp_path).encode([text])) == listed(trained("bpe").encode([text]))


def write_unigram(folder: Path) -> None:
    rust = RustTokenizer(models.Unigram([("a", 0.0)], 0, False))
    rust.normalizer = normalizers.NFC()
    rust.decoder = decoders.Metaspace()
    rust.save(str(folder / "tokenizer.json"))


def write_sparse(folder: Path) -> None:
    (folder / "vocab.json").write_text(json.dumps({"a": 2**24}))
    (folder / "merges.txt").write_text("")


def write_files(**contents: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for name, content in contents.items():
            (folder / name.replace("_", ".")).write_text(content)

    return write


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_files(), "holds no tokenizer. Looked for: tokenizer.json, vocab.json with merges"),
        (write_files(vocab_json="{}"), "holds vocab.json but no merges.txt"),
        (write_files(encoder_json="{}"), "holds encoder.json but no vocab.bpe"),
        (write_files(tokenizer_json="{\n,"), r"tokenizer.json, line 2: not JSON"),
        (write_files(tokenizer_json="[]"), "tokenizer.json holds list, not an object"),
        (write_files(tokenizer_json='{"a": 1}'), "tokenizer.json holds no tokenizer"),
        (write_files(tokenizer_json='{"model": {}}'), "tokenizer.json is no tokenizer that can"),
        (write_files(tokenizer_json="[" * 10**5), "nested too deeply"),
        (write_unigram, "of the kind Unigram with Metaspace; octavolt reads WordPiece"),
        (write_files(vocab_txt="a\n[UNK]\n"), r"none of its 2 lines is \[PAD\], \[CLS\], \[SEP\]"),
        (write_files(vocab_json='{"a": "b"}', merges_txt=""), r"number of 'a' is \"b\"; it must"),
        (write_files(vocab_json='{"a": 0}', merges_txt="a b c\n"), "merges.txt, line 1: 'a b c'"),
        (write_files(vocab_json='{"a": 0}', merges_txt="a b\n"), "merges.txt is no tokenizer"),
        (write_sparse, "must be a whole number from 0 to 16,777,215"),
        (write_files(vocab_json="{}", merges_txt=""), "needs 0 rows"),
    ],
)
def test_what_is_no_tokenizer_is_refused(
    write: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    write(tmp_path)
    with pytest.raises(OctavoltError, match=message) as caught:
        read_tokenizer(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"There is no tokenizer at .*missing"):
        read_tokenizer(tmp_path / "missing")
    (tmp_path / "weights.bin").touch()
    with pytest.raises(OctavoltError, match=r"weights.bin is no tokenizer's file"):
        read_tokenizer(tmp_path / "weights.bin")
    (tmp_path / "vocab.txt").write_bytes(b"a\xff")
    with pytest.raises(OctavoltError, match=r"vocab.txt is not UTF-8 text \(byte 1\)"):
        read_tokenizer(tmp_path)
    os.truncate(tmp_path / "vocab.txt", 201 * 2**20)
    with pytest.raises(OctavoltError, match=r"201.0 MiB; .* at most 200.0 MiB"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("file", "lowercase"),
    [("bert-base-uncased-vocab.txt", True), ("bert-base-chinese-vocab.txt", True)],
)
def test_published_word_pieces_give_the_tokens_of_transformers(file: str, lowercase: bool) -> None:
    from transformers import BertTokenizer

    path = shared("vocab-bert", file)
    rows = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    vocabulary = {row: number for number, row in enumerate(rows)}
    theirs = BertTokenizer(vocab=vocabulary, do_lower_case=lowercase)
    ours = read_tokenizer(path)
    assert ours.size == len(rows)
    texts = [*real_lines(), *TEXTS]
    for text, ids in zip(texts, ours.encode(texts, special=True), strict=True):
        assert ids.tolist() == theirs(text, add_special_tokens=False)["input_ids"], text


def test_published_byte_level_gives_the_tokens_of_transformers() -> None:
    from transformers import GPT2Tokenizer

    folder = shared("vocab-gpt2")
    merges = (folder / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
    pairs: Any = [tuple(line.split(" ")) for line in merges]
    theirs = GPT2Tokenizer(
        vocab=json.loads((folder / "encoder.json").read_text(encoding="utf-8")),
        merges=pairs,
    )
    ours = read_tokenizer(folder)
    assert (ours.size, ours.end_id) == (50257, 50256)
    texts = [*real_lines(), *TEXTS]
    for text, ids in zip(texts, ours.encode(texts, special=True), strict=True):
        assert ids.tolist() == theirs(text)["input_ids"], text
        assert ours.decode(ids, special=True) == text


def real_lines() -> list[str]:
    english = shared("wikitext2-valid-test", "valid.txt").read_text(encoding="utf-8")
    chinese = sorted(shared("chatterbot-corpus-en-zh", "chinese").glob("*.yml"))
    lines = english.split("\n")[:200]
    for file in chinese:
        lines += file.read_text(encoding="utf-8").split("\n")[:40]
    return lines


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "characters"])
def test_a_vocabulary_that_no_memory_holds_is_refused(kind: str) -> None:
    with pytest.raises(OctavoltError, match=r"at most 1,000,000 are trained\. Give"):
        train_tokenizer(iter(["some text"]), kind=kind, vocabulary_size=10**11)
