"""Our GPT-2 beside activations that another implementation wrote down: a network that sorts."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from octavolt.contract import Shape
from octavolt.networks import gpt2

FOLDER = Path(__file__).parents[3] / "shared/weights/gpt-nano-sort"
LINEAR = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
"""Stored as rows of outputs; GPT-2's own have rows of inputs."""
HEADS = 3
WIDTH = 48

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=f"needs {FOLDER.name} in ../shared")


def tensors(name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the config and the tensors of a file: their bytes, little endian, in base64."""
    content = json.loads((FOLDER / name).read_text())
    config = content.pop("config")
    found = {}
    for key, one in content.items():
        values = np.frombuffer(base64.b64decode(one["data"]), dtype="<f4")
        found[key] = torch.from_numpy(values.reshape(one["shape"]).copy())
    return config, found


def weights() -> tuple[gpt2.GPT2, Tensor]:
    """Return our network with the published weights, and its head, which isn't tied to words."""
    config, state = tensors("gpt-nano-sort-model.json")
    sizes = {name: config[name] for name in ("n_layer", "n_head", "n_embd")}
    network = gpt2.build(
        {**sizes, "n_positions": config["block_size"]},
        Shape(
            task=gpt2.TASKS[0].name,
            vocabulary_size=config["vocab_size"],
            length=config["block_size"],
        ),
    )
    head = state.pop("lm_head.weight")
    named = {
        name: one.T if name.endswith(LINEAR) else one
        for name, one in state.items()
        if not name.endswith(".attn.bias")  # the causal mask
    }
    network.body.load_state_dict(named)
    return network.eval(), head


def heads(tensor: Tensor) -> Tensor:
    """Return (texts, tokens, width) as (texts, heads, tokens, width of a head)."""
    parts: Tensor = tensor.unflatten(2, (HEADS, WIDTH // HEADS))
    return parts.transpose(1, 2)


@pytest.fixture(scope="module")
def seen() -> dict[str, Tensor]:
    """Return what passes through our modules, by the names of the published activations."""
    network, head = weights()
    _, expected = tensors("gpt-nano-sort-t0-partials.json")
    found: dict[str, Tensor] = {}

    def keep(name: str, module: nn.Module) -> None:
        def hook(_module: nn.Module, inputs: Any, output: Any) -> None:
            found[name] = output
            found[f"into {name}"] = inputs[0]

        module.register_forward_hook(hook)

    parts: Any = network.body
    parts = parts.transformer
    block = parts.h[0]
    for name, module in {
        "tok_emb": parts.wte,
        "pos_emb": parts.wpe,
        "ln1": block.ln_1,
        "qkv": block.attn.c_attn,
        "yProj": block.attn.c_proj,
        "ln2": block.ln_2,
        "fc": block.mlp.c_fc,
        "mlp": block.mlp.c_proj,
        "block0": parts.h[0],
        "block1": parts.h[1],
        "block2": parts.h[2],
        "ln_f": parts.ln_f,
    }.items():
        keep(name, module)
    with torch.inference_mode():
        network(expected["idx"].long())
    found["q"], found["k"], found["v"] = (heads(one) for one in found["qkv"].split(WIDTH, dim=2))
    tokens = found["q"].shape[2]
    scores = found["q"] @ found["k"].transpose(2, 3) / (WIDTH / HEADS) ** 0.5
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    found["att"] = scores.masked_fill(later, float("-inf"))
    found["attSm"] = found["att"].softmax(3)
    found["x"] = found["into ln1"]
    found["y"] = found["into yProj"]
    found["attnResid"] = found["into ln2"]
    found["gelu"] = found["into mlp"]
    found["mlpResid"] = found["block0"]
    found["lm_head"] = found["ln_f"] @ head.T
    found["probs"] = found["lm_head"].softmax(2)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("tok_emb", "pos_emb", "x", "ln1", "qkv", "q", "k", "v", "att", "attSm", "y", "yProj"),
        *("attnResid", "ln2", "fc", "gelu", "mlp", "mlpResid", "block0", "block1", "block2"),
        *("ln_f", "lm_head", "probs"),
    ],
)
def test_activation_is_the_published_one(seen: dict[str, Tensor], name: str) -> None:
    _, expected = tensors("gpt-nano-sort-t0-partials.json")
    # fp32 over three layers, added in another order: 2e-6 of the largest values, which are near 10.
    scale = max(1.0, float(expected[name].nan_to_num(neginf=0.0).abs().max()))
    assert_close(
        seen[name].reshape(expected[name].shape), expected[name], rtol=0, atol=2e-6 * scale
    )


def test_all_published_activations_are_compared(seen: dict[str, Tensor]) -> None:
    _, expected = tensors("gpt-nano-sort-t0-partials.json")
    assert set(expected) - {"idx"} <= set(seen)


def test_network_sorts() -> None:
    network, head = weights()
    letters = torch.tensor([[2, 0, 1, 1, 0, 2]])
    answer = letters
    with torch.inference_mode():
        for _ in range(6):
            logits = network.hidden(answer)[:, -1] @ head.T
            answer = torch.cat([answer, logits.argmax(1, keepdim=True)], dim=1)
    assert answer[0, 6:].tolist() == [0, 0, 1, 1, 2, 2]
