"""GPUs with their published rates. A new GPU is one entry."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.facts import Confidence
from octavolt.units import GIB

Arithmetic = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp16-vector"]
"""'fp16', 'bf16' and 'tf32' are dense matrix products on tensor cores with fp32 sums;
'fp16-vector' is the rate of all other fp16 arithmetic."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """What joins a chip to another."""

    name: str
    bytes_per_second: float
    """Each way, over all its lanes or bricks together."""


PCIE_3 = Link(name="pcie-3.0-x16", bytes_per_second=8e9 * 16 * 128 / 130 / 8)
"""8 GT/s a lane, of which 128 in 130 bits are data."""
NVLINK_2_SIX = Link(name="nvlink-2.0-x6", bytes_per_second=6 * 25e9)


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
    *, fp64: float, fp32: float, fp16_vector: float, fp16: float
) -> Mapping[Arithmetic, float]:
    """Return a Volta chip's peak rates, which are given in units of 10**12 a second."""
    rates: dict[Arithmetic, float] = {
        "fp64": fp64 * 1e12,
        "fp32": fp32 * 1e12,
        "fp16-vector": fp16_vector * 1e12,
        "fp16": fp16 * 1e12,
    }
    return MappingProxyType(rates)


SXM2_16 = Chip(
    name="v100-sxm2-16gb",
    reported_names=("Tesla V100-SXM2-16GB",),
    pci_ids=("10de:1db1", "10de:1df5"),
    capability=(7, 0),
    multiprocessor_count=80,
    boost_hertz=1530e6,
    memory_bytes=16 * GIB,
    memory_bytes_per_second=900e9,
    peak_flops_per_second=peaks(fp64=7.8, fp32=15.7, fp16_vector=31.4, fp16=125),
    peer_link=NVLINK_2_SIX,
    host_link=PCIE_3,
    power_limit_watts=300,
    lowest_power_limit_watts=150,
    confidence="high",
    source="NVIDIA V100 data sheet, January 2020; ids from the public pci.ids list",
)

PCIE_16 = Chip(
    name="v100-pcie-16gb",
    reported_names=("Tesla V100-PCIE-16GB",),
    pci_ids=("10de:1db4",),
    capability=(7, 0),
    multiprocessor_count=80,
    boost_hertz=1380e6,
    memory_bytes=16 * GIB,
    memory_bytes_per_second=900e9,
    peak_flops_per_second=peaks(fp64=7.0, fp32=14.0, fp16_vector=28, fp16=112),
    peer_link=PCIE_3,
    host_link=PCIE_3,
    power_limit_watts=250,
    lowest_power_limit_watts=100,
    confidence="high",
    source="NVIDIA V100 data sheet, January 2020; lowest limit from the traces of ml-energy/zeus",
)

