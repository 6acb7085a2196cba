"""From the bytes of a picture to pixels: upright, RGB, 8 bits a channel.

Two steps, so that a crop can be chosen by the size and only what it needs is decoded: `raster`
looks at the size, `paint` fills a slot of a batch. `decode` is both, for a whole picture.
Whatever is wrong with a picture is a `ValueError` with the reason; the caller knows its name.

JPEGs of one or three components go through simplejpeg, all else through Pillow. Transparent
pictures are laid on white: what lies under transparent pixels is arbitrary, mostly black, and was
never meant to be seen; paper and most viewers are white.
"""

import threading
from dataclasses import dataclass
from io import BytesIO

import cv2
import numpy as np
import simplejpeg
from jaxtyping import UInt8
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from octavolt.data.damage import FLOATING, MOST_PIXELS, PILLOW_ERRORS
from octavolt.data.jpeg import START, JpegHeader, can_be_cut, cut, jpeg_header

Encoded = bytes | memoryview | NDArray[np.uint8] | NDArray[np.uint16]
"""What `Pictures.read` returns."""
SHRINKS_LINEARLY = 2.5
"""Up to this ratio the nearest two along each axis are at least four in five of all pixels. OpenCV
takes eight times as long to average areas, and photos of 500 pixels are shrunk by up to 2.23."""
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
class Jpeg:
    """A JPEG of one or three components, not yet decoded."""

    data: bytes | memoryview
    header: JpegHeader


@dataclass(frozen=True, kw_only=True, slots=True)
class Raster:
    """A picture of known size, whose pixels may still be encoded."""

    height: int
    """Of the upright picture."""
    width: int
    stored: Jpeg | UInt8[np.ndarray, "height width 3"]
    """Arrays are upright, JPEGs as their header says."""
    orientation: int = 1
    """How it is stored, as in EXIF."""


def raster(data: Encoded, *, white_level: int = 65535) -> Raster:
    """Return what a picture is, decoded only if it is no JPEG."""
    if isinstance(data, np.ndarray):
        pixels = rgb(data, white_level=white_level)
    elif len(data) == 0:
        raise ValueError("the file is empty")
    else:
        if data[:3] == START:
            header = jpeg_header(data)
            check_size(header.height, header.width)
            if header.component_count in {1, 3}:
                return Raster(
                    height=header.width if header.is_turned else header.height,
                    width=header.height if header.is_turned else header.width,
                    stored=Jpeg(data=data, header=header),
                    orientation=header.orientation,
                )
        pixels = decoded_by_pillow(data, white_level=white_level)
    return Raster(height=pixels.shape[0], width=pixels.shape[1], stored=pixels)


