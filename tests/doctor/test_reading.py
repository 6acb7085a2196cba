import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from octavolt.doctor.binaries import FATBIN_MAGIC, architectures
from octavolt.doctor.cards import read_cards
from octavolt.doctor.machine import existing, module_version, nvidia_devices, read_machine
from octavolt.doctor.snapshot import to_json
from octavolt.doctor.software import dotted_cudnn, read_software


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class FakeNvml:
    """Answers as the binding of NVIDIA's management library does on two cards."""

    NVMLError = NvmlError
    NVML_ERROR_LIBRARY_NOT_FOUND = 12

    def __init__(self, **fails: int) -> None:
        self.fails = fails
        self.is_open = False

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetCount": 2,
            "nvmlSystemGetDriverVersion": b"580.65.06",
            "nvmlDeviceGetName": "NVIDIA Tesla V100-SXM2-16GB",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=2**34, used=2**20),
            "nvmlDeviceGetComputeRunningProcesses": [1, 2],
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetRetiredPages": [7],
            "nvmlDeviceGetRetiredPagesPendingStatus": 0,
            "nvmlDeviceGetMaxPcieLinkGeneration": 3,
            "nvmlDeviceGetCurrPcieLinkWidth": 8,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetPowerManagementLimit": 250_000,
            "nvmlDeviceGetPowerManagementDefaultLimit": 300_000,
            "nvmlDeviceGetPowerManagementLimitConstraints": (150_000, 300_000),
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetFieldValues": [SimpleNamespace(value=SimpleNamespace(uiVal=84))],
            "nvmlDeviceGetClockInfo": 382,
            "nvmlDeviceGetMaxClockInfo": 1530,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x88,
            "nvmlDeviceGetPersistenceMode": 0,
            "nvmlDeviceGetNvLinkState": 1,
        }

        def answer(*arguments: Any) -> Any:
            if name in self.fails:
                raise NvmlError(self.fails[name])
            if name == "nvmlDeviceGetHandleByIndex":
                return arguments[0]
            if name == "nvmlDeviceGetPciInfo":
                return SimpleNamespace(pciDeviceId=0x1DB110DE, busId=f"00000000:0{arguments[0]}:00")
            if name == "nvmlDeviceGetNvLinkRemotePciInfo":
                return SimpleNamespace(busId=f"00000000:0{1 - arguments[0]}:00")
            return answers.get(name)

        return answer


def test_all_that_the_driver_tells_is_read() -> None:
    driver, cards, why = read_cards(FakeNvml())
    assert (driver, why, len(cards)) == ("580.65.06", None, 2)
    one = cards[0]
    assert (one.name, one.pci_id) == ("Tesla V100-SXM2-16GB", "10de:1db1")
    assert (one.memory_bytes, one.used_bytes, one.processes) == (2**34, 2**20, 2)
    assert (one.ecc, one.retired_pages, one.retirement_pending) == (True, 2, False)
    assert (one.pcie_generation, one.pcie_width, one.widest_pcie) == (3, 8, 16)
    assert (one.power_limit_watts, one.default_limit_watts) == (250.0, 300.0)
    assert (one.lowest_limit_watts, one.highest_limit_watts) == (150.0, 300.0)
    assert (one.core_celsius, one.memory_celsius) == (61, 84)
    assert (one.clock_megahertz, one.highest_clock_megahertz) == (382, 1530)
    assert one.throttled_by == ("hardware slowdown", "power brake")
    assert one.persistence is False
    assert [link.peer for link in one.links] == [1] * 6
    assert [link.peer for link in cards[1].links] == [0] * 6


def test_what_a_driver_does_not_tell_stays_open() -> None:
    fails = dict.fromkeys(
        (
            "nvmlDeviceGetFieldValues",
            "nvmlDeviceGetRetiredPages",
            "nvmlDeviceGetNvLinkState",
            "nvmlDeviceGetPowerManagementLimitConstraints",
        ),
        3,
    )
    _, cards, why = read_cards(FakeNvml(**fails))
    assert why is None
    assert (cards[0].memory_celsius, cards[0].retired_pages, cards[0].links) == (None, None, ())
    assert cards[0].lowest_limit_watts is None


@pytest.mark.parametrize(("value", "why"), [(12, None), (18, "error 18")])
def test_no_library_is_no_driver_and_another_error_is_told(value: int, why: str | None) -> None:
    assert read_cards(FakeNvml(nvmlInit=value)) == (None, (), why)


def test_a_card_that_is_lost_while_it_is_asked_is_told() -> None:
    assert read_cards(FakeNvml(nvmlDeviceGetMemoryInfo=15)) == (None, (), "error 15")


