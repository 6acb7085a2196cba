"""From the bytes of a picture to pixels: upright, RGB, 8 bits a channel.

Two steps, so that a crop can be chosen by the size and only what it needs is decoded: `raster`
looks at the size, `paint` fills a slot of a batch. `decode` is both, for a whole picture.
Whatever is wrong with a picture is a `ValueError` with the reason; the caller knows its name.

JPEGs of one or three components go through simplejpeg, all else through Pillow. Transparent
pictures are laid on white: what lies under transparent pixels is arbitrary, mostly black, and was
never meant to be seen; paper and most viewers are white.
"""

import struct
import threading
import zlib
from dataclasses import dataclass
from io import BytesIO

import cv2
import numpy as np
import simplejpeg
from jaxtyping import UInt8
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from octavolt.data.jpeg import START, jpeg_header

Encoded = bytes | memoryview | NDArray[np.uint8] | NDArray[np.uint16]
"""What `Pictures.read` returns."""
MOST_PIXELS = 178_956_970
"""Twice 89,478,485, where Pillow, too, takes a picture for an attack on the memory."""
SHRINKS_LINEARLY = 2.0
"""Up to this ratio, two neighbours on each axis see every pixel."""
DAMAGES = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    RuntimeError,
    OverflowError,
    struct.error,
    zlib.error,
)
"""What Pillow's readers raise on damaged files."""
TURNED = 5
"""From this orientation on, rows are stored as columns."""


