from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from octavolt.errors import OctavoltError
from octavolt.video import Frames, Tally, played
from octavolt.video.played import Timing

STOPPED = OctavoltError("it has stopped")


class Numbered(Frames):
    """Frames whose pixels all are their number; endless ones break off at the end."""

    name = "a test"
    rate = 10.0

    def __init__(self, times: Sequence[float], *, endless: bool = False) -> None:
        self.times = times
        self.endless = endless
        self.frame_count = None
        self.done = 0
        self.closed = False

    def read(self) -> NDArray[np.uint8] | None:
        """Return the next picture."""
        if self.done == len(self.times):
            if self.endless:
                raise STOPPED
            return None
        self.done += 1
        return np.full((2, 2, 3), self.done - 1, np.uint8)

    def seconds(self) -> float:
        """Return the time of the last picture."""
        return self.times[self.done - 1]

    def close(self) -> None:
        """Note it."""
        self.closed = True


def answers(pictures: Sequence[NDArray[np.uint8]]) -> list[dict[str, Any]]:
    return [{"boxes": [], "value": int(one[0, 0, 0])} for one in pictures]


def tenths(count: int) -> list[float]:
    return [number / 10 for number in range(count)]


def test_all_frames_of_a_file_are_answered_in_order() -> None:
    tally = Tally()
    shown = [*played(Numbered(tenths(30)), answers, live=False, tally=tally)]
    assert [one.frame.number for one in shown] == [*range(30)]
    assert [one.answer["value"] for one in shown] == [*range(30)]
    assert [one.frame.seconds for one in shown] == pytest.approx(tenths(30))
    assert (tally.frames, tally.dropped) == (30, 0)


def test_empty_source_has_no_frames() -> None:
    assert [*played(Numbered([]), answers, live=False, tally=Tally())] == []


def test_live_file_ends_with_its_last_frame_and_counts_what_it_dropped() -> None:
    # All frames are due at once, so that it doesn't take long.
    tally = Tally()
    times = [number * 1e-6 for number in range(200)]
    shown = [*played(Numbered(times), answers, live=True, tally=tally)]
    numbers = [one.frame.number for one in shown]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 199
    assert all(one.answer["value"] == one.frame.number for one in shown)
    assert tally.frames + tally.dropped == 200


def test_camera_that_stops_has_its_last_frame_answered_first() -> None:
    numbers: list[int] = []
    frames = Numbered(tenths(5), endless=True)
    shown = played(frames, answers, live=False, tally=Tally())
    with pytest.raises(OctavoltError, match="it has stopped"):
        numbers.extend(one.frame.number for one in shown)
    assert numbers[-1] == 4


def test_network_that_fails_ends_the_reader_too() -> None:
    def broken(pictures: Sequence[Any]) -> list[dict[str, Any]]:
        raise ValueError("made by a test")

    with pytest.raises(ValueError, match="made by a test"):
        [*played(Numbered(tenths(500)), broken, live=False, tally=Tally())]


def test_wish_to_stop_ends_it_after_the_frame() -> None:
    numbers: list[int] = []
    shown = played(
        Numbered(tenths(500)), answers, live=False, tally=Tally(), stop=lambda: len(numbers) == 3
    )
    for one in shown:
        numbers.append(one.frame.number)
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ([0.0, 0.1, 0.2], [0.0, 0.1, 0.2]),
        ([5.0, 5.25, 5.5], [0.0, 0.25, 0.5]),
        ([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]),
        ([0.0, 0.4, 0.3, 0.6], [0.0, 0.4, 0.5, 0.6]),
        ([0.0, float("nan"), 0.2], [0.0, 0.1, 0.2]),
    ],
    ids=["plain", "later", "none", "backwards", "nan"],
)
def test_times_begin_at_0_and_grow(said: list[float], meant: list[float]) -> None:
    frames = Numbered(said)
    frames.read()
    timing = Timing(frames)
    found = []
    for _ in said:
        found.append(timing.seconds())
        frames.read()
    assert found == pytest.approx(meant)


def test_rates_and_latencies_by_hand() -> None:
    now = 0.0
    tally = Tally(clock=lambda: now)
    tally.began = 0.0
    for number in range(1, 11):
        now = number * 0.5
        tally.count(now - 0.1 * number, dropped=number)
    assert tally.rate == pytest.approx(2.0)
    assert tally.recent_rate == pytest.approx(2.0)
    assert tally.latency(0.5) == pytest.approx(0.55)
    assert tally.latency(1.0) == pytest.approx(1.0)
    assert tally.dropped == 10
    now = 100.0
    tally.count(99.0, dropped=10)
    assert tally.recent_rate == pytest.approx(11 / 100)
