"""The processor: its name, what it can do, and how much of it this process may use."""

import os
import platform
import sys
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from octavolt.errors import OctavoltError
from octavolt.hardware import cgroup


@dataclass(frozen=True, kw_only=True, slots=True)
class Cpu:
    """The part of the machine's processors that this process may use."""

    name: str
    flags: frozenset[str]
    """As Linux names them: 'avx2', 'amx_bf16'; on ARM 'asimd'. Empty on other systems."""
    physical_cores: int
    """At least 1. Two hyperthreads are one core; a container's limit counts."""


def allowed_processors() -> Set[int]:
    """Return the numbers of the logical processors that the scheduler gives this process."""
    if sys.platform == "linux":
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def read_cpu(
    *, root: Path = Path("/"), allowed: Callable[[], Set[int]] = allowed_processors
) -> Cpu:
    """Return this process's processor, as Linux tells below `root`; little is told elsewhere."""
    text = cgroup.text_or_empty(root / "proc/cpuinfo")
    limit = cgroup.cpu_limit(root)
    cores = physical_cores(text, allowed())
    return Cpu(
        name=processor_name(text),
        flags=processor_flags(text),
        physical_cores=max(1, min(cores, int(limit) if limit < cores else cores)),
    )


def memory_bytes(*, root: Path = Path("/")) -> int:
    """Return the memory that this process may use: the machine's, or less in a container."""
    installed = installed_bytes(cgroup.text_or_empty(root / "proc/meminfo"))
    return int(min(installed, cgroup.memory_limit_bytes(root)))


def records(cpuinfo: str) -> list[dict[str, str]]:
    """Return the fields of each logical processor in the text of /proc/cpuinfo."""
    blocks = [
        {
            key.strip(): value.strip()
            for key, colon, value in (line.partition(":") for line in block.splitlines())
            if colon
        }
        for block in cpuinfo.split("\n\n")
    ]
    # Some ARM kernels end with a block about the board, which is no processor.
    return [block for block in blocks if block.get("processor", "").isdigit()]


def physical_cores(cpuinfo: str, allowed: Set[int]) -> int:
    """Return the number of different cores among the allowed logical processors."""
    cores = {
        # Where no core is told, as on ARM, each processor is one.
        (one.get("physical id", ""), one.get("core id", f"processor {one['processor']}"))
        for one in records(cpuinfo)
        if int(one["processor"]) in allowed
    }
    return len(cores) or len(allowed)


def processor_flags(cpuinfo: str) -> frozenset[str]:
    """Return what all processors can do: the fields 'flags' or, on ARM, 'Features'."""
    each = [
        frozenset((one.get("flags") or one.get("Features", "")).split()) for one in records(cpuinfo)
    ]
    return frozenset.intersection(*each) if each else frozenset()


def processor_name(cpuinfo: str) -> str:
    """Return the model's name, or the kind of machine where no name is told."""
    names = (one.get("model name", "") for one in records(cpuinfo))
    return next((name for name in names if name), f"{platform.machine()} processor")


def installed_bytes(meminfo: str) -> int:
    """Return the machine's memory, from the text of /proc/meminfo or from the system."""
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        raise OctavoltError(
            "How much memory this machine has can be read on Linux and macOS only. "
            "Run octavolt under WSL, or pass --batch with a number."
        )
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
