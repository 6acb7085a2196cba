"""`octavolt list`."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from octavolt.errors import UnknownNameError

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
        from octavolt.cli.details import details, lines_of

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
        if table in ("gpus", "hosts"):
            from octavolt.cli.details import details

            rows = [details(table, next(iter(row.values()))) for row in rows]
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
    from octavolt.cli.details import joined
    from octavolt.hardware.hosts import HOSTS

    return [
        {
            "host": host.name,
            "gpus": f"{host.gpu_count} x {host.chip}",
            "joined": joined(host),
            "cores": str(host.physical_cores),
            "network": f"{host.network_bytes_per_second / 1e9:.2f} GB/s",
            "sure": host.confidence,
        }
        for host in HOSTS.values()
    ]
