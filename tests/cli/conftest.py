"""The command line as a user meets it: arguments in; status, output and errors out."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from octavolt.cli import main
from octavolt.train import train
from tests.train.tiny import request as tiny_request


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Return the one JSON document on standard output; raises if there is more or less."""
        return json.loads(self.out)


Octavolt = Callable[..., Answer]


@pytest.fixture
def octavolt(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Octavolt:
    """Return a function that runs one command, in an empty folder on a wide terminal."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "250")

    def command(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["octavolt", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Answer(status=int(ended.value.code or 0), out=out, err=err)

    return command


def write_picture(path: Path, channel: int, seed: int) -> Path:
    """Write a noisy picture of one colour, and its folders."""
    pixels = np.random.default_rng(seed).integers(0, 120, (16, 16, 3), dtype=np.uint8)
    pixels[:, :, channel] += 100
    path.parent.mkdir(parents=True, exist_ok=True)
    _, encoded = cv2.imencode(".png", pixels)
    path.write_bytes(encoded.tobytes())
    return path


def write_folder(root: Path, *, train: int = 8, held_out: int = 3) -> Path:
    """Write PNGs of three classes in train, val and test folders."""
    seed = 0
    for split, count in (("train", train), ("val", held_out), ("test", held_out)):
        for channel, name in enumerate(("blue", "green", "red")):
            for index in range(count):
                seed += 1
                write_picture(root / split / name / f"{index}.png", channel, seed)
    return root


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pictures; not to be changed."""
    return write_folder(tmp_path_factory.mktemp("data") / "colours")


@pytest.fixture(scope="session")
def run(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells the colours apart fairly; commands may add evaluations and reports."""
    folder = tmp_path_factory.mktemp("runs") / "colours"
    return train(tiny_request(pictures, folder, changes={"epochs": 4, "ema_decay": 0.0}))
