"""A healthy host with eight V100s, and what can be wrong with it."""

from dataclasses import replace
from typing import Any

from octavolt.doctor.snapshot import Card, NvLink, Package, Snapshot, Software
from octavolt.hardware.mesh import CUBE_MESH
from octavolt.units import GIB

VOLTA_WHEEL = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
NEWER_WHEEL = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")


def links(place: int) -> tuple[NvLink, ...]:
    return tuple(
        NvLink(up=True, peer=peer)
        for peer, count in enumerate(CUBE_MESH[place])
        for _ in range(count)
    )


def card(place: int = 0, **changes: Any) -> Card:
    healthy = Card(
        name="Tesla V100-SXM2-16GB",
        pci_id="10de:1db1",
        memory_bytes=16 * GIB,
        used_bytes=2**20,
        processes=0,
        ecc=True,
        retired_pages=0,
        retirement_pending=False,
        pcie_generation=3,
        pcie_width=16,
        widest_pcie=16,
        power_limit_watts=300.0,
        default_limit_watts=300.0,
        lowest_limit_watts=150.0,
        highest_limit_watts=300.0,
        core_celsius=41,
        memory_celsius=43,
        clock_megahertz=135,
        highest_clock_megahertz=1530,
        throttled_by=("idle",),
        persistence=True,
        links=links(place),
    )
    return replace(healthy, **changes)


SOFTWARE = Software(
    python="3.11.7",
    torch="2.10.0",
    torch_cuda="12.8",
    architectures=VOLTA_WHEEL,
    cudnn="9.10.2.21",
    nccl="2.27.5",
    triton="3.6.0",
    torchvision="0.25.0",
    transformers="5.24.0",
    packages=(
        Package(name="nvidia-cufft-cu12", version="11.3.3.83", architectures=("sm_52",)),
        Package(name="torch", version="2.10.0", architectures=VOLTA_WHEEL),
    ),
)

DGX = Snapshot(
    system="Linux 6.1",
    driver="580.65.06",
    open_module=False,
    pci_ids=("10de:1db1",) * 8,
    cards=tuple(card(place) for place in range(8)),
    software=SOFTWARE,
    processor="Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz",
    processor_flags=("avx2",),
    physical_cores=40,
    numa_nodes=2,
    memory_bytes=512 * GIB,
    shared_memory_bytes=256 * GIB,
    free_disk_bytes=2000 * GIB,
    disk_bytes_per_second=1.2e9,
    jpegs_per_second=640.0,
)

LAPTOP = replace(
    DGX,
    driver=None,
    open_module=None,
    pci_ids=(),
    cards=(),
    physical_cores=4,
    software=replace(SOFTWARE, torch_cuda=None, architectures=(), cudnn=None, nccl=None),
)


def software(**changes: Any) -> Snapshot:
    return replace(DGX, software=replace(SOFTWARE, **changes))


def third(**changes: Any) -> Snapshot:
    """Return the host with another third card."""
    cards = list(DGX.cards)
    cards[3] = replace(cards[3], **changes)
    return replace(DGX, cards=tuple(cards))


def package(name: str, *architectures: str) -> Snapshot:
    added = Package(name=name, version="1.0", architectures=architectures)
    return software(packages=(*SOFTWARE.packages, added))


def one_link_down() -> Snapshot:
    return third(links=(*links(3)[:5], NvLink(up=False)))


