from copy import deepcopy

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from octavolt.contract import Entry, Network, Task
from octavolt.networks import ENTRIES
from octavolt.networks.language import LanguageNetwork

from .samples import BATCHES, ROWS, each_task, shape

TIES = {
    "masked-language-modeling": {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    "causal-language-modeling": {"lm_head.weight": "transformer.wte.weight"},
    "dialogue": {"lm_head.weight": "transformer.wte.weight"},
}


def built(entry: Entry, task: Task, seed: int = 0) -> LanguageNetwork:
    torch.manual_seed(seed)
    network = entry.build_tiny(shape(task)).eval()
    assert isinstance(network, LanguageNetwork)
    return network


def tables(network: LanguageNetwork) -> list[torch.nn.Parameter]:
    """Return what has a row a token, padded ones too."""
    return [network.body.get_parameter(name) for name in network.vocabulary.names]


def loss(network: Network, entry: Entry, task: Task) -> Tensor:
    batch = BATCHES[task.name](entry, 4).to(torch.device("cpu"))
    return torch.stack([*network.losses(batch).values()]).sum()


@each_task
def test_rows_are_padded_inside_alone(entry: Entry, task: Task) -> None:
    network = built(entry, task)
    state = network.body.state_dict()
    for name, table in zip(network.vocabulary.names, tables(network), strict=True):
        assert (len(state[name]), len(table)) == (ROWS, 32)
        assert not table[ROWS:].any()
    assert not set(state) & set(TIES.get(task.name, {}))
    logits = network(*BATCHES[task.name](entry, 2).to(torch.device("cpu")).inputs)
    assert logits.shape[-1] in {2, 4, ROWS}


@each_task
def test_padded_rows_have_no_gradient_and_stay_zero(entry: Entry, task: Task) -> None:
    network = built(entry, task)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1, weight_decay=0.1)
    loss(network, entry, task).backward()
    for table in tables(network):
        assert table.grad is not None
        assert not table.grad[ROWS:].any()
        assert table.grad[:ROWS].any() or table.ndim == 1
    optimizer.step()
    assert all(not table[ROWS:].any() for table in tables(network))


@each_task
def test_what_stands_in_padded_rows_changes_no_loss(entry: Entry, task: Task) -> None:
    network = built(entry, task)
    before = loss(network, entry, task).item()
    with torch.no_grad():
        for table in tables(network):
            table[ROWS:] = 100.0
    assert loss(network, entry, task).item() == before


@each_task
def test_state_goes_to_another_network_and_ties_stay(entry: Entry, task: Task) -> None:
    first, second = built(entry, task), built(entry, task, seed=1)
    state = {name: tensor.clone() for name, tensor in first.body.state_dict().items()}
    with torch.no_grad():
        for table in tables(second):
            table[ROWS:] = 100.0
    assert second.body.load_state_dict(state).missing_keys == []
    assert_close(dict(second.body.state_dict()), state, rtol=0, atol=0)
    assert all(not table[ROWS:].any() for table in tables(second))
    for tie, name in TIES.get(task.name, {}).items():
        assert second.body.get_parameter(tie) is second.body.get_parameter(name)


@each_task
def test_state_of_the_whole_network_goes_and_comes_too(entry: Entry, task: Task) -> None:
    """As checkpoints keep it: every name with 'body.' before it, in a copy of the network too."""
    first, second = built(entry, task), deepcopy(built(entry, task, seed=1))
    second.load_state_dict(first.state_dict())
    assert_close(dict(second.state_dict()), dict(first.state_dict()), rtol=0, atol=0)


@each_task
def test_state_is_a_view_of_the_weights(entry: Entry, task: Task) -> None:
    network = built(entry, task)
    for tensor in network.body.state_dict().values():
        tensor.fill_(0.25)
    for parameter in network.body.parameters():
        real = parameter[:ROWS] if any(parameter is one for one in tables(network)) else parameter
        assert (real == 0.25).all()


def test_second_names_of_a_table_are_taken_where_the_first_is_lacking() -> None:
    entry = ENTRIES["gpt2"]
    first, second = (built(entry, entry.tasks[0], seed) for seed in (0, 1))
    state = dict(first.body.state_dict())
    state["lm_head.weight"] = state.pop("transformer.wte.weight")
    second.body.load_state_dict(state)
    assert_close(dict(second.body.state_dict()), dict(first.body.state_dict()), rtol=0, atol=0)


def test_rows_of_another_vocabulary_are_refused() -> None:
    entry = ENTRIES["gpt2"]
    network = built(entry, entry.tasks[0])
    state = dict(network.body.state_dict())
    state["transformer.wte.weight"] = torch.zeros(32, 32)
    with pytest.raises(RuntimeError, match=r"wte\.weight has 32 rows, the vocabulary 27\."):
        network.body.load_state_dict(state)


def test_part_of_a_state_leaves_the_rest_alone() -> None:
    entry = ENTRIES["gpt2"]
    network = built(entry, entry.tasks[0])
    words = network.body.get_parameter("transformer.wte.weight").clone()
    network.body.load_state_dict({"transformer.ln_f.bias": torch.ones(32)}, strict=False)
    assert torch.equal(network.body.get_parameter("transformer.wte.weight"), words)
