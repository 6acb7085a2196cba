"""Settings and environment as the page lists them."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavolt.report.rows import Row
from octavolt.report.words import NOTHING, nouns

FLAGS = {
    "data": "--data",
    "weights": "--weights",
    "task": "--task",
}
READING_FLAGS = {
    "image_size": "--image-size",
    "text_column": "--text-column",
    "label_column": "--label-column",
    "label_separator": "--label-separator",
    "tokenizer": "--tokenizer",
    "vocabulary_size": "--vocabulary-size",
    "length": "--length",
    "stride": "--stride",
    "whole_words": "--whole-words",
}
LATER_FLAGS = {
    "precision": "--precision",
    "seed": "--seed",
    "checkpoint_activations": "--checkpoint-activations",
    "recipe_name": "--recipe",
}
RECIPE_FLAGS = {
    "epochs": "--epochs",
    "batch_size": "--batch",
    "optimizer": "--optimizer",
    "learning_rate": "--learning-rate",
    "dropout": "--dropout",
}
LISTED_ELSEWHERE = ("schema", "classes")
OF_CLASSIFIED_PICTURES = ("mixup_alpha", "crop_scale_min")
OF_BOXES = (
    "mosaic_share",
    "expand_max",
    "box_crop",
    "scale_jitter",
    "color_jitter",
    "multi_scale",
    "box_loss",
)
OF_LABELS = ("label_smoothing", "class_weights")
OF_STEPS = ("step_epochs", "step_factor")
OWN = "the network's own"


def command(settings: Row, folder: Path, *, has_gpus: bool) -> str:
    """Return a command line that repeats the run: its settings file has what has no flag."""
    values = applying(settings.values)
    words = ["octavolt", "train", str(values.get("network", ""))]
    words += flags(FLAGS, values)
    words += flags(READING_FLAGS, inside(values, "reading"))
    words += flags(LATER_FLAGS, values)
    if values.get("processes", 1) != 1:
        words += flag_words("--gpus" if has_gpus else "--processes", values.get("processes"))
    words += flags(RECIPE_FLAGS, inside(settings.values, "recipe"))
    words += ["--settings", str(folder / "settings.json")]
    return shlex.join(words)


def flags(names: Mapping[str, str], values: Mapping[str, Any]) -> list[str]:
    """Return the flags of all values that are there."""
    return [text for key, flag in names.items() for text in flag_words(flag, values.get(key))]


def flag_words(flag: str, value: object) -> list[str]:
    """Return a flag and its value, or nothing if there is none; a switch has no value."""
    if value is None or value is False:
        return []
    return [flag] if value is True else [flag, str(value)]


def inside(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key, an empty one if there is none."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def applying(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run without those that have no effect on it."""
    task = str(values.get("task") or "")
    idle = (
        *(("task", "checkpoint_activations") if nouns(task).sample == "picture" else ()),
        *(("cache",) if task != "image-classification" else ()),
    )
    kept = {key: value for key, value in values.items() if key not in idle}
    recipe, reading = inside(values, "recipe"), inside(values, "reading")
    if recipe:
        left_out = without_effect(task, schedule=recipe.get("schedule"))
        kept["recipe"] = {key: one for key, one in recipe.items() if key not in left_out}
        if "dropout" in kept["recipe"] and recipe["dropout"] is None:
            kept["recipe"]["dropout"] = OWN
    if reading:
        masked = task == "masked-language-modeling"
        kept["reading"] = {
            key: one
            for key, one in reading.items()
            if one is not None and (masked or key != "whole_words")
        }
    return kept


def without_effect(task: str, *, schedule: object = None) -> set[str]:
    """Return the settings of a recipe that have no effect on a task, or under a schedule."""
    pictures = nouns(task).sample == "picture"
    return {
        *(("dropout",) if pictures else ("mirror",)),
        *(() if task == "image-classification" else OF_CLASSIFIED_PICTURES),
        *(() if task == "object-detection" else OF_BOXES),
        *(() if task.endswith("classification") else OF_LABELS),
        *(("class_weights",) if task.startswith("multi-label") else ()),
        *(() if schedule in ("step", None) else OF_STEPS),
    }


def listed(values: Mapping[str, Any], group: str = "") -> list[tuple[str, str]]:
    """Return names and values, those of an object after its name."""
    lines: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{group}{key.replace('_', ' ')}"
        if not group and key in LISTED_ELSEWHERE:
            continue
        if isinstance(value, dict):
            lines += listed(value, group=f"{name}: ")
        else:
            lines.append((name, worded(value)))
    return lines


def worded(value: Any) -> str:
    """Return a value of a JSON document as people write it."""
    if value is None or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(worded(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
