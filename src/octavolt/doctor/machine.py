"""What the machine is without its cards' driver: the bus, the processor, memory, disk."""

import os
import platform
import re
import shutil
import tempfile
import time
from pathlib import Path

from octavolt.doctor.cards import read_cards
from octavolt.doctor.snapshot import Snapshot
from octavolt.doctor.software import read_software
from octavolt.hardware import cgroup
from octavolt.hardware.cpu import memory_bytes, read_cpu

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")
"""Of PCI: VGA controllers, and 3D controllers without a display."""
TOLD_FLAGS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "asimd", "bf16")
WRITTEN_BYTES = 64 * 2**20
DECODED_SECONDS = 0.5


def read_machine(
    folder: Path, *, quick: bool = False, precision: str | None = None, root: Path = Path("/")
) -> Snapshot:
    """Return what this machine is; `quick` leaves out what takes time: speeds, and all packages."""
    cpu = read_cpu(root=root)
    driver, cards, why = read_cards()
    module = cgroup.text_or_empty(root / "proc/driver/nvidia/version")
    place = existing(folder)
    return Snapshot(
        system=f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        container_cuda=os.environ.get("CUDA_VERSION"),
        driver=driver or module_version(module),
        driver_error=why,
        open_module="Open Kernel Module" in module if module else None,
        pci_ids=nvidia_devices(root),
        cards=cards,
        software=read_software(scan=not quick, precision=precision),
        processor=cpu.name,
        processor_flags=tuple(one for one in TOLD_FLAGS if one in cpu.flags),
        physical_cores=cpu.physical_cores,
        numa_nodes=max(1, len([*(root / "sys/devices/system/node").glob("node[0-9]*")])),
        memory_bytes=memory_bytes(root=root),
        shared_memory_bytes=size_of(root / "dev/shm"),
        free_disk_bytes=shutil.disk_usage(place).free,
        disk_bytes_per_second=None if quick else disk_speed(place),
        jpegs_per_second=None if quick else decode_speed(),
    )


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest above it that exists."""
    folder = folder.resolve()
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def module_version(text: str) -> str | None:
    """Return the version of the loaded kernel module, from /proc/driver/nvidia/version."""
    found = re.search(r"Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
    return found[1] if found else None


def nvidia_devices(root: Path) -> tuple[str, ...]:
    """Return vendor and device of NVIDIA's GPUs on the bus, whether or not a driver runs them."""
    found = []
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor = cgroup.text_or_empty(device / "vendor").strip()
        kind = cgroup.text_or_empty(device / "class").strip()
        if vendor == NVIDIA and kind.startswith(DISPLAY_CLASSES):
            identity = cgroup.text_or_empty(device / "device").strip().removeprefix("0x")
            found.append(f"10de:{identity}")
    return tuple(found)


def size_of(folder: Path) -> int | None:
    """Return the size of the file system that a folder is; None if there is no such folder."""
    try:
        return shutil.disk_usage(folder).total
    except OSError:
        return None


def disk_speed(folder: Path) -> float | None:
    """Return the rate at which 64 MiB are written and flushed; None where nothing can be."""
    block = os.urandom(2**20)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            began = time.perf_counter()
            for _ in range(WRITTEN_BYTES // len(block)):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            return WRITTEN_BYTES / (time.perf_counter() - began)
    except OSError:
        return None


def decode_speed() -> float | None:
    """Return how many pictures of 500 x 375 pixels one core decodes and shrinks in a second."""
    try:
        import cv2
        import numpy as np
        import simplejpeg

        cv2.setNumThreads(1)
        # Neither flat nor pure noise: a JPEG of some 60 KB, as ImageNet's are.
        small = np.random.default_rng(0).integers(0, 256, (47, 63, 3), dtype=np.uint8)
        picture = cv2.resize(small, (500, 375), interpolation=cv2.INTER_CUBIC)
        encoded = simplejpeg.encode_jpeg(np.ascontiguousarray(picture), quality=95)
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < DECODED_SECONDS:
            pixels = simplejpeg.decode_jpeg(encoded)
            cv2.resize(pixels, (224, 224), interpolation=cv2.INTER_AREA)
            count += 1
        return count / (time.perf_counter() - began)
    except ImportError:
        return None
