"""YOLO: a text file a picture, a line a box: class, center and size as shares of the picture."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.raw import Raw, RawBox, RawPicture, assembled, size_on_disk, wrong_row
from octavolt.data.picture_modality import PICTURE_ENDINGS
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError

NAME_FILES = ("data.yaml", "data.yml", "dataset.yaml", "classes.txt", "obj.names", "labels.txt")
LINE = re.compile(rb"\s*\d+(\.0*)?(\s+[-+.,\deE]+){4,}\s*")
LOOKED_AT = 20


def root_of(source: str) -> Path | None:
    """Return the folder that holds 'images' and 'labels', or pictures with texts beside them."""
    path = Path(source).expanduser()
    if path.is_file() and path.suffix.lower() in {".yaml", ".yml"}:
        path = path.parent
    if not path.is_dir():
        return None
    if (path / "images").is_dir() and (path / "labels").is_dir():
        return path
    for folder in (path, *sorted(one for one in path.iterdir() if one.is_dir())):
        if (folder / "images").is_dir() and (folder / "labels").is_dir():
            return path
        some = [
            one
            for _, one in zip(range(LOOKED_AT), folder.glob("*.txt"), strict=False)
            if one.name not in NAME_FILES
        ]
        beside = [one for one in some if picture_beside(one) is not None]
        if beside and all(is_labels(one) for one in beside):
            return path
    return None


def picture_beside(file: Path) -> Path | None:
    """Return the picture of a text file in the same folder."""
    for ending in PICTURE_ENDINGS:
        for one in (file.with_suffix(ending), file.with_suffix(ending.upper())):
            if one.is_file():
                return one
    return None


def is_labels(file: Path) -> bool:
    """Tell whether a text file holds boxes, or nothing."""
    lines = [line for line in file.read_bytes()[:4096].splitlines() if line.strip()][:LOOKED_AT]
    return all(LINE.fullmatch(line) for line in lines[:-1] or lines)


def recognises(source: str) -> bool:
    """Tell whether the source looks like YOLO."""
    try:
        return root_of(source) is not None
    except OSError:
        return False


def open_yolo(source: str, seed: int) -> DataSet:
    """Return the pictures with the boxes of the text file of the same name."""
    root = root_of(source)
    assert root is not None
    names, names_file = class_names(root)
    faults: list[Fault] = []
    pictures = []
    highest = -1
    for picture in pictures_below(root):
        label_file = labels_of(picture)
        one = RawPicture(file=str(picture.relative_to(root)), split=split_of(picture, root))
        if label_file is not None:
            here = str(label_file.relative_to(root))
            found, more = read_labels(label_file, here, picture)
            highest = max([highest, *(int(box.label) for box in found)])
            one.boxes = found
            faults += more
        pictures.append(one)
    faults += lonely_labels(root, {Path(one.file).stem for one in pictures})
    if names and highest >= len(names):
        raise OctavoltError(
            f"{names_file} names {len(names)} classes, 0 to {len(names) - 1}, but a box is of "
            f"class {highest}. Add the missing names, or mend the boxes."
        )
    classes = names or [str(number) for number in range(highest + 1)]
    for one in pictures:
        one.boxes = [renamed(box, classes) for box in one.boxes]
    notes = [] if names else ["No data.yaml or classes.txt: the classes are called by number."]
    raw = Raw(root=root, pictures=pictures, classes=classes, faults=faults, notes=notes)
    return assembled(source, "yolo", raw, seed=seed)


def renamed(box: RawBox, classes: list[str]) -> RawBox:
    """Return a box with its class's name in place of its number."""
    return RawBox(
        corners=box.corners,
        label=classes[int(box.label)],
        file=box.file,
        line=box.line,
        what=box.what,
    )


def pictures_below(root: Path) -> list[Path]:
    """Return all pictures, sorted."""
    return [
        one
        for one in sorted(root.rglob("*"))
        if one.suffix.lower() in PICTURE_ENDINGS and one.is_file()
    ]