def entry(kind: int, architecture: int, size: int = 24) -> bytes:
    header = struct.pack("<HHIQIIHHI", kind, 0, 64, size, 0, 0, 0, 0, architecture)
    return header.ljust(64, b"\0") + b"x" * size


def fat(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", FATBIN_MAGIC, 1, 16, len(body)) + body


def library(section: bytes, name: bytes = b".nv_fatbin") -> bytes:
    """Return an ELF file with that section."""
    names = b"\0.shstrtab\0" + name + b"\0"
    at = 64
    table = at + len(section) + len(names)
    rows = [
        (0, 0, 0, 0),
        (1, 3, at + len(section), len(names)),
        (11, 1, at, len(section)),
    ]
    header = b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + struct.pack("<Q", table)
    header = header.ljust(58, b"\0") + struct.pack("<HHH", 64, len(rows), 1)
    sections = b"".join(
        struct.pack("<IIQQQQ", one, kind, 0, 0, offset, size).ljust(64, b"\0")
        for one, kind, offset, size in rows
    )
    return header + section + names + sections


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    return path


def test_architectures_of_machine_code_are_read_and_those_of_ptx_are_not(tmp_path: Path) -> None:
    section = fat(entry(2, 70), entry(1, 90)) + b"\0" * 8 + fat(entry(2, 75))
    assert architectures(written(tmp_path, library(section))) == {"sm_70", "sm_75"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF\x02",
        b"no library" * 100,
        library(b"", name=b".text"),
        library(fat(entry(2, 70)))[:100],
        library(struct.pack("<IHHQ", FATBIN_MAGIC, 1, 0, 0)),
        library(struct.pack("<IHHQ", FATBIN_MAGIC, 1, 16, 2**62)),
        b"\x7fELF\x02" + b"\xff" * 200,
    ],
    ids=range(8),
)
def test_files_that_hold_none_or_are_damaged_give_none(content: bytes, tmp_path: Path) -> None:
    assert architectures(written(tmp_path, content)) == set()


def test_torch_here_has_code_for_volta_if_it_has_any() -> None:
    software = read_software(scan=False)
    assert software.torch is not None
    assert software.torch_error is None
    assert not software.architectures or "sm_70" in software.architectures


@pytest.mark.parametrize(("number", "version"), [(91002, "9.10.2"), (8902, "8.9.2"), (None, None)])
def test_cudnn_s_number_is_a_version(number: int | None, version: str | None) -> None:
    assert dotted_cudnn(number) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun", "580.65.06"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.44.01  Rel", "590.44.01"),
        ("", None),
    ],
)
def test_the_module_s_version_is_read(text: str, version: str | None) -> None:
    assert module_version(text) == version


def machine_below(root: Path) -> None:
    for name, vendor, device, kind in (
        ("0000:06:00.0", "0x10de", "0x1db1", "0x030200"),
        ("0000:07:00.0", "0x10de", "0x1af1", "0x068000"),  # a switch
        ("0000:08:00.0", "0x8086", "0x1234", "0x030000"),
    ):
        folder = root / "sys/bus/pci/devices" / name
        folder.mkdir(parents=True)
        for file, text in (("vendor", vendor), ("device", device), ("class", kind)):
            (folder / file).write_text(f"{text}\n")
    (root / "proc/driver/nvidia").mkdir(parents=True)
    (root / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.44.01  Release Build\n"
    )
    for node in ("node0", "node1"):
        (root / "sys/devices/system/node" / node).mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 1024 kB\n")


def test_the_bus_and_the_kernel_module_are_read_without_a_driver(tmp_path: Path) -> None:
    machine_below(tmp_path)
    assert nvidia_devices(tmp_path) == ("10de:1db1",)
    seen = read_machine(tmp_path / "not/yet/there", quick=True, root=tmp_path)
    assert (seen.open_module, seen.driver) == (True, "590.44.01")
    assert (seen.numa_nodes, seen.memory_bytes) == (2, 2**20)
    assert seen.free_disk_bytes is not None
    assert seen.shared_memory_bytes is None
    assert existing(tmp_path / "not/yet/there") == tmp_path


def test_a_snapshot_of_this_machine_tells_no_names(tmp_path: Path) -> None:
    """Neither host nor user nor path stands in it."""
    import getpass
    import platform

    text = str(to_json(read_machine(tmp_path, quick=True)))
    assert str(tmp_path) not in text
    assert str(Path.home()) not in text
    for name in (platform.node(), getpass.getuser()):
        assert len(name) < 5 or name not in text
