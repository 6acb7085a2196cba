"""Data sets with boxes in other formats: `octavolt check DATA --write FORMAT`."""

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import cv2
import numpy as np
from jaxtyping import UInt8

from octavolt.contract import DataSet
from octavolt.data.boxes.samples import BoxedPictures
from octavolt.data.decode import decode
from octavolt.data.pictures import FilePictures
from octavolt.errors import OctavoltError, UnknownNameError

PLACES = 4
"""Decimals of a pixel that are written; YOLO's shares have eight."""


def write_boxes(data: DataSet, folder: Path, form: str) -> tuple[int, int]:
    """Write a data set in another format into a new folder; return counts of pictures and boxes.

    Pictures are copied; those that lie in memory are written as PNG. Splits and the order of the
    classes stay. Crowd boxes are kept by COCO alone.
    """
    if form not in WRITERS:
        raise UnknownNameError("format to write", form, WRITERS)
    if folder.exists() and any(folder.iterdir()):
        raise OctavoltError(f"{folder} is not empty. Give another --output.")
    folder.mkdir(parents=True, exist_ok=True)
    return WRITERS[form](data, folder)


def copied(
    data: DataSet, folder: Path, below: Callable[[str], str]
) -> Iterator[tuple[str, int, str, BoxedPictures]]:
    """Copy the pictures; yield split, number, file below its folder, and the split's pictures."""
    taken: set[str] = set()
    for split, pictures in data.splits.items():
        target = folder / below(split)
        target.mkdir(parents=True, exist_ok=True)
        for index in range(len(pictures)):
            name = free_name(pictures, index, taken)
            if isinstance(pictures.pictures, FilePictures):
                shutil.copyfile(pictures.pictures.path(index), target / name)
            else:
                pixels = decode(pictures.read(index))
                (target / name).write_bytes(png(pixels))
            yield split, index, name, pictures


def free_name(pictures: BoxedPictures, index: int, taken: set[str]) -> str:
    """Return a file name that no other picture has, whatever the ending."""
    if isinstance(pictures.pictures, FilePictures):
        own = pictures.pictures.path(index)
        stem, ending = own.stem, own.suffix
    else:
        stem, ending = pictures.name(index).replace(":", "-"), ".png"
    name, turn = stem, 1
    while name.lower() in taken:
        turn += 1
        name = f"{stem}-{turn}"
    taken.add(name.lower())
    return name + ending


def png(pixels: UInt8[np.ndarray, "height width 3"]) -> bytes:
    """Return pixels as PNG."""
    _, encoded = cv2.imencode(".png", np.ascontiguousarray(pixels[:, :, ::-1]))
    return encoded.tobytes()


def write_coco(data: DataSet, folder: Path) -> tuple[int, int]:
    """Write annotations/instances_SPLIT.json and images/SPLIT."""
    images: dict[str, list[object]] = {name: [] for name in data.splits}
    annotations: dict[str, list[object]] = {name: [] for name in data.splits}
    count = boxes = 0
    for split, index, name, pictures in copied(data, folder, lambda split: f"images/{split}"):
        count += 1
        height, width = pictures.sizes[index].tolist()
        images[split].append({"id": count, "file_name": name, "height": height, "width": width})
        truth = pictures.truth(index)
        for box, label, crowd, area in zip(
            truth.boxes.tolist(),
            truth.labels.tolist(),
            truth.crowd.tolist(),
            truth.areas.tolist(),
            strict=True,
        ):
            boxes += 1
            sides = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
            annotations[split].append(
                {
                    "id": boxes,
                    "image_id": count,
                    "category_id": label + 1,
                    "bbox": [round(side, PLACES) for side in sides],
                    "area": round(area, PLACES),
                    "iscrowd": int(crowd),
                }
            )
    (folder / "annotations").mkdir(exist_ok=True)
    categories = [{"id": place, "name": name} for place, name in enumerate(data.classes, 1)]
    for split in data.splits:
        content = {
            "images": images[split],
            "annotations": annotations[split],
            "categories": categories,
        }
        file = folder / "annotations" / f"instances_{split}.json"
        file.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return count, boxes


