"""Small language models with random weights, and tokenizers to go with them."""

import codecs
from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from octavolt.devices import Machine
from octavolt.generate.loop import LanguageModel
from octavolt.hardware.cpu import Cpu
from octavolt.hardware.policy import on_cpu, policy
from octavolt.networks.opened import Opened

ROLES = ("<|system|>", "<|user|>", "<|assistant|>")


class Bytes:
    """A token for each byte, then one that ends a text, then those of roles."""

    kind = "bpe"
    padding_id = 0

    def __init__(self, *, size: int = 256, end_id: int | None = None, roles: bool = False) -> None:
        self.size = size
        self.end_id = end_id
        self.special = {name: 257 + place for place, name in enumerate(ROLES)} if roles else {}
        if end_id is not None:
            self.special["<|endoftext|>"] = end_id

    def encode(self, texts: Sequence[str]) -> list[Any]:
        return [np.frombuffer(text.encode(), np.uint8).astype(np.int32) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(one for one in ids if one < 256).decode(errors="replace")

    def stream(self) -> "Stream":
        return Stream()


def talking() -> Bytes:
    return Bytes(size=260, end_id=256, roles=True)


class Stream:
    """Decodes as far as characters are whole."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        return self.decoder.decode(bytes([token]) if token < 256 else b"")

    def finish(self) -> str:
        return self.decoder.decode(b"", True)


def machine(precision: str = "fp32") -> Machine:
    cpu = Cpu(**{one.name: made_cpu(one.name) for one in fields(Cpu)})
    hardware = on_cpu(cpu)
    return Machine(
        device=torch.device("cpu"),
        hardware=hardware,
        policy=policy(hardware, precision),
        threads=1,
    )


def made_cpu(field: str) -> Any:
    made = {"name": "a processor", "flags": frozenset({"avx2"}), "physical_cores": 1}
    return made.get(field)


def body(*, seed: int = 0, rows: int = 272, length: int = 64, **changes: Any) -> Any:
    """Return transformers' GPT-2 with weights so wide that its answers differ."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=rows,
        n_positions=length,
        n_embd=32,
        n_layer=2,
        n_head=4,
        initializer_range=0.3,
        bos_token_id=None,
        eos_token_id=None,
        **changes,
    )
    return GPT2LMHeadModel(config).eval()


def model(tokenizer: Any = None, *, precision: str = "fp32", **changes: Any) -> LanguageModel:
    return LanguageModel(
        body=body(**changes), tokenizer=tokenizer or Bytes(), machine=machine(precision)
    )


def opened(made: LanguageModel, *, task: str = "causal-language-modeling") -> Opened:
    """Return what stands for a run, with no more of one than generation looks at."""
    value = object.__new__(Opened)
    for name, content in {
        "network": SimpleNamespace(body=made.body),
        "entry": SimpleNamespace(name="gpt2"),
        "task": SimpleNamespace(name=task),
        "preparation": SimpleNamespace(tokenizer=made.tokenizer),
        "machine": made.machine,
        "run": None,
    }.items():
        object.__setattr__(value, name, content)
    return value


def reference(network: Any, tokens: Sequence[int], new: int, vocabulary: int) -> list[int]:
    """Return the greedy tokens of transformers' own generate."""
    from transformers import LogitsProcessor, LogitsProcessorList

    class Cut(LogitsProcessor):
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            scores[:, vocabulary:] = -torch.inf
            return scores

    with torch.inference_mode():
        out = network.generate(
            torch.tensor([[*tokens]]),
            attention_mask=torch.ones(1, len(tokens), dtype=torch.int64),
            max_new_tokens=new,
            do_sample=False,
            pad_token_id=0,
            logits_processor=LogitsProcessorList([Cut()]),
        )
    return [int(one) for one in out[0, len(tokens) :]]
