"""From what the user said to all that a run is, before its first step."""

import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from jaxtyping import Float
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

from octavolt import __version__, ranks
from octavolt.contract import DataSet, Entry, Fault, Network, Pictures, Preprocessing, Recipe
from octavolt.data import lasting, open_data
from octavolt.data.check import Checked, check, without_damaged
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.data.fingerprint import check_unchanged, fingerprint
from octavolt.data.packed import PackedPlan, packed
from octavolt.devices import Machine
from octavolt.errors import OctavoltError
from octavolt.networks import ENTRIES, find
from octavolt.networks.opened import placed, read_preprocessing
from octavolt.networks.weights import check_fits, read_weights, take
from octavolt.ranks import Rank
from octavolt.runs import SCHEMA, new_run, write_bytes, write_json
from octavolt.train.log import Note, Tell
from octavolt.train.optimizers import build_optimizer
from octavolt.train.settings import (
    Request,
    Settings,
    changed_recipe,
    choose_image_size,
    choose_recipe,
    to_json,
)
from octavolt.train.state import TrainState, start_ema
from octavolt.units import counted, format_bytes, format_seconds

MOST_FAULTS_SHOWN = 20
Progress = Callable[[int, int], None]


class FaultyDataError(OctavoltError):
    """Faults that stop a training, all of them."""

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        lines = [
            f"{one.file}{f', line {one.line}' if one.line else ''}: {one.problem}" for one in faults
        ]
        shown = "\n  ".join(lines[:MOST_FAULTS_SHOWN])
        rest = len(lines) - MOST_FAULTS_SHOWN
        more = f"\n  and {rest} more: octavolt check {source}" if rest > 0 else ""
        damaged = all(one.damaged for one in faults)
        remedy = (
            "Mend them, or leave them out with --skip-damaged."
            if damaged
            else "Mend the data first."
        )
        super().__init__(
            f"{source} has {counted(len(faults), 'fault that stops', 'faults that stop')} a "
            f"training:\n  {shown}{more}\n{remedy}"
        )


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What a run stands on: its folder, settings, data and machine."""

    run: Path
    settings: Settings
    entry: Entry
    data: DataSet
    checked: Checked
    machine: Machine
    rank: Rank
    preprocessing: Preprocessing


def look_at(
    source: str, *, seed: int, skip_damaged: bool, machine: Machine, progress: Progress, tell: Tell
) -> tuple[DataSet, Checked]:
    """Return a data set, whole, and what a check found; raise on faults that stop."""
    data = open_data(source, seed=seed)
    checked = check(data, threads=machine.threads, progress=progress)
    stopping = tuple(
        one for one in checked.faults if one.stops and not (skip_damaged and one.damaged)
    )
    if stopping:
        raise FaultyDataError(source, stopping)
    for text in data.notes:
        tell(Note(text=text))
    warnings = [one for one in checked.faults if not one.stops]
    for one in warnings[:MOST_FAULTS_SHOWN]:
        tell(Note(text=f"{one.file}: {one.problem}", kind="warning"))
    if len(warnings) > MOST_FAULTS_SHOWN:
        rest = len(warnings) - MOST_FAULTS_SHOWN
        tell(Note(text=f"and {rest} more: octavolt check {source}", kind="warning"))
    damaged = [one for one in checked.faults if one.damaged]
    if damaged:
        tell(
            Note(
                text=f"{counted(len(damaged), 'damaged picture')} left out: see damaged.json.",
                kind="warning",
            )
        )
    emptied = emptied_faults(without_damaged(data, checked))
    if emptied:
        raise FaultyDataError(source, emptied)
    return data, checked


def emptied_faults(data: DataSet) -> tuple[Fault, ...]:
    """Return what stops a training once the damaged pictures are left out."""
    faults = [one for one in data.faults if one.stops]
    if "val" not in data.splits:
        problem = "no picture in val can be read, so no epoch could be judged"
        faults.append(Fault(kind="class-missing", file="val", problem=problem))
    return tuple(faults)


def unheard(_event: object) -> None:
    """Tell nobody: a resumed run has said it before."""


def begin(
    request: Request, *, machine: Machine, rank: Rank, progress: Progress, tell: Tell
) -> Ground:
    """Resolve a request and lay down the run folder; only the leading rank checks and writes."""
    entry = find(request.network)
    made: Any = None
    if rank.leads:
        made = resolved(request, entry, machine=machine, rank=rank, progress=progress, tell=tell)
    run, settings, checked = ranks.told(made)
    data = without_damaged(open_data(settings.data, seed=settings.seed), checked)
    return ground(run, settings, data, checked, machine=machine, rank=rank)


def resolved(
    request: Request, entry: Entry, *, machine: Machine, rank: Rank, progress: Progress, tell: Tell
) -> tuple[Path, Settings, Checked]:
    """Check the data, resolve the settings and write the run folder."""
    data, checked = look_at(
        request.data,
        seed=request.seed,
        skip_damaged=request.skip_damaged,
        machine=machine,
        progress=progress,
        tell=tell,
    )
    whole, data = data, without_damaged(data, checked)
    train_count = len(data.splits["train"])
    recipe_name, recipe = choose_recipe(
        entry, asked=request.recipe, weights=request.weights, train_count=train_count
    )
    if not data.mirrorable:
        recipe = replace(recipe, mirror=False)
    recipe = changed_recipe(recipe, request.changes or {})
    size = choose_image_size(
        entry, asked=request.image_size, middle_side_pixels=middle_side_pixels(checked)
    )
    settings = Settings(
        network=entry.name if entry.name in ENTRIES else request.network,
        task=entry.tasks[0].name,
        data=lasting(request.data),
        weights=request.weights,
        image_size=size,
        precision=machine.policy.precision,
        seed=request.seed,
        recipe_name=recipe_name,
        recipe=recipe,
        micro_batch_size=first_micro_batch(request.micro_batch_size, recipe, rank),
        processes=rank.count,
        threads=machine.threads,
        skip_damaged=request.skip_damaged,
        cache=str(request.cache) if request.cache else None,
        save_minutes=request.save_minutes,
        save_steps=request.save_steps,
        log_steps=request.log_steps,
        classes=data.classes,
        split_counts={name: len(pictures) for name, pictures in data.splits.items()},
    )
    if request.weights != "none":
        check_fits(entry, request.weights, data.classes)  # before there is a run folder
    run = new_run(request.output, f"{entry.name}-{Path(request.data).stem or 'data'}")
    write_start(run, settings, entry, whole=whole, checked=checked, machine=machine)
    return run, settings, checked


def middle_side_pixels(checked: Checked) -> float:
    """Return the median of the training pictures' shorter sides."""
    split = checked.splits["train"]
    sides = np.minimum(split.heights, split.widths)[split.good]
    return float(np.median(sides)) if len(sides) else 0.0


