"""Signals that ask a run to save or to stop, noticed between steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGTERM, signal.SIGINT)
SAVES = (signal.SIGUSR1,)


class Asked:
    """What signals have asked for so far."""

    def __init__(self) -> None:
        self.stop = False
        self.save = False


@contextmanager
def noticed(*, patient: bool) -> Iterator[Asked]:
    """Notice signals for the time of a block; a second one to stop is as abrupt as without us.

    A `patient` process ignores the second: a rank hears the terminal and its launcher both.
    """
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # Python lets only the main thread handle signals
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        asked.stop = True
        if not patient:
            signal.signal(number, before[signal.Signals(number)])

    def save(_number: int, _frame: FrameType | None) -> None:
        asked.save = True

    before = {number: signal.getsignal(number) for number in (*STOPS, *SAVES)}
    for number in STOPS:
        signal.signal(number, stop)
    for number in SAVES:
        signal.signal(number, save)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
