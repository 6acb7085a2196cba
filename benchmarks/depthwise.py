"""Times of both ways to the gradients of 3x3 depthwise convolutions on this CPU, in bf16.

    python benchmarks/depthwise.py

The last line of output is one JSON document. Times are medians, the two ways in turn.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from octavolt.networks.depthwise import gradient_of_maps, gradient_of_weight

SHAPES = [(96, 112, 2), (144, 56, 2), (192, 28, 2), (576, 14, 2), (576, 4, 2), (960, 2, 1)]
"""Channels, height and width of the maps, stride: MobileNetV2 at 224 and at 64 pixels."""


def seconds(way: Callable[[], object]) -> float:
    """Return the time of one call."""
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def library(gradient: Tensor, maps: Tensor, weight: Tensor, stride: int) -> None:
    """Take both gradients by the library."""
    torch.ops.aten.convolution_backward(
        gradient,
        maps,
        weight,
        None,
        (stride, stride),
        (1, 1),
        (1, 1),
        False,
        (0, 0),
        len(weight),
        (True, True, False),
    )


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    rows = []
    for channels, size, stride in SHAPES:
        maps = torch.randn(arguments.batch, channels, size, size, dtype=torch.bfloat16)
        maps = maps.to(memory_format=torch.channels_last)
        weight = torch.randn(channels, 1, 3, 3, dtype=torch.bfloat16)
        outputs = torch.conv2d(maps, weight, stride=stride, padding=1, groups=channels)
        gradient = torch.randn_like(outputs)
        given = (gradient, maps, weight, stride)
        ways: dict[str, Callable[[], object]] = {
            "library": lambda given=given: library(*given),
            "ours": lambda given=given: (gradient_of_maps(*given), gradient_of_weight(*given)),
        }
        for way in ways.values():
            way()
        rounds = [
            {name: seconds(way) for name, way in ways.items()} for _ in range(arguments.rounds)
        ]
        times = {name: statistics.median(one[name] for one in rounds) for name in ways}
        ratio = statistics.median(one["library"] / one["ours"] for one in rounds)
        rows.append(
            {"channels": channels, "pixels": size, "stride": stride, **times} | {"x": ratio}
        )
        print(
            f"{channels} x {size} x {size}, stride {stride}: library "
            f"{1000 * times['library']:.1f} ms, ours {1000 * times['ours']:.1f} ms, {ratio:.1f}x"
        )
    print(json.dumps({"threads": torch.get_num_threads(), "batch": arguments.batch, "rows": rows}))


if __name__ == "__main__":
    main()
