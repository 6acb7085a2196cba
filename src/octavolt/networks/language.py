"""What the language networks share: the loss over a vocabulary, and their config.json."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from octavolt.contract import Network
from octavolt.networks.padded import Vocabulary, without_padding
from octavolt.tasks import text_classification
from octavolt.tasks.text import NOT_ASKED

POSITIONS = ("position_embeddings", ".wpe.")
"""Parts of the names of tables of positions, which weight decay spares as it does norms."""
PROBLEM_TYPES = {
    text_classification.TASK.name: "single_label_classification",
    text_classification.MULTI_LABEL_TASK.name: "multi_label_classification",
}
"""What transformers calls the tasks that label texts."""
FEW_TOKENS = 128
"""Up to which plain attention is quicker than the flash kernel in training on CPUs in bf16."""
MOST_LOGITS = 2**27
"""Logits that are held for the backward pass; with more, they are computed again by pieces."""


class LanguageNetwork(Network):
    """A network of transformers' modules, whose loop over the layers is ours."""

    def __init__(
        self, body: nn.Module, vocabulary: Vocabulary, *, checkpoint_activations: bool
    ) -> None:
        super().__init__()
        self.body = body
        self.vocabulary = vocabulary
        self.checkpoint_activations = checkpoint_activations

    def files(self, classes: Sequence[str], /) -> Mapping[str, Any]:
        """Return what transformers' `from_pretrained` asks of a run's folder.

        The index of the weights' parts is where the weights may have a name of their own.
        """
        places = dict.fromkeys(self.body.state_dict(), "weights.safetensors")
        return {
            "config.json": config(self, classes),
            "model.safetensors.index.json": {"metadata": {}, "weight_map": places},
        }


def token_loss(
    hidden: Float[Tensor, "tokens width"],
    targets: Int[Tensor, " tokens"],
    head: nn.Module,
    rows: int,
    *,
    most_logits: int = MOST_LOGITS,
) -> Float[Tensor, ""]:
    """Return the mean negative log-likelihood of the asked tokens in nats, in fp32.

    It is 0 where none is asked. `rows` are the vocabulary's real ones.
    """
    count = (targets != NOT_ASKED).sum().clamp(min=1)
    piece = max(1, most_logits // rows)
    if len(targets) <= piece:
        return summed_nats(hidden, targets, head, rows) / count
    sums = [
        checkpoint(
            summed_nats, some, wanted, head, rows, use_reentrant=False, preserve_rng_state=False
        )
        for some, wanted in zip(hidden.split(piece), targets.split(piece), strict=True)
    ]
    return torch.stack(sums).sum() / count


def summed_nats(
    hidden: Float[Tensor, "tokens width"],
    targets: Int[Tensor, " tokens"],
    head: nn.Module,
    rows: int,
) -> Float[Tensor, ""]:
    """Return the sum over the asked tokens of their negative log-likelihood in nats, in fp32."""
    logits = without_padding(head(hidden), rows)
    with torch.autocast(logits.device.type, enabled=False):
        # The half-precision logits are dropped as soon as they are converted.
        logits = logits.float()
        return cross_entropy(logits, targets, ignore_index=NOT_ASKED, reduction="sum")


def quick_attention(
    hidden: Float[Tensor, "batch length width"],
) -> AbstractContextManager[None]:
    """Return the context in which attention is quickest: see decision 22.

    On CPUs in bf16 the backward pass of torch's flash attention takes half of a small network's
    step; over few tokens the plain products are quicker, and what they keep is small.
    """
    bf16_on_cpu = (
        hidden.device.type == "cpu"
        and torch.is_autocast_enabled("cpu")
        and torch.is_grad_enabled()
        and hidden.shape[1] <= FEW_TOKENS
    )
    return sdpa_kernel(SDPBackend.MATH) if bf16_on_cpu else nullcontext()


def through(
    layers: Iterable[nn.Module],
    hidden: Float[Tensor, "batch length width"],
    mask: Bool[Tensor, "batch 1 1 length"] | None,
    *,
    checkpoint_activations: bool,
) -> Float[Tensor, "batch length width"]:
    """Return what a stack of layers makes of its input.

    transformers' own loop would look through the positions for texts that are packed together, and
    wait for the GPU at every pass.
    """
    for layer in layers:
        if checkpoint_activations and torch.is_grad_enabled():
            hidden = checkpoint(layer, hidden, attention_mask=mask, use_reentrant=False)
        else:
            hidden = layer(hidden, attention_mask=mask)
    return hidden


def config(network: LanguageNetwork, classes: Sequence[str]) -> dict[str, Any]:
    """Return the config.json with which transformers opens the body's state dict as it is.

    Only the tasks that label texts have `classes`.
    """
    body: Any = network.body
    result: dict[str, Any] = {
        **body.config.to_dict(),
        "architectures": [type(body).__name__],
        "vocab_size": network.vocabulary.rows,
        "dtype": "float32",
    }
    if body.config.problem_type in PROBLEM_TYPES.values():
        result |= {
            "id2label": {str(index): name for index, name in enumerate(classes)},
            "label2id": {name: index for index, name in enumerate(classes)},
        }
    return result
