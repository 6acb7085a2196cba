"""Checkpoints: one safetensors file each, whose name holds its checksum.

It is written aside, flushed and moved into its place, so that a name that can be seen is a whole
file; what a disk did to it afterwards the checksum tells.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim import Optimizer

from octavolt.errors import OctavoltError
from octavolt.runs import SCHEMA
from octavolt.train.state import TrainState

KEPT = 2
NAME = re.compile(r"step-(\d{9})-([0-9a-f]{16})\.safetensors")
DIGITS = 16
PIECE_BYTES = 2**22


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run stands, beside its tensors."""

    epoch: int
    """The epoch that the next step belongs to, from 1."""
    update: int
    """How many steps of that epoch are done."""
    steps_done: int
    seconds: float
    """Of training so far."""
    micro_batch_size: int
    epoch_loss: float = 0.0
    """Sum over the samples of the epoch so far."""
    epoch_samples: float = 0.0
    window_losses: Mapping[str, float] = field(default_factory=dict)
    """Sums over the steps since the last logged one."""
    window_steps: int = 0
    best: tuple[float, float] | None = None
    """Of the best epoch so far: the primary metric, and the negative of what decides ties."""
    best_epoch: int | None = None
    finished: bool = False


def tensors_of(state: TrainState) -> dict[str, Tensor]:
    """Return all tensors of a state by name; numbers of the optimizer are among them."""
    parts: dict[str, Mapping[str, Tensor]] = {"network": state.network.body.state_dict()}
    if state.ema is not None:
        parts["ema"] = state.ema
    for index, values in state.optimizer.state_dict()["state"].items():
        parts[f"optimizer.{index}"] = {
            key: torch.as_tensor(value) for key, value in values.items() if value is not None
        }
    return {
        f"{part}/{name}": tensor.detach().cpu().contiguous()
        for part, tensors in parts.items()
        for name, tensor in tensors.items()
    }


def save(folder: Path, state: TrainState, progress: Progress) -> Path:
    """Write a checkpoint and remove all but the newest two."""
    aside = folder / f".{os.getpid()}.part"
    meta = {
        "schema": SCHEMA,
        "progress": asdict(progress),
        "scaler": state.scaler.state_dict(),
        "loss_names": state.loss_names,
    }
    try:
        folder.mkdir(exist_ok=True)
        save_file(tensors_of(state), aside, metadata={"octavolt": json.dumps(meta)})
        digest = flush_and_digest(aside)
        path = folder / f"step-{progress.steps_done:09d}-{digest}.safetensors"
        aside.replace(path)
        flush_folder(folder)
    except (OSError, SafetensorError) as error:
        aside.unlink(missing_ok=True)
        good = next(checkpoints(folder), None)
        raise OctavoltError(
            f"Can't save step {progress.steps_done} into {folder}: {error}. "
            + (f"The last good checkpoint is {good.name}. " if good else "There is none yet. ")
            + f"Make room, then go on with: octavolt train --resume {folder.parent}"
        ) from error
    for old in [*checkpoints(folder)][KEPT:]:
        old.unlink()
    return path


def flush_and_digest(path: Path) -> str:
    """Hand a file to the disk and return the first digits of its SHA-256."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()[:DIGITS]


def flush_folder(folder: Path) -> None:
    """Hand a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checkpoints(folder: Path) -> Iterator[Path]:
    """Yield the checkpoints of a folder, the newest first."""
    if folder.is_dir():
        names = sorted(one.name for one in folder.iterdir() if NAME.fullmatch(one.name))
        yield from (folder / name for name in reversed(names))


def load_newest(folder: Path, state: TrainState) -> tuple[Progress, list[str]]:
    """Load the newest whole checkpoint; return where it stands, and what was passed over."""
    damaged: list[str] = []
    for path in checkpoints(folder):
        found = NAME.fullmatch(path.name)
        assert found is not None, path
        if flush_and_digest(path) != found[2]:
            damaged.append(f"{path.name} is damaged: its checksum differs. Used the one before.")
            continue
        return load(path, state), damaged
    raise OctavoltError(
        f"There is no checkpoint in {folder} to go on from"
        + (f", but damaged ones: {' '.join(damaged)}" if damaged else ".")
    )


def load(path: Path, state: TrainState) -> Progress:
    """Load one checkpoint."""
    with safe_open(path, framework="pt") as file:
        meta: dict[str, Any] = json.loads(file.metadata()["octavolt"])
    if meta["schema"] > SCHEMA:
        raise OctavoltError(
            f"{path} has schema {meta['schema']}; this octavolt reads up to {SCHEMA}. It was "
            "written by a newer one: pip install --upgrade octavolt"
        )
    tensors = load_file(path)
    network = part(tensors, "network")
    state.network.body.load_state_dict(network)
    if state.ema is not None:
        for name, tensor in part(tensors, "ema").items():
            state.ema[name].copy_(tensor)
    load_optimizer(state.optimizer, tensors)
    state.scaler.load_state_dict(meta["scaler"])
    state.loss_names = tuple(meta["loss_names"])
    best = meta["progress"]["best"]
    progress = Progress(**(meta["progress"] | {"best": None if best is None else tuple(best)}))
    state.steps_done = progress.steps_done
    return progress


def part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors of one part, by their names in it."""
    prefix = f"{name}/"
    return {
        key.removeprefix(prefix): tensor
        for key, tensor in tensors.items()
        if key.startswith(prefix)
    }


def load_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load the optimizer's state, each tensor laid out in memory as its parameter is.

    Fused kernels walk parameter and state side by side and trust that both are laid out alike.
    """
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    for index, parameter in enumerate(parameters):
        values = part(tensors, f"optimizer.{index}")
        loaded: dict[str, Tensor] = {}
        for key, value in values.items():
            if value.shape == parameter.shape and value.ndim > 0:
                loaded[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
            else:
                fused = bool(optimizer.param_groups[0].get("fused"))
                loaded[key] = value.to(parameter.device) if fused else value
        if loaded:
            optimizer.state[parameter] = loaded
