"""`octavolt report`."""

import json
from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[str], typer.Argument(help="Run folders, their names or latest.")],
    output: Annotated[
        Path | None, typer.Option(help="Where the comparison of several runs goes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write the report of a run, or compare several in one page."""
    from octavolt.report import compare_runs, comparison_table, report_run
    from octavolt.runs import find_run

    folders = [find_run(one) for one in runs]
    if len(folders) == 1:
        path = report_run(folders[0])
    else:
        path = compare_runs(folders, output or Path("comparison.html"))
    if as_json:
        print(json.dumps({"report": str(path), "runs": comparison_table(folders)}))
        return
    if len(folders) > 1:
        print_comparison(comparison_table(folders))
    print(path)


def print_comparison(rows: list[dict[str, object]]) -> None:
    """Print a row a run."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(
            *[f"{one:.4g}" if isinstance(one, float) else str(one) for one in row.values()]
        )
    Console().print(table)
