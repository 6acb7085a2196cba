"""GPT-2 a token at a time: its layers over a buffer of keys and values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm, linear, scaled_dot_product_attention

from octavolt.devices import NARROW, Machine


@dataclass(frozen=True, kw_only=True)
class Affine:
    """A matrix and a vector of one layer."""

    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, " outputs"]

    def __call__(self, numbers: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows outputs"]:
        """Return the products, in the type of the matrix."""
        return linear(numbers.to(self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A layer normalization, always in fp32."""

    weight: Float[Tensor, " width"]
    bias: Float[Tensor, " width"]
    epsilon: float

    def __call__(self, numbers: Float[Tensor, "rows width"]) -> Float[Tensor, "rows width"]:
        """Return each row with mean 0 and deviation 1, then scaled and shifted."""
        return layer_norm(numbers, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """What one block of GPT-2 computes with."""

    before_attention: Norm
    queries_keys_values: Affine
    attended: Affine
    scale: float
    """Of the products of queries and keys."""
    before_feed_forward: Norm
    wide: Affine
    activation: Callable[[Tensor], Tensor]
    narrow: Affine


class Decoder:
    """The next token's logits for several texts, each computed once per token.

    It reads the weights of transformers' `GPT2LMHeadModel` and does what that does, without the
    time that its modules spend between the kernels: most of a token's time in a small network.
    Texts lie in rows that end at the same column, so that a step is one column for all of them.
    """

    def __init__(self, body: Any, machine: Machine, *, vocabulary_size: int, rows: int) -> None:
        config, network = body.config, body.transformer
        policy = machine.policy
        self.dtype = NARROW[policy.precision] if policy.autocast else torch.float32
        # On a CPU a product of several rows is about twice as fast with its matrix this way round.
        copied = self.dtype != torch.float32 or (rows > 1 and machine.device.type == "cpu")
        self.heads: int = config.n_head
        self.length: int = config.n_positions
        """Tokens that the network can see at once."""
        self.tokens: Tensor = network.wte.weight.detach()
        self.positions: Tensor = network.wpe.weight.detach()
        self.layers = [
            layer_of(block, scale_of(config, number), dtype=self.dtype, copied=copied)
            for number, block in enumerate(network.h)
        ]
        self.last = norm_of(network.ln_f)
        # Rows above the vocabulary only pad the matrix: they are never computed, so never drawn.
        self.logits: Tensor = body.lm_head.weight.detach()[:vocabulary_size].to(self.dtype)
        self.device = self.tokens.device
        self.end = self.columns = 0
        self.starts: list[int] = []
        self.kept: list[Tensor] = []

    @torch.inference_mode()
    def begin(
        self, texts: Sequence[Sequence[int]], *, columns: int
    ) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits after each text; the buffer is given that many columns."""
        self.end, self.columns = 0, columns
        widest = max(len(text) for text in texts)
        self.starts = [widest - len(text) for text in texts]
        width = self.tokens.shape[1]
        self.kept = [
            torch.empty(
                (2, len(texts), self.heads, columns, width // self.heads),
                dtype=self.dtype,
                device=self.device,
            )
            for _ in self.layers
        ]
        padded = [[0] * start + [*text] for start, text in zip(self.starts, texts, strict=True)]
        return self.run(torch.tensor(padded, device=self.device))

    @torch.inference_mode()
    def advance(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits after one more token in each row."""
        return self.run(tokens[:, None])

    @torch.inference_mode()
    def keep(self, rows: Sequence[int]) -> None:
        """Go on with those rows alone."""
        self.starts = [self.starts[row] for row in rows]
        chosen = torch.tensor(rows, device=self.device)
        self.kept = [numbers.index_select(1, chosen) for numbers in self.kept]

    @property
    def full(self) -> bool:
        """Whether the buffer has no column left: it must begin anew."""
        return self.end == self.columns

    def run(self, tokens: Int[Tensor, "rows new"]) -> Float[Tensor, "rows vocabulary"]:
        """Compute new columns, keep their keys and values, and return the last one's logits."""
        rows, new = tokens.shape
        begin, self.end = self.end, self.end + new
        columns = torch.arange(begin, self.end, device=self.device)
        if any(self.starts):
            starts = torch.tensor(self.starts, device=self.device)
            # What pads a row has no place; it takes the first, and nobody looks at it.
            places = (columns[None, :] - starts[:, None]).clamp_(min=0)
            seen = visible(starts, columns)
        else:
            places, seen = columns[None, :], None
        numbers = (self.tokens[tokens] + self.positions[places]).flatten(0, 1)
        for layer, kept in zip(self.layers, self.kept, strict=True):
            queries, keys_values = self.split(
                layer.queries_keys_values(layer.before_attention(numbers)), rows
            )
            kept[:, :, :, begin : self.end] = keys_values
            keys, values = kept[:, :, :, : self.end]
            attended = scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=seen,
                is_causal=seen is None and new > 1,
                scale=layer.scale,
            )
            joined = attended.transpose(1, 2).reshape(rows * new, -1)
            numbers = layer.attended(joined) + numbers
            wide = layer.wide(layer.before_feed_forward(numbers))
            numbers = numbers + layer.narrow(layer.activation(wide))
        ends = numbers.view(rows, new, -1)[:, -1]
        return linear(self.last(ends).to(self.dtype), self.logits).float()

    def split(
        self, numbers: Float[Tensor, "tokens three_widths"], rows: int
    ) -> tuple[
        Float[Tensor, "rows heads new width"], Float[Tensor, "keys_values=2 rows heads new width"]
    ]:
        """Return the queries of each head, and its keys and values together."""
        parts = numbers.view(rows, -1, 3, self.heads, numbers.shape[1] // 3 // self.heads)
        turned = parts.permute(2, 0, 3, 1, 4)
        return turned[0], turned[1:]


def visible(
    starts: Int[Tensor, " rows"], columns: Int[Tensor, " new"]
) -> Bool[Tensor, "rows 1 new all"]:
    """Return which columns each new one may look at: its text so far, and always itself.

    A column that pads a row would otherwise look at nothing, and the mean of nothing is NaN.
    """
    every = torch.arange(int(columns[-1]) + 1, device=columns.device)
    earlier = every[None, :] <= columns[:, None]
    inside = every[None, None, :] >= starts[:, None, None]
    itself = every[None, :] == columns[:, None]
    return (earlier & inside | itself)[:, None]


def layer_of(block: Any, scale: float, *, dtype: torch.dtype, copied: bool) -> Layer:
    """Return what a block of transformers' GPT-2 computes with."""

    def affine(module: Any) -> Affine:
        weight = module.weight.detach().to(dtype).t()
        return Affine(
            weight=weight.contiguous() if copied else weight,
            bias=module.bias.detach().to(dtype),
        )

    return Layer(
        before_attention=norm_of(block.ln_1),
        queries_keys_values=affine(block.attn.c_attn),
        attended=affine(block.attn.c_proj),
        scale=scale,
        before_feed_forward=norm_of(block.ln_2),
        wide=affine(block.mlp.c_fc),
        activation=block.mlp.act,
        narrow=affine(block.mlp.c_proj),
    )


def norm_of(module: Any) -> Norm:
    """Return a normalization's numbers."""
    return Norm(weight=module.weight.detach(), bias=module.bias.detach(), epsilon=module.eps)


def scale_of(config: Any, number: int) -> float:
    """Return what a layer multiplies the products of queries and keys by."""
    scale: float = (config.n_embd // config.n_head) ** -0.5 if config.scale_attn_weights else 1.0
    return scale / (number + 1) if config.scale_attn_by_inverse_layer_idx else scale
