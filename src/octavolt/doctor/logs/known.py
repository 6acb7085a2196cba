"""What an entry of the table of known errors is."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """An error that logs tell, what it means, and what to do."""

    name: str
    pattern: str
    """A regular expression, found anywhere in a line, in any case."""
    hints: tuple[str, ...]
    """Texts in lower case, of which each such line holds one: looked for first, as it is quick."""
    severity: Literal["error", "warning"] = "error"
    means: str
    remedy: str
    source: str
    example: str
    """A line as it stands in logs; tests hold the entry to it."""
