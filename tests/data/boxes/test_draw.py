from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from octavolt.data.boxes import draw
from octavolt.data.boxes.draw import (
    SMALLEST_FONT,
    UNASSIGNED,
    Mark,
    caption,
    caption_of,
    color_of,
    dejavu,
    drawn,
    enlargement,
    font_pixels,
    free_place,
    has_glyph,
    is_light,
    line_pixels,
    meet,
    opens,
    without_glyph,
)

GREY = 90


def grey(height: int, width: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), GREY, np.uint8)


def luminance(color: tuple[int, int, int]) -> float:
    linear = [
        (one / 255 / 12.92) if one < 11 else ((one / 255 + 0.055) / 1.055) ** 2.4 for one in color
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_picture_itself_stays_as_it_is() -> None:
    pixels = grey(400, 400)
    result = drawn(pixels, [Mark(box=(50, 50, 200, 200), caption="dog 87 %", label=0)])
    assert (pixels == GREY).all()
    assert result.shape == pixels.shape


def test_lines_follow_the_box_and_leave_its_inside_free() -> None:
    result = drawn(grey(600, 600), [Mark(box=(100, 200, 300, 400), caption="dog", label=0)])
    color = color_of(0)
    for x, y in ((100, 300), (299, 300), (200, 200), (200, 399)):
        assert tuple(result[y, x]) == color
    assert (result[215:385, 115:285] == GREY).all()
    assert (result[410:, :] == GREY).all()
    assert (result[:, 310:] == GREY).all()


@pytest.mark.parametrize(
    "box",
    [
        (0, 0, 400, 300),
        (-50, -50, 450, 350),
        (399.9, 299.9, 400, 300),
        (120, 80, 120, 80),
        (390, 290, 500, 500),
        (0, 0, 3, 3),
    ],
)
def test_box_at_an_edge_and_its_caption_are_in_the_picture(
    box: tuple[float, float, float, float],
) -> None:
    result = drawn(grey(300, 400), [Mark(box=box, caption="dog 87 %", label=5)])
    label = caption("dog 87 %", font_pixels(300, 400), color_of(5), 400)
    high, wide = label.shape[:2]
    views = np.lib.stride_tricks.sliding_window_view(result, label.shape)[:, :, 0]
    corners = np.argwhere((views[:, :, 0, 0] == label[0, 0]).all(axis=2))
    assert sum(bool((views[top, left] == label).all()) for top, left in corners) == 1
    assert (high, wide) < result.shape[:2]


def test_line_at_the_picture_edge_is_whole() -> None:
    result = drawn(grey(300, 400), [Mark(box=(0, 0, 400, 300), caption="", label=0)])
    line = line_pixels(300, 400)
    is_color = (result[150] == color_of(0)).all(axis=1)
    assert is_color[:10].sum() >= line
    assert is_color[-10:].sum() >= line


def test_first_box_is_on_top() -> None:
    box = (100.0, 100.0, 300.0, 250.0)
    marks = [Mark(box=box, caption="", label=label) for label in (3, 4)]
    assert tuple(drawn(grey(400, 400), marks)[200, 100]) == color_of(3)


@pytest.mark.parametrize(
    ("height", "width"), [(48, 64), (100, 100), (480, 640), (3000, 4000), (500, 8000)]
)
def test_letters_are_large_enough_at_any_size(height: int, width: int) -> None:
    times = enlargement(height, width)
    size = font_pixels(height * times, width * times)
    assert size >= SMALLEST_FONT
    # Shown as a whole on a screen of 1280 x 960 pixels, but for the panorama.
    if height * 2 >= width:
        assert size * min(1.0, 1280 / (width * times)) >= SMALLEST_FONT
    assert max(height, width) * times >= 320


def test_small_picture_is_enlarged_by_a_whole_factor() -> None:
    pixels = np.arange(48 * 64 * 3, dtype=np.uint32).reshape(48, 64, 3).astype(np.uint8)
    result = drawn(pixels, [])
    assert result.shape == (240, 320, 3)
    assert (result[::5, ::5] == pixels).all()
    assert (result[4::5, 4::5] == pixels).all()


def test_caption_shrinks_then_loses_the_end_of_its_label() -> None:
    text = f"{'very ' * 20}long name 87 %"
    assert caption(text, 20, (0, 0, 0), 4000).shape[0] > caption(text, 20, (0, 0, 0), 900).shape[0]
    assert caption(text, 20, (0, 0, 0), 120).shape[1] <= 120
    font = draw.best_font(text, SMALLEST_FONT)
    short = draw.shortened(text, font, 110)
    assert short.startswith("very")
    assert short.endswith("… 87 %")
    assert font.getlength(short) <= 110


def test_captions_keep_apart() -> None:
    box, label, canvas = (50, 50, 250, 250), (20, 80, 3), (400, 400, 3)
    taken: list[tuple[int, int, int, int]] = []
    for _ in range(4):
        place = free_place(box, label, canvas, taken)
        assert not any(meet(place, other) for other in taken)
        taken.append(place)
    assert taken[0] == (50, 30, 130, 50)


@pytest.mark.parametrize("label", range(21))
def test_letters_stand_out_from_their_ground(label: int) -> None:
    color = color_of(label)
    ink = (0, 0, 0) if is_light(color) else (255, 255, 255)
    # WCAG 2.1 asks for 4.5; black or white always has at least 4.58.
    assert contrast(color, ink) >= 4.5


def test_colors_differ() -> None:
    assert len({color_of(label) for label in range(21)}) == 21
    assert color_of(21) == color_of(0)


def test_caption_keeps_to_one_line() -> None:
    assert caption_of("a\nb", 0.874) == "a b 87 %"


def test_bundled_font_has_latin_but_not_chinese() -> None:
    assert all(has_glyph(dejavu(), one) for one in "dog 87 %…ñЖΩ")
    assert not has_glyph(dejavu(), "图")
    assert not has_glyph(dejavu(), UNASSIGNED)


def test_what_no_font_has_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_glyph(["dog", "ñandú"]) == ""
    assert UNASSIGNED in without_glyph([f"a{UNASSIGNED}"])
    monkeypatch.setattr(draw, "system_fonts", lambda: ())
    assert without_glyph(["图片", "片 dog"]) == "".join(sorted("图片"))


def test_chinese_caption_is_written_in_a_font_that_has_it() -> None:
    if without_glyph(["绿色"]):
        pytest.skip("this computer has no font with Chinese characters")
    one, other = (caption(text, 20, (0, 0, 0), 400) for text in ("绿", "色"))
    assert one.shape != other.shape or (one != other).any()


def test_broken_font_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "unifont.ttf"
    path.write_bytes(b"no font")
    assert not opens(path)
