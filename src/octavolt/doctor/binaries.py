"""For which GPUs a shared library holds machine code: read from its headers, nothing is run."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

FATBIN_MAGIC = 0xBA55ED50
MACHINE_CODE = 2
"""Kind of a fatbin's entry; 1 is PTX, which a driver compiles when it is loaded."""
MOST_ENTRIES = 200_000


def architectures(path: Path) -> set[str]:
    """Return such names as 'sm_70' of the machine code in a shared library; none if there is none.

    Format: section `.nv_fatbin` of ELF holds fat binaries one after another, each a header (magic,
    version, size) and entries whose header tells kind and architecture.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found: set[str] = set()
            for begin, end in fatbin_sections(data):
                found |= {f"sm_{one}" for one in entries(data, begin, end)}
            return found
    except (OSError, OverflowError, ValueError, struct.error):
        return set()


def fatbin_sections(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where the sections with code for GPUs begin and end in a 64-bit ELF file."""
    if data[:5] != b"\x7fELF\x02":
        return
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<HHH", data, 58)
    (names,) = struct.unpack_from("<Q", data, table + names_at * size + 24)
    for number in range(count):
        at = table + number * size
        (name,) = struct.unpack_from("<I", data, at)
        begin, length = struct.unpack_from("<QQ", data, at + 24)
        if data[names + name : names + name + 11] == b".nv_fatbin\x00":
            yield begin, min(begin + length, len(data))


def entries(data: mmap.mmap, begin: int, end: int) -> Iterator[int]:
    """Yield the architecture of each entry with machine code, such as 70."""
    at = begin
    for _ in range(MOST_ENTRIES):
        if at + 16 > end:
            return
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != FATBIN_MAGIC:
            at += 8  # between two of them there is padding
            continue
        inner, last = at + header, min(at + header + size, end)
        while inner + 32 <= last:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, inner)
            (architecture,) = struct.unpack_from("<I", data, inner + 28)
            if kind == MACHINE_CODE:
                yield architecture
            if entry_header + entry_size == 0:
                break
            inner += entry_header + entry_size
        at = last
