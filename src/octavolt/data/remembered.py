"""What a check found, kept for the next one: a picture whose file did not change is not read."""

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt64

from octavolt.contract import DataSet

VERSION = 1
"""Counted up when what a check finds changes, so that older findings are forgotten."""
FINDING = np.dtype(
    [
        ("stamp", "<u8"),
        ("digest", "<u8"),
        ("bytes", "<i8"),
        ("height", "<i4"),
        ("width", "<i4"),
        ("white", "<i4"),
        ("problem", "<i4"),
    ]
)
"""One picture; `problem` is 0 or counts from 1 in the list of problems."""

Problem = tuple[str, str]
"""A kind of fault, and what to tell."""


def memory_file(data: DataSet, cache_folder: Path | None) -> Path:
    """Return where the findings on that data set are kept."""
    if cache_folder is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache_folder = Path(home) / "octavolt" / "checks"
    place = data.root.resolve() if data.root is not None else data.source
    key = blake2b(f"{VERSION} {data.format} {place}".encode(errors="replace"), digest_size=16)
    return cache_folder / f"{key.hexdigest()}.npz"


def remember(
    file: Path, tables: Sequence[Shaped[np.ndarray, " _"]], problems: Sequence[Problem]
) -> None:
    """Write the findings aside, then rename. A folder that can't be written costs only time."""
    findings, kept = worth_keeping(tables, problems)
    text = np.frombuffer(json.dumps(kept).encode(), np.uint8)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as aside:
            np.savez(Path(aside) / file.name, findings=findings, problems=text)
            (Path(aside) / file.name).replace(file)
    except OSError:
        return


def worth_keeping(
    tables: Sequence[Shaped[np.ndarray, " _"]], problems: Sequence[Problem]
) -> tuple[Shaped[np.ndarray, " findings"], list[Problem]]:
    """Return the findings that a stamp stands for, with only their problems.

    A file that could not be read is asked again: what was in the way leaves no trace in its stamp.
    """
    findings = np.concatenate(tables)
    passing = [place for place, (kind, _) in enumerate(problems, 1) if kind == "unreadable"]
    findings = findings[(findings["stamp"] != 0) & ~np.isin(findings["problem"], passing)]
    used = np.unique(findings["problem"][findings["problem"] > 0])
    findings["problem"] = np.where(
        findings["problem"] > 0, np.searchsorted(used, findings["problem"]) + 1, 0
    )
    return findings, [problems[place - 1] for place in used.tolist()]


def recall(file: Path) -> tuple[Shaped[np.ndarray, " findings"], list[Problem]]:
    """Return the findings, sorted by stamp: none if there are none, or if the file is damaged."""
    try:
        # Opened here, as numpy leaves a file open in which it finds no archive.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            findings = arrays["findings"]
            problems = [
                (str(kind), str(what)) for kind, what in json.loads(bytes(arrays["problems"]))
            ]
    except (
        OSError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ):
        return np.zeros(0, FINDING), []
    good = findings.dtype == FINDING and findings.ndim == 1
    if not good or findings["problem"].max(initial=0) > len(problems):
        return np.zeros(0, FINDING), []
    return np.sort(findings, order="stamp"), problems


def places_of(
    stamps: UInt64[np.ndarray, " pictures"], findings: Shaped[np.ndarray, " findings"]
) -> Shaped[np.ndarray, " pictures"]:
    """Return where the finding on each picture is, or -1: a stamp of 0 is on nothing."""
    if len(findings) == 0:
        return np.full(len(stamps), -1)
    places = np.searchsorted(findings["stamp"], stamps).clip(max=len(findings) - 1)
    known = (findings["stamp"][places] == stamps) & (stamps != 0)
    return np.where(known, places, -1)
