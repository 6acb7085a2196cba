"""Run folders of each task of text, with made numbers."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from octavolt.contract import Reading
from octavolt.tasks import TASKS
from octavolt.tasks.classification import UNIT
from tests.report.made_run import RECIPE, made_evaluation, made_run, write, write_lines

TEXT_TASKS = tuple(name for name, task in TASKS.items() if task.modality == "text")
CONTEXT = "Nothing of it is here. " * 100 + "The bridge was opened in 1884. " + "Nor here. " * 100
INTENTS = ("card_arrival", "exchange_rate", "top_up_failed", "pin_blocked", "refund")


def made_text_run(
    folder: Path,
    task: str,
    *,
    reading: Reading | None = None,
    recipe: dict[str, Any] | None = None,
    evaluated: bool = True,
) -> Path:
    """Make a run folder of a task of text; delete or alter what a test is about."""
    classes = INTENTS if task.endswith("classification") else ()
    settings = {
        "network": "bert-base",
        "task": task,
        "data": "./texts",
        "reading": asdict(reading or Reading(tokenizer="train", length=128)),
        "recipe": {**asdict(RECIPE), "epochs": 2, **(recipe or {})},
    }
    run = made_run(folder, classes=classes, epochs=2, evaluated=False, settings=settings)
    write_lines(run / "epochs.jsonl", [epoch(task, 1), epoch(task, 2)])
    if evaluated:
        write(run / "evaluation.json", {"schema": 1, "evaluations": [text_evaluation(task)]})
    return run


def epoch(task: str, number: int) -> dict[str, Any]:
    """Return an epoch with the validation of a task."""
    metrics = made_metrics(task)
    return {
        "epoch": number,
        "step": 45 * number,
        "seconds": 22.5 * number,
        "train_loss": 2.0 / number,
        "val": {key: one for key, one in metrics.items() if isinstance(one, int | float)},
        "best": True,
        "metric": TASKS[task].primary_metric,
    }


def text_evaluation(
    task: str, *, data: str = "./texts", mistakes: Sequence[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return an entry of evaluation.json; language models have no mistakes."""
    language = TASKS[task].unit == "token"
    shown = [] if language else [made_text_mistake(task, number) for number in range(4)]
    return {
        "data": data,
        "split": "test",
        "task": task,
        "sample": "text",
        "primary_metric": TASKS[task].primary_metric,
        "metrics": made_metrics(task),
        "classes": list(INTENTS) if task.endswith("classification") else [],
        "seconds": 1.0,
        "samples_per_second": 200.0,
        "mistakes": list(shown if mistakes is None else mistakes),
    }


def made_metrics(task: str) -> dict[str, Any]:
    """Return what the task's own score says of made sums."""
    if task == "text-classification":
        metrics: dict[str, Any] = made_evaluation(INTENTS, 180)["metrics"]
        return metrics
    score = TASKS[task].new_score(INTENTS)
    score.load(torch.tensor(SUMS[task]))
    return score.result()


SUMS = {
    # Hits, texts that have it and texts that are said to, by label; texts, right ones, loss.
    "multi-label-text-classification": [
        *(30, 20, 10, 5, 9),
        *(40, 30, 25, 9, 10),
        *(33, 35, 20, 8, 12),
        *(180, 110, 180 * UNIT // 4),
    ],
    # Questions, matches and F1 of those with an answer, then without; windows, loss.
    "question-answering": [150, 90, 120 * UNIT, 30, 21, 21 * UNIT, 400, 700 * UNIT],
    # Texts, tokens, hits, loss of 2 nats a token.
    "masked-language-modeling": [180, 4_000, 1_500, 8_000 * UNIT],
    # Windows, tokens, bytes, loss of 3 nats a token.
    "causal-language-modeling": [96, 12_000, 50_000, 36_000 * UNIT],
    "dialogue": [96, 12_000, 50_000, 36_000 * UNIT],
}


def made_text_mistake(task: str, number: int) -> dict[str, Any]:
    """Return a mistake with its text."""
    asked = task == "question-answering"
    return {
        "name": f"test.csv:{number + 2}",
        "label": "1884" if asked else INTENTS[number],
        "predicted": "no answer" if asked else INTENTS[number + 1],
        "probability": 0.98 - 0.04 * number,
        "text": f"When was it opened?\n\n{CONTEXT}" if asked else f"Where is card {number}?",
    }
