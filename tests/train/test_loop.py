import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch.amp.grad_scaler import GradScaler
from torch.testing import assert_close

from octavolt.contract import Places
from octavolt.networks.recipes import SMALL_DATA
from octavolt.tasks.image_classification import ImageBatch
from octavolt.train.loop import MicroBatch, Step, StepOutOfMemoryError, train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState, averaged_weights, start_ema
from octavolt.train.watch import WrongStepError
from tests.train.tiny import Linear


def state_of(network: Any, *, fp16: bool = False, ema: float = 0.0) -> TrainState:
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), SMALL_DATA),
        scaler=GradScaler("cpu", enabled=fp16),
        precision="fp16" if fp16 else "fp32",
        device=torch.device("cpu"),
        ema_decay=ema,
    )
    if ema:
        start_ema(state)
    return state


def samples(first: int, count: int) -> MicroBatch:
    random = torch.Generator().manual_seed(0)
    images = torch.randn(32, 3, 2, 2, generator=random)[first : first + count]
    labels = (torch.arange(32) % 3)[first : first + count]
    targets = torch.nn.functional.one_hot(labels, 3).float()
    places = Places(seed=0, epoch=1, first=first, indices=np.arange(first, first + count))
    return places, ImageBatch(images=images, targets=targets, labels=labels)


def run(state: TrainState, updates: Sequence[Sequence[MicroBatch]]) -> list[Step]:
    return [*train_steps(state, updates, lambda _: 1e-2)]


@pytest.mark.parametrize("sizes", [(4, 4), (7, 1), (1, 2, 5)])
def test_accumulation_equals_one_large_batch(sizes: tuple[int, ...]) -> None:
    split, whole = Linear(), Linear()
    firsts = [sum(sizes[:at]) for at in range(len(sizes))]
    parts = [samples(first, size) for first, size in zip(firsts, sizes, strict=True)]

    in_parts = run(state_of(split), [parts] * 3)
    at_once = run(state_of(whole), [[samples(0, 8)]] * 3)

    # The two differ by the order of 8 additions in fp32, over 3 steps.
    assert_close(split.state_dict(), whole.state_dict(), rtol=1e-5, atol=1e-7)
    assert [one.losses["classification"] for one in in_parts] == pytest.approx(
        [one.losses["classification"] for one in at_once], rel=1e-5
    )


class Unasked(ImageBatch):
    """A batch of which nothing is asked, as a masked window of special tokens alone."""

    @property
    def weight(self) -> float:
        return 0.0


def test_an_update_of_which_nothing_is_asked_learns_nothing_and_goes_on() -> None:
    places, batch = samples(0, 4)
    assert isinstance(batch, ImageBatch)
    idle = Unasked(images=batch.images, targets=batch.targets, labels=batch.labels)
    first, second = run(state_of(Linear()), [[(places, idle)], [samples(4, 4)]])
    assert first.losses == {"classification": 0.0}
    assert first.gradient_norm == 0
    assert second.losses["classification"] > 0


def test_running_out_of_memory_changes_nothing() -> None:
    network = Linear(most_samples=4)
    before = deepcopy(network.state_dict())
    state = state_of(network)
    with pytest.raises(StepOutOfMemoryError):
        run(state, [[samples(0, 4), samples(4, 8)]])
    assert state.steps_done == 0
    assert all(one.grad is None for one in network.parameters())
    assert_close(network.state_dict(), before, rtol=0, atol=0)


def test_other_errors_of_a_network_are_not_taken_for_a_lack_of_memory() -> None:
    class Broken(Linear):
        def losses(self, batch: ImageBatch) -> dict[str, torch.Tensor]:
            raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        run(state_of(Broken()), [[samples(0, 4)]])


def test_loss_that_is_not_finite_stops_with_module_and_samples() -> None:
    network = Linear()
    places, batch = samples(0, 4)
    assert isinstance(batch, ImageBatch)
    batch.images[2] = math.inf
    before = deepcopy(network.state_dict())
    names = train_steps(
        state_of(network), [[(places, batch)]], lambda _: 1e-2, name="photo {}.jpg".format
    )
    with pytest.raises(
        WrongStepError,
        match=r"^Step 1: the loss is (nan|inf)\. First not finite: the output of body \(largest "
        r"input inf\), in epoch 1, with 4 samples from place 0 \(photo 0\.jpg, photo 1\.jpg, ",
    ):
        next(names)
    assert_close(network.state_dict(), before, rtol=0, atol=0)


def test_gradients_of_exactly_zero_stop() -> None:
    class Deaf(Linear):
        def losses(self, batch: ImageBatch) -> dict[str, torch.Tensor]:
            return {"classification": self.body.weight.sum() * 0}

    with pytest.raises(WrongStepError, match="every gradient is exactly zero"):
        run(state_of(Deaf()), [[samples(0, 4)]])


def test_fp16_overflow_leaves_the_step_out_and_halves_the_scale() -> None:
    class Steep(Linear):
        def losses(self, batch: ImageBatch) -> dict[str, torch.Tensor]:
            with torch.autocast("cpu", enabled=False):
                return {"classification": (self.body.weight.half().sum() * 60).float()}

    network = Steep()
    before = deepcopy(network.state_dict())
    state = state_of(network, fp16=True)
    steps = run(state, [[samples(0, 4)]])
    assert not steps[0].applied
    assert steps[0].loss_scale == 65536
    assert state.scaler.get_scale() == 32768
    assert_close(network.state_dict(), before, rtol=0, atol=0)


def test_loss_scale_below_one_stops() -> None:
    state = state_of(Linear(), fp16=True)
    state.scaler.load_state_dict(state.scaler.state_dict() | {"scale": 0.5})
    with pytest.raises(WrongStepError, match=r"the loss scale fell to 0\.5: fp16 overflows"):
        run(state, [[samples(0, 4)]])


def test_running_mean_by_hand() -> None:
    """After one step the decay is min(0.9, 2 / 11), so the mean is 2/11 old and 9/11 new."""
    network = Linear()
    old = network.body.weight.detach().clone()
    state = state_of(network, ema=0.9)
    run(state, [[samples(0, 4)]])
    expected = 2 / 11 * old + 9 / 11 * network.body.weight.detach()
    with averaged_weights(state):
        assert_close(network.body.weight.detach(), expected)


def test_weights_come_back_after_their_mean_was_used() -> None:
    network = Linear()
    state = state_of(network, ema=0.9)
    run(state, [[samples(0, 4)]] * 2)
    kept = network.body.weight.detach().clone()
    with averaged_weights(state):
        assert not torch.equal(network.body.weight, kept)
    assert torch.equal(network.body.weight, kept)


def test_clipping_bounds_the_step_and_tells_the_norm_before_it() -> None:
    network = Linear()
    before = network.body.weight.detach().clone()
    state = state_of(network)
    state.optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    (step,) = train_steps(state, [[samples(0, 8)]], lambda _: 1.0, max_gradient_norm=1e-3)
    assert step.gradient_norm > 0.1
    moved = torch.linalg.vector_norm(network.body.weight.detach() - before)
    assert float(moved) <= 1.001e-3
