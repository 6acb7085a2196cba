"""scikit-learn's 1,797 handwritten digits: real data that are always at hand."""

from functools import partial
from pathlib import Path

import numpy as np

from octavolt.contract import DataSet
from octavolt.data.format import Format
from octavolt.data.pictures import ArrayPictures, Stack
from octavolt.data.splits import TRAIN, Found, divided

WHITE = 16
"""Largest value in the digits, as their description says."""


def recognises(source: str) -> bool:
    """Tell whether the demo is meant; a folder of that name is './demo'."""
    return source == "demo"


def open_demo(source: str, seed: int) -> DataSet:
    """Return the digits as pictures of 8 x 8 pixels."""
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    pixels = np.round(digits.images * (255 / WHITE)).astype(np.uint8)
    origin = Path(sklearn.datasets.__file__).parent / "data" / "digits.csv.gz"
    division = divided(
        Found(
            build=partial(ArrayPictures, (Stack(title="digits", origin=origin, pixels=pixels),)),
            names=[str(digit) for digit in range(10)],
            labels=digits.target.astype(np.int64),
            split_of=np.full(len(pixels), TRAIN, np.int64),
        ),
        seed=seed,
    )
    return DataSet(
        source=source,
        format="demo",
        classes=division.classes,
        splits=division.splits,
        faults=division.faults,
        notes=("scikit-learn's handwritten digits, 8 x 8 pixels.", *division.notes),
        mirrorable=False,
    )


FORMAT = Format(
    name="demo",
    description="scikit-learn's 1,797 handwritten digits",
    recognises=recognises,
    open=open_demo,
)
