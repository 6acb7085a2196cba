"""From what the user said to all that a run is, before its first step."""

import platform
import sys
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch.amp.grad_scaler import GradScaler

from octavolt import __version__, ranks
from octavolt.contract import (
    Checked,
    DataSet,
    Entry,
    Examples,
    Fault,
    Making,
    Modality,
    Network,
    Preparation,
    Progress,
    Reading,
    Recipe,
    Shape,
    Task,
    Wanted,
)
from octavolt.data import MODALITIES, lasting
from octavolt.devices import Machine
from octavolt.errors import OctavoltError
from octavolt.networks import ENTRIES, find
from octavolt.networks.opened import choose_task, placed
from octavolt.networks.weights import Weights, check_fits, read_weights, take, written_sizes
from octavolt.ranks import Rank
from octavolt.runs import SCHEMA, new_run, write_bytes, write_json
from octavolt.train.log import Note, Tell
from octavolt.train.optimizers import build_optimizer
from octavolt.train.settings import (
    Request,
    Settings,
    changed_recipe,
    check_reading,
    choose_recipe,
    to_json,
)
from octavolt.train.state import TrainState, start_ema
from octavolt.units import counted

MOST_FAULTS_SHOWN = 20


class FaultyDataError(OctavoltError):
    """Faults that stop a training, all of them."""

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        lines = [f"{place_of(one)}: {one.problem}" for one in faults]
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


def place_of(fault: Fault) -> str:
    """Return where a fault is: its file, and the line if one is known."""
    return f"{fault.file}, line {fault.line}" if fault.line else fault.file


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What a run stands on: its folder, settings, data and machine."""

    run: Path
    settings: Settings
    entry: Entry
    task: Task
    data: DataSet
    checked: Checked
    preparation: Preparation
    machine: Machine
    rank: Rank

    @property
    def modality(self) -> Modality:
        """Return what the samples are."""
        return MODALITIES[self.task.modality]


def look_at(
    source: str,
    *,
    task: Task,
    reading: Reading,
    seed: int,
    skip_damaged: bool,
    machine: Machine,
    progress: Progress,
    tell: Tell,
) -> tuple[DataSet, Checked]:
    """Return a data set, whole, and what a check found; raise on faults that stop."""
    modality = MODALITIES[task.modality]
    data = modality.open(source, task=task.name, seed=seed, reading=reading)
    checked = modality.check(data, threads=machine.threads, progress=progress)
    stopping = tuple(
        one for one in checked.faults if one.stops and not (skip_damaged and one.damaged)
    )
    if stopping:
        raise FaultyDataError(source, stopping)
    for text in data.notes:
        tell(Note(text=text))
    warnings = [one for one in checked.faults if not one.stops]
    for one in warnings[:MOST_FAULTS_SHOWN]:
        tell(Note(text=f"{place_of(one)}: {one.problem}", kind="warning"))
    if len(warnings) > MOST_FAULTS_SHOWN:
        rest = len(warnings) - MOST_FAULTS_SHOWN
        tell(Note(text=f"and {rest} more: octavolt check {source}", kind="warning"))
    damaged = [one for one in checked.faults if one.damaged]
    if damaged:
        tell(
            Note(
                text=f"{counted(len(damaged), f'damaged {modality.sample}')} left out: see "
                "damaged.json.",
                kind="warning",
            )
        )
    emptied = emptied_faults(checked.usable(data), modality)
    if emptied:
        raise FaultyDataError(source, emptied)
    return data, checked


def emptied_faults(data: DataSet, modality: Modality) -> tuple[Fault, ...]:
    """Return what stops a training once the damaged samples are left out."""
    faults = [one for one in data.faults if one.stops]
    if "val" not in data.splits:
        problem = f"no {modality.sample} in val can be read, so no epoch could be judged"
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
    return ground(run, settings, checked, machine=machine, rank=rank)


def resolved(
    request: Request, entry: Entry, *, machine: Machine, rank: Rank, progress: Progress, tell: Tell
) -> tuple[Path, Settings, Checked]:
    """Check the data, resolve the settings and write the run folder."""
    task = choose_task(entry, request.task)
    check_reading(request, task)
    weights = None if request.weights == "none" else read_weights(entry, request.weights)
    whole, checked = look_at(
        request.data,
        task=task,
        reading=request.reading,
        seed=request.seed,
        skip_damaged=request.skip_damaged,
        machine=machine,
        progress=progress,
        tell=tell,
    )
    data = checked.usable(whole)
    task = choose_task(entry, data.task or task.name)
    check_reading(request, task)  # the data may have decided on another task
    preparation = MODALITIES[task.modality].prepare(
        Wanted(
            entry=entry,
            task=task,
            data=data,
            checked=checked,
            reading=request.reading,
            weights_folder=weights.folder if weights else None,
            say=lambda text: tell(Note(text=text)),
            progress=progress,
        )
    )
    recipe_name, recipe = choose_recipe(
        entry,
        asked=request.recipe,
        weights=request.weights,
        train_count=len(data.splits["train"]),
    )
    if not data.mirrorable:
        recipe = replace(recipe, mirror=False)
    recipe = changed_recipe(recipe, request.changes or {}, task)
    settings = Settings(
        network=entry.name if entry.name in ENTRIES else request.network,
        task=task.name,
        data=lasting(request.data),
        weights=request.weights,
        reading=preparation.reading,
        precision=machine.policy.precision,
        seed=request.seed,
        recipe_name=recipe_name,
        recipe=recipe,
        micro_batch_size=first_micro_batch(request.micro_batch_size, recipe, rank),
        checkpoint_activations=request.checkpoint_activations,
        processes=rank.count,
        threads=machine.threads,
        skip_damaged=request.skip_damaged,
        cache=str(request.cache) if request.cache else None,
        save_minutes=request.save_minutes,
        save_steps=request.save_steps,
        log_steps=request.log_steps,
        classes=data.classes,
        split_counts={name: len(samples) for name, samples in data.splits.items()},
    )
    shape = shape_of(settings, preparation, weights)
    with torch.device("meta"):
        network = entry.build(shape)
    if recipe.freeze_epochs and not network.head():
        raise OctavoltError(
            f"{entry.name} has no head of its own for {task.name}, so nothing would be left to "
            "train: leave --freeze-epochs away."
        )
    if weights is not None:
        check_fits(entry, weights, shape, data.classes)  # before there is a run folder
    run = new_run(request.output, f"{entry.name}-{Path(request.data).stem or 'data'}")
    write_start(run, settings, preparation, network, whole=whole, checked=checked, machine=machine)
    return run, settings, checked


def shape_of(settings: Settings, preparation: Preparation, weights: Weights | None) -> Shape:
    """Return what the run's network is built like."""
    return replace(
        preparation.shape(task=settings.task),
        sizes=weights.sizes if weights else {},
        dropout=settings.recipe.dropout,
        box_loss=settings.recipe.box_loss,
        checkpoint_activations=settings.checkpoint_activations,
    )


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
    preparation: Preparation,
    network: Network,
    *,
    whole: DataSet,
    checked: Checked,
    machine: Machine,
) -> None:
    """Write the files that a run has from the start; settings.json, which makes it one, last."""
    write_json(run / "environment.json", environment(machine))
    write_json(run / "labels.json", {"schema": SCHEMA, "classes": list(settings.classes)})
    preparation.save(run)
    for name, content in network.files(settings.classes).items():
        if isinstance(content, str):
            write_bytes(run / name, content.encode())
        else:
            write_json(run / name, content)
    write_bytes(run / "data.tsv.gz", checked.fingerprint(whole))
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
    run: Path, settings: Settings, checked: Checked, *, machine: Machine, rank: Rank
) -> Ground:
    """Return what a run stands on."""
    entry = find(settings.network, run)
    task = choose_task(entry, settings.task)
    modality = MODALITIES[task.modality]
    data = modality.open(
        settings.data, task=task.name, seed=settings.seed, reading=settings.reading
    )
    return Ground(
        run=run,
        settings=settings,
        entry=entry,
        task=task,
        data=checked.usable(data),
        checked=checked,
        preparation=modality.read(run),
        machine=machine,
        rank=rank,
    )


