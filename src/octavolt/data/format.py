"""What a data format is: how it is recognised, and the function that opens it."""

from collections.abc import Callable
from dataclasses import dataclass

from octavolt.contract import DataSet


@dataclass(frozen=True, kw_only=True)
class Format:
    """One row of the table of data formats."""

    name: str
    description: str
    """One line for `octavolt list` and for messages."""
    recognises: Callable[[str], bool]
    """Takes the source as the user named it; looks, and reads no picture."""
    open: Callable[[str, int], DataSet]
    """Takes the source and the seed of the splits that octavolt makes itself."""
