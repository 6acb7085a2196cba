"""Fine-tuning throughput on real texts: ours, and transformers' Trainer plain and at its best.

    pip install accelerate
    python benchmarks/text.py --data ../shared/data/banking77 --weights FOLDER

Three ways over the same texts with the same network, weights, batch, optimizer, rate and clipping,
in turn within one process; each goes once through the same texts a round, after a round to warm up:

ours       octavolt's loader and `train_steps`, with what the policy chooses for this machine
defaults   transformers' Trainer with nothing set but the batch, the rate and the number of texts
best       the same with bf16 autocast and batches grouped by length

Texts are tokenized beforehand in all three. The last line of output is one JSON document. Ratios
are medians over the rounds of ours against the other in the same round.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from octavolt.contract import DataSet, Making, Places, Reading, Shape
from octavolt.data import open_data
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order, epoch_updates
from octavolt.data.text.labelled import LabelledExamples
from octavolt.data.text.tokenizer import Tokenizer, read_tokenizer
from octavolt.devices import Machine, set_up, this_machine
from octavolt.networks import ENTRIES
from octavolt.networks.opened import placed
from octavolt.networks.weights import read_weights, take
from octavolt.train.loop import train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState

LENGTH = 128
RATE = 5e-5
CLIP = 1.0
Way = Callable[[int], float]
"""Takes the round; returns the seconds of one pass over the texts."""


def ours(data: DataSet, tokenizer: Tokenizer, weights: str, machine: Machine, batch: int) -> Way:
    """Return octavolt's loop over the texts."""
    entry = ENTRIES["bert-base"]
    found = read_weights(entry, weights)
    torch.manual_seed(0)
    network = entry.build(
        Shape(
            task="text-classification",
            classes=len(data.classes),
            vocabulary_size=tokenizer.size,
            length=LENGTH,
            sizes=found.sizes,
        )
    )
    take(network, found, data.classes)
    network = placed(network, machine).train()
    recipe = entry.recipes["fine-tune"]
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), recipe),
        scaler=torch.amp.GradScaler(machine.device.type, enabled=machine.policy.loss_scaling),
        precision=machine.policy.precision,
        device=machine.device,
    )
    examples = LabelledExamples(
        data.splits["train"],
        tokenizer,
        length=LENGTH,
        class_count=len(data.classes),
        several=False,
        making=Making(recipe=recipe),
    )

    def once(turn: int) -> float:
        order = epoch_order(
            len(examples), seed=0, epoch=turn, batch_size=batch, lengths=examples.lengths
        )
        plan = epoch_updates(order, seed=0, epoch=turn, batch_size=batch, micro_batch_size=batch)
        places: list[Places] = [one for update in plan for one in update]
        with Loader(threads=machine.threads, ahead=machine.ahead) as loader:
            loaded = loader.batches(examples, places)
            updates = ([(one.places, one.batch)] for one in loaded)
            began = time.perf_counter()
            for _ in train_steps(state, updates, lambda _: RATE, max_gradient_norm=CLIP):
                pass
            return time.perf_counter() - began

    return once


def trainer(data: DataSet, weights: str, batch: int, **settings: Any) -> Way:
    """Return transformers' Trainer over the texts."""
    import datasets
    import transformers

    transformers.utils.logging.set_verbosity_error()
    texts = data.splits["train"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(weights)
    rows = [texts.read(index) for index in range(len(texts))]
    table = datasets.Dataset.from_dict(
        tokenizer([row.texts[0] for row in rows], truncation=True, max_length=LENGTH)
        | {"labels": [row.labels[0] for row in rows]}
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        weights, num_labels=len(data.classes)
    )
    moments: list[float] = []

    class Clock(transformers.TrainerCallback):  # type: ignore[misc]
        """Notes when steps begin and end."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            moments.append(time.perf_counter())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            moments.append(time.perf_counter())

    def once(turn: int) -> float:
        moments.clear()
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                output_dir=folder,
                use_cpu=not torch.cuda.is_available(),
                per_device_train_batch_size=batch,
                num_train_epochs=1,
                learning_rate=RATE,
                seed=turn,
                save_strategy="no",
                report_to="none",
                disable_tqdm=True,
                **settings,
            )
            transformers.Trainer(
                model=model,
                args=arguments,
                train_dataset=table,
                data_collator=transformers.DataCollatorWithPadding(tokenizer),
                callbacks=[Clock()],
            ).train()
        return moments[-1] - moments[0]

    return once


def main() -> None:
    """Run the rounds and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--weights", required=True, help="a folder in the Hub's layout")
    parser.add_argument("--texts", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    machine = this_machine()
    set_up(machine)
    data = open_data(asked.data, modality="text", task="text-classification", reading=Reading())
    few = np.argsort(np.random.SFC64(0).random_raw(len(data.splits["train"])))[: asked.texts]
    data.splits["train"] = data.splits["train"].select(few)  # type: ignore[index]
    ways: dict[str, Way] = {
        "ours": ours(
            data, read_tokenizer(Path(asked.weights)), asked.weights, machine, asked.batch
        ),
        "defaults": trainer(data, asked.weights, asked.batch),
        "best": trainer(
            data,
            asked.weights,
            asked.batch,
            bf16=machine.policy.precision == "bf16",
            train_sampling_strategy="group_by_length",
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(asked.rounds + 1):
        for name, way in ways.items():
            taken = way(turn)
            if turn:
                seconds[name].append(taken)
                print(f"round {turn}: {name} {asked.texts / taken:.1f} texts/s", flush=True)
    ratios = {
        name: statistics.median(
            other / own for own, other in zip(seconds["ours"], seconds[name], strict=True)
        )
        for name in ("defaults", "best")
    }
    result = {
        "texts": asked.texts,
        "batch": asked.batch,
        "rounds": asked.rounds,
        "precision": machine.policy.precision,
        "threads": machine.threads,
        "texts_per_second": {
            name: asked.texts / statistics.median(some) for name, some in seconds.items()
        },
        "ours_against": ratios,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
