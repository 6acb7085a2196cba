"""From the flags of `octavolt train` to a request, and the run's end to what is printed."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from octavolt.cli.show import Counting, Shower, metric_value, short_name
from octavolt.contract import Reading, Recipe
from octavolt.devices import gpu_count
from octavolt.doctor import fast_check
from octavolt.errors import OctavoltError
from octavolt.report import report_run
from octavolt.runs import find_run, read_lines
from octavolt.train import Request, Stopped, resume, train
from octavolt.train.settings import read_settings_file
from octavolt.units import counted, format_seconds

Flags = Mapping[str, Any]

RECIPE_FLAGS = {
    "epochs": "epochs",
    "learning_rate": "learning_rate",
    "optimizer": "optimizer",
    "schedule": "schedule",
    "warmup_epochs": "warmup_epochs",
    "weight_decay": "weight_decay",
    "label_smoothing": "label_smoothing",
    "mixup": "mixup_alpha",
    "ema": "ema_decay",
    "class_weights": "class_weights",
    "freeze_epochs": "freeze_epochs",
    "early_stop": "early_stop_epochs",
    "clip": "max_gradient_norm",
    "dropout": "dropout",
    "crop_scale": "crop_scale_min",
    "mirror": "mirror",
    "mosaic": "mosaic_share",
    "multi_scale": "multi_scale",
    "box_loss": "box_loss",
}
WITH_RESUME = {"resume", "gpus", "processes", "threads", "as_json"}
NOT_SAID: dict[str, Any] = {
    "batch": "auto",
    "skip_damaged": False,
    "cache": False,
    "whole_words": False,
    "fit_anchors": False,
    "checkpoint_activations": False,
    "as_json": False,
}


def refused_with_resume(flags: Flags) -> list[str]:
    """Return the flags that a resumed run can't take, as typed."""
    said = [name for name, value in flags.items() if NOT_SAID.get(name) != value]
    return [f"--{name.replace('_', '-')}" for name in said if name not in WITH_RESUME]


def start(flags: Flags) -> None:
    """Train from the start."""
    request = requested(flags)
    fast_check(request.output or Path("runs"), precision=request.precision)
    shower = Shower()
    ending(lambda: train(request, tell=shower, progress=Counting("read")), shower, flags)


def go_on(named: str, flags: Flags) -> None:
    """Go on with a run."""
    run = find_run(named)
    fast_check(run)
    count = process_count(flags, {})
    shower = Shower()
    ending(
        lambda: resume(
            run,
            processes=count,
            threads=flags.get("threads"),
            tell=shower,
            progress=Counting("read"),
        ),
        shower,
        flags,
    )


def ending(verb: Any, shower: Shower, flags: Flags) -> None:
    """Run a verb to its end, and say where things are."""
    try:
        run = verb()
    except Stopped as stop:
        shower.close()
        print(f"octavolt: {stop}", file=sys.stderr)
        # As a shell counts it, so that what follows && is not begun on half a training.
        sys.exit(128 + stop.signal_number)
    finally:
        shower.close()
    if int(os.environ.get("RANK", "0")) != 0:
        return
    report_run(run)
    epochs = [*read_lines(run / "epochs.jsonl")]
    best = next((one for one in reversed(epochs) if one["best"]), None)
    if flags.get("as_json"):
        print(json.dumps({"run": str(run), "best": best}, ensure_ascii=False))
        return
    print(f"{run}")
    if best is not None:
        print(best_line(best, epochs), file=sys.stderr)
    print(f"Next: octavolt evaluate {shlex.quote(str(run))}", file=sys.stderr)


def best_line(best: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]]) -> str:
    """Return what is said of the epoch whose weights were kept."""
    name = best["metric"]
    return (
        f"best: epoch {best['epoch']} of {len(epochs)}, val {short_name(name)} "
        f"{metric_value(name, best['val'][name])}, in "
        f"{format_seconds(epochs[-1]['seconds'])}."
    )


def process_count(flags: Flags, file: Mapping[str, Any]) -> int:
    """Return how many processes are asked for, one a GPU where there are GPUs."""
    flag = "--gpus" if "gpus" in flags else "--processes"
    count = int(flags.get("gpus") or flags.get("processes") or file.get("processes", 1))
    check_gpus(flag, count, there=gpu_count())
    return count