class Scratch(threading.local):
    """Memory for a decoded picture, one a thread, kept from picture to picture."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)

    def pixels(self, size_bytes: int) -> UInt8[np.ndarray, " bytes"]:
        """Return that much of it, or of more if it has to grow."""
        if self.memory.size < size_bytes:
            self.memory = np.empty(size_bytes, np.uint8)
        return self.memory[:size_bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A part of an upright picture, in its pixels."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Raster:
    """A picture of known size, whose pixels may still be encoded."""

    height: int
    """Of the upright picture."""
    width: int
    jpeg: bytes | memoryview | None = None
    orientation: int = 1
    """Of the JPEG, as in EXIF."""
    pixels: UInt8[np.ndarray, "height width 3"] | None = None
    """Upright, where there is no JPEG."""


def raster(data: Encoded, *, white_level: int = 65535) -> Raster:
    """Return what a picture is, decoded only if it is no JPEG."""
    if isinstance(data, np.ndarray):
        pixels = rgb(data, white_level=white_level)
    else:
        if len(data) == 0:
            raise ValueError("the file is empty")
        if data[:3] == START:
            header = jpeg_header(data)
            check_size(header.height, header.width)
            if header.component_count in {1, 3}:
                turned = header.orientation >= 5
                return Raster(
                    height=header.width if turned else header.height,
                    width=header.height if turned else header.width,
                    jpeg=data,
                    orientation=header.orientation,
                )
        pixels = decoded_by_pillow(data, white_level=white_level)
    return Raster(height=pixels.shape[0], width=pixels.shape[1], pixels=pixels)


def decode(data: Encoded, *, white_level: int = 65535) -> UInt8[np.ndarray, "height width 3"]:
    """Return a whole picture, upright."""
    source = raster(data, white_level=white_level)
    return upright(stored_pixels(source), source.orientation)


def paint(
    source: Raster,
    window: Window,
    slot: UInt8[np.ndarray, "slot_height slot_width 3"],
    *,
    quick: bool = False,
    mirror: bool = False,
    scratch: Scratch | None = None,
) -> None:
    """Fill the slot with the window of a picture, resized, and mirrored if asked.

    The crop comes before the resize, and a JPEG is decoded at 1/2, 1/4 or 1/8 of its size where the
    window still covers the slot: the other ratios that libjpeg has are slow. `quick` is for
    training: see `stored_pixels` and `resize` for what it leaves out.
    """
    if source.orientation == 1:
        pixels = part(source, window, slot.shape[:2], quick=quick, scratch=scratch)
        resize(pixels, slot, quick=quick)
        if mirror:
            cv2.flip(slot, 1, dst=slot)
        return
    # To turn a slot is far cheaper than to turn a photo, so the window is turned the other way.
    turned = source.orientation >= TURNED
    size = (slot.shape[1], slot.shape[0]) if turned else slot.shape[:2]
    aside = np.empty((*size, 3), np.uint8)
    pixels = part(source, as_stored(window, source), size, quick=quick, scratch=scratch)
    resize(pixels, aside, quick=quick)
    slot[:] = upright(aside, source.orientation)[:, :: -1 if mirror else 1]


def part(
    source: Raster,
    window: Window,
    size: tuple[int, ...],
    *,
    quick: bool,
    scratch: Scratch | None,
) -> UInt8[np.ndarray, "height width 3"]:
    """Return the window of a picture as stored, decoded no larger than it takes to fill `size`."""
    ratio = min(window.height / size[0], window.width / size[1])
    shrink = next(one for one in (8, 4, 2, 1) if ratio >= one or one == 1)
    if source.jpeg is None:
        shrink = 1
    top, left = round(window.top / shrink), round(window.left / shrink)
    bottom = top + max(1, round(window.height / shrink))
    right = left + max(1, round(window.width / shrink))
    pixels = stored_pixels(source, shrink=shrink, quick=quick, scratch=scratch)
    return pixels[top:bottom, left:right]


def stored_pixels(
    source: Raster, *, shrink: int = 1, quick: bool = False, scratch: Scratch | None = None
) -> UInt8[np.ndarray, "height width 3"]:
    """Return the pixels as they are stored, 1/shrink as high and wide, rounded up.

    Quick means libjpeg's fast cosine transform and colors that are repeated, not interpolated,
    where they are stored at half the size: a tenth less time, at a peak signal to noise of 43 dB.
    """
    if source.jpeg is None:
        assert source.pixels is not None, source
        return source.pixels
    turned = source.orientation >= TURNED
    height, width = (source.width, source.height) if turned else (source.height, source.width)
    height, width = -(-height // shrink), -(-width // shrink)
    try:
        decoded: NDArray[np.uint8] = simplejpeg.decode_jpeg(
            source.jpeg,
            min_height=height if shrink > 1 else 0,
            min_width=width if shrink > 1 else 0,
            min_factor=shrink,
            fastdct=quick,
            fastupsample=quick,
            buffer=scratch.pixels(height * width * 3) if scratch else None,
        )
    except ValueError:
        # It also refuses what viewers forgive, such as stray bytes between segments. Pillow judges.
        whole = decoded_by_pillow(source.jpeg, white_level=255, upright=False)
        decoded = np.empty((height, width, 3), np.uint8)
        resize(whole, decoded)
    return decoded


def resize(
    pixels: UInt8[np.ndarray, "height width 3"],
    slot: UInt8[np.ndarray, "slot_height slot_width 3"],
    *,
    quick: bool = False,
) -> None:
    """Fill the slot with the pixels, resized bilinearly.

    Every pixel counts, by Pillow's filter: published weights were measured with it. Quick means
    that each is interpolated from the nearest four as long as those lie no further apart than two,
    which leaves few out, and averaged over areas beyond: in a quarter of the time.
    """
    size = (slot.shape[1], slot.shape[0])
    if pixels.shape == slot.shape:
        slot[:] = pixels
        return
    ratios = (pixels.shape[0] / size[1], pixels.shape[1] / size[0])
    if not quick or (max(ratios) > SHRINKS_LINEARLY and min(ratios) < 1):
        # The second kind is shrunk along one side, enlarged along the other: OpenCV averages
        # nothing then.
        slot[:] = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
        return
    way = cv2.INTER_AREA if max(ratios) > SHRINKS_LINEARLY else cv2.INTER_LINEAR
    cv2.resize(pixels, size, dst=slot, interpolation=way)


def upright(pixels: UInt8[np.ndarray, "_ _ 3"], orientation: int) -> UInt8[np.ndarray, "_ _ 3"]:
    """Return a view of the pixels that is the right way up, for any of EXIF's 8 orientations."""
    if orientation >= TURNED:
        pixels = pixels.transpose(1, 0, 2)
    return pixels[:: -1 if orientation in {3, 4, 7, 8} else 1][
        :, :: -1 if orientation in {2, 3, 6, 7} else 1
    ]


