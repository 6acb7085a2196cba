"""Made text with all that tokenizers stumble over, and published files if they lie near."""

import random
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[4] / "shared" / "data"
"""Published vocabularies and texts, kept beside the repository."""

FRAGMENTS = (
    *("the", "Word", "running", "it's", "don't", "I'LL", "naïve", "Crème", "e\u0301t\u00e9", "x"),
    *("你好", "吗", "机器学习", "。", "\uff0c", "\uff1f", "「", "カタカナ", "한국어", "\u3000"),
    *("👩\u200d👩\u200d👧", "🇨🇭", "😀", "\u0301", "\u200b", "\ufffd", "\u2028", "\u0085", "\x00"),
    *(" ", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\r\n", "\t", "."),
    *(",", "!", "?", "...", "'", '"', "-", "--", "(", ")", "/", "_", "3", "2025", "3.14", "1,000"),
    *("²", "½", "٣", "//\n", ";\n", "```\n", "<|endoftext|>", "[MASK]", "##ing", "Ġ", "ß", "İ"),
)


def made_text(seed: int, fragments: int = 200) -> str:
    """Return fragments in any order: no two seeds give the same."""
    return "".join(random.Random(seed).choices(FRAGMENTS, k=fragments))


def shared(*names: str) -> Path:
    """Return a path beside the repository; the test is skipped without it."""
    path = SHARED.joinpath(*names)
    if not path.exists():
        pytest.skip(f"{path.name} lies not beside the repository")
    return path
