"""What a run was asked to do, and everything that was resolved from it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import Any

from octavolt import __version__
from octavolt.contract import Entry, Reading, Recipe, Task
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.runs import SCHEMA, read_fields, read_json
from octavolt.train.optimizers import OPTIMIZERS
from octavolt.train.schedules import SCHEDULES

BOX_LOSSES = ("squared", "giou", "ciou")
SMALL_DATA_SAMPLES = 100_000
"""With fewer samples, the published recipe, made for 1.28 million, takes too few steps."""

KINDS: dict[Any, str] = {
    int: "a whole number",
    int | None: "a whole number or null",
    float: "a number",
    float | None: "a number or null",
    bool: "true or false",
    str: "text",
    str | None: "text or null",
}
"""The types of fields that a file for --settings can set, as people call them."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user said; None is left to us."""

    network: str
    data: str
    weights: str = "none"
    output: Path | None = None
    task: str | None = None
    reading: Reading = field(default_factory=Reading)
    precision: str = "auto"
    seed: int = 0
    processes: int = 1
    recipe: str | None = None
    changes: Mapping[str, Any] | None = None
    """Fields of the recipe that the user set."""
    micro_batch_size: int | None = None
    checkpoint_activations: bool = False
    skip_damaged: bool = False
    check: bool = True
    cache: Path | None = None
    save_minutes: float = 10.0
    save_steps: int | None = None
    log_steps: int = 10
    threads: int | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides the weights of a run, as its settings.json holds it."""

    network: str
    task: str
    data: str
    weights: str
    reading: Reading
    """How the data are read and made ready, as it was decided."""
    precision: str
    seed: int
    recipe_name: str
    recipe: Recipe
    micro_batch_size: int
    """Samples in one forward and backward pass of one rank, at the start."""
    checkpoint_activations: bool
    processes: int
    threads: int
    skip_damaged: bool
    cache: str | None
    save_minutes: float
    save_steps: int | None
    log_steps: int
    classes: tuple[str, ...]
    split_counts: Mapping[str, int]
    schema: int = SCHEMA
    octavolt: str = __version__


def to_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as settings.json holds them."""
    return {"schema": settings.schema} | asdict(settings)


def from_json(value: Mapping[str, Any]) -> Settings:
    """Return the settings that settings.json holds."""
    known = {one.name for one in fields(Settings)}
    chosen = {name: one for name, one in value.items() if name in known}
    return Settings(
        **{
            **chosen,
            "recipe": Recipe(**value["recipe"]),
            "reading": Reading(**value["reading"]),
            "classes": tuple(value["classes"]),
        }
    )


def read_settings(run: Path) -> Settings:
    """Return the settings of a run."""
    path = run / "settings.json"
    value = read_fields(
        path, network=str, data=str, precision=str, recipe=dict, reading=dict, classes=list
    )
    try:
        return from_json(value)
    except TypeError as error:  # a field that is missing, or that no recipe has
        raise OctavoltError(
            f"{path} is not the settings of a run: {error}. It was edited or is not whole."
        ) from error


def choose_recipe(
    entry: Entry, *, asked: str | None, weights: str, train_count: int
) -> tuple[str, Recipe]:
    """Return a recipe and its name: the one asked for, or the one that fits weights and data."""
    name = asked
    if name is None:
        small = "small-data" if train_count < SMALL_DATA_SAMPLES else "published"
        name = "fine-tune" if weights != "none" else small
    if name not in entry.recipes:
        raise UnknownNameError(f"recipe of {entry.name}", name, entry.recipes)
    return name, entry.recipes[name]


def changed_recipe(recipe: Recipe, changes: Mapping[str, Any], task: Task) -> Recipe:
    """Return the recipe with the user's changes; all that is wrong with them is said at once.

    The learning rate follows the batch size, in proportion for SGD and with the square root for the
    rest, unless it is given itself: Goyal et al. 2017, section 2.1; Krizhevsky 2014.
    """
    known = {one.name: one for one in fields(Recipe)}
    for key in changes:
        if key not in known:
            raise UnknownNameError("setting of a recipe", key, known)
    idle = [
        name
        for name in without_effect(task)
        if changes.get(name, getattr(recipe, name)) != getattr(recipe, name)
    ]
    if idle:
        raise OctavoltError(
            f"{', '.join(idle)}: of no effect on {task.name}. Leave the flag or setting away."
        )
    result = replace(recipe, **changes)
    if "batch_size" in changes and "learning_rate" not in changes:
        ratio = result.batch_size / recipe.batch_size
        exponent = 1.0 if result.optimizer == "sgd" else 0.5
        result = replace(result, learning_rate=recipe.learning_rate * ratio**exponent)
    problems = recipe_problems(result)
    if problems:
        raise OctavoltError(" ".join(problems))
    return result


