"""`octavolt check`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

MOST_ROWS = 50


def check(
    data: Annotated[str, typer.Argument(help="A folder, a file, hub:NAME or demo.")],
    task: Annotated[
        str | None,
        typer.Option(help="What the data are for; otherwise found by looking. See list tasks."),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column of texts; two with a comma between are a pair.")
    ] = None,
    label_column: Annotated[str | None, typer.Option(help="Column of labels.")] = None,
    label_separator: Annotated[
        str | None, typer.Option(help="What stands between several labels of one text.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the splits that octavolt makes.")] = 0,
    write: Annotated[
        str | None,
        typer.Option(help="Write pictures and boxes anew as coco, voc, yolo or csv; see --output."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="New folder for --write; pictures are linked or copied.")
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Show every fault.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Read a data set and report every fault with file and line. Exit status 2 if any stops."""
    from octavolt.cli.show import Counting
    from octavolt.contract import Reading
    from octavolt.data import MODALITIES, task_of
    from octavolt.hardware.cpu import read_cpu
    from octavolt.tasks import find

    check_flags(write, output)
    chosen = find(task or task_of(data))
    modality = MODALITIES[chosen.modality]
    said = Reading(
        text_column=text_column, label_column=label_column, label_separator=label_separator
    )
    found = modality.open(data, task=chosen.name, seed=seed, reading=said)
    result = modality.check(found, threads=read_cpu().physical_cores, progress=Counting("read"))
    if as_json:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        print_result(found, result, modality.sample, most=None if all_rows else MOST_ROWS)
    if any(one.stops for one in result.faults):
        sys.exit(2)
    if write is not None and output is not None:
        write_anew(result.usable(found), write, output)


def check_flags(write: str | None, output: Path | None) -> None:
    """Raise unless what to write and where are given together, and can be, before all is read."""
    from octavolt.data.boxes.written import check_target
    from octavolt.errors import OctavoltError

    if (write is None) != (output is None):
        given, other = ("--write", "--output") if output is None else ("--output", "--write")
        raise OctavoltError(
            f"{given} needs {other}: --write FORMAT --output FOLDER writes the boxes anew."
        )
    if write is not None and output is not None:
        check_target(output, write)


def write_anew(data: Any, form: str, folder: Path) -> None:
    """Write pictures and boxes in another format, and say on standard error how many."""
    from octavolt.cli.show import Counting
    from octavolt.data.boxes.written import write_boxes
    from octavolt.units import counted

    done = write_boxes(data, folder, form, progress=Counting("written"))
    left_out = counted(done.crowds_left_out, "box around a crowd", "boxes around a crowd")
    more = f"; {left_out} left out, which {form} can't tell" if done.crowds_left_out else ""
    print(
        f"{counted(done.pictures, 'picture')} and {counted(done.boxes, 'box', 'boxes')} written as "
        f"{form} to {folder}{more}.",
        file=sys.stderr,
    )


def print_result(found: Any, result: Any, sample: str, *, most: int | None) -> None:
    """Print what the data set is, its faults as a table, and a verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from octavolt.units import counted, format_count

    console = Console(highlight=False)
    sizes = {name: len(pictures) for name, pictures in found.splits.items()}
    shown = ", ".join(f"{format_count(count)} {name}" for name, count in sizes.items())
    console.print(
        Text(
            f"{counted(sum(sizes.values()), sample)} ({shown}), "
            + (f"{counted(len(found.classes), 'class', 'classes')}, " if found.classes else "")
            + f"format {found.format}"
        )
    )
    for note in found.notes:
        console.print(Text(note))
    if not result.faults:
        console.print("Nothing is wrong with it.")
        return
    table = Table(box=None, header_style="bold")
    table.add_column("", no_wrap=True)
    table.add_column("file", overflow="fold")
    table.add_column("line", justify="right")
    table.add_column("what is wrong", overflow="fold")
    faults = sorted(result.faults, key=lambda one: not one.stops)
    for one in faults[:most]:
        line = "" if one.line is None else str(one.line)
        kind = "error" if one.stops else "warning"
        table.add_row(kind, Text(one.file), line, Text(one.problem))
    console.print(table)
    if most is not None and len(faults) > most:
        console.print(f"and {len(faults) - most} more: --all")
    stopping = sum(one.stops for one in faults)
    console.print(
        f"{counted(stopping, 'fault that stops', 'faults that stop')} a training, "
        f"{counted(len(faults) - stopping, 'warning')}."
    )
