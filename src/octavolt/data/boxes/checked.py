"""All that is wrong with pictures and boxes: each picture decoded once, each box looked at."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from octavolt.contract import Checked, DataSet, Fault, Progress
from octavolt.data import check as checking
from octavolt.data.boxes.samples import BoxedPictures, Boxes
from octavolt.data.fingerprint import check_unchanged, fingerprint


class BoxesChecked(Checked):
    """What was found by decoding every picture; the digests are of pictures and boxes."""

    def __init__(self, found: checking.Checked, counts: dict[str, list[int]]) -> None:
        self.found = found
        self.faults = found.faults
        self.counts = counts
        """Boxes of each class, by split."""

    @property
    def white_level(self) -> int:
        """Return the value of white."""
        return self.found.white_level

    def usable(self, data: DataSet, /) -> DataSet:
        """Return the data set without its damaged pictures; their faults go with them."""
        splits = {
            name: pictures.select(np.flatnonzero(self.found.splits[name].good))
            for name, pictures in data.splits.items()
            if self.found.splits[name].good.any()
        }
        kept = tuple(one for one in data.faults if not one.damaged)
        more = () if "train" in splits else (nothing_left("train"),)
        return replace(data, splits=splits, faults=(*kept, *more))

    def fingerprint(self, data: DataSet, /) -> bytes:
        """Return a table of all pictures with digests of them and their boxes."""
        return fingerprint(data, self.found)

    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        """Raise, naming pictures, unless the data still are those of the file."""
        check_unchanged(file, data, self.found)

    def digest(self, split: str, /) -> str:
        """Return what changes if a picture of the split or its boxes do."""
        return blake2b(self.found.splits[split].digests.tobytes(), digest_size=8).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""
        value = self.found.to_json() | {"faults": [asdict(one) for one in self.faults]}
        for name, counts in self.counts.items():
            value["splits"][name]["boxes"] = sum(counts)
            value["splits"][name]["boxes_per_class"] = counts
        return value


def check_boxes(data: DataSet, *, threads: int, progress: Progress) -> BoxesChecked:
    """Return all faults of the data set: those of its pictures, and those its format found."""
    found = checking.check(data, threads=threads, progress=progress)
    splits, counts = {}, {}
    for name, pictures in data.splits.items():
        assert isinstance(pictures, BoxedPictures)
        own = found.splits[name]
        splits[name] = replace(own, digests=own.digests ^ box_digests(pictures.boxes))
        counts[name] = np.bincount(pictures.boxes.labels, minlength=len(data.classes)).tolist()
    more = absent(data, counts)
    faults = tuple(sorted([*found.faults, *more], key=checking.weight))
    return BoxesChecked(replace(found, splits=splits, faults=faults), counts)


def box_digests(boxes: Boxes) -> Any:
    """Return a hash a picture of its boxes, 0 for none."""
    digests = np.zeros(len(boxes.ends), np.uint64)
    for picture in range(len(digests)):
        rows = boxes.rows(picture)
        if rows.start == rows.stop:
            continue
        parts = (boxes.corners, boxes.labels, boxes.crowd, boxes.difficult)
        content = b"".join(np.ascontiguousarray(one[rows]).tobytes() for one in parts)
        digest = blake2b(content, digest_size=8).digest()
        digests[picture] = int.from_bytes(digest, "little")
    return digests


def absent(data: DataSet, counts: dict[str, list[int]]) -> Iterator[Fault]:
    """Yield a warning for classes without a box in a split, and a fault for a split that lacks."""
    if "train" not in data.splits and not any(one.stops for one in data.faults):
        yield nothing_left("train")
    for name, own in counts.items():
        missing = [data.classes[place] for place, count in enumerate(own) if count == 0]
        if missing:
            shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" * (len(missing) > 8))
            problem = f"no box of {shown}"
            yield Fault(kind="class-missing", file=name, problem=problem, stops=False)


def nothing_left(split: str) -> Fault:
    """Return the fault of a data set without pictures to train with."""
    return Fault(kind="class-missing", file=split, problem="no picture can be read")
