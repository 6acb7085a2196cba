"""Pixels are those that Pillow shows, the right way up; whatever can't be shown says why."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray
from PIL import Image, ImageOps

from octavolt.data.damage import MOST_PIXELS
from octavolt.data.decode import Scratch, Window, decode, paint, raster


def scene(height: int = 60, width: int = 80) -> NDArray[np.uint8]:
    """Return a smooth picture whose corners all differ, so that each turn of it shows."""
    down, across = np.mgrid[0:height, 0:width]
    red, green = 255 * down / height, 255 * across / width
    return np.stack([red, green, 255 - (red + green) / 2], axis=-1).astype(np.uint8)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    memory = BytesIO()
    image.save(memory, kind, **options)
    return memory.getvalue()


def photo(kind: str = "JPEG", **options: Any) -> bytes:
    return encoded(Image.fromarray(scene()), kind, **options)


def difference(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> int:
    assert one.shape == other.shape
    return int(np.abs(one.astype(int) - other.astype(int)).max())


def shown(data: bytes) -> NDArray[np.uint8]:
    """Return what Pillow shows."""
    return np.asarray(ImageOps.exif_transpose(Image.open(BytesIO(data))).convert("RGB"))


def painted(data: bytes, window: Window, size: int, **options: Any) -> NDArray[np.uint8]:
    slot = np.zeros((size, size, 3), np.uint8)
    paint(raster(data), window, slot, **options)
    return slot


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_is_as_pillow_shows_it(subsampling: int, progressive: bool) -> None:
    data = photo(quality=92, subsampling=subsampling, progressive=progressive)
    # Two builds of libjpeg-turbo round alike or one apart.
    assert difference(decode(data), shown(data)) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_all_orientations_are_turned_upright(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = photo(kind, exif=exif)
    assert difference(decode(data), shown(data)) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mirror", [False, True])
def test_window_is_of_the_upright_picture(orientation: int, mirror: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = photo(exif=exif, quality=95)
    window = Window(top=7, left=11, height=32, width=32)
    expected = shown(data)[7:39, 11:43]
    if mirror:
        expected = expected[:, ::-1]
    assert difference(painted(data, window, 32, mirror=mirror), expected) <= 1


@pytest.mark.parametrize("shrink", [2, 4, 8])
@pytest.mark.parametrize("quick", [False, True])
def test_picture_decoded_smaller_shows_the_same(shrink: int, quick: bool) -> None:
    data = encoded(Image.fromarray(scene(400, 480)), "JPEG", quality=95)
    window = Window(top=40, left=80, height=320, width=320)
    size = 320 // shrink
    box = (80, 40, 400, 360)
    expected = np.asarray(
        Image.open(BytesIO(data)).resize((size, size), Image.Resampling.BOX, box=box)
    )
    # The scene climbs by 0.6 a pixel; JPEG itself is off by as much as two.
    assert difference(painted(data, window, size, quick=quick), expected) <= 4


def test_scratch_changes_nothing() -> None:
    scratch = Scratch()
    window = Window(top=0, left=0, height=60, width=60)
    large = encoded(Image.fromarray(scene(200, 200)), "JPEG")
    painted(large, window, 40, scratch=scratch)
    data = photo()
    again = painted(data, window, 40, scratch=scratch)
    assert np.array_equal(again, painted(data, window, 40))


def test_small_window_is_enlarged() -> None:
    slot = painted(photo(), Window(top=10, left=10, height=1, width=1), 16)
    assert np.ptp(slot.reshape(-1, 3), axis=0).max() == 0


@pytest.mark.parametrize("quick", [False, True])
def test_panorama_is_averaged_along_its_length(quick: bool) -> None:
    stripes = np.zeros((10, 400, 3), np.uint8)
    stripes[:, ::2] = 255
    window = Window(top=0, left=0, height=10, width=400)
    slot = painted(encoded(Image.fromarray(stripes), "PNG"), window, 20, quick=quick)
    assert slot.min() > 100
    assert slot.max() < 155


def test_evaluation_resizes_as_pillow_does() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (90, 90, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), "PNG")
    expected = np.asarray(Image.fromarray(noise).resize((60, 60), Image.Resampling.BILINEAR))
    assert np.array_equal(painted(data, Window(top=0, left=0, height=90, width=90), 60), expected)


def test_cmyk_jpeg_is_as_pillow_shows_it() -> None:
    data = encoded(Image.fromarray(scene()).convert("CMYK"), "JPEG", quality=95)
    assert np.array_equal(decode(data), shown(data))


def test_grey_jpeg_has_three_equal_channels() -> None:
    data = encoded(Image.fromarray(scene()).convert("L"), "JPEG")
    assert np.array_equal(decode(data), shown(data))


def test_palette_shows_white_where_transparent() -> None:
    image = Image.new("P", (4, 2))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putdata([0, 1] * 4)
    pixels = decode(encoded(image, "PNG", transparency=0))
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[0, 1].tolist() == [200, 100, 50]


def test_grey_with_opacity_is_laid_on_white() -> None:
    image = Image.new("LA", (3, 1))
    image.putdata([(100, 255), (100, 0), (100, 51)])
    pixels = decode(encoded(image, "PNG"))
    # By hand: 100 * 51 / 255 + 255 * 204 / 255 = 224.
    assert pixels[0, :, 0].tolist() == [100, 255, 224]


def test_rgb_with_opacity_is_laid_on_white() -> None:
    image = Image.new("RGBA", (1, 1), (0, 100, 200, 51))
    assert decode(encoded(image, "PNG"))[0, 0].tolist() == [204, 224, 244]


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_by_the_white_level(kind: str) -> None:
    values = np.array([[0, 1000, 2000, 4000, 65535]], np.uint16)
    data = encoded(Image.fromarray(values), kind)
    assert decode(data, white_level=4000)[0, :, 0].tolist() == [0, 64, 128, 255, 255]
    assert decode(data)[0, :, 0].tolist() == [0, 4, 8, 16, 255]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_animation_shows_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (6, 4), color) for color in ("red", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert decode(data)[2, 3].tolist() == [255, 0, 0]


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "PNG", "PPM"])
def test_lossless_formats_are_exact(kind: str) -> None:
    assert np.array_equal(decode(photo(kind)), scene())


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize("kept_fraction", [0.1, 0.5, 0.8])
def test_truncated_file_is_refused(kind: str, kept_fraction: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    with pytest.raises(ValueError):
        decode(data[: int(kept_fraction * len(data))])


def test_truncated_jpeg_says_so() -> None:
    data = photo()
    with pytest.raises(ValueError, match="truncated"):
        decode(data[:-300])


@pytest.mark.filterwarnings("ignore")  # Pillow warns of what it skips; only errors count here
def test_any_damage_is_a_value_error() -> None:
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8))
    files = [encoded(noise, kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP")]
    refused = 0
    for file in files * 60:
        damaged = np.frombuffer(file, np.uint8).copy()
        damaged[rng.integers(0, min(len(file), 400), 3)] = rng.integers(0, 256, 3)
        try:
            decode(damaged.tobytes())
        except ValueError:
            refused += 1
    assert refused > 0


def test_stray_bytes_in_a_jpeg_are_forgiven() -> None:
    data = photo()
    stray = data[:-2] + b"\0\0\0\0" + data[-2:]
    with pytest.raises(ValueError, match="extraneous"):
        simplejpeg.decode_jpeg(stray)
    assert difference(decode(stray), shown(data)) <= 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello, this is text", "no picture"),
        (b"\xff\xd8\xff", "header is damaged"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1", "HEIC"),
    ],
)
def test_what_is_no_picture_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(data)


def test_floating_point_is_refused() -> None:
    data = encoded(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF")
    with pytest.raises(ValueError, match="floating-point"):
        decode(data)


def test_huge_jpeg_is_refused_before_decoding() -> None:
    data = bytearray(photo())
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = (20000).to_bytes(2, "big") * 2
    with pytest.raises(ValueError, match=f"400,000,000 pixels.*{MOST_PIXELS:,}"):
        raster(bytes(data))


def test_huge_picture_of_another_format_is_refused() -> None:
    data = b"P5 20000 20000 255\n"
    with pytest.raises(ValueError, match=f"{MOST_PIXELS:,}"):
        raster(data)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_arrays_of_all_shapes_are_taken(shape: tuple[int, ...], kind: Any) -> None:
    pixels = decode(np.full(shape, np.iinfo(kind).max, kind))
    assert pixels.shape == (5, 7, 3)
    assert (pixels == 255).all()


def test_array_of_two_channels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(5, 7, 2\)"):
        decode(np.zeros((5, 7, 2), np.uint8))


def test_memoryview_is_taken() -> None:
    data = photo()
    assert np.array_equal(decode(memoryview(data)), decode(data))
    png = photo("PNG")
    assert np.array_equal(decode(memoryview(png)), scene())


@pytest.mark.parametrize("subsampling", ["444", "422", "420", "440"])
@pytest.mark.parametrize("bottom", [1, 15, 16, 17, 33, 58, 60])
def test_rows_above_a_cut_are_as_in_the_whole(subsampling: str, bottom: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    data = simplejpeg.encode_jpeg(noise, 92, colorsubsampling=subsampling)
    window = Window(top=0, left=0, height=bottom, width=80)
    slot = np.zeros((bottom, 80, 3), np.uint8)
    paint(raster(data), window, slot, quick=True)
    assert np.array_equal(slot, simplejpeg.decode_jpeg(data, fastupsample=True)[:bottom])


@pytest.mark.parametrize("progressive", [False, True])
def test_truncation_is_noticed_below_the_crop(progressive: bool) -> None:
    data = photo(quality=92, progressive=progressive)
    window = Window(top=0, left=0, height=16, width=16)
    with pytest.raises(ValueError, match="truncated"):
        painted(data[:-40], window, 16, quick=True)


def test_crop_of_a_jpeg_with_bytes_after_its_end_is_painted() -> None:
    data = photo(quality=92)
    window = Window(top=0, left=0, height=16, width=16)
    trailed = painted(data + b"trailer", window, 16, quick=True)
    assert np.array_equal(trailed, painted(data, window, 16, quick=True))
