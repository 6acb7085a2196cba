"""A video with its boxes drawn, and its boxes as JSON lines, written on a thread of their own."""

import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from jaxtyping import UInt8

from octavolt.data.boxes.draw import Mark, caption_of, drawn
from octavolt.errors import OctavoltError
from octavolt.runs import Lines
from octavolt.units import MIB, format_bytes
from octavolt.video.played import FRAMES_AHEAD, Shown
from octavolt.video.slot import Slot

LEAST_FREE_BYTES = 32 * MIB
"""With less, what was written is finished while there still is room for a video's index."""
FRAMES_A_CHECK = 25
"""Between two looks at how much room is left."""


def row_of(shown: Shown) -> dict[str, Any]:
    """Return a frame with its boxes, ready for JSON."""
    seconds = round(shown.frame.seconds, 6)
    return {"frame": shown.frame.number, "seconds": seconds, **shown.answer}


def marks_of(boxes: Sequence[dict[str, Any]], classes: Sequence[str]) -> list[Mark]:
    """Return the boxes of an answer, to be drawn."""
    numbers = {name: place for place, name in enumerate(classes)}
    return [
        Mark(
            box=tuple(one["box"]),
            caption=caption_of(one["label"], one["score"]),
            label=numbers[one["label"]],
        )
        for one in boxes
    ]


class VideoFile:
    """NAME.mp4 and NAME.jsonl in a folder. Frames are drawn and written while others are answered.

    A frame stays until the next one's time, so that what was dropped leaves no gap and the video
    plays as long as its source did.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        rate: float,
        classes: Sequence[str],
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.path = folder / f"{name}.mp4"
        self.rate = rate
        self.classes = classes
        self.free_bytes = free_bytes
        self.writer: cv2.VideoWriter | None = None
        self.size = (0, 0)
        self.written = 0
        self.check_room()
        try:
            self.lines = Lines(folder / f"{name}.jsonl")
        except OSError as error:
            raise OctavoltError(
                f"Can't write into {folder}: {error.strerror}. Give a folder of yours with "
                "--output."
            ) from error
        self.slot: Slot[Shown] = Slot(room=FRAMES_AHEAD, drops=False)
        self.problem: BaseException | None = None
        self.thread = threading.Thread(target=self.write_all)
        self.thread.start()

    def add(self, shown: Shown) -> None:
        """Write a frame soon; wait if two are waiting. Raises what went wrong with earlier ones."""
        if not self.slot.put(shown):
            self.close()

    def close(self) -> None:
        """Write what waits, and finish the files; raise what went wrong."""
        self.slot.close()
        self.thread.join()
        if self.problem is not None:
            raise self.problem

    def write_all(self) -> None:
        """Write frames until there are no more; then finish the files, whatever happened."""
        previous: UInt8[np.ndarray, "height width 3"] | None = None
        try:
            while (shown := self.slot.take()) is not None:
                # First the row: a full disk is noticed there.
                self.lines.add(row_of(shown))
                picture = drawn(shown.frame.pixels, marks_of(shown.answer["boxes"], self.classes))
                encoded = self.fitted(cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
                self.hold(previous, until=shown.frame.seconds)
                self.write(encoded)
                previous = encoded
        except BaseException as problem:
            # It is raised by the next `add`, or by `close`.
            self.problem = problem
            self.slot.close()
        finally:
            self.lines.close()
            if self.writer is not None:
                self.writer.release()

    def hold(self, previous: UInt8[np.ndarray, "height width 3"] | None, *, until: float) -> None:
        """Repeat the last picture until it is time for the next."""
        while previous is not None and self.written < round(until * self.rate):
            self.write(previous)

    def write(self, picture: UInt8[np.ndarray, "height width 3"]) -> None:
        """Write one picture, whose colors are in OpenCV's order."""
        if self.written % FRAMES_A_CHECK == 0:
            self.check_room()
        assert self.writer is not None
        self.writer.write(picture)
        self.written += 1

    def fitted(
        self, picture: UInt8[np.ndarray, "height width 3"]
    ) -> UInt8[np.ndarray, "height_of_video width_of_video 3"]:
        """Return a picture in the video's size, which the first one decides."""
        size = (picture.shape[1], picture.shape[0])
        if self.writer is None:
            self.size = size
            code = cv2.VideoWriter.fourcc(*"mp4v")
            self.writer = cv2.VideoWriter(str(self.path), cv2.CAP_FFMPEG, code, self.rate, size)
            if not self.writer.isOpened():
                raise OctavoltError(
                    f"Can't write {self.path} of {size[0]} x {size[1]} pixels. Give another "
                    "--output."
                )
        if size == self.size:
            return picture
        return cv2.resize(picture, self.size, interpolation=cv2.INTER_AREA)

    def check_room(self) -> None:
        """Raise if the disk is almost full."""
        free = self.free_bytes(self.path.parent)
        if free < LEAST_FREE_BYTES:
            raise OctavoltError(
                f"{self.path.parent} has {format_bytes(free)} left on its disk; a video takes at "
                f"least {format_bytes(LEAST_FREE_BYTES)}. What was written can be played. Make "
                "room, or give another --output."
            )