DETECTION = (
    "mosaic_share",
    "expand_max",
    "box_crop",
    "scale_jitter",
    "color_jitter",
    "multi_scale",
    "box_loss",
)
"""Settings of a recipe that only detectors have a use for."""


def without_effect(task: Task) -> tuple[str, ...]:
    """Return the settings of a recipe that a task has no use for."""
    labelled = task.name.endswith("classification")
    several = task.name.startswith("multi-label")
    return (
        *(("dropout",) if task.modality != "text" else ()),
        *(("mixup_alpha", "crop_scale_min") if task.modality != "pictures" else ()),
        *(("mirror",) if task.modality == "text" else ()),
        *(DETECTION if task.modality != "boxes" else ()),
        *(() if labelled else ("label_smoothing",)),
        *(() if labelled and not several else ("class_weights",)),
    )


def readings_of(task: Task) -> tuple[str, ...]:
    """Return what may be said of how a task's data are read."""
    if task.modality == "pictures":
        return ("image_size", "cache")
    if task.modality == "boxes":
        return ("image_size", "fit_anchors")
    labels = ("text_column", "label_column", "label_separator")
    own: Mapping[str, tuple[str, ...]] = {
        "text-classification": labels,
        "multi-label-text-classification": labels,
        "question-answering": ("stride",),
        "masked-language-modeling": ("text_column", "whole_words"),
        "causal-language-modeling": ("text_column", "stride"),
        "dialogue": (),
    }
    return ("tokenizer", "vocabulary_size", "length", *own[task.name])


def check_reading(request: Request, task: Task) -> None:
    """Raise if something was said of how data are read that the task has no use for."""
    reading = request.reading
    said = {one.name for one in fields(Reading) if getattr(reading, one.name)}
    if request.cache:
        said.add("cache")
    idle = said - set(readings_of(task))
    if idle:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(idle))
        raise OctavoltError(f"{names}: of no effect on {task.name}. Leave it away.")
    counts = [
        (name, value, value is None or value >= least, f"at least {least}")
        for name, value, least in (
            ("vocabulary_size", reading.vocabulary_size, 2),
            ("length", reading.length, 4),
            ("stride", reading.stride, 1),
        )
    ]
    problems = broken(counts)
    if problems:
        raise OctavoltError(" ".join(problems))


def request_problems(request: Request) -> list[str]:
    """Return one sentence for each value that no run can begin with."""
    limits = (
        ("seed", request.seed, 0 <= request.seed < 2**63, "from 0 to below 2 to the 63rd"),
        ("processes", request.processes, request.processes >= 1, "at least 1"),
        (
            "micro_batch_size",
            request.micro_batch_size,
            at_least_1(request.micro_batch_size),
            "at least 1",
        ),
        ("threads", request.threads, at_least_1(request.threads), "at least 1"),
        ("save_steps", request.save_steps, at_least_1(request.save_steps), "at least 1"),
        ("save_minutes", request.save_minutes, request.save_minutes > 0, "above 0"),
        ("log_steps", request.log_steps, request.log_steps >= 1, "at least 1"),
    )
    return broken(limits)


def check_request(request: Request) -> None:
    """Raise, naming all values that no run can begin with."""
    problems = request_problems(request)
    if problems:
        raise OctavoltError(" ".join(problems))


def at_least_1(value: int | None) -> bool:
    """Whether a number that may be left to us is a count."""
    return value is None or value >= 1


def wrong_kinds(
    values: Mapping[str, Any], of: type[Settings] | type[Recipe] | type[Reading]
) -> list[str]:
    """Return one sentence for each value that is not of its field's type."""
    kinds = {one.name: one.type for one in fields(of) if one.type in KINDS}
    return [
        f"{name} is {json.dumps(value)}; it must be {KINDS[kinds[name]]}."
        for name, value in values.items()
        if name in kinds and not is_of_kind(value, kinds[name])
    ]


