from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from octavolt.contract import Entry, HubWeights, Places, Published, ReadyBatch, Task
from octavolt.networks import ENTRIES, find
from octavolt.train.loop import train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.state import TrainState

from .samples import BATCHES, shape

each_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
TINY = {entry.build_tiny: entry for entry in reversed(ENTRIES.values())}
"""One entry for each tiny network: sizes of a family share theirs."""
each_task = pytest.mark.parametrize(
    ("entry", "task"),
    [
        pytest.param(entry, task, id=f"{entry.name}-{task.name}")
        for entry in reversed(TINY.values())
        for task in entry.tasks
    ],
)
LABELLING = (
    "object-detection",
    "image-classification",
    "text-classification",
    "multi-label-text-classification",
)


def parts_of(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def ready(entry: Entry, task: Task, count: int = 8) -> ReadyBatch:
    return BATCHES[task.name](entry, count).to(torch.device("cpu"))


@each_entry
def test_parameter_count_is_the_published_one(entry: Entry) -> None:
    with torch.device("meta"):
        body = entry.build(entry.published_shape).body
    # The state dict has the real rows of a vocabulary alone.
    state = body.state_dict()
    assert sum(state[name].numel() for name, _ in body.named_parameters()) == entry.parameter_count


@each_entry
def test_forward_work_is_the_published_one(entry: Entry) -> None:
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = entry.build(entry.published_shape).eval()
        network(*[one.to("meta") for one in entry.example_inputs(1)])
    assert counter.get_total_flops() == 2 * entry.forward_multiply_adds


@each_task
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_overfits_one_batch(entry: Entry, task: Task, precision: str) -> None:
    torch.manual_seed(0)
    network = entry.build_tiny(shape(task, dropout=0.0))
    # The schedule is not in question, so neither is whether this optimizer is the recipe's.
    recipe = replace(entry.recipes["small-data"], optimizer="adamw")
    state = TrainState(
        network=network,
        optimizer=build_optimizer(network.named_parameters(), recipe),
        scaler=GradScaler("cpu", enabled=False),
        precision=precision,
        device=torch.device("cpu"),
    )
    network.train()
    places = Places(seed=0, epoch=1, first=0, indices=torch.arange(8).numpy())
    efforts = {"pictures": (8, 2e-3), "boxes": (80, 5e-3), "text": (30, 1e-2)}
    updates, rate = efforts[task.modality]
    steps = [
        *train_steps(state, [[(places, BATCHES[task.name](entry, 8))]] * updates, lambda _: rate)
    ]
    first, last = (sum(step.losses.values()) for step in (steps[0], steps[-1]))
    assert last < 0.5 * first


@each_task
def test_answers_of_a_batch_are_those_of_each_alone(entry: Entry, task: Task) -> None:
    torch.manual_seed(0)
    network = entry.build_tiny(shape(task)).eval()
    inputs = ready(entry, task, 3).inputs
    with torch.inference_mode():
        together = parts_of(network(*inputs))
        alone = [parts_of(network(*[one[row : row + 1] for one in inputs])) for row in range(3)]
    # Products of another batch size may add in another order.
    for whole, parts in zip(together, zip(*alone, strict=True), strict=True):
        assert_close(whole, torch.cat(parts), rtol=1e-4, atol=1e-5)


@each_task
def test_score_and_answers_take_what_the_network_gives(entry: Entry, task: Task) -> None:
    if task.name == "question-answering":
        pytest.skip("its answers need contexts: see the tests of the task")
    classes = ("a", "b", "c", "d")
    network = entry.build_tiny(shape(task)).eval()
    batch = ready(entry, task)
    with torch.inference_mode():
        decoded = network.decode(network(*batch.inputs))
    score = task.new_score(classes)
    score.update(decoded, batch)
    result = score.result()
    assert result["samples"] == 8
    assert {task.primary_metric, task.tie_metric} <= set(result)
    assert len(task.present(decoded, batch, classes)) == 8
    found = task.mistakes(decoded, batch, torch.arange(8).numpy(), classes)
    assert all(one.label != one.predicted for one in found)


@each_task
def test_loss_is_that_of_the_score(entry: Entry, task: Task) -> None:
    """What training minimizes is the mean over what `weight` counts; so is the score's."""
    if task.name in {"image-classification", "object-detection", "question-answering"}:
        pytest.skip("norms over the batch, contexts or the choice of boxes stand in between")
    network = entry.build_tiny(shape(task)).eval()
    batch = ready(entry, task)
    with torch.inference_mode():
        (loss,) = network.losses(batch).values()
        score = task.new_score(("a", "b", "c", "d"))
        score.update(network.decode(network(*batch.inputs)), batch)
    # The loss is in fp32, the score in fp64.
    assert float(loss) == pytest.approx(score.result()[task.tie_metric], rel=1e-5)


@each_task
def test_head_is_what_depends_on_the_classes(entry: Entry, task: Task) -> None:
    with torch.device("meta"):
        few, many = (
            entry.build_tiny(shape(task, classes=count)).body.state_dict() for count in (3, 7)
        )
        heads = tuple(entry.build_tiny(shape(task, classes=3)).head())
    differing = [name for name in few if few[name].shape != many[name].shape]
    assert bool(differing) == (task.name in LABELLING)
    if differing:
        assert differing == [name for name in few if name.startswith(heads)]
    assert all(any(name.startswith(head) for name in few) for head in heads)


@each_task
def test_every_parameter_is_trained(entry: Entry, task: Task) -> None:
    network = entry.build_tiny(shape(task)).train()
    loss: Tensor = torch.stack([*network.losses(ready(entry, task)).values()]).sum()
    loss.backward()
    assert [name for name, one in network.named_parameters() if one.grad is None] == []


@each_entry
def test_published_file_tells_its_digest(entry: Entry) -> None:
    for name, published in entry.weights.items():
        if isinstance(published, HubWeights):
            assert published.repository.endswith("/" + name)
        else:
            assert isinstance(published, Published)
            digits = published.file.rpartition("-")[2].partition(".")[0]
            assert len(digits) == 8
            plain = published.file.replace(f"-{digits}", "") if entry.read_file else published.file
            assert published.address.endswith(plain)
            # A backbone's weights know none.
            assert len(published.classes()) in {0, entry.published_shape.classes}


@each_entry
def test_explained_layer_exists(entry: Entry) -> None:
    with torch.device("meta"):
        network = entry.build(entry.published_shape)
        assert network.get_submodule(entry.explain_layer) is not None


@each_entry
def test_recipes_say_where_they_come_from(entry: Entry) -> None:
    assert set(entry.recipes) == {"published", "small-data", "fine-tune"}
    assert all(len(recipe.source) > 10 for recipe in entry.recipes.values())


def test_names_are_found_as_people_type_them() -> None:
    assert find("bert").name == find("BERT_base").name == "bert-base"
    assert find("GPT2_xl").name == "gpt2-xl"
