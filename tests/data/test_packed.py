"""Packed pictures show what they were made from, and are made anew when that changes."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from octavolt.data.decode import decode
from octavolt.data.packed import PackedPictures, PackedPlan, Packing, packed, plan_packed
from octavolt.errors import OctavoltError

from .memory import MemoryPictures, photos

SIDE = 37
"""ceil(1.15 x 32)."""


def pack(pictures: MemoryPictures, folder: Path, **changed: Any) -> PackedPictures:
    settings: dict[str, Any] = {"image_size": 32, "source_digest": "abc", "threads": 2}
    return packed(pictures, folder, "train", **{**settings, **changed})


def was_built(pictures: MemoryPictures, folder: Path, **changed: Any) -> bool:
    plans: list[PackedPlan] = []
    pack(pictures, folder, announce=plans.append, **changed)
    return bool(plans)


def test_packed_pictures_show_the_originals(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    corners = rng.integers(0, 256, (40, 3, 4, 3), dtype=np.uint8)
    smooth = [Image.fromarray(one).resize((80, 60), Image.Resampling.BICUBIC) for one in corners]
    pictures = MemoryPictures([np.asarray(one) for one in smooth], list(range(40)))
    small = pack(pictures, tmp_path)
    for index, original in enumerate(smooth):
        expected = np.asarray(original.resize((round(80 * SIDE / 60), SIDE)))
        error = decode(small.read(index)).astype(int) - expected
        # Two neighbours of the 40 differ by 100 and more; quality 90 is off by a few.
        assert np.abs(error).mean() < 5


def test_labels_and_names_are_the_originals(tmp_path: Path) -> None:
    small = pack(photos(7), tmp_path)
    assert small.labels.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert small.name(4) == "photos/4.jpg"


def test_selection_keeps_pictures_labels_and_names_together(tmp_path: Path) -> None:
    small = pack(photos(7), tmp_path)
    few = small.select(np.array([5, 1])).select(np.array([1, 0]))
    assert few.labels.tolist() == [1, 2]
    assert few.name(0) == "photos/1.jpg"
    assert bytes(few.read(1)) == bytes(small.read(5))


def test_shorter_side_is_bounded_and_never_enlarged(tmp_path: Path) -> None:
    files = [*photos(1, height=120, width=60).files, *photos(1, height=20, width=200).files]
    small = pack(MemoryPictures(files, [0, 1]), tmp_path)
    assert decode(small.read(0)).shape == (2 * SIDE, SIDE, 3)
    assert decode(small.read(1)).shape == (20, 200, 3)


def test_grey_stays_grey(tmp_path: Path) -> None:
    grey = np.arange(0, 240, 4, dtype=np.uint8)[:, None].repeat(50, axis=1)
    small = pack(MemoryPictures([grey], [0]), tmp_path)
    assert simplejpeg.decode_jpeg_header(small.read(0))[2] == "Gray"


def test_sixteen_bits_are_scaled_when_packed(tmp_path: Path) -> None:
    pictures = MemoryPictures([np.full((40, 40), 4000, np.uint16)], [0])
    small = pack(pictures, tmp_path, white_level=4000)
    assert decode(small.read(0)).min() == 255


def test_second_time_nothing_is_built(tmp_path: Path) -> None:
    pictures = photos(5)
    assert was_built(pictures, tmp_path)
    assert not was_built(pictures, tmp_path)


@pytest.mark.parametrize(
    "changed", [{"source_digest": "other"}, {"image_size": 24}, {"white_level": 4095}]
)
def test_change_of_the_data_or_settings_rebuilds(tmp_path: Path, changed: dict[str, Any]) -> None:
    pictures = photos(5)
    pack(pictures, tmp_path)
    assert was_built(pictures, tmp_path, **changed)


def test_change_of_a_label_rebuilds(tmp_path: Path) -> None:
    pictures = photos(5)
    pack(pictures, tmp_path)
    pictures.labels[2] = 0
    assert was_built(pictures, tmp_path)


@pytest.mark.parametrize("kept_bytes", [0, 100, 5000, -1])
def test_truncated_file_is_rebuilt(tmp_path: Path, kept_bytes: int) -> None:
    pictures = photos(40)
    whole = [bytes(pack(pictures, tmp_path).read(index)) for index in range(40)]
    file = tmp_path / "train.octavolt"
    file.write_bytes(file.read_bytes()[:kept_bytes])
    again = pack(pictures, tmp_path)
    assert [bytes(again.read(index)) for index in range(40)] == whole


def test_splits_lie_side_by_side(tmp_path: Path) -> None:
    pack(photos(2), tmp_path)
    packed(photos(3), tmp_path, "val", image_size=32, source_digest="abc", threads=1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["train.octavolt", "val.octavolt"]


def test_interruption_leaves_no_file(tmp_path: Path) -> None:
    def interrupted(done_count: int, count: int) -> None:
        if done_count == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(photos(5), tmp_path, progress=interrupted)
    assert list(tmp_path.iterdir()) == []


def test_while_it_is_built_there_is_no_file_of_its_name(tmp_path: Path) -> None:
    seen: list[str] = []
    pack(
        photos(2),
        tmp_path,
        progress=lambda done_count, count: seen.extend(one.name for one in tmp_path.iterdir()),
    )
    assert seen
    assert all(name.endswith(".unfinished") for name in seen)


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    pack(photos(40), tmp_path, progress=lambda done_count, count: calls.append((done_count, count)))
    assert calls == [(number, 40) for number in range(1, 41)]


def test_plan_comes_close_to_the_real_size(tmp_path: Path) -> None:
    pictures = photos(100)
    plan = plan_packed(pictures, Packing(image_size=32, source_digest="abc"), threads=2)
    pack(pictures, tmp_path)
    real_bytes = (tmp_path / "train.octavolt").stat().st_size
    assert plan.bytes == pytest.approx(real_bytes, rel=0.05)  # noise varies little in size


def test_planned_time_is_that_of_the_sample_shared_by_the_threads() -> None:
    """64 of 128 pictures in 16 s are 0.25 s each: 32 s, on 4 threads 8 s."""
    ticks = iter([0.0, 16.0])
    plan = plan_packed(
        photos(128, height=8, width=8),
        Packing(image_size=8, source_digest="abc"),
        threads=4,
        clock=lambda: next(ticks),
    )
    assert plan.seconds == 8.0


def test_no_room_is_told_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as raised:
        pack(photos(5), tmp_path / "cache", free_bytes=lambda folder: 2048)
    assert str(raised.value).startswith(f"{tmp_path / 'cache' / 'train.octavolt'} needs ")
    assert str(raised.value).endswith(
        "; 2.0 KiB are free. Make room, choose another folder, or train without --cache."
    )
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(OctavoltError, match=r"can't be written.*Choose another folder"):
        pack(photos(2), tmp_path / "cache")


def test_damaged_picture_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    pictures = photos(100)
    pictures.files[50] = b"text"
    with pytest.raises(OctavoltError, match=r"photos/50\.jpg: .*--skip-damaged"):
        pack(pictures, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_threads_end_with_the_packing(tmp_path: Path) -> None:
    pack(photos(20), tmp_path)
    names = [one.name for one in threading.enumerate()]
    assert not [name for name in names if name.startswith("octavolt-packing")]
