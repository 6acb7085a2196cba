"""What is wrong with the machine around the cards: memory, disk, cores."""

from collections.abc import Iterator

from octavolt.doctor.finding import Finding, is_volta
from octavolt.doctor.snapshot import Snapshot
from octavolt.units import format_bytes

LITTLE_SHARED_MEMORY = 2**30
LITTLE_DISK = 2 * 2**30
SLOW_DISK = 50e6
NEEDED_JPEGS = 1200
"""A second, for one V100 that trains ResNet-50 in fp16: NVIDIA/DeepLearningExamples."""


def shared_memory(snapshot: Snapshot) -> Iterator[Finding]:
    """/dev/shm is small: NCCL and loaders of others die of it."""
    size = snapshot.shared_memory_bytes
    if len(snapshot.cards) > 1 and size is not None and size < LITTLE_SHARED_MEMORY:
        yield Finding(
            rule="little-shared-memory",
            severity="error",
            what=f"/dev/shm has {format_bytes(size)}",
            why="NCCL exchanges by it between processes: 'Bus error', or 'No space left on device'",
            mend=(("all", "docker run --shm-size=8g, or --ipc=host"),),
            source="NVIDIA's NCCL guide, shared memory",
        )


def disk(snapshot: Snapshot) -> Iterator[Finding]:
    """No room, or a slow disk."""
    free, speed = snapshot.free_disk_bytes, snapshot.disk_bytes_per_second
    if free is not None and free < LITTLE_DISK:
        yield Finding(
            rule="little-disk",
            severity="error" if free < LITTLE_DISK / 10 else "warning",
            what=f"{format_bytes(free)} free where runs are written",
            why="a checkpoint of BERT-large with its optimizer has 4 GiB, of MobileNetV2 40 MB",
            mend=(("all", "make room, or --output on another disk"),),
            source="the file system",
        )
    if speed is not None and speed < SLOW_DISK:
        yield Finding(
            rule="slow-disk",
            severity="warning",
            what=f"the disk writes {speed / 1e6:.0f} MB/s",
            why="checkpoints hold the training up",
            mend=(("all", "--output on a local disk"),),
            source="64 MiB written and flushed",
        )


def decoding(snapshot: Snapshot) -> Iterator[Finding]:
    """Too few cores to feed the cards with pictures."""
    rate, count = snapshot.jpegs_per_second, sum(map(is_volta, snapshot.cards))
    if not rate or not count:
        return
    able, needed = rate * snapshot.physical_cores, NEEDED_JPEGS * count
    if able < needed:
        cores = -(-needed // rate)
        yield Finding(
            rule="few-cores",
            severity="warning",
            what=f"{snapshot.physical_cores} cores decode {able:,.0f} pictures/s, {count} V100s "
            f"train on {needed:,} (ResNet-50, fp16)",
            why="the cards would wait for pictures",
            mend=(("all", f"--cache, smaller pictures, or {cores:,.0f} cores"),),
            source="measured here; NVIDIA/DALI#1834",
        )
