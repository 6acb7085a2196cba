"""A BERT that trains in a moment."""

from dataclasses import replace

from octavolt.contract import TextLimits
from octavolt.networks import ENTRIES

ENTRY = replace(
    ENTRIES["bert-tiny"],
    name="tiny-bert",
    build=ENTRIES["bert-tiny"].build_tiny,
    preprocessing=TextLimits(length=64, tokenizer="wordpiece"),
)
"""BERT with two layers, 32 wide, and dropout."""
