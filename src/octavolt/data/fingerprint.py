"""What a run was trained on, a line a picture, so that a changed data set is noticed by name."""

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from octavolt.contract import DataSet
from octavolt.data.check import Checked
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_count

HEADER = "split\tname\tlabel\tbytes\tdigest\n"
MOST_NAMED = 5
ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
"""So that any file name keeps to its cell; the backslash first."""

Row = tuple[str, str, str]
"""Split, label and digest of a picture."""


def fingerprint(data: DataSet, checked: Checked) -> bytes:
    """Return the content of `data.tsv.gz`: the same data give the same bytes."""
    file = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(HEADER.encode())
        packed.writelines(line.encode() for line in lines(data, checked))
    return file.getvalue()


def lines(data: DataSet, checked: Checked) -> Iterator[str]:
    """Yield a line a picture, in the order of the data set."""
    for split, pictures in data.splits.items():
        found = checked.splits[split]
        for index, label in enumerate(pictures.labels.tolist()):
            # A label out of range is a fault of its own; here it is told apart by its number.
            known = 0 <= label < len(data.classes)
            label_name = escaped(data.classes[label] if known else str(label))
            name = escaped(pictures.name(index))
            size, digest = found.sizes_bytes[index], found.digests[index]
            yield f"{split}\t{name}\t{label_name}\t{size}\t{digest:016x}\n"


def escaped(text: str) -> str:
    """Return the text without tabs and line breaks."""
    for plain, written in ESCAPES:
        text = text.replace(plain, written)
    return text


def changed(old_file: Path, data: DataSet, checked: Checked) -> list[str]:
    """Return a sentence on each picture that was added, removed, altered, relabelled or moved.

    The list is empty if the data are those that `old_file` was written of.
    """
    old, new = rows_of(old_file), named_rows(lines(data, checked))
    sentences = [f"{name} was removed" for name in old.keys() - new.keys()]
    sentences += [f"{name} was added" for name in new.keys() - old.keys()]
    for name in old.keys() & new.keys():
        difference = differing(old[name], new[name])
        if difference:
            sentences.append(f"{name} {difference}")
    return sorted(sentences)


def differing(old: Row, new: Row) -> str | None:
    """Return what became of a picture that is in both, or None."""
    if old[2] != new[2]:
        return "was changed"
    if old[1] != new[1]:
        return f"was relabelled from '{old[1]}' to '{new[1]}'"
    if old[0] != new[0]:
        return f"was moved from {old[0]} to {new[0]}"
    return None


def rows_of(file: Path) -> Mapping[str, Row]:
    """Return the rows of a file by the names of the pictures."""
    try:
        with gzip.open(file, "rt", encoding="utf-8", newline="\n") as text:
            if text.readline() != HEADER:
                raise OctavoltError(f"'{file}' does not begin as a table of pictures. Restore it.")
            return named_rows(text)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise OctavoltError(
            f"'{file}', which names the pictures of the run, can't be read: {error}. Restore it "
            "from a copy of the run."
        ) from error


def named_rows(text: Iterator[str]) -> Mapping[str, Row]:
    """Return the rows by the names of the pictures. Raises `ValueError` on a row cut short."""
    rows: dict[str, Row] = {}
    for line in text:
        split, name, label, _, digest = line.rstrip("\n").split("\t")
        # A table may name a file twice.
        while name in rows:
            name += " (again)"
        rows[name] = (split, label, digest)
    return rows


def check_unchanged(old_file: Path, data: DataSet, checked: Checked) -> None:
    """Raise, naming up to five pictures, if the data are not those of a run's `old_file`."""
    sentences = changed(old_file, data, checked)
    if not sentences:
        return
    rest = len(sentences) - MOST_NAMED
    more = f"; and {format_count(rest)} more" if rest > 0 else ""
    run = old_file.parent
    raise OctavoltError(
        f"The data of {run} changed since it began: "
        f"{counted(len(sentences), 'difference')}: {'; '.join(sentences[:MOST_NAMED])}{more}. "
        f"Put them back, or begin a new run with --weights {run}."
    )
