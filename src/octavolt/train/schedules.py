"""Learning rates as pure functions of the step."""

from collections.abc import Callable
from math import cos, pi, sqrt

from octavolt.contract import Recipe

Shape = Callable[[float, float, Recipe], float]
"""Takes the epochs done and in all, after the warm-up; returns a factor of the learning rate."""

ONE_CYCLE_START = 1 / 25
ONE_CYCLE_END = 1e-4
"""Of the peak: Smith and Topin 2019 name the shape; the values are those of PyTorch's scheduler."""


def constant(_done: float, _total: float, _recipe: Recipe) -> float:
    """Return 1."""
    return 1.0


def step(done: float, _total: float, recipe: Recipe) -> float:
    """Return the power of `step_factor` for the falls so far."""
    # The small amount keeps 30 epochs that add up to 29.999999 on the right side of the fall.
    return recipe.step_factor ** int((done + 1e-9) / recipe.step_epochs)


def cosine(done: float, total: float, _recipe: Recipe) -> float:
    """Return a half wave from 1 to 0: Loshchilov and Hutter 2017, equation 5 without restarts."""
    return 0.5 * (1 + cos(pi * min(1.0, done / total)))


def one_cycle(done: float, total: float, _recipe: Recipe) -> float:
    """Return a half wave from 1 to `ONE_CYCLE_END`."""
    return ONE_CYCLE_END + (1 - ONE_CYCLE_END) * 0.5 * (1 + cos(pi * min(1.0, done / total)))


def linear(done: float, total: float, _recipe: Recipe) -> float:
    """Return a straight line from 1 to 0: Devlin et al. 2019, appendix A.2."""
    return max(0.0, 1 - done / total)


SCHEDULES: dict[str, Shape] = {
    "constant": constant,
    "step": step,
    "cosine": cosine,
    "one-cycle": one_cycle,
    "linear": linear,
    "inverse-sqrt": constant,  # of the updates from the first on, see `learning_rate`
}


def learning_rate(recipe: Recipe, updates_done: int, updates_an_epoch: int) -> float:
    """Return the learning rate of the update that comes after `updates_done` others.

    It climbs in a straight line over `warmup_epochs`, but at most over a third of the run, from
    nearly nothing (Goyal et al. 2017, section 2.2), or from 1/25 with one-cycle.
    """
    done = updates_done / updates_an_epoch
    warmup = min(recipe.warmup_epochs, recipe.epochs / 3)
    if done < warmup:
        climbed = (updates_done + 1) / (warmup * updates_an_epoch)
        start = ONE_CYCLE_START if recipe.schedule == "one-cycle" else 0.0
        return recipe.learning_rate * min(1.0, start + (1 - start) * climbed)
    if recipe.schedule == "step":  # falls are counted from the first epoch, warm-up or not
        return recipe.learning_rate * step(done, recipe.epochs, recipe)
    if recipe.schedule == "inverse-sqrt":
        # Vaswani et al. 2017, section 5.3: from the end of the warm-up, or of the first update, on.
        whole = max(warmup * updates_an_epoch, 1.0)
        return recipe.learning_rate * min(1.0, sqrt(whole / (updates_done + 1)))
    shape = SCHEDULES[recipe.schedule]
    return recipe.learning_rate * shape(done - warmup, recipe.epochs - warmup, recipe)
