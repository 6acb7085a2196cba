"""A run folder of object detection, with made numbers."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from octavolt.contract import Reading
from octavolt.tasks.average_precision import DetectionScore
from tests.report.made_run import RECIPE, made_mistake, made_run, write, write_lines
from tests.tasks.test_average_precision import batch, made

CELLS = ("RBC", "WBC", "Platelets")


def made_box_run(folder: Path, *, classes: Sequence[str] = CELLS, seed: int = 2) -> Path:
    """Make a run folder of object detection; delete or alter what a test is about."""
    settings = {
        "network": "yolov3-tiny",
        "task": "object-detection",
        "data": "./cells",
        "reading": asdict(Reading(image_size=416)),
        "recipe": {**asdict(RECIPE), "epochs": 2, "mosaic_share": 0.5},
    }
    run = made_run(folder, classes=classes, epochs=2, evaluated=False, settings=settings)
    found = box_evaluation(classes, seed)
    short = {key: one for key, one in found["metrics"].items() if isinstance(one, int | float)}
    epochs = [
        {
            "epoch": number,
            "step": 45 * number,
            "seconds": 22.5 * number,
            "train_loss": 9.0 / number,
            "val": {**short, "ap50": 0.3 * number},
            "best": True,
            "metric": "ap50",
        }
        for number in (1, 2)
    ]
    write_lines(run / "epochs.jsonl", epochs)
    write(run / "evaluation.json", {"schema": 1, "evaluations": [found]})
    return run


def box_evaluation(classes: Sequence[str] = CELLS, seed: int = 2) -> dict[str, Any]:
    """Return an entry of evaluation.json on eight pictures with boxes of the first three classes.

    With an odd seed the third has none.
    """
    score = DetectionScore(classes)
    truths, detections = made(seed)
    score.update(detections, batch(truths))
    wrong = {"label": "3 RBC, 1 WBC", "predicted": "1 RBC", "probability": 0.75}
    return {
        "data": "./cells",
        "split": "test",
        "task": "object-detection",
        "sample": "picture",
        "primary_metric": "ap50",
        "metrics": score.result(),
        "classes": list(classes),
        "seconds": 1.0,
        "samples_per_second": 200.0,
        "mistakes": [{**made_mistake(CELLS, number), **wrong} for number in range(2)],
    }
