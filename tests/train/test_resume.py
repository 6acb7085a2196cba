import json
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from octavolt.errors import OctavoltError
from octavolt.runs import held
from octavolt.train import Stopped, resume, train
from octavolt.train.log import Event, StepLogged
from octavolt.train.settings import Request
from tests.train.tiny import request, write_pictures

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"changes": {"ema_decay": 0.0}},
    "averaged, mixed, in parts": {
        "changes": {"mixup_alpha": 0.2, "ema_decay": 0.9},
        "micro_batch_size": 2,
        "threads": 2,
    },
    "bf16, sgd, frozen": {
        "precision": "bf16",
        "changes": {"optimizer": "sgd", "learning_rate": 0.05, "freeze_epochs": 2},
    },
    "rmsprop": {"changes": {"optimizer": "rmsprop"}},
}


def same(first: Path, second: Path) -> None:
    """Demand the same weights, byte for byte, and the same losses at every step and epoch."""
    for name in ("weights.safetensors",):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    for name, keys in (
        ("steps.jsonl", ("step", "epoch", "losses", "gradient_norm", "learning_rate")),
        ("epochs.jsonl", ("epoch", "step", "train_loss", "val", "best")),
    ):
        rows = [
            [
                [json.loads(line)[key] for key in keys]
                for line in (run / name).read_text().splitlines()
            ]
            for run in (first, second)
        ]
        assert rows[0] == rows[1]


class StopAt:
    """Sends this process a signal after so many steps."""

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        self.step, self.number = step, number

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepLogged) and event.step.number == self.step:
            os.kill(os.getpid(), self.number)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npz")


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_resumed_run_is_the_run_that_never_stopped(
    kind: str, data: Path, tmp_path: Path
) -> None:
    whole = train(request(data, tmp_path / "whole", **KINDS[kind]))
    parts = tmp_path / "parts"
    with pytest.raises(Stopped, match="saved at step 4"):
        train(request(data, parts, **KINDS[kind]), tell=StopAt(4))
    with pytest.raises(Stopped, match="saved at step 12"):  # the end of an epoch
        resume(parts, tell=StopAt(12, signal.SIGINT))
    resume(parts)
    same(whole, parts)


def test_sigusr1_saves_and_goes_on(data: Path, tmp_path: Path) -> None:
    run = train(request(data, tmp_path / "run"), tell=StopAt(4, signal.SIGUSR1))
    names = sorted(path.name[:14] for path in (run / "checkpoints").iterdir())
    assert names == ["step-000000004", "step-000000018"]


def test_damaged_newest_checkpoint_is_noticed_and_the_one_before_used(
    data: Path, tmp_path: Path
) -> None:
    whole = train(request(data, tmp_path / "whole"))
    parts = tmp_path / "parts"
    with pytest.raises(Stopped):
        train(request(data, parts, save_steps=2), tell=StopAt(8))
    newest = max((parts / "checkpoints").iterdir())
    altered = bytearray(newest.read_bytes())
    altered[len(altered) // 2] ^= 1
    newest.write_bytes(altered)
    resume(parts)
    same(whole, parts)
    events = (parts / "events.jsonl").read_text()
    assert f"{newest.name} is damaged: its checksum differs. Used the one before." in events


def test_no_whole_checkpoint_is_an_error_that_names_the_damaged(data: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    with pytest.raises(Stopped):
        train(request(data, parts), tell=StopAt(2))
    for path in (parts / "checkpoints").iterdir():
        path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(OctavoltError, match=r"There is no checkpoint .* but damaged ones: step-0"):
        resume(parts)


def test_checkpoint_of_a_newer_schema_is_refused(data: Path, tmp_path: Path) -> None:
    from hashlib import sha256

    parts = tmp_path / "parts"
    with pytest.raises(Stopped):
        train(request(data, parts), tell=StopAt(2))
    (path,) = (parts / "checkpoints").iterdir()
    newer = path.read_bytes().replace(b'{\\"schema\\": 1,', b'{\\"schema\\": 9,')
    path.unlink()
    digest = sha256(newer).hexdigest()[:16]
    (parts / "checkpoints" / f"step-000000002-{digest}.safetensors").write_bytes(newer)
    with pytest.raises(OctavoltError, match=r"has schema 9; this octavolt reads up to 1\. It was"):
        resume(parts)


def test_finished_run_is_not_resumed(data: Path, tmp_path: Path) -> None:
    run = train(request(data, tmp_path / "run"))
    with pytest.raises(OctavoltError, match=r"is finished: 3 epochs\. Evaluate it, or begin"):
        resume(run)


def test_changed_data_are_named(data: Path, tmp_path: Path) -> None:
    own = write_pictures(tmp_path / "own.npz")
    with pytest.raises(Stopped):
        train(request(own, tmp_path / "run"), tell=StopAt(2))
    write_pictures(own, seed=1)
    with pytest.raises(OctavoltError, match=r"The data of .* changed since it began: 62 differ"):
        resume(tmp_path / "run")


def attempt(subject: Request | Path) -> None:
    """Train or resume, in a process that will be killed."""
    if isinstance(subject, Request):
        train(subject)
    else:
        resume(subject)


def newest_step(run: Path) -> int:
    """Return the step of the newest checkpoint, 0 if there is none."""
    return max((int(path.name[5:14]) for path in run.glob("checkpoints/step-*")), default=0)


@pytest.mark.slow
def test_killed_at_random_ten_times_it_gives_the_very_same_weights(
    data: Path, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {
        "changes": {"mixup_alpha": 0.2, "epochs": 20},
        "micro_batch_size": 4,
        "save_steps": 1,
    }
    whole = train(request(data, tmp_path / "whole", **changes))
    parts = tmp_path / "parts"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["octavolt.train", "tests.train.tiny"])
    random = Random(0)
    for _ in range(10):
        start = newest_step(parts)
        if start == 0:  # killed before its first checkpoint: nothing to go on from
            shutil.rmtree(parts, ignore_errors=True)
        subject = request(data, parts, **changes) if start == 0 else parts
        process = context.Process(target=attempt, args=(subject,))
        process.start()
        # So many steps, and then at any moment of the next one.
        wanted = start + random.randrange(9)
        while newest_step(parts) < wanted and process.is_alive():
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    resume(parts)
    same(whole, parts)


def test_a_run_that_is_being_trained_is_not_trained_by_another(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        train(request(data, run), tell=StopAt(4))
    before = (run / "steps.jsonl").read_bytes()
    with held(run), pytest.raises(OctavoltError) as raised:
        resume(run)
    assert str(raised.value) == (
        f"{run} is being trained by another process. Wait until it ends, or stop it first."
    )
    assert (run / "steps.jsonl").read_bytes() == before
    resume(run)


def test_a_run_goes_on_from_another_folder(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        train(request(Path(data.name), run), tell=StopAt(4))
    monkeypatch.chdir(tmp_path)
    assert resume(run) == run
