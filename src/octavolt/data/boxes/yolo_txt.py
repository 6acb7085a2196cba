"""YOLO's TXT: a file a picture, a line a box: class, center, width and height in shares of it."""

import os
import re
from array import array
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from octavolt.contract import DataSet
from octavolt.data.boxes.common import fill_sizes, from_files, is_float, none_found, number
from octavolt.data.boxes.files import (
    MOST_TEXT_BYTES,
    Files,
    ending,
    folder_of,
    is_picture,
    looked_at,
    split_folder,
    without_ending,
)
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.folder import joined
from octavolt.data.pictures import readable
from octavolt.data.splits import SPLITS, TEST, TRAIN, VAL
from octavolt.errors import OctavoltError
from octavolt.units import counted

YAML = (b".yaml", b".yml")
KEYS = {"train": TRAIN, "val": VAL, "valid": VAL, "test": TEST}
CLASSES = re.compile(rb"(.*/)?(classes\.txt|_darknet\.labels|[^/]*\.names)", re.IGNORECASE)
NO_LABELS = re.compile(rb"(.*/)?(classes|readme|license|train|val|valid|test)[^/]*\.txt", re.I)
"""Texts that may lie among those of boxes."""
LOOKED_AT = 20
LOOKED_AT_BYTES = 4096
MOST_CLASSES = 100_000
"""A larger number is a slip of the finger, and would be a network's output each."""
MOST_SHARE = 2.0
"""Of a picture's side: larger numbers are pixels, not shares of it."""


def recognises(files: Files) -> bool:
    """Tell whether there is a data.yaml, or texts that hold boxes."""
    if next((one for one in looked_at(files, YAML) if is_data_yaml(files, one)), None):
        return True
    if not files.is_folder:
        return False
    texts = [one for one in looked_at(files, {b".txt"}) if not NO_LABELS.fullmatch(one)]
    firsts = [first_line(files, name) for name in texts[:LOOKED_AT]]
    filled = [line for line in firsts if line]
    return bool(filled) and all(map(is_box, filled))


def first_line(files: Files, name: bytes) -> str:
    """Return the first line of a text that is not empty; '' if there is none."""
    lines = files.beginning(name, LOOKED_AT_BYTES).decode("utf-8", "replace").splitlines()
    return next((line for line in lines if line.strip()), "")


def is_box(line: str) -> bool:
    """Tell whether a line may be a box: five or more numbers, the first of them whole."""
    cells = line.replace(",", ".").split()
    return len(cells) >= 5 and cells[0].isdecimal() and all(map(is_float, cells))


def is_data_yaml(files: Files, name: bytes) -> bool:
    """Tell whether a file has keys for names and for pictures."""
    beginning = files.beginning(name, MOST_TEXT_BYTES)
    has = [re.search(rb"^%s\s*:" % key, beginning, re.M) for key in (b"names", b"train", b"val")]
    return has[0] is not None and (has[1] is not None or has[2] is not None)


def open_yolo(files: Files, seed: int) -> DataSet:
    """Return the pictures and boxes of all texts."""
    gathered = Gathered(declared=True)
    everything = list(files.below())
    yaml_file = next((one for one in looked_at(files, YAML) if is_data_yaml(files, one)), None)
    if yaml_file is None:
        names_file, names = names_beside(files, everything)
        pictures = by_folder(everything, gathered)
    else:
        settings = settings_of(files, yaml_file)
        names_file, names = readable(yaml_file), class_names(readable(yaml_file), settings)
        pictures = by_settings(files, yaml_file, settings, everything, gathered)
    used: set[bytes] = set()
    for split, own in pictures.items():
        read_split(files, split, own, gathered, used)
    without_picture(files, everything, used, gathered)
    if names is None:
        names = numbered(gathered)
    check_numbers(gathered, names_file, names)
    gathered.classes = tuple(names)
    none_found(gathered, files)
    fill_sizes(files, gathered)
    to_pixels(gathered)
    return from_files(files, gathered, "yolo", seed)


