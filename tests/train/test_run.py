import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from octavolt.contract import Pictures, Reading, Shape
from octavolt.data.balance import class_weights
from octavolt.errors import OctavoltError
from octavolt.train import train
from tests.train.tiny import ENTRY, request, write_pictures

FLAT: dict[str, Any] = {"network": "mobilenet-v2", "reading": Reading(image_size=32)}
"""The last maps have one pixel."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npz")


def lines(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def test_run_folder_holds_what_prediction_needs(data: Path, tmp_path: Path) -> None:
    run = train(request(data, tmp_path / "run"))
    assert {path.name for path in run.iterdir()} == {
        "checkpoints",
        "data.tsv.gz",
        "environment.json",
        "epochs.jsonl",
        "events.jsonl",
        "labels.json",
        "preprocessing.json",
        "settings.json",
        "steps.jsonl",
        "tensorboard",
        "weights.safetensors",
    }
    body = ENTRY.build(Shape(task="image-classification", classes=3)).body
    body.load_state_dict(load_file(run / "weights.safetensors"))  # torchvision's own names


def test_equal_runs_are_equal_to_the_last_bit(data: Path, tmp_path: Path) -> None:
    first, second = (train(request(data, tmp_path / name)) for name in ("first", "second"))
    assert (first / "weights.safetensors").read_bytes() == (
        second / "weights.safetensors"
    ).read_bytes()


def test_another_seed_gives_other_weights(data: Path, tmp_path: Path) -> None:
    first, second = (train(request(data, tmp_path / str(seed), seed=seed)) for seed in (0, 1))
    assert (first / "weights.safetensors").read_bytes() != (
        second / "weights.safetensors"
    ).read_bytes()


def test_body_stays_as_it_was_while_frozen(data: Path, tmp_path: Path) -> None:
    changes = {"epochs": 2, "freeze_epochs": 2, "ema_decay": 0.0, "weight_decay": 0.5}
    run = train(request(data, tmp_path / "run", changes=changes))
    torch.manual_seed(0)
    fresh = ENTRY.build(Shape(task="image-classification", classes=3)).body.state_dict()
    trained = load_file(run / "weights.safetensors")
    moved = {name for name in fresh if not torch.equal(fresh[name], trained[name])}
    assert moved == {"classifier.1.weight", "classifier.1.bias"}


def test_stops_early_when_no_better_for_long_enough(data: Path, tmp_path: Path) -> None:
    """Frozen, and with a learning rate of next to nothing, all epochs are as good as the first."""
    changes = {
        "epochs": 9,
        "freeze_epochs": 9,
        "learning_rate": 1e-12,
        "early_stop_epochs": 2,
        "ema_decay": 0.0,
    }
    run = train(request(data, tmp_path / "run", changes=changes))
    assert [row["best"] for row in lines(run, "epochs.jsonl")] == [True, False, False]
    assert lines(run, "events.jsonl")[-1]["kind"] == "early-stop"


def test_best_weights_are_those_of_the_best_epoch(data: Path, tmp_path: Path) -> None:
    changes = {"epochs": 6, "learning_rate": 0.05, "schedule": "constant", "warmup_epochs": 0.0}
    run = train(request(data, tmp_path / "run", changes=changes, save_steps=1))
    epochs = lines(run, "epochs.jsonl")
    ranked = [
        (row["val"]["top1_fraction"], -row["val"]["negative_log_likelihood_nats"]) for row in epochs
    ]
    best = ranked.index(max(ranked)) + 1
    assert max(row["epoch"] for row in epochs if row["best"]) == best
    shorter = train(
        request(data, tmp_path / "shorter", changes=changes | {"epochs": best}, save_steps=1)
    )
    assert (run / "weights.safetensors").read_bytes() == (
        shorter / "weights.safetensors"
    ).read_bytes()


def test_class_weights_by_hand() -> None:
    """Of 8 pictures 6 and 2: 8 / (2 x 6) and 8 / (2 x 2), whose mean over the pictures is 1."""

    class Eight(Pictures):
        labels = np.array([0] * 6 + [1] * 2)

        def read(self, index: int) -> bytes:
            raise NotImplementedError

        def name(self, index: int) -> str:
            raise NotImplementedError

        def select(self, indices: Any) -> Pictures:
            raise NotImplementedError

    weights = class_weights(Eight(), 2)
    assert weights.tolist() == pytest.approx([8 / 12, 8 / 4])
    assert float(weights[Eight.labels].mean()) == pytest.approx(1.0)


def test_cache_gives_a_run_of_its_own_that_is_read_from_one_file(
    data: Path, tmp_path: Path
) -> None:
    run = train(request(data, tmp_path / "run", cache=tmp_path / "cache"))
    assert len([*(tmp_path / "cache").glob("*/train.octavolt")]) == 1
    assert len([*(tmp_path / "cache").glob("*/val.octavolt")]) == 1
    assert len(lines(run, "epochs.jsonl")) == 3


def test_one_picture_left_over_is_trained_with_on_maps_of_one_pixel(tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "odd.npz", train=33)
    changes = {"epochs": 1, "batch_size": 8}
    run = train(request(data, tmp_path / "run", changes=changes, **FLAT))
    assert lines(run, "steps.jsonl")[-1]["step"] == 4


def test_a_batch_of_one_on_maps_of_one_pixel_is_refused(data: Path, tmp_path: Path) -> None:
    changes = {"epochs": 1, "batch_size": 1}
    with pytest.raises(OctavoltError, match=r"^A norm over the batch can't be taken of a single"):
        train(request(data, tmp_path / "run", changes=changes, **FLAT))
