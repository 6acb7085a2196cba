"""Text is cut where no tokenizer minds, and what a stream handed out is what it says in the end."""

import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest
from tokenizers import Regex, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from octavolt.data.text.tokenizer import Tokenizer, train_tokenizer
from octavolt.data.text.words import CUT, bytes_of, cut

from .texts import FRAGMENTS, made_text

LATER_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How tokenizers made after GPT-2's split text: line ends go to the signs before them."""


def trained(kind: str) -> Tokenizer:
    text = [made_text(seed) for seed in range(10)]
    return train_tokenizer(iter(text), kind=kind, vocabulary_size=700)


def later_byte_level() -> Tokenizer:
    rust = RustTokenizer.from_str(trained("bpe").to_json())
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LATER_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return Tokenizer(rust)


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": partial(trained, "wordpiece"),
    "bpe": partial(trained, "bpe"),
    "characters": partial(trained, "characters"),
    "later bpe": later_byte_level,
}


def joined(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    return [token for ids in tokenizer.encode(texts) for token in ids.tolist()]


@pytest.mark.parametrize("kind", KINDS)
def test_cut_at_any_place_that_is_allowed_changes_no_token(kind: str) -> None:
    tokenizer = KINDS[kind]()
    places = 0
    for seed in range(30):
        text = made_text(seed + 100, 60)
        expected = joined(tokenizer, [text])
        for match in CUT.finditer(text):
            places += 1
            parts = [text[: match.end()], text[match.end() :]]
            assert joined(tokenizer, parts) == expected, parts
    assert places > 100


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_any_size_give_the_tokens_of_the_whole(kind: str) -> None:
    tokenizer = KINDS[kind]()
    rng = random.Random(0)
    for seed in range(10):
        text = made_text(seed, 400)
        expected = joined(tokenizer, [text])
        ends = [0, *sorted(rng.sample(range(len(text)), 20)), len(text)]
        pieces = [text[first:last] for first, last in itertools.pairwise(ends)]
        for given in (pieces, [text], list(text)):
            small = list(cut(given, most_characters=60))
            assert "".join(small) == text
            assert len(small) > 10
            assert joined(tokenizer, small) == expected


def test_pieces_have_at_most_so_many_characters_where_words_end() -> None:
    text = "word " * 1000
    assert max(map(len, cut([text], most_characters=64))) <= 64


def test_text_without_the_end_of_a_word_is_cut_anywhere_in_the_end() -> None:
    small = list(cut(["=" * 1000] * 3, most_characters=10))
    assert [len(piece) for piece in small] == [640, 640, 640, 640, 440]


def test_first_end_of_a_word_is_taken_where_the_piece_holds_none() -> None:
    assert next(cut(["-" * 100 + "a b" + "-" * 10], most_characters=64)) == "-" * 100 + "a"


def test_text_of_no_characters_has_no_pieces() -> None:
    assert list(cut(["", ""])) == []


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "characters"])
def test_stream_says_what_the_library_decodes_of_any_tokens(kind: str, special: bool) -> None:
    tokenizer = trained(kind).add_special(["<|user|>"])
    rust = RustTokenizer.from_str(tokenizer.to_json())
    rng = random.Random(1)
    emoji = tokenizer.encode(["😀你好👩\u200d👧 e\u0301"])[0].tolist()
    for _ in range(200):
        ids = rng.choices([*range(tokenizer.size), *emoji * 10], k=rng.randrange(40))
        expected = rust.decode(ids, skip_special_tokens=not special)
        stream = tokenizer.stream(special=special)
        said = [stream.add(token) for token in ids]
        assert "".join([*said, stream.finish()]) == expected
        assert tokenizer.decode(ids, special=special) == expected


def test_letter_is_said_when_it_is_whole_and_not_before() -> None:
    tokenizer = train_tokenizer(iter(["plain"]), kind="bpe", vocabulary_size=257)
    stream = tokenizer.stream()
    ids = tokenizer.encode(["a你😀"])[0].tolist()
    assert [stream.add(token) for token in ids] == ["a", "", "", "你", "", "", "", "😀"]
    assert stream.finish() == ""


def test_letter_that_is_never_finished_is_one_replacement_character() -> None:
    tokenizer = train_tokenizer(iter(["plain"]), kind="bpe", vocabulary_size=257)
    ids = tokenizer.encode(["😀"])[0][:3]
    assert tokenizer.decode(ids) == "\ufffd"
    assert tokenizer.decode([*ids.tolist(), *tokenizer.encode(["a"])[0].tolist()]) == "\ufffda"


def test_word_pieces_are_joined_as_the_library_does_but_for_chinese_and_japanese() -> None:
    tokenizer = trained("wordpiece")
    rust = RustTokenizer.from_str(tokenizer.to_json())
    latin = [
        number
        for name, number in rust.get_vocab().items()
        if name.removeprefix("##").isascii() or name in tokenizer.special
    ]
    rng = random.Random(2)
    for _ in range(200):
        ids = rng.choices(latin, k=rng.randrange(1, 20))
        assert tokenizer.decode(ids) == rust.decode(ids)
        assert tokenizer.decode(ids, special=True) == rust.decode(ids, skip_special_tokens=False)


def test_word_pieces_of_a_stream_are_those_of_the_whole() -> None:
    tokenizer = trained("wordpiece")
    rng = random.Random(3)
    for _ in range(100):
        ids = rng.choices(range(tokenizer.size), k=rng.randrange(20))
        stream = tokenizer.stream()
        said = ""
        for count, token in enumerate(ids, start=1):
            said += stream.add(token)
            assert said == tokenizer.decode(ids[:count])


def test_chinese_is_written_without_spaces_and_english_with() -> None:
    tokenizer = trained("wordpiece")
    (ids,) = tokenizer.encode(["你好\uff0cthe word 机器学习. Running!"])
    assert tokenizer.decode(ids) == "你好\uff0cthe word机器学习. running!"


def test_bytes_of_byte_level_names_are_those_of_the_library() -> None:
    for fragment in FRAGMENTS:
        ((name, _), *rest) = pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        ).pre_tokenize_str(fragment)
        assert not rest
        assert bytes_of(name) == fragment.encode()
