"""Files of a folder that are named as splits: train.csv, dev-v2.0.json, wiki.train.tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from octavolt.contract import Fault
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError
from octavolt.units import counted

INNER = "data"
"""The folder into which the Hub puts the tables of a data set."""
MOST_NAMED = 5
SIDE_FILES = (
    *("license", "licence", "readme", "manifest", "notice", "copying", "changelog"),
    *("dataset_info", "metadata"),
)
"""Words with which the names of files begin that tell of the data."""


@dataclass(frozen=True, kw_only=True)
class SplitFiles:
    """Files by split, in natural order of their names, and those that have no use."""

    files: tuple[tuple[str, int], ...]
    """Paths relative to the folder, and indices into `SPLITS`; train first."""
    notes: tuple[str, ...]


def split_of_file(name: str) -> int | None:
    """Return which split a file is named as, by the first of its name's words that is one."""
    words = re.split(r"[^A-Za-z]+", Path(name).name)
    return next((index for index in map(split_index, words) if index is not None), None)


def is_side_file(name: str) -> bool:
    """Tell whether a file is beside the data, such as their licence."""
    return Path(name).name.lower().startswith(SIDE_FILES)


def plain_files(folder: Path) -> list[str]:
    """Return the names of the files in a folder, sorted, without hidden ones."""
    return sorted(one.name for one in folder.iterdir() if one.is_file() and one.name[0] != ".")


def split_files(root: Path, suffixes: Sequence[str]) -> SplitFiles | None:
    """Return the files of a folder that are splits, of the first kind that has one to train on.

    Files of other kinds beside them are not used: the same data often lie there once more. A file
    of the right kind that is named as no split is the data set if it is the only file.
    """
    for inner in ("", INNER):
        if not (root / inner).is_dir():
            continue
        names = plain_files(root / inner)
        for suffix in suffixes:
            found = of_kind(root, inner, names, suffix)
            if found is not None:
                return found
    return None


def of_kind(root: Path, inner: str, names: Sequence[str], suffix: str) -> SplitFiles | None:
    """Return the splits among the files that end with a suffix, or None without one to train on."""
    data = [name for name in names if not is_side_file(name)]
    kind = [name for name in data if name.lower().endswith(suffix)]
    known = [(name, split_of_file(name)) for name in kind]
    chosen = [(name, index) for name, index in known if index is not None]
    if len(kind) == len(data) == 1 and not chosen:
        chosen = [(kind[0], TRAIN)]
    if not any(index == TRAIN for _, index in chosen):
        if len(chosen) > 1:
            raise OctavoltError(
                f"'{root / inner}' has no training split, only "
                f"{', '.join(name for name, _ in chosen)}. Add one, named train{suffix}."
            )
        return None
    used = {name for name, _ in chosen}
    files = sorted(chosen, key=lambda one: (one[1], one[0]))
    return SplitFiles(
        files=tuple((f"{inner}/{name}" if inner else name, index) for name, index in files),
        notes=unused([name for name in names if name not in used]),
    )


def unused(names: Sequence[str]) -> tuple[str, ...]:
    """Return the note on files that have no use."""
    if not names:
        return ()
    rest = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return (f"Not used: {listed}.",)


def nothing_usable(
    files: Sequence[str], faults: Sequence[Fault], *, sample: str, advice: str
) -> str:
    """Return the message for files without a good sample to train on."""
    where = " and ".join(f"'{file}'" for file in files)
    if not faults:
        return f"{where} holds no {sample} to train on. {advice}"
    first = faults[0]
    return (
        f"None of the {counted(len(faults), sample)} of {where} can be used; the first, line "
        f"{first.line}: {first.problem}."
    )