def digest_of(checked: Checked, split: str) -> str:
    """Return what changes if a picture of a split does."""
    return blake2b(checked.splits[split].digests.tobytes(), digest_size=8).hexdigest()


def first_micro_batch(asked: int | None, recipe: Recipe, rank: Rank) -> int:
    """Return the samples of one pass on one rank: a rank's whole share unless less is asked."""
    share = -(-recipe.batch_size // rank.count)
    size = min(asked or share, share)
    if recipe.mixup_alpha and size % 2:
        size += 1  # mixup pairs neighbours
    return max(1, size)


def write_start(
    run: Path,
    settings: Settings,
    entry: Entry,
    *,
    whole: DataSet,
    checked: Checked,
    machine: Machine,
) -> None:
    """Write the files that a run has from the start; settings.json, which makes it one, last."""
    preprocessing = replace(
        entry.preprocessing, image_size=settings.image_size, white_level=checked.white_level
    )
    write_json(run / "environment.json", environment(machine))
    write_json(run / "labels.json", {"schema": SCHEMA, "classes": list(settings.classes)})
    write_json(run / "preprocessing.json", asdict(preprocessing))
    write_bytes(run / "data.tsv.gz", fingerprint(whole, checked))
    damaged = [asdict(one) for one in checked.faults if one.damaged]
    if damaged:
        write_json(run / "damaged.json", damaged)
    write_json(run / "settings.json", to_json(settings))


def environment(machine: Machine) -> dict[str, Any]:
    """Return what the run was made with."""
    return {
        "octavolt": __version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "platform": platform.platform(),
        "cpu": machine.hardware.name if machine.hardware.kind == "cpu" else platform.processor(),
        "cores": machine.hardware.physical_cores,
        "threads": machine.threads,
        "gpus": [
            torch.cuda.get_device_name(index)
            for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        ],
        "policy": machine.policy.reason,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def ground(
    run: Path, settings: Settings, data: DataSet, checked: Checked, *, machine: Machine, rank: Rank
) -> Ground:
    """Return what a run stands on."""
    return Ground(
        run=run,
        settings=settings,
        entry=find(settings.network),
        data=data,
        checked=checked,
        machine=machine,
        rank=rank,
        preprocessing=read_preprocessing(run),
    )


def resume(
    run: Path, settings: Settings, *, machine: Machine, rank: Rank, progress: Progress
) -> Ground:
    """Return what an earlier run stands on; raise if its data are not what they were."""
    made: Any = None
    if rank.leads:
        data, checked = look_at(
            settings.data,
            seed=settings.seed,
            skip_damaged=settings.skip_damaged,
            machine=machine,
            progress=progress,
            tell=unheard,
        )
        check_unchanged(run / "data.tsv.gz", data, checked)
        made = checked
    checked = ranks.told(made)
    data = without_damaged(open_data(settings.data, seed=settings.seed), checked)
    return ground(run, settings, data, checked, machine=machine, rank=rank)


def new_state(ground: Ground, tell: Tell, *, resumed: bool) -> TrainState:
    """Return the network, its weights and its optimizer at the start of a run.

    A resumed run takes all of it from its checkpoint, so the weights it began with may be gone.
    """
    settings = ground.settings
    torch.manual_seed(settings.seed)
    network = ground.entry.build(len(settings.classes))
    if not resumed:
        load_weights(network, ground, tell)
    network = placed(network, ground.machine)
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.parameters(), settings.recipe),
        scaler=GradScaler(ground.machine.device.type, enabled=ground.machine.policy.loss_scaling),
        precision=settings.precision,
        device=ground.machine.device,
        ema_decay=settings.recipe.ema_decay,
    )
    if settings.recipe.ema_decay:
        start_ema(state)
    return state


