"""A video answered frame by frame, while the next frames are read on a thread of their own."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from octavolt.video.slot import Slot
from octavolt.video.source import Frame, Frames

Ask = Callable[[Sequence[Any]], Sequence[dict[str, Any]]]
"""Takes pictures as RGB of 8 bits and returns an answer each."""
FRAMES_AHEAD = 2
"""Read while the network works on one; more only take memory."""
PATIENCE_SECONDS = 0.2
"""How soon a wish to stop is noticed while no frame comes."""
RECENT_FRAMES = 1000
"""Of which latencies are told."""
RECENT_SECONDS = 2.0
"""Over which the rate is taken that is shown while a video runs."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A frame with its answer."""

    frame: Frame
    answer: dict[str, Any]


@dataclass(kw_only=True)
class Tally:
    """How a video has gone so far."""

    clock: Callable[[], float] = time.perf_counter
    frames: int = 0
    """Answered."""
    dropped: int = 0
    began: float | None = None
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_FRAMES))
    """In seconds, from when a live frame was there, or due, to its answer."""
    ends: deque[float] = field(default_factory=deque)
    """When the answers of the last two seconds came."""

    def count(self, since: float, *, dropped: int) -> None:
        """Count a frame that has its answer now and was there at `since`."""
        now = self.clock()
        self.frames += 1
        self.dropped = dropped
        self.latencies.append(now - since)
        self.ends.append(now)
        while self.ends[0] < now - RECENT_SECONDS:
            self.ends.popleft()

    @property
    def seconds(self) -> float:
        """Return how long it has taken."""
        return 0.0 if self.began is None else self.clock() - self.began

    @property
    def recent_rate(self) -> float:
        """Return frames per second over the last two seconds."""
        if len(self.ends) < 2 or self.ends[-1] == self.ends[0]:
            return self.rate
        return (len(self.ends) - 1) / (self.ends[-1] - self.ends[0])

    @property
    def rate(self) -> float:
        """Return frames per second over all."""
        return self.frames / self.seconds if self.seconds else 0.0

    def latency(self, fraction: float) -> float:
        """Return within how many seconds this share of the last thousand answers came."""
        return float(np.quantile(self.latencies, fraction)) if self.latencies else 0.0


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A frame, and when it was there."""

    frame: Frame
    at_seconds: float


def played(
    frames: Frames,
    ask: Ask,
    *,
    live: bool,
    tally: Tally,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Shown]:
    """Yield frames with their answers, in order.

    A live source is never waited for: a file is played at its own speed then, and a frame for which
    there was no time is dropped as soon as a newer one is there. Otherwise all frames are answered.
    Frames that were read when something broke are answered before the error is raised.
    """
    live = live or frames.endless
    first = frames.read()
    if first is None:
        return
    if live:
        # Not to drop the first frames while the network warms up.
        ask([np.zeros_like(first)])
    slot: Slot[Arrival] = Slot(room=1 if live else FRAMES_AHEAD, drops=live)
    halt = threading.Event()
    tally.began = tally.clock()
    reader = threading.Thread(
        target=read_all, args=(frames, first, slot, halt, tally.clock), kwargs={"live": live}
    )
    reader.start()
    try:
        while not stop():
            arrival = slot.take(PATIENCE_SECONDS)
            if arrival is None:
                if slot.ended:
                    return
                continue
            answer = ask([arrival.frame.pixels])[0]
            tally.count(arrival.at_seconds, dropped=slot.dropped)
            yield Shown(frame=arrival.frame, answer=answer)
    finally:
        halt.set()
        slot.close()
        reader.join()
        tally.dropped = slot.dropped


def read_all(
    frames: Frames,
    first: Any,
    slot: Slot[Arrival],
    halt: threading.Event,
    clock: Callable[[], float],
    *,
    live: bool,
) -> None:
    """Put all frames into the slot, a live file's when they are due."""
    began = clock()
    timing = Timing(frames)
    pixels, number = first, 0
    try:
        while pixels is not None:
            seconds = clock() - began if frames.endless else timing.seconds()
            if live and not frames.endless:
                halt.wait(max(0.0, began + seconds - clock()))
            # A file that can't be decoded at its own speed is late already: that counts as latency.
            at_seconds = began + seconds if live else clock()
            frame = Frame(number=number, seconds=seconds, pixels=pixels)
            if not slot.put(Arrival(frame=frame, at_seconds=at_seconds)) or halt.is_set():
                return
            pixels, number = frames.read(), number + 1
    except BaseException as problem:
        # It is raised where the frames are taken.
        slot.close(problem)
    else:
        slot.close()


class Timing:
    """The times of a file's frames: they begin at 0 and always grow, whatever the file says."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.origin = frames.seconds() if not frames.endless else 0.0
        self.last: float | None = None

    def seconds(self) -> float:
        """Return the time of the frame that was read last; once a frame."""
        said = self.frames.seconds() - self.origin
        if self.last is not None and not said > self.last:
            said = self.last + 1 / self.frames.rate
        self.last = said
        return said
