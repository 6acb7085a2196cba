"""What a reader should know first: how good, measured on what, at which speed, and what to mind."""

import math
from dataclasses import dataclass

from octavolt.report.curves import mean, median
from octavolt.report.files import EpochRow, Evaluation, RunFiles
from octavolt.report.words import decimal, metric, nouns, percent, shown
from octavolt.units import counted, format_count, format_seconds

MUCH_WAITING_FRACTION = 0.1
"""From where a faster input would shorten the training noticeably."""
FEW_SAMPLES = 100
DEFAULT_METRIC = "top1_fraction"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A figure with its name."""

    label: str
    value: str
    note: str = ""


def primary_metric(run: RunFiles) -> str:
    """Return the metric that the run is judged by."""
    told = [row.metric for row in run.epochs] + [one.primary_metric for one in run.evaluations]
    return next((name for name in reversed(told) if name), DEFAULT_METRIC)


def main_evaluation(run: RunFiles) -> Evaluation | None:
    """Return the evaluation to judge the run by: of its own data's test split, else the newest."""
    own = [
        one
        for one in run.evaluations
        if one.split == "test" and one.data == run.settings.values.get("data")
    ]
    found = own or list(run.evaluations)
    return found[-1] if found else None


def best_epoch(run: RunFiles) -> EpochRow | None:
    """Return the epoch whose weights were kept, if any was measured."""
    return next((row for row in reversed(run.epochs) if row.best and row.val), None)


def training_seconds(run: RunFiles) -> float | None:
    """Return how long the run trained, or None if nothing was logged."""
    return max((rows[-1].seconds for rows in (run.steps, run.epochs) if rows), default=None)


def samples_per_second(run: RunFiles) -> float | None:
    """Return the median over the logged steps, which a slow first step doesn't move."""
    return median([row.samples_per_second for row in run.steps])


def waiting_fraction(run: RunFiles) -> float | None:
    """Return the mean share of the time that training waited for data."""
    return mean([row.waiting_fraction for row in run.steps])


def facts(run: RunFiles) -> list[Fact]:
    """Return the figures of the training."""
    found = [epochs_fact(run)] if run.epochs else []
    seconds, speed, waiting = training_seconds(run), samples_per_second(run), waiting_fraction(run)
    if seconds is not None:
        note = "minutes:seconds" if ":" in format_seconds(seconds) else ""
        found.append(Fact(label="Training time", value=format_seconds(seconds), note=note))
    if speed is not None:
        note = "median of steps"
        value = f"{decimal(speed)} {run.nouns.unit}s/s"
        found.append(Fact(label="Throughput", value=value, note=note))
    if waiting is not None:
        found.append(Fact(label="Waiting for data", value=percent(waiting), note="of the time"))
    return found


def epochs_fact(run: RunFiles) -> Fact:
    """Return how many epochs were trained and which was the best."""
    recipe = run.settings.values.get("recipe")
    planned = recipe.get("epochs") if isinstance(recipe, dict) else None
    done, best = run.epochs[-1].epoch, best_epoch(run)
    value = str(done) if planned in (None, done) else f"{done} of {planned}"
    return Fact(label="Epochs", value=value, note=f"best: {best.epoch}" if best else "")


def validation_fact(run: RunFiles) -> Fact | None:
    """Return the primary metric of the best epoch on the validation split."""
    best, name = best_epoch(run), primary_metric(run)
    if best is None or not best.val or name not in best.val:
        return None
    label = f"{metric(name).label}, validation"
    return Fact(label=label, value=shown(name, best.val[name]), note=f"epoch {best.epoch}")


def remarks(run: RunFiles) -> list[str]:
    """Return what the reader should mind, with what to do about it."""
    found = [*loss_remarks(run), *evaluation_remarks(run)]
    waiting = waiting_fraction(run)
    if waiting is not None and waiting > MUCH_WAITING_FRACTION:
        cached = run.settings.values.get("task") == "image-classification"
        remedy = ": --cache makes later epochs faster to read" if cached else ""
        found.append(f"Training waited for data {percent(waiting, 0)} of the time{remedy}.")
    if run.damaged:
        noun = f"damaged {run.nouns.sample}"
        found.append(f"{counted(len(run.damaged), noun)} left out: listed below.")
    return found


def loss_remarks(run: RunFiles) -> list[str]:
    """Return a sentence if the loss of a step was no finite number."""
    broken = [row.step for row in run.steps if not math.isfinite(row.loss)]
    if not broken:
        return []
    return [
        f"The loss was not a finite number at {counted(len(broken), 'logged step')}, first at step "
        f"{format_count(broken[0])}: lower the learning rate, or look at that step's "
        f"{run.nouns.sample}s."
    ]


def evaluation_remarks(run: RunFiles) -> list[str]:
    """Return sentences on what the evaluation can't tell."""
    found = main_evaluation(run)
    if found is None:
        return []
    noun = nouns(found.task).sample
    absent = absent_classes(found)
    missing = "box" if found.finds_boxes else noun
    lines = []
    if absent:
        some = ", ".join(absent[:5]) + (", …" if len(absent) > 5 else "")
        lines.append(
            f"{counted(len(absent), 'class', 'classes')} without a {missing} in the {found.split} "
            f"split: {some}. Nothing is known of them."
        )
    samples = found.metrics.whole("samples")
    # Of a language model, tokens are counted: a few texts may hold millions of them.
    if 0 < samples < FEW_SAMPLES and "tokens" not in found.metrics.values:
        lines.append(f"{counted(samples, noun)} are few: {little_proof(found)}.")
    return lines


def absent_classes(found: Evaluation) -> list[str]:
    """Return the classes of which there was nothing to be told or found."""
    if found.finds_boxes:
        rows = found.metrics.rows("boxes_per_class")
        there = {row.text("class") for row in rows if row.whole("boxes")}
        return [name for name in found.classes if name not in there]
    rows = found.metrics.rows("per_class")
    return [row.text("class") for row in rows if row.whole("samples") == 0]


def little_proof(found: Evaluation) -> str:
    """Return what follows from few samples."""
    if metric(found.primary_metric).counts_samples:
        return "the interval says how little they prove"
    return "as many others may give quite another figure"
