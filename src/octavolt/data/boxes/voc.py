"""Pascal VOC's XML: a file a picture, with or without lists of the pictures of each split.

Corners are kept as they stand. The VOC itself counts pixels from 1, and its last corner lies inside
the box; the tools that write most such files, among them labelImg, copy corners as octavolt has
them: from 0, the last one outside. Which was meant a file does not say. So widths and areas are
those of torchvision and of most converters, and a box of the VOC itself is a pixel smaller than it
was drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from octavolt.contract import DataSet
from octavolt.data.boxes.common import from_files, name_classes, number, unannotated
from octavolt.data.boxes.files import (
    MOST_TEXT_BYTES,
    Files,
    Finder,
    ending,
    folder_of,
    is_picture,
    looked_at,
    split_folder,
    stem,
)
from octavolt.data.boxes.format import BoxFormat
from octavolt.data.boxes.gathered import Corners, Gathered
from octavolt.data.pictures import readable
from octavolt.data.splits import SPLITS, TRAIN, split_index
from octavolt.units import counted

LOOKED_AT_BYTES = 4096
CORNERS = ("xmin", "ymin", "xmax", "ymax")
SIDES = ("width", "height")
LISTS = b"imagesets"
TRAINVAL = "trainval"


@dataclass(kw_only=True)
class Thing:
    """An object as it stands in the file."""

    line: int
    values: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Text and line of each value."""


@dataclass(kw_only=True)
class Annotation:
    """What one file says."""

    filename: str = ""
    size_line: int = 0
    sides: dict[str, str] = field(default_factory=dict)
    things: list[Thing] = field(default_factory=list)
    root: str = ""


class Reader:
    """Reads a file without building its tree; parts of an object, such as a head, are no object."""

    def __init__(self) -> None:
        self.found = Annotation()
        self.path: list[str] = []
        self.text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.StartDoctypeDeclHandler = refuse

    def read(self, content: bytes) -> Annotation:
        """Return what the file says. Raises `expat.ExpatError`, or `ValueError` on a DOCTYPE."""
        self.parser.Parse(content, True)
        return self.found

    def start(self, name: str, _attributes: Any) -> None:
        """Note where an object begins."""
        self.path.append(name)
        self.text.clear()
        if len(self.path) == 1:
            self.found.root = name
        if self.path[1:] == ["object"]:
            self.found.things.append(Thing(line=self.parser.CurrentLineNumber))

    def end(self, name: str) -> None:
        """Keep the text of an element that has a meaning here."""
        text, line = "".join(self.text).strip(), self.parser.CurrentLineNumber
        self.text.clear()
        at = self.path[1:]
        self.path.pop()
        if at == ["filename"]:
            self.found.filename = text
        elif at[:1] == ["size"] and len(at) == 2:
            self.found.sides[name] = text
            self.found.size_line = line
        elif at[:1] == ["object"] and (len(at) == 2 or (len(at) == 3 and at[1] == "bndbox")):
            self.found.things[-1].values.setdefault(name, (text, line))


def refuse(*_: Any) -> None:
    """Raise on a DOCTYPE: its entities may grow without bound, and no annotation needs one."""
    raise ValueError("it has a DOCTYPE, which no annotation needs and octavolt refuses: remove it")


def recognises(files: Files) -> bool:
    """Tell whether there are XML files that begin as annotations."""
    first = next(looked_at(files, {b".xml"}), None)
    return first is not None and b"<annotation" in files.beginning(first, LOOKED_AT_BYTES)


def open_voc(files: Files, seed: int) -> DataSet:
    """Return the pictures and boxes of all XML files."""
    gathered = Gathered()
    everything = list(files.below())
    finder = Finder(name for name in everything if is_picture(name))
    listed = lists_of(files, everything, gathered)
    codes: dict[str, int] = {}
    passed_over = 0
    for name in everything:
        if ending(name) != b".xml":
            continue
        key = (base_of(name), readable(stem(name)))
        split = listed.pop(key, None) if listed.any else split_folder(folder_of(name))
        if split is None and listed.any:
            passed_over += 1
            ignored(name, finder)
            continue
        said = annotation(files, name, gathered, finder)
        if said is not None:
            use(
                name,
                said,
                split=TRAIN if split is None else split,
                gathered=gathered,
                finder=finder,
                codes=codes,
            )
    if passed_over:
        left_out = counted(passed_over, "annotation is", "annotations are")
        gathered.notes.append(f"{left_out} in no list of ImageSets and not used.")
    for (_, one), (file, line) in listed.left():
        gathered.wrong(
            f"there is no annotation '{one}.xml'", file=file, line=line, kind="missing-file"
        )
    name_classes(files, gathered, codes)
    unannotated(gathered, finder)
    return from_files(files, gathered, "voc", seed)


Key = tuple[bytes, str]
"""The folder around 'Annotations', and the name of a picture without its ending."""


class Lists:
    """Which pictures are of which split."""

    def __init__(self) -> None:
        self.split_of: dict[Key, int] = {}
        self.place_of: dict[Key, tuple[str, int]] = {}
        self.any = False

    def pop(self, key: Key, default: None) -> int | None:
        """Return the split of a picture and forget it, or the default."""
        self.place_of.pop(key, None)
        return self.split_of.pop(key, default)

    def add(
        self, rows: Sequence[str], file: str, *, base: bytes, split: int, gathered: Gathered
    ) -> None:
        """Add what one file lists, a name a line."""
        self.any = True
        for line, row in enumerate(rows, start=1):
            one = row.strip()
            if not one:
                continue
            if is_picture(one.encode()):
                one = one.rpartition(".")[0]
            key = (base, one.rpartition("/")[2])
            if key in self.split_of:
                problem = f"'{one}' is listed twice; it stays in {SPLITS[self.split_of[key]]}"
                gathered.warn("in-two-splits", problem, file=file, line=line)
                continue
            self.split_of[key] = split
            self.place_of[key] = (file, line)

    def left(self) -> list[tuple[Key, tuple[str, int]]]:
        """Return those that were not asked for, with file and line."""
        return list(self.place_of.items())


