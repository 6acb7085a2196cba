"""`octavolt evaluate`."""

import json
from typing import Annotated, Any

import typer


def evaluate(
    run: Annotated[str, typer.Argument(help="A run folder, its name or latest; or a network.")],
    data: Annotated[
        str | None, typer.Option(help="Other data with the same classes; otherwise the run's.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="train, val, test or all; otherwise test, else val, or all of other data."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="With a network: published ones, a file, a folder or a run."),
    ] = None,
    task: Annotated[str | None, typer.Option(help="With a network: one of its tasks.")] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Of other data: the column of texts.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="Of other data: the column of labels.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Tokens between windows over a long text.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, fp16, bf16 or fp32.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure a trained network on a split of its data or on other data."""
    import os

    from octavolt import ranks
    from octavolt.contract import Reading
    from octavolt.data import MODALITIES
    from octavolt.devices import set_up, this_machine
    from octavolt.evaluate import evaluate as evaluated
    from octavolt.networks.opened import open_network
    from octavolt.ranks import Rank, joined
    from octavolt.report import report_run

    rank = ranks.given(os.environ) or Rank()
    machine = this_machine(precision=precision, rank=rank)
    set_up(machine)
    with joined(rank, machine.device):
        opened = open_network(run, machine, MODALITIES, weights=weights, task=task)
        said = Reading(text_column=text_column, label_column=label_column, stride=stride)
        result = evaluated(opened, data=data, split=split, reading=said, rank=rank)
    if not rank.leads:
        return
    if opened.run is not None:
        report_run(opened.run)
    if as_json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print_table(result)


def print_table(result: dict[str, Any]) -> None:
    """Print the metrics, then each class, the worst first."""
    from rich.console import Console

    from octavolt.cli.show import metric_value, percent, short_name
    from octavolt.report.intervals import wilson_interval
    from octavolt.report.words import METRICS
    from octavolt.units import counted, format_seconds

    metrics, primary = result["metrics"], result["primary_metric"]
    console = Console()
    interval = ""
    if primary in METRICS and METRICS[primary].counts_samples:
        count = metrics["samples"]
        around = wilson_interval(round(metrics[primary] * count), count)
        interval = f" (95 % interval {percent(around.low)} to {percent(around.high)})"
    console.print(
        f"{short_name(primary)} {metric_value(primary, metrics[primary])}{interval} on "
        f"{counted(metrics['samples'], result['sample'])} of {result['data']}, {result['split']}, "
        f"in {format_seconds(result['seconds'])}",
        highlight=False,
    )
    # Of five classes or fewer the true one is always among the five likeliest.
    has_six = len(result["classes"]) > 5
    others = [
        f"{short_name(name)} {metric_value(name, value)}"
        for name, value in metrics.items()
        if isinstance(value, float) and name != primary and (name != "top5_fraction" or has_six)
    ]
    others += [
        f"{value:,} {name}"
        for name, value in metrics.items()
        if isinstance(value, int) and name != "samples"
    ]
    console.print(", ".join(others), highlight=False)
    rows = metrics.get("per_class", [])
    if rows:
        print_classes(console, rows, result["sample"])
    if "boxes_per_class" in metrics:
        print_boxes(console, metrics["boxes_per_class"])


def print_classes(console: Any, rows: list[dict[str, Any]], sample: str) -> None:
    """Print a table of the classes, the worst first."""
    from rich.table import Table

    from octavolt.cli.show import percent

    table = Table(box=None, header_style="bold")
    table.add_column("class")
    for name in (f"{sample}s", "precision", "recall", "F1"):
        table.add_column(name, justify="right")
    ordered = sorted(rows, key=lambda one: (one["f1"] is None, one["f1"]))
    for row in ordered[:MOST_ROWS]:
        shares = (row["precision"], row["recall"], row["f1"])
        shown = ["-" if one is None else percent(one) for one in shares]
        table.add_row(row["class"], str(row["samples"]), *shown)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"and {len(rows) - MOST_ROWS} better ones: --json", highlight=False)


def print_boxes(console: Any, rows: list[dict[str, Any]]) -> None:
    """Print a table of the classes of boxes, the worst first; those without boxes are left out."""
    from rich.table import Table

    from octavolt.cli.show import percent

    table = Table(box=None, header_style="bold")
    table.add_column("class")
    for name in ("boxes", "AP50", "AP", "recall"):
        table.add_column(name, justify="right")
    known = sorted((one for one in rows if one["ap50"] is not None), key=lambda one: one["ap50"])
    for row in known[:MOST_ROWS]:
        shares = [percent(row[name]) for name in ("ap50", "ap", "ar_100")]
        table.add_row(row["class"], str(row["boxes"]), *shares)
    console.print(table)
    if len(known) > MOST_ROWS:
        console.print(f"and {len(known) - MOST_ROWS} better ones: --json", highlight=False)


MOST_ROWS = 30
