"""Prediction: an answer for each input, and a reason for each that has none."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import torch

from octavolt.contract import Input
from octavolt.networks.opened import Opened

BATCHES_AHEAD = 2


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the network says of one input, or why it can't."""

    file: str
    """The file, or file and row."""
    answer: dict[str, Any] | None
    error: str | None = None


def predict(
    opened: Opened,
    named: Sequence[str],
    *,
    batch_size: int = 32,
    others: Sequence[Input] = (),
) -> Iterator[Prediction]:
    """Yield an answer or an error for each input, in order; memory is that of a few batches.

    `named` are files, folders, patterns or '-'; `others` come before them.
    """
    preparation = opened.preparation
    inputs = chain(others, preparation.inputs(named) if named else ())
    with ThreadPoolExecutor(opened.machine.threads) as pool:
        under_way: deque[list[tuple[str, Future[Any]]]] = deque()
        try:
            while True:
                group = [
                    (one.name, pool.submit(preparation.ready, one))
                    for one in islice(inputs, batch_size)
                ]
                if group:
                    under_way.append(group)
                if not under_way:
                    return
                if len(under_way) >= BATCHES_AHEAD or not group:
                    yield from answered(opened, under_way.popleft())
        finally:
            pool.shutdown(cancel_futures=True)


def answered(opened: Opened, group: list[tuple[str, Future[Any]]]) -> Iterator[Prediction]:
    """Yield the predictions of one batch of inputs."""
    ready: dict[int, Any] = {}
    errors: dict[int, str] = {}
    for place, (_, future) in enumerate(group):
        try:
            ready[place] = future.result()
        except OSError as error:
            errors[place] = error.strerror or str(error)
        except (ValueError, MemoryError) as error:
            errors[place] = str(error)
    answers: dict[int, dict[str, Any]] = {}
    if ready:
        answers = dict(zip(ready, ask(opened, [*ready.values()]), strict=True))
    for place, (name, _) in enumerate(group):
        yield Prediction(file=name, answer=answers.get(place), error=errors.get(place))


@torch.inference_mode()
def ask(opened: Opened, ready: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what the network says of inputs that are ready."""
    batch = opened.preparation.collate(ready).to(opened.machine.device)
    with opened.machine.autocast():
        outputs = opened.network(*batch.inputs)
    names = opened.preparation.output_names()
    return opened.task.present(opened.network.decode(outputs), batch, names)
