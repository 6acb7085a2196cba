"""Several processes on this machine, by torchrun's machinery."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from octavolt.errors import OctavoltError
from octavolt.train.run import Stopped

USERS_FAULT = 2


def launched(
    verb: Callable[..., Path], subject: Any, *, processes: int, tell: Any, progress: Any
) -> Path:
    """Run a verb in so many processes; return what the leading one returns.

    What the first process to fail says is raised here.
    """
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="octavolt-") as folder:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=processes,
            run_id=uuid4().hex,
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            max_restarts=0,
            monitor_interval=0.1,
            start_method="spawn",
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )
        try:
            results = elastic_launch(config, in_rank)(verb, subject, folder, tell, progress)
        except ChildFailedError as error:
            raise first_error(Path(folder), error) from error
        except SignalException as error:
            raise stopped(Path(folder)) from error
        if any(one is None for one in results.values()):
            raise stopped(Path(folder))
        return Path(results[0])


def in_rank(verb: Callable[..., Path], subject: Any, folder: str, tell: Any, progress: Any) -> Any:
    """Run the verb as one of several processes; leave word in `folder` if it ends before time."""
    try:
        return str(verb(subject, tell=tell, progress=progress))
    except Stopped as stop:
        write(folder, "stopped", f"{stop.step} {stop.signal_number}\n{stop.run}")
        return None
    except OctavoltError as error:
        write(folder, "error", str(error))
        sys.exit(USERS_FAULT)


def write(folder: str, kind: str, text: str) -> None:
    """Leave word for the launching process."""
    Path(folder, f"{kind}-{os.environ['RANK']}").write_text(text, encoding="utf-8")


def first_error(folder: Path, error: ChildFailedError) -> Exception:
    """Return what the first process to fail said."""
    words = sorted(folder.glob("error-*"), key=lambda path: path.stat().st_mtime_ns)
    if words:
        return OctavoltError(words[0].read_text(encoding="utf-8"))
    _, failure = error.get_first_failure()
    return RuntimeError(f"Rank {failure.local_rank} failed: {failure.message}")


def stopped(folder: Path) -> Stopped:
    """Return where the processes stopped."""
    words = sorted(folder.glob("stopped-*"))
    if not words:
        raise OctavoltError(
            "Stopped before the first step was done, so nothing was saved. Begin again with the "
            "same command."
        )
    numbers, run = words[0].read_text(encoding="utf-8").split("\n", 1)
    step, signal_number = map(int, numbers.split())
    return Stopped(Path(run), step, signal_number)