def load_weights(network: Network, ground: Ground, tell: Tell) -> None:
    """Load the weights that the user named, if any, and say which tensors were taken."""
    settings = ground.settings
    if settings.weights == "none":
        return
    weights = read_weights(ground.entry, settings.weights)
    taken = take(network, weights, settings.classes)
    tell(Note(text=taken.sentence(weights.source), kind="weights"))


def examples(ground: Ground, split: str, tell: Tell, progress: Progress) -> PictureExamples:
    """Return a split's pictures; those of training are augmented as the recipe says."""
    return PictureExamples(
        maybe_packed(ground, split, tell, progress),
        ground.preprocessing,
        class_count=len(ground.settings.classes),
        augmentation=augmentation(ground) if split == "train" else None,
        pin=ground.machine.device.type == "cuda",
    )


def augmentation(ground: Ground) -> Augmentation:
    """Return what training does to pictures and targets."""
    recipe = ground.settings.recipe
    pictures = ground.data.splits["train"]
    return Augmentation(
        crop_scale_min=recipe.crop_scale_min,
        mirror=recipe.mirror,
        mixup_alpha=recipe.mixup_alpha,
        label_smoothing=recipe.label_smoothing,
        class_weights=class_weights(pictures, len(ground.settings.classes))
        if recipe.class_weights
        else None,
    )


def maybe_packed(ground: Ground, split: str, tell: Tell, progress: Progress) -> Pictures:
    """Return a split's pictures, re-encoded into one file first if the run was asked to."""
    pictures = ground.data.splits[split]
    if ground.settings.cache is None:
        return pictures
    digest = digest_of(ground.checked, split)

    def announce(plan: PackedPlan) -> None:
        tell(
            Note(
                text=f"Packing {counted(len(pictures), 'picture')} of {split}: about "
                f"{format_bytes(plan.bytes)} in {ground.settings.cache}, "
                f"{format_seconds(plan.seconds)}.",
                kind="cache",
            )
        )

    for turn in (True, False):  # the first rank of each host builds it, the others find it
        if (ground.rank.local_number == 0) == turn:
            result = packed(
                pictures,
                Path(ground.settings.cache) / f"{digest}-{ground.settings.image_size}",
                split,
                image_size=ground.settings.image_size,
                source_digest=digest,
                threads=ground.machine.threads,
                white_level=ground.preprocessing.white_level,
                announce=announce,
                progress=progress,
            )
        ranks.wait()
    return result


def class_weights(pictures: Pictures, class_count: int) -> Float[Tensor, " classes"]:
    """Return a weight a class, inverse to its pictures, whose mean over the pictures is 1."""
    counts = np.bincount(pictures.labels, minlength=class_count)
    return torch.tensor(len(pictures) / (class_count * np.maximum(counts, 1)), dtype=torch.float32)
