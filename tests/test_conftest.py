import pytest
import torch


@pytest.mark.gpu
def test_a_gpu_is_there_where_tests_for_gpus_run() -> None:
    assert torch.cuda.is_available()


@pytest.mark.parametrize("_", range(2))
def test_no_test_inherits_the_state_of_another(_: int) -> None:
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_num_threads() == 2
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


@pytest.mark.parametrize("_", range(2))
def test_random_numbers_are_the_same_in_every_test(_: int) -> None:
    assert torch.rand(()) == torch.rand((), generator=torch.Generator().manual_seed(0))
