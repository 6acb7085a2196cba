"""`octavolt predict`."""

import csv
import json
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Annotated, Any

import typer

from octavolt.errors import OctavoltError, UnknownNameError

FORMS = ("table", "jsonl", "csv")


def predict(
    run: Annotated[str, typer.Argument(help="A run folder, its name or latest; or a network.")],
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Files, folders, patterns, or -: standard input.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="With a network: published ones, a file, a folder or a run."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="table, jsonl or csv.")] = "table",
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
    limit_boxes(opened, {name: value for name, value in limits.items() if value is not None})
    said = [Input(name=f"text {place}", content=one) for place, one in enumerate(text or (), 1)]
    results = predicted(opened, inputs or [], batch_size=batch, others=said)
    writers = {"table": write_table, "jsonl": write_lines, "csv": write_csv}
    total, failed = (write_document if as_json else writers[form])(results, top)
    if total == 0:
        raise OctavoltError(f"No {sample} was found in {', '.join(inputs or ())}.")
    if failed:
        print(f"octavolt: {failed} of {total} could not be answered.", file=sys.stderr)
        sys.exit(2)


def limit_boxes(opened: Any, said: dict[str, Any]) -> None:
    """Set which boxes a detector keeps; of other networks nothing may be said about boxes."""
    from dataclasses import replace

    from octavolt.tasks.object_detection import SURE

    if opened.task.modality != "boxes":
        if said:
            raise OctavoltError(
                "--score, --overlap, --max-boxes and --classes are for detectors; "
                f"{opened.entry.name} finds no boxes. Leave them away."
            )
        return
    if "classes" in said:
        names = [one.strip() for one in said["classes"].split(",") if one.strip()]
        for name in names:
            if name not in opened.classes:
                raise UnknownNameError("class", name, opened.classes)
        said["classes"] = tuple(opened.classes.index(name) for name in names)
    opened.network.limits = replace(opened.network.limits, **{"score": SURE} | said)


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


def write_boxes(writer: Any, results: Iterable[Any]) -> tuple[int, int]:
    """Print a row a box; a picture without any has one row."""
    writer.writerow(["file", "label", "score", "xmin", "ymin", "xmax", "ymax", "error"])
    total = failed = 0
    for one in results:
        total += 1
        failed += one.answer is None
        boxes = one.answer["boxes"] if one.answer else []
        for each in boxes:
            row = [shown(one.file), each["label"], f"{each['score']:.6f}", *each["box"], ""]
            writer.writerow(row)
        if not boxes:
            writer.writerow([shown(one.file), *[""] * 6, one.error or ""])
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


def in_place(box: dict[str, Any]) -> str:
    """Return a box on one line: its label, its score and its corners in pixels."""
    corners = " ".join(f"{side:.0f}" for side in box["box"])
    return f"{on_one_line(str(box['label']))} {100 * box['score']:.0f} % ({corners})"


def words(answer: dict[str, Any]) -> str:
    """Return a label, a token or an answer, on one line."""
    if "label" in answer:
        return on_one_line(str(answer["label"]))
    if "token" in answer:
        return repr(str(answer["token"]))
    return on_one_line(str(answer["answer"])) or "(no answer)"


def shown(file: str) -> str:
    """Return a file name that can be printed, whatever bytes it holds."""
    return file.encode("utf-8", "backslashreplace").decode("utf-8")


def on_one_line(file: str) -> str:
    """Return a file name that keeps to its line, and leaves the terminal as it is."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown(file)
    )
