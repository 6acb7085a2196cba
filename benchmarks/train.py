"""Training throughput on real pictures: ours, a bare loop, and torchvision's manner.

    python benchmarks/train.py --pictures ../shared/data/grocery-fruit12/train

Three loops over the same pictures, in turn within one process, a few steps each a round:

ours        octavolt's loader and `train_steps`, with what the policy chooses for this machine
bare        a loop written by hand with the same settings: precision, memory format, optimizer,
            and the same batches, already decoded; so the ratio holds all that octavolt adds
            to a step (its reading of pictures is timed apart, as the share of a step)
torchvision the way of its references: Pillow, float pictures, NCHW, fp32, SGD

The last line of output is one JSON document. Ratios are medians over the rounds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from octavolt.contract import Places, Shape
from octavolt.data import open_data
from octavolt.data.examples import Augmentation, PictureExamples
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order
from octavolt.devices import Machine, set_up, this_machine
from octavolt.networks import ENTRIES
from octavolt.networks.opened import placed
from octavolt.train.loop import train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState

Steps = Callable[[int], None]


def places(examples: PictureExamples, batch: int) -> Iterator[Places]:
    """Yield full batches without end."""
    for epoch in range(1, 10**6):
        order = epoch_order(len(examples), seed=0, epoch=epoch)
        for first in range(0, len(order) - batch + 1, batch):
            yield Places(seed=0, epoch=epoch, first=first, indices=order[first : first + batch])


def state_for(name: str, machine: Machine, classes: int) -> TrainState:
    """Return a network in training with its published recipe's optimizer."""
    torch.manual_seed(0)
    entry = ENTRIES[name]
    network = placed(entry.build(Shape(task=entry.tasks[0].name, classes=classes)), machine).train()
    return TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), entry.recipes["published"]),
        scaler=torch.amp.GradScaler(machine.device.type, enabled=machine.policy.loss_scaling),
        precision=machine.policy.precision,
        device=machine.device,
    )


def ours(state: TrainState, examples: PictureExamples, loader: Loader, batch: int) -> Steps:
    """Return octavolt's loop with its loader."""
    loaded = loader.batches(examples, places(examples, batch))
    steps = train_steps(state, ([(one.places, one.batch)] for one in loaded), lambda _: 1e-3)
    return lambda count: [None for _ in islice(steps, count)] and None


def ours_decoded(state: TrainState, batches: list[Any]) -> Steps:
    """Return octavolt's loop over batches that are decoded already."""
    steps = train_steps(state, ([one] for one in cycle(batches)), lambda _: 1e-3)
    return lambda count: [None for _ in islice(steps, count)] and None


def bare(state: TrainState, batches: list[Any]) -> Steps:
    """Return a loop by hand with the same settings over the same decoded batches."""
    network, optimizer, scaler = state.network, state.optimizer, state.scaler
    turns = cycle(batches)
    criterion = nn.CrossEntropyLoss()

    def steps(count: int) -> None:
        for _ in range(count):
            _, batch = next(turns)
            ready = batch.to(state.device)
            with state.autocast():
                outputs = network.body(ready.images)
                if isinstance(outputs, torch.Tensor):
                    loss = criterion(outputs, ready.labels)
                else:
                    loss = criterion(outputs.logits, ready.labels)
                    loss = loss + 0.4 * criterion(outputs.aux_logits, ready.labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            loss.item()

    return steps


class Folder(Dataset[Any]):
    """Pictures in torchvision's manner."""

    def __init__(self, files: list[Path], labels: np.ndarray, size: int) -> None:
        self.files, self.labels = files, labels
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(size),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB")), int(self.labels[index])


def torchvisions(name: str, data: Folder, classes: int, batch: int) -> Steps:
    """Return the loop of torchvision's references: fp32, NCHW, SGD, pictures by Pillow.

    Pictures are read in the process itself: workers would fight the step for the two cores.
    """
    torch.manual_seed(0)
    network = ENTRIES[name].build(Shape(task="image-classification", classes=classes)).body.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    def endless() -> Iterator[Any]:
        while True:
            yield from DataLoader(data, batch_size=batch, shuffle=True, drop_last=True)

    turns = endless()

    def steps(count: int) -> None:
        for _ in range(count):
            images, labels = next(turns)
            outputs = network(images)
            if isinstance(outputs, torch.Tensor):
                loss = criterion(outputs, labels)
            else:
                loss = criterion(outputs.logits, labels)
                loss = loss + 0.4 * criterion(outputs.aux_logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return steps


def timed(steps: Steps, count: int) -> float:
    """Return the seconds of so many steps."""
    began = time.perf_counter()
    steps(count)
    return time.perf_counter() - began


def compare(name: str, arguments: argparse.Namespace, machine: Machine) -> dict[str, Any]:
    """Return the medians of one network."""
    entry = ENTRIES[name]
    pictures = open_data(arguments.pictures).splits["train"]
    classes = int(pictures.labels.max()) + 1
    examples = PictureExamples(
        pictures, entry.preprocessing, class_count=classes, augmentation=Augmentation()
    )
    files = [Path(arguments.pictures) / pictures.name(index) for index in range(len(pictures))]
    batch, count = arguments.batch, arguments.steps
    with Loader(threads=machine.threads, ahead=machine.ahead) as loader:
        decoded = [
            (one.places, one.batch)
            for one in islice(loader.batches(examples, places(examples, batch)), 4)
        ]
        loops: dict[str, Steps] = {
            "ours": ours(state_for(name, machine, classes), examples, loader, batch),
            "ours, decoded": ours_decoded(state_for(name, machine, classes), decoded),
            "bare, decoded": bare(state_for(name, machine, classes), decoded),
            "torchvision": torchvisions(
                name,
                Folder(files, pictures.labels, entry.preprocessing.image_size),
                classes,
                batch,
            ),
        }
        for steps in loops.values():
            steps(1)
        rounds = [
            {label: timed(steps, count) for label, steps in loops.items()}
            for _ in range(arguments.rounds)
        ]
    rates = {
        label: batch * count / statistics.median(one[label] for one in rounds) for label in loops
    }

    def ratio(first: str, second: str) -> float:
        return statistics.median(one[second] / one[first] for one in rounds)

    return {
        "network": name,
        "batch": batch,
        "pixels": entry.preprocessing.image_size,
        "pictures_per_second": rates,
        "ours_to_torchvision": ratio("ours", "torchvision"),
        "ours_to_bare": ratio("ours, decoded", "bare, decoded"),
        "reading_fraction": 1
        - statistics.median(one["ours, decoded"] / one["ours"] for one in rounds),
    }


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pictures", default="../shared/data/grocery-fruit12/train")
    parser.add_argument("--networks", nargs="+", default=[*ENTRIES])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    machine = this_machine()
    set_up(machine)
    print(machine.policy.reason)
    results = []
    for name in arguments.networks:
        one = compare(name, arguments, machine)
        results.append(one)
        rates = ", ".join(f"{key} {value:.1f}" for key, value in one["pictures_per_second"].items())
        print(f"{name}: pictures/s: {rates}")
        print(
            f"  ours to torchvision's manner {one['ours_to_torchvision']:.2f}, ours to the bare "
            f"loop {one['ours_to_bare']:.3f}, reading {one['reading_fraction']:.1%} of a step",
            flush=True,
        )
    print(json.dumps({"policy": machine.policy.reason, "results": results}))


if __name__ == "__main__":
    main()
