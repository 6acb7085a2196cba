"""A network with its weights, ready to answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from octavolt.contract import Entry, Network, Preprocessing, Task
from octavolt.devices import Machine
from octavolt.errors import OctavoltError
from octavolt.networks import ENTRIES, find
from octavolt.networks.weights import Weights, read_run, read_weights, take
from octavolt.runs import find_run, read_fields


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A trained network and what prediction needs beside it."""

    network: Network
    entry: Entry
    task: Task
    classes: tuple[str, ...]
    preprocessing: Preprocessing
    machine: Machine
    run: Path | None


def open_network(named: str, machine: Machine, *, weights: str | None = None) -> Opened:
    """Return the network of a run, or one of the table with published or given weights."""
    if weights is not None:
        return open_entry(find(named), read_weights(find(named), weights), machine)
    if named.lower().replace("_", "-") in ENTRIES and not (Path("runs") / named).exists():
        raise OctavoltError(
            f"'{named}' is a network, not a run. Give its weights too: --weights imagenet, a file "
            "or a run; or train it first."
        )
    folder = find_run(named)
    settings = read_fields(folder / "settings.json", network=str)
    entry = find(settings["network"])
    found = read_run(folder)
    assert found.classes is not None
    network = ready(entry, found, found.classes, machine)
    return Opened(
        network=network,
        entry=entry,
        task=entry.tasks[0],
        classes=found.classes,
        preprocessing=read_preprocessing(folder),
        machine=machine,
        run=folder,
    )


def open_entry(entry: Entry, weights: Weights, machine: Machine) -> Opened:
    """Return a network of the table with weights that come with no run."""
    classes = weights.classes or published_classes(entry, weights)
    return Opened(
        network=ready(entry, weights, classes, machine),
        entry=entry,
        task=entry.tasks[0],
        classes=classes,
        preprocessing=entry.preprocessing,
        machine=machine,
        run=None,
    )


def published_classes(entry: Entry, weights: Weights) -> tuple[str, ...]:
    """Return the published names if there are as many as the head has rows, else numbers."""
    with torch.device("meta"):
        heads = entry.build(1).head()
    rows = next(
        (
            len(tensor)
            for name, tensor in weights.tensors.items()
            if name.startswith(heads[0]) and name.endswith("weight")
        ),
        None,
    )
    if rows is None:
        raise OctavoltError(
            f"The weights of {weights.source} have no head ({heads[0]}weight): they can start a "
            "training, but they know no classes. Train first: octavolt train "
            f"{entry.name} --weights {weights.source} --data YOURS"
        )
    for published in entry.weights.values():
        names = published.classes()
        if len(names) == rows:
            return names
    return tuple(str(index) for index in range(rows))


def ready(entry: Entry, weights: Weights, classes: Sequence[str], machine: Machine) -> Network:
    """Return the network on its device, in evaluation, laid out as the policy says."""
    network = entry.build(len(classes))
    taken = take(network, weights, classes)
    fresh = [*taken.replaced, *(name for name in taken.missing if not is_spare(name))]
    if fresh:
        raise OctavoltError(
            f"{weights.source} can't answer: of {entry.name} with {len(classes)} classes it lacks "
            f"{', '.join(fresh[:4])}{', ...' if len(fresh) > 4 else ''}, or has another shape. "
            "Train it first, or put back the files that belong together."
        )
    return placed(network, machine).eval()


def is_spare(name: str) -> bool:
    """Whether an answer needs no such tensor: a part that only training uses, or a counter."""
    return name.startswith("AuxLogits.") or name.endswith("num_batches_tracked")


def placed(network: Network, machine: Machine) -> Network:
    """Return the network on its device, laid out as the policy says."""
    network = network.to(machine.device)
    if machine.policy.channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def read_preprocessing(folder: Path) -> Preprocessing:
    """Return how a run's pictures become inputs."""
    value = read_fields(
        folder / "preprocessing.json",
        image_size=int,
        crop_fraction=(int, float),
        mean=list,
        deviation=list,
        white_level=int,
    )
    return Preprocessing(
        image_size=value["image_size"],
        crop_fraction=value["crop_fraction"],
        mean=tuple(value["mean"]),
        deviation=tuple(value["deviation"]),
        white_level=value["white_level"],
    )
