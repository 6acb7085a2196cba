"""What was found wrong with texts, and what tells a data set from any other."""

import csv
import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt64

from octavolt.contract import Checked, DataSet, Fault, Progress
from octavolt.data.check import weight
from octavolt.data.text.samples import (
    Conversations,
    Measure,
    Questions,
    TextSamples,
    digest_of,
)
from octavolt.data.twins import twin_faults
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_count

HEADER = "split\tsamples\tdigest\n"
CLASSES = "classes"
"""In place of a split, the row of the names of the classes."""


@dataclass(frozen=True, kw_only=True)
class CheckedTexts:
    """What a split comes to."""

    samples: int
    characters: int
    digest: str
    """In hexadecimal digits."""


class TextChecked(Checked):
    """All that was found wrong with texts; readers have left out what is damaged already."""

    def __init__(self, faults: tuple[Fault, ...], splits: Mapping[str, CheckedTexts]) -> None:
        self.faults = faults
        self.splits = splits

    def usable(self, data: DataSet, /) -> DataSet:
        """Return the data set without the faults of damaged rows, which are not in its splits."""
        return replace(data, faults=tuple(fault for fault in data.faults if not fault.damaged))

    def fingerprint(self, data: DataSet, /) -> bytes:
        """Return the content of `data.tsv.gz`: the same data give the same bytes."""
        rows = [
            (split, found.samples, found.digest)
            for split, found in self.splits.items()
            if split in data.splits
        ]
        rows.append((CLASSES, len(data.classes), class_digest(data.classes)))
        table = HEADER + "".join(f"{split}\t{count}\t{digest}\n" for split, count, digest in rows)
        file = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            packed.write(table.encode())
        return file.getvalue()

    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        """Raise, naming the splits, unless the data still are those of the fingerprint."""
        old, new = rows_of(file), parsed(gzip.decompress(self.fingerprint(data)).decode())
        sentences = [
            sentence
            for name in dict.fromkeys([*old, *new])
            if (sentence := differing(name, old.get(name), new.get(name))) is not None
        ]
        if not sentences:
            return
        run = file.parent
        raise OctavoltError(
            f"The data of {run} changed since it began: {'; '.join(sentences)}. Put them back, or "
            f"begin a new run with --weights {run}."
        )

    def digest(self, split: str, /) -> str:
        """Return what changes if a sample of the split does, in hexadecimal digits."""
        return self.splits[split].digest

    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""
        return {
            "samples": sum(found.samples for found in self.splits.values()),
            "characters": sum(found.characters for found in self.splits.values()),
            "splits": {
                split: {"samples": found.samples, "characters": found.characters}
                for split, found in self.splits.items()
            },
            "faults": [asdict(fault) for fault in self.faults],
        }


def check_text(data: DataSet, *, progress: Progress = lambda _done, _total: None) -> TextChecked:
    """Return all faults of the data set, with its figures. Reads every text once."""
    total = sum(map(len, data.splits.values()))
    done = 0
    splits: dict[str, CheckedTexts] = {}
    digests: dict[str, UInt64[np.ndarray, " _"]] = {}
    for split, samples in data.splits.items():
        assert isinstance(samples, TextSamples), samples
        measure = samples.measure()
        digests[split] = measure.digests
        splits[split] = checked_split(samples, measure)
        done += len(samples)
        progress(done, total)
    faults = [*data.faults, *twin_faults(data, digests, sample_of(data))]
    return TextChecked(faults=tuple(sorted(faults, key=weight)), splits=splits)


def checked_split(samples: TextSamples, measure: Measure) -> CheckedTexts:
    """Return the figures of a split."""
    return CheckedTexts(
        samples=len(samples),
        characters=measure.characters,
        digest=digest_of(samples, measure).hex(),
    )


def sample_of(data: DataSet) -> str:
    """Return what people call a sample."""
    first = next(iter(data.splits.values()), None)
    if isinstance(first, Questions):
        return "question"
    return "conversation" if isinstance(first, Conversations) else "text"


def class_digest(classes: tuple[str, ...]) -> str:
    """Return what changes if the name of a class does."""
    return blake2b(repr(classes).encode(), digest_size=16).hexdigest()


def differing(name: str, old: tuple[int, str] | None, new: tuple[int, str] | None) -> str | None:
    """Return what became of a split, or None if it is as it was."""
    if old == new:
        return None
    if old is None:
        return f"{name} was added"
    if new is None:
        return f"{name} was removed"
    if name == CLASSES:
        return f"the classes changed, {format_count(old[0])} before and {format_count(new[0])} now"
    if old[0] == new[0]:
        return f"{name} has other texts or labels, {counted(old[0], 'sample')} as before"
    return f"{name} had {counted(old[0], 'sample')} and has {format_count(new[0])} now"


def rows_of(file: Path) -> dict[str, tuple[int, str]]:
    """Return count and digest by split, as a run's file has them."""
    try:
        return parsed(gzip.decompress(file.read_bytes()).decode())
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise OctavoltError(
            f"'{file}', which tells the data of the run, can't be read: {error}. Restore it from a "
            "copy of the run."
        ) from error


def parsed(text: str) -> dict[str, tuple[int, str]]:
    """Return count and digest by split. Raises `ValueError` if the text is no such table."""
    if not text.startswith(HEADER):
        raise ValueError("it does not begin as a table of texts")
    rows = csv.reader(text.removeprefix(HEADER).splitlines(), delimiter="\t")
    return {split: (int(count), digest) for split, count, digest in rows}
