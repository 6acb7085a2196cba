"""Processes that train together: who they are, and what they tell each other."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from octavolt.errors import OctavoltError

BUCKET_BYTES = 25 * 2**20
"""Gradients travel together in pieces of this size, as in PyTorch's DDP."""
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rank:
    """One process among those that train together."""

    number: int = 0
    count: int = 1
    local_number: int = 0
    local_count: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.number == 0


def given(environment: Mapping[str, str]) -> Rank | None:
    """Return the rank that torchrun or SLURM's srun gave this process, or None if neither did."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    if "RANK" not in environment or "WORLD_SIZE" not in environment:
        names = ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE")
        # A batch script or an interactive shell has these variables too, but only srun a step.
        if "SLURM_STEP_ID" not in environment or environment.get("SLURM_NTASKS", "1") == "1":
            return None
    number, count = int(environment[names[0]]), int(environment[names[1]])
    return Rank(
        number=number,
        count=count,
        local_number=int(environment.get(names[2], number)),
        local_count=int(environment.get(names[3], count)),
    )


def first_host(nodes: str) -> str:
    """Return the first host of SLURM's compressed list: 'gpu[03-05,9],cpu1' gives 'gpu03'."""
    found = re.match(r"([^,\[]+)(?:\[([^,\-\]]+)[^\]]*\])?([^,\[]*)", nodes)
    if found is None:
        raise OctavoltError(f"SLURM_JOB_NODELIST is '{nodes}', which names no host.")
    return "".join(part or "" for part in found.groups())


def slurm_meeting(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which processes started by srun find each other."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", "")
    # The same for all ranks of a job, different for jobs that share a host.
    port = 15_000 + int(environment.get("SLURM_JOB_ID", "0")) % 20_000
    return {"MASTER_ADDR": first_host(nodes), "MASTER_PORT": str(port)}


@contextmanager
def joined(rank: Rank, device: torch.device) -> Iterator[None]:
    """Join the other processes for the time of a block."""
    if rank.count == 1:
        yield
        return
    if "MASTER_ADDR" not in os.environ:
        os.environ.update(slurm_meeting(os.environ))
    # Flags and weights go over gloo: reading them never waits for the GPU.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, rank=rank.number, world_size=rank.count, timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


def is_joined() -> bool:
    """Whether this process trains with others."""
    return dist.is_available() and dist.is_initialized()


def total(values: Sequence[float]) -> list[float]:
    """Return the sums over all ranks, without waiting for a GPU."""
    if not is_joined():
        return list(values)
    sums = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(sums)
    return [float(value) for value in sums]


def add_up(tensor: Tensor) -> None:
    """Replace a tensor by its sum over all ranks."""
    if is_joined():
        dist.all_reduce(tensor)


def wait() -> None:
    """Wait until all ranks are here."""
    if is_joined():
        dist.barrier()


def buckets(tensors: Iterable[Tensor], limit_bytes: int = BUCKET_BYTES) -> Iterator[list[Tensor]]:
    """Yield the tensors in groups of one type and of about `limit_bytes` bytes, in order."""
    group: list[Tensor] = []
    size = 0
    for tensor in tensors:
        other_type = bool(group) and group[0].dtype != tensor.dtype
        if group and (other_type or size + tensor.nbytes > limit_bytes):
            yield group
            group, size = [], 0
        group.append(tensor)
        size += tensor.nbytes
    if group:
        yield group


def add_up_all(tensors: Iterable[Tensor], *, divide_by: int = 1) -> None:
    """Replace each tensor by its sum over all ranks, over `divide_by`."""
    if not is_joined():
        return
    for group in buckets(tensors):
        flat = torch.cat([tensor.reshape(-1) for tensor in group])
        dist.all_reduce(flat)
        if divide_by != 1:
            flat /= divide_by
        parts = flat.split([tensor.numel() for tensor in group])
        torch._foreach_copy_(
            group, [part.view_as(one) for part, one in zip(parts, group, strict=True)]
        )


def gathered(value: Any) -> list[Any]:
    """Return what each rank gave, in their order."""
    if not is_joined():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def count() -> int:
    """Return the number of processes that train together."""
    return dist.get_world_size() if is_joined() else 1


def told(value: Any) -> Any:
    """Return what the leading rank gave, on every rank."""
    if not is_joined():
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]
