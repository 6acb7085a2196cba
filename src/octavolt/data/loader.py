"""Batches, filled by threads while the network computes, or between its steps.

Threads, not processes: simplejpeg, OpenCV and Pillow release the interpreter while they work, so
two threads decode nearly twice as fast as one. There is nothing to fork, no shared memory to run
out of, and an error arrives as what it is.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType

import cv2

from octavolt.contract import Batch, Examples, Job, Places

GROUPS_A_THREAD = 4
"""So many shares of a batch for each thread: few enough to cost nothing, enough to even out."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A batch that is filled."""

    batch: Batch
    places: Places
    waited_seconds: float
    """How long the caller was kept waiting for it."""


@dataclass(frozen=True, kw_only=True)
class Flight:
    """A batch that is being filled."""

    batch: Batch
    places: Places
    groups: Sequence[Future[None]]


class Loader:
    """A pool of threads that fills batches in order. Leaving its `with` block ends the threads.

    With `ahead` batches under way while the caller works, none waits for the other: for GPUs. With
    0 a batch is filled by all threads while the caller waits: on a CPU, where decoding would only
    fight the network for the cores.

    Making one turns off OpenCV's own threads, in the whole process: it would start one a core
    within each of ours.
    """

    def __init__(
        self, *, threads: int, ahead: int, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        assert threads >= 1, threads
        assert ahead >= 0, ahead
        cv2.setNumThreads(0)
        self.threads = threads
        self.ahead = ahead
        self._clock = clock
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="octavolt-loader")

    def __enter__(self) -> "Loader":
        """Return the loader."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the threads, once those under way have finished their picture."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def batches(
        self, examples: Examples, places: Iterable[Places]
    ) -> Generator[Loaded, None, None]:
        """Yield the batch of each place, in order.

        The first error in that order is raised when its batch is due. When the generator ends, by
        itself, by an error or by `close`, nothing of it is under way any more.
        """
        flights: deque[Flight] = deque()
        try:
            for one in places:
                flights.append(self._started(examples, one))
                if len(flights) > self.ahead:
                    yield self._finished(flights)
            while flights:
                yield self._finished(flights)
        finally:
            for flight in flights:
                for group in flight.groups:
                    group.cancel()
            for flight in flights:
                wait(flight.groups)

    def _started(self, examples: Examples, places: Places) -> Flight:
        batch, jobs = examples.begin(places)
        size = -(-len(jobs) // (self.threads * GROUPS_A_THREAD)) or 1
        groups = [
            self._pool.submit(run, jobs[first : first + size])
            for first in range(0, len(jobs), size)
        ]
        return Flight(batch=batch, places=places, groups=groups)

    def _finished(self, flights: deque[Flight]) -> Loaded:
        began = self._clock()
        flight = flights[0]  # taken off once it is finished: until then it is to be cancelled
        for group in flight.groups:
            group.result()
        flights.popleft()
        return Loaded(
            batch=flight.batch, places=flight.places, waited_seconds=self._clock() - began
        )


def run(jobs: Sequence[Job]) -> None:
    """Do the jobs, in order."""
    for job in jobs:
        job()
