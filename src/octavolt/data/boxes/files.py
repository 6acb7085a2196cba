"""Files of a data set of boxes: a folder is listed once, and pictures are found by their names."""

import os
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavolt.data.folder import Content, Identity, content, identity, joined
from octavolt.data.pictures import readable
from octavolt.data.splits import split_index
from octavolt.errors import OctavoltError

PICTURE_ENDINGS = frozenset(
    [
        *(b".jpg", b".jpeg", b".jpe", b".jfif", b".png", b".webp", b".bmp", b".gif", b".tif"),
        *(b".tiff", b".ppm", b".pgm", b".pbm", b".pnm", b".jp2", b".tga", b".avif"),
    ]
)
ANNOTATIONS = (b"annotations", b"annotation")
"""Folders of annotations, beside which the pictures lie."""
USUAL_FOLDERS = (*ANNOTATIONS, b"labels", b"label", b"images", b"imgs", b"jpegimages")
DEEPEST = 4
"""Folders inside one another that are looked into."""
MOST_TEXT_BYTES = 16 * 2**20
"""Of a file that annotates one picture, or names classes: a larger one is something else."""


class Files:
    """What the user named, with all around it: each folder is listed at most once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.path = Path(source).expanduser()
        self.is_folder = self.path.is_dir()
        self.root = self.path if self.is_folder else self.path.parent
        if not self.is_folder and os.fsencode(self.root.name).lower() in ANNOTATIONS:
            self.root = self.root.parent
        self._contents: dict[bytes, Content] = {}

    @property
    def named(self) -> bytes:
        """Return the file that the user named, relative to the root."""
        return os.fsencode(self.path.relative_to(self.root))

    def content(self, folder: bytes = b"") -> Content:
        """Return what a folder holds, relative to the root.

        Raises `OctavoltError` if it can't be listed.
        """
        if folder not in self._contents:
            try:
                self._contents[folder] = content(joined(os.fsencode(self.root), folder))
            except OSError as error:
                raise OctavoltError(
                    f"The folder '{readable(joined(os.fsencode(self.root), folder))}' can't be "
                    f"listed: {error.strerror}. Make it readable."
                ) from error
        return self._contents[folder]

    def below(self, folder: bytes = b"") -> Iterator[bytes]:
        """Yield the files below, sorted, folder by folder; none is entered twice, as links may."""
        seen: set[Identity] = set()
        waiting = [folder]
        while waiting:
            at = waiting.pop()
            here = identity(joined(os.fsencode(self.root), at))
            if here in seen:
                continue
            seen.add(here)
            inside = self.content(at)
            yield from (joined(at, name) for name in inside.files)
            waiting.extend(joined(at, name) for name in reversed(inside.folders))

    def full(self, name: bytes) -> Path:
        """Return where a file lies."""
        return self.root / os.fsdecode(name)

    def beginning(self, name: bytes, size_bytes: int) -> bytes:
        """Return the first bytes of a file; none if it can't be read."""
        try:
            with self.full(name).open("rb") as file:
                return file.read(size_bytes)
        except OSError:
            return b""

    def lines(self, name: bytes) -> list[str]:
        """Return the lines of a small file of text.

        Raises `OctavoltError` if it is no text in UTF-8, or too long.
        """
        return self.small(name).splitlines()

    def small(self, name: bytes) -> str:
        """Return the text of a small file, as `lines` does."""
        shown = readable(name)
        try:
            with self.full(name).open("rb") as file:
                held = file.read(MOST_TEXT_BYTES + 1)
        except OSError as error:
            raise OctavoltError(f"'{shown}' can't be read: {error.strerror}.") from error
        if len(held) > MOST_TEXT_BYTES:
            raise OctavoltError(
                f"'{shown}' has more than {MOST_TEXT_BYTES:,} bytes; no file of this kind does. "
                "Move it away if it is no part of the data set."
            )
        try:
            return held.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = held.count(b"\n", 0, error.start) + 1
            raise OctavoltError(
                f"'{shown}', line {line}: no UTF-8 text. Save it as UTF-8."
            ) from error


def printable(text: str) -> str:
    """Return a text that can be written as UTF-8, whatever was in it."""
    return text.encode("utf-8", "backslashreplace").decode()


def ending(name: bytes) -> bytes:
    """Return what follows the last dot, with it, in lower case; nothing if there is no dot."""
    last = name.rpartition(b"/")[2]
    return b"." + last.rpartition(b".")[2].lower() if b"." in last[1:] else b""


def is_picture(name: bytes) -> bool:
    """Tell whether a file is a picture by the end of its name."""
    return ending(name) in PICTURE_ENDINGS


def stem(name: bytes) -> bytes:
    """Return the last part of a path without the end that begins with a dot."""
    last = name.rpartition(b"/")[2]
    return last.rpartition(b".")[0] if ending(name) else last


def without_ending(name: bytes) -> bytes:
    """Return a path without the end that begins with a dot."""
    return name.rpartition(b".")[0] if ending(name) else name


def alike(name: bytes) -> str:
    """Return what is equal for names that differ only by case or by how accents are stored."""
    return unicodedata.normalize("NFC", readable(name)).casefold()


def split_named(name: bytes) -> int | None:
    """Return the split that a file names, as in 'instances_val2017.json'; else its folder does."""
    for word in re.split(r"[\W\d_]+", readable(stem(name))):
        if (split := split_index(word)) is not None:
            return split
    return split_folder(folder_of(name))


def split_folder(folder: bytes) -> int | None:
    """Return the split that a folder, or one around it, is called, as in 'train2017'."""
    for part in reversed(readable(folder).split("/")):
        word = re.fullmatch(r"(?:obj_)?([A-Za-z]+?)(?:_data)?[\d_]*", part)
        if word is not None and (split := split_index(word[1])) is not None:
            return split
    return None


