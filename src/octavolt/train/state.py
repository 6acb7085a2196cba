"""What training changes, and nothing else."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from octavolt.contract import Network

AUTOCAST_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(kw_only=True)
class TrainState:
    """A network in training."""

    network: Network
    optimizer: Optimizer
    scaler: GradScaler
    precision: str
    device: torch.device
    ema_decay: float = 0.0
    ema: dict[str, Tensor] | None = None
    """Running means of the floating-point tensors of the body's state dict."""
    steps_done: int = 0
    loss_names: tuple[str, ...] = ()

    def autocast(self) -> torch.autocast:
        """Return the context in which losses are computed."""
        return torch.autocast(
            self.device.type,
            AUTOCAST_TYPES.get(self.precision, torch.bfloat16),
            enabled=self.precision in AUTOCAST_TYPES,
        )


def floating(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the floating-point tensors of a state dict."""
    return {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}


def start_ema(state: TrainState) -> None:
    """Begin the running means at the weights as they are."""
    tensors = floating(state.network.body.state_dict())
    state.ema = {name: tensor.clone() for name, tensor in tensors.items()}


@torch.no_grad()
def update_ema(state: TrainState) -> None:
    """Move the running means towards the weights.

    Early on the decay is (1 + steps) / (10 + steps), so that the start is soon forgotten: as in
    TensorFlow's ExponentialMovingAverage.
    """
    if state.ema is None:
        return
    decay = min(state.ema_decay, (1 + state.steps_done) / (10 + state.steps_done))
    current = floating(state.network.body.state_dict())
    torch._foreach_lerp_([*state.ema.values()], [*current.values()], 1 - decay)


@contextmanager
def averaged_weights(state: TrainState) -> Iterator[None]:
    """Put the running means in the weights' place for the time of a block, if there are any."""
    if state.ema is None:
        yield
        return
    current = floating(state.network.body.state_dict())
    kept = [tensor.clone() for tensor in current.values()]
    with torch.no_grad():
        torch._foreach_copy_([*current.values()], [*state.ema.values()])
    try:
        yield
    finally:
        with torch.no_grad():
            torch._foreach_copy_([*current.values()], kept)


def floating_buffers(network: nn.Module) -> list[Tensor]:
    """Return the running statistics of norms."""
    return [buffer for buffer in network.buffers() if buffer.is_floating_point()]


def freeze_body(network: Network, *, frozen: bool) -> None:
    """Make all but the head constant, or trainable again."""
    heads = tuple(network.head())
    for name, parameter in network.body.named_parameters():
        parameter.requires_grad_(not frozen or name.startswith(heads))


def train_mode(network: Network, *, frozen: bool) -> None:
    """Set the network to training; the norms of a frozen body keep their running statistics."""
    network.train()
    if frozen:
        for module in network.body.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
