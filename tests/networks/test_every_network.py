import pytest
import torch
from torch.amp.grad_scaler import GradScaler
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from octavolt.contract import Entry, Places
from octavolt.networks import ENTRIES
from octavolt.tasks.image_classification import PictureBatch
from octavolt.train.loop import train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState

pytestmark = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


def batch_of(entry: Entry, count: int = 8) -> PictureBatch:
    size = entry.tiny_image_size
    random = torch.Generator().manual_seed(0)
    return PictureBatch(
        pixels=torch.randint(0, 256, (count, size, size, 3), dtype=torch.uint8, generator=random),
        labels=torch.arange(count) % 4,
        class_count=4,
        preprocessing=entry.preprocessing,
    )


def places(count: int = 8) -> Places:
    return Places(seed=0, epoch=1, first=0, indices=torch.arange(count).numpy())


def test_parameter_count_is_the_published_one(entry: Entry) -> None:
    with torch.device("meta"):
        network = entry.build(1000)
    assert sum(one.numel() for one in network.parameters()) == entry.parameter_count


def test_forward_work_is_the_published_one(entry: Entry) -> None:
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = entry.build(1000).eval()
        network(*[one.to("meta") for one in entry.example_inputs(1)])
    assert counter.get_total_flops() == 2 * entry.forward_multiply_adds


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_overfits_one_batch(entry: Entry, precision: str) -> None:
    torch.manual_seed(0)
    network = entry.build_tiny(4)
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.parameters(), entry.recipes["small-data"]),
        scaler=GradScaler("cpu", enabled=False),
        precision=precision,
        device=torch.device("cpu"),
    )
    network.train()
    updates = [[(places(), batch_of(entry))]] * 8
    steps = [*train_steps(state, updates, lambda _: 2e-3)]
    first, last = (sum(step.losses.values()) for step in (steps[0], steps[-1]))
    assert last < 0.5 * first


def test_answers_of_a_batch_are_those_of_each_alone(entry: Entry) -> None:
    torch.manual_seed(0)
    network = entry.build_tiny(4).eval()
    images = batch_of(entry, 3).to(torch.device("cpu")).images
    with torch.inference_mode():
        together = network(images)
        alone = torch.cat([network(one[None]) for one in images])
    # Convolutions of another batch size may add in another order.
    assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_head_is_what_depends_on_the_classes(entry: Entry) -> None:
    with torch.device("meta"):
        few, many = (entry.build(count).body.state_dict() for count in (3, 7))
        heads = tuple(entry.build(3).head())
    differing = [name for name in few if few[name].shape != many[name].shape]
    assert differing == [name for name in few if name.startswith(heads)]


def test_published_file_tells_its_digest(entry: Entry) -> None:
    for published in entry.weights.values():
        assert published.address.endswith(published.file)
        assert len(published.classes()) == 1000


def test_explained_layer_exists(entry: Entry) -> None:
    with torch.device("meta"):
        assert entry.build(2).get_submodule(entry.explain_layer) is not None


def test_recipes_say_where_they_come_from(entry: Entry) -> None:
    assert set(entry.recipes) == {"published", "small-data", "fine-tune"}
    assert all(len(recipe.source) > 10 for recipe in entry.recipes.values())
