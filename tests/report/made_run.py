"""A run folder as training and evaluation leave it, with made numbers."""

import base64
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from octavolt.contract import Reading, Recipe
from octavolt.tasks.classification import ClassificationScore
from octavolt.tasks.image_classification import ImageBatch

FRUIT = ("Apple", "Avocado", "Banana", "Kiwi", "Lemon", "Lime", "Mango", "Orange", "Pear", "Plum")
RECIPE = Recipe(
    source="Sandler et al. 2018, section 6.1",
    epochs=10,
    batch_size=32,
    optimizer="adamw",
    learning_rate=0.001,
    warmup_epochs=1,
    label_smoothing=0.1,
)


def made_run(
    folder: Path,
    *,
    classes: Sequence[str] = FRUIT,
    pictures: int = 180,
    epochs: int = 10,
    evaluated: bool = True,
    settings: dict[str, Any] | None = None,
) -> Path:
    """Make a run folder that holds everything; delete or alter what a test is about."""
    folder.mkdir(parents=True)
    write(folder / "settings.json", {**made_settings(classes, epochs), **(settings or {})})
    write(folder / "environment.json", ENVIRONMENT)
    write_lines(folder / "steps.jsonl", made_steps(epochs))
    write_lines(folder / "epochs.jsonl", made_epochs(epochs))
    write_lines(folder / "events.jsonl", [{"step": 12, "kind": "saved", "message": "by hand"}])
    write(folder / "damaged.json", [{"file": "Lemon/a.jpg", "problem": "truncated"}])
    if evaluated:
        found = made_evaluation(classes, pictures)
        write(folder / "evaluation.json", {"schema": 1, "evaluations": [found]})
    return folder


def write(path: Path, value: Any) -> None:
    """Write a JSON document."""
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


ENVIRONMENT = {
    "octavolt": "0.1.0",
    "python": "3.11.2",
    "torch": "2.10.0",
    "torchvision": "0.25.0",
    "platform": "Linux x86_64",
    "cpu": "a CPU",
    "cores": 2,
    "threads": 2,
    "gpus": [],
    "started": "2026-11-30T10:15:00+00:00",
}


def made_settings(classes: Sequence[str], epochs: int) -> dict[str, Any]:
    """Return what was resolved."""
    return {
        "schema": 1,
        "octavolt": "0.1.0",
        "network": "mobilenet-v2",
        "task": "image-classification",
        "data": "./fruit",
        "weights": "imagenet",
        "reading": asdict(Reading(image_size=224)),
        "precision": "bf16",
        "seed": 0,
        "processes": 1,
        "batch_size": 32,
        "micro_batch_size": 32,
        "checkpoint_activations": False,
        "classes": list(classes),
        "split_counts": {"train": 1437, "val": 180, "test": 180},
        "recipe": {**asdict(RECIPE), "epochs": epochs},
    }


def made_steps(epochs: int) -> list[dict[str, Any]]:
    """Return 45 logged steps an epoch, of half a second each."""
    random = np.random.default_rng(0)
    last = 45 * epochs
    return [
        {
            "step": step,
            "epoch": (step - 1) // 45 + 1,
            "seconds": 0.5 * step,
            "loss": 0.6 + 1.8 * float(np.exp(-4 * step / last)) + random.normal(0, 0.12),
            "losses": {},
            "learning_rate": 0.001 * min(step / 45, 0.5 + 0.5 * float(np.cos(3.14 * step / last))),
            "gradient_norm": 1.5 + abs(random.normal(0, 0.4)),
            "loss_scale": None,
            "samples_per_second": 64 + random.normal(0, 4),
            "waiting_fraction": abs(random.normal(0.02, 0.01)),
        }
        for step in range(1, last + 1)
    ]


def made_epochs(epochs: int) -> list[dict[str, Any]]:
    """Return epochs that become better, but for the last."""
    shares = [0.95 - 0.45 * float(np.exp(-epoch / 2.5)) for epoch in range(1, epochs)]
    return [
        {
            "epoch": epoch,
            "step": 45 * epoch,
            "seconds": 22.5 * epoch,
            "train_loss": 2.4 - share,
            "val": {"top1_fraction": share, "negative_log_likelihood_nats": 1.6 - 1.4 * share},
            "best": epoch < epochs or epochs == 1,
            "metric": "top1_fraction",
        }
        for epoch, share in enumerate([*shares, 0.9], start=1)
    ]


def made_evaluation(classes: Sequence[str], pictures: int) -> dict[str, Any]:
    """Return what the score says of seeded logits, that mostly favour the true class."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(len(classes), (pictures,), generator=random)
    logits = torch.randn(pictures, len(classes), generator=random)
    logits[torch.arange(pictures), labels] += 3.6
    score = ClassificationScore(classes)
    nothing = torch.zeros(pictures, 3, 1, 1)
    one_hot = torch.nn.functional.one_hot(labels, len(classes)).float()
    score.update(logits, ImageBatch(images=nothing, targets=one_hot, labels=labels))
    return {
        "data": "./fruit",
        "split": "test",
        "task": "image-classification",
        "sample": "picture",
        "primary_metric": "top1_fraction",
        "metrics": score.result(),
        "classes": list(classes),
        "seconds": 1.0,
        "samples_per_second": 200.0,
        "mistakes": [made_mistake(classes, number) for number in range(6)],
    }


def made_mistake(classes: Sequence[str], number: int) -> dict[str, Any]:
    """Return a mistake with a small picture."""
    file = io.BytesIO()
    hue = np.array([40 * number, 200 - 30 * number, 90])
    ramp = np.linspace(0.4, 1, 96)[:, None, None] * np.ones((96, 128, 1))
    Image.fromarray((ramp * hue).astype(np.uint8)).save(file, "JPEG")
    label, predicted = number % len(classes), (number + 1) % len(classes)
    return {
        "name": f"test/{classes[label]}/{classes[label]}_{number:03}.jpg",
        "label": classes[label],
        "predicted": classes[predicted],
        "probability": 0.98 - 0.04 * number,
        "jpeg_base64": base64.b64encode(file.getvalue()).decode(),
    }
