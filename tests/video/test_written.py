import json
from pathlib import Path

import numpy as np
import pytest

from octavolt.errors import OctavoltError
from octavolt.video import Frame, Shown, VideoFile
from tests.video.squares import CLASSES, read_video

GREY = np.full((240, 320, 3), 90, np.uint8)
PLENTY = 10**12
BOX = {"label": "绿色", "score": 0.5, "box": [100.0, 100.0, 200.0, 180.0]}


def shown(
    number: int, seconds: float, level: int = 90, size: tuple[int, int] = (240, 320)
) -> Shown:
    pixels = np.full((*size, 3), level, np.uint8)
    return Shown(
        frame=Frame(number=number, seconds=seconds, pixels=pixels),
        answer={"boxes": [BOX], "height": size[0], "width": size[1]},
    )


def written(folder: Path, *frames: Shown, rate: float = 10.0) -> VideoFile:
    file = VideoFile(folder, "out", rate=rate, classes=CLASSES)
    for one in frames:
        file.add(one)
    file.close()
    return file


def test_lines_hold_what_was_found(tmp_path: Path) -> None:
    written(tmp_path, shown(0, 0.0), shown(3, 0.3000001))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [(row["frame"], row["seconds"]) for row in rows] == [(0, 0.0), (3, 0.3)]
    assert rows[0]["boxes"] == [
        {"label": "绿色", "score": 0.5, "box": [100.0, 100.0, 200.0, 180.0]}
    ]
    assert (rows[0]["height"], rows[0]["width"]) == (240, 320)


def test_boxes_are_drawn(tmp_path: Path) -> None:
    written(tmp_path, shown(0, 0.0))
    frame = read_video(tmp_path / "out.mp4")[0]
    assert frame.shape == GREY.shape
    # The second color of the palette is blue; the coder blurs.
    red, _, blue = frame[140, 100].astype(int).tolist()
    assert blue > red + 50
    assert np.abs(frame[140, 150].astype(int) - 90).max() < 12


def test_frame_stays_until_the_next_one_is_due(tmp_path: Path) -> None:
    levels = (20, 120, 220)
    frames = [shown(n, s, v) for n, s, v in zip((0, 1, 5), (0.0, 0.1, 0.5), levels, strict=True)]
    written(tmp_path, *frames)
    corners = [int(frame[10, 10, 0]) for frame in read_video(tmp_path / "out.mp4")]
    nearest = [min(levels, key=lambda level: abs(level - one)) for one in corners]
    assert nearest == [20, 120, 120, 120, 120, 220]


def test_no_frame_is_left_out_that_came_early(tmp_path: Path) -> None:
    file = written(tmp_path, *(shown(number, number * 0.01) for number in range(5)))
    assert file.written == 5


def test_picture_of_another_size_is_fitted(tmp_path: Path) -> None:
    written(tmp_path, shown(0, 0.0), shown(1, 0.1, size=(480, 640)))
    assert [frame.shape for frame in read_video(tmp_path / "out.mp4")] == [(240, 320, 3)] * 2


def test_small_pictures_are_enlarged(tmp_path: Path) -> None:
    written(tmp_path, shown(0, 0.0, size=(49, 65)))
    # Five times as large; the coder leaves out an odd last row and column.
    assert [frame.shape for frame in read_video(tmp_path / "out.mp4")] == [(244, 324, 3)]


def test_full_disk_ends_with_a_file_that_plays(tmp_path: Path) -> None:
    rooms = [PLENTY, PLENTY, 10**6]
    file = VideoFile(tmp_path, "out", rate=10.0, classes=CLASSES, free_bytes=lambda _: rooms.pop(0))

    def add_all() -> None:
        for number in range(60):
            file.add(shown(number, number / 10))

    with pytest.raises(OctavoltError, match=r"976.6 KiB left on its disk.*can be played"):
        add_all()
    assert len(read_video(tmp_path / "out.mp4")) == 25


def test_disk_that_is_full_from_the_start_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match="left on its disk"):
        VideoFile(tmp_path, "out", rate=10.0, classes=CLASSES, free_bytes=lambda _: 0)
    assert [*tmp_path.iterdir()] == []


def test_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match="Can't write into"):
        VideoFile(tmp_path / "gone", "out", rate=10.0, classes=CLASSES, free_bytes=lambda _: PLENTY)