def check_gpus(flag: str, count: int, *, there: int) -> None:
    """Raise if there are fewer GPUs than processes that want one."""
    if count > there > 0:
        raise OctavoltError(
            f"{flag} {count}, but this machine has {counted(there, 'GPU')}, one a process. Use "
            f"--gpus {there} or fewer."
        )
    if flag == "--gpus" and there == 0:
        raise OctavoltError(
            f"--gpus {count}, but this machine has no GPU that torch can see. Leave --gpus away to "
            "train on the CPU."
        )


def requested(flags: Flags) -> Request:
    """Return the request that flags and a settings file make; flags go before the file."""
    file = read_settings_file(flags["settings"]) if "settings" in flags else {}
    changes = {**file.get("recipe", {})}
    changes |= {field: flags[flag] for flag, field in RECIPE_FLAGS.items() if flag in flags}
    if flags["batch"] != "auto":
        changes["batch_size"] = whole_number("--batch", flags["batch"])
    unsaid = object()

    def said(name: str, default: Any) -> Any:
        value = flags.get(name, unsaid)
        return file.get(name, default) if value is unsaid else value

    network, data = said("network", None), said("data", None)
    if network is None or data is None:
        missing = "a network" if network is None else "the data: --data DATA"
        raise OctavoltError(
            f"Say {missing}. For example: octavolt train mobilenet-v2 --data ./flowers"
        )
    return Request(
        network=network,
        data=data,
        weights=said("weights", "none"),
        output=flags.get("output"),
        task=said("task", None),
        reading=reading(flags, file),
        precision=said("precision", "auto"),
        seed=said("seed", 0),
        processes=process_count(flags, file),
        recipe=flags.get("recipe", file.get("recipe_name")),
        changes=known_changes(changes),
        micro_batch_size=micro_batch(flags, file, changes),
        checkpoint_activations=bool(
            flags["checkpoint_activations"] or file.get("checkpoint_activations", False)
        ),
        skip_damaged=bool(flags["skip_damaged"] or file.get("skip_damaged", False)),
        cache=cache_folder(flags, file),
        save_minutes=said("save_minutes", 10.0),
        save_steps=said("save_steps", None),
        log_steps=file.get("log_steps", 10),
        threads=said("threads", None),
    )


def reading(flags: Flags, file: Mapping[str, Any]) -> Reading:
    """Return what was said of how data are read; flags go before the file."""
    names = [one.name for one in fields(Reading)]
    said = {name: flags[name] for name in names if NOT_SAID.get(name) != flags.get(name)}
    return Reading(**{**file.get("reading", {}), **said})


def known_changes(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes without what only describes a recipe."""
    names = {field.name for field in fields(Recipe)} - {"source"}
    return {name: value for name, value in changes.items() if name in names}


def whole_number(flag: str, text: str) -> int:
    """Return the number that a flag holds."""
    if not text.isdecimal() or int(text) < 1:
        raise OctavoltError(f"{flag} is '{text}'; it must be 'auto' or a whole number from 1 on.")
    return int(text)


def micro_batch(flags: Flags, file: Mapping[str, Any], changes: Mapping[str, Any]) -> int | None:
    """Return the samples of one pass, or None for as many as an update takes."""
    if "micro_batch" in flags:
        return int(flags["micro_batch"])
    if "accumulate" in flags:
        if "batch_size" not in changes:
            raise OctavoltError("--accumulate needs --batch, which it divides.")
        passes = int(flags["accumulate"]) * process_count(flags, file)
        return max(1, -(-int(changes["batch_size"]) // passes))
    value = file.get("micro_batch_size")
    return None if value is None else int(value)


def cache_folder(flags: Flags, file: Mapping[str, Any]) -> Path | None:
    """Return where re-encoded pictures go, or None if they are read as they are."""
    if "cache_folder" in flags:
        return Path(flags["cache_folder"])
    if flags["cache"]:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return Path(home) / "octavolt" / "packed"
    return Path(file["cache"]) if file.get("cache") else None
