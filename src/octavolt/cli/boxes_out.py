"""Boxes that `octavolt predict` found: which are kept, and how they are written and drawn."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from octavolt.cli.named import on_one_line, shown
from octavolt.errors import OctavoltError, UnknownNameError

FLAGS = {
    "score": "--score",
    "overlap": "--overlap",
    "most": "--max-boxes",
    "classes": "--classes",
    "live": "--live",
    "tile": "--tile",
    "output": "--output",
    "coco": "--format coco",
}
"""What only detectors have a use for."""
JPEG_QUALITY = 92


def refuse_flags(opened: Any, limits: Iterable[str], **others: Any) -> None:
    """Raise if something was said about boxes that a network doesn't find."""
    flags = [FLAGS[one] for one in (*limits, *(name for name in others if others[name]))]
    if flags:
        several = len(flags) > 1
        listed = f"{', '.join(flags[:-1])} and {flags[-1]}" if several else flags[0]
        raise OctavoltError(
            f"{listed} {'are' if several else 'is'} for detectors; {opened.entry.name} finds no "
            f"boxes. Leave {'them' if several else 'it'} away."
        )


def limit_boxes(opened: Any, said: dict[str, Any]) -> None:
    """Set which boxes a detector keeps: fields of `Limits`, classes as names with commas."""
    from octavolt.tasks.object_detection import SURE

    if "classes" in said:
        names = [one.strip() for one in said["classes"].split(",") if one.strip()]
        if not names:
            raise OctavoltError("--classes names no class. Give names with commas between.")
        for name in names:
            if name not in opened.classes:
                raise UnknownNameError("class", name, opened.classes)
        said = said | {"classes": tuple(opened.classes.index(name) for name in names)}
    opened.network.limits = replace(opened.network.limits, **{"score": SURE} | said)


def asker(opened: Any, *, tile: bool, batch_size: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what answers pictures that are in memory, whole or also in tiles."""
    from octavolt.contract import Input
    from octavolt.predict import ask
    from octavolt.tiles import tiled

    def whole(pictures: Sequence[Any]) -> Sequence[Any]:
        ready = opened.preparation.ready
        return ask(opened, [ready(Input(name="a picture", content=one)) for one in pictures])

    size = opened.preparation.preprocessing
    # Where the shorter side decides, a square is taken as it is.
    tile_width = size.height if size.fit == "shorter-side" else size.width

    def in_tiles(pictures: Sequence[Any]) -> Sequence[Any]:
        return [
            tiled(
                whole,
                one,
                tile_height=size.height,
                tile_width=tile_width,
                limits=opened.network.limits,
                batch_size=batch_size,
            )
            for one in pictures
        ]

    return in_tiles if tile else whole


def tiled_pictures(opened: Any, named: Sequence[str], *, batch_size: int) -> Iterator[Any]:
    """Yield predictions of large pictures, one after the other."""
    from octavolt.predict import Prediction

    ask = asker(opened, tile=True, batch_size=batch_size)
    for one in opened.preparation.inputs(named):
        try:
            answer = ask([pixels_of(opened, one.name)])[0]
        except OSError as error:
            yield Prediction(file=one.name, answer=None, error=error.strerror or str(error))
        except (ValueError, MemoryError) as error:
            yield Prediction(file=one.name, answer=None, error=str(error))
        else:
            yield Prediction(file=one.name, answer=answer)


def pixels_of(opened: Any, file: str) -> Any:
    """Return a picture of a file, upright; raises what `Preparation.ready` raises."""
    from octavolt.data.decode import decode

    path = Path(file)
    if path.exists() and not path.is_file():
        raise ValueError("it is no ordinary file")
    return decode(path.read_bytes(), white_level=opened.preparation.preprocessing.white_level)


def new_folder(output: Path, named: Sequence[str]) -> Path:
    """Return a new or empty folder; raise if it is one that is read, holds files, or can't be."""
    for one in named:
        place = output.resolve()
        if Path(one).is_dir() and Path(one).resolve() in (place, *place.parents):
            raise OctavoltError(
                f"--output {output} lies in {one}, which is predicted: its pictures would be "
                "predicted the next time. Give a folder elsewhere."
            )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise OctavoltError(
            f"{output} exists and is not empty. Give another --output, so that nothing is replaced."
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
        probe = output / ".write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OctavoltError(
            f"Can't write into {output}: {error.strerror}. Give a folder of yours with --output."
        ) from error
    return output


def drawing(results: Iterable[Any], opened: Any, folder: Path, named: Sequence[str]) -> Any:
    """Yield predictions once their pictures are drawn into a folder."""
    from octavolt.data.boxes.draw import drawn
    from octavolt.video.written import marks_of

    say_of_fonts(opened.classes)
    taken: set[str] = set()
    roots = [Path(one) for one in named if Path(one).is_dir()]
    for one in results:
        if one.answer is not None:
            pixels = pixels_of(opened, one.file)
            picture = drawn(pixels, marks_of(one.answer["boxes"], opened.classes))
            write_picture(folder / new_name(Path(one.file), roots, taken), picture)
        yield one


def new_name(file: Path, roots: Sequence[Path], taken: set[str]) -> Path:
    """Return where a drawn picture goes: as below its folder, with a number if that is taken."""
    root = next((one for one in roots if one in file.parents), file.parent)
    ending = ".png" if file.suffix.lower() == ".png" else ".jpg"
    plain = file.relative_to(root).with_suffix("")
    name, turn = f"{plain}{ending}", 1
    while name.lower() in taken:
        turn += 1
        name = f"{plain}-{turn}{ending}"
    taken.add(name.lower())
    return Path(name)


def write_picture(path: Path, pixels: Any) -> None:
    """Write RGB pixels as a JPEG, or as what the name ends with."""
    import cv2

    quality = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if path.suffix == ".jpg" else []
    _, encoded = cv2.imencode(path.suffix, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), quality)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded.tobytes())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OctavoltError(
            f"Can't write {path}: {error.strerror}. Make room, or give another --output."
        ) from error