def settings_of(files: Files, name: bytes) -> Mapping[str, Any]:
    """Return what a data.yaml says, all values as text. Raises `OctavoltError` with the line."""
    import yaml  # type: ignore[import-untyped]

    shown = readable(name)
    try:
        # This loader makes nothing but text, lists and mappings: 'no' stays a name.
        settings = yaml.load(files.small(name), Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise OctavoltError(f"'{shown}', line {line}: no YAML: {error.problem}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise OctavoltError(f"'{shown}' is no YAML that can be read: {error}.") from error
    if not isinstance(settings, dict):
        raise OctavoltError(f"'{shown}' holds no keys; 'names', 'train' and 'val' are needed.")
    return settings


def class_names(shown: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the classes: a list, or a mapping of their numbers."""
    names = settings.get("names")
    if isinstance(names, dict) and sorted(names, key=len) and all(map(str.isdecimal, names)):
        by_number = {int(key): name for key, name in names.items()}
        if sorted(by_number) != list(range(len(by_number))):
            missing = next(one for one in range(len(by_number)) if one not in by_number)
            raise OctavoltError(
                f"'{shown}' names no class {missing}, though others up to {max(by_number)}. Number "
                "the classes from 0 without gaps."
            )
        names = [by_number[number] for number in range(len(by_number))]
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise OctavoltError(
            f"'{shown}' has no names of classes under 'names': a list, or numbers with a name each."
        )
    count = settings.get("nc")
    if isinstance(count, str) and count.isdecimal() and int(count) != len(names):
        raise OctavoltError(
            f"'{shown}' says nc: {count} and has {counted(len(names), 'name')}. Correct one."
        )
    return names


def by_settings(
    files: Files,
    name: bytes,
    settings: Mapping[str, Any],
    everything: Sequence[bytes],
    gathered: Gathered,
) -> dict[int, list[bytes]]:
    """Return the pictures of each split, from the folders and lists that a data.yaml names."""
    shown = readable(name)
    base = files.full(name).parent
    if isinstance(settings.get("path"), str):
        # Where 'path' is of another machine, what it holds mostly lies beside the file.
        base = next((one for one in [base / settings["path"]] if one.is_dir()), base)
    found: dict[int, list[bytes]] = {}
    for key, split in KEYS.items():
        named = settings.get(key)
        for one in named if isinstance(named, list) else [named]:
            if not isinstance(one, str) or not one.strip():
                continue
            place = existing(base, one.strip())
            if place is None:
                message = f"'{shown}' names '{one}' for {key}, and there is no such folder or list"
                if split == TRAIN:
                    raise OctavoltError(f"{message} in '{base}'. Correct it.")
                gathered.notes.append(f"{message}: {key} is not used.")
                continue
            own = in_place(files, place, everything, gathered)
            found.setdefault(split, []).extend(own)
    if not any(found.values()):
        raise OctavoltError(
            f"'{shown}' names no picture: the folders under 'train' and 'val' hold none."
        )
    return found


def existing(base: Path, named: str) -> Path | None:
    """Return what a data.yaml names; some tools write one '../' too many, or another machine's."""
    parts = [part for part in named.replace("\\", "/").split("/") if part not in {"", "."}]
    inner = parts
    while inner[:1] == [".."]:
        inner = inner[1:]
    tries = [base / named, base.joinpath(*inner), base.joinpath(*parts[-2:])]
    return next((one for one in tries if one.exists()), None)


def in_place(
    files: Files, place: Path, everything: Sequence[bytes], gathered: Gathered
) -> list[bytes]:
    """Return the pictures below a folder, or those of a list; relative to the root where inside."""
    root = files.root.resolve()
    if place.is_file():
        return in_list(files, place, gathered)
    try:
        inner = os.fsencode(place.resolve().relative_to(root))
    except ValueError:
        outside = Files(str(place.resolve()))
        found = [joined(os.fsencode(outside.root), one) for one in outside.below()]
        return [one for one in found if is_picture(one)]
    begins = b"" if inner == b"." else inner + b"/"
    return [one for one in everything if one.startswith(begins) and is_picture(one)]


def in_list(files: Files, place: Path, gathered: Gathered) -> list[bytes]:
    """Return the pictures that a file lists, a path a line; those that are missing are faults."""
    found = []
    beside = Files(str(place))
    for line, text in enumerate(beside.lines(os.fsencode(place.name)), start=1):
        one = text.strip()
        if not one:
            continue
        path = existing(place.parent, one)
        if path is None or not path.is_file():
            problem = f"there is no picture '{one}'"
            gathered.wrong(problem, file=place.name, line=line, kind="missing-file")
            continue
        try:
            found.append(os.fsencode(path.resolve().relative_to(files.root.resolve())))
        except ValueError:
            found.append(os.fsencode(path.resolve()))
    return found


def by_folder(everything: Sequence[bytes], gathered: Gathered) -> dict[int, list[bytes]]:
    """Return the pictures of each split, which their folders name; else all are of train."""
    found: dict[int, list[bytes]] = {TRAIN: [], VAL: [], TEST: []}
    named = [(one, split_folder(folder_of(one))) for one in everything if is_picture(one)]
    any_named = any(split is not None for _, split in named)
    for one, split in named:
        if split is not None or not any_named:
            found[TRAIN if split is None else split].append(one)
    left_out = sum(split is None for _, split in named) if any_named else 0
    if left_out:
        verb = counted(left_out, "picture lies", "pictures lie")
        gathered.notes.append(f"{verb} in the folder of no split: not used.")
    return found


def names_beside(files: Files, everything: Sequence[bytes]) -> tuple[str, list[str] | None]:
    """Return the file that names the classes, the outermost there is, and the names."""
    named = [one for one in everything if CLASSES.fullmatch(one)]
    if not named:
        return "", None
    first = min(named, key=lambda one: (one.count(b"/"), one))
    lines = [line.strip() for line in files.lines(first)]
    while lines and not lines[-1]:
        lines.pop()
    if not all(lines) or not lines:
        raise OctavoltError(
            f"'{readable(first)}', line {lines.index('') + 1 if lines else 1}: a class needs a "
            "name. Write one a line, the class 0 first."
        )
    return readable(first), lines


def read_split(
    files: Files, split: int, pictures: Sequence[bytes], gathered: Gathered, used: set[bytes]
) -> None:
    """Add the pictures of a split with their boxes; a picture without a text has none."""
    texts = [text_of(files, name) for name in pictures]
    if pictures and not any(text is not None for text in texts):
        count = counted(len(pictures), "picture")
        gathered.notes.append(f"The split {SPLITS[split]} is not used: no text for its {count}.")
        return
    by_text: dict[bytes, bytes] = {}
    for name, text in zip(pictures, texts, strict=True):
        if text is None:
            problem = "the picture has no text with boxes: taken as one without any"
            gathered.warn("no-annotation", problem, file=readable(name))
            gathered.picture(name, split=split, source=gathered.source(readable(name)))
            continue
        label, content = text
        if label in by_text:
            problem = f"'{readable(by_text[label])}' has the same text '{readable(label)}': rename"
            gathered.wrong(problem, file=readable(name))
            continue
        by_text[label] = name
        used.add(label)
        source = gathered.source(readable(label))
        read(content, gathered.picture(name, split=split, source=source), gathered)


def text_of(files: Files, name: bytes) -> tuple[bytes, bytes] | None:
    """Return the name and the content of the text of a picture, or None if there is none."""
    for one in texts_for(name):
        try:
            with files.full(one).open("rb") as file:
                return one, file.read(MOST_TEXT_BYTES + 1)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OctavoltError(
                f"'{readable(one)}' can't be read: {error.strerror}. Make it readable."
            ) from error
    return None


def texts_for(name: bytes) -> Iterator[bytes]:
    """Yield where the text of a picture may lie: in 'labels' for 'images', or beside it."""
    parts = without_ending(name).split(b"/")
    for place in range(len(parts) - 2, -1, -1):
        if parts[place].lower() in {b"images", b"jpegimages", b"imgs"}:
            yield b"/".join([*parts[:place], b"labels", *parts[place + 1 :]]) + b".txt"
            break
    yield b"/".join(parts) + b".txt"


def read(content: bytes, picture: int, gathered: Gathered) -> None:
    """Add the boxes of a text, and a fault for each line that is none."""
    file = gathered.sources[gathered.source_of[picture]]
    if len(content) > MOST_TEXT_BYTES:
        problem = f"it has more than {MOST_TEXT_BYTES:,} bytes; no text of boxes has"
        gathered.wrong(problem, file=file, picture=picture)
        return
    text = content.decode("utf-8-sig", "replace")
    for line, row in enumerate(text.splitlines(), start=1):
        cells = row.split()
        if not cells:
            continue
        try:
            label, corners = box_of(cells)
        except ValueError as error:
            gathered.wrong(str(error), file=file, line=line, picture=picture)
        else:
            gathered.box(picture, corners, label, line=line)


def box_of(cells: Sequence[str]) -> tuple[int, Corners]:
    """Return class and corners in shares of the picture. Raises `ValueError` if it is no box."""
    if len(cells) != 5:
        more = " (an outline, or a detection with its score?)" if len(cells) > 5 else ""
        raise ValueError(
            f"{counted(len(cells), 'value')}; a box has class, x, y, width, height{more}"
        )
    label = number(cells[0])
    if label != int(label) or not 0 <= label < MOST_CLASSES:
        raise ValueError(f"the class '{cells[0]}' is no whole number from 0")
    x, y, width, height = map(number, cells[1:])
    largest = max(map(abs, (x, y, width, height)))
    if largest > MOST_SHARE:
        raise ValueError(
            f"{largest:g} looks like pixels; x, y, width and height are shares of the picture, "
            "from 0 to 1"
        )
    return int(label), (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def without_picture(
    files: Files, everything: Sequence[bytes], used: Container[bytes], gathered: Gathered
) -> None:
    """Add a fault for each text of boxes that no picture has."""
    for name in everything:
        if ending(name) != b".txt" or name in used or NO_LABELS.fullmatch(name):
            continue
        in_labels = any(part.lower() == b"labels" for part in folder_of(name).split(b"/"))
        if in_labels and is_box(first_line(files, name)):
            problem = "there is no picture of that name"
            gathered.wrong(problem, file=readable(name), kind="missing-file")


def numbered(gathered: Gathered) -> list[str]:
    """Return the numbers of the classes as their names, where no file gives any."""
    gathered.notes.append("No file names the classes: they are called by their numbers.")
    return [str(label) for label in range(max(gathered.labels, default=-1) + 1)]


def check_numbers(gathered: Gathered, names_file: str, names: Sequence[str]) -> None:
    """Raise `OctavoltError` if a box is of a class that has no name."""
    for box, label in enumerate(gathered.labels):
        if label >= len(names):
            file = gathered.sources[gathered.source_of[gathered.picture_of[box]]]
            raise OctavoltError(
                f"'{names_file}' names {counted(len(names), 'class', 'classes')}, 0 to "
                f"{len(names) - 1}, but '{file}', line {gathered.lines[box]}, is of class {label}; "
                f"the largest of all is {max(gathered.labels)}. Complete the names."
            )


def to_pixels(gathered: Gathered) -> None:
    """Put pixels in place of shares; boxes of a picture of unknown size are forgotten.

    Such a picture can't be read, which its check will say.
    """
    picture_of = np.frombuffer(gathered.picture_of.tobytes(), np.int64)
    sizes = np.frombuffer(gathered.sizes.tobytes(), np.int64).reshape(-1, 2)[picture_of]
    corners = np.frombuffer(gathered.corners.tobytes(), np.float64).reshape(-1, 4)
    scale = np.stack([sizes[:, 1], sizes[:, 0]] * 2, axis=1)
    gathered.corners = array("d", (corners * scale).tobytes())
    known = np.where((sizes > 0).all(axis=1), picture_of, -1)
    gathered.replace_codes(0, known, np.frombuffer(gathered.labels.tobytes(), np.int64))


FORMAT = BoxFormat(
    name="yolo",
    description="YOLO: a data.yaml, or a folder with a .txt file a picture, in 'labels' beside "
    "'images' or where the pictures are",
    recognises=recognises,
    open=open_yolo,
)
