"""Pascal VOC: an XML file a picture, with or without lists of the splits."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from octavolt.contract import DataSet, Fault
from octavolt.data.boxes.raw import Raw, RawBox, RawPicture, assembled, number, wrong_row
from octavolt.data.picture_modality import PICTURE_ENDINGS
from octavolt.data.splits import TRAIN, split_index
from octavolt.errors import OctavoltError

MOST_BYTES = 16 * 2**20
ANNOTATIONS, PICTURES, LISTS = "Annotations", "JPEGImages", "ImageSets/Main"
LOOKED_AT = 5


def root_of(source: str) -> Path | None:
    """Return the folder that holds 'Annotations', or XML files of VOC themselves."""
    path = Path(source).expanduser()
    below: list[Path] = sorted(path.iterdir()) if path.is_dir() else []
    for folder in [path, *below]:
        if (folder / ANNOTATIONS).is_dir():
            return folder
    if path.is_dir():
        some = [one for _, one in zip(range(LOOKED_AT), path.glob("*.xml"), strict=False)]
        if some and all(b"<annotation" in one.read_bytes()[:2048] for one in some):
            return path
    return None


def recognises(source: str) -> bool:
    """Tell whether the source looks like VOC."""
    return root_of(source) is not None


def open_voc(source: str, seed: int) -> DataSet:
    """Return the pictures that XML files describe.

    Coordinates are taken as they stand: counted from 1 and inclusive in VOC itself, so boxes lie up
    to a pixel off, as with most tools.
    """
    root = root_of(source)
    assert root is not None
    folder = root / ANNOTATIONS if (root / ANNOTATIONS).is_dir() else root
    pictures_in = root / PICTURES if (root / PICTURES).is_dir() else root
    at_hand = {
        one.stem: one
        for one in sorted(pictures_in.rglob("*"))
        if one.suffix.lower() in PICTURE_ENDINGS
    }
    faults: list[Fault] = []
    found: dict[str, RawPicture] = {}
    for file in sorted(folder.glob("*.xml")):
        try:
            found[file.stem] = read_xml(file, root, at_hand)
        except OctavoltError as error:
            faults.append(wrong_row(str(file.relative_to(root)), None, str(error)))
    for stem in at_hand.keys() - found.keys():
        name = str(at_hand[stem].relative_to(root))
        faults.append(
            Fault(
                kind="picture-unannotated",
                file=name,
                problem=f"has no {stem}.xml in {folder.name}: left out",
                stops=False,
            )
        )
    used, more, notes = by_lists(root, found)
    return assembled(
        source,
        "voc",
        Raw(root=root, pictures=used, faults=[*faults, *more], notes=notes),
        seed=seed,
    )


def by_lists(
    root: Path, found: dict[str, RawPicture]
) -> tuple[list[RawPicture], list[Fault], list[str]]:
    """Return the pictures with the splits that ImageSets/Main gives them."""
    lists = {
        split_index(file.stem): file
        for file in sorted((root / LISTS).glob("*.txt"))
        if split_index(file.stem) is not None
    }
    whole = root / LISTS / "trainval.txt"
    if TRAIN not in lists and whole.is_file():
        lists[TRAIN] = whole
    if TRAIN not in lists:
        return [*found.values()], [], []
    faults, used = [], []
    for split, file in sorted(lists.items(), key=lambda one: one[0] or 0):
        for line, stem in names_in(file):
            if stem not in found:
                problem = f"names {stem}, of which there is no {stem}.xml"
                faults.append(wrong_row(str(file.relative_to(root)), line, problem))
                continue
            found[stem].split = split or TRAIN
            used.append(found.pop(stem))
    rest = (
        [f"{len(found):,} pictures stand in no list of {LISTS} and are left out."] if found else []
    )
    return used, faults, rest


def names_in(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and name of each picture in a list."""
    for number_, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.strip():
            yield number_, line.strip().removesuffix(".jpg")


def read_xml(file: Path, root: Path, at_hand: dict[str, Path]) -> RawPicture:
    """Return the picture that an XML file describes."""
    name = str(file.relative_to(root))
    lines, tree = parsed(file, name)
    width, height = (whole(tree, f"size/{one}", name) for one in ("width", "height"))
    said = (tree.findtext("filename") or "").strip()
    path = at_hand.get(file.stem) or at_hand.get(Path(said).stem)
    boxes = []
    for place, one in enumerate(tree.iter("object"), 1):
        line = lines.get(place)
        label = (one.findtext("name") or "").strip()
        if not label:
            raise OctavoltError(f"line {line}: object {place} has no name.")
        corners = [
            number((one.findtext(f"bndbox/{side}") or "").strip(), name, line, side)
            for side in ("xmin", "ymin", "xmax", "ymax")
        ]
        boxes.append(
            RawBox(
                corners=(corners[0], corners[1], corners[2], corners[3]),
                label=label,
                difficult=(one.findtext("difficult") or "0").strip() == "1",
                file=name,
                line=line,
                what=f"object {place}",
            )
        )
    picture = path.relative_to(root) if path else Path(PICTURES, said or f"{file.stem}.jpg")
    return RawPicture(file=str(picture), boxes=boxes, height=height, width=width, stated=name)


def whole(tree: ElementTree.Element, path: str, name: str) -> int:
    """Return a whole number of an XML file; 0 if it isn't there."""
    text = (tree.findtext(path) or "0").strip()
    return int(number(text, name, None, path))


def parsed(file: Path, name: str) -> tuple[dict[int, int], ElementTree.Element]:
    """Return the line of each object, and the tree.

    A document type, whose entities could fill the memory, is refused.
    """
    content = file.read_bytes()
    if len(content) > MOST_BYTES:
        raise OctavoltError(f"{name} is larger than 16 MiB: no annotation of one picture.")
    if re.search(rb"<!DOCTYPE|<!ENTITY", content[:4096]):
        raise OctavoltError(f"{name} has a document type, which no annotation needs: refused.")
    lines: dict[int, int] = {}
    parser = expat.ParserCreate()

    def noted(tag: str, _attributes: dict[str, str]) -> None:
        if tag == "object":
            lines[len(lines) + 1] = parser.CurrentLineNumber

    parser.StartElementHandler = noted
    try:
        parser.Parse(content, True)
        return lines, ElementTree.fromstring(content)
    except (expat.ExpatError, ElementTree.ParseError) as error:
        raise OctavoltError(f"is no XML that can be read: {error}") from error
