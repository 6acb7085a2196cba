"""Depthwise convolutions on CPUs, where the library's own gradient is slow on small maps.

oneDNN, as torch 2.10 has it, takes the gradient of 3x3 depthwise weights over maps of 2x2 pixels
and smaller from a reference kernel: 10 to 27 ms on one core for 576 to 960 channels and 32
pictures in bf16, against 1 to 1.5 ms for the nine sums below. Networks that halve pictures five
times meet such maps with pictures of 64 pixels and fewer.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.grad import conv2d_input

SMALL_MAP_PIXELS = 2
"""Height and width up to which the library takes its reference kernel."""


class SmallMapConvolution(torch.autograd.Function):
    """A 3x3 depthwise convolution with stride 1 and padding 1."""

    @staticmethod
    def forward(
        context: Any,
        maps: Float[Tensor, "batch channels height width"],
        weight: Float[Tensor, "channels 1 3 3"],
    ) -> Float[Tensor, "batch channels height width"]:
        """Return the convolved maps."""
        context.save_for_backward(maps, weight)
        return torch.conv2d(maps, weight, padding=1, groups=len(weight))

    @staticmethod
    def backward(
        context: Any, gradient: Float[Tensor, "batch channels height width"]
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients of maps and weight; sums are in fp32."""
        maps, weight = context.saved_tensors
        of_maps = conv2d_input(maps.shape, weight, gradient, padding=1, groups=len(weight))
        height, width = gradient.shape[2:]
        padded = pad(maps, (1, 1, 1, 1))
        of_weight = torch.stack(
            [
                (gradient * padded[:, :, top : top + height, left : left + width]).sum(
                    (0, 2, 3), dtype=torch.float32
                )
                for top in range(3)
                for left in range(3)
            ],
            dim=1,
        )
        return of_maps, of_weight.reshape(weight.shape).to(weight.dtype)


class DepthwiseConv2d(nn.Conv2d):
    """torchvision's depthwise convolution, with a gradient that is quick on small maps too."""

    def forward(
        self, input: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels out_height out_width"]:
        """Return the convolved maps."""
        small = max(input.shape[2:]) <= SMALL_MAP_PIXELS and self.stride == (1, 1)
        if small and input.device.type == "cpu" and torch.is_grad_enabled():
            weight = self.weight
            if torch.is_autocast_enabled("cpu"):
                narrow = torch.get_autocast_dtype("cpu")
                input, weight = input.to(narrow), weight.to(narrow)
            convolved: Tensor = SmallMapConvolution.apply(input, weight)
            return convolved  # (a function of autograd carries no types)
        return self._conv_forward(input, self.weight, self.bias)


def quick_on_small_maps(body: nn.Module) -> nn.Module:
    """Make the 3x3 depthwise convolutions of a network quick on small maps, in place."""
    for module in body.modules():
        if (
            type(module) is nn.Conv2d
            and module.groups == module.in_channels == module.out_channels
            and module.kernel_size == (3, 3)
            and module.padding == (1, 1)
            and module.dilation == (1, 1)
            and module.bias is None
        ):
            module.__class__ = DepthwiseConv2d
    return body
