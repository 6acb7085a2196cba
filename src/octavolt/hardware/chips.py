"""The table of GPUs. A new one is an entry in `chips_volta.py` or `chips_others.py`."""

from collections.abc import Mapping
from types import MappingProxyType

from octavolt.errors import UnknownNameError
from octavolt.hardware.chip import Chip
from octavolt.hardware.chips_others import OTHERS
from octavolt.hardware.chips_volta import VOLTA

CHIPS: Mapping[str, Chip] = MappingProxyType({chip.name: chip for chip in (*VOLTA, *OTHERS)})


def find_chip(name: str) -> Chip:
    """Return the chip of that name: ours in any case and with underscores, or the driver's."""
    wanted = plain(name)
    for chip in CHIPS.values():
        if wanted in (chip.name, *map(plain, chip.reported_names)):
            return chip
    raise UnknownNameError("GPU", name, CHIPS)


def plain(name: str) -> str:
    """Return a name as we write ours."""
    return name.lower().replace("_", "-").replace(" ", "-").removeprefix("nvidia-")