def write_voc(data: DataSet, folder: Path) -> tuple[int, int]:
    """Write Annotations, JPEGImages and ImageSets/Main."""
    (folder / "Annotations").mkdir(parents=True, exist_ok=True)
    lists: dict[str, list[str]] = {name: [] for name in data.splits}
    count = boxes = 0
    for split, index, name, pictures in copied(data, folder, lambda _: "JPEGImages"):
        count += 1
        stem = Path(name).stem
        lists[split].append(stem)
        text, own = voc_xml(data, pictures, index, name)
        boxes += own
        (folder / "Annotations" / f"{stem}.xml").write_text(text, "utf-8")
    (folder / "ImageSets" / "Main").mkdir(parents=True, exist_ok=True)
    for split, stems in lists.items():
        file = folder / "ImageSets" / "Main" / f"{split}.txt"
        file.write_text("".join(f"{stem}\n" for stem in stems), "utf-8")
    return count, boxes


def voc_xml(data: DataSet, pictures: BoxedPictures, index: int, name: str) -> tuple[str, int]:
    """Return a picture's annotation, and how many boxes it has."""
    height, width = pictures.sizes[index].tolist()
    truth = pictures.truth(index)
    lines = [
        "<annotation>",
        f"  <filename>{escape(name)}</filename>",
        f"  <size><width>{width}</width><height>{height}</height><depth>3</depth></size>",
    ]
    rows = [
        (box, label, difficult)
        for box, label, difficult, crowd in zip(
            truth.boxes.tolist(),
            truth.labels.tolist(),
            truth.difficult.tolist(),
            truth.crowd.tolist(),
            strict=True,
        )
        if not crowd
    ]
    for box, label, difficult in rows:
        sides = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
        corners = "".join(f"<{side}>{round(value, PLACES):g}</{side}>" for side, value in sides)
        lines += [
            "  <object>",
            f"    <name>{escape(data.classes[label])}</name>",
            f"    <difficult>{int(difficult)}</difficult>",
            f"    <bndbox>{corners}</bndbox>",
            "  </object>",
        ]
    return "\n".join([*lines, "</annotation>", ""]), len(rows)


def write_yolo(data: DataSet, folder: Path) -> tuple[int, int]:
    """Write images/SPLIT, labels/SPLIT and data.yaml."""
    count = boxes = 0
    for split in data.splits:
        (folder / "labels" / split).mkdir(parents=True, exist_ok=True)
    for split, index, name, pictures in copied(data, folder, lambda split: f"images/{split}"):
        count += 1
        height, width = pictures.sizes[index].tolist()
        truth = pictures.truth(index)
        lines = []
        for box, label, crowd in zip(
            truth.boxes.tolist(), truth.labels.tolist(), truth.crowd.tolist(), strict=True
        ):
            if crowd:
                continue
            shares = (
                (box[0] + box[2]) / 2 / width,
                (box[1] + box[3]) / 2 / height,
                (box[2] - box[0]) / width,
                (box[3] - box[1]) / height,
            )
            lines.append(f"{label} {' '.join(f'{one:.8f}' for one in shares)}\n")
        boxes += len(lines)
        file = folder / "labels" / split / f"{Path(name).stem}.txt"
        file.write_text("".join(lines), "utf-8")
    names = "".join(
        f"  {place}: {json.dumps(name, ensure_ascii=False)}\n"
        for place, name in enumerate(data.classes)
    )
    splits = "".join(f"{split}: images/{split}\n" for split in data.splits)
    (folder / "data.yaml").write_text(f"{splits}names:\n{names}", "utf-8")
    return count, boxes


def write_csv(data: DataSet, folder: Path) -> tuple[int, int]:
    """Write boxes.csv and images."""
    count = boxes = 0
    with (folder / "boxes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "label", "xmin", "ymin", "xmax", "ymax", "split"])
        for split, index, name, pictures in copied(data, folder, lambda _: "images"):
            count += 1
            truth = pictures.truth(index)
            rows = [
                [data.classes[label], *(round(side, PLACES) for side in box)]
                for box, label, crowd in zip(
                    truth.boxes.tolist(), truth.labels.tolist(), truth.crowd.tolist(), strict=True
                )
                if not crowd
            ]
            boxes += len(rows)
            for row in rows or [[""] * 5]:
                writer.writerow([os.path.join("images", name), *row, split])  # noqa: PTH118
    return count, boxes


WRITERS: dict[str, Callable[[DataSet, Path], tuple[int, int]]] = {
    "coco": write_coco,
    "voc": write_voc,
    "yolo": write_yolo,
    "csv": write_csv,
}
