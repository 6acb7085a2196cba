"""Depthwise convolutions on CPUs, whose gradients the library is slow at in three cases.

oneDNN, as torch 2.10 has it, takes kernels for depthwise convolutions that are made for other
shapes: in bf16 with stride 2 for the gradient of the maps, in bf16 of 5x5 for the gradient of the
weights, and of 3x3 over maps of 2x2 pixels and smaller for that too. docs/benchmarks.md has the
times of both ways.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.grad import conv2d_weight

QUICK_SHAPES = {((3, 3), (1, 1)), ((5, 5), (2, 2))}
"""Of kernels, with their padding."""
SMALL_MAP_PIXELS = 2
"""Height and width up to which the library takes a slow kernel for the gradient of weights."""


class QuickDepthwise(torch.autograd.Function):
    """A depthwise convolution that keeps the size, and its gradients by quick kernels."""

    @staticmethod
    def forward(
        context: Any,
        maps: Float[Tensor, "batch channels height width"],
        weight: Float[Tensor, "channels 1 side side"],
        stride: int,
    ) -> Float[Tensor, "batch channels out_height out_width"]:
        """Return the convolved maps."""
        context.save_for_backward(maps, weight)
        context.stride = stride
        padding = weight.shape[2] // 2
        return torch.conv2d(maps, weight, stride=stride, padding=padding, groups=len(weight))

    @staticmethod
    def backward(
        context: Any, gradient: Float[Tensor, "batch channels out_height out_width"]
    ) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of maps and weight."""
        maps, weight = context.saved_tensors
        return (
            gradient_of_maps(gradient, maps, weight, context.stride),
            gradient_of_weight(gradient, maps, weight, context.stride),
            None,
        )


quick_depthwise: Callable[[Tensor, Tensor, int], Tensor] = QuickDepthwise.apply


def gradient_of_maps(
    gradient: Float[Tensor, "batch channels out_height out_width"],
    maps: Float[Tensor, "batch channels height width"],
    weight: Float[Tensor, "channels 1 side side"],
    stride: int,
) -> Float[Tensor, "batch channels height width"]:
    """Return the gradient convolved with the turned weight, with zeros where a stride skipped."""
    if stride > 1:
        spread = torch.zeros_like(maps)
        spread[:, :, ::stride, ::stride] = gradient
        gradient = spread
    padding = weight.shape[2] // 2
    return torch.conv2d(gradient, weight.flip(2, 3), padding=padding, groups=len(weight))


def gradient_of_weight(
    gradient: Float[Tensor, "batch channels out_height out_width"],
    maps: Float[Tensor, "batch channels height width"],
    weight: Float[Tensor, "channels 1 side side"],
    stride: int,
) -> Float[Tensor, "channels 1 side side"]:
    """Return the gradient of the weight: of 5x5 in fp32, of 3x3 over small maps as nine sums."""
    height, width = gradient.shape[2:]
    if weight.shape[2] == 5:
        exact: Tensor = conv2d_weight(
            maps.float(),
            weight.shape,
            gradient.float(),
            stride=stride,
            padding=2,
            groups=len(weight),
        )
        return exact.to(weight.dtype)
    if max(height, width) > SMALL_MAP_PIXELS:
        of_weight: Tensor = conv2d_weight(
            maps, weight.shape, gradient, stride=stride, padding=1, groups=len(weight)
        )
        return of_weight
    padded = pad(maps, (1, 1, 1, 1))
    rows, columns = (height - 1) * stride + 1, (width - 1) * stride + 1
    sums = [
        (gradient * padded[:, :, top : top + rows : stride, left : left + columns : stride]).sum(
            (0, 2, 3), dtype=torch.float32
        )
        for top in range(3)
        for left in range(3)
    ]
    return torch.stack(sums, dim=1).reshape(weight.shape).to(weight.dtype)


class DepthwiseConv2d(nn.Conv2d):
    """torchvision's depthwise convolution of 3x3 or 5x5, quick in training on a CPU."""

    def forward(
        self, input: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels out_height out_width"]:
        """Return the convolved maps."""
        if input.device.type == "cpu" and torch.is_grad_enabled():
            weight = self.weight
            if torch.is_autocast_enabled("cpu"):
                narrow = torch.get_autocast_dtype("cpu")
                input, weight = input.to(narrow), weight.to(narrow)
            stride = self.stride[0]
            large = self.kernel_size == (5, 5)
            slow = (stride > 1 or large) and input.dtype == torch.bfloat16
            if slow or (not large and max(input.shape[2:]) <= SMALL_MAP_PIXELS * stride):
                return quick_depthwise(input, weight, stride)
        convolved: Tensor = self._conv_forward(input, self.weight, self.bias)
        return convolved


def quick_on_cpus(body: nn.Module) -> nn.Module:
    """Make the depthwise convolutions of a network quick on CPUs, in place."""
    for module in body.modules():
        if (
            type(module) is nn.Conv2d
            and module.groups == module.in_channels == module.out_channels
            and (module.kernel_size, module.padding) in QUICK_SHAPES
            and module.dilation == (1, 1)
            and module.stride in {(1, 1), (2, 2)}
            and module.bias is None
        ):
            module.__class__ = DepthwiseConv2d
    return body
