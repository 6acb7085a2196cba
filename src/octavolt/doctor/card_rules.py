"""What is wrong with cards: links, slots, memory, heat, power."""

from collections.abc import Iterator

from octavolt.doctor.finding import Finding, is_volta
from octavolt.doctor.snapshot import Snapshot
from octavolt.units import format_bytes

HOT_MEMORY_CELSIUS = 85
HOT_CORE_CELSIUS = 83
BRAKED_MEGAHERTZ = 400


def links(snapshot: Snapshot) -> Iterator[Finding]:
    """NVLinks that are down."""
    for place, card in enumerate(snapshot.cards):
        down = [n for n, link in enumerate(card.links) if not link.up]
        if down and len(down) < len(card.links):
            yield Finding(
                rule="nvlink-down",
                severity="warning",
                what=f"GPU {place}: {len(down)} of {len(card.links)} NVLinks down (link "
                f"{', '.join(map(str, down))})",
                why="gradients take slower ways, and NCCL before 2.11 corrupts data",
                mend=(
                    (
                        "all",
                        "reseat the board, look for Xid 74 in dmesg; till then NCCL_P2P_DISABLE=1",
                    ),
                ),
                source="NVIDIA/nccl#596",
            )


def bus(snapshot: Snapshot) -> Iterator[Finding]:
    """A card in a narrow slot."""
    for place, card in enumerate(snapshot.cards):
        if card.pcie_width and card.widest_pcie and card.pcie_width < card.widest_pcie:
            yield Finding(
                rule="pcie-narrow",
                severity="warning",
                what=f"GPU {place}: PCIe x{card.pcie_width} of x{card.widest_pcie}",
                why="pictures and, without NVLink, gradients travel at a fraction of the rate",
                mend=(
                    ("all", "another slot, or clean its contacts; adapters of SXM2 are often x8"),
                ),
                source="NVML; the width holds at idle too, unlike the generation",
            )


def memory_errors(snapshot: Snapshot) -> Iterator[Finding]:
    """ECC, and pages that were retired."""
    for place, card in enumerate(snapshot.cards):
        if card.retirement_pending:
            yield Finding(
                rule="retirement-pending",
                severity="error",
                what=f"GPU {place}: a page of memory waits to be retired",
                why="it had a double-bit error, and stays in use until the driver is loaded anew",
                mend=(("all", f"nvidia-smi --gpu-reset -i {place}, or reboot"),),
                source="NVIDIA's page on dynamic page retirement: Xid 48, 63, 64",
            )
        if card.retired_pages:
            many = card.retired_pages >= 60
            yield Finding(
                rule="retired-pages",
                severity="error" if many else "warning",
                what=f"GPU {place}: {card.retired_pages} pages of memory retired",
                why="a card may retire 64; from 60 on NVIDIA replaces it"
                if many
                else "each was wrong once; the number must not grow",
                mend=(("all", "nvidia-smi -q -d PAGE_RETIREMENT, and again after a week"),),
                source="NVIDIA's page on dynamic page retirement",
            )
        if card.ecc is False and is_volta(card):
            yield Finding(
                rule="ecc-off",
                severity="warning",
                what=f"GPU {place}: ECC is off",
                why="wrong bits stay unseen; on HBM2 it costs neither memory nor much time",
                mend=(("all", f"sudo nvidia-smi -i {place} -e 1, then reboot"),),
                source="V100 data sheet",
            )


