"""The verb: epochs of steps, evaluated, saved, and stopped without a loss."""

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors.torch import save

from octavolt import ranks
from octavolt.contract import Examples, Places
from octavolt.data.loader import Loader
from octavolt.data.order import epoch_order, epoch_updates, update_count
from octavolt.errors import OctavoltError
from octavolt.evaluate import Scored, score_split
from octavolt.runs import write_bytes
from octavolt.train import checkpoints
from octavolt.train.checkpoints import Progress
from octavolt.train.log import EpochDone, Log, Note, StepLogged, Tell
from octavolt.train.loop import MicroBatch, Step, StepOutOfMemoryError, train_steps
from octavolt.train.prepare import Ground
from octavolt.train.schedules import learning_rate
from octavolt.train.signals import Asked, noticed
from octavolt.train.state import TrainState, averaged_weights, freeze_body, train_mode
from octavolt.units import counted


@dataclass(kw_only=True)
class Session:
    """One process's part in a run, from start or resumption to the end or the next stop."""

    ground: Ground
    state: TrainState
    train: Examples
    val: Examples
    loader: Loader
    progress: Progress
    tell: Tell
    log: Log | None
    """Of the leading rank."""
    asked: Asked
    saved_at: float
    """When the last checkpoint was written, on the monotonic clock."""
    began: float
    seconds_before: float
    """Of earlier sessions."""
    window_began: float
    """When the steps began that are not logged yet."""
    window_samples: float = 0.0
    window_steps: int = 0
    waited_seconds: float = 0.0

    @property
    def updates_an_epoch(self) -> int:
        """Return the updates of the parameters in an epoch; the last may take fewer samples."""
        return update_count(len(self.train), self.ground.settings.recipe.batch_size)

    @property
    def seconds(self) -> float:
        """Return how long the run has taken so far, with earlier sessions."""
        return self.seconds_before + time.monotonic() - self.began

    def note(self, text: str, kind: str) -> None:
        """Tell the user, and write it down."""
        note = Note(text=text, kind=kind)
        self.tell(note)
        if self.log is not None:
            self.log.event(self.state.steps_done, note)


class Stopped(Exception):  # noqa: N818  (no error: the user asked for it)
    """The run was asked to stop, and has saved where it stands."""

    def __init__(self, run: Path, step: int, signal_number: int) -> None:
        self.run = run
        self.step = step
        self.signal_number = signal_number
        super().__init__(f"saved at step {step:,}. Go on with: octavolt train --resume {run}")


def train_run(
    ground: Ground,
    state: TrainState,
    train: Examples,
    val: Examples,
    *,
    resumed: bool,
    tell: Tell,
) -> None:
    """Train to the end of the recipe; raise `Stopped` if asked to stop before."""
    progress = Progress(
        epoch=1,
        update=0,
        steps_done=0,
        seconds=0.0,
        micro_batch_size=ground.settings.micro_batch_size,
    )
    notes: list[str] = []
    if resumed:
        progress, notes = checkpoints.load_newest(ground.run / "checkpoints", state)
        if progress.finished:
            raise OctavoltError(
                f"{ground.run} is finished: {ground.settings.recipe.epochs} epochs. Evaluate it, "
                f"or begin a new run from it: --weights {ground.run}"
            )
    machine, rank = ground.machine, ground.rank
    log = Log(ground.run, progress) if rank.leads else None
    with (
        noticed(patient=rank.count > 1) as asked,
        Loader(threads=machine.threads, ahead=machine.ahead) as loader,
    ):
        now = time.monotonic()
        session = Session(
            ground=ground,
            state=state,
            train=train,
            val=val,
            loader=loader,
            progress=progress,
            tell=tell,
            log=log,
            asked=asked,
            saved_at=now,
            began=now,
            window_began=now,
            seconds_before=progress.seconds,
        )
        try:
            for text in notes:
                session.note(text, "damaged-checkpoint")
            if resumed:
                where = f"epoch {progress.epoch}, step {progress.steps_done:,}"
                session.note(f"Going on at {where}.", "resumed")
            run_epochs(session)
        finally:
            if log is not None:
                log.close()


def run_epochs(session: Session) -> None:
    """Train epoch after epoch, evaluate each, and end early if the recipe says so."""
    recipe = session.ground.settings.recipe
    for epoch in range(session.progress.epoch, recipe.epochs + 1):
        loss = run_epoch(session, epoch)
        scored = evaluate_epoch(session)
        finish_epoch(session, epoch, loss, scored)
        progress = session.progress
        patience = recipe.early_stop_epochs
        tired = (
            patience is not None
            and progress.best_epoch is not None
            and epoch - progress.best_epoch >= patience
        )
        if tired and epoch < recipe.epochs:
            session.note(
                f"Stopped early: no better for {patience} epochs than in epoch "
                f"{progress.best_epoch}.",
                "early-stop",
            )
        if tired or epoch == recipe.epochs:
            break
        save_if_due(session)
    session.progress = replace(session.progress, finished=True)
    save_now(session)


