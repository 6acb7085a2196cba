"""Which frames a live source gives up, so that answers stay as recent as they can be."""

import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Slot(Generic[Item]):
    """Room for the newest frames, one unless said otherwise; for two threads.

    With `drops`, a new frame takes the place of the oldest that waits, which counts as dropped. So
    what is taken is no older than the time between two frames, however slow the work on it is, and
    the newest frame, the last one included, is always taken. Without, who puts waits for room, and
    nothing is lost.
    """

    def __init__(self, *, room: int = 1, drops: bool) -> None:
        self.room = room
        self.drops = drops
        self.dropped = 0
        self.waiting: deque[Item] = deque()
        self.closed = False
        self.problem: BaseException | None = None
        self.changed = threading.Condition()

    def put(self, item: Item) -> bool:
        """Put a frame there; return whether anyone still wants frames."""
        with self.changed:
            if self.drops:
                while len(self.waiting) >= self.room:
                    self.waiting.popleft()
                    self.dropped += 1
            else:
                self.changed.wait_for(lambda: len(self.waiting) < self.room or self.closed)
            if self.closed:
                return False
            self.waiting.append(item)
            self.changed.notify_all()
            return True

    def close(self, problem: BaseException | None = None) -> None:
        """Say that no more is put or wanted. What waits is still taken, then the problem raised."""
        with self.changed:
            self.closed = True
            self.problem = self.problem or problem
            self.changed.notify_all()

    def take(self, patience_seconds: float | None = None) -> Item | None:
        """Return the oldest frame that waits, as soon as there is one.

        None at the end, and when it took longer than that: `closed` tells which.
        """
        with self.changed:
            self.changed.wait_for(lambda: bool(self.waiting) or self.closed, patience_seconds)
            if self.waiting:
                item = self.waiting.popleft()
                self.changed.notify_all()
                return item
            if self.problem is not None:
                raise self.problem
            return None

    @property
    def ended(self) -> bool:
        """Whether nothing waits and nothing will come."""
        with self.changed:
            return self.closed and not self.waiting
