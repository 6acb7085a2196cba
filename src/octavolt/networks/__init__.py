"""The table of networks: one row each."""

import importlib
import sys
from pathlib import Path

from octavolt.contract import Entry
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.networks import (
    bert,
    faster_rcnn,
    gpt2,
    inception_v3,
    mobilenet_v2,
    resnet50,
    ssd,
    yolov3,
)

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        resnet50.ENTRY,
        inception_v3.ENTRY,
        mobilenet_v2.ENTRY,
        *bert.ENTRIES,
        *gpt2.ENTRIES,
        *yolov3.ENTRIES,
        *faster_rcnn.ENTRIES,
        *ssd.ENTRIES,
    )
}
SHORT_NAMES = {"bert": "bert-base", "ssd": "ssd300"}
CFG = ".cfg"
"""What the files end in that describe Darknet's networks."""


def find(name: str, run: Path | None = None) -> Entry:
    """Return the entry of that name, of a Darknet .cfg, or of the module a dotted path names.

    A run has its own copy of a .cfg.
    """
    typed = name.lower().replace("_", "-")
    typed = SHORT_NAMES.get(typed, typed)
    if typed in ENTRIES:
        return ENTRIES[typed]
    if name.endswith(CFG):
        file = run / yolov3.RUN_CFG if run else Path(name).expanduser()
        return yolov3.darknet_entry(file, name=Path(name).stem)
    if "." in name:
        return own_entry(name)
    raise UnknownNameError("network", name, ENTRIES)


def own_entry(module_path: str) -> Entry:
    """Return the entry of a module of the user's own, looked for in the working folder too."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        entry = importlib.import_module(module_path).ENTRY
    except ModuleNotFoundError as error:
        raise OctavoltError(
            f"No module '{error.name}' for the network '{module_path}': give the dotted path of a "
            f"module in {here} or among the installed ones, or one of {', '.join(ENTRIES)}."
        ) from error
    except AttributeError as error:
        raise OctavoltError(
            f"The module '{module_path}' has no ENTRY: see docs/adding.md for what one holds."
        ) from error
    if not isinstance(entry, Entry):
        raise OctavoltError(f"{module_path}.ENTRY is {type(entry).__name__}, not an Entry.")
    return entry
