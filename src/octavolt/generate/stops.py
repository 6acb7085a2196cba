"""Stop strings in a stream of text."""

from collections.abc import Sequence


class Stops:
    """Passes text on until the first stop string; what may be the start of one is held back.

    What is passed on does not depend on how the text is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = tuple(stops)
        self.held = ""
        self.found = False

    def add(self, text: str) -> str:
        """Return the text that is sure by now to come before any stop string."""
        if self.found:
            return ""
        self.held += text
        # The one that is complete first; of two that end together, the one that began earlier.
        complete = [
            (at + len(stop), at) for stop in self.stops if (at := self.held.find(stop)) >= 0
        ]
        self.found = bool(complete)
        sure = min(complete)[1] if complete else len(self.held) - self.doubtful()
        passed, self.held = self.held[:sure], "" if self.found else self.held[sure:]
        return passed

    def finish(self) -> str:
        """Return what was held back: no stop string came of it."""
        passed, self.held = self.held, ""
        return passed

    def doubtful(self) -> int:
        """Return how many of the last characters may be the start of a stop string."""
        longest = max((len(stop) for stop in self.stops), default=1) - 1
        for count in range(min(longest, len(self.held)), 0, -1):
            if any(stop.startswith(self.held[-count:]) for stop in self.stops):
                return count
        return 0
