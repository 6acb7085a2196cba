"""The layers of a Darknet network, and the body that runs them."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from octavolt.networks.darknet.cfg import Config, Section

EPSILON = 1e-6
"""Of batch norms: Darknet adds it to the deviation, OpenCV to the variance; either is far below
the deviations of trained networks."""
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "linear": nn.Identity,
    "leaky": lambda: nn.LeakyReLU(0.1, inplace=True),
    "relu": lambda: nn.ReLU(inplace=True),
    "mish": lambda: nn.Mish(inplace=True),
    "logistic": nn.Sigmoid,
    "swish": lambda: nn.SiLU(inplace=True),
}


class Convolutional(nn.Module):
    """A convolution, its batch norm if it has one, and its activation."""

    def __init__(self, section: Section, channels: int) -> None:
        super().__init__()
        size, groups = section.whole("size", 1), section.whole("groups", 1)
        self.channels = section.whole("filters")
        if channels % groups or self.channels % groups:
            raise section.fault("groups", f"a divisor of {channels} and {self.channels} channels")
        padding = section.whole("padding", 0, least=0)
        if section.whole("pad", 0, least=0):
            padding = size // 2
        normalized = bool(section.whole("batch_normalize", 0, least=0))
        self.convolution = nn.Conv2d(
            channels,
            self.channels,
            size,
            stride=section.whole("stride", 1),
            padding=padding,
            groups=groups,
            bias=not normalized,
        )
        self.norm = nn.BatchNorm2d(self.channels, eps=EPSILON) if normalized else None
        self.activation = activation(section)

    def forward(self, features: Tensor) -> Tensor:
        """Return the features of the next layer."""
        features = self.convolution(features)
        if self.norm is not None:
            features = self.norm(features)
        result: Tensor = self.activation(features)
        return result


class Shortcut(nn.Module):
    """The sum with an earlier layer's features; what only one of them has stays as it is."""

    def __init__(self, section: Section, source: int, channels: int) -> None:
        super().__init__()
        self.sources = (source,)
        self.channels = channels
        self.activation = activation(section)

    def forward(self, features: Tensor, earlier: Tensor) -> Tensor:
        """Return the features of the next layer."""
        result: Tensor = self.activation(features + earlier)
        return result


class Route(nn.Module):
    """The channels of earlier layers side by side, or one group of each one's."""

    def __init__(self, section: Section, sources: Sequence[int], channels: Sequence[int]) -> None:
        super().__init__()
        self.sources = tuple(sources)
        self.groups = section.whole("groups", 1)
        self.group = section.whole("group_id", 0, least=0)
        if self.group >= self.groups:
            raise section.fault("group_id", f"below {self.groups}, the groups")
        if any(one % self.groups for one in channels):
            raise section.fault("groups", f"a divisor of {', '.join(map(str, channels))} channels")
        self.channels = sum(channels) // self.groups

    def forward(self, *earlier: Tensor) -> Tensor:
        """Return the features of the next layer."""
        if self.groups > 1:
            earlier = tuple(one.chunk(self.groups, dim=1)[self.group] for one in earlier)
        return torch.cat(earlier, dim=1) if len(earlier) > 1 else earlier[0]


