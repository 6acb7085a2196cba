"""A folder a class, with or without folders for train, val and test around them."""

import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from octavolt.contract import DataSet, Fault
from octavolt.data.format import Format
from octavolt.data.pictures import FilePictures, Names, packed, readable
from octavolt.data.splits import SPLITS, TRAIN, Found, divided, naturally, split_index
from octavolt.errors import OctavoltError
from octavolt.units import counted

JUNK = {b"thumbs.db", b"desktop.ini", b"__macosx", b"@eadir", b"$recycle.bin", b"lost+found"}
"""What file managers and archives leave behind; hidden files are passed over besides."""
WRAPPERS = {b"images", b"imgs", b"data"}
"""Folders that may hold the split folders though others, such as 'labels', lie beside them."""
DEEPEST_WRAPPER = 4
"""How many folders that hold nothing but one folder are entered: archives make some."""

Identity = tuple[int, int]
"""Device and inode of a folder, by which a loop of links is noticed."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What one folder holds, sorted by name, without hidden files and junk."""

    folders: Sequence[bytes]
    files: Sequence[bytes]
    odd: Sequence[tuple[bytes, str]]
    """What is neither, and what it is."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which folders hold class folders."""

    parts: Mapping[bytes, int]
    """Folder relative to the root, to the index of its split."""
    notes: tuple[str, ...] = ()


def content(folder: bytes) -> Content:
    """Return what the folder holds. Raises `OSError` if it can't be listed."""
    folders, files, odd = [], [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b".") or entry.name.lower() in JUNK:
                continue
            try:
                if entry.is_dir():
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
                else:
                    odd.append((entry.name, oddity(entry)))
            except OSError as error:
                odd.append((entry.name, f"{error.strerror}"))
    return Content(folders=sorted(folders), files=sorted(files), odd=sorted(odd))


def oddity(entry: "os.DirEntry[bytes]") -> str:
    """Return what an entry is that is neither file nor folder."""
    return "a link to nothing" if entry.is_symlink() else "a pipe, a socket or a device, no file"


def joined(folder: bytes, name: bytes) -> bytes:
    """Return the name below the folder; either may be empty."""
    return folder + b"/" + name if folder and name else folder or name


def recognises(source: str) -> bool:
    """Tell whether the source is a folder."""
    return Path(source).expanduser().is_dir()


def open_folder(source: str, seed: int) -> DataSet:
    """Return what the folder holds. Raises `OctavoltError` if it holds no class folders."""
    root = Path(source).expanduser()
    try:
        layout = layout_of(os.fsencode(root))
    except OSError as error:
        raise OctavoltError(
            f"The folder '{source}' can't be listed: {error.strerror}. Make it readable, or name "
            "another."
        ) from error
    found, faults = listed(root, layout)
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="folder",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=(*layout.notes, *division.notes),
        root=root,
    )


def layout_of(root: bytes, sample: str = "picture") -> Layout:
    """Return where the class folders are, by looking at most a few folders deep."""
    inner = b""
    for _ in range(DEEPEST_WRAPPER):
        here = content(joined(root, inner))
        parts = split_folders(root, inner, here)
        if TRAIN in parts.values():
            return noted(root, inner, parts)
        wrapper = wrapper_of(root, inner, here)
        if wrapper is None:
            break
        inner = joined(inner, wrapper)
    if here.folders and len(parts) == len(here.folders):
        raise OctavoltError(
            f"'{readable(joined(root, inner))}' has no folder of training {sample}s, only "
            f"{', '.join(readable(name) for name in here.folders)}. Add a folder 'train' that "
            "holds one folder a class."
        )
    if not here.folders:
        raise OctavoltError(no_folders(root, inner, here, sample))
    notes = (f"The classes are the folders in '{readable(inner)}'.",) if inner else ()
    return Layout(parts={inner: TRAIN}, notes=notes)


def split_folders(root: bytes, inner: bytes, here: Content) -> dict[bytes, int]:
    """Return the folders with the usual names of splits that hold folders themselves.

    One that holds none is a class: a train is also a vehicle.
    """
    parts: dict[bytes, int] = {}
    for name in here.folders:
        split = split_index(readable(name))
        if split is None or not folders_in(joined(joined(root, inner), name)):
            continue
        taken = [readable(other) for other, index in parts.items() if index == split]
        if taken:
            raise OctavoltError(
                f"'{taken[0]}' and '{readable(joined(inner, name))}' both hold the {SPLITS[split]} "
                f"split of '{readable(root)}'; rename or move one."
            )
        parts[joined(inner, name)] = split
    return parts


def wrapper_of(root: bytes, inner: bytes, here: Content) -> bytes | None:
    """Return the folder that holds the data set though its parent was named, or None."""
    for name in here.folders:
        if name.lower() in WRAPPERS and any(
            split_index(readable(one)) == TRAIN
            for one in folders_in(joined(joined(root, inner), name))
        ):
            return name
    only = here.folders[0] if len(here.folders) == 1 else None
    return only if only and folders_in(joined(joined(root, inner), only)) else None


def folders_in(folder: bytes) -> Sequence[bytes]:
    """Return the folders inside; none if it can't be listed, as `reachable` will report."""
    try:
        return content(folder).folders
    except OSError:
        return ()