def run_epoch(session: Session, epoch: int) -> float:
    """Run what is left of an epoch; return the mean loss over all its samples."""
    ground, state = session.ground, session.state
    settings, recipe = ground.settings, ground.settings.recipe
    frozen = epoch <= recipe.freeze_epochs
    freeze_body(state.network, frozen=frozen)
    order = epoch_order(
        len(session.train),
        seed=settings.seed,
        epoch=epoch,
        batch_size=recipe.batch_size,
        lengths=session.train.lengths,
    )
    session.window_began = time.monotonic()
    while session.progress.update < session.updates_an_epoch:
        train_mode(state.network, frozen=frozen)
        try:
            with closing(updates(session, order, epoch)) as source:
                for step in train_steps(
                    state,
                    source,
                    lambda done: learning_rate(recipe, done, session.updates_an_epoch),
                    max_gradient_norm=recipe.max_gradient_norm,
                    name=session.train.name,
                ):
                    after_step(session, epoch, step)
        except StepOutOfMemoryError:
            halve(session)
    return session.progress.epoch_loss / max(session.progress.epoch_samples, 1.0)


def updates(session: Session, order: Any, epoch: int) -> Generator[list[MicroBatch], None, None]:
    """Yield this rank's micro-batches, update by update, from where the epoch stands."""
    ground = session.ground
    plan = epoch_updates(
        order,
        seed=ground.settings.seed,
        epoch=epoch,
        batch_size=ground.settings.recipe.batch_size,
        micro_batch_size=session.progress.micro_batch_size,
        rank=ground.rank.number,
        ranks=ground.rank.count,
        start_update=session.progress.update,
    )
    wanted: list[list[Places]] = [*plan]
    loaded = session.loader.batches(session.train, (one for some in wanted for one in some))
    with closing(loaded) as source:
        for places in wanted:
            group = []
            for _ in places:
                one = next(source)
                session.waited_seconds += one.waited_seconds
                group.append((one.places, one.batch))
            yield group


def after_step(session: Session, epoch: int, step: Step) -> None:
    """Log, save or stop, as it is time or was asked for."""
    settings = session.ground.settings
    count(session, epoch, step)
    if not step.applied:
        session.note(
            f"Step {step.number:,}: fp16 overflowed at loss scale {step.loss_scale:.0f}; the step "
            "is left out and the scale halved.",
            "overflow",
        )
    if step.number % settings.log_steps == 0 or session.progress.update == session.updates_an_epoch:
        log_steps(session, epoch, step)
    due_steps = settings.save_steps is not None and step.number % settings.save_steps == 0
    due_time = time.monotonic() - session.saved_at > 60 * settings.save_minutes
    stop, save_it, due_anywhere = ranks.total(
        [
            session.asked.stop_signal > 0,
            session.asked.save,
            due_time and session.ground.rank.leads,
        ]
    )
    if stop or save_it or due_steps or due_anywhere:
        save_now(session)
        session.asked.save = False
    if stop:
        signal_number = max(ranks.gathered(session.asked.stop_signal))
        raise Stopped(session.ground.run, step.number, signal_number)


def count(session: Session, epoch: int, step: Step) -> None:
    """Take a step into where the run stands."""
    before = session.progress
    session.window_samples += step.samples
    session.window_steps += 1
    session.progress = replace(
        before,
        epoch=epoch,
        update=before.update + 1,
        steps_done=step.number,
        epoch_loss=before.epoch_loss + sum(step.losses.values()) * step.samples,
        epoch_samples=before.epoch_samples + step.samples,
        window_losses={
            name: before.window_losses.get(name, 0.0) + value for name, value in step.losses.items()
        },
        window_steps=before.window_steps + 1,
    )


