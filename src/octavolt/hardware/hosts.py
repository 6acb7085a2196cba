"""Hosts: machines with several GPUs, and how these are joined. A new one is an entry."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.chip import Link
from octavolt.hardware.facts import Confidence
from octavolt.hardware.mesh import CUBE_MESH, QUAD, Matrix, best_rings
from octavolt.units import GIB

Joint = Literal["nvlink", "nvswitch", "pcie"]

BROADWELL = Link(name="qpi", bytes_per_second=6e9)
SKYLAKE = Link(name="upi", bytes_per_second=10e9)
EPYC = Link(name="infinity-fabric", bytes_per_second=16e9)
SAPPHIRE_RAPIDS = Link(name="upi-2.0", bytes_per_second=22e9)
"""Between two processors, as NCCL reckons with for what GPUs send: NVIDIA/nccl, src/graph/topo.h.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A machine as its maker or cloud describes it."""

    name: str
    chip: str
    gpu_count: int
    links: Matrix | None = None
    """NVLinks between each two GPUs; None where they are joined by a switch, or by PCIe."""
    switched: bool = False
    """Whether every GPU reaches every other with all its links at once."""
    between_processors: Link | None
    """What PCIe traffic takes from one half of the GPUs to the other; None with one processor."""
    physical_cores: int
    memory_bytes: int
    network_bytes_per_second: float
    """To other hosts, each way, over all its adapters."""
    host_watts: float
    """At work without the GPUs."""
    confidence: Confidence
    source: str

    def joint(self, count: int) -> Joint:
        """Return what joins so many of its GPUs, well chosen."""
        self.check(count)
        if self.switched:
            return "nvswitch"
        return "nvlink" if self.links is not None and best_rings(self.links, count) else "pcie"

    def check(self, count: int) -> None:
        """Raise if it hasn't so many GPUs."""
        if not 1 <= count <= self.gpu_count:
            raise OctavoltError(
                f"{self.name} has {self.gpu_count} GPUs, not {count}. Ask for 1 to "
                f"{self.gpu_count}, or for several hosts."
            )

    def processor_of(self, gpu: int) -> int:
        """Return at which processor a GPU's PCIe slot is: the first half at 0, the others at 1."""
        return int(self.between_processors is not None and gpu >= self.gpu_count // 2)


DGX_1 = Host(
    name="dgx-1",
    chip="v100-sxm2-16gb",
    gpu_count=8,
    links=CUBE_MESH,
    between_processors=BROADWELL,
    physical_cores=40,
    memory_bytes=512 * GIB,
    network_bytes_per_second=4 * 12.5e9,
    host_watts=1100,
    confidence="medium",
    source="NVIDIA DGX-1 data sheet, 2017: 3.5 kW with eight GPUs of 300 W at most",
)

TABLE = (
    DGX_1,
    Host(
        name="dgx-2",
        chip="v100-sxm3-32gb",
        gpu_count=16,
        switched=True,
        between_processors=SKYLAKE,
        physical_cores=48,
        memory_bytes=1536 * GIB,
        network_bytes_per_second=8 * 12.5e9,
        host_watts=4400,
        confidence="medium",
        source="NVIDIA DGX-2 data sheet, 2018: 10 kW with 16 GPUs of 350 W, switches included",
    ),
    Host(
        name="dgx-a100",
        chip="a100-sxm-40gb",
        gpu_count=8,
        switched=True,
        between_processors=EPYC,
        physical_cores=128,
        memory_bytes=1024 * GIB,
        network_bytes_per_second=8 * 25e9,
        host_watts=3300,
        confidence="medium",
        source="NVIDIA DGX A100 data sheet, 2020: 6.5 kW at most with eight GPUs of 400 W",
    ),
    Host(
        name="dgx-h100",
        chip="h100-sxm-80gb",
        gpu_count=8,
        switched=True,
        between_processors=SAPPHIRE_RAPIDS,
        physical_cores=112,
        memory_bytes=2048 * GIB,
        network_bytes_per_second=8 * 50e9,
        host_watts=4600,
        confidence="medium",
        source="NVIDIA DGX H100 data sheet, 2022: 10.2 kW at most with eight GPUs of 700 W",
    ),
    Host(
        name="p3.2xlarge",
        chip="v100-sxm2-16gb",
        gpu_count=1,
        between_processors=None,
        physical_cores=4,
        memory_bytes=61 * GIB,
        network_bytes_per_second=10e9 / 8,
        host_watts=140,
        confidence="medium",
        source="AWS's page on P3; up to 10 Gb/s; watts are an eighth of DGX-1's, our assumption",
    ),
    Host(
        name="p3.8xlarge",
        chip="v100-sxm2-16gb",
        gpu_count=4,
        links=QUAD,
        between_processors=None,
        physical_cores=16,
        memory_bytes=244 * GIB,
        network_bytes_per_second=10e9 / 8,
        host_watts=550,
        confidence="medium",
        source="AWS's page on P3; watts are half of DGX-1's, our assumption",
    ),
    Host(
        name="p3.16xlarge",
        chip="v100-sxm2-16gb",
        gpu_count=8,
        links=CUBE_MESH,
        between_processors=BROADWELL,
        physical_cores=32,
        memory_bytes=488 * GIB,
        network_bytes_per_second=25e9 / 8,
        host_watts=1100,
        confidence="medium",
        source="AWS's page on P3; watts are DGX-1's, our assumption",
    ),
    Host(
        name="p3dn.24xlarge",
        chip="v100-sxm2-32gb",
        gpu_count=8,
        links=CUBE_MESH,
        between_processors=SKYLAKE,
        physical_cores=48,
        memory_bytes=768 * GIB,
        network_bytes_per_second=100e9 / 8,
        host_watts=1100,
        confidence="medium",
        source="AWS's page on P3; watts are DGX-1's, our assumption",
    ),
    Host(
        name="pcie-server",
        chip="v100-pcie-16gb",
        gpu_count=8,
        between_processors=SKYLAKE,
        physical_cores=32,
        memory_bytes=384 * GIB,
        network_bytes_per_second=25e9 / 8,
        host_watts=600,
        confidence="low",
        source="our assumption of a two-socket server with eight PCIe cards",
    ),
    Host(
        name="workstation",
        chip="v100-pcie-16gb",
        gpu_count=2,
        between_processors=None,
        physical_cores=8,
        memory_bytes=64 * GIB,
        network_bytes_per_second=1e9 / 8,
        host_watts=150,
        confidence="low",
        source="our assumption of a desktop with two PCIe cards",
    ),
)

HOSTS: Mapping[str, Host] = MappingProxyType({host.name: host for host in TABLE})


def find_host(name: str) -> Host:
    """Return the host of that name, in any case and with underscores."""
    wanted = name.lower().replace("_", "-")
    if wanted not in HOSTS:
        raise UnknownNameError("host", name, HOSTS)
    return HOSTS[wanted]
