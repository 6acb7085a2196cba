from pathlib import Path
from typing import Any

import datasets
import pytest

from octavolt.data.boxes.opened import open_boxes
from octavolt.errors import OctavoltError
from tests.data.conftest import jpeg

from .made import boxes, kinds


def parquet(
    folder: Path, split: str, objects: list[dict[str, list[Any]]], *, named: bool = True
) -> None:
    category = datasets.ClassLabel(names=["cat", "dog"]) if named else datasets.Value("string")
    inner: dict[str, Any] = {
        "bbox": datasets.List(datasets.List(datasets.Value("float32"))),
        "category": datasets.List(category),
    }
    if "area" in objects[0]:
        inner["area"] = datasets.List(datasets.Value("int64"))
    features = datasets.Features({"image": datasets.Image(), "objects": inner})
    images = [{"bytes": jpeg(row, 40, 60), "path": None} for row in range(len(objects))]
    rows = datasets.Dataset.from_dict({"image": images, "objects": objects}, features=features)
    folder.mkdir(exist_ok=True)
    rows.to_parquet(folder / f"{split}.parquet")


def objects(
    *boxes_: list[float], category: int | str = 1, area: int | None = None
) -> dict[str, list[Any]]:
    areas = {} if area is None else {"area": [area] * len(boxes_)}
    return {"bbox": [*boxes_], "category": [category] * len(boxes_), **areas}


def test_boxes_of_corner_and_sides_are_read(tmp_path: Path) -> None:
    parquet(tmp_path / "a", "train", [objects([10, 20, 50, 20]), objects()])
    parquet(tmp_path / "a", "validation", [objects([1, 2, 3, 4], [5, 6, 7, 8], category=0)])
    data = open_boxes(f"hub:{tmp_path}/a")
    assert (data.format, data.classes, data.faults) == ("hub", ("cat", "dog"), ())
    assert boxes(data) == {
        "train/train:0": [("dog", [10, 20, 60, 40])],
        "train/train:1": [],
        "val/validation:0": [("cat", [1, 2, 4, 6]), ("cat", [5, 6, 12, 14])],
    }
    assert data.splits["train"].read(1) == jpeg(1, 40, 60)
    assert data.splits["train"].sizes.tolist() == [[40, 60]] * 2


def test_corners_are_told_by_what_would_reach_out(tmp_path: Path) -> None:
    rows = [objects([10, 20, 60, 40]), objects([30, 5, 50, 20]), objects([1, 2, 3, 4])]
    parquet(tmp_path / "b", "train", rows)
    data = open_boxes(f"hub:{tmp_path}/b")
    assert "The boxes of 'objects' are read as xmin, ymin, xmax, ymax." in data.notes
    assert [10, 20, 60, 40] in [corners for held in boxes(data).values() for _, corners in held]


@pytest.mark.parametrize(("area", "corners"), [(8, [1, 2, 3, 6]), (18, [1, 2, 4, 8])])
def test_areas_tell_how_boxes_are_given(tmp_path: Path, area: int, corners: list[float]) -> None:
    rows = [objects([1, 2, 3, 6], area=area)] * 3
    parquet(tmp_path / "c", "train", rows)
    assert next(iter(boxes(open_boxes(f"hub:{tmp_path}/c")).values())) == [("dog", corners)]


def test_categories_of_text_are_classes(tmp_path: Path) -> None:
    rows = [objects([1, 2, 3, 4], category=name) for name in ("x10", "x9", "x10", "x9")]
    parquet(tmp_path / "d", "train", rows, named=False)
    parquet(tmp_path / "d", "test", rows[:1], named=False)
    parquet(tmp_path / "d", "validation", rows[:1], named=False)
    data = open_boxes(f"hub:{tmp_path}/d")
    assert data.classes == ("x9", "x10")
    assert boxes(data)["train/train:1"] == [("x9", [1, 2, 4, 6])]


def test_more_boxes_than_categories_are_a_fault(tmp_path: Path) -> None:
    bad = objects([1, 2, 3, 4], [2, 2, 3, 4])
    bad["category"].pop()
    parquet(tmp_path / "e", "train", [*[objects([1, 2, 3, 4])] * 4, bad])
    data = open_boxes(f"hub:{tmp_path}/e")
    assert kinds(data) == [("wrong-annotation", "train:4", None)]


def test_a_set_without_boxes_is_an_error(tmp_path: Path) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("string")})
    rows = {"image": [{"bytes": jpeg(0), "path": None}], "label": ["a"]}
    (tmp_path / "f").mkdir()
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "f/train.parquet")
    with pytest.raises(OctavoltError, match="has no column of objects with a box"):
        open_boxes(f"hub:{tmp_path}/f")
