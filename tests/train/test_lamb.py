"""LAMB against the paper's algorithm, written out number by number."""

from copy import deepcopy
from dataclasses import replace
from math import sqrt

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from octavolt.networks.recipes import SMALL_DATA
from octavolt.train.lamb import Lamb
from octavolt.train.optimizers import build_optimizer

RATE, BETA1, BETA2, EPSILON, DECAY = 0.1, 0.9, 0.999, 1e-6, 0.01
STARTS = ([0.5, -1.0, 2.0, 0.25], [1.0, -0.5])
GRADIENTS = (
    ([0.1, 0.2, -0.3, 0.4], [1.0, -2.0]),
    ([-0.2, 0.1, 0.0, 0.3], [0.5, 0.5]),
    ([0.3, -0.1, 0.2, -0.4], [-1.0, 0.1]),
)
"""Of three steps, for a tensor with weight decay and one without."""


def by_hand(start: list[float], gradients: list[list[float]], decay: float) -> list[float]:
    """You et al. 2020, algorithm 2, where phi is the identity; without decay Adam's step."""
    x = [*start]
    m, v = [0.0] * len(x), [0.0] * len(x)
    for step, gradient in enumerate(gradients, start=1):
        m = [BETA1 * one + (1 - BETA1) * g for one, g in zip(m, gradient, strict=True)]
        v = [BETA2 * one + (1 - BETA2) * g * g for one, g in zip(v, gradient, strict=True)]
        r = [
            (one / (1 - BETA1**step)) / (sqrt(two / (1 - BETA2**step)) + EPSILON)
            for one, two in zip(m, v, strict=True)
        ]
        u = [one + decay * weight for one, weight in zip(r, x, strict=True)]
        ratio = norm(x) / norm(u) if decay else 1.0
        x = [weight - RATE * ratio * one for weight, one in zip(x, u, strict=True)]
    return x


def norm(numbers: list[float]) -> float:
    return sqrt(sum(one * one for one in numbers))


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(torch.tensor(start)) for start in STARTS]


def optimizer(of: list[nn.Parameter]) -> Lamb:
    decays = (DECAY, 0.0)
    groups = [
        {"params": [one], "weight_decay": decay} for one, decay in zip(of, decays, strict=True)
    ]
    return Lamb(groups, lr=RATE)


def step(lamb: Lamb, of: list[nn.Parameter], number: int) -> None:
    for one, gradient in zip(of, GRADIENTS[number], strict=True):
        one.grad = torch.tensor(gradient)
    lamb.step()


def test_three_steps_are_those_of_the_paper() -> None:
    ours = parameters()
    lamb = optimizer(ours)
    for number in range(3):
        step(lamb, ours, number)
    for place, decay in enumerate((DECAY, 0.0)):
        expected = by_hand(STARTS[place], [one[place] for one in GRADIENTS], decay)
        # fp32 against fp64, over three steps.
        assert ours[place].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_step_is_as_long_as_the_rate_says_of_the_tensor() -> None:
    ours = parameters()
    before = ours[0].detach().clone()
    step(optimizer(ours), ours, 0)
    moved = torch.linalg.vector_norm(ours[0].detach() - before)
    assert float(moved / torch.linalg.vector_norm(before)) == pytest.approx(RATE, rel=1e-5)


def test_a_tensor_of_zeros_moves_all_the_same() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    lamb = Lamb([{"params": [parameter], "weight_decay": DECAY}], lr=RATE)
    parameter.grad = torch.tensor([1.0, -1.0])
    lamb.step()
    assert parameter.tolist() == pytest.approx([-RATE, RATE], rel=1e-5)


def test_state_that_was_saved_goes_on_to_the_same_bits() -> None:
    whole, parts = parameters(), parameters()
    lamb, first = optimizer(whole), optimizer(parts)
    for number in range(3):
        step(lamb, whole, number)
    step(first, parts, 0)
    saved = deepcopy(first.state_dict())
    second = optimizer(parts)
    second.load_state_dict(saved)
    for number in (1, 2):
        step(second, parts, number)
    assert_close(parts, whole, rtol=0, atol=0)


def test_parameters_that_thaw_later_start_their_own_count() -> None:
    """The corrections of a tensor are for its own steps, not for those of its group."""
    early, late = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    lamb = Lamb([{"params": [late, early], "weight_decay": 0.0}], lr=RATE)
    early.grad = torch.tensor([1.0, 1.0])
    lamb.step()
    late.grad = torch.tensor([1.0, 1.0])
    lamb.step()
    # With equal gradients every corrected step of Adam is one rate long.
    assert late.tolist() == pytest.approx([1 - RATE] * 2, rel=1e-5)
    assert early.tolist() == pytest.approx([1 - 2 * RATE] * 2, rel=1e-5)


def test_recipes_reach_it() -> None:
    layer = nn.Linear(3, 2)
    recipe = replace(SMALL_DATA, optimizer="lamb", learning_rate=0.5, weight_decay=0.3)
    made = build_optimizer(layer.named_parameters(), recipe)
    assert isinstance(made, Lamb)
    assert [group["weight_decay"] for group in made.param_groups] == [0.3, 0.0]
    assert [group["lr"] for group in made.param_groups] == [0.5, 0.5]
