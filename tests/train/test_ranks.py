import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from octavolt import ranks
from octavolt.data import MODALITIES
from octavolt.devices import set_up, this_machine
from octavolt.errors import OctavoltError
from octavolt.evaluate import evaluate
from octavolt.networks.opened import open_network
from octavolt.ranks import Rank, first_host, given
from octavolt.runs import write_json
from octavolt.train import Stopped, resume, train
from octavolt.train.launch import launched
from tests.train.test_resume import StopAt
from tests.train.tiny import request, write_pictures

TWENTY_FOUR_STEPS = {"changes": {"epochs": 4, "ema_decay": 0.9}, "micro_batch_size": 4}


def silent(*_: object) -> None:
    """Tell nobody; a function of a module, so that it can go to other processes."""


def parameters(run: Path) -> dict[str, torch.Tensor]:
    """Return the parameters at the end of a run, without the running statistics of norms."""
    (newest,) = sorted((run / "checkpoints").glob("step-*"))[-1:]
    tensors = load_file(newest)
    return {
        name: tensor
        for name, tensor in tensors.items()
        if name.startswith("network/") and "running_" not in name and "num_batches" not in name
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npz")


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one rank; each update is two micro-batches, the last of an epoch one."""
    return train(request(data, tmp_path_factory.mktemp("alone") / "run", **TWENTY_FOUR_STEPS))


@pytest.mark.slow
def test_two_ranks_give_the_parameters_of_one(alone: Path, data: Path, tmp_path: Path) -> None:
    together = train(
        replace(request(data, tmp_path / "run", **TWENTY_FOUR_STEPS), processes=2),
        tell=silent,
        progress=silent,
    )
    # The sums over two micro-batches are added by another process: fp32, 24 steps.
    assert_close(parameters(together), parameters(alone), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_run_of_one_rank_goes_on_with_two_in_the_order_of_one(
    alone: Path, data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        train(request(data, run, **TWENTY_FOUR_STEPS), tell=StopAt(9))
    resume(run, processes=2, tell=silent, progress=silent)
    assert_close(parameters(run), parameters(alone), rtol=0, atol=1e-6)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_out_of_memory_on_one_rank_halves_on_all_and_changes_nothing_else(
    processes: int, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUNGRY_RANK", str(processes - 1))
    hungry = request(data, tmp_path / "hungry", network="tests.train.hungry", micro_batch_size=4)
    frugal = request(data, tmp_path / "frugal", micro_batch_size=2)
    runs = [
        train(replace(one, processes=processes), tell=silent, progress=silent)
        for one in (hungry, frugal)
    ]
    assert_close(parameters(runs[0]), parameters(runs[1]), rtol=0, atol=0)
    event = json.loads((runs[0] / "events.jsonl").read_text().splitlines()[0])
    assert event["message"] == (
        f"Out of memory at micro-batch 4: goes on at 2, {4 // processes} passes an update on each "
        f"of {processes}. The batch of 8, the recipe and the order of samples stay as they were."
    )


def scored(subject: tuple[Path, Path], **_: Any) -> Path:
    """Evaluate a run on the training split; return where the figures are."""
    run, output = subject
    rank = given(os.environ) or Rank()
    machine = this_machine(precision="fp32", rank=rank, threads=1)
    set_up(machine)
    with ranks.joined(rank, machine.device):
        result = evaluate(open_network(str(run), machine, MODALITIES), split="train", rank=rank)
    if rank.leads:
        write_json(output, result)
    return output


@pytest.mark.slow
def test_evaluation_on_two_ranks_gives_exactly_the_figures_of_one(
    alone: Path, tmp_path: Path
) -> None:
    one = scored((alone, tmp_path / "one.json"))
    two = launched(
        scored, (alone, tmp_path / "two.json"), processes=2, tell=silent, progress=silent
    )
    first, second = (json.loads(path.read_text()) for path in (one, two))
    assert first["metrics"]["samples"] == 44
    assert first["metrics"] == second["metrics"]
    assert first["mistakes"] == second["mistakes"]


def failing(_subject: None, **_: Any) -> Path:
    """Fail on rank 1 while rank 0 waits for it."""
    rank = given(os.environ) or Rank()
    with ranks.joined(rank, torch.device("cpu")):
        if rank.number == 1:
            raise OctavoltError("photo.jpg: truncated.")
        ranks.wait()
    return Path()


@pytest.mark.slow
def test_what_the_first_rank_to_fail_says_is_what_the_user_reads() -> None:
    with pytest.raises(OctavoltError, match=r"^photo\.jpg: truncated\.$"):
        launched(failing, None, processes=2, tell=silent, progress=silent)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        (
            {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
            Rank(number=5, count=8, local_number=1, local_count=4),
        ),
        (
            {
                "SLURM_STEP_ID": "0",
                "SLURM_PROCID": "3",
                "SLURM_NTASKS": "4",
                "SLURM_LOCALID": "1",
                "SLURM_NTASKS_PER_NODE": "2",
            },
            Rank(number=3, count=4, local_number=1, local_count=2),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # a batch script, not a step of it
    ],
)
def test_rank_is_what_the_launcher_gave(environment: dict[str, str], expected: Rank | None) -> None:
    assert given(environment) == expected


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("gpu01", "gpu01"),
        ("gpu[03-05,9],cpu1", "gpu03"),
        ("a,b", "a"),
        ("rack[2]-node7,x", "rack2-node7"),
    ],
)
def test_first_host_of_slurms_list(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


def test_buckets_hold_all_tensors_in_order_and_one_type_each() -> None:
    tensors = [torch.zeros(size) for size in (3, 5, 2)] + [torch.zeros(1, dtype=torch.float64)]
    groups = [*ranks.buckets(tensors, limit_bytes=32)]
    assert [[len(one) for one in group] for group in groups] == [[3, 5], [2], [1]]
