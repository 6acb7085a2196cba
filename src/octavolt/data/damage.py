"""What is wrong with the bytes of a file that does not decode, as a person can act on it."""

import io
import re
import struct
import zlib

import numpy as np
import simplejpeg
from PIL import Image

MOST_PIXELS = 178_956_970
"""Pillow's limit against decompression bombs: 512 MiB at 3 bytes a pixel."""
PILLOW_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    NotImplementedError,
    MemoryError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)
"""What Pillow's readers raise on bytes that are no whole picture: see `Image.open`."""
FLOATING = (
    "its pixels are floating-point numbers, of which no value is known to be white. "
    "Save it with 8 or 16 bits a channel"
)
JPEG = b"\xff\xd8"
TAIL_BYTES = 4096
"""How far from the end the mark of the end may stand: cameras append data of their own."""
MOST_STRAY_BYTES = 16
"""More of them before the end of a JPEG, and part of the picture was skipped."""
LEVELS = (1023, 4095, 16383, 65535)
"""White in pictures of 10, 12, 14 and 16 bits."""
LOOKS = (
    (b"version https://git-lfs", "a pointer of Git LFS: run 'git lfs pull'"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"<!doctype html", "a web page, as failed downloads leave"),
    (b"<html", "a web page, as failed downloads leave"),
    (b"<svg", "an SVG drawing: convert it to PNG"),
    (b"<?xml", "an XML file"),
)


def size_of(payload: bytes | memoryview) -> tuple[int, int]:
    """Return height and width as the header says. Raises `ValueError` with the reason."""
    if payload[:2] == JPEG:
        height, width, _, _ = simplejpeg.decode_jpeg_header(payload)
        return int(height), int(width)
    with opened(payload) as picture:
        return picture.height, picture.width


def opened(payload: bytes | memoryview) -> Image.Image:
    """Return the picture with only its header read. Raises `ValueError` with the reason.

    This is what `Image.open` does but for its warning of half the limit, which can't be silenced in
    one thread alone.
    """
    file = io.BytesIO(payload)
    beginning = file.read(16)
    Image.init()
    reasons = []
    for factory, accept in (Image.OPEN[name] for name in Image.ID):
        try:
            # A reader that looks at more bytes than there are raises, too.
            accepted = accept is None or accept(beginning)
            if not accepted or isinstance(accepted, str):
                continue
            file.seek(0)
            return factory(file, "")
        except PILLOW_ERRORS as error:
            reasons.append(str(error))
    raise ValueError(reasons[0] if len(reasons) == 1 else "no known kind of picture")


def full_decode(payload: bytes | memoryview) -> tuple[int, int, int]:
    """Return height, width and the level of white, having decoded every pixel.

    Raises `ValueError` with the reason.
    """
    if payload[:2] == JPEG:
        strict_jpeg(payload)
        return *size_of(payload), 255
    with opened(payload) as picture:
        if picture.mode == "F":
            raise ValueError(FLOATING)
        try:
            picture.load()
            return picture.height, picture.width, white_level(picture)
        except PILLOW_ERRORS as error:
            raise ValueError(str(error)) from error


def strict_jpeg(payload: bytes | memoryview) -> None:
    """Raise `ValueError` if the JPEG is cut off, or damaged so that pixels are lost."""
    try:
        # All of the file is decoded, but only to grey at an eighth: a fifth faster, in less memory.
        simplejpeg.decode_jpeg(
            payload, colorspace="GRAY", strict=True, min_height=1, min_width=1, min_factor=8
        )
    except ValueError as error:
        # A few bytes before the mark of the end, as some cameras write, cost no pixel.
        stray = re.search(r"(\d+) extraneous bytes before marker 0xd9", str(error))
        if stray is None or int(stray[1]) > MOST_STRAY_BYTES:
            raise


def white_level(picture: Image.Image) -> int:
    """Return the smallest usual level of white that no value of the picture exceeds."""
    if not picture.mode.startswith("I"):
        return 255
    return level_for(int(np.asarray(picture).max()))


def level_for(highest: int) -> int:
    """Return the smallest usual level of white in deep pictures that holds the value."""
    return next((level for level in LEVELS if highest <= level), LEVELS[-1])


def diagnosis(payload: bytes | memoryview, reason: str) -> tuple[str, str]:
    """Return the kind of fault and what to tell, for bytes that did not decode for that reason."""
    data = bytes(payload)
    size = f"{len(data):,} bytes"
    if reason == FLOATING:
        return "not-a-picture", reason
    if not any(data):
        return "not-a-picture", f"all its {size} are zero: a failed copy or a failing disk"
    missing = missing_end(data, reason)
    if missing:
        return "truncated", missing
    if is_known(data):
        return "corrupt", f"damaged inside its {size}: {reason}"
    return "not-a-picture", look_of(data, reason)


def look_of(data: bytes, reason: str) -> str:
    """Return what the bytes look like, with what to do if that is known."""
    beginning = data[:512].lstrip(b"\xef\xbb\xbf \r\n\t").lower()
    for mark, look in LOOKS:
        if beginning.startswith(mark.lower()):
            return look
    if data[4:8] == b"ftyp":
        return f"a HEIC, AVIF or video file, not read here ({reason}): convert it to JPEG"
    if is_text(data[:512]):
        return "a text file"
    return f"no picture that can be read: it begins with {data[:12].hex(' ')}"


def is_text(beginning: bytes) -> bool:
    """Tell whether the bytes are text in ASCII or UTF-8, perhaps cut inside the last letter."""
    if any(byte < 32 and byte not in b"\t\r\n\f" for byte in beginning):
        return False
    try:
        beginning.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(beginning) - 4 and len(beginning) > 4
    return True


def is_known(data: bytes) -> bool:
    """Tell whether the bytes begin as one of the usual kinds of picture."""
    known = (JPEG, b"\x89PNG", b"GIF8", b"BM", b"II*\0", b"MM\0*")
    return data.startswith(known) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def missing_end(data: bytes, reason: str) -> str | None:
    """Return how a picture is cut off, or None if it is not."""
    held = f"{len(data):,}"
    stated = stated_bytes(data)
    if stated is not None and len(data) < stated:
        return f"{held} of {stated:,} bytes"
    tail = data[-TAIL_BYTES:]
    ends = {JPEG: b"\xff\xd9", b"\x89P": b"IEND", b"GI": b"\x3b"}
    end = ends.get(data[:2])
    cut = end is not None and is_known(data) and end not in tail
    if cut or re.search(r"premature end of jpeg|truncated", reason, re.IGNORECASE):
        return f"ends after {held} bytes, in the middle of the picture"
    return None


def stated_bytes(data: bytes) -> int | None:
    """Return how long the file says that it is, or None if its format does not say."""
    if data[:2] == b"BM" and len(data) >= 6:
        return int.from_bytes(data[2:6], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return 8 + int.from_bytes(data[4:8], "little")
    return None
