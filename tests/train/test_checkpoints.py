import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.amp.grad_scaler import GradScaler
from torch.testing import assert_close

from octavolt.errors import OctavoltError
from octavolt.networks.recipes import SMALL_DATA
from octavolt.train import checkpoints
from octavolt.train.checkpoints import Progress, load_newest, save
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState
from tests.train.tiny import Linear

SMALL_BYTES = 1000


def state_at(step: int) -> TrainState:
    network = Linear()
    with torch.no_grad():
        network.body.weight.fill_(step)
    return TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), SMALL_DATA),
        scaler=GradScaler("cpu", enabled=False),
        precision="fp32",
        device=torch.device("cpu"),
    )


def progress(step: int) -> Progress:
    return Progress(epoch=1, update=step, steps_done=step, seconds=0.0, micro_batch_size=4)


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file grow beyond a few bytes: as a full disk does, the system refuses the write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_BYTES // 10, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_leaves_the_last_good_checkpoint_whole_and_says_which(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    good = save(folder, state_at(1), progress(1))
    with (
        no_room(),
        pytest.raises(
            OctavoltError,
            match=rf"^Can't save step 2 into .*\. The last good checkpoint is {good.name}\. Make "
            r"room, then go on with: octavolt train --resume ",
        ),
    ):
        save(folder, state_at(2), progress(2))
    assert [path.name for path in folder.iterdir()] == [good.name]
    state = state_at(0)
    where, notes = load_newest(folder, state)
    assert where.steps_done == 1
    assert notes == []
    assert float(state.network.body.weight.detach()[0, 0]) == 1.0  # type: ignore[operator]


def test_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path / "checkpoints", state_at(step), progress(step))
    assert [int(path.name[5:14]) for path in checkpoints.checkpoints(tmp_path / "checkpoints")] == [
        3,
        2,
    ]


@pytest.mark.parametrize("damage", ["cut", "altered", "empty"])
def test_damage_is_noticed(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    save(folder, state_at(1), progress(1))
    newest = save(folder, state_at(2), progress(2))
    content = newest.read_bytes()
    altered = content[:-1] + bytes([content[-1] ^ 128])
    newest.write_bytes({"cut": content[:-1], "altered": altered, "empty": b""}[damage])
    where, notes = load_newest(folder, state_at(0))
    assert where.steps_done == 1
    assert len(notes) == 1


def test_state_of_the_optimizer_is_laid_out_as_its_parameters(tmp_path: Path) -> None:
    """Fused kernels walk both side by side: another layout would mix up the elements."""
    weight = torch.nn.Parameter(torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last))
    weight.grad = torch.arange(48.0).reshape(4, 3, 2, 2)
    optimizer = build_optimizer([("weight", weight)], SMALL_DATA)
    optimizer.step()
    moment = optimizer.state[weight]["exp_avg"].clone()
    again = build_optimizer([("weight", weight)], SMALL_DATA)
    checkpoints.load_optimizer(
        again,
        {
            f"optimizer.0/{name}": torch.as_tensor(value).contiguous()
            for name, value in optimizer.state[weight].items()
        },
    )
    loaded = again.state[weight]["exp_avg"]
    assert loaded.stride() == weight.stride()
    assert_close(loaded, moment, rtol=0, atol=0)
