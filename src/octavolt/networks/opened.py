"""A network with its weights, ready to answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from octavolt.contract import Entry, Modality, Network, Preparation, Published, Shape, Task
from octavolt.devices import Machine
from octavolt.errors import OctavoltError, UnknownNameError
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
    preparation: Preparation
    machine: Machine
    run: Path | None


def open_network(
    named: str,
    machine: Machine,
    modalities: Mapping[str, Modality],
    *,
    weights: str | None = None,
    task: str | None = None,
) -> Opened:
    """Return the network of a run, or one of the table with published or given weights."""
    if weights is not None:
        refuse_run(named)
        entry = find(named)
        chosen = choose_task(entry, task)
        return open_entry(entry, chosen, read_weights(entry, weights), machine, modalities)
    if named.lower().replace("_", "-") in ENTRIES and not (Path("runs") / named).exists():
        published = next(iter(find(named).weights), None)
        known = f"{published}, a file, a folder" if published else "a file, a folder"
        raise OctavoltError(
            f"'{named}' is a network, not a run. Give its weights too: --weights {known} or a run; "
            "or train it first."
        )
    folder = find_run(named)
    settings = read_fields(folder / "settings.json", network=str, task=str)
    entry = find(settings["network"], folder)
    found = read_run(folder)
    assert found.classes is not None
    chosen = choose_task(entry, settings["task"])
    if task is not None and choose_task(entry, task) != chosen:
        raise OctavoltError(
            f"{folder} was trained for {chosen.name}, not for {task}. Leave --task away."
        )
    preparation = modalities[chosen.modality].read(folder)
    return Opened(
        network=ready(entry, found, preparation.shape(task=chosen.name), found.classes, machine),
        entry=entry,
        task=chosen,
        classes=found.classes,
        preparation=preparation,
        machine=machine,
        run=folder,
    )


def refuse_run(named: str) -> None:
    """Raise if weights were given for a run, which has its own."""
    if named.lower().replace("_", "-") in ENTRIES:
        return
    if any((folder / "settings.json").is_file() for folder in (Path(named), Path("runs") / named)):
        raise OctavoltError(
            f"'{named}' is a run and has its own weights. Leave --weights away, or name a network "
            "instead of the run."
        )


def choose_task(entry: Entry, asked: str | None) -> Task:
    """Return the task of that name, or the network's first."""
    if asked is None:
        return entry.tasks[0]
    known = {task.name: task for task in entry.tasks}
    typed = asked.lower().replace("_", "-")
    if typed not in known:
        raise UnknownNameError(f"task of {entry.name}", asked, known)
    return known[typed]


def open_entry(
    entry: Entry,
    task: Task,
    weights: Weights,
    machine: Machine,
    modalities: Mapping[str, Modality],
) -> Opened:
    """Return a network of the table with weights that come with no run."""
    with torch.device("meta"):
        # Of two classes, the fewest that every network takes: only names of the head matter here.
        heads = entry.build(Shape(task=task.name, classes=2, sizes=weights.sizes)).head()
    classes = (weights.classes or published_classes(entry, weights, heads)) if heads else ()
    preparation = modalities[task.modality].published(entry, task, classes, weights.folder)
    return Opened(
        network=ready(entry, weights, preparation.shape(task=task.name), classes, machine),
        entry=entry,
        task=task,
        classes=classes,
        preparation=preparation,
        machine=machine,
        run=None,
    )


def published_classes(entry: Entry, weights: Weights, heads: Sequence[str]) -> tuple[str, ...]:
    """Return the published names if there are as many as the head has rows, else numbers."""
    count = class_count(entry, weights, heads)
    if count is None:
        raise OctavoltError(
            f"The weights of {weights.source} have no head ({heads[0]}weight): they can start a "
            "training, but they know no classes. Train first: octavolt train "
            f"{entry.name} --weights {weights.source} --data YOURS"
        )
    for published in entry.weights.values():
        names = published.classes() if isinstance(published, Published) else ()
        if len(names) == count:
            return names
    return tuple(str(index) for index in range(count))


def class_count(entry: Entry, weights: Weights, heads: Sequence[str]) -> int | None:
    """Return how many classes the head of the weights tells apart; None without a head.

    Rows of a head grow by as many a class: one in a classifier, several in a detector.
    """
    for name, tensor in weights.tensors.items():
        if name.startswith(heads[0]) and name.endswith("weight"):
            two, three = (head_rows(entry, name, weights, count) for count in (2, 3))
            return 2 + (len(tensor) - two) // (three - two)
    return None


def head_rows(entry: Entry, name: str, weights: Weights, classes: int) -> int:
    """Return the rows of a tensor of the head in a network of so many classes."""
    with torch.device("meta"):
        shape = Shape(task=entry.tasks[0].name, classes=classes, sizes=weights.sizes)
        return len(entry.build(shape).body.state_dict()[name])


def ready(
    entry: Entry, weights: Weights, shape: Shape, classes: Sequence[str], machine: Machine
) -> Network:
    """Return the network on its device, in evaluation, laid out as the policy says."""
    network = entry.build(replace(shape, sizes=weights.sizes))
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
