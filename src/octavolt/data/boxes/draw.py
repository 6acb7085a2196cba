"""Boxes and captions drawn on a picture, to be read at any size."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

Color = tuple[int, int, int]
Rectangle = tuple[int, int, int, int]
"""Left, top, right, bottom."""

PALETTE: tuple[Color, ...] = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""Seven colors that most color-blind people tell apart: Okabe and Ito 2008, without black."""
LEGIBLE_SIDE = 320
"""Pixels of the longer side from which on captions leave room for the picture."""
SMALLEST_FONT = 11
"""Pixels, of letters that can just be read on any screen."""
UNASSIGNED = "\U0010ffff"
"""A character that no font has."""
FONT_FOLDERS = (
    "~/.local/share/fonts",
    "~/.fonts",
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/Library/Fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
    "C:/Windows/Fonts",
)
WIDE_FONTS = (
    "NotoSansCJK*Regular*",
    "SourceHanSans*Regular*",
    "NotoSans*SC*Regular*",
    "wqy-microhei*",
    "wqy-zenhei*",
    "DroidSansFallback*",
    "PingFang*",
    "Arial Unicode*",
    "msyh.*",
    "simhei.*",
    "FreeSans.*",
    "unifont*",
)
"""Fonts with Chinese, Japanese and Korean characters, as systems name them, the better ones first.
"""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A box to be drawn."""

    box: tuple[float, float, float, float]
    """Left, top, right, bottom in pixels."""
    caption: str
    label: int
    """Decides the color."""


def caption_of(label: str, score: float) -> str:
    """Return what stands at a box: 'dog 87 %'."""
    plain = "".join(one if one.isprintable() else " " for one in label)
    return f"{plain} {100 * score:.0f} %"


def color_of(label: int) -> Color:
    """Return the color of a class; the eighth is darker and the fifteenth lighter than the first.

    From the twenty-second on they repeat: the captions tell such classes apart.
    """
    red, green, blue = PALETTE[label % len(PALETTE)]
    shade = label // len(PALETTE) % 3
    if shade == 1:
        return red * 6 // 10, green * 6 // 10, blue * 6 // 10
    if shade == 2:
        return (red + 255) // 2, (green + 255) // 2, (blue + 255) // 2
    return red, green, blue


def is_light(color: Color) -> bool:
    """Whether black is read more easily than white on a color.

    By the contrast of relative luminances, which are equal at 0.179: WCAG 2.1, section 1.4.3.
    """
    linear = [
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4
        for one in (channel / 255 for channel in color)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179


def enlargement(height: int, width: int) -> int:
    """Return how many times as wide and high a picture becomes, so that captions can be read."""
    return max(1, math.ceil(LEGIBLE_SIDE / max(height, width)))


def font_pixels(height: int, width: int) -> int:
    """Return the size of letters for a picture: alike on a screen that shows it as a whole."""
    return max(SMALLEST_FONT, round(math.sqrt(height * width) / 42))


def line_pixels(height: int, width: int) -> int:
    """Return how wide the lines of a picture's boxes are."""
    return max(2, round(math.sqrt(height * width) / 300))


def drawn(
    pixels: UInt8[np.ndarray, "height width 3"], marks: Sequence[Mark]
) -> UInt8[np.ndarray, "drawn_height drawn_width 3"]:
    """Return a copy of a picture with boxes and captions, the first on top.

    A picture of fewer than 320 pixels is enlarged by a whole factor.
    """
    times = enlargement(*pixels.shape[:2])
    canvas = pixels.copy() if times == 1 else pixels.repeat(times, axis=0).repeat(times, axis=1)
    height, width = canvas.shape[:2]
    line = line_pixels(height, width)
    boxes = [rounded(mark.box, times, height, width) for mark in marks]
    for mark, box in reversed([*zip(marks, boxes, strict=True)]):
        draw_box(canvas, box, color_of(mark.label), line)
    taken: list[Rectangle] = []
    for mark, box in zip(marks, boxes, strict=True):
        label = caption(mark.caption, font_pixels(height, width), color_of(mark.label), width)
        place = free_place(box, label.shape, canvas.shape, taken)
        left, top, right, bottom = place
        canvas[top:bottom, left:right] = label[: bottom - top, : right - left]
        taken.append(place)
    return canvas


def rounded(
    box: tuple[float, float, float, float], times: int, height: int, width: int
) -> Rectangle:
    """Return a box in whole pixels of the canvas, at least one wide and high and inside it."""
    left, top, right, bottom = (round(side * times) for side in box)
    left, top = min(max(left, 0), width - 1), min(max(top, 0), height - 1)
    return left, top, min(max(right, left + 1), width), min(max(bottom, top + 1), height)


