"""The page of one run."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from octavolt.errors import OctavoltError
from octavolt.report import plots, resolved, verdict
from octavolt.report.evaluated import MOST_CLASSES_OPEN, EvaluationView, evaluation_view
from octavolt.report.files import RunFiles
from octavolt.report.words import NOTHING, metric


@functools.cache
def templates() -> jinja2.Environment:
    """Return the templates; all that they show is escaped."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("octavolt.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def run_page(run: RunFiles) -> str:
    """Return the page of a run as HTML."""
    return templates().get_template("run.html").render(run_view(run))


def run_view(run: RunFiles) -> dict[str, Any]:
    """Return what the template of a run shows."""
    evaluations = tuple(
        evaluation_view(found, number) for number, found in enumerate(run.evaluations, start=1)
    )
    found = verdict.main_evaluation(run)
    main = main_view(evaluations, (found.data, found.split) if found else None)
    return {
        "run": run,
        "network": str(run.settings.values.get("network", NOTHING)),
        "data": str(run.settings.values.get("data", NOTHING)),
        "started": str(run.environment.get("started", "")),
        "task": task_words(str(run.settings.values.get("task") or "")),
        "main": main,
        "main_anchor": main.anchor if main else None,
        "validation": verdict.validation_fact(run),
        "facts": verdict.facts(run),
        "remarks": verdict.remarks(run),
        "curves": curves(run),
        # Figures of the main one stand in the verdict: it needs no section for them alone.
        "evaluations": [one for one in evaluations if one.has_details or one is not main],
        "most_classes_open": MOST_CLASSES_OPEN,
        "most_curves": len(plots.CLASS_COLOURS),
        "command": resolved.command(
            run.settings, run.folder, has_gpus=bool(run.environment.get("gpus"))
        ),
        "settings": resolved.listed(resolved.applying(run.settings.values)),
        "classes": run.settings.values.get("classes") or (),
        "environment": resolved.listed(run.environment),
    }


def task_words(task: str) -> str:
    """Return a task as people write it: 'multi-label text classification'."""
    return task.replace("-", " ").replace("multi label", "multi-label")


def main_view(
    evaluations: tuple[EvaluationView, ...], named: tuple[str, str] | None
) -> EvaluationView | None:
    """Return the evaluation of that data and split."""
    return next((one for one in evaluations if (one.data, one.split) == named), None)


def curves(run: RunFiles) -> list[Mapping[str, Any]]:
    """Return the plots for which there are numbers, each with its title and key."""
    name = verdict.primary_metric(run)
    has_val = any(row.val and name in row.val for row in run.epochs)
    has_val_loss = any(plots.val_loss(row) is not None for row in run.epochs)
    unit = run.nouns.unit
    found: list[Mapping[str, Any]] = []
    if run.steps or has_val_loss:
        key = [("first", "training (faint: each logged step)")] if run.steps else []
        key += [("second", "validation")] if has_val_loss else []
        title = loss_title(run.settings.values.get("task"), unit)
        found.append(curve(title, plots.loss_plot(run.steps, run.epochs), key))
    if has_val:
        key = [("second", "validation"), ("ring", "best epoch, whose weights were kept")]
        found.append(curve(metric(name).label, plots.metric_plot(run.epochs, name), key))
    if run.steps:
        found.append(curve("Learning rate", plots.learning_rate_plot(run.steps), []))
    if any(row.gradient_norm is not None for row in run.steps):
        found.append(curve("Gradient norm", plots.gradient_plot(run.steps), []))
    if verdict.samples_per_second(run) is not None:
        title = f"{unit.capitalize()}s a second"
        found.append(curve(title, plots.speed_plot(run.steps, unit), []))
    if verdict.waiting_fraction(run) is not None:
        found.append(curve("Waiting for data", plots.waiting_plot(run.steps), []))
    return found


def loss_title(task: object, unit: str) -> str:
    """Return the name of the loss, with its unit and what it is a mean over but for a sample."""
    if task == "object-detection":  # nats of classes and squares of distances together
        return "Loss"
    return "Loss in nats a token" if unit == "token" else "Loss in nats"


def curve(title: str, plot: object, key: list[tuple[str, str]]) -> Mapping[str, Any]:
    """Return a plot with its title and the key to its colours."""
    return {"title": title, "plot": plot, "key": key}


def write_page(path: Path, page: str) -> Path:
    """Write a page aside and put it in its place in one move; returns the path."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_text(page, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OctavoltError(
            f"Can't write {path}: {error.strerror}. Give a folder of yours with --output."
        ) from error
    return path
