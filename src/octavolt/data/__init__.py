"""Data: what samples are, by modality, and how what the user named is opened."""

from octavolt.contract import DataSet, Modality, Reading
from octavolt.data.boxes import opened
from octavolt.data.boxes.modality import BOXES
from octavolt.data.formats import FORMATS, lasting
from octavolt.data.picture_modality import PICTURES
from octavolt.data.text.modality import TEXT
from octavolt.data.text.opened import kind_of

__all__ = ["FORMATS", "MODALITIES", "lasting", "open_data", "task_of"]

MODALITIES: dict[str, Modality] = {"pictures": PICTURES, "boxes": BOXES, "text": TEXT}


def open_data(
    source: str,
    *,
    modality: str = "pictures",
    task: str = "image-classification",
    seed: int = 0,
    reading: Reading | None = None,
) -> DataSet:
    """Return the data set of that name: a path, 'hub:NAME' or 'demo'."""
    return MODALITIES[modality].open(source, task=task, seed=seed, reading=reading or Reading())


def task_of(source: str) -> str:
    """Return the task that a data set looks made for; pictures, where it looks like no text."""
    if opened.kind_of(source):
        return "object-detection"
    return kind_of(source) or "image-classification"
