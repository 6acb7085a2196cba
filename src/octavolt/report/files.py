"""What the report takes from a run folder. Missing files are allowed, malformed ones are not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from octavolt.errors import OctavoltError
from octavolt.report.rows import Row, as_row, read_document, read_lines
from octavolt.report.words import Nouns, nouns


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRow:
    """One logged update of the parameters."""

    step: int
    epoch: int
    seconds: float
    """Of training since the run began, over all its sessions."""
    loss: float
    learning_rate: float
    gradient_norm: float | None
    samples_per_second: float | None
    waiting_fraction: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRow:
    """One epoch."""

    epoch: int
    step: int
    seconds: float
    """Of training since the run began, over all its sessions."""
    train_loss: float
    val: Mapping[str, Any] | None
    metric: str | None
    """Name of the one that decides which epoch is the best."""
    best: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened between steps."""

    step: int | None
    kind: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """A sample that was answered wrongly."""

    name: str
    label: str
    predicted: str
    probability: float
    jpeg_base64: str | None
    text: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """One measurement of the weights."""

    data: str
    split: str
    task: str
    primary_metric: str
    metrics: Row
    classes: tuple[str, ...]
    samples_per_second: float | None
    mistakes: tuple[Mistake, ...]

    @property
    def finds_boxes(self) -> bool:
        """Whether boxes were looked for."""
        return "boxes_per_class" in self.metrics.values


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFiles:
    """All that the report shows."""

    folder: Path
    settings: Row
    environment: Mapping[str, Any]
    steps: tuple[StepRow, ...]
    epochs: tuple[EpochRow, ...]
    events: tuple[Event, ...]
    evaluations: tuple[Evaluation, ...]
    """The newest of each data and split."""
    damaged: tuple[tuple[str, str], ...]
    """File and problem of the samples that were left out."""

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.folder.resolve().name

    @property
    def nouns(self) -> Nouns:
        """Return what the run's samples are called."""
        return nouns(self.settings.values.get("task"))


def read_run(folder: Path) -> RunFiles:
    """Return what a run folder holds."""
    settings = read_document(folder / "settings.json")
    if settings is None:
        raise OctavoltError(
            f"{folder} is no run folder: it holds no settings.json. "
            "Give the folder that octavolt train made."
        )
    return RunFiles(
        folder=folder,
        settings=as_row(settings, str(folder / "settings.json")),
        environment=optional_object(folder / "environment.json").values,
        steps=in_sequence(map(step_row, read_lines(folder / "steps.jsonl"))),
        epochs=in_sequence(map(epoch_row, read_lines(folder / "epochs.jsonl"))),
        events=tuple(map(event, read_lines(folder / "events.jsonl"))),
        evaluations=evaluations(optional_object(folder / "evaluation.json")),
        damaged=damaged_samples(folder / "damaged.json"),
    )


def optional_object(path: Path) -> Row:
    """Return the object in a file, an empty one if there is no such file."""
    value = read_document(path)
    return as_row({} if value is None else value, str(path))


def step_row(row: Row) -> StepRow:
    """Return one line of steps.jsonl."""
    loss = row.optional_number("loss")
    return StepRow(
        step=row.whole("step"),
        epoch=row.whole("epoch"),
        seconds=row.number("seconds"),
        # JSON of strict writers has null for a loss that is not a number.
        loss=float("nan") if loss is None else loss,
        learning_rate=row.number("learning_rate"),
        gradient_norm=row.optional_number("gradient_norm"),
        samples_per_second=row.optional_number("samples_per_second"),
        waiting_fraction=row.optional_number("waiting_fraction"),
    )


def epoch_row(row: Row) -> EpochRow:
    """Return one line of epochs.jsonl."""
    loss = row.optional_number("train_loss")
    return EpochRow(
        epoch=row.whole("epoch"),
        step=row.whole("step"),
        seconds=row.number("seconds"),
        train_loss=float("nan") if loss is None else loss,
        val=None if row.values.get("val") is None else row.row("val").values,
        metric=row.optional_text("metric"),
        best=bool(row.values.get("best", False)),
    )


def event(row: Row) -> Event:
    """Return one line of events.jsonl."""
    step = row.values.get("step")
    return Event(
        step=None if step is None else row.whole("step"),
        kind=row.text("kind"),
        message=row.text("message") if "message" in row.values else "",
    )


AnyRow = TypeVar("AnyRow", StepRow, EpochRow)


def in_sequence(rows: Iterable[AnyRow]) -> tuple[AnyRow, ...]:
    """Return the rows with seconds that never fall.

    A clock that was started anew when the run was resumed goes on from where it stopped.
    """
    result: list[AnyRow] = []
    offset = 0.0
    for row in rows:
        if result and row.seconds + offset < result[-1].seconds:
            offset = result[-1].seconds
        result.append(replace(row, seconds=row.seconds + offset))
    return tuple(result)


def evaluations(document: Row) -> tuple[Evaluation, ...]:
    """Return the evaluations, of each data and split the newest."""
    found = [evaluation(row) for row in document.rows("evaluations")]
    return tuple({(one.data, one.split): one for one in found}.values())


def evaluation(row: Row) -> Evaluation:
    """Return one entry of evaluation.json."""
    metrics, classes = row.row("metrics"), row.texts("classes")
    check_confusion(metrics, len(classes))
    check_curves(metrics)
    return Evaluation(
        data=row.text("data"),
        split=row.text("split"),
        task=row.text("task"),
        primary_metric=row.text("primary_metric"),
        metrics=metrics,
        classes=classes,
        samples_per_second=row.optional_number("samples_per_second"),
        mistakes=tuple(map(mistake, row.rows("mistakes"))),
    )


def check_confusion(metrics: Row, class_count: int) -> None:
    """Raise unless the confusion matrix, if there is one, has a row and a column a class."""
    confusion = metrics.values.get("confusion")
    if confusion is None:
        return
    whole = isinstance(confusion, list) and all(isinstance(row, list) for row in confusion)
    if not whole or {len(confusion), *map(len, confusion)} != {class_count}:
        raise OctavoltError(
            f"{metrics.place}: 'confusion' must have {class_count} rows of {class_count} counts, "
            "one a class. Measure again: octavolt evaluate"
        )


def check_curves(metrics: Row) -> None:
    """Raise unless the precisions of all classes of boxes are at the same recalls."""
    curves = [row.shares("precisions") for row in metrics.rows("boxes_per_class")]
    lengths = sorted({len(one) for one in curves if one})
    if len(lengths) > 1:
        raise OctavoltError(
            f"{metrics.place}: the 'precisions' of a class in 'boxes_per_class' are {lengths[0]}, "
            f"those of another {lengths[-1]}; they must be as many. Measure again: "
            "octavolt evaluate"
        )


def mistake(row: Row) -> Mistake:
    """Return one entry of an evaluation's mistakes."""
    return Mistake(
        name=row.text("name"),
        label=row.text("label"),
        predicted=row.text("predicted"),
        probability=row.number("probability"),
        jpeg_base64=row.optional_text("jpeg_base64"),
        text=row.optional_text("text"),
    )


def damaged_samples(path: Path) -> tuple[tuple[str, str], ...]:
    """Return file and problem of each damaged sample."""
    listed = Row(values={"damaged": read_document(path) or []}, place=str(path))
    return tuple((row.text("file"), row.text("problem")) for row in listed.rows("damaged"))
