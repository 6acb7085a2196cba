import io

import numpy as np
import pytest
from PIL import Image

from octavolt.data.damage import diagnosis, full_decode, level_for, size_of

from .conftest import jpeg

SHAPE = (40, 60, 3)


def encoded(kind: str, mode: str = "RGB", **options: object) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, SHAPE, np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, kind, **options)
    return file.getvalue()


WHOLE = {
    "jpeg": encoded("JPEG"),
    "progressive": encoded("JPEG", progressive=True),
    "cmyk": encoded("JPEG", "CMYK"),
    "png": encoded("PNG"),
    "palette": encoded("PNG", "P"),
    "gif": encoded("GIF"),
    "bmp": encoded("BMP"),
    "webp": encoded("WEBP"),
    "tiff": encoded("TIFF"),
}


@pytest.mark.parametrize("content", WHOLE.values(), ids=WHOLE)
def test_a_whole_picture_decodes_to_its_size(content: bytes) -> None:
    assert size_of(content) == SHAPE[:2]
    assert full_decode(content) == (*SHAPE[:2], 255)
    assert full_decode(memoryview(content)) == (*SHAPE[:2], 255)


@pytest.mark.parametrize("content", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_cut_picture_is_truncated_and_says_where(content: bytes, share: float) -> None:
    cut = content[: int(len(content) * share)]
    with pytest.raises(ValueError) as caught:
        full_decode(cut)
    kind, problem = diagnosis(cut, str(caught.value))
    assert kind == "truncated"
    assert f"{len(cut):,}" in problem


def test_a_format_that_states_its_length_says_what_is_missing() -> None:
    content = WHOLE["bmp"]
    assert diagnosis(content[:1000], "cut") == ("truncated", f"1,000 of {len(content):,} bytes")


def test_a_jpeg_damaged_inside_is_corrupt() -> None:
    content = bytearray(jpeg(0, 200, 200))
    middle = len(content) // 2
    content[middle : middle + 400] = b"\xff\xd3" * 200
    with pytest.raises(ValueError) as caught:
        full_decode(bytes(content))
    kind, problem = diagnosis(bytes(content), str(caught.value))
    assert kind == "corrupt"
    assert problem.startswith(f"damaged inside its {len(content):,} bytes: ")


def test_bytes_of_the_camera_around_the_end_of_a_jpeg_do_no_harm() -> None:
    content = jpeg(0)
    assert full_decode(content[:-2] + b"stray" + content[-2:])
    assert full_decode(content + b"more of the camera's own")


@pytest.mark.parametrize(
    ("content", "look"),
    [
        (bytes(300), "all its 300 bytes are zero: a failed copy or a failing disk"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "a pointer of Git LFS: run 'git lfs pull'",
        ),
        (b"\n<!DOCTYPE HTML><html>", "a web page, as failed downloads leave"),
        (b"%PDF-1.7\n\xff", "a PDF document"),
        ("a list of 猫".encode()[:-1], "a text file"),
        (b"\x7fELF\x02\x01", "no picture that can be read: it begins with 7f 45 4c 46 02 01"),
    ],
)
def test_a_file_that_is_no_picture_says_what_it_looks_like(content: bytes, look: str) -> None:
    with pytest.raises(ValueError) as caught:
        full_decode(content)
    assert diagnosis(content, str(caught.value)) == ("not-a-picture", look)


@pytest.mark.parametrize(
    ("highest", "level"), [(1, 1023), (1023, 1023), (1024, 4095), (16383, 16383), (16384, 65535)]
)
def test_white_is_the_smallest_usual_level_that_holds_the_highest_value(
    highest: int, level: int
) -> None:
    assert level_for(highest) == level
    pixels = np.zeros((8, 8), np.uint16)
    pixels[3, 3] = highest
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    assert full_decode(file.getvalue()) == (8, 8, level)


@pytest.mark.parametrize("length", range(1, 17))
@pytest.mark.parametrize("start", [b"hi there, no pic", b"\xff\xd8\xff\xe0aaaabbbbcccc", b"BM" * 8])
def test_a_file_of_a_few_bytes_is_no_picture(start: bytes, length: int) -> None:
    for look in (size_of, full_decode):
        with pytest.raises(ValueError, match=r"."):
            look(start[:length])


def test_floating_point_pixels_are_refused_as_training_would() -> None:
    file = io.BytesIO()
    Image.fromarray(np.ones((8, 8), np.float32)).save(file, "TIFF")
    with pytest.raises(ValueError, match=r"^its pixels are floating-point numbers") as raised:
        full_decode(file.getvalue())
    assert diagnosis(file.getvalue(), str(raised.value)) == ("not-a-picture", str(raised.value))
