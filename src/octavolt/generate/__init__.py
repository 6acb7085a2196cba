"""Generation: text from a language model, a token at a time."""

from octavolt.generate.chat import Dialogue
from octavolt.generate.loop import (
    Completion,
    LanguageModel,
    Piece,
    best_precision,
    complete,
    generate,
    language_model,
)
from octavolt.generate.sampling import Sampling

__all__ = [
    "Completion",
    "Dialogue",
    "LanguageModel",
    "Piece",
    "Sampling",
    "best_precision",
    "complete",
    "generate",
    "language_model",
]
