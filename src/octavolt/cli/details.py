"""All figures of one GPU or host, as `octavolt list gpus NAME` and docs/gpus.md show them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from octavolt.errors import OctavoltError
from octavolt.hardware.chips import find_chip
from octavolt.hardware.hosts import Host, find_host
from octavolt.hardware.mesh import Matrix
from octavolt.hardware.rings import rings
from octavolt.units import GIB


def details(table: str, name: str) -> dict[str, Any]:
    """Return all figures of one GPU or host, with units in their names."""
    if table == "gpus":
        chip = find_chip(name)
        rates = {
            f"{arithmetic}_flops_per_second": rate
            for arithmetic, rate in chip.peak_flops_per_second.items()
        }
        one = {
            key: getattr(chip, key)
            for key in chip.__slots__
            if key not in {"peak_flops_per_second", "source", "confidence"}
        }
        one |= {
            "capability": ".".join(map(str, chip.capability)),
            "peer_link": chip.peer_link and asdict(chip.peer_link),
            "host_link": asdict(chip.host_link),
        }
        return one | rates | {"confidence": chip.confidence, "source": chip.source}
    if table == "hosts":
        host = find_host(name)
        all_reduce = [asdict(rings(host, count)) | {"gpu_count": count} for count in counts(host)]
        return asdict(host) | {"all_reduce": all_reduce}
    raise OctavoltError(f"A single one can be listed of gpus and hosts, not of {table}.")


def counts(host: Host) -> list[int]:
    """Return of how many GPUs the exchange is shown: all of one host's, and two full hosts."""
    return [*range(2, host.gpu_count + 1), 2 * host.gpu_count]


def joined(host: Host) -> str:
    """Return how the GPUs of a host are joined, with the bandwidth of their rings."""
    if host.gpu_count == 1:
        return "alone"
    found = rings(host, host.gpu_count)
    return f"{found.hop}, {found.wire_bytes_per_second / 1e9:.0f} GB/s"


def lines_of(one: Mapping[str, Any]) -> list[str]:
    """Return a line a figure, as people read it; a matrix has a line a row."""
    lines = []
    for key, value in one.items():
        if key == "links":
            lines += [] if value is None else ["NVLinks between GPUs", *matrix(value)]
        elif key == "all_reduce":
            lines += ["", "All-reduce", *table(value)]
        elif key != "between_processors" or value is not None:
            lines.append(f"{labelled(key):<22}{figure(key, value)}")
    return lines


def matrix(links: Matrix) -> list[str]:
    """Return a line a GPU, under a line of their numbers."""
    head = "       " + " ".join(str(place) for place in range(len(links)))
    return [
        head,
        *(
            f"  {place:>3}  " + " ".join(str(count or "-") for count in row)
            for place, row in enumerate(links)
        ),
    ]


def table(found: list[dict[str, Any]]) -> list[str]:
    """Return a line for each number of GPUs: the best way, its wires, and what NCCL gets."""
    lines = ["  GPUs  slowest hop  rings  wires GB/s  NCCL GB/s  GPUs of a host"]
    for one in found:
        gpus = one["gpus"]
        first_of_all = gpus == tuple(range(len(gpus)))
        listed = f"0 to {len(gpus) - 1}" if first_of_all and len(gpus) > 2 else spaced(gpus)
        lines.append(
            f"  {one['gpu_count']:>4}  {one['hop']:<11}  {one['ring_count']:>5}"
            f"  {one['wire_bytes_per_second'] / 1e9:>10.4g}"
            f"  {one['bytes_per_second'] / 1e9:>9.3g}  {listed}"
        )
    return lines


def spaced(numbers: tuple[int, ...]) -> str:
    """Return numbers with spaces between."""
    return " ".join(map(str, numbers))


def labelled(key: str) -> str:
    """Return what a figure is called beside its unit."""
    ends = {
        "_bytes_per_second": "_bandwidth",
        "_flops_per_second": "_rate",
        "_hertz": "_clock",
        "_bytes": "",
        "_watts": "",
    }
    for end, called in ends.items():
        if key.endswith(end):
            return key.removesuffix(end).replace("_", " ") + called.replace("_", " ")
    return key.replace("_", " ")


SCALES = (
    ("_flops_per_second", 1e12, " x 10^12 flops/s"),
    ("_bytes_per_second", 1e9, " GB/s"),
    ("_bytes", GIB, " GiB"),
    ("_hertz", 1e6, " MHz"),
    ("_watts", 1, " W"),
)
"""Endings of a figure's key, what it is divided by for people, and its unit then."""


def figure(key: str, value: Any) -> str:
    """Return a figure with its unit, which its key names."""
    if value is None:
        return "no source says"
    if isinstance(value, Mapping):
        return f"{value['name']}, {value['bytes_per_second'] / 1e9:.1f} GB/s each way"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    for ending, scale, unit in SCALES:
        if key.endswith(ending):
            return f"{value / scale:g}{unit}"
    return str(value)
