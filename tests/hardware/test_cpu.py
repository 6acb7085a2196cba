from pathlib import Path

import pytest

from octavolt.hardware.cpu import (
    memory_bytes,
    physical_cores,
    processor_flags,
    processor_name,
    read_cpu,
)

MACHINES = Path(__file__).parent / "machines"
XEON, DESKTOP, BOARD = (
    (MACHINES / f"{name}.txt").read_text() for name in ("amx-xeon", "avx2-desktop", "arm-board")
)


def machine(root: Path, files: dict[str, str]) -> Path:
    """Return a folder that looks like the root of a Linux machine."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("text", "count"), [(XEON, 4), (DESKTOP, 8), (BOARD, 4)], ids=["xeon", "desktop", "board"]
)
def test_two_hyperthreads_are_one_core(text: str, count: int) -> None:
    assert physical_cores(text, set(range(16))) == count


def test_equal_core_numbers_in_two_sockets_are_two_cores() -> None:
    assert physical_cores(XEON, {0, 2}) == 2


def test_cores_that_the_scheduler_withholds_do_not_count() -> None:
    # 0 and 8 are the two threads of one core.
    assert physical_cores(DESKTOP, {0, 8, 1}) == 2


def test_without_a_list_of_processors_the_allowed_ones_are_cores() -> None:
    assert physical_cores("", {0, 1, 2}) == 3


def test_units_for_bf16_are_seen() -> None:
    assert {"amx_bf16", "avx512_bf16"} <= processor_flags(XEON)
    assert not {"amx_bf16", "avx512_bf16"} & processor_flags(DESKTOP)


def test_what_only_some_processors_can_do_does_not_count() -> None:
    assert "amx_bf16" not in processor_flags(XEON.replace("amx_bf16 ", "", 1))


def test_an_arm_board_tells_features() -> None:
    assert "asimd" in processor_flags(BOARD)


def test_names() -> None:
    assert processor_name(XEON) == "Intel(R) Xeon(R) Platinum 8480+"
    assert processor_name(BOARD).endswith(" processor")


def test_a_container_of_two_processors_on_eight_cores_has_two(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/cpuinfo": DESKTOP,
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "200000 100000\n",
        },
    )
    assert read_cpu(root=root, allowed=lambda: set(range(16))).physical_cores == 2


def test_a_container_of_half_a_processor_has_one(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/cpuinfo": DESKTOP,
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "50000 100000\n",
        },
    )
    assert read_cpu(root=root, allowed=lambda: set(range(16))).physical_cores == 1


def test_a_system_without_proc_has_the_allowed_cores(tmp_path: Path) -> None:
    cpu = read_cpu(root=tmp_path, allowed=lambda: {0, 1})
    assert (cpu.physical_cores, cpu.flags) == (2, frozenset())


def test_memory_is_the_installed_one_without_a_limit(tmp_path: Path) -> None:
    root = machine(tmp_path, {"proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n"})
    assert memory_bytes(root=root) == 16 * 2**20


def test_memory_is_the_containers_if_less(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       16384 kB\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "1048576\n",
        },
    )
    assert memory_bytes(root=root) == 2**20


def test_this_machine_has_a_core_and_a_gibibyte() -> None:
    assert read_cpu().physical_cores >= 1
    assert memory_bytes() > 2**29