def noted(root: bytes, inner: bytes, parts: Mapping[bytes, int]) -> Layout:
    """Return the layout, with a note on split folders without classes, as contests have them."""
    ignored = [
        f"'{readable(name)}' holds no class folders and is not used."
        for name in content(joined(root, inner)).folders
        if split_index(readable(name)) is not None and joined(inner, name) not in parts
    ]
    inside = [f"The splits are the folders in '{readable(inner)}'."] if inner else []
    return Layout(parts=parts, notes=(*inside, *ignored))


def no_folders(root: bytes, inner: bytes, here: Content, sample: str) -> str:
    """Return the message for a folder without class folders."""
    name = readable(joined(root, inner))
    if not here.files:
        return f"The folder '{name}' is empty. Put one folder a class into it, named as the class."
    tables = [one for one in map(readable, here.files) if one.lower().endswith((".csv", ".tsv"))]
    advice = f" Or name '{name}/{tables[0]}' if that lists the {sample}s." if tables else ""
    return (
        f"The folder '{name}' holds {counted(len(here.files), 'file')} but no folders. Sort the "
        f"{sample}s into one folder a class, named as the class.{advice}"
    )


@dataclass(frozen=True, kw_only=True)
class Listed:
    """All files of all class folders."""

    names: Names
    """Relative to the root."""
    classes: Sequence[str]
    labels: Int64[np.ndarray, " files"]
    split_of: Int64[np.ndarray, " files"]
    faults: Sequence[Fault]
    """On what could not be listed, and on classes without a file."""


def listed(root: Path, layout: Layout) -> tuple[Found, list[Fault]]:
    """Return all files with their labels, and what could not be listed."""
    files = class_files(root, layout)
    found = Found(
        build=partial(FilePictures, root, files.names),
        names=files.classes,
        labels=files.labels,
        split_of=files.split_of,
    )
    return found, list(files.faults)


def class_files(root: Path, layout: Layout, sample: str = "picture") -> Listed:
    """Return all files of the class folders. Raises `OctavoltError` if none is to train on."""
    start = os.fsencode(root)
    faults: list[Fault] = []
    folders = [
        (part, name, split)
        for part, split in layout.parts.items()
        for name in reachable(start, part, faults).folders
    ]
    names = naturally({class_name(name) for _, name, _ in folders})
    label_of = {name: label for label, name in enumerate(names)}
    above = {identity(start), *(identity(joined(start, part)) for part in layout.parts)}
    rows = (
        (file, (label_of[class_name(name)], split))
        for part, name, split in folders
        for file in files_below(start, joined(part, name), above, faults)
    )
    packed_names, columns = packed(rows, columns=2)
    if not np.any(columns[:, 1] == TRAIN):
        raise OctavoltError(
            f"The class folders for training in '{readable(start)}' hold no files. Put the "
            f"{sample}s of each class into its folder."
        )
    filled = {names[label] for label in set(columns[:, 0].tolist())}
    empty = [joined(part, name) for part, name, _ in folders if class_name(name) not in filled]
    return Listed(
        names=packed_names,
        classes=names,
        labels=columns[:, 0],
        split_of=columns[:, 1],
        faults=(*faults, *(empty_class(folder, sample) for folder in empty)),
    )


def class_name(folder: bytes) -> str:
    """Return the name of a class; systems disagree on how an accent is stored, so one form."""
    return unicodedata.normalize("NFC", readable(folder))


def identity(folder: bytes) -> Identity:
    """Return what tells the folder from all others, by whatever links it was reached."""
    status = Path(os.fsdecode(folder)).stat()
    return status.st_dev, status.st_ino


def reachable(root: bytes, folder: bytes, faults: list[Fault]) -> Content:
    """Return what the folder holds, or nothing, adding a fault, if it can't be listed."""
    try:
        here = content(joined(root, folder))
    except OSError as error:
        problem = f"the folder can't be listed: {error.strerror}"
        faults.append(Fault(kind="unreadable", file=readable(folder), problem=problem))
        return Content(folders=(), files=(), odd=())
    faults.extend(
        Fault(
            kind="missing-file",
            file=readable(joined(folder, name)),
            problem=problem,
            damaged=True,
        )
        for name, problem in here.odd
    )
    return here


def files_below(
    root: bytes, folder: bytes, above: set[Identity], faults: list[Fault]
) -> Iterator[bytes]:
    """Yield the files below, sorted, folder by folder; no folder is entered twice."""
    seen = set(above)
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        here = identity(joined(root, at))
        if here in seen:
            problem = "a link back to a folder that is read already; passed over"
            faults.append(Fault(kind="loop", file=readable(at), problem=problem, stops=False))
            continue
        seen.add(here)
        inside = reachable(root, at, faults)
        yield from (joined(at, name) for name in inside.files)
        waiting.extend(joined(at, name) for name in reversed(inside.folders))


def empty_class(folder: bytes, sample: str) -> Fault:
    """Return the warning for a class folder without a file."""
    problem = f"the folder holds no {sample}s, so there is no such class"
    return Fault(kind="empty-class", file=readable(folder), problem=problem, stops=False)


FORMAT = Format(
    name="folder",
    description="one folder a class, with or without train, val and test folders around them",
    recognises=recognises,
    open=open_folder,
)
