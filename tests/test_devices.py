from collections.abc import Iterator

import pytest
import torch

from octavolt.devices import allow_attention

FLAGS = ("flash", "mem_efficient", "math", "cudnn")


def taken() -> set[str]:
    """Return what attention on GPUs may take, as torch tells it."""
    return {name for name in FLAGS if getattr(torch.backends.cuda, f"{name}_sdp_enabled")()}


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    before = taken()
    yield
    allow_attention(frozenset(before))


@pytest.mark.parametrize("kernels", [{"mem_efficient", "math"}, set(FLAGS)], ids=["volta", "all"])
def test_torch_is_told_which_attention_it_may_take(kernels: set[str]) -> None:
    allow_attention(frozenset(kernels))
    assert taken() == kernels


@pytest.mark.gpu
def test_attention_under_the_volta_policy_takes_the_memory_efficient_kernel() -> None:
    """Whatever the card: the profiler names the kernel that ran."""
    allow_attention(frozenset({"mem_efficient", "math"}))
    query, key, value = torch.randn(3, 2, 4, 64, 64, device="cuda", dtype=torch.float16)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    names = {event.key for event in profile.key_averages()}
    assert "aten::_scaled_dot_product_efficient_attention" in names
    assert not any("flash" in name for name in names)