def say_of_fonts(classes: Sequence[str]) -> None:
    """Say which characters of the classes can't be drawn."""
    from octavolt.data.boxes.draw import without_glyph

    missing = without_glyph(classes)
    if missing:
        print(
            f"octavolt: No font of this computer has {missing[:20]}: captions show empty squares "
            "for that. Install one, as with: apt install fonts-noto-cjk",
            file=sys.stderr,
        )


def in_place(box: dict[str, Any]) -> str:
    """Return a box on one line: its label, its score and its corners in pixels."""
    corners = " ".join(f"{side:.0f}" for side in box["box"])
    return f"{on_one_line(str(box['label']))} {100 * box['score']:.0f} % ({corners})"


def write_boxes(writer: Any, results: Iterable[Any]) -> tuple[int, int]:
    """Print a row a box; a picture without any has one row."""
    writer.writerow(["file", "label", "score", "xmin", "ymin", "xmax", "ymax", "error"])
    total = failed = 0
    for one in results:
        total += 1
        failed += one.answer is None
        boxes = one.answer["boxes"] if one.answer else []
        for each in boxes:
            row = [shown(one.file), each["label"], f"{each['score']:.6f}", *each["box"], ""]
            writer.writerow(row)
        if not boxes:
            writer.writerow([shown(one.file), *[""] * 6, one.error or ""])
    return total, failed


def write_coco(classes: Sequence[str], results: Iterable[Any], _top: int) -> tuple[int, int]:
    """Print the boxes as COCO's evaluation takes them: one JSON list.

    A picture's id is the number that is its name, as in COCO, if all have one; else they are
    counted from 1, in order. Categories have COCO's own numbers if the classes are those of COCO,
    else they are counted from 1, as `check --write coco` does.
    """
    total = failed = 0
    files: list[str] = []
    found: list[tuple[int, dict[str, Any]]] = []
    for one in results:
        total += 1
        if one.answer is None:
            failed += 1
            print(f"{on_one_line(one.file)}: {one.error}", file=sys.stderr)
        files.append(one.file)
        found += [(total - 1, each) for each in (one.answer or {"boxes": []})["boxes"]]
    images, categories = image_ids(files), category_ids(classes)
    print("[", end="")
    for row, (place, each) in enumerate(found):
        left, top, right, bottom = each["box"]
        value = {
            "image_id": images[place],
            "category_id": categories[each["label"]],
            "bbox": [left, top, round(right - left, 2), round(bottom - top, 2)],
            "score": each["score"],
            "file_name": shown(Path(files[place]).name),
        }
        print(",\n" if row else "", json.dumps(value, ensure_ascii=False), sep="", end="")
    print("]")
    return total, failed


def image_ids(files: Sequence[str]) -> list[int]:
    """Return the numbers that files are named by if each has its own, else their places from 1."""
    stems = [Path(one).stem for one in files]
    if all(one.isascii() and one.isdigit() for one in stems):
        numbers = [int(one) for one in stems]
        if len(set(numbers)) == len(numbers):
            return numbers
    return [*range(1, len(files) + 1)]


def category_ids(classes: Sequence[str]) -> dict[str, int]:
    """Return the number of each class in COCO files."""
    from octavolt.networks import coco

    if tuple(classes) == coco.classes():
        return {name: coco.numbered().index(name) + 1 for name in classes}
    return {name: place for place, name in enumerate(classes, 1)}