def is_of_kind(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; a whole number passes for any number, a truth for none."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (isinstance(value, int) and isinstance(0.0, kind))


Limit = tuple[str, Any, bool, str]
"""Name, value, whether it is fine, and the rule."""


ABOVE_0, FROM_0 = "a number above 0", "a number from 0 on"
"""Rules that leave the infinite out."""


def broken(limits: Iterable[Limit]) -> list[str]:
    """Return one sentence for each limit that is not kept."""
    return [
        f"{name} is {value}; it must be {rule}." for name, value, fine, rule in limits if not fine
    ]


def recipe_problems(recipe: Recipe) -> list[str]:
    """Return one sentence for each value that can't be trained with."""
    tables = (
        ("optimizer", recipe.optimizer, OPTIMIZERS),
        ("schedule", recipe.schedule, SCHEDULES),
    )
    unknown = [
        str(UnknownNameError(kind, name, known))
        for kind, name, known in tables
        if name not in known
    ]
    patience, norm = recipe.early_stop_epochs, recipe.max_gradient_norm
    dropout = recipe.dropout
    limits = (
        ("epochs", recipe.epochs, recipe.epochs >= 1, "at least 1"),
        ("batch_size", recipe.batch_size, recipe.batch_size >= 1, "at least 1"),
        ("learning_rate", recipe.learning_rate, 0 < recipe.learning_rate < inf, ABOVE_0),
        ("weight_decay", recipe.weight_decay, 0 <= recipe.weight_decay < inf, FROM_0),
        ("momentum", recipe.momentum, 0 <= recipe.momentum < 1, "from 0 to below 1"),
        ("warmup_epochs", recipe.warmup_epochs, 0 <= recipe.warmup_epochs < inf, FROM_0),
        (
            "label_smoothing",
            recipe.label_smoothing,
            0 <= recipe.label_smoothing < 1,
            "from 0 to below 1",
        ),
        ("mixup_alpha", recipe.mixup_alpha, 0 <= recipe.mixup_alpha < inf, FROM_0),
        ("ema_decay", recipe.ema_decay, 0 <= recipe.ema_decay < 1, "from 0 to below 1"),
        ("crop_scale_min", recipe.crop_scale_min, 0 < recipe.crop_scale_min <= 1, "above 0, to 1"),
        ("freeze_epochs", recipe.freeze_epochs, recipe.freeze_epochs >= 0, "at least 0"),
        ("step_epochs", recipe.step_epochs, recipe.step_epochs >= 1, "at least 1"),
        ("step_factor", recipe.step_factor, 0 < recipe.step_factor <= 1, "above 0, to 1"),
        ("early_stop_epochs", patience, at_least_1(patience), "at least 1"),
        ("max_gradient_norm", norm, norm is None or norm > 0, "above 0"),
        ("dropout", dropout, dropout is None or 0 <= dropout < 1, "from 0 to below 1"),
        ("mosaic_share", recipe.mosaic_share, 0 <= recipe.mosaic_share <= 1, "from 0 to 1"),
        ("expand_max", recipe.expand_max, 1 <= recipe.expand_max <= 10, "from 1 to 10"),
        ("scale_jitter", recipe.scale_jitter, 0 <= recipe.scale_jitter < 1, "from 0 to below 1"),
        ("color_jitter", recipe.color_jitter, 0 <= recipe.color_jitter <= 2, "from 0 to 2"),
        ("multi_scale", recipe.multi_scale, 0 <= recipe.multi_scale < 1, "from 0 to below 1"),
        (
            "box_loss",
            recipe.box_loss,
            recipe.box_loss in {None, *BOX_LOSSES},
            f"one of {', '.join(BOX_LOSSES)}",
        ),
    )
    return [*unknown, *broken(limits)]


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return what a file for --settings sets: any key of a run's settings.json, checked by name."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise OctavoltError(f"{path} holds {type(value).__name__}, not an object of settings.")
    known = [one.name for one in fields(Settings)]
    recipe_keys = [one.name for one in fields(Recipe)]
    for key in value:
        if key in recipe_keys:
            raise OctavoltError(
                f"{path}: {key} is a part of the recipe. Write it as "
                f'{{"recipe": {{"{key}": {json.dumps(value[key])}}}}}.'
            )
        if key not in known:
            raise UnknownNameError(f"setting in {path}", key, known)
    recipe = value.get("recipe", {})
    if not isinstance(recipe, dict):
        raise OctavoltError(
            f"{path}: recipe is {json.dumps(recipe)}; it must be an object of settings, such as "
            '{"epochs": 30}. The name of a recipe is recipe_name.'
        )
    for key in recipe:
        if key not in recipe_keys:
            raise UnknownNameError(f"setting of the recipe in {path}", key, recipe_keys)
    reading = value.get("reading", {})
    reading_keys = [one.name for one in fields(Reading)]
    if not isinstance(reading, dict):
        raise OctavoltError(
            f"{path}: reading is {json.dumps(reading)}; it must be an object of settings, such as "
            '{"image_size": 224}.'
        )
    for key in reading:
        if key not in reading_keys:
            raise UnknownNameError(f"setting of the reading in {path}", key, reading_keys)
    problems = [
        *wrong_kinds(value, Settings),
        *wrong_kinds(recipe, Recipe),
        *wrong_kinds(reading, Reading),
    ]
    if problems:
        raise OctavoltError(f"{path}: {' '.join(problems)}")
    return value
