"""What a finding is, and what all rules ask."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from octavolt.doctor.snapshot import Card, Snapshot
from octavolt.errors import UnknownNameError
from octavolt.hardware.chip import Chip
from octavolt.hardware.chips import CHIPS, find_chip

Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is wrong."""

    rule: str
    severity: Severity
    """'error' stops a run."""
    what: str
    why: str
    mend: tuple[tuple[str, str], ...]
    """What to do, by lane: 'A' plain torch 2.10, 'B' torch 2.14 for CUDA 12.6, 'CPU', or 'all'."""
    source: str


Rule = Callable[[Snapshot], Iterator[Finding]]


def is_volta(card: Card) -> bool:
    """Whether a card's chip is GV100."""
    chip = chip_of(card)
    return chip is not None and chip.capability == (7, 0)


def chip_of(card: Card) -> Chip | None:
    """Return the card's entry in the table of GPUs, by its PCI id or its name."""
    for chip in CHIPS.values():
        if card.pci_id in chip.pci_ids:
            return chip
    try:
        return find_chip(card.name)
    except UnknownNameError:
        return None


def has_volta(snapshot: Snapshot) -> bool:
    """Whether there is a Volta on the bus, with or without a driver."""
    ids = {one for chip in CHIPS.values() if chip.capability == (7, 0) for one in chip.pci_ids}
    return any(one in ids for one in snapshot.pci_ids) or any(map(is_volta, snapshot.cards))


def number(version: str | None, parts: int = 3) -> tuple[int, ...]:
    """Return a version's first numbers; none if there is no version."""
    found = []
    for part in (version or "").split("+")[0].split(".")[:parts]:
        if not part.isdigit():
            break
        found.append(int(part))
    return tuple(found)
