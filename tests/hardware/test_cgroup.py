from math import inf
from pathlib import Path

from octavolt.hardware.cgroup import cpu_limit, memory_limit_bytes


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_no_control_groups_is_no_limit(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path) == memory_limit_bytes(tmp_path) == inf


def test_version_2_says_max_for_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/\n")
    write(tmp_path / "sys/fs/cgroup/cpu.max", "max 100000\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", "max\n")
    assert cpu_limit(tmp_path) == memory_limit_bytes(tmp_path) == inf


def test_the_tightest_of_nested_groups_counts(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/slurm/job7/step0\n")
    write(tmp_path / "sys/fs/cgroup/slurm/job7/step0/cpu.max", "max 100000\n")
    write(tmp_path / "sys/fs/cgroup/slurm/job7/cpu.max", "250000 100000\n")
    write(tmp_path / "sys/fs/cgroup/slurm/cpu.max", "800000 100000\n")
    assert cpu_limit(tmp_path) == 2.5


def test_version_1_is_read(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n")
    write(tmp_path / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n")
    write(tmp_path / "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
    write(tmp_path / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n")
    assert cpu_limit(tmp_path) == 3
    assert memory_limit_bytes(tmp_path) == 4096


def test_version_1_says_minus_one_for_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "3:cpu,cpuacct:/\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert cpu_limit(tmp_path) == inf


def test_a_path_from_outside_the_container_falls_back_to_its_root(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/docker/0123abcd\n")
    write(tmp_path / "sys/fs/cgroup/cpu.max", "100000 100000\n")
    assert cpu_limit(tmp_path) == 1
