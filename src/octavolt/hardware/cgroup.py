"""Limits that a container or a scheduler such as SLURM sets for this process on Linux."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

V1_FOLDERS = {"cpu": ("cpu", "cpu,cpuacct"), "memory": ("memory",)}


def cpu_limit(root: Path = Path("/")) -> float:
    """Return how many processors' time the process may use; infinity without a limit."""
    limits = [inf]
    for folder in folders(root, "cpu"):
        quota, _, period = text_or_empty(folder / "cpu.max").partition(" ")
        if not quota:
            quota = text_or_empty(folder / "cpu.cfs_quota_us")
            period = text_or_empty(folder / "cpu.cfs_period_us")
        # Without a limit the quota is 'max', or -1 in version 1.
        if quota.strip().isdigit() and period.strip().isdigit():
            limits.append(int(quota) / int(period))
    return min(limits)


def memory_limit_bytes(root: Path = Path("/")) -> float:
    """Return how much memory the process may use; infinity without a limit.

    Version 1 says "no limit" by a number near 2**63, which is as good as infinity.
    """
    limits = [inf]
    for folder in folders(root, "memory"):
        for file in ("memory.max", "memory.limit_in_bytes"):
            text = text_or_empty(folder / file).strip()
            if text.isdigit():
                limits.append(int(text))
    return min(limits)


def folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the control groups that the process is in, innermost first, of both versions."""
    for line in text_or_empty(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", maxsplit=2)
        if controllers == "":
            tops = ["."]
        elif controller in controllers.split(","):
            tops = [*V1_FOLDERS[controller]]
        else:
            continue
        own = Path(path.lstrip("/"))
        for top in tops:
            mount = root / "sys/fs/cgroup" / top
            # A container sees its own group as the root, whatever the path says.
            yield from (mount / part for part in (own, *own.parents))


def text_or_empty(path: Path) -> str:
    """Return the text of a file, or nothing if there is none, as on other systems."""
    try:
        return path.read_text()
    except OSError:
        return ""
