from dataclasses import replace

import pytest

from octavolt.networks.recipes import SMALL_DATA
from octavolt.train.schedules import SCHEDULES, learning_rate

RECIPE = replace(SMALL_DATA, learning_rate=1.0, epochs=10, warmup_epochs=0.0)


@pytest.mark.parametrize(
    ("schedule", "epochs_done", "expected"),
    [
        ("constant", 7, 1.0),
        ("cosine", 0, 1.0),
        ("cosine", 5, 0.5),
        ("step", 3, 1.0),
        ("step", 4, 0.1),
        ("step", 8, 0.01),
        ("linear", 0, 1.0),
        ("linear", 5, 0.5),
        ("linear", 9, 0.1),
    ],
)
def test_shape_by_hand(schedule: str, epochs_done: int, expected: float) -> None:
    recipe = replace(RECIPE, schedule=schedule, step_epochs=4)
    assert learning_rate(recipe, 100 * epochs_done, 100) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_climbs_to_the_peak_and_never_above(schedule: str) -> None:
    recipe = replace(RECIPE, schedule=schedule, warmup_epochs=2.0, step_epochs=4)
    rates = [learning_rate(recipe, done, 10) for done in range(100)]
    assert rates[:20] == sorted(rates[:20])
    assert max(rates) == pytest.approx(1.0)
    assert rates[20:] == sorted(rates[20:], reverse=True)


def test_warm_up_takes_at_most_a_third_of_a_short_run() -> None:
    recipe = replace(RECIPE, epochs=3, warmup_epochs=3.0, schedule="constant")
    assert learning_rate(recipe, 10, 10) == 1.0


def test_linear_falls_from_the_end_of_the_warm_up() -> None:
    """Of 10 epochs 2 climb; after 6 half of the other 8 is done."""
    recipe = replace(RECIPE, schedule="linear", warmup_epochs=2.0)
    assert learning_rate(recipe, 600, 100) == pytest.approx(0.5)
    assert learning_rate(recipe, 999, 100) == pytest.approx(1 / 800)


def test_inverse_square_root_by_hand() -> None:
    """Vaswani et al. 2017, equation 3: with a peak at step w, step s has the root of w / s."""
    recipe = replace(RECIPE, schedule="inverse-sqrt", warmup_epochs=1.0)
    for step in (1, 25, 99):
        assert learning_rate(recipe, step - 1, 100) == pytest.approx(step / 100)
    for step, expected in ((100, 1.0), (400, 0.5), (900, 1 / 3)):
        assert learning_rate(recipe, step - 1, 100) == pytest.approx(expected)


def test_inverse_square_root_without_warm_up_falls_from_the_first_step() -> None:
    recipe = replace(RECIPE, schedule="inverse-sqrt")
    rates = [learning_rate(recipe, step - 1, 100) for step in (1, 4, 100)]
    assert rates == pytest.approx([1.0, 0.5, 0.1])


@pytest.mark.parametrize("schedule", ["cosine", "one-cycle"])
def test_ends_near_nothing(schedule: str) -> None:
    recipe = replace(RECIPE, schedule=schedule)
    assert 0 < learning_rate(recipe, 999, 100) < 2e-4
