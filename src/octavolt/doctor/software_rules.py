"""What is wrong with drivers and packages, for Volta."""

from collections.abc import Iterator

from octavolt.doctor.finding import Finding, has_volta, is_volta, number
from octavolt.doctor.lanes import CUDNN, LANE_A, LANE_B, LANE_CPU
from octavolt.doctor.snapshot import Snapshot

LAST_DRIVER = 580
OLDEST_DRIVER = 525
"""The oldest that runs programs of CUDA 12: NVIDIA's table of minor version compatibility."""
LAST_CUDNN = (9, 10, 2)


def torch_lanes(*, cpu: bool = True) -> tuple[tuple[str, str], ...]:
    """Return the commands that give a torch that runs on a V100."""
    lanes = (("A", LANE_A), ("B", LANE_B), ("CPU", LANE_CPU))
    return lanes if cpu else lanes[:2]


def broken_torch(snapshot: Snapshot) -> Iterator[Finding]:
    """There is no torch, or it can't be imported."""
    software = snapshot.software
    if software.torch is None or software.torch_error:
        yield Finding(
            rule="broken-torch",
            severity="error",
            what=software.torch_error or "torch is not installed",
            why="nothing can be computed without it",
            mend=torch_lanes(cpu=False),
            source="torch's own message",
        )


def wrong_wheel(snapshot: Snapshot) -> Iterator[Finding]:
    """This torch has no kernels for sm_70."""
    software = snapshot.software
    if not has_volta(snapshot) or software.torch is None or software.torch_error:
        return
    if not software.architectures:
        yield Finding(
            rule="cpu-wheel",
            severity="error",
            what=f"torch {software.torch} is a build for CPUs, and there is a V100",
            why="the card would stand idle",
            mend=torch_lanes(),
            source="torch's own list of architectures",
        )
    elif "sm_70" not in software.architectures:
        newest = number(software.torch, 2) >= (2, 15)
        yield Finding(
            rule="wrong-wheel",
            severity="error",
            what=f"torch {software.torch} has kernels for {', '.join(software.architectures)}, "
            "none for sm_70",
            why="torch.cuda.is_available() says True all the same, and the first operation fails "
            "with 'no kernel image is available for execution on the device'"
            + (". No wheel of torch 2.15 has them, whatever its own advice says" if newest else ""),
            mend=torch_lanes(),
            source="pytorch#190355, pytorch#172352: the ordinary wheel lost sm_70 with torch 2.11",
        )


def driver(snapshot: Snapshot) -> Iterator[Finding]:
    """The driver doesn't know a V100 any more, or isn't there."""
    if not has_volta(snapshot):
        if snapshot.pci_ids and not snapshot.cards:
            yield Finding(
                rule="no-driver",
                severity="error",
                what="there is an NVIDIA GPU on the bus, and the driver tells of none"
                + (f": {snapshot.driver_error}" if snapshot.driver_error else ""),
                why="torch can't see it",
                mend=(("all", "install NVIDIA's driver; in a container run with --gpus all"),),
                source="NVML",
            )
        return
    major = (number(snapshot.driver, 1) or (0,))[0]
    if snapshot.open_module:
        yield Finding(
            rule="open-module",
            severity="error",
            what="the driver's kernel module is the open one",
            why="it needs a GPU system processor, which came with Turing: nvidia-smi says 'No "
            "devices were found'",
            mend=(("all", "apt-get install nvidia-driver-580-server, not -open; then reboot"),),
            source="NVIDIA/open-gpu-kernel-modules#19",
        )
    if major > LAST_DRIVER:
        yield Finding(
            rule="driver-too-new",
            severity="error",
            what=f"driver {snapshot.driver} is newer than R580",
            why="R580 is the last that runs Volta: newer ones ignore the card",
            mend=(
                ("all", "install R580 (to June 2028) and hold it: apt-mark hold nvidia-driver-580"),
            ),
            source="NVIDIA/ansible-role-nvidia-driver#89, NixOS/nixos-hardware#1880",
        )
    elif not snapshot.cards and not snapshot.open_module:
        yield Finding(
            rule="no-driver",
            severity="error",
            what="there is a V100 on the bus, and the driver tells of none"
            + (f": {snapshot.driver_error}" if snapshot.driver_error else ""),
            why="torch can't see it",
            mend=(("all", "install driver R580, proprietary modules; in a container --gpus all"),),
            source="NVML",
        )
    elif 0 < major < OLDEST_DRIVER:
        yield Finding(
            rule="driver-too-old",
            severity="error",
            what=f"driver {snapshot.driver} is older than R525",
            why="it can't load programs of CUDA 12: 'device kernel image is invalid'",
            mend=(("all", "install R580, proprietary modules"),),
            source="ollama/ollama#16449",
        )


