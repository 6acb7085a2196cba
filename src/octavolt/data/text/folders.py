"""A folder of text files a class, with or without folders for train, val and test around them."""

import os
from array import array
from functools import partial
from pathlib import Path

import numpy as np

from octavolt.contract import DataSet, Fault
from octavolt.data.folder import class_files, layout_of
from octavolt.data.pictures import name_at, readable
from octavolt.data.splits import Found, divided
from octavolt.data.text.encodings import GB18030, NotTextError, decoded, text_file
from octavolt.data.text.samples import Packing, Places, Rows, RowStore, whole
from octavolt.errors import OctavoltError
from octavolt.units import counted


def open_text_folder(source: str, *, seed: int) -> DataSet:
    """Return the files of the class folders. Raises `OctavoltError` if there are none."""
    root = Path(source).expanduser()
    try:
        layout = layout_of(os.fsencode(root), "text")
    except OSError as error:
        raise OctavoltError(
            f"The folder '{source}' can't be listed: {error.strerror}. Make it readable, or name "
            "another."
        ) from error
    listed = class_files(root, layout, "text")
    texts, files, kept = Packing(), list[str](), array("q")
    faults: list[Fault] = [*listed.faults]
    encodings: list[str] = []
    for row in range(len(listed.labels)):
        name = os.fsdecode(name_at(listed.names, row))
        shown = readable(name_at(listed.names, row))
        text = whole_text(root, name, shown, encodings)
        if isinstance(text, Fault):
            faults.append(text)
            continue
        texts.add(text)
        files.append(shown)
        kept.append(row)
    if len(kept) == 0:
        raise OctavoltError(f"No file in the class folders of '{source}' is text. Name another.")
    rows = whole(kept)
    places = Places(
        files=tuple(files),
        file_of=np.arange(len(rows), dtype=np.int64),
        lines=None,
    )
    found = Found(
        build=partial(Rows, RowStore(texts=texts.packed(), width=1, places=places)),
        names=listed.classes,
        labels=listed.labels[rows],
        split_of=listed.split_of[rows],
        sample="text",
    )
    division = divided(found, seed=seed)
    return DataSet(
        source=source,
        format="text-folder",
        classes=division.classes,
        splits=division.splits,
        faults=(*faults, *division.faults),
        notes=(*layout.notes, *chinese_note(encodings), *division.notes),
        task="text-classification",
        root=root,
    )


def whole_text(root: Path, name: str, shown: str, encodings: list[str]) -> str | Fault:
    """Return the text of a file, adding its encoding, or what is wrong with it."""
    try:
        part = text_file(root, name)
        text = "".join(decoded(root, part))
    except NotTextError as error:
        return Fault(
            kind="not-text", file=shown, line=error.line, problem=error.problem, damaged=True
        )
    except OSError as error:
        problem = f"the file can't be read: {error.strerror}"
        return Fault(kind="unreadable", file=shown, problem=problem, damaged=True)
    if not text.strip():
        return Fault(kind="empty-text", file=shown, problem="the text is empty", damaged=True)
    encodings.append(part.encoding)
    return text


def chinese_note(encodings: list[str]) -> tuple[str, ...]:
    """Return the sentence on files that were taken for GB18030."""
    count = encodings.count(GB18030)
    return (f"{counted(count, 'file is', 'files are')} in GB18030.",) if count else ()
