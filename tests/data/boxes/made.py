"""Small data sets of boxes, written for tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from octavolt.contract import DataSet, Fault
from tests.data.conftest import jpeg

HEIGHT, WIDTH = 40, 60


def picture(path: Path, seed: int = 0, *, height: int = HEIGHT, width: int = WIDTH) -> Path:
    """Write a picture of noise, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jpeg(seed, height, width))
    return path


def image(key: int, file: str, *, height: int = HEIGHT, width: int = WIDTH) -> dict[str, Any]:
    """Return a record of COCO."""
    return {"id": key, "file_name": file, "height": height, "width": width}


def annotation(key: int, of: int, category: int, *box: float, **more: Any) -> dict[str, Any]:
    """Return a record of COCO."""
    return {"id": key, "image_id": of, "category_id": category, "bbox": list(box), **more}


CATEGORIES = ({"id": 3, "name": "cat"}, {"id": 7, "name": "dog"})


def coco(
    file: Path,
    images: Sequence[Mapping[str, Any]],
    annotations: Sequence[Mapping[str, Any]],
    *,
    categories: Sequence[Mapping[str, Any]] = CATEGORIES,
    indent: int | None = None,
) -> Path:
    """Write a file of COCO."""
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {"images": images, "annotations": annotations, "categories": categories}
    file.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    return file


def voc(file: Path, *objects: str, size: str = f"{WIDTH}x{HEIGHT}", filename: str = "") -> Path:
    """Write an annotation whose objects are given as 'name xmin ymin xmax ymax'."""
    width, _, height = size.partition("x")
    things = "".join(thing(*one.split()) for one in objects)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"<annotation>\n<filename>{filename or file.stem + '.jpg'}</filename>\n<size><width>{width}"
        f"</width><height>{height}</height></size>\n{things}</annotation>\n",
        encoding="utf-8",
    )
    return file


def thing(name: str, xmin: str, ymin: str, xmax: str, ymax: str) -> str:
    """Return an object in five lines, whose corners stand on the third."""
    return (
        f"<object>\n<name>{name}</name><difficult>0</difficult>\n<bndbox><xmin>{xmin}</xmin>"
        f"<ymin>{ymin}</ymin><xmax>{xmax}</xmax><ymax>{ymax}</ymax></bndbox>\n\n</object>\n"
    )


def kinds(data: DataSet) -> list[tuple[str, str, int | None]]:
    """Return kind, file and line of each fault."""
    return [(one.kind, one.file, one.line) for one in data.faults]


def the_fault(data: DataSet, kind: str) -> Fault:
    """Return the one fault of a kind; raises if there are more or none."""
    (found,) = (one for one in data.faults if one.kind == kind)
    return found


def boxes(data: DataSet) -> dict[str, list[tuple[str, list[float]]]]:
    """Return the class and the corners of each box, by split and picture."""
    return {
        f"{split}/{Path(pictures.name(row)).name}": [
            (data.classes[label], corners)
            for label, corners in zip(
                pictures.boxes.labels[pictures.boxes.rows(row)].tolist(),
                pictures.boxes.corners[pictures.boxes.rows(row)].tolist(),
                strict=True,
            )
        ]
        for split, pictures in data.splits.items()
        for row in range(len(pictures))
    }
