"""LAMB: Adam whose step on each tensor is as large as a share of the tensor itself."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class Lamb(Optimizer):
    """You et al. 2020, algorithm 2, with the bias correction of Adam.

    Tensors without weight decay (norms, biases) take Adam's step, as in the authors' own code.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step on every parameter that has a gradient."""
        assert closure is None, "losses are computed by the training loop"
        for group in self.param_groups:
            parameters = [one for one in group["params"] if one.grad is not None]
            if parameters:
                self._step_group(group, parameters)

    def _step_group(self, group: dict[str, Any], parameters: list[Tensor]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros((), dtype=torch.float32),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        states = [self.state[one] for one in parameters]
        gradients = [one.grad for one in parameters if one.grad is not None]
        first = [one["exp_avg"] for one in states]
        second = [one["exp_avg_sq"] for one in states]
        for one in states:
            one["step"] += 1
        counts = [float(one["step"]) for one in states]  # of each: some thaw later than others
        beta1, beta2 = group["betas"]
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        scale = torch._foreach_div(second, [1 - beta2**done for done in counts])
        torch._foreach_sqrt_(scale)
        torch._foreach_add_(scale, group["eps"])
        steps = torch._foreach_div(first, [1 - beta1**done for done in counts])
        torch._foreach_div_(steps, scale)
        if group["weight_decay"]:
            torch._foreach_add_(steps, parameters, alpha=group["weight_decay"])
            sizes = torch._foreach_norm(parameters)
            strides = torch._foreach_norm(steps)
            # Where either is zero, the step is taken as it is: the paper's phi leaves this open.
            ratios = [
                torch.where((size > 0) & (stride > 0), size / stride, torch.ones_like(size))
                for size, stride in zip(sizes, strides, strict=True)
            ]
            torch._foreach_mul_(steps, ratios)
        torch._foreach_add_(parameters, steps, alpha=-float(group["lr"]))
