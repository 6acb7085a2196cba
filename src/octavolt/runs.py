"""The run folder: everything octavolt knows about a model, in files that ordinary tools read."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from octavolt.errors import OctavoltError, nearest

SCHEMA = 1
"""Of every JSON file in a run folder. A larger one was written by a newer octavolt."""
RUNS = Path("runs")
MOST_LINE_BYTES = 2**24


def new_run(output: Path | None, label: str) -> Path:
    """Make a new run folder: `output` if given, else one under `runs` that tells name and time."""
    folder = output or RUNS / f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OctavoltError(
            f"{folder} exists and is not empty. Give another --output, or go on with that run: "
            f"octavolt train --resume {folder}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OctavoltError(
            f"Can't write into {folder}: {error.strerror}. Give a folder of yours with --output."
        ) from error
    return folder


def find_run(named: str) -> Path:
    """Return the run folder that a path, a name under `runs` or 'latest' means."""
    if named == "latest":
        runs = all_runs()
        if not runs:
            raise OctavoltError(
                f"There is no run in {RUNS.resolve()} yet. Make one: octavolt train mobilenet-v2 "
                "--data demo"
            )
        return runs[-1]
    for folder in (Path(named), RUNS / named):
        if (folder / "settings.json").is_file():
            return folder
    near = nearest(named, [run.name for run in all_runs()])
    guess = f" Did you mean '{near}'?" if near else ""
    raise OctavoltError(
        f"'{named}' is no run folder: it holds no settings.json, nor does {RUNS / named}.{guess}"
    )


def all_runs() -> list[Path]:
    """Return the run folders under `runs`, the newest last."""
    found = [path.parent for path in RUNS.glob("*/settings.json")]
    return sorted(found, key=lambda run: ((run / "settings.json").stat().st_mtime_ns, run.name))


@contextmanager
def held(run: Path) -> Iterator[None]:
    """Keep other processes from training in a run folder for the time of a block.

    The system gives the lock back however the process ends. It is on settings.json, which every run
    has, so that there is no file of ours to leave behind.
    """
    with (run / "settings.json").open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OctavoltError(
                f"{run} is being trained by another process. Wait until it ends, or stop it first."
            ) from error
        yield


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file aside, flush it to the disk, then put it in its place in one move."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OctavoltError(f"Can't write {path}: {error.strerror}.") from error


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document, readable by people."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=True)
    write_bytes(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """Return the JSON document in a file of a run."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OctavoltError(f"{path.parent} is not a whole run: {path.name} is missing.") from error
    except OSError as error:
        raise OctavoltError(f"Can't read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise OctavoltError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except RecursionError as error:
        raise OctavoltError(f"{path} is nested too deeply to be read.") from error
    except json.JSONDecodeError as error:
        raise OctavoltError(f"{path}, line {error.lineno}: not JSON: {error.msg}.") from error
    schema = value.get("schema", SCHEMA) if isinstance(value, dict) else SCHEMA
    if schema > SCHEMA:
        raise OctavoltError(
            f"{path} has schema {schema}; this octavolt reads up to {SCHEMA}. It was written by a "
            "newer one: pip install --upgrade octavolt"
        )
    return value


def read_fields(path: Path, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """Return the JSON object in a file of a run; its named fields are there, of those kinds."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise OctavoltError(f"{path} holds {type(value).__name__}, not an object.")
    for name, kind in kinds.items():
        if not isinstance(value.get(name), kind):
            wanted = " or ".join(
                one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,))
            )
            found = f"is {json.dumps(value[name])[:40]}" if name in value else "is missing"
            raise OctavoltError(
                f"{path}: {name} {found}; it must be {wanted}. The run was edited or is not whole."
            )
    return value


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines of a file; a last one that was cut off while written is passed over."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                if line.endswith("\n"):
                    raise OctavoltError(f"{path}, line {number}: not JSON: {error.msg}.") from error
                return
            yield value


class Lines:
    """A file of JSON lines that is added to."""

    def __init__(self, path: Path, *, keep: Callable[[dict[str, Any]], bool] | None = None) -> None:
        """Open the file; lines that are not to be kept are dropped first.

        They were written by a run that went on after its last checkpoint and was then killed.
        """
        self.path = path
        if keep is not None and path.exists():
            kept = [row for row in read_lines(path) if keep(row)]
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
            write_bytes(path, text.encode())
        self.file: TextIO = path.open("a", encoding="utf-8")

    def add(self, row: dict[str, Any]) -> None:
        """Add one line, and hand it to the operating system."""
        try:
            self.file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self.file.flush()
        except OSError as error:
            raise OctavoltError(f"Can't write {self.path}: {error.strerror}.") from error

    def close(self) -> None:
        """Close the file."""
        self.file.close()