def as_stored(window: Window, source: Raster) -> Window:
    """Return the window of the upright picture as it lies in the stored one."""
    top, left, height, width = window.top, window.left, window.height, window.width
    if source.orientation in {3, 4, 7, 8}:
        top = source.height - top - height
    if source.orientation in {2, 3, 6, 7}:
        left = source.width - left - width
    if source.orientation >= TURNED:
        top, left, height, width = left, top, width, height
    return Window(top=top, left=left, height=height, width=width)


def check_size(height: int, width: int) -> None:
    """Raise `ValueError` for a picture too large to decode, or of no size."""
    if height < 1 or width < 1:
        raise ValueError(f"it is {width} x {height} pixels: a picture has at least one")
    if height * width > MOST_PIXELS:
        raise ValueError(
            f"it has {height * width:,} pixels ({width} x {height}); the limit is "
            f"{MOST_PIXELS:,}. Scale it down"
        )


def decoded_by_pillow(
    data: bytes | memoryview, *, white_level: int, upright: bool = True
) -> UInt8[np.ndarray, "height width 3"]:
    """Return the pixels of a picture of any format, the first if it is animated."""
    try:
        with Image.open(BytesIO(data)) as image:
            check_size(image.height, image.width)
            image.load()
            return flattened(
                ImageOps.exif_transpose(image) if upright else image, white_level=white_level
            )
    except UnidentifiedImageError:
        raise ValueError(unreadable(data)) from None
    except Image.DecompressionBombError as error:
        raise ValueError(f"it has over {MOST_PIXELS:,} pixels. Scale it down") from error
    except DAMAGES as error:
        raise ValueError(str(error)) from error


def unreadable(data: bytes | memoryview) -> str:
    """Return why Pillow can't tell what a file is."""
    if bytes(data[4:8]) == b"ftyp" and bytes(data[8:12]) in {b"heic", b"heix", b"mif1", b"hevc"}:
        return "HEIC pictures can't be read. Convert it to JPEG"
    return "it is no picture in a format that can be read"


def flattened(image: Image.Image, *, white_level: int) -> UInt8[np.ndarray, "height width 3"]:
    """Return what a picture of any mode shows, on white where it is transparent."""
    if image.mode == "F":
        raise ValueError(
            "its pixels are floating-point numbers, of which no value is known to be white. "
            "Save it with 8 or 16 bits a channel"
        )
    if image.mode.startswith("I"):
        return rgb(np.asarray(image).clip(0, 65535).astype(np.uint16), white_level=white_level)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return np.asarray(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image))[
            ..., :3
        ]
    return np.asarray(image.convert("RGB"))


def rgb(
    pixels: NDArray[np.uint8] | NDArray[np.uint16], *, white_level: int
) -> UInt8[np.ndarray, "height width 3"]:
    """Return pixels, grey, RGB or RGB with opacity, as RGB of 8 bits."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[2] not in {1, 3, 4}:
        raise ValueError(
            f"its shape is {pixels.shape}; pictures are (height, width), or with 1, 3 or 4 channels"
        )
    check_size(*pixels.shape[:2])
    if pixels.dtype == np.uint16:
        pixels = np.rint(np.minimum(pixels * (255 / white_level), 255)).astype(np.uint8)
    if pixels.dtype != np.uint8:
        raise ValueError(f"its type is {pixels.dtype}; pictures are uint8 or uint16")
    if pixels.shape[2] == 4:
        opacity = pixels[..., 3:] / np.float32(255)
        pixels = np.rint(pixels[..., :3] * opacity + 255 * (1 - opacity)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))
