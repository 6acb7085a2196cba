"""The rings on which GPUs add up gradients, within a host and between hosts: how fast they can be.

An all-reduce on a ring sends 2 (n - 1) / n of the data from each GPU to the next. So it takes that
many bytes over the bus bandwidth, which the slowest hop of the rings sets.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from octavolt.errors import OctavoltError
from octavolt.hardware.chip import Chip, missing
from octavolt.hardware.chips import find_chip
from octavolt.hardware.hosts import Host
from octavolt.hardware.mesh import best_rings

Hop = Literal["nvlink", "nvswitch", "pcie", "sys", "network"]
"""'sys' is PCIe and the way between two processors, as `nvidia-smi topo -m` calls it."""

PCIE_SHARE = 12 / 15.75
NETWORK_SHARE = 12 / 12.5
"""What data get of a wire, as NCCL reckons: 12 GB/s of PCIe 3.0 x16 and of 100 Gb/s. The next two
likewise: NVIDIA/nccl, src/graph/topo.h."""
NVLINK_SHARES = {(6, 0): 18 / 20, (7, 0): 20 / 25, (8, 0): 20 / 25, (9, 0): 20.6 / 25}
"""By capability; a brick carries 20 GB/s in the P100 and 25 in later chips."""
INTEL_SHARE = 5 / 6
"""Left of PCIe where GPUs send to each other through an Intel processor, in packets of 64 bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rings:
    """The way of an all-reduce on several GPUs."""

    host_count: int
    gpus: tuple[int, ...]
    """Which to take of each host, in the order of the first ring."""
    hop: Hop
    """The slowest kind of step on a ring."""
    ring_count: int
    """How many go round at once, each on links of its own."""
    wire_bytes_per_second: float
    """What the wires carry each way, all rings together: no bus bandwidth exceeds it."""
    bytes_per_second: float
    """The bus bandwidth that NCCL reckons with. Training has less: see the planner."""


def rings(host: Host, gpu_count: int) -> Rings:
    """Return the best rings on so many GPUs, of as few such hosts as hold them.

    Raises for less than two GPUs, and for NVSwitch on a chip whose links no source gives.
    """
    if gpu_count < 2:
        raise OctavoltError(f"{gpu_count} GPUs exchange nothing. Ask for the rings of 2 or more.")
    host_count = ceil(gpu_count / host.gpu_count)
    inside = within(host, ceil(gpu_count / host_count))
    if host_count == 1:
        return inside
    # All rings together leave a host once, over all its adapters.
    return Rings(
        host_count=host_count,
        gpus=inside.gpus,
        hop="network",
        ring_count=inside.ring_count,
        wire_bytes_per_second=min(inside.wire_bytes_per_second, host.network_bytes_per_second),
        bytes_per_second=min(
            inside.bytes_per_second, NETWORK_SHARE * host.network_bytes_per_second
        ),
    )


def within(host: Host, gpu_count: int) -> Rings:
    """Return the best rings on so many GPUs of one host."""
    host.check(gpu_count)
    chip = find_chip(host.chip)
    if host.switched:
        return by_switch(chip, gpu_count)
    circles = best_rings(host.links, gpu_count) if host.links is not None else ()
    return by_links(chip, circles) if circles else by_pcie(host, chip, gpu_count)


def nvlink_share(chip: Chip) -> float:
    """Return the share of NVLink's wires that data get; raises if no source says."""
    if "nvlink" not in chip.peer().name or chip.capability not in NVLINK_SHARES:
        raise missing(chip.name, "a share that data get of NVLink")
    return NVLINK_SHARES[chip.capability]


def by_switch(chip: Chip, gpu_count: int) -> Rings:
    """Return rings that use all links of each GPU."""
    wire = chip.peer().bytes_per_second
    return Rings(
        host_count=1,
        gpus=tuple(range(gpu_count)),
        hop="nvswitch",
        ring_count=chip.peer().lane_count,
        wire_bytes_per_second=wire,
        bytes_per_second=wire * nvlink_share(chip),
    )


def by_links(chip: Chip, circles: tuple[tuple[int, ...], ...]) -> Rings:
    """Return rings of which each has a link to itself from every GPU to the next."""
    wire = len(circles) * chip.peer().bytes_per_second / chip.peer().lane_count
    return Rings(
        host_count=1,
        gpus=circles[0],
        hop="nvlink",
        ring_count=len(circles),
        wire_bytes_per_second=wire,
        bytes_per_second=wire * nvlink_share(chip),
    )


def by_pcie(host: Host, chip: Chip, gpu_count: int) -> Rings:
    """Return the one ring that PCIe has room for, on one processor's GPUs if they suffice."""
    wire = chip.host_link.bytes_per_second
    reached = wire * PCIE_SHARE * INTEL_SHARE
    gpus = tuple(range(gpu_count))
    crosses = len({host.processor_of(gpu) for gpu in gpus}) > 1
    if crosses and host.between_processors is not None:
        reached = min(reached, host.between_processors.bytes_per_second)
    return Rings(
        host_count=1,
        gpus=gpus,
        hop="sys" if crosses else "pcie",
        ring_count=1,
        wire_bytes_per_second=wire,
        bytes_per_second=reached,
    )
