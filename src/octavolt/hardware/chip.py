"""What a GPU is, as its maker describes it: the type of an entry in `chips.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from octavolt.errors import OctavoltError
from octavolt.hardware.facts import Confidence

Arithmetic = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp16-vector"]
"""'fp16', 'bf16' and 'tf32' are dense matrix products on tensor cores with fp32 sums;
'fp16-vector' is the rate of all other fp16 arithmetic."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """What joins a chip to another."""

    name: str
    bytes_per_second: float
    """Each way, over all its lanes or bricks together."""
    lane_count: int = 1
    """Of NVLink, its bricks."""


PCIE_3 = Link(name="pcie-3.0-x16", bytes_per_second=8e9 * 16 * 128 / 130 / 8, lane_count=16)
"""8 GT/s a lane, of which 128 in 130 bits are data; twice as much with each generation."""
PCIE_4 = Link(name="pcie-4.0-x16", bytes_per_second=2 * PCIE_3.bytes_per_second, lane_count=16)
PCIE_5 = Link(name="pcie-5.0-x16", bytes_per_second=4 * PCIE_3.bytes_per_second, lane_count=16)
NVLINK_1_FOUR = Link(name="nvlink-1.0-x4", bytes_per_second=4 * 20e9, lane_count=4)
NVLINK_2_SIX = Link(name="nvlink-2.0-x6", bytes_per_second=6 * 25e9, lane_count=6)
NVLINK_3_TWELVE = Link(name="nvlink-3.0-x12", bytes_per_second=12 * 25e9, lane_count=12)
NVLINK_4_EIGHTEEN = Link(name="nvlink-4.0-x18", bytes_per_second=18 * 25e9, lane_count=18)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chip:
    """A GPU as its maker describes it."""

    name: str
    reported_names: tuple[str, ...]
    """As the driver says it, without a leading 'NVIDIA '."""
    pci_ids: tuple[str, ...]
    """Vendor and device, as in '10de:1db1'."""
    capability: tuple[int, int]
    multiprocessor_count: int
    boost_hertz: float
    memory_bytes: int
    memory_bytes_per_second: float
    peak_flops_per_second: Mapping[Arithmetic, float]
    peer_link: Link | None
    """The fastest way to GPUs of its kind; None if no source says: then `peer` raises."""
    host_link: Link
    power_limit_watts: float
    """As delivered."""
    lowest_power_limit_watts: float | None = None
    """What it may be lowered to; None if no source says: then `lowest_power_limit` raises."""
    confidence: Confidence
    """How sure the least sure of these numbers is."""
    source: str

    def peak(self, arithmetic: Arithmetic) -> float:
        """Return the peak rate in flops a second; raises for what the chip has no rate of."""
        if arithmetic not in self.peak_flops_per_second:
            known = ", ".join(self.peak_flops_per_second)
            raise OctavoltError(
                f"{self.name} has no {arithmetic} rate. Known: {known}. Use one of those, or add "
                "the rate with its source in hardware/chips.py."
            )
        return self.peak_flops_per_second[arithmetic]

    def peer(self) -> Link:
        """Return the fastest way to GPUs of its kind; raises if no source says."""
        if self.peer_link is None:
            raise missing(self.name, "peer_link")
        return self.peer_link

    def lowest_power_limit(self) -> float:
        """Return what the power limit may be lowered to, in watts; raises if no source says."""
        if self.lowest_power_limit_watts is None:
            raise missing(self.name, "lowest_power_limit_watts")
        return self.lowest_power_limit_watts


def missing(chip: str, field: str) -> OctavoltError:
    """Return the error for a number that no source gives."""
    return OctavoltError(
        f"No source gives {field} of {chip}. Choose another GPU, or add the number with its "
        "source in hardware/chips.py."
    )


def peaks(
    *,
    fp32: float,
    fp16_vector: float,
    fp64: float | None = None,
    tf32: float | None = None,
    fp16: float | None = None,
    bf16: float | None = None,
) -> Mapping[Arithmetic, float]:
    """Return a chip's peak rates, given in units of 10**12 a second; what it lacks is left out."""
    rates: dict[Arithmetic, float | None] = {
        "fp64": fp64,
        "fp32": fp32,
        "fp16-vector": fp16_vector,
        "tf32": tf32,
        "fp16": fp16,
        "bf16": bf16,
    }
    return MappingProxyType({name: rate * 1e12 for name, rate in rates.items() if rate is not None})