CASES: dict[str, tuple[Snapshot, dict[str, str]]] = {
    "a healthy DGX-1": (DGX, {}),
    "a laptop without a GPU": (LAPTOP, {}),
    "torch 2.11": (
        software(torch="2.11.0", torch_cuda="13.0", architectures=NEWER_WHEEL, cudnn="9.19.0.56"),
        {"wrong-wheel": "error", "cuda-13": "error", "cudnn-too-new": "error"},
    ),
    "torch 2.15": (
        software(torch="2.15.0", architectures=NEWER_WHEEL, cudnn=None),
        {"wrong-wheel": "error"},
    ),
    "torch 2.7 for CUDA 12.8": (
        software(torch="2.7.1", architectures=NEWER_WHEEL, cudnn="9.5.1"),
        {"wrong-wheel": "error"},
    ),
    "a build for CPUs": (
        software(torch="2.10.0+cpu", torch_cuda=None, architectures=(), cudnn=None),
        {"cpu-wheel": "error"},
    ),
    "no torch": (
        software(torch=None, architectures=(), torch_cuda=None),
        {"broken-torch": "error"},
    ),
    "torch that can't be imported": (
        software(torch_error="OSError: libcudart.so.12: cannot open shared object file"),
        {"broken-torch": "error"},
    ),
    "driver 590": (
        replace(DGX, driver="590.44.01", cards=()),
        {"driver-too-new": "error"},
    ),
    "driver 470": (replace(DGX, driver="470.256.02"), {"driver-too-old": "error"}),
    "no driver": (replace(DGX, driver=None, open_module=None, cards=()), {"no-driver": "error"}),
    "no driver for another NVIDIA GPU": (
        replace(LAPTOP, pci_ids=("10de:2204",)),
        {"no-driver": "error"},
    ),
    "the open kernel module": (
        replace(DGX, open_module=True, cards=()),
        {"open-module": "error"},
    ),
    "cuDNN 9.11": (software(cudnn="9.11.0.98"), {"cudnn-too-new": "error"}),
    "a container of CUDA 13 on R580": (
        replace(DGX, container_cuda="13.0.1"),
        {"cuda-13": "warning"},
    ),
    "onnxruntime-gpu without sm_70": (
        package("onnxruntime-gpu", "sm_75", "sm_80", "sm_90"),
        {"package-without-sm70": "warning"},
    ),
    "xformers without sm_70": (
        package("xformers", "sm_75", "sm_80", "sm_90"),
        {"package-without-sm70": "warning"},
    ),
    "flash-attn": (package("flash-attn"), {"flash-attn": "warning"}),
    "a bf16 recipe": (software(precision="bf16"), {"bf16": "error"}),
    "torch.compile with a new Triton": (
        software(compiles=True),
        {"triton-without-tensor-cores": "warning"},
    ),
    "torch.compile with an old Triton": (software(compiles=True, triton="3.2.0"), {}),
    "NCCL 2.22.3": (software(nccl="2.22.3"), {"nccl": "warning"}),
    "NCCL 2.8": (software(nccl="2.8.4"), {"nccl": "warning"}),
    "a link that is down": (one_link_down(), {"nvlink-down": "warning"}),
    "PCIe x8": (third(pcie_width=8), {"pcie-narrow": "warning"}),
    "retired pages": (third(retired_pages=3), {"retired-pages": "warning"}),
    "sixty retired pages": (third(retired_pages=60), {"retired-pages": "error"}),
    "a page that waits to be retired": (
        third(retirement_pending=True),
        {"retirement-pending": "error"},
    ),
    "ECC off": (third(ecc=False), {"ecc-off": "warning"}),
    "memory at 88 C": (third(memory_celsius=88), {"hot-memory": "warning"}),
    "core at 86 C": (third(core_celsius=86), {"hot-core": "warning"}),
    "thermal slowdown": (
        third(throttled_by=("hardware slowdown", "hardware thermal slowdown")),
        {"thermal-slowdown": "warning"},
    ),
    "power brake at 382 MHz": (
        third(throttled_by=("hardware slowdown", "power brake"), clock_megahertz=382),
        {"power-brake": "error"},
    ),
    "one card capped at 150 W": (third(power_limit_watts=150.0), {"power-cap": "warning"}),
    "persistence off": (third(persistence=False), {"persistence": "warning"}),
    "a card that another process fills": (
        third(used_bytes=int(15.5 * GIB), processes=1),
        {"card-in-use": "error"},
    ),
    "a card that is half full": (third(used_bytes=9 * GIB), {"card-in-use": "warning"}),
    "mixed cards": (
        third(name="Tesla V100-SXM2-32GB", pci_id="10de:1db5", memory_bytes=32 * GIB),
        {"mixed-cards": "warning"},
    ),
    "/dev/shm of 64 MB": (
        replace(DGX, shared_memory_bytes=64 * 2**20),
        {"little-shared-memory": "error"},
    ),
    "64 MB of /dev/shm and one card": (
        replace(DGX, shared_memory_bytes=64 * 2**20, cards=DGX.cards[:1]),
        {},
    ),
    "a full disk": (replace(DGX, free_disk_bytes=100 * 2**20), {"little-disk": "error"}),
    "a disk that is nearly full": (replace(DGX, free_disk_bytes=GIB), {"little-disk": "warning"}),
    "a slow disk": (replace(DGX, disk_bytes_per_second=20e6), {"slow-disk": "warning"}),
    "eight cards and eight cores": (replace(DGX, physical_cores=8), {"few-cores": "warning"}),
}
"""By name: a machine, and the rules that must be broken, with their severity; no others."""
