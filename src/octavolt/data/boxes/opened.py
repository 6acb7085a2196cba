"""Formats of boxes, found by looking. A new one is a file and a line here."""

from octavolt.contract import DataSet
from octavolt.data.boxes import coco, digits, table, voc, yolo_txt
from octavolt.data.format import Format
from octavolt.data.formats import unreadable
from octavolt.errors import OctavoltError

FORMATS: tuple[Format, ...] = (
    Format(
        name="demo",
        description="scikit-learn's digits on canvases, 300 pictures",
        recognises=digits.recognises,
        open=digits.open_digits,
    ),
    Format(
        name="coco",
        description="COCO: JSON files with images, annotations and categories",
        recognises=coco.recognises,
        open=coco.open_coco,
    ),
    Format(
        name="voc",
        description="Pascal VOC: Annotations/*.xml beside JPEGImages, ImageSets/Main if there",
        recognises=voc.recognises,
        open=voc.open_voc,
    ),
    Format(
        name="yolo",
        description="YOLO: images and labels, a text file a picture, data.yaml or classes.txt",
        recognises=yolo_txt.recognises,
        open=yolo_txt.open_yolo,
    ),
    Format(
        name="boxes-csv",
        description="a table with file, label and xmin, ymin, xmax, ymax or x, y, width, height",
        recognises=table.recognises,
        open=table.open_table,
    ),
)


def is_boxes(source: str) -> bool:
    """Tell whether a source looks like pictures with boxes; the demo is one of many things."""
    return source != "demo" and any(one.recognises(source) for one in FORMATS)


def open_boxes(source: str, *, seed: int) -> DataSet:
    """Return the data set of that name: a path or 'demo'. Reads the beginning of each picture."""
    for one in FORMATS:
        if one.recognises(source):
            return one.open(source, seed)
    known = "; ".join(f"{one.name}: {one.description}" for one in FORMATS)
    raise OctavoltError(
        unreadable(source)
        or f"'{source}' holds no boxes in a format that octavolt reads. It reads {known}."
    )
