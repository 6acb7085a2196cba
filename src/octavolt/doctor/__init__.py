"""Whether a machine can run at all, what is wrong with it, and the command that mends it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from octavolt.doctor.finding import Finding, chip_of
from octavolt.doctor.findings import findings
from octavolt.doctor.lanes import LANES
from octavolt.doctor.machine import read_machine
from octavolt.doctor.snapshot import Snapshot, read_snapshot, to_json
from octavolt.errors import OctavoltError
from octavolt.hardware.cpu import Cpu
from octavolt.hardware.policy import Policy, on_cpu, on_gpu, policy

__all__ = [
    "LANES",
    "Finding",
    "Snapshot",
    "chosen_precision",
    "doctor",
    "fast_check",
    "findings",
    "read_snapshot",
    "to_json",
]


def doctor(
    folder: Path = Path(), *, snapshot: Snapshot | None = None
) -> tuple[Snapshot, list[Finding]]:
    """Return what this machine is, or a snapshot of another, and all that is wrong with it.

    `folder` is where runs would be written. Takes some ten seconds: it writes 64 MiB there, decodes
    pictures, and looks into the libraries of all packages.
    """
    seen = snapshot or read_machine(folder)
    return seen, findings(seen)


def fast_check(
    folder: Path, *, precision: str | None = None, environment: Mapping[str, str] = os.environ
) -> None:
    """Raise `OctavoltError` with the remedy if a run can't work here; for verbs, before they begin.

    Only the cards that `CUDA_VISIBLE_DEVICES` leaves to this process are looked at.
    """
    seen = left(read_machine(folder, quick=True, precision=precision), environment)
    stopping = [one for one in findings(seen) if one.severity == "error"]
    if stopping:
        told = "\n".join(f"{one.what}: {one.why}. {remedy(one)}" for one in stopping)
        raise OctavoltError(f"{told}\nAll about this machine: octavolt doctor")


def chosen_precision(snapshot: Snapshot) -> Policy:
    """Return how networks would be run: on the first card, if its capability is known."""
    cpu = Cpu(
        name=snapshot.processor,
        flags=frozenset(snapshot.processor_flags),
        physical_cores=snapshot.physical_cores,
    )
    chip = chip_of(snapshot.cards[0]) if snapshot.cards else None
    return policy(on_gpu(cpu, chip.name, chip.capability) if chip else on_cpu(cpu))


def left(snapshot: Snapshot, environment: Mapping[str, str]) -> Snapshot:
    """Return a snapshot with the cards that this process may use; by UUID, all are."""
    said = environment.get("CUDA_VISIBLE_DEVICES")
    if said is None:
        return snapshot
    numbers = [one.strip() for one in said.split(",") if one.strip()]
    if not all(one.isdigit() for one in numbers):
        return replace(snapshot, cards=(), pci_ids=()) if numbers == ["-1"] else snapshot
    chosen = [int(one) for one in numbers if int(one) < len(snapshot.cards)]
    return replace(
        snapshot,
        cards=tuple(snapshot.cards[one] for one in chosen),
        pci_ids=snapshot.pci_ids if numbers else (),
    )


def remedy(one: Finding) -> str:
    """Return what to do, in one sentence a lane."""
    if [lane for lane, _ in one.mend] == ["all"]:
        return f"Do: {one.mend[0][1]}"
    return " Or ".join(f"{LANES[lane]}: {what}" for lane, what in one.mend)
