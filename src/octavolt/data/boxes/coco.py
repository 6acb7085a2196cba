"""COCO: one JSON file a split, with pictures, categories and annotations."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.raw import Raw, RawBox, RawPicture, assembled, wrong_row
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError
from octavolt.units import GIB

MOST_BYTES = 2 * GIB
BEGINNING = 2**16
KEYS = (b'"annotations"', b'"images"', b'"categories"')
PARTS = ("images", "annotations", "categories")
FOLDERS = ("", "images", "train2017", "val2017", "JPEGImages")


def files_of(source: str) -> list[Path]:
    """Return the JSON files of COCO that a source names or holds."""
    path = Path(source).expanduser()
    if path.is_file():
        return [path] if path.suffix.lower() == ".json" and is_coco(path) else []
    if not path.is_dir():
        return []
    found = [
        one
        for folder in (path / "annotations", path)
        if folder.is_dir()
        for one in sorted(folder.glob("*.json"))
        if is_coco(one)
    ]
    boxes = [one for one in found if one.name.startswith("instances")]
    return boxes or found


def is_coco(path: Path) -> bool:
    """Tell whether a JSON file holds annotations of COCO, by its beginning and end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        content = file.read(BEGINNING)
        file.seek(max(0, size - BEGINNING))
        content += file.read(BEGINNING)
    return sum(key in content for key in KEYS) >= 2 or (
        size <= MOST_BYTES and all(key in path.read_bytes() for key in KEYS)
    )


def recognises(source: str) -> bool:
    """Tell whether the source looks like COCO."""
    try:
        return bool(files_of(source))
    except OSError:
        return False


def open_coco(source: str, seed: int) -> DataSet:
    """Return the pictures of all splits; categories are numbered in the order of their ids."""
    files = files_of(source)
    root = files[0].parent.parent if files[0].parent.name == "annotations" else files[0].parent
    pictures: list[RawPicture] = []
    faults: list[Fault] = []
    names: dict[int, str] = {}
    for file in files:
        content = read_json(file)
        own = categories(content, file)
        for key, name in own.items():
            if names.setdefault(key, name) != name:
                raise OctavoltError(
                    f"{file} calls category {key} '{name}', another file '{names[key]}'. Mend the "
                    "categories first."
                )
        found, more = read_pictures(content, file, root, own, one_file=len(files) == 1)
        pictures += found
        faults += more
    classes = [names[key] for key in sorted(names)]
    if len(set(classes)) < len(classes):
        raise OctavoltError(f"{source} has categories of the same name. Mend them first.")
    return assembled(
        source, "coco", Raw(root=root, pictures=pictures, classes=classes, faults=faults), seed=seed
    )


def read_json(file: Path) -> dict[str, Any]:
    """Return the content of a file, whose parts are lists."""
    if file.stat().st_size > MOST_BYTES:
        raise OctavoltError(f"{file} is larger than 2 GiB. Divide it.")
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise OctavoltError(f"{file} is no JSON that can be read: {error}") from error
    for part in PARTS:
        if not isinstance(content, dict) or not isinstance(content.get(part), list):
            raise OctavoltError(f"{file} has no list '{part}': it is no file of COCO.")
    return dict(content)


def categories(content: Mapping[str, Any], file: Path) -> dict[int, str]:
    """Return the names by id."""
    try:
        return {int(one["id"]): str(one["name"]) for one in content["categories"]}
    except (KeyError, TypeError, ValueError) as error:
        raise OctavoltError(f"{file}: a category lacks its id or name: {error}") from error


def read_pictures(
    content: Mapping[str, Any],
    file: Path,
    root: Path,
    names: Mapping[int, str],
    *,
    one_file: bool,
) -> tuple[list[RawPicture], list[Fault]]:
    """Return a file's pictures with their boxes, and the annotations that can't be used."""
    split = None if one_file else split_in(file)
    here = str(file.relative_to(root))
    by_id: dict[Any, RawPicture] = {}
    faults: list[Fault] = []
    for place, one in enumerate(content["images"]):
        try:
            by_id[one["id"]] = RawPicture(
                file=located(root, str(one["file_name"]), split_in(file)),
                height=int(one.get("height", 0)),
                width=int(one.get("width", 0)),
                stated=here,
                split=TRAIN if split is None else split,
            )
        except (KeyError, TypeError, ValueError) as error:
            problem = f"images[{place}] lacks its id or file_name: {error!r}"
            faults.append(wrong_row(here, None, problem))
    for place, one in enumerate(content["annotations"]):
        what = f"annotations[{place}]"
        try:
            what += f" (id {one.get('id')})"
            box = one["bbox"]
            left, top, width, height = (plain(side) for side in box)
            picture, label = by_id[one["image_id"]], names[one["category_id"]]
        except KeyError as error:
            problem = f"{what} names {wrong_key(error, one)}"
            faults.append(wrong_row(here, None, problem))
            continue
        except (TypeError, ValueError, AttributeError) as error:
            faults.append(wrong_row(here, None, f"{what} has no box of four numbers: {error}"))
            continue
        picture.boxes.append(
            RawBox(
                corners=(left, top, left + width, top + height),
                label=label,
                crowd=bool(one.get("iscrowd", 0)),
                area=float(one["area"]) if "area" in one else None,
                file=here,
                what=what,
            )
        )
    return [*by_id.values()], faults


def plain(side: Any) -> float:
    """Return a number that is one already: no text, and no truth."""
    if isinstance(side, bool) or not isinstance(side, int | float):
        raise TypeError(f"{side!r} is no number")
    return float(side)


def wrong_key(error: KeyError, one: Any) -> str:
    """Return what an annotation names that isn't there."""
    missing = error.args[0]
    if missing in {"bbox", "image_id", "category_id"}:
        return f"no {missing}"
    if one.get("image_id") == missing:
        return f"a picture with id {missing!r}, which is not in images"
    return f"a category with id {missing!r}, which is not in categories"


def split_in(file: Path) -> int | None:
    """Return the split that a file's name tells: 'instances_train2017' is of train."""
    for word in file.stem.replace("-", "_").split("_"):
        split = split_index(word.rstrip("0123456789"))
        if split is not None:
            return split
    return None


def located(root: Path, name: str, split: int | None) -> str:
    """Return where a picture lies below the root: COCO's own files give only its name."""
    for folder in candidates(root, split):
        if (root / folder / name).is_file():
            return str(Path(folder, name))
    return name


def candidates(root: Path, split: int | None) -> Iterator[str]:
    """Yield the folders in which a split's pictures may lie."""
    words = {0: ("train", "train2017"), 1: ("val", "val2017", "valid"), 2: ("test", "test2017")}
    for word in words.get(-1 if split is None else split, ()):
        yield from (f"images/{word}", word)
    yield from FOLDERS
    if split is None:
        for some in words.values():
            yield from (f"images/{word}" for word in some)