def draw_box(
    canvas: UInt8[np.ndarray, "height width 3"], box: Rectangle, color: Color, line: int
) -> None:
    """Draw a box in place, lines half outside, with a dark rim that shows on any ground."""
    rim = max(1, line // 3)
    fill_outline(canvas, box, line // 2 + rim, line - line // 2 + rim, (0, 0, 0))
    fill_outline(canvas, box, line // 2, line - line // 2, color)


def fill_outline(
    canvas: UInt8[np.ndarray, "height width 3"],
    box: Rectangle,
    outside: int,
    inside: int,
    color: Color,
) -> None:
    """Fill what lies at most so many pixels outside or inside of a box's sides."""
    height, width = canvas.shape[:2]
    left, top = max(0, box[0] - outside), max(0, box[1] - outside)
    right, bottom = min(width, box[2] + outside), min(height, box[3] + outside)
    # At the edge of the picture the whole line is inside, or half of it would be lost.
    thick = outside + inside
    canvas[top : min(top + thick, bottom), left:right] = color
    canvas[max(bottom - thick, top) : bottom, left:right] = color
    canvas[top:bottom, left : min(left + thick, right)] = color
    canvas[top:bottom, max(right - thick, left) : right] = color


def free_place(
    box: Rectangle,
    label: tuple[int, ...],
    canvas: tuple[int, ...],
    taken: Sequence[Rectangle],
) -> Rectangle:
    """Return where a caption goes: above its box, else inside, below, or at its lower corner.

    The first of these that lies in the picture and on no other caption; the first in the picture if
    all are taken.
    """
    (high, wide), (height, width) = label[:2], canvas[:2]
    left = max(0, min(box[0], width - wide))
    right_aligned = max(0, min(box[2] - wide, width - wide))
    corners = [
        (left, box[1] - high),
        (left, box[1]),
        (left, box[3]),
        (right_aligned, box[1] - high),
        (right_aligned, box[3] - high),
        (left, box[3] - high),
    ]
    inside = [(x, y) for x, y in corners if 0 <= y <= height - high]
    places = [
        (x, y, min(x + wide, width), min(y + high, height))
        for x, y in inside or [(left, max(0, min(box[1], height - high)))]
    ]
    return next((one for one in places if not any(meet(one, other) for other in taken)), places[0])


def meet(one: Rectangle, other: Rectangle) -> bool:
    """Whether two rectangles share a pixel."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@lru_cache(maxsize=1024)
def caption(
    text: str, size: int, color: Color, most_wide: int
) -> UInt8[np.ndarray, "height width 3"]:
    """Return a caption as pixels, no wider than that: letters shrink, then the end is left out.

    Those of the last thousand are kept: a video shows the same ones again and again.
    """
    margin = max(2, size // 5)
    room = max(1, most_wide - 2 * margin)
    font = best_font(text, size)
    if font.getlength(text) > room:
        smaller = int(size * room / font.getlength(text))
        font = best_font(text, max(SMALLEST_FONT, smaller))
        text = shortened(text, font, room)
    ascent, descent = font.getmetrics()
    wide = min(most_wide, math.ceil(font.getlength(text)) + 2 * margin)
    image = Image.new("RGB", (wide, ascent + descent + margin // 2), color)
    ink = "black" if is_light(color) else "white"
    ImageDraw.Draw(image).text((margin, margin // 4), text, fill=ink, font=font)
    return np.asarray(image)


def shortened(text: str, font: ImageFont.FreeTypeFont, room: float) -> str:
    """Return a caption that leaves out the end of a label, but not the score, to fit."""
    label, *score = text.rsplit(" ", 2)
    tail = " ".join(["…", *score])
    while label and font.getlength(text) > room:
        label = label[:-1]
        text = label + tail
    return text


def best_font(text: str, size: int) -> ImageFont.FreeTypeFont:
    """Return the first font that has all characters of a text, or the one that has the most."""
    best, fewest = font_at(dejavu(), size), len(text) + 1
    for path in font_files():
        count = len(lacking(path, text))
        if count < fewest:
            best, fewest = font_at(path, size), count
        if count == 0:
            break
    return best


def without_glyph(texts: Iterable[str]) -> str:
    """Return the characters for which no font of this computer has a shape."""
    missing = set("".join(texts))
    for path in font_files():
        if not missing:
            break
        missing &= lacking(path, "".join(sorted(missing)))
    return "".join(sorted(missing))


def lacking(path: Path, text: str) -> set[str]:
    """Return the characters for which a font has no shape of its own."""
    return {one for one in set(text) if not has_glyph(path, one)}


@lru_cache(maxsize=4096)
def has_glyph(path: Path, character: str) -> bool:
    """Whether a font draws a character otherwise than one that it can't have."""
    font = font_at(path, 16)
    return character.isspace() or glyph(font, character) != glyph(font, UNASSIGNED)


def glyph(font: ImageFont.FreeTypeFont, character: str) -> tuple[tuple[int, int], bytes]:
    """Return size and pixels of a character."""
    image, _ = font.getmask2(character, mode="L")
    return image.size, bytes(image)


@lru_cache(maxsize=256)
def font_at(path: Path, size: int) -> ImageFont.FreeTypeFont:
    """Return a font at a size in pixels."""
    return ImageFont.truetype(str(path), size)


def font_files() -> Iterator[Path]:
    """Yield DejaVu Sans, then the fonts of this computer that have Chinese characters."""
    yield dejavu()
    yield from system_fonts()


@cache
def system_fonts() -> tuple[Path, ...]:
    """Return the fonts of this computer that have Chinese characters; some have none."""
    folders = [Path(one).expanduser() for one in FONT_FOLDERS]
    found = [
        path
        for pattern in WIDE_FONTS
        for folder in folders
        for path in sorted(folder.rglob(pattern))
        if path.suffix.lower() in {".ttf", ".otf", ".ttc"}
    ]
    return tuple(path for path in found if opens(path))


def opens(path: Path) -> bool:
    """Whether a font file can be used."""
    try:
        font_at(path, 16)
    except OSError:
        return False
    return True


@cache
def dejavu() -> Path:
    """Return the font that matplotlib brings, without importing it."""
    spec = find_spec("matplotlib")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], "mpl-data/fonts/ttf/DejaVuSans.ttf")
