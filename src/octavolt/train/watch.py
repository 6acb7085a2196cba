"""Steps that must not be taken: which step, module and samples did it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from octavolt import ranks
from octavolt.contract import Batch, Places
from octavolt.errors import OctavoltError
from octavolt.train.state import TrainState

SMALLEST_SCALE = 1.0
"""Below, fp16 gradients overflow without any scaling at all."""
MOST_NAMES = 4


class WrongStepError(OctavoltError):
    """A loss or gradient with which no step may be taken."""


def stop_if_wrong(
    state: TrainState,
    micro_batches: Sequence[tuple[Places, Batch]],
    *,
    loss: float,
    norm: float,
    name: Callable[[int], str],
    nothing_asked: bool = False,
) -> None:
    """Raise `WrongStepError` on all ranks alike if a step must not be taken.

    With loss scaling a norm that is not finite is in order: the scale falls, the step is left out.
    """
    scaled = state.scaler.is_enabled()
    if not math.isfinite(loss):
        what = f"the loss is {loss}"
    elif not math.isfinite(norm) and not scaled:
        what = f"the norm of the gradients is {norm} though the loss is {loss:.4g}"
    elif scaled and state.scaler.get_scale() < SMALLEST_SCALE:
        what = f"the loss scale fell to {state.scaler.get_scale():.3g}: fp16 overflows at any scale"
    elif norm == 0 and not nothing_asked:
        what = "every gradient is exactly zero"
    else:
        return
    found = [one for one in ranks.gathered(origin(state, micro_batches, name)) if one]
    where = f" {found[0]}" if found else ""
    raise WrongStepError(
        f"Step {state.steps_done + 1}: {what}.{where} Try a tenth of the --learning-rate, "
        "--clip 1, or --precision fp32."
    )


def origin(
    state: TrainState,
    micro_batches: Sequence[tuple[Places, Batch]],
    name: Callable[[int], str],
) -> str | None:
    """Return a sentence on the first module whose output is not finite, found by a second run."""
    for places, batch in micro_batches:
        found = first_not_finite(state, places, batch)
        if found is None:
            continue
        names = [name(int(index)) for index in places.indices[:MOST_NAMES]]
        more = "" if len(places.indices) <= MOST_NAMES else ", ..."
        return (
            f"First not finite: {found}, in epoch {places.epoch}, with {len(places.indices)} "
            f"samples from place {places.first} ({', '.join(names)}{more})."
        )
    return None


def first_not_finite(state: TrainState, places: Places, batch: Batch) -> str | None:
    """Return the name of the first module, or else parameter's gradient, that is not finite."""
    found: list[str] = []

    def look(module_name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, inputs: Any, output: Any) -> None:
            if not found and isinstance(output, Tensor) and not bool(output.isfinite().all()):
                largest = max(
                    (float(one.abs().max()) for one in inputs if isinstance(one, Tensor)),
                    default=math.nan,
                )
                found.append(f"the output of {module_name} (largest input {largest:.4g})")

        return hook

    hooks = [
        module.register_forward_hook(look(module_name))
        for module_name, module in state.network.named_modules()
        if module_name and not any(module.children())
    ]
    try:
        torch.manual_seed(places.torch_seed())
        state.optimizer.zero_grad()
        ready = batch.to(state.device)
        with state.autocast():
            total = torch.stack([*state.network.losses(ready).values()]).sum()
        if found or not bool(total.isfinite()):
            return found[0] if found else "the loss itself"
        total.backward()
    finally:
        for hook in hooks:
            hook.remove()
    for parameter_name, parameter in reversed([*state.network.named_parameters()]):
        if parameter.grad is not None and not bool(parameter.grad.isfinite().all()):
            return f"the gradient of {parameter_name}"
    return None