def cudnn(snapshot: Snapshot) -> Iterator[Finding]:
    """CuDNN has no code for Volta from 9.11 on."""
    version = snapshot.software.cudnn
    if has_volta(snapshot) and version and number(version) > LAST_CUDNN:
        yield Finding(
            rule="cudnn-too-new",
            severity="error",
            what=f"cuDNN {version} has no code for sm_70",
            why="the first convolution or batch norm fails: CUDNN_STATUS_EXECUTION_FAILED_CUDART",
            mend=(("A", CUDNN), ("B", LANE_B)),
            source="the wheels' code sections; SciML/SciMLBenchmarks.jl#1736",
        )


def cuda_13(snapshot: Snapshot) -> Iterator[Finding]:
    """CUDA 13 can't target Volta, though nvidia-smi of R580 says 13.0."""
    versions = {
        "torch": snapshot.software.torch_cuda,
        "the container": snapshot.container_cuda,
    }
    for owner, version in versions.items():
        if has_volta(snapshot) and number(version, 1) >= (13,):
            yield Finding(
                rule="cuda-13",
                severity="error" if owner == "torch" else "warning",
                what=f"{owner} has CUDA {version}",
                why="CUDA 12.9 is the last that makes code for sm_70; that nvidia-smi says 'CUDA "
                "Version: 13.0' tells what the driver speaks, not what runs here",
                mend=(*torch_lanes(), ("all", "in a container: an image of CUDA 12")),
                source="CUDA 13.0 release notes; mudler/LocalAI#9948",
            )


def packages(snapshot: Snapshot) -> Iterator[Finding]:
    """Installed libraries have GPU code, and none for sm_70."""
    if not has_volta(snapshot):
        return
    for one in snapshot.software.packages:
        built_for = [int(name.removeprefix("sm_")) for name in one.architectures or ()]
        # A library for old cards alone brings PTX, which the driver compiles for newer ones.
        if built_for and min(built_for) > 70 and one.name != "torch":
            yield Finding(
                rule="package-without-sm70",
                severity="warning",
                what=f"{one.name} {one.version} has code for "
                f"{', '.join(one.architectures or ())}, none for sm_70",
                why="its kernels fail on a V100; octavolt never calls them",
                mend=(("all", f"pip uninstall {one.name}, or an older release for CUDA 12"),),
                source="the code sections of its libraries",
            )
        elif one.name == "flash-attn":
            yield Finding(
                rule="flash-attn",
                severity="warning",
                what="flash-attn is installed",
                why="it needs Ampere: 'FlashAttention only supports Ampere GPUs or newer'. torch's "
                "memory-efficient attention has kernels for sm_70, and octavolt uses those",
                mend=(("all", "pip uninstall flash-attn, if another program trips over it"),),
                source="Dao-AILab/flash-attention#148",
            )


def precision(snapshot: Snapshot) -> Iterator[Finding]:
    """bf16 on a card that has no units for it."""
    if has_volta(snapshot) and snapshot.software.precision == "bf16":
        yield Finding(
            rule="bf16",
            severity="error",
            what="bf16 is asked for",
            why="a V100 has no units for it and emulates it, slower than fp32, though "
            "torch.cuda.is_bf16_supported() says True",
            mend=(("all", "--precision fp16, or leave it away"),),
            source="pytorch#124996, facebookresearch/dinov3#74",
        )


def compiler(snapshot: Snapshot) -> Iterator[Finding]:
    """Triton makes no tensor-core code for Volta from 3.3 on."""
    software = snapshot.software
    if has_volta(snapshot) and software.compiles and number(software.triton, 2) >= (3, 3):
        yield Finding(
            rule="triton-without-tensor-cores",
            severity="warning",
            what=f"torch.compile is asked for, with Triton {software.triton}",
            why="its matrix products run without tensor cores on sm_70, so max-autotune may choose "
            "slow ones; element-wise fusion is fine",
            mend=(("all", "leave torch.compile off, or never with mode='max-autotune'"),),
            source="triton-lang/triton#5066, #5099",
        )


def nccl(snapshot: Snapshot) -> Iterator[Finding]:
    """Versions of NCCL with known faults on V100s."""
    version = number(snapshot.software.nccl)
    if len(snapshot.cards) < 2 or not version or not any(map(is_volta, snapshot.cards)):
        return
    known: dict[tuple[int, ...], tuple[str, str]] = {
        (2, 22, 3): ("crashes over NVLink on SXM2", "ggml-org/llama.cpp#24489"),
        (2, 28, 9): ("was seen to crash in ncclCommInitRank on V100s", "NVIDIA/nccl#2159"),
        (2, 7, 6): ("is 30 % slower than 2.5.7 on eight V100s", "NVIDIA/nccl#378"),
    }
    fault, source = known.get(version, ("", ""))
    if version < (2, 11):
        fault, source = "corrupts data silently when an NVLink is down", "NVIDIA/nccl#596"
    if fault:
        yield Finding(
            rule="nccl",
            severity="warning",
            what=f"NCCL {snapshot.software.nccl} {fault}",
            why="several cards exchange their gradients by it",
            mend=(("A", "pip install 'nvidia-nccl-cu12==2.27.5'"),),
            source=source,
        )
