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
        str | None, typer.Option(help="With a network: imagenet, a file or a run.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, fp16, bf16 or fp32.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure a trained network on a split of its data or on other data."""
    import os

    from octavolt import ranks
    from octavolt.devices import set_up, this_machine
    from octavolt.evaluate import evaluate as evaluated
    from octavolt.networks.opened import open_network
    from octavolt.ranks import Rank, joined
    from octavolt.report import report_run

    rank = ranks.given(os.environ) or Rank()
    machine = this_machine(precision=precision, rank=rank)
    set_up(machine)
    with joined(rank, machine.device):
        opened = open_network(run, machine, weights=weights)
        result = evaluated(opened, data=data, split=split, rank=rank)
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
    from rich.table import Table

    from octavolt.cli.show import percent
    from octavolt.report.intervals import wilson_interval
    from octavolt.units import counted, format_seconds

    metrics = result["metrics"]
    console = Console()
    count = metrics["pictures"]
    interval = wilson_interval(round(metrics["top1_fraction"] * count), count)
    console.print(
        f"top-1 {percent(metrics['top1_fraction'])} (95 % interval {percent(interval.low)} to "
        f"{percent(interval.high)}) on {counted(count, 'picture')} of {result['data']}, "
        f"{result['split']}, in {format_seconds(result['seconds'])}",
        highlight=False,
    )
    console.print(
        f"top-5 {percent(metrics['top5_fraction'])}, macro F1 {percent(metrics['macro_f1'])}, "
        f"calibration error {percent(metrics['calibration_error'])}, "
        f"{metrics['negative_log_likelihood_nats']:.3f} nats",
        highlight=False,
    )
    table = Table(box=None, header_style="bold")
    table.add_column("class")
    for name in ("pictures", "precision", "recall", "F1"):
        table.add_column(name, justify="right")
    rows = sorted(metrics["per_class"], key=lambda one: (one["f1"] is None, one["f1"]))
    for row in rows[:MOST_ROWS]:
        shares = (row["precision"], row["recall"], row["f1"])
        shown = ["-" if one is None else percent(one) for one in shares]
        table.add_row(row["class"], str(row["pictures"]), *shown)
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(f"and {len(rows) - MOST_ROWS} better ones: --json", highlight=False)


MOST_ROWS = 30
