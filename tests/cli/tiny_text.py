"""BERT at a size that trains in a moment, as a network that the command line can name."""

from dataclasses import replace

from octavolt.contract import TextLimits
from octavolt.networks import bert

ENTRY = replace(
    bert.ENTRIES[0],
    name="tiny-text",
    build=bert.build_tiny,
    preprocessing=TextLimits(length=64, tokenizer="wordpiece"),
)
