import threading

import pytest

from octavolt.video.slot import Slot


def live(frame_seconds: float, work_seconds: float, frames: int) -> tuple[list[int], list[float]]:
    """Play frames by a clock of our own; return which are answered, and how old each then is."""
    slot: Slot[int] = Slot(drops=True)
    answered: list[int] = []
    ages: list[float] = []
    free_at = 0.0

    def work(until: float) -> None:
        """Answer what waits, as long as the network is free before that time."""
        nonlocal free_at
        while slot.waiting:
            came = slot.waiting[0] * frame_seconds
            begins = max(free_at, came)
            if begins >= until:
                return
            number = slot.take()
            assert number is not None
            free_at = begins + work_seconds
            answered.append(number)
            ages.append(free_at - came)

    for number in range(frames):
        work(until=number * frame_seconds)
        slot.put(number)
    slot.close()
    work(until=float("inf"))
    assert slot.ended
    assert slot.dropped == frames - len(answered)
    return answered, ages


def test_a_network_that_is_quick_enough_answers_all() -> None:
    answered, ages = live(0.25, 0.125, frames=40)
    assert answered == [*range(40)]
    assert set(ages) == {0.125}


@pytest.mark.parametrize("work_seconds", [0.3125, 0.5, 1.0, 2.75])
def test_slow_network_drops_frames_and_its_delay_does_not_grow(work_seconds: float) -> None:
    answered, ages = live(0.25, work_seconds, frames=400)
    assert len(answered) < 400
    assert answered == sorted(set(answered))
    # The newest frame came at most one frame ago; the last one may wait for the one before.
    assert max(ages[:-1]) <= 0.25 + work_seconds
    assert ages[-1] <= 2 * work_seconds


@pytest.mark.parametrize("work_seconds", [0.125, 0.3125, 1.0, 2.75])
@pytest.mark.parametrize("frames", [1, 2, 7, 30])
def test_first_and_last_frame_are_always_answered(work_seconds: float, frames: int) -> None:
    answered, _ = live(0.25, work_seconds, frames)
    assert answered[0] == 0
    assert answered[-1] == frames - 1


def test_only_the_newest_frame_waits() -> None:
    slot: Slot[str] = Slot(drops=True)
    for frame in "abc":
        assert slot.put(frame)
    assert (slot.take(), slot.dropped) == ("c", 2)
    assert slot.take(0.0) is None
    assert not slot.ended


def test_without_drops_order_is_kept_and_the_reader_is_at_most_two_ahead() -> None:
    slot: Slot[int] = Slot(room=2, drops=False)

    def read() -> None:
        for number in range(50):
            slot.put(number)
        slot.close()

    reader = threading.Thread(target=read)
    reader.start()
    taken = []
    while (number := slot.take()) is not None:
        assert len(slot.waiting) <= 2
        taken.append(number)
    reader.join()
    assert (taken, slot.dropped) == ([*range(50)], 0)


def test_what_waits_is_taken_before_a_problem_is_raised() -> None:
    slot: Slot[int] = Slot(drops=True)
    slot.put(1)
    slot.close(OSError("gone"))
    assert slot.take() == 1
    with pytest.raises(OSError, match="gone"):
        slot.take()


def test_who_puts_is_let_go_when_nobody_takes_any_more() -> None:
    slot: Slot[int] = Slot(drops=False)
    slot.put(1)
    answers: list[bool] = []
    reader = threading.Thread(target=lambda: answers.append(slot.put(2)))
    reader.start()
    slot.close()
    reader.join()
    assert answers == [False]
