"""Where frames come from: a video file, a camera, a stream."""

import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from octavolt.errors import OctavoltError
from octavolt.units import counted

VIDEO_ENDINGS = frozenset(
    [
        ".mp4",
        ".m4v",
        ".mov",
        ".avi",
        ".mkv",
        ".webm",
        ".wmv",
        ".flv",
        ".mpg",
        ".mpeg",
        ".ts",
        ".mts",
        ".m2ts",
        ".3gp",
        ".ogv",
    ]
)
USUAL_RATE = 25.0
"""Frames per second, where a camera doesn't tell."""
FASTEST_RATE = 240.0
"""Frames per second; a larger number is a unit of time, not a rate."""
SILENCE_MILLISECONDS = 10_000
"""After so long without a frame a stream has stopped."""
LOST_FRACTION = 0.02
"""Of the frames that a file says it has: many say a few more than they have."""
LOST_FRAMES = 5


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One picture of a video."""

    number: int
    """Counted from 0."""
    seconds: float
    """From the first frame, by the clock of a file or, of a camera, by that of this computer."""
    pixels: UInt8[np.ndarray, "height width 3"]
    """RGB."""


class Frames(ABC):
    """A source of frames. What `read` gives is read in order, by one thread."""

    name: str
    """What people call it, without a password."""
    rate: float
    """Frames per second."""
    endless: bool
    """Whether it is a camera or a stream, which has no end of its own and can't wait."""
    frame_count: int | None
    """As a file says; None if nobody knows."""

    @abstractmethod
    def read(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Return the next picture as RGB; None at the end. Raises `OctavoltError` if it breaks."""

    @abstractmethod
    def seconds(self) -> float:
        """Return the time of the last picture in a file, from any origin."""

    @abstractmethod
    def close(self) -> None:
        """Give the file or the camera back."""


class Captured(Frames):
    """Frames that OpenCV reads."""

    def __init__(self, capture: cv2.VideoCapture, name: str, *, is_camera: bool) -> None:
        self.capture = capture
        self.name = name
        count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        # Addresses may name a file too, which knows how long it is.
        self.endless = is_camera and count <= 0
        self.frame_count = count if count > 0 else None
        rate = float(capture.get(cv2.CAP_PROP_FPS))
        self.rate = rate if 0 < rate <= FASTEST_RATE else USUAL_RATE
        self.done = 0

    def read(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """Return the next picture as RGB; None at the end. Raises `OctavoltError` if it breaks."""
        fine, pixels = self.capture.read()
        if fine and pixels is not None:
            self.done += 1
            return cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB)
        if self.endless:
            raise OctavoltError(
                f"{self.name} has stopped: no frame came after {counted(self.done, 'frame')}. "
                "Check its power and its cable or network, then start again."
            )
        if self.done == 0:
            raise OctavoltError(
                f"{self.name} can't be decoded: not one frame could be read. Convert it, as with: "
                "ffmpeg -i VIDEO -c:v libx264 video.mp4"
            )
        lost = (self.frame_count or 0) - self.done
        if lost > max(LOST_FRAMES, LOST_FRACTION * (self.frame_count or 0)):
            raise OctavoltError(
                f"{self.name} breaks off: it has {counted(self.frame_count or 0, 'frame')}, of "
                f"which {self.done:,} could be decoded. The file is damaged, or not all of it was "
                "copied."
            )
        return None

    def seconds(self) -> float:
        """Return the time of the last picture in the file, in seconds."""
        return float(self.capture.get(cv2.CAP_PROP_POS_MSEC)) / 1000

    def close(self) -> None:
        """Give the file or the camera back."""
        self.capture.release()


def is_video(named: str) -> bool:
    """Whether a name means a video: a file by its ending, a camera's number, an address."""
    if is_address(named) or is_camera_number(named):
        return True
    return Path(named).suffix.lower() in VIDEO_ENDINGS and not Path(named).is_dir()


def is_address(named: str) -> bool:
    """Whether a name is the address of a stream."""
    return re.match(r"[a-z][a-z0-9+.-]*://", named, re.IGNORECASE) is not None


def is_camera_number(named: str) -> bool:
    """Whether a name is the number of a camera, unless a file or folder is called so."""
    return named.isascii() and named.isdigit() and len(named) <= 3 and not Path(named).exists()


def without_password(named: str) -> str:
    """Return an address that may be shown and written down."""
    return re.sub(r"(://[^/@:]*):[^/]*@", r"\1:***@", named)


def open_frames(named: str) -> Captured:
    """Return the frames of a file, a camera or a stream."""
    if is_camera_number(named):
        capture = cv2.VideoCapture(int(named))
        if not capture.isOpened():
            raise OctavoltError(
                f"There is no camera {named}, it is in use, or you may not use it. Cameras are "
                "numbered from 0; on Linux: ls -l /dev/video*"
            )
        # The newest frame is wanted, not one that has waited.
        capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        return Captured(capture, f"camera {named}", is_camera=True)
    address = is_address(named)
    if not address:
        check_file(Path(named))
    patience = [
        cv2.CAP_PROP_OPEN_TIMEOUT_MSEC,
        SILENCE_MILLISECONDS,
        cv2.CAP_PROP_READ_TIMEOUT_MSEC,
        SILENCE_MILLISECONDS,
    ]
    capture = cv2.VideoCapture(named, cv2.CAP_FFMPEG, patience)
    name = without_password(named)
    if not capture.isOpened():
        raise OctavoltError(
            f"{name} can't be reached, or is no stream. Check address, user and password."
            if address
            else f"{name} can't be decoded: it is damaged, cut off, or no video. Try to play "
            "it, or convert it, as with: ffmpeg -i VIDEO -c:v libx264 video.mp4"
        )
    return Captured(capture, name, is_camera=address)


def check_file(path: Path) -> None:
    """Raise unless a video's file can be read."""
    if path.exists() and not path.is_file():
        raise OctavoltError(f"{path} is no ordinary file.")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise OctavoltError(f"{path} can't be read: {error.strerror}.") from error
    if empty:
        raise OctavoltError(f"{path} can't be decoded: the file is empty.")


def quiet_decoders() -> None:
    """Keep decoders from writing to standard error. For verbs, before the first video is opened."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # AV_LOG_QUIET
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
