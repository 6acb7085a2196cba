"""What a user can put right, and how it is said."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES_SHOWN = 30


class OctavoltError(Exception):
    """What is wrong with which values, the limit, and what to do: shown in one line, status 2."""


class UnknownNameError(OctavoltError):
    """A name that no table holds; names the nearest that one does."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = [str(one) for one in known]
        near = nearest(name, names)
        guess = f" Did you mean '{near}'?" if near else ""
        listed = ", ".join(names[:MOST_NAMES_SHOWN]) or "none"
        more = f" and {len(names) - MOST_NAMES_SHOWN} more" if len(names) > MOST_NAMES_SHOWN else ""
        super().__init__(f"No {kind} is named '{name}'.{guess} Known: {listed}{more}.")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the user most likely meant, or None if none is near."""
    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None