def decode(data: Encoded, *, white_level: int = 65535) -> UInt8[np.ndarray, "height width 3"]:
    """Return a whole picture, upright."""
    stored = raster(data, white_level=white_level).stored
    if isinstance(stored, Jpeg):
        return upright(jpeg_pixels(stored), stored.header.orientation)
    return stored


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
    training: `upper_pixels` and `resize` say what it leaves out.
    """
    if source.orientation == 1:
        pixels = part(source, window, slot.shape[:2], quick=quick, scratch=scratch)
        resize(pixels, slot, quick=quick)
        if mirror:
            cv2.flip(slot, 1, dst=slot)
        return
    # To turn a slot is far cheaper than to turn a photo, so the window is turned the other way.
    size = (slot.shape[1], slot.shape[0]) if source.orientation >= TURNED else slot.shape[:2]
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
    top, left, height, width = window.top, window.left, window.height, window.width
    stored = source.stored
    if not isinstance(stored, Jpeg):
        return stored[top : top + height, left : left + width]
    ratio = min(height / size[0], width / size[1])
    shrink = next(one for one in (8, 4, 2, 1) if ratio >= one or one == 1)
    if quick:
        pixels = upper_pixels(stored, top + height, shrink=shrink, scratch=scratch)
    else:
        pixels = jpeg_pixels(stored, shrink=shrink, scratch=scratch)
    top, left = round(top / shrink), round(left / shrink)
    bottom, right = top + max(1, round(height / shrink)), left + max(1, round(width / shrink))
    return pixels[top:bottom, left:right]


def upper_pixels(
    jpeg: Jpeg, rows: int, *, shrink: int, scratch: Scratch | None
) -> UInt8[np.ndarray, "height width 3"]:
    """Return at least the upper rows of a JPEG, 1/shrink as high and wide.

    What lies below isn't decoded, in JPEGs where that can be left out. Damage within the rows,
    other than a missing end, is forgiven, as Pillow does too. Colors that are stored at half the
    size are repeated, not interpolated: that differs less than what quality 92 itself loses.
    """
    data, header = jpeg.data, jpeg.header
    # Shrinking rounds to whole rows.
    rows = min(rows + shrink, header.height)
    if not can_be_cut(data, header):
        rows = header.height
    is_cut = rows < header.height
    try:
        return decoded(
            cut(data, header, rows) if is_cut else data,
            rows,
            header.width,
            shrink,
            scratch,
            strict=not is_cut,
            repeat_colors=True,
        )
    except ValueError:
        return jpeg_pixels(jpeg, shrink=shrink, scratch=scratch)


def jpeg_pixels(
    jpeg: Jpeg, *, shrink: int = 1, scratch: Scratch | None = None
) -> UInt8[np.ndarray, "height width 3"]:
    """Return the pixels of a JPEG as they are stored, 1/shrink as high and wide, rounded up."""
    header = jpeg.header
    try:
        return decoded(jpeg.data, header.height, header.width, shrink, scratch)
    except ValueError:
        # It also refuses what viewers forgive, such as stray bytes between segments. Pillow judges.
        whole = decoded_by_pillow(jpeg.data, white_level=255, upright=False)
        smaller = np.empty((-(-header.height // shrink), -(-header.width // shrink), 3), np.uint8)
        resize(whole, smaller)
        return smaller


def decoded(
    data: bytes | bytearray | memoryview,
    height: int,
    width: int,
    shrink: int,
    scratch: Scratch | None,
    *,
    strict: bool = True,
    repeat_colors: bool = False,
) -> UInt8[np.ndarray, "height width 3"]:
    """Return what simplejpeg makes of a JPEG of that size, 1/shrink as high and wide."""
    height, width = -(-height // shrink), -(-width // shrink)
    pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(
        data,
        min_height=height if shrink > 1 else 0,
        min_width=width if shrink > 1 else 0,
        min_factor=shrink,
        buffer=scratch.pixels(height * width * 3) if scratch else None,
        strict=strict,
        fastupsample=repeat_colors,
    )
    return pixels


def resize(
    pixels: UInt8[np.ndarray, "height width 3"],
    slot: UInt8[np.ndarray, "slot_height slot_width 3"],
    *,
    quick: bool = False,
) -> None:
    """Fill the slot with the pixels, resized bilinearly.

    Every pixel counts, by Pillow's filter: published weights were measured with it. Quick means
    that each is interpolated from the nearest four while that leaves few out, and averaged over
    areas beyond: in a quarter of the time.
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
    except PILLOW_ERRORS as error:
        raise ValueError(str(error)) from error


def unreadable(data: bytes | memoryview) -> str:
    """Return why Pillow can't tell what a file is."""
    if bytes(data[4:8]) == b"ftyp" and bytes(data[8:12]) in {b"heic", b"heix", b"mif1", b"hevc"}:
        return "HEIC pictures can't be read. Convert it to JPEG"
    return "it is no picture in a format that can be read"


def flattened(image: Image.Image, *, white_level: int) -> UInt8[np.ndarray, "height width 3"]:
    """Return what a picture of any mode shows, on white where it is transparent."""
    if image.mode == "F":
        raise ValueError(FLOATING)
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
