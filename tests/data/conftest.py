"""Nothing of the user's is read or written, and nothing is fetched."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simplejpeg

# The Hub's libraries read these once, when they are imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="octavolt-test-")

WritePicture = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def jpeg(seed: int, height: int = 16, width: int = 24) -> bytes:
    """Return a picture of noise: no two seeds give the same."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    encoded: bytes = simplejpeg.encode_jpeg(pixels)
    return encoded


@pytest.fixture
def picture() -> WritePicture:
    """Return a function that writes one picture more, unlike all before, and its folders."""
    written = 0

    def write(path: Path, content: bytes | None = None) -> Path:
        nonlocal written
        written += 1
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(written) if content is None else content)
        return path

    return write
