"""What a format finds of pictures and boxes, in growing arrays: 100 bytes a box, not a kilobyte."""

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from octavolt.contract import Fault
from octavolt.data.pictures import Names
from octavolt.units import counted

MOST_FAULTS_OF_A_KIND = 1000
"""A systematic mistake is one mistake: nobody reads a million lines, and each takes memory."""

Corners = tuple[float, float, float, float]


class Faults:
    """Faults as they are found; of each kind only the first are kept, and the others counted."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self.counts: Counter[str] = Counter()

    def add(self, fault: Fault) -> None:
        """Keep or count a fault."""
        self.counts[fault.kind] += 1
        if self.counts[fault.kind] <= MOST_FAULTS_OF_A_KIND:
            self.kept.append(fault)

    def all(self) -> tuple[Fault, ...]:
        """Return the faults, with one more for all that were only counted of a kind."""
        rests = []
        for kind, count in self.counts.items():
            if count > MOST_FAULTS_OF_A_KIND:
                last = [one for one in self.kept if one.kind == kind][-1]
                more = counted(count - MOST_FAULTS_OF_A_KIND, "more place")
                rests.append(
                    Fault(
                        kind=kind,
                        file=last.file,
                        problem=f"the same is wrong in {more}, in this file or others",
                        stops=last.stops,
                        damaged=last.damaged,
                    )
                )
        return (*self.kept, *rests)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """All that was gathered, as arrays."""

    names: Names
    split_of: Int64[np.ndarray, " pictures"]
    """Indices into `SPLITS`."""
    sizes: Int64[np.ndarray, "pictures 2"]
    """Height and width as the annotation states them; zeros where it doesn't."""
    source_of: Int64[np.ndarray, " pictures"]
    picture_lines: Int64[np.ndarray, " pictures"]
    """Where a picture's own annotation stands; 0 where a file has no lines."""
    damaged: NDArray[np.bool_]
    """Whether each picture lacks a box that can't be used: it would teach that nothing is there."""
    picture_of: Int64[np.ndarray, " boxes"]
    corners: NDArray[np.float64]
    labels: Int64[np.ndarray, " boxes"]
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]
    areas: NDArray[np.float64]
    """NaN where none is stated."""
    lines: Int64[np.ndarray, " boxes"]
    """0 where a file has no lines."""
    marks: Int64[np.ndarray, " boxes"]
    """What else tells a box from others: an id, or -1 - its place, from 1; or -1."""


class Gathered:
    """Pictures and boxes of a data set, one added after the other."""

    def __init__(self, *, declared: bool = False) -> None:
        self.declared = declared
        """Whether the data name their classes; otherwise they are those with a box in train."""
        self.classes: Sequence[str] = ()
        """All that are declared, or found in any split, in the order that they shall have."""
        self.faults = Faults()
        self.notes: list[str] = []
        self.sources: list[str] = []
        """The files of annotations."""
        self.text = bytearray()
        self.ends, self.sizes = array("q"), array("q")
        self.source_of, self.picture_lines = array("q"), array("q")
        self.split_of, self.damaged = bytearray(), bytearray()
        self.picture_of, self.labels = array("q"), array("q")
        self.corners, self.areas = array("d"), array("d")
        self.crowd, self.difficult = bytearray(), bytearray()
        self.lines, self.marks = array("q"), array("q")

    def source(self, name: str) -> int:
        """Return the index of one more file of annotations."""
        self.sources.append(name)
        return len(self.sources) - 1

    def picture(
        self,
        name: bytes,
        *,
        split: int,
        source: int,
        line: int = 0,
        height: int = 0,
        width: int = 0,
    ) -> int:
        """Return the row of one more picture, annotated in that file."""
        self.text += name
        self.ends.append(len(self.text))
        self.split_of.append(split)
        self.sizes.extend((height, width))
        self.source_of.append(source)
        self.picture_lines.append(line)
        self.damaged.append(0)
        return len(self.ends) - 1

    def box(
        self,
        picture: int,
        corners: Corners,
        label: int,
        *,
        line: int = 0,
        mark: int = -1,
        crowd: bool = False,
        difficult: bool = False,
        area: float = nan,
    ) -> None:
        """Add one more box of a picture, as it stands in the annotation."""
        self.picture_of.append(picture)
        self.corners.extend(corners)
        self.labels.append(label)
        self.crowd.append(crowd)
        self.difficult.append(difficult)
        self.areas.append(area)
        self.lines.append(line)
        self.marks.append(mark)

    def wrong(
        self,
        problem: str,
        *,
        file: str,
        line: int | None = None,
        kind: str = "wrong-annotation",
        picture: int | None = None,
    ) -> None:
        """Add a fault that costs a picture, which is left out with --skip-damaged."""
        self.faults.add(Fault(kind=kind, file=file, line=line, problem=problem, damaged=True))
        if picture is not None:
            self.damaged[picture] = 1

    def warn(self, kind: str, problem: str, *, file: str, line: int | None = None) -> None:
        """Add a fault that is put right, or costs no picture of the data set."""
        self.faults.add(Fault(kind=kind, file=file, line=line, problem=problem, stops=False))

    def replace_codes(
        self,
        first: int,
        pictures: Int64[np.ndarray, " boxes"],
        labels: Int64[np.ndarray, " boxes"],
    ) -> None:
        """Give the boxes from one on their pictures and labels, known only once all was read.

        A box whose picture is -1 is forgotten.
        """
        self.picture_of[first:] = array("q", pictures.tobytes())
        self.labels[first:] = array("q", labels.tobytes())

    def relabel(self, labels: Sequence[int]) -> None:
        """Put labels in place of the codes that classes had while they were being found."""
        codes = np.frombuffer(self.labels.tobytes(), np.int64)
        self.labels = array("q", np.array(labels, np.int64)[codes].tobytes())

    def rows(self) -> Rows:
        """Return all that was gathered, as arrays."""
        picture_of = np.frombuffer(self.picture_of.tobytes(), np.int64)
        kept = picture_of >= 0
        return Rows(
            names=Names(
                text=np.frombuffer(bytes(self.text), np.uint8),
                ends=np.frombuffer(self.ends.tobytes(), np.int64),
            ),
            split_of=np.frombuffer(bytes(self.split_of), np.uint8).astype(np.int64),
            sizes=np.frombuffer(self.sizes.tobytes(), np.int64).reshape(-1, 2),
            source_of=np.frombuffer(self.source_of.tobytes(), np.int64),
            picture_lines=np.frombuffer(self.picture_lines.tobytes(), np.int64),
            damaged=np.frombuffer(bytes(self.damaged), np.bool_),
            picture_of=picture_of[kept],
            corners=np.frombuffer(self.corners.tobytes(), np.float64).reshape(-1, 4)[kept],
            labels=np.frombuffer(self.labels.tobytes(), np.int64)[kept],
            crowd=np.frombuffer(bytes(self.crowd), np.bool_)[kept],
            difficult=np.frombuffer(bytes(self.difficult), np.bool_)[kept],
            areas=np.frombuffer(self.areas.tobytes(), np.float64)[kept],
            lines=np.frombuffer(self.lines.tobytes(), np.int64)[kept],
            marks=np.frombuffer(self.marks.tobytes(), np.int64)[kept],
        )