def places(files: Files) -> list[bytes]:
    """Return the folders in which a data set's annotations may lie, without those of classes."""
    if not files.is_folder:
        return []
    found: list[bytes] = []
    waiting = [(b"", 0, True)]
    while waiting:
        at, depth, alone = waiting.pop(0)
        found.append(at)
        inside = files.content(at).folders if depth < DEEPEST else ()
        alone = alone and len(inside) == 1
        waiting += [
            (joined(at, name), depth + 1, alone)
            for name in inside
            if alone
            or name.lower() in USUAL_FOLDERS
            or name.lower().startswith(b"voc")
            or split_folder(name) is not None
        ]
    return found


def looked_at(files: Files, endings: Container[bytes]) -> Iterator[bytes]:
    """Yield the file that the user named, or those in `places`, that end so."""
    if not files.is_folder:
        yield from (one for one in [files.named] if ending(one) in endings)
    for folder in places(files):
        for name in files.content(folder).files:
            if ending(name) in endings:
                yield joined(folder, name)


@dataclass(frozen=True, kw_only=True)
class Match:
    """The picture that an annotation names."""

    name: bytes | None
    """Relative to the root; None if there is none."""
    problem: str = ""
    """What is wrong, where there is none or it is called otherwise."""


class Finder:
    """Finds pictures by the names that annotations give them, wherever they lie below the root."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self.by_name: dict[bytes, bytes | list[bytes]] = {}
        for name in names:
            kept(self.by_name, name.rpartition(b"/")[2], name)
        self.used: set[bytes] = set()
        """The pictures that an annotation names."""
        self._by_stem: dict[str, bytes | list[bytes]] | None = None

    def find(self, named: str, *, hints: Sequence[str] = ()) -> Match:
        """Return the picture of that name.

        Of several it is that in the folders which are named with it, else that in a folder called
        as one of the hints, the first of which counts most.
        """
        try:
            wanted = os.fsencode(named.replace("\\", "/"))
        except UnicodeEncodeError:
            return Match(name=None, problem=f"'{printable(named)}' is no name of a file")
        named = printable(named)
        parts = [part for part in wanted.split(b"/") if part not in {b"", b"."}]
        if not parts:
            return Match(name=None, problem="it names no picture")
        exact = chosen(entries(self.by_name, parts[-1]), parts, hints)
        if len(exact) == 1:
            return Match(name=exact[0])
        if exact:
            return Match(
                name=None,
                problem=(
                    f"'{named}' may be '{readable(exact[0])}' or '{readable(exact[1])}': name it "
                    "with its folder"
                ),
            )
        near = chosen(entries(self.by_stem(), alike(stem(parts[-1]))), parts, hints)
        if len(near) != 1:
            return Match(name=None, problem=f"there is no picture '{named}'")
        return Match(name=near[0], problem=f"'{named}' is '{readable(near[0])}' here")

    def find_stem(self, own: bytes, named: str, *, hints: Sequence[str] = ()) -> Match:
        """Return the picture called as a file of annotations, but for the ending; else as named."""
        near = entries(self.by_stem(), alike(own))
        exact = [one for one in near if stem(one) == own] or near
        own_names = chosen(exact, [own], hints)
        if not own_names:
            return self.find(named, hints=hints)
        last = named.replace("\\", "/").rpartition("/")[2]
        same = [one for one in own_names if readable(one).rpartition("/")[2] == last]
        if len(own_names) > 1 and len(same) != 1:
            shown = " or ".join(f"'{readable(one)}'" for one in own_names[:2])
            return Match(name=None, problem=f"the picture may be {shown}: rename one")
        name = (same or own_names)[0]
        other = not same and stem(os.fsencode(last)) == own and ending(os.fsencode(last))
        problem = f"'{last}' is '{readable(name)}' here" if other else ""
        return Match(name=name, problem=problem)

    def by_stem(self) -> dict[str, bytes | list[bytes]]:
        """Return the pictures by their names without ending and case: made when first wanted."""
        if self._by_stem is None:
            self._by_stem = {}
            for name in self.all():
                kept(self._by_stem, alike(stem(name)), name)
        return self._by_stem

    def stems(self, own: bytes) -> list[bytes]:
        """Return the pictures of exactly that name, but for the ending."""
        return [one for one in entries(self.by_stem(), alike(own)) if stem(one) == own]

    def all(self) -> Iterator[bytes]:
        """Yield all pictures."""
        for held in self.by_name.values():
            yield from held if isinstance(held, list) else [held]


def kept(table: dict[Any, bytes | list[bytes]], key: Any, name: bytes) -> None:
    """Add a name under a key; a list is made only where there are several."""
    held = table.setdefault(key, name)
    if held is not name:
        table[key] = [*(held if isinstance(held, list) else [held]), name]


def entries(table: Mapping[Any, bytes | list[bytes]], key: Any) -> list[bytes]:
    """Return all names under a key."""
    held = table.get(key, [])
    return held if isinstance(held, list) else [held]


def chosen(names: list[bytes], parts: list[bytes], hints: Sequence[str]) -> list[bytes]:
    """Return those that lie in the folders of the path, and in folders called as a hint."""
    if len(names) < 2:
        return names
    if b"/".join(parts) in names:
        return [b"/".join(parts)]
    folders = b"/".join([b"", *parts[:-1]])
    names = [one for one in names if folder_of(b"/" + one).endswith(folders)] or names
    for hint in hints:
        near = [one for one in names if hint in readable(one).split("/")[:-1]]
        if len(names) > 1 and near:
            return near
    return names


def folder_of(name: bytes) -> bytes:
    """Return the folder of a file."""
    return name.rpartition(b"/")[0]
