"""Settings and environment as the page lists them."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavolt.report.rows import Row
from octavolt.report.words import NOTHING

FLAGS = {
    "data": "--data",
    "weights": "--weights",
    "image_size": "--image-size",
    "precision": "--precision",
    "seed": "--seed",
    "recipe_name": "--recipe",
}
RECIPE_FLAGS = {
    "epochs": "--epochs",
    "batch_size": "--batch",
    "optimizer": "--optimizer",
    "learning_rate": "--learning-rate",
}
LISTED_ELSEWHERE = ("schema", "classes")


def command(settings: Row, folder: Path, *, has_gpus: bool) -> str:
    """Return a command line that repeats the run: its settings file has what has no flag."""
    values = settings.values
    words = ["octavolt", "train", str(values.get("network", ""))]
    words += [text for key, flag in FLAGS.items() for text in flag_words(flag, values.get(key))]
    if values.get("processes", 1) != 1:
        words += flag_words("--gpus" if has_gpus else "--processes", values.get("processes"))
    recipe = values.get("recipe")
    for key, flag in RECIPE_FLAGS.items():
        words += flag_words(flag, recipe.get(key) if isinstance(recipe, dict) else None)
    words += ["--settings", str(folder / "settings.json")]
    return shlex.join(words)


def flag_words(flag: str, value: object) -> list[str]:
    """Return a flag and its value, or nothing if there is none."""
    return [] if value is None else [flag, str(value)]


def listed(values: Mapping[str, Any], inside: str = "") -> list[tuple[str, str]]:
    """Return names and values, those of an object inside after a dot's place."""
    lines: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{inside}{key.replace('_', ' ')}"
        if not inside and key in LISTED_ELSEWHERE:
            continue
        if isinstance(value, dict):
            lines += listed(value, inside=f"{name}: ")
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
