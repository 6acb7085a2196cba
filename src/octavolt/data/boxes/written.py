"""Writes pictures and boxes in each of the formats, so that all others can read them, octavolt too.

Corners keep a millionth of a pixel, those of YOLO a hundred millionth of the picture's side.
"""

import csv
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.sax.saxutils import escape

import cv2
import numpy as np
from numpy.typing import NDArray

from octavolt.contract import DataSet
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.examine import Progress, silent
from octavolt.data.pictures import FilePictures
from octavolt.errors import OctavoltError, UnknownNameError

DECIMALS = 6
SHARE_DECIMALS = 8
CORNERS = ("xmin", "ymin", "xmax", "ymax")
ENDINGS = {b"\xff\xd8": ".jpg", b"\x89P": ".png", b"GI": ".gif", b"BM": ".bmp", b"RI": ".webp"}
"""Of pictures that are no files, by how they begin."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was written."""

    pictures: int
    boxes: int
    crowds_left_out: int
    """Boxes around a crowd, where the format has no way to say so."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One box as it is written."""

    corners: tuple[float, float, float, float]
    label: int
    crowd: bool
    difficult: bool
    area: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture as it is written."""

    file: str
    """Below the folder of the pictures."""
    split: str
    height: int
    width: int
    boxes: tuple[Box, ...]


def write_boxes(data: DataSet, folder: Path, form: str, *, progress: Progress = silent) -> Written:
    """Write pictures and boxes into a new folder, and return how many.

    Pictures are linked where the file system can, else copied. Splits and the order of the classes
    are kept. Raises `OctavoltError` if the folder holds anything, or can't be written.
    """
    check_target(folder, form)
    if not all(isinstance(one, BoxedPictures) for one in data.splits.values()):
        raise OctavoltError(f"'{data.source}' has no boxes to write, as only object detection has.")
    aside = folder.with_name(f"{folder.name}.partial")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        pictures = list(placed(data, aside, WRITERS[form].pictures, progress))
        WRITERS[form].write(aside, pictures, data.classes)
        if folder.exists():
            folder.rmdir()
        aside.replace(folder)
    except OSError as error:
        raise OctavoltError(
            f"'{folder}' can't be written: {error.strerror or error}. What there is of it lies in "
            f"'{aside}'."
        ) from error
    boxes = [box for one in pictures for box in one.boxes]
    left_out = 0 if WRITERS[form].has_crowds else sum(box.crowd for box in boxes)
    return Written(pictures=len(pictures), boxes=len(boxes) - left_out, crowds_left_out=left_out)


def check_target(folder: Path, form: str) -> None:
    """Raise unless there is such a format, and nothing where it shall be written."""
    if form not in WRITERS:
        raise UnknownNameError("format of boxes to write", form, WRITERS)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OctavoltError(f"'{folder}' is there already. Name a folder that is new or empty.")


def placed(
    data: DataSet, folder: Path, where: Callable[[str], str], progress: Progress
) -> Iterator[Picture]:
    """Yield the pictures, each once its file is in place; no two have the same name."""
    total, done = sum(map(len, data.splits.values())), 0
    taken: set[str] = set()
    for split, pictures in data.splits.items():
        target = folder / where(split)
        target.mkdir(parents=True, exist_ok=True)
        for row in range(len(pictures)):
            file = place(pictures, row, target, taken)
            height, width = pictures.sizes[row].tolist()
            yield Picture(
                file=file, split=split, height=height, width=width, boxes=boxes_of(pictures, row)
            )
            done += 1
            progress(done, total)


def boxes_of(pictures: BoxedPictures, row: int) -> tuple[Box, ...]:
    """Return the boxes of a picture."""
    boxes, own = pictures.boxes, pictures.boxes.rows(row)
    rows = zip(
        boxes.corners[own].tolist(),
        boxes.labels[own].tolist(),
        boxes.crowd[own].tolist(),
        boxes.difficult[own].tolist(),
        boxes.areas[own].tolist(),
        strict=True,
    )
    return tuple(
        Box(corners=tuple(corners), label=label, crowd=crowd, difficult=difficult, area=area)
        for corners, label, crowd, difficult, area in rows
    )


def place(pictures: BoxedPictures, row: int, target: Path, taken: set[str]) -> str:
    """Put a picture into a folder and return its name there."""
    inner = pictures.pictures
    if isinstance(inner, FilePictures):
        source = inner.path(row).resolve()
        file = unused(PurePosixPath(pictures.name(row)), source.suffix, taken)
        try:
            (target / file).hardlink_to(source)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, target / file)
        return file
    content = encoded(pictures.read(row))
    ending = ENDINGS.get(content[:2], ".jpg")
    file = unused(PurePosixPath(pictures.name(row).replace(":", "-") + ending), ending, taken)
    (target / file).write_bytes(content)
    return file


def encoded(content: Any) -> bytes:
    """Return the bytes of a picture; pixels become a PNG, which loses nothing."""
    if not isinstance(content, np.ndarray):
        return bytes(content)
    pixels: NDArray[Any] = content
    if pixels.ndim == 3 and pixels.shape[2] in {3, 4}:
        pixels = cv2.cvtColor(
            pixels, cv2.COLOR_RGB2BGR if pixels.shape[2] == 3 else cv2.COLOR_RGBA2BGRA
        )
    return bytes(cv2.imencode(".png", pixels)[1])


def unused(name: PurePosixPath, ending: str, taken: set[str]) -> str:
    """Return a name that no picture has but for its ending, with its folders only if needed."""
    parts = [part for part in (*name.parent.parts, name.stem) if part not in {"/", ".", ".."}]
    tries = ["_".join(parts[-count:]) for count in range(1, len(parts) + 1)]
    number = 1
    while tries[0].casefold() in taken:
        number += 1
        tries = tries[1:] or [f"{'_'.join(parts)}_{number}"]
    taken.add(tries[0].casefold())
    return tries[0] + ending


def write_coco(folder: Path, pictures: list[Picture], classes: tuple[str, ...]) -> None:
    """Write a JSON file a split; ids count from 1, and each record has a line."""
    (folder / "annotations").mkdir()
    categories = [{"id": label + 1, "name": name} for label, name in enumerate(classes)]
    for split, own in by_split(pictures).items():
        images = [
            {"id": key, "file_name": one.file, "height": one.height, "width": one.width}
            for key, one in enumerate(own, start=1)
        ]
        boxes = [(key, box) for key, one in enumerate(own, start=1) for box in one.boxes]
        annotations = [
            {
                "id": number,
                "image_id": key,
                "category_id": box.label + 1,
                "bbox": [*map(rounded, sides(box))],
                "area": rounded(box.area),
                "iscrowd": int(box.crowd),
                **({"difficult": 1} if box.difficult else {}),
            }
            for number, (key, box) in enumerate(boxes, start=1)
        ]
        lists: dict[str, list[dict[str, Any]]] = {
            "images": images,
            "annotations": annotations,
            "categories": categories,
        }
        text = ",\n".join(f'"{name}": [\n{records(rows)}\n]' for name, rows in lists.items())
        file = folder / "annotations" / f"instances_{split}.json"
        file.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def records(rows: list[dict[str, Any]]) -> str:
    """Return JSON objects, each on a line of its own."""
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def sides(box: Box) -> tuple[float, float, float, float]:
    """Return a box as x, y, width and height."""
    x1, y1, x2, y2 = box.corners
    return x1, y1, x2 - x1, y2 - y1


def rounded(value: float) -> float | int:
    """Return a number as it is written: whole ones without a point."""
    short = round(value, DECIMALS)
    return int(short) if short.is_integer() else short


def write_voc(folder: Path, pictures: list[Picture], classes: tuple[str, ...]) -> None:
    """Write an XML file a picture, a list a split, and the classes in their order."""
    lists = folder / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    (folder / "Annotations").mkdir()
    for split, own in by_split(pictures).items():
        stems = [PurePosixPath(one.file).stem for one in own]
        (lists / f"{split}.txt").write_text("\n".join([*stems, ""]), encoding="utf-8")
        for stem, one in zip(stems, own, strict=True):
            file = folder / "Annotations" / f"{stem}.xml"
            file.write_text(xml_of(one, classes), encoding="utf-8")
    write_classes(folder, classes)


def xml_of(picture: Picture, classes: tuple[str, ...]) -> str:
    """Return the annotation of a picture."""
    size = {"width": picture.width, "height": picture.height, "depth": 3}
    things = [
        "<object>"
        f"<name>{escape(classes[box.label])}</name>"
        f"<difficult>{int(box.difficult)}</difficult>"
        + tagged("bndbox", dict(zip(CORNERS, map(rounded, box.corners), strict=True)))
        + "</object>"
        for box in picture.boxes
        if not box.crowd
    ]
    lines = [f"<filename>{escape(picture.file)}</filename>", tagged("size", size), *things]
    return "\n".join(["<annotation>", *lines, "</annotation>", ""])


def tagged(name: str, values: Mapping[str, float]) -> str:
    """Return an element that holds one element a value."""
    return f"<{name}>{''.join(f'<{key}>{one}</{key}>' for key, one in values.items())}</{name}>"


def write_yolo(folder: Path, pictures: list[Picture], classes: tuple[str, ...]) -> None:
    """Write a text a picture, and a data.yaml."""
    splits = by_split(pictures)
    for split, own in splits.items():
        labels = folder / "labels" / split
        labels.mkdir(parents=True)
        for one in own:
            text = "".join(line_of(box, one) for box in one.boxes if not box.crowd)
            file = labels / f"{PurePosixPath(one.file).stem}.txt"
            file.write_text(text, encoding="utf-8")
    paths = [f"{split}: images/{split}" for split in splits]
    names = [f"  - {json.dumps(name, ensure_ascii=False)}" for name in classes]
    settings = "\n".join([*paths, f"nc: {len(classes)}", "names:", *names, ""])
    (folder / "data.yaml").write_text(settings, encoding="utf-8")


def line_of(box: Box, picture: Picture) -> str:
    """Return a box as class, center and sides in shares of the picture."""
    x, y, width, height = sides(box)
    shares = (
        (x + width / 2) / picture.width,
        (y + height / 2) / picture.height,
        width / picture.width,
        height / picture.height,
    )
    return f"{box.label} {' '.join(f'{share:.{SHARE_DECIMALS}f}' for share in shares)}\n"


def write_csv(folder: Path, pictures: list[Picture], classes: tuple[str, ...]) -> None:
    """Write a table with a row a box, or one without for a picture that has none."""
    with (folder / "boxes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(
            ["path", "split", "width", "height", "class", *CORNERS, "crowd", "difficult", "area"]
        )
        for one in pictures:
            start = [f"images/{one.split}/{one.file}", one.split, one.width, one.height]
            for box in one.boxes:
                corners = map(rounded, box.corners)
                marks = [int(box.crowd), int(box.difficult), rounded(box.area)]
                table.writerow([*start, classes[box.label], *corners, *marks])
            if not one.boxes:
                table.writerow([*start, *[""] * 8])
    write_classes(folder, classes)


def write_classes(folder: Path, classes: tuple[str, ...]) -> None:
    """Write the classes in their order, a name a line."""
    (folder / "classes.txt").write_text("\n".join([*classes, ""]), encoding="utf-8")


def by_split(pictures: list[Picture]) -> dict[str, list[Picture]]:
    """Return the pictures of each split."""
    found: dict[str, list[Picture]] = {}
    for one in pictures:
        found.setdefault(one.split, []).append(one)
    return found


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One format that is written."""

    pictures: Callable[[str], str]
    """The folder of the pictures of a split."""
    write: Callable[[Path, list[Picture], tuple[str, ...]], None]
    has_crowds: bool


WRITERS: dict[str, Writer] = {
    "coco": Writer(pictures=lambda split: f"images/{split}", write=write_coco, has_crowds=True),
    "voc": Writer(pictures=lambda _split: "JPEGImages", write=write_voc, has_crowds=False),
    "yolo": Writer(pictures=lambda split: f"images/{split}", write=write_yolo, has_crowds=False),
    "csv": Writer(pictures=lambda split: f"images/{split}", write=write_csv, has_crowds=True),
}
