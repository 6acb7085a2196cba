"""Training: from a request, or from a run that was stopped, to a run folder."""

import os
from contextlib import nullcontext
from pathlib import Path

from octavolt import ranks
from octavolt.contract import Progress
from octavolt.devices import set_up, this_machine
from octavolt.ranks import Rank, joined
from octavolt.runs import held
from octavolt.train import prepare
from octavolt.train.launch import launched
from octavolt.train.log import Tell
from octavolt.train.prepare import Ground
from octavolt.train.run import Stopped, train_run
from octavolt.train.settings import Request, check_request, read_settings

__all__ = ["Request", "Stopped", "resume", "train"]


def silent(*_: object) -> None:
    """Tell nobody."""


def train(request: Request, *, tell: Tell = silent, progress: Progress = silent) -> Path:
    """Train a network and return its run folder.

    With more than one process, `tell` and `progress` go to other processes and so must be
    functions of a module. Raises `Stopped` if a signal asked for it, after saving.
    """
    check_request(request)
    rank = ranks.given(os.environ)
    if rank is None and request.processes > 1:
        return launched(train, request, processes=request.processes, tell=tell, progress=progress)
    rank = rank or Rank()
    machine = this_machine(precision=request.precision, rank=rank, threads=request.threads)
    set_up(machine)
    with joined(rank, machine.device):
        ground = prepare.begin(request, machine=machine, rank=rank, progress=progress, tell=tell)
        return run_on(ground, resumed=False, tell=tell, progress=progress)


def resume(
    run: Path,
    *,
    processes: int = 1,
    threads: int | None = None,
    tell: Tell = silent,
    progress: Progress = silent,
) -> Path:
    """Go on with a run from its newest whole checkpoint, bit for bit on the same machine."""
    rank = ranks.given(os.environ)
    if rank is None and processes > 1:
        return launched(resume, run, processes=processes, tell=tell, progress=progress)
    rank = rank or Rank()
    settings = read_settings(run)
    machine = this_machine(
        precision=settings.precision, rank=rank, threads=threads or settings.threads
    )
    set_up(machine)
    with joined(rank, machine.device):
        ground = prepare.resume(run, settings, machine=machine, rank=rank, progress=progress)
        return run_on(ground, resumed=True, tell=tell, progress=progress)


def run_on(ground: Ground, *, resumed: bool, tell: Tell, progress: Progress) -> Path:
    """Train on a prepared ground, which no other process may train on meanwhile."""
    with held(ground.run) if ground.rank.leads else nullcontext():
        train_run(
            ground,
            prepare.new_state(ground, tell, resumed=resumed),
            prepare.examples(ground, "train", tell, progress),
            prepare.examples(ground, "val", tell, progress),
            resumed=resumed,
            tell=tell,
        )
    return ground.run
