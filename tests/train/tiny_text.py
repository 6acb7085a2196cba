"""A language network that trains in a moment, and data for it: what tests of whole runs use."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from octavolt.contract import Reading, TextLimits
from octavolt.networks import ENTRIES
from octavolt.train import Request

ENTRY = replace(
    ENTRIES["gpt2-nano"],
    name="tiny-gpt2",
    build=ENTRIES["gpt2-nano"].build_tiny,
    preprocessing=TextLimits(length=16, tokenizer="bpe"),
)
"""GPT-2 with two layers, 32 wide, and dropout."""

VOCABULARY = 301
"""No multiple of 8, so that rows are padded."""
COLOURS = ("blue", "green", "red")
ODDMENTS = ("like", "你好", "the", "sea", "grass", "😀", "blood", "and", "old", "café")


def write_text(path: Path, *, words: int = 700, seed: int = 0) -> Path:
    """Write a text, a dozen words a line."""
    random = Random(seed)
    lines = [" ".join(random.choices(COLOURS + ODDMENTS, k=12)) for _ in range(words // 12)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_table(folder: Path, *, train: int = 44, val: int = 9, seed: int = 0) -> Path:
    """Write rows of texts from 2 to 13 words, each with its colour for a label."""
    random = Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("val", val), ("test", val)):
        rows = []
        for number in range(count):
            colour = COLOURS[number % 3]
            words = [colour, *random.choices(ODDMENTS, k=random.randrange(1, 13)), str(number)]
            random.shuffle(words)
            rows.append({"text": f"{split} {' '.join(words)}", "label": colour})
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def text_request(data: Path, output: Path, **changes: Any) -> Request:
    """Return a request for a run of a second: 3 epochs of 8 samples an update."""
    recipe = {"epochs": 3, "batch_size": 8, "ema_decay": 0.9} | changes.pop("changes", {})
    return Request(
        **(
            {
                "network": "tests.train.tiny_text",
                "data": str(data),
                "output": output,
                "reading": Reading(vocabulary_size=VOCABULARY),
                "changes": recipe,
                "precision": "fp32",
                "log_steps": 1,
                "threads": 1,
            }
            | changes
        )
    )