def base_of(name: bytes) -> bytes:
    """Return the folder around 'Annotations' or 'ImageSets'; else the folder of the file."""
    parts = folder_of(name).split(b"/")
    for place, part in enumerate(parts):
        if part.lower() in {b"annotations", LISTS}:
            return b"/".join(parts[:place])
    return b"/".join(parts)


def lists_of(files: Files, everything: list[bytes], gathered: Gathered) -> Lists:
    """Return what the files of ImageSets/Main list."""
    lists = Lists()
    found: dict[bytes, dict[str, bytes]] = {}
    for name in everything:
        folders = [part.lower() for part in folder_of(name).split(b"/")]
        own = readable(stem(name)).lower()
        is_list = folders[-1:] == [b"main"] and LISTS in folders and ending(name) == b".txt"
        if is_list and (split_index(own) is not None or own == TRAINVAL):
            found.setdefault(base_of(name), {})[own] = name
    for base, named in found.items():
        if any(split_index(own) == TRAIN for own in named):
            named.pop(TRAINVAL, None)
        ordered = sorted(named, key=lambda own: split_index(own) or TRAIN)
        for own in ordered:
            split = split_index(own)
            rows = files.lines(named[own])
            lists.add(
                rows,
                readable(named[own]),
                base=base,
                split=TRAIN if split is None else split,
                gathered=gathered,
            )
    return lists


def ignored(name: bytes, finder: Finder) -> None:
    """Note that the picture of a file is known, though it is not used."""
    finder.used.update(finder.stems(stem(name)))


def annotation(files: Files, name: bytes, gathered: Gathered, finder: Finder) -> Annotation | None:
    """Return what a file says, or None, adding a fault, if it is no annotation."""
    line = None
    try:
        found = Reader().read(content_of(files, name))
        problem = "" if found.root == "annotation" else f"no annotation: it begins <{found.root}>"
    except expat.ExpatError as error:
        problem, line = f"no XML: {expat.errors.messages[error.code]}", error.lineno
    except ValueError as error:
        problem = str(error)
    if not problem:
        return found
    gathered.wrong(problem, file=readable(name), line=line)
    ignored(name, finder)
    return None


def use(
    name: bytes,
    said: Annotation,
    *,
    split: int,
    gathered: Gathered,
    finder: Finder,
    codes: dict[str, int],
) -> None:
    """Add the picture and the boxes of one file."""
    file, own = readable(name), stem(name)
    hints = [part for part in reversed(readable(folder_of(name)).split("/")) if part]
    match = finder.find_stem(own, said.filename or f"{readable(own)}.jpg", hints=hints)
    if match.name is None:
        gathered.wrong(match.problem, file=file, kind="missing-file")
        return
    if match.name in finder.used:
        gathered.wrong(f"the picture '{readable(match.name)}' is annotated twice", file=file)
        return
    if match.problem:
        gathered.warn("other-ending", match.problem, file=file)
    finder.used.add(match.name)
    height, width = (side(said, one) for one in ("height", "width"))
    known = height > 0 and width > 0
    picture = gathered.picture(
        match.name,
        split=split,
        source=gathered.source(file),
        line=said.size_line,
        height=height if known else 0,
        width=width if known else 0,
    )
    for thing in said.things:
        add(thing, picture, file, gathered, codes)


def content_of(files: Files, name: bytes) -> bytes:
    """Return the bytes of a file. Raises `ValueError` if it can't be read or is too long."""
    try:
        with files.full(name).open("rb") as file:
            content = file.read(MOST_TEXT_BYTES + 1)
    except OSError as error:
        raise ValueError(f"the file can't be read: {error.strerror}") from error
    if len(content) > MOST_TEXT_BYTES:
        raise ValueError(f"it has more than {MOST_TEXT_BYTES:,} bytes; no annotation has")
    return content


def side(found: Annotation, which: str) -> int:
    """Return a side of the picture in pixels; 0 if the file states none."""
    try:
        return max(0, int(number(found.sides.get(which, "0"))))
    except ValueError:
        return 0


def add(thing: Thing, picture: int, file: str, gathered: Gathered, codes: dict[str, int]) -> None:
    """Add a box, or the fault of one that can't be used."""
    name, line = thing.values.get("name", ("", thing.line))
    if not name:
        gathered.wrong("an object has no name", file=file, line=thing.line, picture=picture)
        return
    try:
        corners = corners_of(thing)
    except ValueError as error:
        problem, line = error.args
        gathered.wrong(f"'{name}': {problem}", file=file, line=line, picture=picture)
        return
    gathered.box(
        picture,
        corners,
        codes.setdefault(name, len(codes)),
        line=thing.line,
        difficult=thing.values.get("difficult", ("0", 0))[0] not in {"", "0"},
    )


def corners_of(thing: Thing) -> Corners:
    """Return the corners of a box. Raises `ValueError` with what is wrong and its line."""
    values = []
    for which in CORNERS:
        if which not in thing.values:
            raise ValueError(f"it has no {which}", thing.line)
        text, line = thing.values[which]
        try:
            values.append(number(text))
        except ValueError as error:
            raise ValueError(f"{which}: {error}", line) from error
    return (values[0], values[1], values[2], values[3])


FORMAT = BoxFormat(
    name="voc",
    description="Pascal VOC: a folder with an .xml file a picture, maybe lists in ImageSets/Main",
    recognises=recognises,
    open=open_voc,
)
