"""Plain text for language modeling: a file, or a folder of files."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from octavolt.contract import DataSet, Fault
from octavolt.data.folder import content, files_below, joined
from octavolt.data.pictures import readable
from octavolt.data.splits import HELD_OUT_FRACTION, TRAIN
from octavolt.data.text.encodings import NotTextError, Part, cut, encoding_note, text_file
from octavolt.data.text.samples import FileDocuments
from octavolt.data.text.split_files import is_side_file, split_of_file, unused
from octavolt.data.text.tables import split_by_name
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_bytes

SUFFIXES = (".txt", ".text", ".md", ".rst", ".tokens", ".raw")
FEWEST_FILES = 20
"""Of as many documents whole ones are held out; of fewer, the last tenth of the text."""
SMALLEST_BYTES = 20
"""Of a text that can be divided."""


def is_text(path: Path) -> bool:
    """Tell whether a path is a file named as plain text."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def text_files(root: Path, faults: list[Fault]) -> tuple[list[str], list[str]]:
    """Return the files of text in a folder and below, and the others in the folder itself."""
    if root.is_file():
        return [""], []
    start = os.fsencode(root)
    found = [os.fsdecode(name) for name in files_below(start, b"", set(), faults)]
    texts = [name for name in found if Path(name).suffix.lower() in SUFFIXES]
    # The licence beside a text is not what anyone wants to learn; alone it may be.
    wanted = [name for name in texts if not is_side_file(name)]
    texts = wanted or texts
    others = set(found) - set(texts)
    return texts, sorted(name for name in others if "/" not in name)


def holds_text(root: Path) -> bool:
    """Tell whether a folder holds files of text, in itself or one folder below."""
    start = os.fsencode(root)
    here = content(start)
    names = [*here.files]
    for folder in here.folders:
        names += content(joined(start, folder)).files
    return any(Path(readable(name)).suffix.lower() in SUFFIXES for name in names)


def open_plain(source: str, *, seed: int) -> DataSet:
    """Return the documents. Raises `OctavoltError` if there is no text."""
    path = Path(source).expanduser()
    root = path if path.is_dir() else path.parent
    faults: list[Fault] = []
    names, others = text_files(path, faults)
    names = [path.name] if path.is_file() else names
    parts = [part for name in names if (part := text_part(root, name, faults)) is not None]
    if not parts:
        raise OctavoltError(no_text(source, faults))
    notes = [*unused(others), *(note for part in parts for note in encoding_note(part))]
    splits, decided = divided_parts(root, parts, seed)
    return DataSet(
        source=source,
        format="text",
        classes=(),
        splits={split: FileDocuments(root, chosen) for split, chosen in splits.items()},
        faults=tuple(faults),
        notes=(*notes, *decided),
        root=root,
    )


def text_part(root: Path, name: str, faults: list[Fault]) -> Part | None:
    """Return a file as text; None, adding a fault, if it is none."""
    shown = readable(os.fsencode(name))
    try:
        part = text_file(root, name)
    except NotTextError as error:
        faults.append(error.fault())
        return None
    except OSError as error:
        problem = f"the file can't be read: {error.strerror}"
        faults.append(Fault(kind="unreadable", file=shown, problem=problem, damaged=True))
        return None
    if part.end > part.begin:
        return part
    faults.append(Fault(kind="empty-text", file=shown, problem="the file is empty", damaged=True))
    return None


def no_text(source: str, faults: Sequence[Fault]) -> str:
    """Return the message for a source without a text."""
    if not faults:
        return f"'{source}' holds no text; files of text end with {', '.join(SUFFIXES)}."
    first = faults[0]
    at = f", line {first.line}" if first.line else ""
    return f"'{source}' holds no text: {first.file}{at}: {first.problem}. Name another."


def divided_parts(
    root: Path, parts: Sequence[Part], seed: int
) -> tuple[dict[str, list[Part]], list[str]]:
    """Return the documents of each split, by the names of the files or else drawn."""
    given = np.array([named_split(part.file) for part in parts], np.int64)
    if named_apart(given):
        return by_names(root, parts, given, seed)
    if len(parts) < FEWEST_FILES:
        return cut_apart(root, parts)
    all_train = np.full(len(parts), TRAIN, np.int64)
    names = [part.file for part in parts]
    rows_of, notes = split_by_name(names, all_train, seed, "file", with_test=True)
    return {split: [parts[row] for row in rows] for split, rows in rows_of.items()}, notes


def named_apart(given: Int64[np.ndarray, " files"]) -> bool:
    """Tell whether the names mean splits: most do, of several kinds. 'Last train' is a title."""
    known = [split for split in given.tolist() if split >= 0]
    return len(set(known)) > 1 and len(known) * 2 > len(given)


def named_split(file: str) -> int:
    """Return the split that a file or the outermost folder it lies in is named as; else -1."""
    for name in (Path(file).parts[0], Path(file).name):
        split = split_of_file(name)
        if split is not None:
            return split
    return -1


def by_names(
    root: Path, parts: Sequence[Part], given: Int64[np.ndarray, " files"], seed: int
) -> tuple[dict[str, list[Part]], list[str]]:
    """Return the documents of each split as the files are named; others are not used."""
    notes = list(unused([part.file for part, split in zip(parts, given, strict=True) if split < 0]))
    chosen = [part for part, split in zip(parts, given, strict=True) if split >= 0]
    known = given[given >= 0]
    train = [part for part, split in zip(chosen, known, strict=True) if split == TRAIN]
    if not train:
        raise OctavoltError(
            f"'{root}' has no text to train on, only {', '.join(part.file for part in chosen)}. "
            "Add train.txt, or name one of the files."
        )
    if 1 in known or len(train) >= FEWEST_FILES:
        names = [part.file for part in chosen]
        rows_of, decided = split_by_name(names, known, seed, "file", with_test=True)
        splits = {split: [chosen[row] for row in rows] for split, rows in rows_of.items()}
        return splits, [*notes, *decided]
    splits, decided = cut_apart(root, train)
    test = [part for part, split in zip(chosen, known, strict=True) if split not in (TRAIN, 1)]
    if test:
        return {**splits, "test": test}, [*notes, *decided[:1]]
    return splits, [*notes, *decided]


def cut_apart(root: Path, parts: Sequence[Part]) -> tuple[dict[str, list[Part]], list[str]]:
    """Return all but the last tenth of the text for training, and the last tenth as val."""
    sizes = [part.end - part.begin for part in parts]
    total = sum(sizes)
    if total < SMALLEST_BYTES:
        raise OctavoltError(
            f"'{root / parts[0].file}' is {counted(total, 'byte')} long, too short to hold a "
            "tenth of it out. Give more text."
        )
    left = total - int(total * HELD_OUT_FRACTION)
    train: list[Part] = []
    val: list[Part] = []
    for part, size in zip(parts, sizes, strict=True):
        if left >= size:
            train.append(part)
        elif left <= 0:
            val.append(part)
        else:
            place = cut(root, part, part.begin + left)
            train.append(piece(part, part.begin, place))
            val.append(piece(part, place, part.end))
        left -= size
    held = format_bytes(sum(part.end - part.begin for part in val))
    return {"train": train, "val": val}, [
        f"The last tenth of the text, {held}, is val.",
        "There is no test split: evaluation uses val.",
    ]


def piece(part: Part, begin: int, end: int) -> Part:
    """Return a part of a file."""
    return Part(file=part.file, encoding=part.encoding, begin=begin, end=end, whole=False)