def resume(
    run: Path, settings: Settings, *, machine: Machine, rank: Rank, progress: Progress
) -> Ground:
    """Return what an earlier run stands on; raise if its data are not what they were."""
    made: Any = None
    if rank.leads:
        data, checked = look_at(
            settings.data,
            task=choose_task(find(settings.network, run), settings.task),
            reading=settings.reading,
            seed=settings.seed,
            skip_damaged=settings.skip_damaged,
            machine=machine,
            progress=progress,
            tell=unheard,
        )
        checked.check_unchanged(run / "data.tsv.gz", data)
        made = checked
    return ground(run, settings, ranks.told(made), machine=machine, rank=rank)


def new_state(ground: Ground, tell: Tell, *, resumed: bool) -> TrainState:
    """Return the network, its weights and its optimizer at the start of a run.

    A resumed run takes all of it from its checkpoint, so the weights it began with may be gone.
    """
    settings = ground.settings
    torch.manual_seed(settings.seed)
    weights = None
    if settings.weights != "none" and not resumed:
        weights = read_weights(ground.entry, settings.weights)
    shape = shape_of(settings, ground.preparation, weights)
    if resumed:
        shape = replace(shape, sizes=written_sizes(ground.run))
    network = ground.entry.build(shape)
    if weights is not None:
        taken = take(network, weights, settings.classes)
        tell(Note(text=taken.sentence(weights.source), kind="weights"))
    network = placed(network, ground.machine)
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), settings.recipe),
        scaler=GradScaler(ground.machine.device.type, enabled=ground.machine.policy.loss_scaling),
        precision=settings.precision,
        device=ground.machine.device,
        ema_decay=settings.recipe.ema_decay,
    )
    if settings.recipe.ema_decay:
        start_ema(state)
    return state


def examples(ground: Ground, split: str, tell: Tell, progress: Progress) -> Examples:
    """Return a split's samples; those of training are augmented as the recipe says."""
    settings = ground.settings
    return ground.preparation.examples(
        ground.data.splits[split],
        Making(
            recipe=settings.recipe if split == "train" else None,
            split=split,
            digest=ground.checked.digest(split),
            cache=Path(settings.cache) if settings.cache else None,
            threads=ground.machine.threads,
            pin=ground.machine.device.type == "cuda",
            local_rank=ground.rank.local_number,
            say=lambda text: tell(Note(text=text, kind="cache")),
            progress=progress,
        ),
    )