FAMILY = (
    SXM2_16,
    replace(
        SXM2_16,
        name="v100-sxm2-32gb",
        reported_names=("Tesla V100-SXM2-32GB",),
        pci_ids=("10de:1db5",),
        memory_bytes=32 * GIB,
    ),
    Chip(
        name="v100-sxm3-32gb",
        reported_names=("Tesla V100-SXM3-32GB",),
        pci_ids=("10de:1db8",),
        capability=(7, 0),
        multiprocessor_count=80,
        boost_hertz=1597e6,
        memory_bytes=32 * GIB,
        memory_bytes_per_second=900e9,
        peak_flops_per_second=peaks(fp64=8.2, fp32=16.4, fp16_vector=32.7, fp16=130),
        peer_link=NVLINK_2_SIX,
        host_link=PCIE_3,
        power_limit_watts=350,
        confidence="medium",
        source="public databases of GPUs, but memory as NVIDIA quotes it; a DGX-2H allows 450 W",
    ),
    PCIE_16,
    replace(
        PCIE_16,
        name="v100-pcie-32gb",
        reported_names=("Tesla V100-PCIE-32GB",),
        pci_ids=("10de:1db6",),
        memory_bytes=32 * GIB,
    ),
    replace(
        PCIE_16,
        name="v100s-pcie-32gb",
        reported_names=("Tesla V100S-PCIE-32GB",),
        pci_ids=("10de:1df6",),
        boost_hertz=1597e6,
        memory_bytes=32 * GIB,
        memory_bytes_per_second=1134e9,
        peak_flops_per_second=peaks(fp64=8.2, fp32=16.4, fp16_vector=32.7, fp16=130),
        lowest_power_limit_watts=None,
        source="NVIDIA V100 data sheet, January 2020; ids from the public pci.ids list",
    ),
    replace(
        PCIE_16,
        name="v100-fhhl-16gb",
        reported_names=("Tesla V100-FHHL-16GB",),
        pci_ids=("10de:1db3",),
        boost_hertz=1290e6,
        memory_bytes_per_second=829e9,
        peak_flops_per_second=peaks(fp64=6.6, fp32=13.2, fp16_vector=26, fp16=105),
        power_limit_watts=150,
        lowest_power_limit_watts=None,
        confidence="medium",
        source="public databases of GPUs; rates agree with units and clock",
    ),
    replace(
        SXM2_16,
        name="v100-dgxs-16gb",
        reported_names=("Tesla V100-DGXS-16GB",),
        pci_ids=("10de:1db2",),
        peer_link=None,
        lowest_power_limit_watts=None,
        confidence="medium",
        source="as SXM2; of boost clocks of 1530 to 1582 MHz the lower is taken; has NVLink",
    ),
    replace(
        SXM2_16,
        name="v100-dgxs-32gb",
        reported_names=("Tesla V100-DGXS-32GB",),
        pci_ids=("10de:1db7",),
        memory_bytes=32 * GIB,
        peer_link=None,
        lowest_power_limit_watts=None,
        confidence="medium",
        source="as SXM2; of boost clocks of 1530 to 1582 MHz the lower is taken; has NVLink",
    ),
    Chip(
        name="titan-v",
        reported_names=("TITAN V",),
        pci_ids=("10de:1d81",),
        capability=(7, 0),
        multiprocessor_count=80,
        boost_hertz=1455e6,
        memory_bytes=12 * GIB,
        memory_bytes_per_second=653e9,
        peak_flops_per_second=peaks(fp64=7.5, fp32=14.9, fp16_vector=29.8, fp16=110),
        peer_link=PCIE_3,
        host_link=PCIE_3,
        power_limit_watts=250,
        confidence="medium",
        source="NVIDIA quotes fp16=110e12, units and clock give 119e12; the lower is taken",
    ),
    Chip(
        name="quadro-gv100",
        reported_names=("Quadro GV100",),
        pci_ids=("10de:1dba",),
        capability=(7, 0),
        multiprocessor_count=80,
        boost_hertz=1627e6,
        memory_bytes=32 * GIB,
        memory_bytes_per_second=870e9,
        peak_flops_per_second=peaks(fp64=8.3, fp32=16.7, fp16_vector=33, fp16=118),
        peer_link=None,
        host_link=PCIE_3,
        power_limit_watts=250,
        confidence="medium",
        source="NVIDIA quotes fp16=118e12, units and clock give 133e12; has NVLink between two",
    ),
)

CHIPS: Mapping[str, Chip] = MappingProxyType({chip.name: chip for chip in FAMILY})


def find_chip(name: str) -> Chip:
    """Return the chip of that name: ours in any case and with underscores, or the driver's."""
    wanted = plain(name)
    for chip in CHIPS.values():
        if wanted in (chip.name, *map(plain, chip.reported_names)):
            return chip
    raise UnknownNameError("GPU", name, CHIPS)


def plain(name: str) -> str:
    """Return a name as we write ours."""
    return name.lower().replace("_", "-").replace(" ", "-").removeprefix("nvidia-")
