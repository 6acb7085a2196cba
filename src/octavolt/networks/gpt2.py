"""GPT-2: Radford et al. 2019, with transformers' modules, and a small one of our own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from octavolt.contract import Entry, HubWeights, Recipe, Shape, Target, TextLimits
from octavolt.errors import UnknownNameError
from octavolt.networks.language import LanguageNetwork, quick_attention, through, token_loss
from octavolt.networks.padded import Vocabulary, hide_padding, padded_rows
from octavolt.networks.sizes import chosen_sizes, dropouts, positions, vocabulary_rows
from octavolt.tasks import causal_language_modeling
from octavolt.tasks.causal_language_modeling import CausalBatch

TASKS = (causal_language_modeling.TASK, causal_language_modeling.DIALOGUE_TASK)
PUBLISHED_ROWS = 50_257
TOKENS = 1024
NANO_TOKENS = 256
WORDS = "transformer.wte.weight"
DROPOUTS = ("embd_pdrop", "resid_pdrop", "attn_pdrop")
SIZES: Mapping[str, Any] = {
    "n_positions": TOKENS,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
}
"""The smallest one's: Radford et al. 2019, table 2; dropout as in Radford et al. 2018."""
OTHER_NAMES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}


class GPT2(LanguageNetwork):
    """GPT-2 with its vocabulary over each token."""

    def hidden(self, ids: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length width"]:
        """Return what the last norm says of each token and those before it.

        No token sees a later one, so padding behind a text needs no mask.
        """
        parts: Any = self.body.transformer
        places = torch.arange(ids.shape[1], device=ids.device)
        embedded = parts.drop(parts.wte(ids) + parts.wpe(places))
        with quick_attention(embedded):
            hidden = through(
                parts.h,
                embedded,
                None,
                checkpoint_activations=self.checkpoint_activations and self.training,
            )
        normalized: Tensor = parts.ln_f(hidden)
        return normalized

    def forward(self, ids: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """Return the logits of the vocabulary's real rows."""
        body: Any = self.body
        logits: Tensor = body.lm_head(self.hidden(ids))
        return logits[..., : self.vocabulary.rows]

    def losses(self, batch: CausalBatch, /) -> dict[str, Float[Tensor, ""]]:
        """Return the cross-entropy of the tokens that are asked."""
        body: Any = self.body
        hidden = self.hidden(batch.ids).flatten(0, 1)
        loss = token_loss(hidden, batch.targets.flatten(), body.lm_head, self.vocabulary.rows)
        return {"next": loss}

    def decode(
        self, outputs: Float[Tensor, "batch length vocabulary"], /
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return the logits as they are: what reads them takes a slice at a time to fp64."""
        return outputs

    def head(self) -> Sequence[str]:
        """Return that no part is made for the data's classes."""
        return ()


def build(own: Mapping[str, Any], shape: Shape) -> GPT2:
    """Return a network of these sizes, or of the shape's, with fresh weights."""
    import transformers

    names = [task.name for task in TASKS]
    if shape.task not in names:
        raise UnknownNameError("task of GPT-2", shape.task, names)
    rows = vocabulary_rows(shape, PUBLISHED_ROWS)
    sizes = chosen_sizes(shape, {**SIZES, **own}, kind="gpt2", other_names=OTHER_NAMES)
    sizes["n_positions"] = positions(shape, sizes["n_positions"])
    settings: dict[str, Any] = {
        **sizes,
        **dropouts(shape, DROPOUTS),
        "vocab_size": padded_rows(rows),
        "pad_token_id": shape.padding_id,
        "bos_token_id": shape.end_id,
        "eos_token_id": shape.end_id,
        "attn_implementation": "sdpa",
    }
    body: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings))
    if settings["activation_function"] == "gelu_new":
        for block in body.transformer.h:
            # The same function as transformers' seven operations, in one.
            block.mlp.act = nn.GELU(approximate="tanh")
    vocabulary = Vocabulary(rows=rows, names=(WORDS,), ties={"lm_head.weight": WORDS})
    hide_padding(body, vocabulary)
    return GPT2(body, vocabulary, checkpoint_activations=shape.checkpoint_activations)


def build_nano(shape: Shape) -> GPT2:
    """Return a network of a size of our own, whose positions are those that are read."""
    own = {**NANO, "n_positions": shape.length or NANO_TOKENS}
    return build(own, shape)


def build_tiny(shape: Shape) -> GPT2:
    """Return the same code with two layers, 32 wide."""
    return build({"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}, shape)


def example_inputs(samples: int, *, tokens: int) -> tuple[Tensor]:
    """Return texts of so many tokens."""
    return (torch.zeros(samples, tokens, dtype=torch.int64),)


NANO: Mapping[str, Any] = {"n_embd": 128, "n_layer": 4, "n_head": 4}


def published(learning_rate: float) -> Recipe:
    """Return how a network is trained on much text."""
    return Recipe(
        source="512 texts an update: section 2.3 of the paper, which leaves the rest open; rates, "
        "decay and clipping of a like size: Brown et al. 2020, table 2.1 and appendix B; one epoch",
        epochs=1,
        batch_size=512,
        optimizer="adamw",
        learning_rate=learning_rate,
        weight_decay=0.1,
        schedule="cosine",
        warmup_epochs=0.01,
        max_gradient_norm=1.0,
    )


def from_scratch(learning_rate: float, *, dropout: float | None) -> Recipe:
    """Return how a network is trained from scratch on little text."""
    return Recipe(
        source="our own choice; AdamW: Loshchilov and Hutter 2019; decay and clipping: Brown et "
        "al. 2020, appendix B",
        epochs=20,
        batch_size=32,
        optimizer="adamw",
        learning_rate=learning_rate,
        weight_decay=0.1,
        schedule="cosine",
        warmup_epochs=1.0,
        max_gradient_norm=1.0,
        dropout=dropout,
    )


FINE_TUNE = Recipe(
    source="our own choice: the rate and length that transformers' examples use; AdamW: "
    "Loshchilov and Hutter 2019",
    epochs=3,
    batch_size=8,
    optimizer="adamw",
    learning_rate=5e-5,
    weight_decay=0.01,
    schedule="linear",
    warmup_epochs=0.1,
    max_gradient_norm=1.0,
)


def entry(
    name: str,
    *,
    layers: int,
    width: int,
    heads: int,
    parameter_count: int,
    forward_multiply_adds: int,
    learning_rate: float,
    perplexity: float,
    bits_per_byte: float,
) -> Entry:
    """Return the row of one published size."""
    own = {"n_embd": width, "n_layer": layers, "n_head": heads}
    return Entry(
        name=name,
        tasks=TASKS,
        build=partial(build, own),
        build_tiny=build_tiny,
        example_inputs=partial(example_inputs, tokens=TOKENS),
        preprocessing=TextLimits(length=TOKENS, tokenizer="bpe"),
        recipes={
            "published": published(learning_rate),
            "small-data": from_scratch(learning_rate, dropout=None),
            "fine-tune": FINE_TUNE,
        },
        targets=(
            Target(
                metric="perplexity",
                value=perplexity,
                source="WikiText-2 a word, untrained, with its detokenizer, table 3 of the paper",
            ),
            Target(
                metric="bits_per_byte",
                value=bits_per_byte,
                source="enwik8, untrained, table 3 of the paper",
            ),
        ),
        published_shape=Shape(
            task=causal_language_modeling.TASK.name, vocabulary_size=PUBLISHED_ROWS, length=TOKENS
        ),
        parameter_count=parameter_count,
        forward_multiply_adds=forward_multiply_adds,
        weights={name: HubWeights(repository=f"openai-community/{name}", licence="MIT")},
        explain_layer="body.transformer.wte",
        paper=PAPER,
    )


PAPER = "Radford et al. 2019: Language Models are Unsupervised Multitask Learners"

ENTRIES: tuple[Entry, ...] = (
    entry(
        "gpt2",
        layers=12,
        width=768,
        heads=12,
        parameter_count=124_439_808,
        forward_multiply_adds=145_829_658_624,
        learning_rate=6e-4,
        perplexity=29.41,
        bits_per_byte=1.16,
    ),
    entry(
        "gpt2-medium",
        layers=24,
        width=1024,
        heads=16,
        parameter_count=354_823_168,
        forward_multiply_adds=413_482_876_928,
        learning_rate=3e-4,
        perplexity=22.76,
        bits_per_byte=1.01,
    ),
    entry(
        "gpt2-large",
        layers=36,
        width=1280,
        heads=20,
        parameter_count=774_030_080,
        forward_multiply_adds=887_294_525_440,
        learning_rate=2.5e-4,
        perplexity=19.93,
        bits_per_byte=0.97,
    ),
    entry(
        "gpt2-xl",
        layers=48,
        width=1600,
        heads=25,
        parameter_count=1_557_611_200,
        forward_multiply_adds=1_753_363_251_200,
        learning_rate=2e-4,
        perplexity=18.34,
        bits_per_byte=0.93,
    ),
    Entry(
        name="gpt2-nano",
        tasks=TASKS,
        build=build_nano,
        build_tiny=build_tiny,
        example_inputs=partial(example_inputs, tokens=NANO_TOKENS),
        preprocessing=TextLimits(length=NANO_TOKENS, tokenizer="bpe"),
        recipes={
            "published": from_scratch(1e-3, dropout=0.0),
            "small-data": from_scratch(1e-3, dropout=0.0),
            "fine-tune": FINE_TUNE,
        },
        targets=(),
        published_shape=Shape(
            task=causal_language_modeling.TASK.name,
            vocabulary_size=PUBLISHED_ROWS,
            length=NANO_TOKENS,
        ),
        parameter_count=7_259_008,
        forward_multiply_adds=1_915_486_208,
        weights={},
        explain_layer="body.transformer.wte",
        paper=f"{PAPER}; the size is our own",
    ),
)
