"""How large a language network is: its entry's sizes, or those of the weights it starts from."""

from collections.abc import Mapping, Sequence
from typing import Any

from octavolt.contract import Shape
from octavolt.errors import OctavoltError


def chosen_sizes(
    shape: Shape, own: Mapping[str, Any], *, kind: str, other_names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the entry's sizes, replaced by what the shape's `config.json` says of them.

    `own` has all that may be replaced, by the names of `kind`, and `other_names` further names for
    some of it. Raises if the weights are another kind of network's.
    """
    given_kind = shape.sizes.get("model_type", kind)
    if given_kind != kind:
        raise OctavoltError(
            f"The weights are those of a network of the kind '{given_kind}', as their config.json "
            f"says; this one's are '{kind}'. Choose the network that they belong to."
        )
    for name, value, only in (
        ("position_embedding_type", "absolute", "absolute positions"),
        ("tie_word_embeddings", True, "one table of words for input and output"),
    ):
        if shape.sizes.get(name, value) != value:
            raise OctavoltError(
                f"The weights' config.json says {name}: {shape.sizes[name]}; octavolt's {kind} has "
                f"{only} ({name}: {value}). Choose other weights."
            )
    named = {other_names.get(name, name): value for name, value in shape.sizes.items()}
    return {name: named.get(name, value) for name, value in own.items()}


def vocabulary_rows(shape: Shape, published: int) -> int:
    """Return the real rows: the tokenizer's, or the weights' where they have more of them."""
    return max(shape.vocabulary_size, shape.sizes.get("vocab_size", 0)) or published


def positions(shape: Shape, own: int) -> int:
    """Return the positions that a network knows: its own, or more where longer texts are read.

    Raises if weights that are given know fewer.
    """
    if shape.sizes and shape.length > own:
        raise OctavoltError(
            f"The weights know {own:,} positions, and texts of {shape.length:,} tokens are to be "
            f"read. Use --length {own} or less."
        )
    return max(own, shape.length)


def dropouts(shape: Shape, names: Sequence[str]) -> dict[str, float]:
    """Return the dropout that was asked for under all its names, or none if none was."""
    return {} if shape.dropout is None else dict.fromkeys(names, shape.dropout)