def labels_of(picture: Path) -> Path | None:
    """Return a picture's text file: in 'labels' in place of the last 'images', or beside it."""
    parts = [*picture.parts]
    if "images" in parts:
        place = len(parts) - 1 - parts[::-1].index("images")
        parts[place] = "labels"
    for one in (Path(*parts).with_suffix(".txt"), picture.with_suffix(".txt")):
        if one.is_file():
            return one
    return None


def split_of(picture: Path, root: Path) -> int:
    """Return the split that a folder on the way to a picture is named for."""
    for part in picture.relative_to(root).parts[:-1]:
        split = split_index(re.sub(r"\d+$", "", part))
        if split is not None:
            return split
    return TRAIN


def lonely_labels(root: Path, stems: set[str]) -> Iterator[Fault]:
    """Yield a fault for each text file whose picture is missing."""
    for file in sorted(root.rglob("*.txt")):
        inside = "labels" in file.relative_to(root).parts
        if inside and file.name not in NAME_FILES and file.stem not in stems:
            yield Fault(
                kind="missing-file",
                file=str(file.relative_to(root)),
                problem="has boxes of a picture that isn't there",
                stops=False,
            )


def read_labels(file: Path, here: str, picture: Path) -> tuple[list[RawBox], list[Fault]]:
    """Return the boxes of a text file in pixels, and the lines that can't be used."""
    height, width, problem = size_on_disk(picture)
    boxes, faults = [], []
    for line, text in enumerate(file.read_text("utf-8-sig", "replace").splitlines(), 1):
        values = text.split()
        if not values or problem is not None:
            continue
        try:
            label = int(float(values[0]))
            x, y, wide, high = (float(one) for one in values[1:5])
        except ValueError:
            hint = ", numbers with a point" if "," in text else ""
            faults.append(
                wrong_row(here, line, f"'{text[:60]}' is not class, x, y, width, height{hint}")
            )
            continue
        if label < 0 or max(x, y, wide, high) > SHARES_AT_MOST:
            faults.append(
                wrong_row(here, line, f"'{text[:60]}': places are shares of the picture, 0 to 1")
            )
            continue
        boxes.append(
            RawBox(
                corners=(
                    (x - wide / 2) * width,
                    (y - high / 2) * height,
                    (x + wide / 2) * width,
                    (y + high / 2) * height,
                ),
                label=str(label),
                file=here,
                line=line,
                what=f"the box of line {line}",
            )
        )
    return boxes, faults


SHARES_AT_MOST = 4.0
"""A larger number is a place in pixels."""


def class_names(root: Path) -> tuple[list[str], str]:
    """Return the names of the classes, and the file that they stand in; none if there is none."""
    for name in NAME_FILES:
        file = root / name
        if not file.is_file():
            continue
        text = file.read_text("utf-8-sig")
        if file.suffix in {".yaml", ".yml"}:
            names = yaml_names(text)
        else:
            names = [line.strip() for line in text.splitlines() if line.strip()]
        if names:
            return names, name
    return [], ""


def yaml_names(text: str) -> list[str]:
    """Return 'names' of a data.yaml: a list in brackets, a list of lines, or numbers with names."""
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if not re.match(r"names\s*:", line):
            continue
        rest = line.partition(":")[2].partition("#")[0].strip()
        if rest.startswith("["):
            joined = rest + "".join(lines[place + 1 :]) if "]" not in rest else rest
            inside = joined[1 : joined.index("]")] if "]" in joined else joined[1:]
            return [unquoted(one) for one in inside.split(",") if one.strip()]
        return [*block(lines[place + 1 :])]
    return []


def block(lines: list[str]) -> Iterator[str]:
    """Yield the names of an indented block."""
    for line in lines:
        match = re.match(r"\s*(?:-\s+|\d+\s*:\s*)(.+)", line)
        if match:
            yield unquoted(match.group(1).partition(" #")[0])
        elif line.strip():
            return


def unquoted(text: str) -> str:
    """Return a name without its quotes."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return str(json.loads(text))
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
