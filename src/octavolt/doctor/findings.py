"""The rules of the diagnosis: each is a function, and a new one is a line in `RULES`."""

from collections.abc import Sequence

from octavolt.doctor import card_rules, host_rules, software_rules
from octavolt.doctor.finding import Finding, Rule
from octavolt.doctor.snapshot import Snapshot

RULES: tuple[Rule, ...] = (
    software_rules.broken_torch,
    software_rules.wrong_wheel,
    software_rules.driver,
    software_rules.cudnn,
    software_rules.cuda_13,
    software_rules.packages,
    software_rules.precision,
    software_rules.compiler,
    software_rules.nccl,
    card_rules.links,
    card_rules.bus,
    card_rules.memory_errors,
    card_rules.heat,
    card_rules.power,
    card_rules.persistence,
    card_rules.occupied,
    card_rules.mixed,
    host_rules.shared_memory,
    host_rules.disk,
    host_rules.decoding,
)


def findings(snapshot: Snapshot, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Return all that is wrong, what stops a run first."""
    found = [one for rule in rules for one in rule(snapshot)]
    return sorted(found, key=lambda one: one.severity != "error")
