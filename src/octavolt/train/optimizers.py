"""Optimizers by name, fused where PyTorch has it."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from octavolt.contract import Recipe

Groups = list[dict[str, Any]]


def sgd(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return stochastic gradient descent with momentum."""
    return SGD(groups, lr=recipe.learning_rate, momentum=recipe.momentum, fused=True)


def adam(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return Adam: Kingma and Ba 2015."""
    return Adam(groups, lr=recipe.learning_rate, fused=True)


def adamw(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return AdamW: Loshchilov and Hutter 2019."""
    return AdamW(groups, lr=recipe.learning_rate, fused=True)


def rmsprop(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return RMSProp, with the epsilon of 1.0 and decay of 0.9 of Szegedy et al. 2016, section 8.

    PyTorch has no fused one.
    """
    return RMSprop(
        groups, lr=recipe.learning_rate, momentum=recipe.momentum, alpha=0.9, eps=1.0, foreach=True
    )


OPTIMIZERS: dict[str, Callable[[Groups, Recipe], Optimizer]] = {
    "sgd": sgd,
    "adam": adam,
    "adamw": adamw,
    "rmsprop": rmsprop,
}


def decays(parameter: nn.Parameter) -> bool:
    """Whether weight decay is meant for a parameter: norms and biases have one axis or none."""
    return parameter.ndim > 1


def build_optimizer(parameters: Iterable[nn.Parameter], recipe: Recipe) -> Optimizer:
    """Return the recipe's optimizer; weight decay spares norms and biases unless it says else."""
    all_parameters = list(parameters)
    if recipe.decay_norms_and_biases:
        groups: Groups = [{"params": all_parameters, "weight_decay": recipe.weight_decay}]
    else:
        groups = [
            {
                "params": [one for one in all_parameters if decays(one)],
                "weight_decay": recipe.weight_decay,
            },
            {"params": [one for one in all_parameters if not decays(one)], "weight_decay": 0.0},
        ]
    return OPTIMIZERS[recipe.optimizer](groups, recipe)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give all parameters the same learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(rate) if isinstance(group["lr"], torch.Tensor) else rate
