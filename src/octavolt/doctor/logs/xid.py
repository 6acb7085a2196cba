"""What the driver reports of cards in the kernel's log, by number, where it matters to Volta.

Meanings after docs.nvidia.com/deploy/xid-errors, in our words.
"""

from typing import Literal

from octavolt.doctor.logs.known import Known

REPLACE = "Reboot; if it comes again, test the card alone in another slot, and replace it."
PROGRAM = (
    "If it is one program only, look there: CUDA_LAUNCH_BLOCKING=1, compute-sanitizer. If it is "
    "one card only, replace that."
)
RETIRED = "nvidia-smi -q -d ECC,PAGE_RETIREMENT; reboot, so that the page is kept out of use."
MEANINGS: dict[int, tuple[Literal["error", "warning"], str, str]] = {
    8: ("error", "The GPU stopped processing.", REPLACE),
    13: (
        "error",
        "A kernel failed on the card: an index out of range, or failing memory.",
        PROGRAM,
    ),
    31: ("error", "A kernel read or wrote at an address that nothing is at.", PROGRAM),
    32: ("error", "The driver's commands arrived damaged: often the PCIe link.", REPLACE),
    38: ("error", "The driver's firmware failed.", "Install R580's latest release, and reboot."),
    43: ("error", "A program's work on the card was stopped after its own fault.", PROGRAM),
    45: (
        "warning",
        "Work was removed from the card since its program ended or failed.",
        "It follows another error or a kill: see what stands before it.",
    ),
    48: ("error", "Memory gave two wrong bits in one word: results are lost.", RETIRED),
    57: ("error", "The card's memory couldn't be trained to its speed.", REPLACE),
    61: ("error", "The card's internal controller stopped.", REPLACE),
    62: ("error", "The card's internal controller halted: power, heat or a defect.", REPLACE),
    63: ("warning", "A page of memory is to be retired: on Volta at the next reboot.", RETIRED),
    64: ("error", "A page couldn't be retired: the table of 64 is full, or unreadable.", REPLACE),
    68: ("error", "The video processor failed.", REPLACE),
    69: ("error", "The card's graphics engine reported a class error.", PROGRAM),
    74: (
        "error",
        "An NVLink failed.",
        "nvidia-smi nvlink -e shows which; seat the board anew; then replace card or board.",
    ),
    79: (
        "error",
        "The card fell off the bus: power, heat, a loose slot, or a dying card.",
        "Power off and on, seat card and cables anew, and lower the cap: sudo nvidia-smi -pl 200.",
    ),
    92: ("warning", "Many single wrong bits, which were mended: memory is ageing.", RETIRED),
    94: ("error", "An error of memory that one program was stopped for.", RETIRED),
    95: ("error", "An error of memory that may have reached any program.", RETIRED),
    109: ("error", "Switching between programs on the card timed out.", PROGRAM),
    119: (
        "error",
        "The GPU's system processor didn't answer; Volta has none: another card, or the open "
        "kernel module.",
        "Install the proprietary flavour of R580.",
    ),
    140: ("error", "Memory or cache gave wrong bits that couldn't be mended.", RETIRED),
}


def entry(number: int) -> Known:
    """Return the entry of a Xid."""
    severity, means, remedy = MEANINGS[number]
    return Known(
        name=f"xid-{number}",
        pattern=rf"NVRM: Xid \(.*?\): {number}\b",
        hints=("xid",),
        severity=severity,
        means=means,
        remedy=remedy,
        source=f"NVIDIA's list of Xid errors, {number}",
        example=f"[ 812.4412] NVRM: Xid (PCI:0000:3b:00): {number}, pid=2211, name=python",
    )


XID = (
    *map(entry, MEANINGS),
    Known(
        name="xid-other",
        pattern=rf"NVRM: Xid \(.*?\): (?!({'|'.join(map(str, MEANINGS))})\b)\d+",
        hints=("xid",),
        means="The driver reports an error of a card, or of a program on it.",
        remedy="Look the number up: docs.nvidia.com/deploy/xid-errors. " + PROGRAM,
        source="NVIDIA's list of Xid errors",
        example="NVRM: Xid (PCI:0000:3b:00): 122, pid=2211, SPI read failure",
    ),
)
