"""Optimizers by name, fused where PyTorch has it."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from octavolt.contract import Recipe
from octavolt.train.lamb import Lamb

Groups = list[dict[str, Any]]


def sgd(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return stochastic gradient descent with momentum."""
    optimizer = SGD(groups, lr=recipe.learning_rate, momentum=recipe.momentum, fused=True)
    if recipe.momentum:
        # Zeros are the same as none, but the fused kernel fails where only some parameters have
        # momentum yet, as when a body thaws.
        for parameter in (one for group in optimizer.param_groups for one in group["params"]):
            optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer


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


def lamb(groups: Groups, recipe: Recipe) -> Optimizer:
    """Return LAMB: You et al. 2020, for batches of thousands."""
    return Lamb(groups, lr=recipe.learning_rate)


OPTIMIZERS: dict[str, Callable[[Groups, Recipe], Optimizer]] = {
    "sgd": sgd,
    "adam": adam,
    "adamw": adamw,
    "rmsprop": rmsprop,
    "lamb": lamb,
}


POSITIONS = ("position_embeddings.weight", "wpe.weight")
"""Endings of the names of learned positions, on which weight decay is not meant either."""


def decays(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay is meant for a parameter: norms and biases have one axis or none."""
    return parameter.ndim > 1 and not name.endswith(POSITIONS)


def build_optimizer(named: Iterable[tuple[str, nn.Parameter]], recipe: Recipe) -> Optimizer:
    """Return the recipe's optimizer; weight decay spares norms, biases and positions unless told.

    A tensor that is tied to another comes once, under the first of its names.
    """
    parameters = list(named)
    if recipe.decay_norms_and_biases:
        every = [one for _, one in parameters]
        groups: Groups = [{"params": every, "weight_decay": recipe.weight_decay}]
    else:
        decayed = [one for name, one in parameters if decays(name, one)]
        spared = [one for name, one in parameters if not decays(name, one)]
        groups = [
            {"params": decayed, "weight_decay": recipe.weight_decay},
            {"params": spared, "weight_decay": 0.0},
        ]
    return OPTIMIZERS[recipe.optimizer](groups, recipe)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Give all parameters the same learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(rate) if isinstance(group["lr"], torch.Tensor) else rate
