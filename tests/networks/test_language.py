import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from octavolt.contract import Entry, ReadyBatch, Shape, Task
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.networks import ENTRIES, bert, gpt2
from octavolt.networks.language import POSITIONS, LanguageNetwork, config, token_loss

from .samples import BATCHES, LENGTH, ROWS, each_task, shape

OPENERS = {
    "text-classification": "AutoModelForSequenceClassification",
    "multi-label-text-classification": "AutoModelForSequenceClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "masked-language-modeling": "AutoModelForMaskedLM",
    "causal-language-modeling": "AutoModelForCausalLM",
    "dialogue": "AutoModelForCausalLM",
}


def built(entry: Entry, shape_: Shape) -> LanguageNetwork:
    torch.manual_seed(0)
    network = entry.build_tiny(shape_).eval()
    assert isinstance(network, LanguageNetwork)
    return network


def batch(entry: Entry, task: Task, count: int = 4) -> ReadyBatch:
    return BATCHES[task.name](entry, count).to(torch.device("cpu"))


def run_folder(folder: Path, network: LanguageNetwork, shape_: Shape) -> Path:
    """Lay out a network as a run folder holds it: the file isn't named as transformers would."""
    state = network.body.state_dict()
    save_file(
        {name: one.contiguous() for name, one in state.items()}, folder / "weights.safetensors"
    )
    index = {"metadata": {}, "weight_map": dict.fromkeys(state, "weights.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    classes = [f"class {index}" for index in range(shape_.classes)]
    (folder / "config.json").write_text(json.dumps(config(network, classes)))
    return folder


def asked_of_transformers(opened: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    if len(inputs) == 1:
        logits: Tensor = opened(input_ids=inputs[0]).logits
        return logits
    ids, mask, kinds = inputs
    outputs = opened(input_ids=ids, attention_mask=mask, token_type_ids=kinds)
    if hasattr(outputs, "start_logits"):
        return torch.stack([outputs.start_logits, outputs.end_logits], dim=2)
    last: Tensor = outputs.logits
    return last


@each_task
def test_transformers_opens_a_run_folder_and_answers_alike(
    tmp_path: Path, entry: Entry, task: Task
) -> None:
    import transformers

    made = shape(task, padding_id=1, end_id=2)
    network = built(entry, made)
    folder = run_folder(tmp_path, network, made)
    opened, report = getattr(transformers, OPENERS[task.name]).from_pretrained(
        folder, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert opened.config.vocab_size == ROWS
    assert opened.config.pad_token_id == 1
    inputs = batch(entry, task).inputs
    with torch.inference_mode():
        ours, theirs = network(*inputs), asked_of_transformers(opened.eval(), inputs)
    # The vocabularies' products have 32 and 27 columns, and may add in another order.
    assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("task", [ENTRIES["bert-base"].tasks[0], ENTRIES["bert-base"].tasks[1]])
def test_config_names_the_classes(task: Task) -> None:
    made = shape(task)
    result = config(built(ENTRIES["bert-base"], made), ["a", "b", "c", "d"])
    assert result["id2label"] == {"0": "a", "1": "b", "2": "c", "3": "d"}
    assert result["label2id"] == {"a": 0, "b": 1, "c": 2, "d": 3}
    several = task.name.startswith("multi")
    assert result["problem_type"] == f"{'multi' if several else 'single'}_label_classification"
    assert json.loads(json.dumps(result)) == result


@each_task
def test_checkpointed_activations_give_the_same_gradients(entry: Entry, task: Task) -> None:
    """With dropout: what is computed again must drop the same."""
    gradients = []
    for again in (False, True):
        network = built(entry, shape(task, dropout=0.2, checkpoint_activations=again)).train()
        torch.manual_seed(3)
        torch.stack([*network.losses(batch(entry, task)).values()]).sum().backward()
        gradients.append({name: one.grad for name, one in network.named_parameters()})
    assert_close(gradients[1], gradients[0], rtol=0, atol=0)


@pytest.mark.parametrize("name", ["bert-base", "gpt2"])
def test_checkpointed_activations_are_not_kept(name: str) -> None:
    entry = ENTRIES[name]
    kept = []
    for again in (False, True):
        network = built(entry, shape(entry.tasks[0], checkpoint_activations=again)).train()
        count = 0

        def counted(tensor: Tensor) -> Tensor:
            nonlocal count
            count += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(counted, lambda tensor: tensor):
            network.losses(batch(entry, entry.tasks[0]))
        kept.append(count)
    assert kept[1] < 0.5 * kept[0]


@pytest.mark.parametrize("name", ["bert-base", "gpt2"])
def test_dropout_of_the_shape_is_everywhere(name: str) -> None:
    entry = ENTRIES[name]
    for dropout in (0.0, 0.3):
        network = built(entry, shape(entry.tasks[0], dropout=dropout))
        found = {one.p for one in network.modules() if isinstance(one, nn.Dropout)}
        assert found == {dropout}
    assert {
        one.p
        for one in built(entry, shape(entry.tasks[0])).modules()
        if isinstance(one, nn.Dropout)
    } == {0.1}


@pytest.mark.parametrize("most_logits", [1, 5 * ROWS, 7 * ROWS + 3])
def test_loss_by_pieces_is_the_loss(most_logits: int) -> None:
    torch.manual_seed(0)
    head = nn.Linear(6, 32, bias=False)
    targets = torch.randint(0, ROWS, (19,))
    targets[[2, 3, 11]] = -100
    results = []
    for most in (most_logits, 10**9):
        hidden = torch.randn(19, 6, generator=torch.Generator().manual_seed(1), requires_grad=True)
        head.zero_grad()
        loss = token_loss(hidden, targets, head, ROWS, most_logits=most)
        loss.backward()
        results.append((loss.detach(), hidden.grad, head.weight.grad))
    # The pieces' sums are added in another order.
    assert_close(results[0], results[1], rtol=1e-5, atol=1e-7)
    hidden = torch.randn(19, 6, generator=torch.Generator().manual_seed(1))
    expected = cross_entropy(head(hidden)[:, :ROWS], targets)
    assert_close(results[1][0], expected, rtol=1e-6, atol=0)


def test_loss_of_nothing_asked_is_zero() -> None:
    head = nn.Linear(6, 32)
    hidden = torch.randn(3, 6, requires_grad=True)
    loss = token_loss(hidden, torch.full((3,), -100), head, ROWS)
    loss.backward()
    assert loss.item() == 0
    assert hidden.grad is not None
    assert not hidden.grad.any()


def test_loss_is_in_fp32_under_autocast() -> None:
    head = nn.Linear(6, 32)
    with torch.autocast("cpu", torch.bfloat16):
        loss = token_loss(torch.randn(3, 6), torch.tensor([1, 2, 3]), head, ROWS)
    assert loss.dtype == torch.float32


def test_masked_loss_asks_the_vocabulary_of_hidden_tokens_alone() -> None:
    entry = ENTRIES["bert-base"]
    task = entry.tasks[3]
    network = built(entry, shape(task))
    seen: list[int] = []
    body: Any = network.body
    body.cls.register_forward_pre_hook(lambda _head, inputs: seen.append(len(inputs[0])))
    made = batch(entry, task)
    network.losses(made)
    assert seen == [int(made.weight)]


def test_padding_has_no_part_in_an_answer() -> None:
    entry = ENTRIES["bert-base"]
    task = entry.tasks[2]
    network = built(entry, shape(task))
    made: Any = batch(entry, task, 4)
    last = replace(
        made,
        **{
            name: getattr(made, name)[3:]
            for name in ("ids", "mask", "kinds", "owners", "starts", "ends")
        },
    )
    length = int(last.mask.sum())
    short = replace(
        last, **{name: getattr(last, name)[:, :length] for name in ("ids", "mask", "kinds")}
    )
    assert length < LENGTH
    # The padded products are of another size, and may add in another order.
    assert_close(network.losses(last), network.losses(short), rtol=1e-5, atol=0)


def test_sizes_of_given_weights_go_before_the_entrys() -> None:
    task = ENTRIES["gpt2"].tasks[0]
    sizes = {"model_type": "gpt2", "n_layer": 3, "hidden_size": 24, "n_head": 3, "vocab_size": 40}
    given = Shape(task=task.name, vocabulary_size=33, length=8, sizes={**sizes, "n_positions": 16})
    network = gpt2.build({"n_layer": 1}, given)
    state = network.body.state_dict()
    assert state["transformer.wte.weight"].shape == (40, 24)
    assert state["transformer.wpe.weight"].shape == (16, 24)
    assert "transformer.h.2.ln_1.weight" in state
    assert "transformer.h.3.ln_1.weight" not in state


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"model_type": "roberta"},
            "The weights are those of a network of the kind 'roberta', as their config.json says; "
            "this one's are 'bert'. Choose the network that they belong to.",
        ),
        (
            {"position_embedding_type": "relative_key"},
            "The weights' config.json says position_embedding_type: relative_key; octavolt's bert "
            "has absolute positions (position_embedding_type: absolute). Choose other weights.",
        ),
        (
            {"max_position_embeddings": 8},
            "The weights know 8 positions, and texts of 12 tokens are to be read. Use --length 8 "
            "or less.",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(OctavoltError) as raised:
        bert.build_tiny(shape(ENTRIES["bert-base"].tasks[0], sizes=sizes))
    assert str(raised.value) == message


def test_positions_of_the_small_one_are_those_that_are_read() -> None:
    task = ENTRIES["gpt2-nano"].tasks[0]
    with torch.device("meta"):
        for length, expected in ((0, 256), (32, 32), (2048, 2048)):
            network = ENTRIES["gpt2-nano"].build(Shape(task=task.name, length=length))
            assert len(network.body.state_dict()["transformer.wpe.weight"]) == expected
        longer = ENTRIES["gpt2"].build(Shape(task=task.name, length=32))
    assert len(longer.body.state_dict()["transformer.wpe.weight"]) == 1024


def test_task_of_another_network_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"^No task of GPT-2 is named 'text-class"):
        gpt2.build_tiny(Shape(task="text-classification", classes=2))
    with pytest.raises(UnknownNameError, match=r"^No task of BERT is named 'dialogue'"):
        bert.build_tiny(Shape(task="dialogue"))


@pytest.mark.parametrize("name", ["bert-base", "gpt2"])
def test_tables_of_positions_are_told_by_their_names(name: str) -> None:
    network = built(ENTRIES[name], shape(ENTRIES[name].tasks[0]))
    found = [one for one, _ in network.named_parameters() if any(part in one for part in POSITIONS)]
    assert len(found) == 1
    assert len(network.get_parameter(found[0])) == 64


@pytest.mark.parametrize("name", ["bert-base", "gpt2"])
def test_attention_is_torchs_own(name: str) -> None:
    network = built(ENTRIES[name], shape(ENTRIES[name].tasks[0]))
    body: Any = network.body
    assert body.config._attn_implementation == "sdpa"


def test_later_tokens_are_not_seen() -> None:
    entry = ENTRIES["gpt2"]
    network = built(entry, shape(entry.tasks[0]))
    ids = torch.arange(LENGTH)[None] % ROWS
    other = ids.clone()
    other[:, 7:] = 1
    with torch.inference_mode():
        first, second = network(ids), network(other)
    assert_close(first[:, :7], second[:, :7], rtol=1e-6, atol=1e-6)
    assert not torch.allclose(first[:, 7:], second[:, 7:])


def test_table_of_networks_does_not_import_transformers() -> None:
    code = (
        "import sys, octavolt.networks; before = 'transformers' in sys.modules; "
        "import transformers; print(before, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]
