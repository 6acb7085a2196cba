from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from octavolt.networks.depthwise import DepthwiseConv2d, quick_on_cpus


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 2e-2)])
def test_gradients_are_those_of_the_library(
    size: int, stride: int, side: int, precision: str, tolerance: float
) -> None:
    """In bf16 the library rounds its sums once more: 2^-8 of the largest is 4e-3."""
    torch.manual_seed(0)
    library = nn.Conv2d(24, 24, side, stride, padding=side // 2, groups=24, bias=False)
    ours = quick_on_cpus(nn.Sequential(deepcopy(library)))
    assert isinstance(ours[0], DepthwiseConv2d)  # type: ignore[index]
    maps = torch.randn(8, 24, size, size)
    results = []
    for network in (library, ours):
        given = maps.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            outputs = network(given)
        high = outputs.shape[2]
        (outputs.float() * torch.arange(high * high * 1.0).reshape(high, high)).sum().backward()
        weight = next(network.parameters())
        results.append((outputs.detach(), given.grad, weight.grad))
    for expected, found in zip(*results, strict=True):
        assert expected is not None
        assert found is not None
        scale = float(expected.abs().max())
        assert_close(found.float(), expected.float(), rtol=0, atol=tolerance * max(scale, 1e-6))


def test_other_convolutions_stay_what_they_are() -> None:
    body = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=1),
        nn.Conv2d(8, 8, 7, padding=3, groups=8, bias=False),
        nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False),
    )
    quick_on_cpus(body)
    assert all(type(module) is nn.Conv2d for module in body)
