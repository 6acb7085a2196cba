"""Data: what samples are, by modality, and how what the user named is opened."""

from octavolt.contract import DataSet, Modality, Reading
from octavolt.data.formats import FORMATS, lasting
from octavolt.data.picture_modality import PICTURES

__all__ = ["FORMATS", "MODALITIES", "lasting", "open_data"]

MODALITIES: dict[str, Modality] = {"pictures": PICTURES}


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
