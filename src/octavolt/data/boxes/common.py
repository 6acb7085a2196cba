"""What several formats of boxes do alike with the pictures that annotations name."""

import math
from functools import partial

import numpy as np

from octavolt.contract import DataSet
from octavolt.data.boxes.files import Files, Finder, folder_of
from octavolt.data.boxes.gathered import Gathered
from octavolt.data.boxes.settled import Origin, settled
from octavolt.data.boxes.sizes import sizes_of
from octavolt.data.pictures import FilePictures, name_at, readable
from octavolt.data.splits import naturally
from octavolt.errors import OctavoltError
from octavolt.units import counted

CLASSES_FILES = ("classes.txt", "labels.txt", "labelmap.txt")
"""Where the order of the classes may stand, a name a line."""
MISSING = -1
"""In place of the row of a picture that there isn't."""


def named_picture(
    gathered: Gathered,
    finder: Finder,
    named: str,
    *,
    split: int,
    source: int,
    line: int | None = None,
    height: int = 0,
    width: int = 0,
    hints: tuple[str, ...] = (),
) -> int:
    """Return the row of the picture that an annotation names, or `MISSING`, which is a fault."""
    match = finder.find(named, hints=hints)
    file = gathered.sources[source]
    if match.name is None:
        gathered.wrong(match.problem, file=file, line=line, kind="missing-file")
        return MISSING
    if match.problem:
        gathered.warn("other-ending", match.problem, file=file, line=line)
    finder.used.add(match.name)
    return gathered.picture(
        match.name, split=split, source=source, line=line or 0, height=height, width=width
    )


def none_found(gathered: Gathered, files: Files) -> None:
    """Raise `OctavoltError` if not one of the pictures that annotations name is there."""
    missing = gathered.faults.counts["missing-file"]
    if len(gathered.ends) > 0 or missing == 0:
        return
    first = next(one for one in gathered.faults.kept if one.kind == "missing-file")
    line = f", line {first.line}" if first.line else ""
    raise OctavoltError(
        f"Of {counted(missing, 'picture')} that the annotations name none lies below "
        f"'{files.root}'; the first: '{first.file}'{line}: {first.problem}. Put them there, or "
        "name the folder that holds pictures and annotations."
    )


def unannotated(gathered: Gathered, finder: Finder) -> None:
    """Warn of pictures that no annotation names, in folders of which it names others."""
    folders = {folder_of(name) for name in finder.used}
    for name in finder.all():
        if name not in finder.used and folder_of(name) in folders:
            problem = "the picture has no annotation and is not used"
            gathered.warn("no-annotation", problem, file=readable(name))


def fill_sizes(files: Files, gathered: Gathered) -> None:
    """Read the sizes of pictures whose annotation states none from their files."""
    rows = gathered.rows()
    unknown = np.flatnonzero((rows.sizes == 0).any(axis=1))
    sizes = sizes_of(
        lambda place: files.full(name_at(rows.names, int(unknown[place]))), len(unknown)
    )
    for row, (height, width) in zip(unknown.tolist(), sizes.tolist(), strict=True):
        gathered.sizes[2 * row], gathered.sizes[2 * row + 1] = height, width


def from_files(files: Files, gathered: Gathered, format_name: str, seed: int) -> DataSet:
    """Return the data set of what was gathered, whose pictures are files."""
    none_found(gathered, files)
    fill_sizes(files, gathered)
    names = gathered.rows().names
    return settled(
        gathered,
        Origin(source=files.source, format=format_name, root=files.path),
        build=partial(FilePictures, files.root, names),
        seed=seed,
    )


def name_classes(files: Files, gathered: Gathered, codes: dict[str, int]) -> None:
    """Give the classes in the order of a list beside the annotations, or else their natural one."""
    names = naturally(codes)
    for one in CLASSES_FILES:
        if files.is_folder and one.encode() in files.content().files:
            listed = [line.strip() for line in files.lines(one.encode()) if line.strip()]
            strange = [name for name in names if name not in listed]
            if strange:
                raise OctavoltError(
                    f"'{one}' lacks the class '{strange[0]}', which annotations name. Add it, or "
                    "remove the file: the classes are found without."
                )
            gathered.declared = True
            gathered.notes.append(f"The classes are those of '{one}'.")
            names = list(dict.fromkeys(listed))
            break
    rank = {name: place for place, name in enumerate(names)}
    gathered.relabel([rank[name] for name in codes])
    gathered.classes = tuple(names)


def number(text: str) -> float:
    """Return a number. Raises `ValueError` with what is wrong about it."""
    stripped = text.strip()
    try:
        value = float(stripped)
    except ValueError:
        dotted = stripped.replace(",", ".", 1)
        if "," in stripped and is_float(dotted):
            raise ValueError(f"the number '{stripped}' has a comma; write {dotted}") from None
        shown = f"'{stripped[:40]}' is no number" if stripped else "a number is missing"
        raise ValueError(shown) from None
    if not math.isfinite(value):
        raise ValueError(f"'{stripped[:40]}' is no finite number")
    return value


def is_float(text: str) -> bool:
    """Tell whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
