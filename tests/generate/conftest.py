"""Generation at sizes that one thread is enough for."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread(same_state_of_torch: None) -> None:
    """Let no thread wait for another: products this small take less time than that."""
    torch.set_num_threads(1)
