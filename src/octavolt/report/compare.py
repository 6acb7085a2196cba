"""Several runs beside one another."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes

from octavolt.errors import OctavoltError
from octavolt.report import verdict
from octavolt.report.curves import numbers
from octavolt.report.files import EpochRow, RunFiles, read_run
from octavolt.report.intervals import Interval, wilson_interval
from octavolt.report.page import templates, write_page
from octavolt.report.plots import FEW_POINTS, scaled, value, whole_x
from octavolt.report.resolved import inside
from octavolt.report.svg import COLOURS, RUN_COLOURS, plot
from octavolt.report.words import NOTHING, decimal, metric, shown

SETTINGS = ("network", "task", "data", "weights", "precision")
READING = ("image_size", "tokenizer", "vocabulary_size", "length")
RECIPE = ("batch_size", "learning_rate", "dropout")
COLUMNS = (*SETTINGS, *READING, "epochs", *RECIPE)
NUMBERS = ("image_size", "vocabulary_size", "length", "epochs", *RECIPE)
BITS = "bits_per_byte"
DASHES = ((), (5, 2), (2, 2), (7, 2, 2, 2))
"""Of the lines of runs that share a colour; the page's key names each."""


def comparison_table(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a dictionary a run, ready for JSON: settings, primary metric, time and speed.

    `low` and `high` are the ends of the metric's 95 % interval, None where none is known.
    `samples_per_second` counts what `unit` names.
    """
    return [comparison_row(run) for run in read_runs(folders)]


def compare_runs(folders: Sequence[Path], output: Path) -> Path:
    """Write the comparison of several runs as one page; returns its path."""
    runs = read_runs(folders)
    page = templates().get_template("compare.html").render(comparison_view(runs))
    return write_page(output, page)


def read_runs(folders: Sequence[Path]) -> list[RunFiles]:
    """Return the runs; raises unless there is one at least."""
    if not folders:
        raise OctavoltError("No run was given to compare. Name run folders: octavolt report A B")
    return [read_run(folder) for folder in folders]


def comparison_row(run: RunFiles) -> dict[str, Any]:
    """Return one line of the comparison."""
    values = run.settings.values
    reading, recipe = inside(values, "reading"), inside(values, "recipe")
    return {
        "run": run.name,
        **{key: values.get(key) for key in SETTINGS},
        **{key: reading.get(key) for key in READING},
        "epochs": run.epochs[-1].epoch if run.epochs else 0,
        **{key: recipe.get(key) for key in RECIPE},
        **measured(run),
        "train_seconds": verdict.training_seconds(run),
        "samples_per_second": verdict.samples_per_second(run),
        "unit": run.nouns.unit,
    }


def measured(run: RunFiles) -> dict[str, Any]:
    """Return the primary metric and what it was measured on.

    Without an evaluation it is that of the best epoch, which flatters, and has no interval.
    """
    found = verdict.main_evaluation(run)
    if found is None:
        name, best = verdict.primary_metric(run), verdict.best_epoch(run)
        val = (best.val if best else None) or {}
        return {
            "metric": name,
            "value": val.get(name),
            "split": "val" if val else None,
            "samples": None,
            **ends(None),
            BITS: val.get(BITS),
        }
    name, samples = found.primary_metric, found.metrics.whole("samples")
    share = found.metrics.optional_number(name)
    known = share is not None and metric(name).counts_samples
    return {
        "metric": name,
        "value": share,
        "split": found.split,
        "samples": samples,
        **ends(wilson_interval(round((share or 0.0) * samples), samples) if known else None),
        BITS: found.metrics.optional_number(BITS),
    }


def ends(interval: Interval | None) -> dict[str, float | None]:
    """Return the ends of an interval, None where it isn't known."""
    return {
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def differing(table: Sequence[dict[str, Any]]) -> list[str]:
    """Return the settings in which the runs differ."""
    return [key for key in COLUMNS if len({str(row[key]) for row in table}) > 1]


def comparison_view(runs: Sequence[RunFiles]) -> dict[str, Any]:
    """Return what the template of a comparison shows."""
    table = [comparison_row(run) for run in runs]
    return {
        "rows": [{**row, **in_words(row), "colour": colour(n)} for n, row in enumerate(table)],
        "settings": [key for key in COLUMNS if is_shown(key, table)],
        "numbers": NUMBERS,
        "differing": differing(table),
        "has_intervals": any(row["low"] is not None for row in table),
        "has_bits": any(row["bits_per_byte"] is not None for row in table),
        "metric": ", ".join(dict.fromkeys(metric(row["metric"]).label for row in table)),
        "remarks": remarks(table),
        "plots": comparison_plots(runs),
        "nothing": NOTHING,
    }


def is_shown(key: str, table: Sequence[dict[str, Any]]) -> bool:
    """Whether a setting gets a column: where it applies, and the task only where runs differ."""
    values = {str(row[key]) for row in table}
    return len(values) > 1 or (key != "task" and values != {"None"})


def in_words(row: dict[str, Any]) -> dict[str, str]:
    """Return the measured values of a line as people read them."""
    seconds = row["train_seconds"]
    known = row["low"] is not None
    return {
        "shown": shown(row["metric"], row["value"]),
        "interval": f"{100 * row['low']:.1f} to {100 * row['high']:.1f}" if known else NOTHING,
        "minutes": NOTHING if seconds is None else f"{seconds / 60:.1f}",
        "speed": speed(row["samples_per_second"], row["unit"]),
        "bits": decimal(row["bits_per_byte"]),
    }


def speed(rate: float | None, unit: str) -> str:
    """Return the speed of a training."""
    return NOTHING if rate is None else f"{decimal(rate)} {unit}s"


def colour(number: int) -> dict[str, str]:
    """Return how the line of a run is drawn."""
    dashes = DASHES[number // len(RUN_COLOURS) % len(DASHES)]
    return {
        "name": RUN_COLOURS[number % len(RUN_COLOURS)],
        "dashes": " ".join(map(str, dashes)),
    }


def remarks(table: Sequence[dict[str, Any]]) -> list[str]:
    """Return what to mind in reading the table."""
    found = []
    known = [row for row in table if row["value"] is not None]
    if len({(row["data"], row["split"], row["metric"]) for row in known}) > 1:
        found.append("The runs were measured on different data or splits: don't rank them by this.")
    waiting = [row["run"] for row in table if row["samples"] is None]
    if waiting:
        found.append(f"Not evaluated yet: {', '.join(waiting)}. Do it: octavolt evaluate RUN")
    ends = sorted((row for row in table if row["low"] is not None), key=lambda row: -row["value"])
    if len(ends) > 1 and ends[0]["low"] < ends[1]["high"] and ends[1]["value"] < ends[0]["value"]:
        found.append(
            f"The intervals of {ends[0]['run']} and {ends[1]['run']} overlap: on so few "
            "samples their difference may be chance."
        )
    tokens = {(row["tokenizer"], row["vocabulary_size"], row["data"]) for row in known}
    if len(tokens) > 1 and any(row["metric"] == "perplexity" for row in known):
        found.append("Perplexities of different tokenizers can't be compared; bits a byte can.")
    return found


def comparison_plots(runs: Sequence[RunFiles]) -> list[tuple[str, Markup]]:
    """Return the validation metric of all runs against the epoch and against minutes."""
    name = verdict.primary_metric(runs[0])
    if not any(row.val and name in row.val for run in runs for row in run.epochs):
        return []
    label = metric(name).label
    return [
        (f"{label} against epoch", metric_plot(runs, name, "epoch", lambda row: row.epoch)),
        (
            f"{label} against minutes",
            metric_plot(runs, name, "minutes of training", lambda row: row.seconds / 60),
        ),
    ]


def metric_plot(
    runs: Sequence[RunFiles], name: str, label: str, x: Callable[[EpochRow], float]
) -> Markup:
    """Return the validation metric of all runs, a line each."""
    measured = [[row for row in run.epochs if row.val and name in row.val] for run in runs]

    def draw(axes: Axes) -> None:
        for number, rows in enumerate(measured):
            mark = "o" if len(rows) <= FEW_POINTS else ""
            drawn = RUN_COLOURS[number % len(RUN_COLOURS)]
            dashes = DASHES[number // len(RUN_COLOURS) % len(DASHES)]
            axes.plot(
                numbers([x(row) for row in rows]),
                numbers([value(row, name) for row in rows]),
                color=COLOURS[drawn],
                marker=mark,
                markersize=4,
                dashes=dashes or (1, 0),
            )
        scaled(axes, name, numbers([value(row, name) for rows in measured for row in rows]))
        if label == "epoch":
            whole_x(axes, label)
        axes.set_xlabel(label)

    title = f"{metric(name).label} of validation against {label}"
    return plot(draw, name=label.replace(" ", "-"), title=title)
