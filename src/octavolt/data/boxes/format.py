"""What a format of boxes is: how it is recognised, and the function that opens it."""

from collections.abc import Callable
from dataclasses import dataclass

from octavolt.contract import DataSet
from octavolt.data.boxes.files import Files


@dataclass(frozen=True, kw_only=True)
class BoxFormat:
    """One row of the table of formats of boxes."""

    name: str
    description: str
    """One line for `octavolt list` and for messages."""
    recognises: Callable[[Files], bool]
    """Looks at folders and at the beginning of files, and reads no picture."""
    open: Callable[[Files, int], DataSet]
    """Takes the files and the seed of the splits that octavolt makes itself."""