def log_steps(session: Session, epoch: int, step: Step) -> None:
    """Write down and tell the means over the steps since the last logged one."""
    progress = session.progress
    now = time.monotonic()
    elapsed = max(now - session.window_began, 1e-9)
    rate = session.window_samples / elapsed
    waiting = min(1.0, session.waited_seconds / elapsed)
    means = {name: value / progress.window_steps for name, value in progress.window_losses.items()}
    seconds_a_step = elapsed / max(session.window_steps, 1)
    session.window_began, session.window_samples, session.waited_seconds = now, 0.0, 0.0
    session.window_steps = 0
    session.progress = replace(progress, window_losses={}, window_steps=0)
    if session.log is None:
        return
    session.log.step(
        {
            "step": step.number,
            "epoch": epoch,
            "seconds": round(session.seconds, 3),
            "loss": sum(means.values()),
            "losses": means,
            "learning_rate": step.learning_rate,
            "gradient_norm": step.gradient_norm,
            "loss_scale": step.loss_scale,
            "samples_per_second": rate,
            "waiting_fraction": waiting,
            "micro_batch_size": progress.micro_batch_size,
        }
    )
    epochs = session.ground.settings.recipe.epochs
    done = progress.update / session.updates_an_epoch
    session.tell(
        StepLogged(
            step=step,
            epoch=epoch,
            epochs=epochs,
            epoch_fraction=done,
            loss=sum(means.values()),
            unit=session.ground.task.unit,
            samples_per_second=rate,
            waiting_fraction=waiting,
            seconds_left=(epochs - epoch + 1 - done) * session.updates_an_epoch * seconds_a_step,
        )
    )


def halve(session: Session) -> None:
    """Halve the micro-batch after an out-of-memory, on all ranks alike; all else stays."""
    size = session.progress.micro_batch_size
    recipe = session.ground.settings.recipe
    smallest = 2 if recipe.mixup_alpha else 1
    half = max(smallest, size // 2)
    if recipe.mixup_alpha:
        half += half % 2
    if half >= size:
        modality = session.ground.modality
        raise OctavoltError(
            f"Out of memory with {counted(size, modality.sample)} in one pass, and fewer can't be. "
            f"Use a smaller {modality.smaller} or network."
        )
    passes = -(-recipe.batch_size // (half * session.ground.rank.count))
    session.progress = replace(session.progress, micro_batch_size=half)
    session.note(
        f"Out of memory at micro-batch {size}: goes on at {half}, {passes} passes an update on "
        f"each of {session.ground.rank.count}. The batch of {recipe.batch_size}, the recipe and "
        "the order of samples stay as they were.",
        "out-of-memory",
    )


def evaluate_epoch(session: Session) -> Scored:
    """Score the weights, or their running means, on the validation split."""
    ground = session.ground
    with averaged_weights(session.state):
        return score_split(
            session.state.network,
            session.val,
            session.loader,
            ground.machine,
            task=ground.task,
            classes=ground.settings.classes,
            rank=ground.rank,
        )


def finish_epoch(session: Session, epoch: int, loss: float, scored: Scored) -> None:
    """Keep the weights if they are the best so far, and write the epoch down."""
    ground, progress = session.ground, session.progress
    metrics = scored.metrics
    task = ground.task
    sign = -1 if task.less_is_better else 1
    value = (sign * metrics[task.primary_metric], -metrics[task.tie_metric])
    best = progress.best is None or value > progress.best
    session.progress = replace(
        progress,
        epoch=epoch + 1,
        update=0,
        epoch_loss=0.0,
        epoch_samples=0.0,
        best=value if best else progress.best,
        best_epoch=epoch if best else progress.best_epoch,
    )
    if best and ground.rank.leads:
        write_weights(session)
    if session.log is not None:
        short = {key: one for key, one in metrics.items() if isinstance(one, int | float)}
        session.log.epoch(
            {
                "epoch": epoch,
                "step": session.state.steps_done,
                "seconds": round(session.seconds, 3),
                "train_loss": loss,
                "val": short,
                "best": best,
                "metric": task.primary_metric,
            }
        )
    session.tell(
        EpochDone(
            epoch=epoch,
            epochs=ground.settings.recipe.epochs,
            train_loss=loss,
            metrics=metrics,
            primary_metric=task.primary_metric,
            best=best,
        )
    )


def write_weights(session: Session) -> None:
    """Write the weights, or their running means, under the names that others publish."""
    with averaged_weights(session.state):
        tensors = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in session.state.network.body.state_dict().items()
        }
        # One key, since safetensors writes several in random order: equal runs give equal files.
        # "format" is what transformers asks for.
        metadata = {"format": "pt"}
        write_bytes(session.ground.run / "weights.safetensors", save(tensors, metadata))


def save_if_due(session: Session) -> None:
    """Save at the end of an epoch if the last checkpoint is older than a tenth of the limit."""
    limit = 6 * session.ground.settings.save_minutes
    due = time.monotonic() - session.saved_at > limit and session.ground.rank.leads
    if ranks.total([due])[0]:
        save_now(session)


def save_now(session: Session) -> None:
    """Write a checkpoint."""
    if session.ground.rank.leads:
        progress = replace(session.progress, seconds=session.seconds)
        checkpoints.save(session.ground.run / "checkpoints", session.state, progress)
    session.saved_at = time.monotonic()
