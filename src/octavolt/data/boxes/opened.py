"""Formats of boxes, found by looking at what the user named. A new one is a file and a line."""

from octavolt.contract import DataSet
from octavolt.data.boxes import coco, csv_boxes, digits, hub_boxes, voc, yolo_txt
from octavolt.data.boxes.files import Files
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.formats import unreadable
from octavolt.errors import OctavoltError

FORMATS: dict[str, BoxFormat] = {
    one.name: one
    for one in (
        digits.FORMAT,
        hub_boxes.FORMAT,
        coco.FORMAT,
        voc.FORMAT,
        csv_boxes.FORMAT,
        yolo_txt.FORMAT,
    )
}
"""The first that recognises a source opens it."""
LOCAL = tuple(name for name in FORMATS if name not in {digits.FORMAT.name, hub_boxes.FORMAT.name})
"""Those that are files."""


def open_boxes(source: str, *, seed: int = 0) -> DataSet:
    """Return the data set of that name: a path, 'hub:NAME' or 'demo'. Decodes no picture.

    Raises `OctavoltError` if it is in no format that holds boxes, or has none that can be used.
    """
    files = Files(source)
    for one in FORMATS.values():
        if one.recognises(files):
            return one.open(files, seed)
    raise OctavoltError(why_not(source))


def kind_of(source: str) -> bool:
    """Tell whether files look made for object detection, by a few folders and beginnings.

    'demo' and the Hub have pictures of other kinds too, so there a task has to be named.
    """
    files = Files(source)
    if not files.path.exists():
        return False
    try:
        return any(FORMATS[name].recognises(files) for name in LOCAL)
    except (OctavoltError, OSError):
        return False


def why_not(source: str) -> str:
    """Return the message for a source that no format recognises."""
    known = "; ".join(f"{one.name}: {one.description}" for one in FORMATS.values())
    unknown = f"'{source}' holds no boxes in a format that octavolt reads. It reads {known}."
    return unreadable(source) or unknown
