"""The device that this process computes on, set up as the policy says."""

import ctypes
from dataclasses import dataclass

import torch

from octavolt.errors import OctavoltError
from octavolt.hardware.cpu import Cpu, read_cpu
from octavolt.hardware.policy import Hardware, Policy, attention_kernels, on_cpu, on_gpu, policy
from octavolt.ranks import Rank

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of glibc's malloc.h."""
NARROW = {"fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how this process computes."""

    device: torch.device
    hardware: Hardware
    policy: Policy
    threads: int
    """Of this process: for arithmetic on a CPU, for reading pictures beside a GPU."""

    @property
    def ahead(self) -> int:
        """How many batches are read ahead.

        On a CPU none: reading then takes all cores between steps, and never slows the arithmetic,
        whose threads wait for each other.
        """
        return 3 if self.device.type == "cuda" else 0

    def autocast(self) -> torch.autocast:
        """Return the context in which networks run."""
        return torch.autocast(
            self.device.type,
            NARROW.get(self.policy.precision, torch.bfloat16),
            enabled=self.policy.autocast,
        )


def gpu_count() -> int:
    """Return how many GPUs torch can see."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def this_machine(
    *, precision: str = "auto", rank: Rank | None = None, threads: int | None = None
) -> Machine:
    """Return this process's device: its own GPU where there is one, otherwise the CPU."""
    rank = rank or Rank()
    cpu = read_cpu()
    if gpu_count() > 0:
        device = torch.device("cuda", rank.local_number % gpu_count())
        hardware = gpu_hardware(cpu, device)
    else:
        device, hardware = torch.device("cpu"), on_cpu(cpu)
    chosen = policy(hardware, precision)
    return Machine(
        device=device,
        hardware=hardware,
        policy=chosen,
        threads=threads or max(1, chosen.threads // rank.local_count),
    )


def gpu_hardware(cpu: Cpu, device: torch.device) -> Hardware:
    """Return what a GPU is; raise if this torch has no kernels for it."""
    name = torch.cuda.get_device_name(device)
    major, minor = torch.cuda.get_device_capability(device)
    built_for = torch.cuda.get_arch_list()
    same_major = [arch for arch in built_for if arch.startswith(f"sm_{major}")]
    if built_for and not same_major and f"compute_{major}{minor}" not in built_for:
        raise OctavoltError(
            f"{name} is sm_{major}{minor}; torch {torch.__version__} holds kernels for "
            f"{', '.join(built_for)} only. Install one that has them: pip install 'torch==2.10.0' "
            "'torchvision==0.25.0'"
        )
    return on_gpu(cpu, name, (major, minor))


def set_up(machine: Machine) -> None:
    """Set the process-wide switches as the policy says. For verbs, not for libraries."""
    torch.set_num_threads(machine.threads)
    if machine.device.type == "cpu":
        keep_freed_memory()
    if machine.device.type == "cuda":
        torch.cuda.set_device(machine.device)
        torch.backends.cuda.matmul.allow_tf32 = machine.policy.tf32
        torch.backends.cudnn.allow_tf32 = machine.policy.tf32
        torch.backends.cudnn.benchmark = True
        allow_attention(attention_kernels(machine.policy.attention))


def allow_attention(kernels: frozenset[str]) -> None:
    """Let scaled dot-product attention on GPUs take these kernels and no others."""
    torch.backends.cuda.enable_flash_sdp("flash" in kernels)
    torch.backends.cuda.enable_mem_efficient_sdp("mem_efficient" in kernels)
    torch.backends.cuda.enable_cudnn_sdp("cudnn" in kernels)
    torch.backends.cuda.enable_math_sdp("math" in kernels)


def keep_freed_memory() -> None:
    """Keep what tensors free for the next ones, where the C library is glibc.

    It hands blocks of over 32 MiB back at once, so that each step would have all its pages zeroed
    anew by the system. The peak stays what it is.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(M_MMAP_MAX, 0)
    mallopt(M_TRIM_THRESHOLD, -1)
