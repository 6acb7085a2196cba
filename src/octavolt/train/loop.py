"""The training loop: one generator. What happens between steps is the caller's `for` body."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, get_total_norm

from octavolt import ranks
from octavolt.contract import Batch, Places
from octavolt.errors import OctavoltError
from octavolt.train.optimizers import set_learning_rate
from octavolt.train.state import TrainState, floating_buffers, update_ema
from octavolt.train.watch import stop_if_wrong

MicroBatch = tuple[Places, Batch]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One update of the parameters."""

    number: int
    """Counted from 1 over the whole run."""
    losses: dict[str, float]
    """Means over the samples of all ranks."""
    gradient_norm: float
    learning_rate: float
    loss_scale: float | None
    applied: bool
    """False if fp16 overflowed, so that the loss scale fell and the update was left out."""
    samples: float
    """Of all ranks."""


class StepOutOfMemoryError(Exception):
    """A rank ran out of memory; nothing of the step has happened, on any rank."""


def train_steps(
    state: TrainState,
    updates: Iterable[Sequence[MicroBatch]],
    learning_rate: Callable[[int], float],
    *,
    max_gradient_norm: float | None = None,
    name: Callable[[int], str] = str,
) -> Iterator[Step]:
    """Yield after each update of the parameters, which takes one element of `updates`.

    An element is this rank's micro-batches; it may be empty. Losses are weighed by `Batch.weight`
    over all micro-batches and ranks, so that a step equals that of one batch with all samples.
    `name` tells a sample's name, for the message when a loss is not finite.
    """
    for micro_batches in updates:
        set_learning_rate(state.optimizer, learning_rate(state.steps_done))
        (weight,) = ranks.total([sum(batch.weight for _, batch in micro_batches)])
        losses = accumulate_gradients(state, micro_batches, weight)
        exchange(state, losses)
        norm = unscaled_norm(state, max_gradient_norm)
        # The one place where the host waits for the device: a wrong step must not be taken.
        *values, norm_value = torch.cat([losses, norm.reshape(1).float()]).tolist()
        stop_if_wrong(
            state,
            micro_batches,
            loss=sum(values),
            norm=norm_value,
            nothing_asked=weight == 0,
            name=name,
        )
        scale = state.scaler.get_scale() if state.scaler.is_enabled() else None
        state.scaler.step(state.optimizer)
        state.scaler.update()
        state.optimizer.zero_grad()
        state.steps_done += 1
        applied = math.isfinite(norm_value)
        if applied:
            update_ema(state)
        yield Step(
            number=state.steps_done,
            losses=dict(zip(state.loss_names, values, strict=True)),
            gradient_norm=norm_value,
            learning_rate=learning_rate(state.steps_done - 1),
            loss_scale=scale,
            applied=applied,
            samples=weight,
        )


def accumulate_gradients(
    state: TrainState, micro_batches: Sequence[MicroBatch], weight: float
) -> Tensor:
    """Add up this rank's gradients and return its share of the losses, in `loss_names`' order.

    If any rank runs out of memory, all put everything back and raise `StepOutOfMemoryError`.
    """
    buffers = floating_buffers(state.network)
    kept = [buffer.clone() for buffer in buffers]
    sums: dict[str, Tensor] = {}
    ran_out = False
    try:
        for places, batch in micro_batches:
            for loss_name, share in one_pass(state, places, batch, weight).items():
                sums[loss_name] = sums[loss_name] + share if loss_name in sums else share
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        ran_out = True
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise OctavoltError(
            "A norm over the batch can't be taken of a single sample on a map of one pixel. Use a "
            "--batch and --micro-batch of at least 2, or a larger --image-size."
        ) from error
    if ranks.total([float(ran_out)])[0] > 0:
        state.optimizer.zero_grad()
        with torch.no_grad():
            for buffer, value in zip(buffers, kept, strict=True):
                buffer.copy_(value)
        if state.device.type == "cuda":
            torch.cuda.empty_cache()
        raise StepOutOfMemoryError
    if not state.loss_names:
        known = {key for names in ranks.gathered([*sums]) for key in names}
        state.loss_names = tuple(sorted(known))
    zero = torch.zeros((), device=state.device)
    return torch.stack([sums.get(loss_name, zero) for loss_name in state.loss_names])


def one_pass(state: TrainState, places: Places, batch: Batch, weight: float) -> dict[str, Tensor]:
    """Run one micro-batch forward and backward; return its shares of the losses."""
    torch.manual_seed(places.torch_seed())
    with state.autocast():
        losses = state.network.losses(batch.to(state.device))
    # Where no token of a whole update is asked for, nothing is learned.
    part = batch.weight / weight if weight else 0.0
    shares = {name: loss * part for name, loss in losses.items()}
    state.scaler.scale(torch.stack([*shares.values()]).sum()).backward()
    return {name: share.detach() for name, share in shares.items()}


def exchange(state: TrainState, losses: Tensor) -> None:
    """Add up gradients and losses over the ranks, and average the running statistics of norms."""
    parameters = [one for one in state.network.parameters() if one.requires_grad]
    for parameter in parameters:
        if parameter.grad is None:  # no sample on this rank, or a part that is not in use
            parameter.grad = torch.zeros_like(parameter)
    if not ranks.is_joined():
        return
    ranks.add_up_all([one.grad for one in parameters if one.grad is not None])
    ranks.add_up(losses)
    ranks.add_up_all(floating_buffers(state.network), divide_by=ranks.count())


def unscaled_norm(state: TrainState, max_gradient_norm: float | None) -> Tensor:
    """Return the norm of the gradients, which are then clipped if they are to be."""
    state.scaler.unscale_(state.optimizer)
    parameters = [one for one in state.network.parameters() if one.requires_grad]
    if max_gradient_norm is not None:
        return clip_grad_norm_(parameters, max_gradient_norm)
    # Clipping to infinity would multiply every gradient by one.
    return get_total_norm([one.grad for one in parameters if one.grad is not None])


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether an error says that memory is full: the CPU's allocator has no type of its own."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
