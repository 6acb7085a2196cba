"""What stands in front of a JPEG's pixels: size, components, and which way is up."""

import struct
from dataclasses import dataclass

START = b"\xff\xd8\xff"
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a frame header, which holds the size: ITU-T T.81, table B.1."""
APP1, SCAN = 0xE1, 0xDA
EXIF = b"Exif\0\0"
ORIENTATION_TAG = 0x0112
"""EXIF 2.3, section 4.6.4."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JpegHeader:
    """A JPEG's size as stored, and how to turn it upright."""

    height: int
    width: int
    component_count: int
    """1 is grey, 3 color, 4 CMYK or YCCK."""
    orientation: int
    """1 to 8, as in EXIF: 1 is upright."""


def jpeg_header(data: bytes | memoryview) -> JpegHeader:
    """Return the header of a JPEG. Raises `ValueError` if it ends before the frame's."""
    orientation, at = 1, 2
    while at + 10 <= len(data):
        marker = data[at + 1]
        if data[at] != 0xFF or marker == SCAN:
            break
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        length = data[at + 2] << 8 | data[at + 3]
        if marker in FRAMES:
            height, width, component_count = struct.unpack_from(">HHB", data, at + 5)
            return JpegHeader(
                height=height,
                width=width,
                component_count=component_count,
                orientation=orientation,
            )
        if marker == APP1 and data[at + 4 : at + 10] == EXIF:
            orientation = exif_orientation(data[at + 10 : at + 2 + length])
        at += 2 + length
    raise ValueError("its JPEG header is damaged or cut short")


def exif_orientation(tiff: bytes | memoryview) -> int:
    """Return the orientation that an EXIF block states; 1 if it states none that is valid."""
    order = {b"II": "<", b"MM": ">"}.get(bytes(tiff[:2]))
    if order is None or len(tiff) < 8:
        return 1
    (start,) = struct.unpack_from(order + "I", tiff, 4)
    if start + 2 > len(tiff):
        return 1
    (count,) = struct.unpack_from(order + "H", tiff, start)
    for entry in range(start + 2, min(start + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, entry)
        if tag == ORIENTATION_TAG:
            return value if kind == 3 and 1 <= value <= 8 else 1
    return 1
