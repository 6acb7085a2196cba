"""Evaluation: the task's metrics over a split, in one pass that keeps sums only."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from octavolt import ranks
from octavolt.contract import (
    DataSet,
    Examples,
    Making,
    Mistake,
    Network,
    Reading,
    Samples,
    Score,
    Task,
)
from octavolt.data import MODALITIES, lasting
from octavolt.data.loader import Loader
from octavolt.data.order import evaluation_batches
from octavolt.data.relabel import joined, relabelled
from octavolt.devices import Machine
from octavolt.errors import OctavoltError
from octavolt.networks.opened import Opened
from octavolt.ranks import Rank
from octavolt.runs import SCHEMA, read_fields, read_json, write_json
from octavolt.tasks.object_detection import Detections

BATCH_SIZES = {"cpu": 32, "cuda": 128}
"""Boundaries of batches are fixed, so that on any number of ranks each batch is the same."""
MOST_MISTAKES = 24


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What a pass over a split gave."""

    score: Score
    mistakes: tuple[Mistake, ...]
    """The most confident ones, the surest first."""
    seconds: float

    @property
    def metrics(self) -> dict[str, Any]:
        """Return the metrics, ready for JSON."""
        return self.score.result()


@torch.inference_mode()
def score_split(
    network: Network,
    examples: Examples,
    loader: Loader,
    machine: Machine,
    *,
    task: Task,
    classes: Sequence[str],
    rank: Rank,
) -> Scored:
    """Return the score of all ranks together; the same figures on any number of them."""
    started = time.monotonic()
    score = task.new_score(classes)
    mistakes: list[Mistake] = []
    places = evaluation_batches(
        len(examples),
        batch_size=examples.evaluation_batch_size or BATCH_SIZES[machine.device.type],
        rank=rank.number,
        ranks=rank.count,
        lengths=examples.lengths,
    )
    network.eval()
    for loaded in loader.batches(examples, places):
        batch = loaded.batch.to(machine.device)
        with machine.autocast():
            outputs = network(*batch.inputs)
        decoded = network.decode(outputs)
        # Boxes are dropped by their scores, and what is no number is less than none.
        check_numbers(decoded if isinstance(decoded, Tensor) else [outputs, decoded])
        score.update(decoded, batch)
        wrong = task.mistakes(decoded, batch, loaded.places.indices, classes)
        mistakes = surest(mistakes + wrong)
    sums = score.sums()
    if score.adds:
        ranks.add_up(sums)
    else:
        sums = torch.cat(ranks.gathered(sums))
    score.load(sums)
    everyones = [one for some in ranks.gathered(mistakes) for one in some]
    return Scored(
        score=score, mistakes=tuple(surest(everyones)), seconds=time.monotonic() - started
    )


def check_numbers(outputs: Any) -> None:
    """Raise if outputs are no numbers, or infinite: then nothing can be scored.

    The greatest tells: it is infinite or no number if one is. What is masked is minus infinity.
    """
    if isinstance(outputs, list | tuple):
        for one in outputs:
            check_numbers(one)
    elif isinstance(outputs, Detections):
        check_numbers(outputs.scores)
    elif isinstance(outputs, Tensor) and outputs.numel() and not outputs.amax().isfinite():
        raise OctavoltError(
            "The training went astray: what the network says is no longer a finite number. Train "
            "anew with a tenth of the --learning-rate, --clip 1, or --precision fp32."
        )


def surest(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Return the most confident mistakes; equal ones in the order of the data."""
    return sorted(mistakes, key=lambda one: (-one.probability, one.index))[:MOST_MISTAKES]


def chosen_split(data: DataSet, asked: str | None, *, others: bool) -> tuple[str, Samples]:
    """Return the samples to evaluate on, and their split's name.

    Without a wish it is 'test', or 'val' where there is none; of other data than the run's, 'all'.
    """
    if asked is None:
        asked = "all" if others else "test" if "test" in data.splits else "val"
    if asked == "all":
        return asked, joined([*data.splits.values()])
    if asked not in data.splits:
        raise OctavoltError(
            f"{data.source} has no split '{asked}'. It has: {', '.join(data.splits)}, and all."
        )
    return asked, data.splits[asked]


def evaluate(
    opened: Opened,
    *,
    data: str | None = None,
    split: str | None = None,
    reading: Reading | None = None,
    rank: Rank | None = None,
) -> dict[str, Any]:
    """Return the metrics of a network on a split, and add them to its run's evaluation.json.

    `reading` tells how other data than the run's are read; of it, `stride` counts for both.
    """
    rank = rank or Rank()
    machine, modality = opened.machine, MODALITIES[opened.task.modality]
    settings = read_json(opened.run / "settings.json") if opened.run else {}
    source = data or settings.get("data")
    if source is None:
        raise OctavoltError("Say what to evaluate on: --data DATA.")
    others = lasting(source) != settings.get("data")
    asked = reading or Reading()
    if not others and (asked.text_column or asked.label_column):
        raise OctavoltError(
            "--text-column and --label-column tell how other data are read; these are the run's "
            "own, whose columns its settings name. Leave them away."
        )
    found = modality.open(
        source,
        task=opened.task.name,
        seed=settings.get("seed", 0),
        reading=asked if others else replace(opened.preparation.reading, stride=asked.stride),
    )
    if settings.get("skip_damaged") and not others:
        checked = modality.check(found, threads=machine.threads, progress=lambda _done, _all: None)
        found = checked.usable(found)
    found = relabelled(found, opened.classes)
    chosen, samples = chosen_split(found, split, others=others)
    making = Making(split=chosen, threads=machine.threads, stride=asked.stride)
    examples = opened.preparation.examples(samples, making)
    with Loader(threads=machine.threads, ahead=machine.ahead) as loader:
        scored = score_split(
            opened.network,
            examples,
            loader,
            machine,
            task=opened.task,
            classes=opened.classes,
            rank=rank,
        )
    result = {
        "data": lasting(source),
        "split": chosen,
        "task": opened.task.name,
        "sample": opened.task.sample,
        "primary_metric": opened.task.primary_metric,
        "metrics": scored.metrics,
        "classes": list(opened.classes),
        "precision": machine.policy.precision,
        "seconds": scored.seconds,
        "samples_per_second": len(samples) / scored.seconds,
        "mistakes": [shown(one, examples) for one in scored.mistakes],
    }
    if opened.run is not None and rank.leads:
        add_evaluation(opened.run, result)
    return result


def add_evaluation(run: Path, result: dict[str, Any]) -> None:
    """Write a result into the run, in place of an older one on the same data and split."""
    path = run / "evaluation.json"
    older = read_fields(path, evaluations=list)["evaluations"] if path.exists() else []
    kept = [
        one for one in older if (one["data"], one["split"]) != (result["data"], result["split"])
    ]
    write_json(path, {"schema": SCHEMA, "evaluations": [*kept, result]})


def shown(mistake: Mistake, examples: Examples) -> dict[str, Any]:
    """Return a mistake as people see it, with the sample."""
    return {
        "name": examples.name(mistake.index),
        "label": mistake.label,
        "predicted": mistake.predicted,
        "probability": mistake.probability,
        **(
            examples.show(mistake.index)
            if mistake.marks is None
            else examples.show_marked(mistake.index, mistake.marks)
        ),
    }
