from pathlib import Path

import pytest

from octavolt.data.text.encodings import (
    CHUNK_BYTES,
    NotTextError,
    cut,
    decoded,
    lines,
    pieces,
    text_file,
)
from octavolt.errors import OctavoltError

CHINESE = "今天天气很好我们去公园散步。\n这本书写得不错。\n"


def read(folder: Path, content: bytes) -> str:
    (folder / "a.txt").write_bytes(content)
    return "".join(decoded(folder, text_file(folder, "a.txt")))


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "gbk", "utf-16-le", "utf-16-be"]
)
def test_text_is_read_in_any_of_the_encodings(tmp_path: Path, encoding: str) -> None:
    text = CHINESE + "Plain words.\n"
    assert read(tmp_path, text.encode(encoding)) == text


def test_big_endian_is_read_by_its_mark(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xfe\xff" + CHINESE.encode("utf-16-be")) == CHINESE


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_character_across_two_chunks_is_read_whole(tmp_path: Path, encoding: str) -> None:
    text = "a" * (CHUNK_BYTES - 1) + CHINESE * 2
    assert read(tmp_path, text.encode(encoding)) == text


def test_lines_end_with_a_line_feed_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\rthree\n")
    part = text_file(tmp_path, "a.txt")
    assert "".join(decoded(tmp_path, part)) == "one\ntwo\nthree\n"
    assert list(lines(tmp_path, part)) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1", 1, "byte 4 is zero, so this is no text"),
        ("café\nélève à côté\n".encode("latin-1"), 1, "0xE9, is no UTF-8 and no GB18030"),
        (b"fine\nfine\n\xff\xff\n", 3, "byte 10, 0xFF, is no UTF-8 and no GB18030"),
        (CHINESE.encode("gb18030") + b"\x81\n", 3, "0x81, is no GB18030"),
        (b"\xef\xbb\xbfone\n\xff\n", 2, "is no UTF-8, which its first bytes say it is"),
        ("élèves\nétaient\n".encode("latin-1"), 1, "byte 0, 0xE9, is no UTF-8 and no GB18030"),
        (
            b"a" * (CHUNK_BYTES - 1) + "é\n".encode() + b"\xff",
            2,
            f"byte {CHUNK_BYTES + 2:,}, 0xFF, is no UTF-8",
        ),
        (CHINESE.encode()[:-2], 2, "is no UTF-8 and no GB18030"),
    ],
    ids=["jpeg", "latin", "bytes", "chinese", "mark", "valid GB18030", "chunks", "cut short"],
)
def test_what_is_no_text_is_told_with_line_and_byte(
    tmp_path: Path, content: bytes, line: int, problem: str
) -> None:
    with pytest.raises(NotTextError) as caught:
        read(tmp_path, content)
    assert caught.value.line == line
    assert problem in str(caught.value)


def test_pieces_end_at_lines_and_lose_nothing(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(100)) + "x" * 120 + "\nend"
    (tmp_path / "a.txt").write_text(text)
    found = list(pieces(tmp_path, text_file(tmp_path, "a.txt"), 50))
    assert "".join(found) == text
    assert all(len(piece) <= 50 for piece in found)
    assert all(piece.endswith("\n") for piece in found[:10])


@pytest.mark.parametrize(
    ("encoding", "characters"),
    [("utf-8", "上\u0a0a"), ("utf-16", "上\u0a0a一"), ("utf-16-be", "上\u0a0a"), ("gb18030", "上")],
)
def test_a_cut_is_behind_the_end_of_a_line(tmp_path: Path, encoding: str, characters: str) -> None:
    # The bytes of a line feed in UTF-16 stand across U+0A0A and U+4E00 too, and one in U+4E0A.
    text = f"{characters}天气\n" * 20
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    part = text_file(tmp_path, "a.txt")
    for place in range(part.begin, part.end - 20):
        at = cut(tmp_path, part, place)
        head = (tmp_path / "a.txt").read_bytes()[part.begin : at].decode(part.encoding)
        assert at > place
        assert head.endswith("天气\n")


def test_one_long_line_is_cut_behind_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 20)
    assert cut(tmp_path, text_file(tmp_path, "a.txt"), 52) == 55


def test_a_line_without_a_space_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 100)
    with pytest.raises(OctavoltError, match="one line without a space"):
        cut(tmp_path, text_file(tmp_path, "a.txt"), 52)


@pytest.mark.parametrize("text", ["hello \0 world\n", "今天\0天气"])
def test_single_zeros_do_not_make_text_utf_16(tmp_path: Path, text: str) -> None:
    content = text.encode() * 20
    assert len(content) % 2 == 0
    with pytest.raises(NotTextError, match="is zero, so this is no text"):
        read(tmp_path, content)


def test_utf_16_without_a_mark_of_letters_whose_halves_are_ascii(tmp_path: Path) -> None:
    assert read(tmp_path, ("Быть или не быть\n" * 9).encode("utf-16-le")).startswith("Быть или")
