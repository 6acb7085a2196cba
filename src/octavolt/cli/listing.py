"""`octavolt list`."""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.units import GIB

ONLY_IN_JSON = {"tasks", "weights"}
"""Columns that would break the others apart on a narrow terminal."""
TABLES = ("networks", "data", "tasks", "gpus", "hosts")


def list_tables(
    table: Annotated[
        str, typer.Argument(help="networks, data, tasks, gpus or hosts.")
    ] = "networks",
    name: Annotated[str | None, typer.Argument(help="One GPU or host, with all figures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what there is: networks, data formats, tasks, GPUs, hosts."""
    if table not in TABLES:
        raise UnknownNameError("table", table, TABLES)
    if name is not None:
        one = details(table, name)
        print(json.dumps(one, ensure_ascii=False) if as_json else "\n".join(lines_of(one)))
        return
    found: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "networks": networks,
        "data": formats,
        "tasks": tasks,
        "gpus": gpus,
        "hosts": hosts,
    }
    rows = found[table]()
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    columns = [column for column in rows[0] if column not in ONLY_IN_JSON]
    shown = Table(box=None, header_style="bold")
    for column in columns:
        shown.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        shown.add_row(*[str(row[column]) for column in columns])
    Console(highlight=False).print(shown)


def networks() -> list[dict[str, Any]]:
    """Return a row a network."""
    from octavolt.cli.show import metric_value
    from octavolt.networks import ENTRIES

    return [
        {
            "network": entry.name,
            "tasks": ", ".join(task.name for task in entry.tasks),
            "parameters": f"{entry.parameter_count:,}",
            "multiply_adds": f"{entry.forward_multiply_adds:,}",
            "input": size_of(entry.preprocessing),
            "published": "; ".join(
                f"{metric_value(one.metric, one.value)} ({one.source})" for one in entry.targets
            ),
            "weights": ", ".join(entry.weights),
            "paper": entry.paper,
        }
        for entry in ENTRIES.values()
    ]


def size_of(preprocessing: Any) -> str:
    """Return what a network takes: pixels or tokens."""
    if hasattr(preprocessing, "length"):
        return f"{preprocessing.length} tokens"
    height = getattr(preprocessing, "height", None) or preprocessing.image_size
    width = getattr(preprocessing, "width", None) or preprocessing.image_size
    return f"{height} x {width}"


def formats() -> list[dict[str, Any]]:
    """Return a row a data format."""
    from octavolt.data import FORMATS
    from octavolt.data.boxes.opened import FORMATS as BOX_FORMATS
    from octavolt.data.text.opened import FORMATS as TEXT_FORMATS

    return [
        *[
            {"of": "pictures", "format": one.name, "what": one.description}
            for one in FORMATS.values()
        ],
        *[
            {"of": "boxes", "format": one.name, "what": one.description}
            for one in BOX_FORMATS.values()
        ],
        *[{"of": "text", "format": one.name, "what": one.description} for one in TEXT_FORMATS],
    ]


def tasks() -> list[dict[str, Any]]:
    """Return a row a task."""
    from octavolt.tasks import TASKS

    return [{"task": one.name, "metric": one.primary_metric} for one in TASKS.values()]


def gpus() -> list[dict[str, Any]]:
    """Return a row a GPU of the table."""
    from octavolt.hardware.chips import CHIPS
    from octavolt.units import format_bytes

    return [
        {
            "gpu": chip.name,
            "fp32": in_tera(chip.peak_flops_per_second.get("fp32")),
            "fp16": in_tera(chip.peak_flops_per_second.get("fp16")),
            "memory": format_bytes(chip.memory_bytes),
            "bandwidth": f"{chip.memory_bytes_per_second / 1e9:.0f} GB/s",
            "limit": f"{chip.power_limit_watts:.0f} W",
            "sure": chip.confidence,
        }
        for chip in CHIPS.values()
    ]


def in_tera(flops: float | None) -> str:
    """Return a rate in units of 10**12 a second, or that there is none."""
    return "none" if flops is None else f"{flops / 1e12:g}"


def hosts() -> list[dict[str, Any]]:
    """Return a row a host of the table."""
    from octavolt.hardware.hosts import HOSTS

    return [
        {
            "host": host.name,
            "gpus": f"{host.gpu_count} x {host.chip}",
            "joined": host.joint(host.gpu_count),
            "each": f"{host.bytes_per_second(host.gpu_count) / 1e9:.0f} GB/s",
            "cores": str(host.physical_cores),
            "network": f"{host.network_bytes_per_second / 1e9:.2f} GB/s",
            "sure": host.confidence,
        }
        for host in HOSTS.values()
    ]


def details(table: str, name: str) -> dict[str, Any]:
    """Return all figures of one GPU or host, with units in their names."""
    from dataclasses import asdict

    from octavolt.hardware.chips import find_chip
    from octavolt.hardware.hosts import find_host

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
        return asdict(find_host(name))
    raise OctavoltError(f"A single one can be listed of gpus and hosts, not of {table}.")


def lines_of(one: Mapping[str, Any]) -> list[str]:
    """Return a line a figure, as people read it; a matrix has a line a row."""
    lines = []
    for key, value in one.items():
        label = labelled(key)
        if key == "links" and value is not None:
            lines.append("NVLinks between GPUs")
            lines += ["  " + " ".join(str(count or "-") for count in row) for row in value]
        else:
            lines.append(f"{label:<22}{figure(key, value)}")
    return lines


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
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    for ending, scale, unit in SCALES:
        if key.endswith(ending):
            return f"{value / scale:g}{unit}"
    return str(value)
