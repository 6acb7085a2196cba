"""Every test begins with the same state of torch, and tests that need a GPU run where one is."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs an NVIDIA GPU, and torch finds none here")
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def same_state_of_torch() -> Iterator[None]:
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    # As many as the smallest machine has, so that sums are added in the same order everywhere.
    torch.set_num_threads(2)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that is remembered of pictures goes into the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def standard_input(tmp_path: Path) -> Iterator[Callable[[bytes], None]]:
    """Yield a function that gives what runs next its standard input; put back afterwards."""
    kept = os.dup(0)

    def give(content: bytes) -> None:
        file = tmp_path / "standard-input"
        file.write_bytes(content)
        descriptor = os.open(file, os.O_RDONLY)
        os.dup2(descriptor, 0)
        os.close(descriptor)

    yield give
    os.dup2(kept, 0)
    os.close(kept)