def heat(snapshot: Snapshot) -> Iterator[Finding]:
    """Cards that are hot, or held back for it."""
    for place, card in enumerate(snapshot.cards):
        if card.memory_celsius is not None and card.memory_celsius >= HOT_MEMORY_CELSIUS:
            yield Finding(
                rule="hot-memory",
                severity="warning",
                what=f"GPU {place}: memory at {card.memory_celsius} C",
                why="HBM2 is slowed at about 85 C, and stands 15 to 33 C above the core",
                mend=(("all", f"clear its air path; sudo nvidia-smi -i {place} -pl 175"),),
                source="bradrlaw/ai-server, ADR-0009",
            )
        elif card.core_celsius is not None and card.core_celsius >= HOT_CORE_CELSIUS:
            yield Finding(
                rule="hot-core",
                severity="warning",
                what=f"GPU {place}: core at {card.core_celsius} C",
                why="it is slowed from 83 C on, and is switched off at 90",
                mend=(("all", f"clear its air path; sudo nvidia-smi -i {place} -pl 200"),),
                source="nvidia-smi -q -d TEMPERATURE of V100s",
            )
        thermal = {"hardware thermal slowdown", "software thermal slowdown"} & {*card.throttled_by}
        if thermal:
            yield Finding(
                rule="thermal-slowdown",
                severity="warning",
                what=f"GPU {place}: {', '.join(sorted(thermal))}",
                why="it runs below its clock now because it is too hot",
                mend=(("all", f"clear its air path; sudo nvidia-smi -i {place} -pl 200"),),
                source="NVML's throttle reasons",
            )


def power(snapshot: Snapshot) -> Iterator[Finding]:
    """Cards that are braked or capped."""
    for place, card in enumerate(snapshot.cards):
        slow = (card.clock_megahertz or BRAKED_MEGAHERTZ) < BRAKED_MEGAHERTZ
        held = {"hardware slowdown"} == {*card.throttled_by} - {"idle", "power cap"}
        if "power brake" in card.throttled_by or (held and slow):
            yield Finding(
                rule="power-brake",
                severity="error",
                what=f"GPU {place}: power brake, clock at {card.clock_megahertz} MHz",
                why="the board holds it at a quarter of its clock: the host's power supply or its "
                "management controller doesn't know the card",
                mend=(("all", "both power supplies in; update the BMC's table of GPUs"),),
                source="l4rz/reverse-engineering-dell-idrac-to-get-rid-of-gpu-throttling",
            )
        limit, usual = card.power_limit_watts, card.default_limit_watts
        if limit and usual and limit < 0.9 * usual:
            yield Finding(
                rule="power-cap",
                severity="warning",
                what=f"GPU {place}: power limit {limit:.0f} W of {usual:.0f} W",
                why="slower than its kind; a cap is right where it was set to save energy",
                mend=(("all", f"sudo nvidia-smi -i {place} -pl {usual:.0f}"),),
                source="NVML",
            )


def persistence(snapshot: Snapshot) -> Iterator[Finding]:
    """The driver unloads between programs."""
    off = [place for place, card in enumerate(snapshot.cards) if card.persistence is False]
    if off:
        yield Finding(
            rule="persistence",
            severity="warning",
            what=f"persistence mode is off on GPU {', '.join(map(str, off))}",
            why="each program waits seconds for the driver, and power limits are forgotten",
            mend=(("all", "sudo nvidia-smi -pm 1"),),
            source="NVIDIA's page on driver persistence",
        )


def occupied(snapshot: Snapshot) -> Iterator[Finding]:
    """Others have a card's memory."""
    for place, card in enumerate(snapshot.cards):
        if card.used_bytes and card.used_bytes > 0.5 * card.memory_bytes:
            yield Finding(
                rule="card-in-use",
                severity="error" if card.used_bytes > 0.9 * card.memory_bytes else "warning",
                what=f"GPU {place}: {format_bytes(card.used_bytes)} of "
                f"{format_bytes(card.memory_bytes)} in use by others",
                why="a training would run out of memory",
                mend=(
                    ("all", "nvidia-smi names the processes; CUDA_VISIBLE_DEVICES chooses cards"),
                ),
                source="NVML",
            )


def mixed(snapshot: Snapshot) -> Iterator[Finding]:
    """Cards of several kinds in one machine."""
    names = sorted({card.name for card in snapshot.cards})
    if len(names) > 1:
        yield Finding(
            rule="mixed-cards",
            severity="warning",
            what=f"cards of several kinds: {', '.join(names)}",
            why="all wait for the slowest in each step, and the smallest sets the batch",
            mend=(("all", "CUDA_VISIBLE_DEVICES with those of one kind"),),
            source="synchronous training",
        )
