"""Tokens are kept once, found again only if they are whole, and made in flat memory."""

import json
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from octavolt.data.text import tokens
from octavolt.data.text.tokenizer import Tokenizer, train_tokenizer
from octavolt.data.text.tokens import (
    Tokens,
    Writer,
    cache_key,
    cached,
    default_folder,
    tokenize_documents,
)
from octavolt.errors import OctavoltError

from .texts import made_text


def ids(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def writes(*numbers: int) -> Callable[[Writer], None]:
    return lambda writer: writer.add(ids(*numbers))


def three(writer: Writer) -> None:
    """Write three samples: 1 2 3, nothing, 4."""
    writer.extend(ids(1, 2), text_bytes=5)
    writer.add(ids(3), text_bytes=2)
    writer.add(ids())
    writer.add(ids(4), text_bytes=1)


def not_again(writer: Writer) -> None:
    raise AssertionError("made again")


def checked(found: Tokens) -> None:
    assert [found.sample(index).tolist() for index in range(len(found))] == [[1, 2, 3], [], [4]]
    assert found.ends.tolist() == [3, 3, 4]
    assert found.lengths().tolist() == [3, 0, 1]
    assert found.text_bytes.tolist() == [7, 0, 1]


@pytest.mark.parametrize(
    ("vocabulary_size", "dtype"), [(10, "uint16"), (65536, "uint16"), (65537, "int32")]
)
@pytest.mark.parametrize("in_cache", [True, False])
def test_samples_are_as_written(
    vocabulary_size: int, dtype: str, in_cache: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "tokens" if in_cache else None
    found = cached(folder, "key", three, vocabulary_size=vocabulary_size)
    checked(found)
    assert found.ids.dtype == dtype
    assert not found.ids.flags.writeable
    if folder is not None:
        assert names(folder) == ["key"]


def test_largest_numbers_are_kept() -> None:
    for largest in (65535, 65536):
        found = cached(None, "key", writes(largest), vocabulary_size=largest + 1)
        assert found.sample(0).tolist() == [largest]


def test_numbers_outside_the_vocabulary_are_refused(tmp_path: Path) -> None:
    for bad in (-1, 10):
        with pytest.raises(ValueError, match="with a vocabulary of 10"):
            cached(tmp_path, "key", writes(1, bad), vocabulary_size=10)
    assert names(tmp_path) == []


def test_nothing_is_kept_too(tmp_path: Path) -> None:
    for make in (lambda writer: None, not_again):
        assert len(cached(tmp_path, "key", make, vocabulary_size=10)) == 0


def test_second_time_nothing_is_made(tmp_path: Path) -> None:
    cached(tmp_path, "key", three, vocabulary_size=10)
    checked(cached(tmp_path, "key", not_again, vocabulary_size=10))
    with pytest.raises(AssertionError, match="made again"):
        cached(tmp_path, "other", not_again, vocabulary_size=10)


def cut_off(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


@pytest.mark.parametrize("name", ["tokens.bin", "samples.bin", "header.json"])
@pytest.mark.parametrize("harm", [cut_off, Path.unlink])
def test_damaged_files_are_made_anew(name: str, harm: Any, tmp_path: Path) -> None:
    cached(tmp_path, "key", three, vocabulary_size=10)
    harm(tmp_path / "key" / name)
    checked(cached(tmp_path, "key", three, vocabulary_size=10))
    checked(cached(tmp_path, "key", not_again, vocabulary_size=10))
    assert names(tmp_path) == ["key"]


@pytest.mark.parametrize(
    "changed", [{"schema": 2}, {"dtype": "<i4"}, {"tokens": "4"}, {"samples": -1}, {"tokens": 3}]
)
def test_header_that_says_otherwise_is_made_anew(changed: dict[str, Any], tmp_path: Path) -> None:
    cached(tmp_path, "key", three, vocabulary_size=10)
    file = tmp_path / "key" / "header.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    checked(cached(tmp_path, "key", three, vocabulary_size=10))


def test_ends_that_do_not_fit_are_made_anew(tmp_path: Path) -> None:
    cached(tmp_path, "key", three, vocabulary_size=10)
    file = tmp_path / "key" / "samples.bin"
    file.write_bytes(np.array([3, 2, 4, 7, 0, 1], "<i8").tobytes())
    checked(cached(tmp_path, "key", three, vocabulary_size=10))


def test_of_two_at_once_one_is_used_by_both(tmp_path: Path) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def make(writer: Writer) -> None:
        three(writer)
        meeting.wait()

    found: list[Tokens] = []
    both = [
        threading.Thread(
            target=lambda: found.append(cached(tmp_path, "key", make, vocabulary_size=10))
        )
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(found) == 2
    for one in found:
        checked(one)
    assert names(tmp_path) == ["key"]


def test_failure_of_the_text_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    def make(writer: Writer) -> None:
        three(writer)
        raise OSError("the text is gone")

    with pytest.raises(OSError, match="the text is gone"):
        cached(tmp_path, "key", make, vocabulary_size=10)
    assert names(tmp_path) == []


def test_folder_that_is_none_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    checked(cached(tmp_path / "file", "key", three, vocabulary_size=10))


def test_more_than_memory_is_told_by_folder_and_remedy(tmp_path: Path) -> None:
    def many(writer: Writer) -> None:
        for _ in range(33):
            writer.add(np.zeros(2**20, np.int32))

    (tmp_path / "file").touch()
    with pytest.raises(OctavoltError, match=r"Can't keep tokens in .*/file: .* 64.0 MiB of memory"):
        cached(tmp_path / "file", "key", many, vocabulary_size=10)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which is always full")
def test_full_disk_is_no_failure_of_the_text() -> None:
    with Path("/dev/full").open("wb") as full:
        writer = Writer(full, vocabulary_size=10)
        # More than is buffered.
        with pytest.raises(tokens.CacheUnwritableError):
            writer.add(np.zeros(2**20, np.int32))


def test_old_leftovers_are_removed_and_new_ones_left(tmp_path: Path) -> None:
    for name, age_seconds in (("old", 7200), ("new", 0)):
        left = tmp_path / f"key.{name}.unfinished"
        left.mkdir()
        (left / "tokens.bin").touch()
        for path in (left / "tokens.bin", left):
            when = path.stat().st_mtime - age_seconds
            os.utime(path, (when, when))
    cached(tmp_path, "key", three, vocabulary_size=10)
    assert names(tmp_path) == ["key", "key.new.unfinished"]


def byte_level() -> Tokenizer:
    return train_tokenizer(iter([made_text(0)]), kind="bpe", vocabulary_size=400)


def test_key_changes_with_text_tokenizer_and_settings() -> None:
    tokenizer = byte_level()
    keys = [
        cache_key("a", tokenizer),
        cache_key("b", tokenizer),
        cache_key("a", tokenizer.add_special(["<|user|>"])),
        cache_key("a", tokenizer, length=3),
        cache_key("a", tokenizer, length=4),
    ]
    assert len(set(keys)) == 5
    assert cache_key("a", byte_level(), length=3) == keys[3]


def test_tokens_are_kept_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "octavolt" / "tokens"


def test_documents_end_in_the_end_of_text() -> None:
    tokenizer = byte_level()
    texts = [["the w", "ord你"], [], [made_text(1, 5)]]
    told: list[tuple[int, int]] = []
    found = cached(
        None,
        "key",
        lambda writer: tokenize_documents(
            texts,
            tokenizer,
            writer,
            total_bytes=100,
            progress=lambda done, total: told.append((done, total)),
        ),
        vocabulary_size=tokenizer.size,
    )
    whole = ["".join(pieces) for pieces in texts]
    for index, expected in enumerate(tokenizer.encode(whole)):
        assert found.sample(index).tolist() == [*expected.tolist(), tokenizer.end_id]
    sizes = [len(text.encode()) for text in whole]
    assert found.text_bytes.tolist() == sizes
    assert told == [(sum(sizes), 100)]


def test_long_documents_give_the_tokens_of_the_whole() -> None:
    tokenizer = byte_level()
    text = made_text(5, 20_000)
    found = cached(
        None,
        "key",
        lambda writer: tokenize_documents([[text], ["x"] * 5], tokenizer, writer),
        vocabulary_size=tokenizer.size,
    )
    assert len(text) > 2 * 2**14
    assert found.sample(0).tolist() == [*tokenizer.encode([text])[0].tolist(), tokenizer.end_id]
    assert tokenizer.decode(found.sample(1)) == "xxxxx"


@pytest.mark.parametrize("in_one", [True, False])
def test_memory_does_not_grow_with_the_text(in_one: bool) -> None:
    tokenizer = byte_level()
    piece = "\nsome words and more of them" * 40

    def peak_bytes(count: int) -> int:
        pieces = (piece for _ in range(count))
        documents = [pieces] if in_one else ([one] for one in pieces)
        tracemalloc.start()
        try:
            with Path(os.devnull).open("wb") as file:
                writer = Writer(file, vocabulary_size=tokenizer.size)
                tokenize_documents(documents, tokenizer, writer, batch_characters=10_000)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # A batch is some 10 pieces; of 10 times the text nothing is kept but 16 bytes a sample.
    assert peak_bytes(500) < 1.5 * peak_bytes(50)
