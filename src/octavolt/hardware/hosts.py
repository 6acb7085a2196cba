"""Hosts: machines with several GPUs, and how these are joined. A new one is an entry."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.chip import PCIE_3
from octavolt.hardware.chips import find_chip
from octavolt.hardware.facts import Confidence
from octavolt.units import GIB

Joint = Literal["nvlink", "nvswitch", "pcie", "network"]
NVLINK_BYTES_PER_SECOND = 25e9
"""Of one link of NVLink 2.0, each way."""
Matrix = tuple[tuple[int, ...], ...]

CUBE_MESH: Matrix = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
"""NVLinks between each two of eight GPUs; where there is none, data go by PCIe and between the
processors. Rows 0 and 1 as `nvidia-smi topo -m` shows them in NVIDIA/nccl issue 671; the others
follow from six links a GPU and the symmetry of the board."""
QUAD: Matrix = tuple(row[:4] for row in CUBE_MESH[:4])


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A machine as its maker or cloud describes it."""

    name: str
    chip: str
    gpu_count: int
    links: Matrix | None
    """NVLinks between each two GPUs; None where they are joined by a switch, or by PCIe."""
    switched: bool = False
    """Whether every GPU reaches every other with all its links at once."""
    physical_cores: int
    memory_bytes: int
    network_bytes_per_second: float
    """To other hosts, each way, over all its adapters."""
    host_watts: float
    """At work without the GPUs."""
    confidence: Confidence
    source: str

    def joint(self, count: int) -> Joint:
        """Return what the slowest pair of so many of its GPUs, well chosen, is joined by."""
        self.check(count)
        if self.switched:
            return "nvswitch"
        if self.links is None or count == 1:
            return "pcie"
        return "nvlink" if self.links_of(self.best(count)) else "pcie"

    def check(self, count: int) -> None:
        """Raise if it hasn't so many GPUs."""
        if not 1 <= count <= self.gpu_count:
            raise OctavoltError(
                f"{self.name} has {self.gpu_count} GPUs, not {count}. Ask for 1 to "
                f"{self.gpu_count}, or for several hosts."
            )

    def best(self, count: int) -> tuple[int, ...]:
        """Return the GPUs, so many of them, whose worst joined one is joined best."""
        self.check(count)
        if self.links is None:
            return tuple(range(count))
        return max(combinations(range(self.gpu_count), count), key=self.links_of)

    def links_of(self, gpus: tuple[int, ...]) -> int:
        """Return the NVLinks to the others of the GPU that has the fewest."""
        if self.links is None or len(gpus) < 2:
            return 0
        return min(sum(self.links[one][other] for other in gpus) for one in gpus)

    def bytes_per_second(self, count: int) -> float:
        """Return what each of so many GPUs can send to the others while it receives as much.

        That bounds the bus bandwidth of an all-reduce: with NVLink as many rings go round at once,
        each way, as the worst joined GPU has links (NVIDIA/nccl issue 299).
        """
        self.check(count)
        if self.switched:
            return find_chip(self.chip).peer().bytes_per_second
        by_links = NVLINK_BYTES_PER_SECOND * self.links_of(self.best(count))
        return by_links or PCIE_3.bytes_per_second


DGX_1 = Host(
    name="dgx-1",
    chip="v100-sxm2-16gb",
    gpu_count=8,
    links=CUBE_MESH,
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
        links=None,
        switched=True,
        physical_cores=48,
        memory_bytes=1536 * GIB,
        network_bytes_per_second=8 * 12.5e9,
        host_watts=4400,
        confidence="medium",
        source="NVIDIA DGX-2 data sheet, 2018: 10 kW with 16 GPUs of 350 W, switches included",
    ),
    Host(
        name="p3.2xlarge",
        chip="v100-sxm2-16gb",
        gpu_count=1,
        links=None,
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
        links=None,
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
        links=None,
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