class MaxPool(nn.Module):
    """The largest of each window, padded by its size less one, as Darknet does."""

    def __init__(self, section: Section, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.stride = section.whole("stride", 1)
        self.size = section.whole("size", self.stride)
        self.padding = section.whole("padding", self.size - 1, least=0)

    def forward(self, features: Tensor) -> Tensor:
        """Return the features of the next layer."""
        first, last = self.padding // 2, self.padding - self.padding // 2
        if first == last and 2 * first <= self.size:
            return functional.max_pool2d(features, self.size, self.stride, padding=first)
        lowest = torch.finfo(features.dtype).min
        padded = functional.pad(features, (first, last, first, last), value=lowest)
        return functional.max_pool2d(padded, self.size, self.stride)


class Plain(nn.Module):
    """A layer that changes no number of channels."""

    def __init__(self, module: nn.Module, channels: int) -> None:
        super().__init__()
        self.module = module
        self.channels = channels

    def forward(self, features: Tensor) -> Tensor:
        """Return the features of the next layer."""
        result: Tensor = self.module(features)
        return result


class Head(nn.Module):
    """Where boxes are read off: gives its input on, and says how to decode it."""

    def __init__(self, section: Section, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.classes = section.whole("classes")
        mask = section.wholes("mask")
        values = section.numbers("anchors")
        count = len(values) // 2
        if not mask or not all(0 <= one < count for one in mask) or len(values) % 2:
            raise section.fault("mask", f"numbers of the {count} anchors, from 0 to {count - 1}")
        self.mask = mask
        self.all_anchors = tuple(zip(values[::2], values[1::2], strict=True))
        self.anchors = tuple(self.all_anchors[one] for one in mask)
        self.scale_x_y = section.number("scale_x_y", 1.0)
        self.ignore_threshold = section.number("ignore_thresh", 0.5)
        wanted = len(mask) * (5 + self.classes)
        if channels != wanted:
            raise section.fault(
                "classes",
                f"such that {len(mask)} anchors times (5 + classes) are the {channels} channels of "
                "the layer before",
            )

    def forward(self, features: Tensor) -> Tensor:
        """Return what came in."""
        return features


class Body(nn.Module):
    """All layers of a cfg, run in order; its outputs are the heads' maps."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        channels = [config.net.whole("channels", 3)]
        for place, section in enumerate(config.layers):
            layer = build_layer(section, place, channels)
            self.layers.append(layer)
            channels.append(layer.channels)  # type: ignore[arg-type]
        self.kept = frozenset(source for one in self.layers for source in sources_of(one))

    def heads(self) -> list[Head]:
        """Return the detection heads."""
        return [one for one in self.layers if isinstance(one, Head)]

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> list[Float[Tensor, "batch values rows columns"]]:
        """Return a map a head: values are those of each anchor in turn."""
        features = images
        kept: dict[int, Tensor] = {}
        maps = []
        for place, layer in enumerate(self.layers):
            sources = [kept[one] for one in sources_of(layer)]
            features = layer(*sources) if isinstance(layer, Route) else layer(features, *sources)
            if isinstance(layer, Head):
                maps.append(features)
            if place in self.kept:
                kept[place] = features
        return maps


def sources_of(layer: nn.Module) -> tuple[int, ...]:
    """Return the earlier layers whose features a layer takes."""
    return layer.sources if isinstance(layer, Shortcut | Route) else ()


def activation(section: Section) -> nn.Module:
    """Return the activation of a section."""
    name = section.values.get("activation", "linear" if section.kind == "shortcut" else "logistic")
    if name not in ACTIVATIONS:
        raise section.fault("activation", f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def build_layer(section: Section, place: int, channels: Sequence[int]) -> nn.Module:
    """Return a layer; `channels` are those of the input and of each layer before."""
    before = channels[-1]
    if section.kind == "shortcut":
        (source,) = places(section, "from", place)
        if channels[source + 1] != before:
            raise section.fault(
                "from", f"a layer of {before} channels; that one has {channels[source + 1]}"
            )
        return Shortcut(section, source, before)
    if section.kind == "route":
        sources = places(section, "layers", place)
        return Route(section, sources, [channels[one + 1] for one in sources])
    return PLAIN_LAYERS[section.kind](section, before)


def upsampling(section: Section, channels: int) -> Plain:
    """Return the layer that repeats each cell."""
    return Plain(nn.Upsample(scale_factor=section.whole("stride", 2), mode="nearest"), channels)


def dropout(section: Section, channels: int) -> Plain:
    """Return the layer that drops values in training."""
    return Plain(nn.Dropout(section.number("probability", 0.5)), channels)


PLAIN_LAYERS: dict[str, Callable[[Section, int], nn.Module]] = {
    "convolutional": Convolutional,
    "maxpool": MaxPool,
    "upsample": upsampling,
    "dropout": dropout,
    "yolo": Head,
}
"""Layers that take the one before alone, and its channels."""


def places(section: Section, name: str, place: int) -> list[int]:
    """Return which layers a section names: from 0, or backwards from itself below 0."""
    named = section.wholes(name)
    found = [one if one >= 0 else place + one for one in named]
    if not found or not all(0 <= one < place for one in found):
        raise section.fault(name, f"layers before this one, which is layer {place}")
    if name == "from" and len(found) > 1:
        raise section.fault(name, "one layer")
    return found
