"""Videos, cameras and streams: read, answered frame by frame, drawn and written."""

from octavolt.video.played import Shown, Tally, played
from octavolt.video.source import (
    Captured,
    Frame,
    Frames,
    is_video,
    open_frames,
    quiet_decoders,
    without_password,
)
from octavolt.video.written import VideoFile

__all__ = [
    "Captured",
    "Frame",
    "Frames",
    "Shown",
    "Tally",
    "VideoFile",
    "is_video",
    "open_frames",
    "played",
    "quiet_decoders",
    "without_password",
]
