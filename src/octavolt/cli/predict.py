"""`octavolt predict`."""

import csv
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from octavolt.cli.boxes_out import (
    asker,
    drawing,
    in_place,
    limit_boxes,
    new_folder,
    refuse_flags,
    tiled_pictures,
    write_boxes,
    write_coco,
)
from octavolt.cli.named import on_one_line, shown
from octavolt.cli.video_out import Wish, are_videos, predict_videos
from octavolt.errors import OctavoltError, UnknownNameError

FORMS = ("table", "jsonl", "csv", "coco")


def predict(
    run: Annotated[str, typer.Argument(help="A run folder, its name or latest; or a network.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders, patterns, or -: standard input. For a detector also a video, a "
            "camera's number or an address, such as rtsp://."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="With a network: published ones, a file, a folder or a run."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="table, jsonl, csv, or coco for boxes.")
    ] = "table",
    text: Annotated[
        list[str] | None, typer.Option("--text", help="A text itself; may be said repeatedly.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="With a network: one of its tasks.")] = None,
    top: Annotated[int, typer.Option(min=1, max=5, help="Labels shown for each.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Files together in one pass.")] = 32,
    score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Least score of a box; 0.25.")
    ] = None,
    overlap: Annotated[
        float | None, typer.Option(min=0, max=1, help="Above it the less sure of two boxes goes.")
    ] = None,
    max_boxes: Annotated[
        int | None, typer.Option(min=1, help="Boxes of a picture at most.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--classes", help="Boxes of these alone, commas between.")
    ] = None,
    tile: Annotated[
        bool, typer.Option("--tile", help="Look for boxes in parts of large pictures, too.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Play a video at its speed; drop frames if need be.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="A new folder for pictures or a video with boxes drawn.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, fp16, bf16 or fp32.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Answer pictures or texts. Exit status 0 only if all were answered."""
    if form not in FORMS:
        raise UnknownNameError("format", form, FORMS)
    if not inputs and not text:
        raise OctavoltError(
            "Name files, folders or patterns to predict, or - for standard input; --text TEXT is a "
            "text itself."
        )
    from octavolt.contract import Input
    from octavolt.data import MODALITIES
    from octavolt.devices import set_up, this_machine
    from octavolt.networks.opened import open_network
    from octavolt.predict import predict as predicted

    machine = this_machine(precision=precision)
    set_up(machine)
    opened = open_network(run, machine, MODALITIES, weights=weights, task=task)
    sample = MODALITIES[opened.task.modality].sample
    if text and opened.task.modality != "text":
        raise OctavoltError(f"--text is for networks of texts; {opened.entry.name} takes pictures.")
    limits = {"score": score, "overlap": overlap, "most": max_boxes, "classes": only}
    chosen = {name: value for name, value in limits.items() if value is not None}
    wish = Wish(live=live, output=output, form=form, as_json=as_json)
    if opened.task.modality != "boxes":
        refuse_flags(opened, chosen, tile=tile, live=live, output=output, coco=form == "coco")
    else:
        limit_boxes(opened, chosen)
        if are_videos(inputs or [], live=live):
            ask = asker(opened, tile=tile, batch_size=batch)
            predict_videos(opened, ask, inputs or [], wish)
            return
    said = [Input(name=f"text {place}", content=one) for place, one in enumerate(text or (), 1)]
    results = predicted(opened, inputs or [], batch_size=batch, others=said)
    if tile:
        results = tiled_pictures(opened, inputs or [], batch_size=batch)
    if output is not None:
        results = drawing(results, opened, new_folder(output, inputs or []), inputs or [])
    writers: dict[str, Callable[..., tuple[int, int]]] = {
        "table": write_table,
        "jsonl": write_lines,
        "csv": write_csv,
        "coco": partial(write_coco, opened.classes),
    }
    total, failed = (write_document if as_json else writers[form])(results, top)
    if total == 0:
        raise OctavoltError(f"No {sample} was found in {', '.join(inputs or ())}.")
    if failed:
        print(f"octavolt: {failed} of {total} could not be answered.", file=sys.stderr)
        sys.exit(2)


def write_table(results: Iterable[Any], top: int) -> tuple[int, int]:
    """Print a line a file as it is answered."""
    total = failed = 0
    for one in results:
        total += 1
        if one.answer is None:
            failed += 1
            print(f"{on_one_line(one.file)}: {one.error}", file=sys.stderr)
            continue
        if "boxes" in one.answer:
            said = [in_place(each) for each in one.answer["boxes"]] or ["no box"]
            print(f"{on_one_line(one.file)}  {',  '.join(said)}", flush=True)
            continue
        said = [f"{words(each)} {100 * each['probability']:.1f} %" for each in best(one, top)]
        print(f"{on_one_line(one.file)}  {',  '.join(said)}", flush=True)
    return total, failed


def write_lines(results: Iterable[Any], top: int) -> tuple[int, int]:
    """Print a JSON line a file; a file without an answer has its error."""
    total = failed = 0
    for one in results:
        total += 1
        failed += one.answer is None
        print(json.dumps(row_of(one, top), ensure_ascii=False), flush=True)
    return total, failed


def write_document(results: Iterable[Any], top: int) -> tuple[int, int]:
    """Print one JSON document."""
    rows = [row_of(one, top) for one in results]
    print(json.dumps({"predictions": rows}, ensure_ascii=False))
    return len(rows), sum("error" in row for row in rows)


def write_csv(results: Iterable[Any], top: int) -> tuple[int, int]:
    """Print a CSV table."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    first = next(results := iter(results), None)
    if first is None:
        return 0, 0
    if first.answer is not None and "boxes" in first.answer:
        return write_boxes(writer, chain([first], results))
    results = chain([first], results)
    places = range(1, top + 1)
    names = [f"{what}_{place}" for place in places for what in ("label", "probability")]
    writer.writerow(["file", *names, "error"])
    total = failed = 0
    for one in results:
        total += 1
        failed += one.answer is None
        cells: list[Any] = []
        for each in [] if one.answer is None else best(one, top):
            cells += [words(each), f"{each['probability']:.6f}"]
        cells += [""] * (2 * top - len(cells))
        writer.writerow([shown(one.file), *cells, one.error or ""])
    return total, failed


def row_of(one: Any, top: int) -> dict[str, Any]:
    """Return one prediction, ready for JSON."""
    if one.answer is None:
        return {"file": shown(one.file), "error": one.error}
    if "boxes" in one.answer:
        return {"file": shown(one.file), **one.answer}
    return {"file": shown(one.file), **one.answer, "top": best(one, top)}


def best(one: Any, top: int) -> list[dict[str, Any]]:
    """Return the likeliest answers; of several hidden tokens the likeliest of each."""
    hidden = one.answer.get("hidden", [])
    if len(hidden) == 1:
        return list(hidden[0]["top"][:top])
    return list(one.answer.get("top", [])[:top]) or [each["top"][0] for each in hidden[:top]]


def words(answer: dict[str, Any]) -> str:
    """Return a label, a token or an answer, on one line."""
    if "label" in answer:
        return on_one_line(str(answer["label"]))
    if "token" in answer:
        return repr(str(answer["token"]))
    return on_one_line(str(answer["answer"])) or "(no answer)"
