"""Mistakes as the page shows them: a picture or a text, and what was said of it."""

import base64
import binascii
import re
import unicodedata
from dataclasses import dataclass

from octavolt.report.files import Mistake
from octavolt.report.words import percent

MOST_CHARACTERS = 400
"""Of a text that is shown."""
WORD_REACH = 40
"""Characters by which a cut may move, so as not to part a word."""
JOINER = "\N{ZERO WIDTH JOINER}"
CUT = "…"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """A mistake: a picture or a text."""

    name: str
    label: str
    predicted: str
    probability: str
    jpeg_base64: str = ""
    """Empty where there is no picture."""
    question: str = ""
    """What was asked of the text, if anything was."""
    text: str = ""


def shot(mistake: Mistake, task: str) -> Shot:
    """Return a mistake for the page; what is no base64 is left out rather than shown broken."""
    question, text = "", mistake.text or ""
    if task == "question-answering":
        question, _, context = text.partition("\n\n")
        question, text = clipped(question), excerpt(context, (mistake.label, mistake.predicted))
    return Shot(
        name=mistake.name,
        label=clipped(mistake.label),
        predicted=clipped(mistake.predicted),
        probability=percent(mistake.probability),
        jpeg_base64=picture(mistake.jpeg_base64 or ""),
        question=question,
        text=clipped(text),
    )


def picture(jpeg_base64: str) -> str:
    """Return the base64 of a JPEG, or nothing if it isn't one."""
    text = re.sub(r"\s", "", jpeg_base64)
    try:
        return text if base64.b64decode(text, validate=True).startswith(b"\xff\xd8") else ""
    except binascii.Error:
        return ""


def excerpt(context: str, answers: tuple[str, ...]) -> str:
    """Return a context from a little before the first of the answers that it holds."""
    found = next((place for one in answers if (place := context.find(one)) >= 0), 0)
    start = found - MOST_CHARACTERS // 3
    if start <= 0:
        return context
    gap = context.find(" ", start, start + WORD_REACH)
    return CUT + context[gap + 1 if gap >= 0 else whole_character(context, start) :]


def clipped(text: str) -> str:
    """Return the beginning of a text, without empty lines, cut between words where it has any."""
    lines = re.sub(r"\s*\n\s*", "\n", text.strip())
    if len(lines) <= MOST_CHARACTERS:
        return lines
    gap = max(lines.rfind(mark, MOST_CHARACTERS - WORD_REACH, MOST_CHARACTERS) for mark in " \n")
    end = gap if gap >= 0 else whole_character(lines, MOST_CHARACTERS)
    return lines[:end] + CUT


def whole_character(text: str, place: int) -> int:
    """Return the place, or one before it, at which no letter is parted from its marks."""
    while 0 < place < len(text) and (
        unicodedata.category(text[place]).startswith("M") or JOINER in text[place - 1 : place + 1]
    ):
        place -= 1
    return place
