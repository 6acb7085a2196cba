"""Tokens a second of our decoding and of transformers' `generate`, in turn, on this CPU.

    python benchmarks/generate.py

Weights are random; greedy, one text. The last line of output is one JSON document. Rates are
medians; ratios are medians of the rounds' ratios, and above 1 where we are faster.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from octavolt.devices import Machine, set_up, this_machine
from octavolt.generate.decoder import Decoder
from octavolt.generate.sampling import Sampling, next_tokens

NETWORKS: dict[str, dict[str, Any]] = {
    "nano-65": {"vocab_size": 65, "n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": 256},
    "nano-50257": {
        "vocab_size": 50257,
        "n_embd": 128,
        "n_layer": 4,
        "n_head": 4,
        "n_positions": 256,
    },
    "gpt2": {},
}
PROMPT = [*range(1, 17)]
GREEDY = Sampling(temperature=0)
Tokens = list[int]


def network(sizes: dict[str, Any]) -> Any:
    """Return a network with random weights that ends no text."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)).eval()


def theirs(body: Any, count: int) -> Tokens:
    """Return the greedy tokens of transformers."""
    prompt = torch.tensor([PROMPT])
    with torch.inference_mode():
        out = body.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
    return [int(token) for token in out[0, len(PROMPT) :]]


def ours(body: Any, machine: Machine, count: int) -> Tokens:
    """Return our greedy tokens, with all that is done once a text."""
    decoder = Decoder(body, machine, vocabulary_size=body.config.vocab_size, rows=1)
    logits = decoder.begin([PROMPT], columns=len(PROMPT) + count)
    tokens: Tokens = []
    with torch.inference_mode():
        for step in range(count):
            token = next_tokens(logits, None, GREEDY, positions=[0], step=step)
            tokens.append(int(token))
            if step + 1 < count:
                logits = decoder.advance(token)
    return tokens


def rate(way: Callable[[int], Tokens], count: int) -> float:
    """Return the tokens a second of one text."""
    began = time.perf_counter()
    way(count)
    return count / (time.perf_counter() - began)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=[*NETWORKS])
    arguments = parser.parse_args()
    fp32, bf16 = (this_machine(precision=one) for one in ("fp32", "bf16"))
    set_up(fp32)
    rows = []
    for name in arguments.networks:
        body = network(NETWORKS[name])
        ways: dict[str, Callable[[int], Tokens]] = {
            "transformers": partial(theirs, body),
            "ours": partial(ours, body, fp32),
            "ours_bf16": partial(ours, body, bf16),
        }
        warm = {way: written(4) for way, written in ways.items()}
        same = warm["ours"] == warm["transformers"]
        rounds = [
            {way: rate(written, arguments.tokens) for way, written in ways.items()}
            for _ in range(arguments.rounds)
        ]
        rates = {way: statistics.median(one[way] for one in rounds) for way in ways}
        ratios = {
            f"{way}_x": statistics.median(one[way] / one["transformers"] for one in rounds)
            for way in ("ours", "ours_bf16")
        }
        same = same and ours(body, fp32, arguments.tokens) == theirs(body, arguments.tokens)
        rows.append({"network": name, "same_tokens": same, **rates, **ratios})
        print(
            f"{name}: transformers {rates['transformers']:.1f} tokens/s, ours {rates['ours']:.1f} "
            f"({ratios['ours_x']:.2f}x), ours in bf16 {rates['ours_bf16']:.1f} "
            f"({ratios['ours_bf16_x']:.2f}x), {'the same' if same else 'OTHER'} tokens",
            flush=True,
        )
    print(
        json.dumps({"threads": torch.get_num_threads(), "rounds": arguments.rounds, "rows": rows})
    )


if __name__ == "__main__":
    main()
