"""What a run writes down while it trains, and what it tells its caller."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from octavolt.runs import Lines
from octavolt.train.checkpoints import Progress
from octavolt.train.loop import Step


@dataclass(frozen=True, kw_only=True)
class Note:
    """A sentence for the user about something that was decided or happened."""

    text: str
    kind: str = "note"


@dataclass(frozen=True, kw_only=True)
class StepLogged:
    """Means over the steps since the last one that was logged."""

    step: Step
    epoch: int
    epochs: int
    epoch_fraction: float
    loss: float
    unit: str
    """What the samples are, in the singular."""
    samples_per_second: float
    waiting_fraction: float
    seconds_left: float


@dataclass(frozen=True, kw_only=True)
class EpochDone:
    """An epoch with its evaluation."""

    epoch: int
    epochs: int
    train_loss: float
    metrics: dict[str, Any]
    primary_metric: str
    best: bool


Event = Note | StepLogged | EpochDone
Tell = Callable[[Event], None]


class Log:
    """The files of a run that grow."""

    def __init__(self, run: Path, progress: Progress) -> None:
        """Open the files, and forget what was written after the run stood there."""

        def earlier_step(row: dict[str, Any]) -> bool:
            return bool(row["step"] <= progress.steps_done)

        def earlier_epoch(row: dict[str, Any]) -> bool:
            return bool(row["epoch"] < progress.epoch)

        self.steps = Lines(run / "steps.jsonl", keep=earlier_step)
        self.epochs = Lines(run / "epochs.jsonl", keep=earlier_epoch)
        self.events = Lines(run / "events.jsonl", keep=earlier_step)
        self.board = SummaryWriter(str(run / "tensorboard"), purge_step=progress.steps_done)

    def step(self, row: dict[str, Any]) -> None:
        """Add one logged step."""
        self.steps.add(row)
        for key in ("loss", "learning_rate", "gradient_norm", "samples_per_second"):
            self.board.add_scalar(f"train/{key}", row[key], row["step"])

    def epoch(self, row: dict[str, Any]) -> None:
        """Add one epoch."""
        self.epochs.add(row)
        for key, value in row["val"].items():
            if isinstance(value, float):
                self.board.add_scalar(f"val/{key}", value, row["step"])

    def event(self, step: int, note: Note) -> None:
        """Add something that happened."""
        self.events.add({"step": step, "kind": note.kind, "message": note.text})

    def close(self) -> None:
        """Close the files."""
        for file in (self.steps, self.epochs, self.events):
            file.close()
        self.board.close()
