"""What only a GPU can show; runs wherever there is one."""

import json
from pathlib import Path

import pytest
import torch

from octavolt.devices import this_machine
from octavolt.train import resume, train
from octavolt.train.run import Stopped
from tests.train.test_resume import StopAt
from tests.train.tiny import request, write_pictures

pytestmark = pytest.mark.gpu


def test_precision_is_the_one_of_the_capability(tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "pictures.npz")
    run = train(request(data, tmp_path / "run", precision="auto"))
    settings = json.loads((run / "settings.json").read_text())
    capability = torch.cuda.get_device_capability()
    expected = "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"
    assert settings["precision"] == expected == this_machine().policy.precision


def test_it_learns_on_a_gpu_and_goes_on_after_a_stop(tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "pictures.npz", train=120, val=30)
    changes = {"epochs": 12, "learning_rate": 5e-3}
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        train(request(data, run, precision="auto", changes=changes), tell=StopAt(20))
    resume(run)
    epochs = [json.loads(line) for line in (run / "epochs.jsonl").read_text().splitlines()]
    assert epochs[-1]["train_loss"] < 0.7 * epochs[0]["train_loss"]
    assert max(row["val"]["top1_fraction"] for row in epochs) > 0.8
