from pathlib import Path

import cv2
import numpy as np
import pytest

from octavolt.errors import OctavoltError
from octavolt.video import Captured, is_video, open_frames, quiet_decoders, without_password
from tests.video.squares import write_video

quiet_decoders()


def read_all(frames: Captured) -> int:
    count = 0
    while frames.read() is not None:
        count += 1
    return count


def test_frames_of_a_file_are_rgb_with_their_times(tmp_path: Path) -> None:
    frames = open_frames(str(write_video(tmp_path / "图片 %d.mp4")))
    assert (frames.rate, frames.frame_count, frames.endless) == (25.0, 8, False)
    first = frames.read()
    assert first is not None
    assert first.shape == (48, 64, 3)
    red, green, _ = first[20, 12].tolist()
    assert red > 200
    assert green < 60
    assert frames.seconds() == 0.0
    frames.read()
    assert frames.seconds() == pytest.approx(0.04)
    assert read_all(frames) == 6
    frames.close()


def test_file_that_is_cut_off_says_how_much_was_read(tmp_path: Path) -> None:
    path = tmp_path / "half.avi"
    writer = cv2.VideoWriter(
        str(path), cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"MJPG"), 25.0, (64, 48)
    )
    for number in range(40):
        writer.write(np.full((48, 64, 3), number, np.uint8))
    writer.release()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    frames = open_frames(str(path))
    with pytest.raises(OctavoltError, match=r"half.avi breaks off: it has 40 frames, of which \d+"):
        read_all(frames)


@pytest.mark.parametrize("content", [b"", b"no video at all" * 100], ids=["empty", "text"])
def test_what_is_no_video_can_not_be_decoded(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(content)
    with pytest.raises(OctavoltError, match=r"clip.mp4 can't be decoded: "):
        open_frames(str(path))


def test_video_without_its_index_can_not_be_decoded(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(OctavoltError, match="damaged, cut off, or no video"):
        open_frames(str(path))


def test_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"gone.mp4 can't be read: No such file or directory"):
        open_frames(str(tmp_path / "gone.mp4"))


def test_stream_that_can_not_be_reached_keeps_its_password_to_itself() -> None:
    with pytest.raises(OctavoltError) as caught:
        open_frames("rtsp://me:secret@127.0.0.1:1/door")
    assert "rtsp://me:***@127.0.0.1:1/door can't be reached" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_camera_that_is_not_there() -> None:
    with pytest.raises(OctavoltError, match="There is no camera 997"):
        open_frames("997")


def test_camera_that_stops_is_no_end(tmp_path: Path) -> None:
    capture = cv2.VideoCapture(str(write_video(tmp_path / "clip.mp4")), cv2.CAP_FFMPEG)
    frames = Captured(capture, "camera 0", is_camera=True)
    # A file knows how long it is, even under an address; a camera doesn't.
    assert not frames.endless
    frames.endless = True
    with pytest.raises(OctavoltError, match="camera 0 has stopped: no frame came after 8 frames"):
        read_all(frames)


@pytest.mark.parametrize(
    ("name", "video"),
    [
        ("clip.mp4", True),
        ("CLIP.MKV", True),
        ("0", True),
        ("rtsp://host/door", True),
        ("http://host/video.mjpg", True),
        ("a.jpg", False),
        ("folder", False),
        ("folder.mp4", False),
        ("-", False),
        ("7", False),
        ("²", False),
        ("20231231", False),
    ],
)
def test_what_is_a_video(
    name: str, video: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.mp4").mkdir()
    Path("7").mkdir()
    assert is_video(name) == video


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://me:se@cret@host:554/a", "rtsp://me:***@host:554/a"),
        ("rtsp://me:secret@host", "rtsp://me:***@host"),
        ("rtsp://host:554/a@b", "rtsp://host:554/a@b"),
        ("clip.mp4", "clip.mp4"),
    ],
)
def test_address_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
