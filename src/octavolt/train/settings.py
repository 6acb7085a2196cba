"""What a run was asked to do, and everything that was resolved from it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from octavolt import __version__
from octavolt.contract import Entry, Recipe
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.runs import SCHEMA, read_fields, read_json
from octavolt.train.optimizers import OPTIMIZERS
from octavolt.train.schedules import SCHEDULES

LARGEST_IMAGE_PIXELS = 4096
"""Height and width of a network's input; a larger number is a slip of the finger."""
SMALL_DATA_PICTURES = 100_000
"""With fewer pictures, the published recipe, made for 1.28 million, takes too few steps."""

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
    image_size: int | None = None
    precision: str = "auto"
    seed: int = 0
    processes: int = 1
    recipe: str | None = None
    changes: Mapping[str, Any] | None = None
    """Fields of the recipe that the user set."""
    micro_batch_size: int | None = None
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
    image_size: int
    precision: str
    seed: int
    recipe_name: str
    recipe: Recipe
    micro_batch_size: int
    """Samples in one forward and backward pass of one rank, at the start."""
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
    known = {field.name for field in fields(Settings)}
    chosen = {name: one for name, one in value.items() if name in known}
    return Settings(
        **{
            **chosen,
            "recipe": Recipe(**value["recipe"]),
            "classes": tuple(value["classes"]),
        }
    )


def read_settings(run: Path) -> Settings:
    """Return the settings of a run."""
    path = run / "settings.json"
    value = read_fields(path, network=str, data=str, precision=str, recipe=dict, classes=list)
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
        small = "small-data" if train_count < SMALL_DATA_PICTURES else "published"
        name = "fine-tune" if weights != "none" else small
    if name not in entry.recipes:
        raise UnknownNameError(f"recipe of {entry.name}", name, entry.recipes)
    return name, entry.recipes[name]


def changed_recipe(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """Return the recipe with the user's changes; all that is wrong with them is said at once.

    The learning rate follows the batch size, in proportion for SGD and with the square root for the
    rest, unless it is given itself: Goyal et al. 2017, section 2.1; Krizhevsky 2014.
    """
    known = {field.name: field for field in fields(Recipe)}
    for key in changes:
        if key not in known:
            raise UnknownNameError("setting of a recipe", key, known)
    result = replace(recipe, **changes)
    if "batch_size" in changes and "learning_rate" not in changes:
        ratio = result.batch_size / recipe.batch_size
        exponent = 1.0 if result.optimizer == "sgd" else 0.5
        result = replace(result, learning_rate=recipe.learning_rate * ratio**exponent)
    problems = recipe_problems(result)
    if problems:
        raise OctavoltError(" ".join(problems))
    return result


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


def wrong_kinds(values: Mapping[str, Any], of: type[Settings] | type[Recipe]) -> list[str]:
    """Return one sentence for each value that is not of its field's type."""
    kinds = {field.name: field.type for field in fields(of) if field.type in KINDS}
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
    limits = (
        ("epochs", recipe.epochs, recipe.epochs >= 1, "at least 1"),
        ("batch_size", recipe.batch_size, recipe.batch_size >= 1, "at least 1"),
        ("learning_rate", recipe.learning_rate, recipe.learning_rate > 0, "above 0"),
        ("weight_decay", recipe.weight_decay, recipe.weight_decay >= 0, "at least 0"),
        ("momentum", recipe.momentum, 0 <= recipe.momentum < 1, "from 0 to below 1"),
        ("warmup_epochs", recipe.warmup_epochs, recipe.warmup_epochs >= 0, "at least 0"),
        (
            "label_smoothing",
            recipe.label_smoothing,
            0 <= recipe.label_smoothing < 1,
            "from 0 to below 1",
        ),
        ("mixup_alpha", recipe.mixup_alpha, recipe.mixup_alpha >= 0, "at least 0"),
        ("ema_decay", recipe.ema_decay, 0 <= recipe.ema_decay < 1, "from 0 to below 1"),
        ("crop_scale_min", recipe.crop_scale_min, 0 < recipe.crop_scale_min <= 1, "above 0, to 1"),
        ("freeze_epochs", recipe.freeze_epochs, recipe.freeze_epochs >= 0, "at least 0"),
        ("step_epochs", recipe.step_epochs, recipe.step_epochs >= 1, "at least 1"),
        ("step_factor", recipe.step_factor, 0 < recipe.step_factor <= 1, "above 0, to 1"),
        ("early_stop_epochs", patience, at_least_1(patience), "at least 1"),
        ("max_gradient_norm", norm, norm is None or norm > 0, "above 0"),
    )
    return [*unknown, *broken(limits)]


def read_settings_file(path: Path) -> dict[str, Any]:
    """Return what a file for --settings sets: any key of a run's settings.json, checked by name."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise OctavoltError(f"{path} holds {type(value).__name__}, not an object of settings.")
    known = [field.name for field in fields(Settings)]
    recipe_keys = [field.name for field in fields(Recipe)]
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
    problems = [*wrong_kinds(value, Settings), *wrong_kinds(recipe, Recipe)]
    if problems:
        raise OctavoltError(f"{path}: {' '.join(problems)}")
    return value


def choose_image_size(entry: Entry, *, asked: int | None, middle_side_pixels: float) -> int:
    """Return the input's height and width in pixels.

    Without a wish it is the network's own, or the next multiple of 32 from twice the pictures'
    median shorter side, at least 64, if that is less: pictures enlarged more hold no more detail
    and cost more time.
    """
    if asked is not None:
        if asked < entry.smallest_image_size:
            raise OctavoltError(
                f"{entry.name} can't see pictures of {asked} pixels: its smallest --image-size is "
                f"{entry.smallest_image_size}."
            )
        if asked > LARGEST_IMAGE_PIXELS:
            raise OctavoltError(
                f"--image-size is {asked}; it must be at most {LARGEST_IMAGE_PIXELS}."
            )
        return asked
    enough = max(64, 32 * -(-int(2 * middle_side_pixels) // 32), entry.smallest_image_size)
    return min(entry.preprocessing.image_size, enough)
