"""YOLOv3 in three sizes, laid out by code: Redmon and Farhadi 2018, table 1 and section 2.3."""

from collections.abc import Sequence

from octavolt.networks.darknet.cfg import Config, Section

ANCHORS = (
    (10, 13),
    (16, 30),
    (33, 23),
    (30, 61),
    (62, 45),
    (59, 119),
    (116, 90),
    (156, 198),
    (373, 326),
)
"""Widths and heights in pixels at an input of 416: section 2.3 of the paper."""
TINY_ANCHORS = ((10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319))
STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))
"""Channels and residual blocks of Darknet-53."""


class Layout:
    """Layers, added one after the other."""

    def __init__(self, anchors: Sequence[tuple[int, int]], classes: int) -> None:
        self.anchors = anchors
        self.classes = classes
        self.layers: list[Section] = []

    def add(self, kind: str, **values: object) -> int:
        """Add a layer and return its place."""
        texts = {name: str(value) for name, value in values.items()}
        self.layers.append(Section(kind=kind, values=texts, source=kind))
        return len(self.layers) - 1

    def convolution(self, filters: int, size: int, stride: int = 1) -> int:
        """Add a convolution with a batch norm and a leaky ReLU."""
        return self.add(
            "convolutional",
            batch_normalize=1,
            filters=filters,
            size=size,
            stride=stride,
            pad=1,
            activation="leaky",
        )

    def head(self, mask: Sequence[int]) -> None:
        """Add the last convolution of a branch, and what reads boxes off it."""
        filters = len(mask) * (5 + self.classes)
        self.add("convolutional", size=1, stride=1, pad=1, filters=filters, activation="linear")
        self.add(
            "yolo",
            mask=",".join(map(str, mask)),
            anchors=", ".join(f"{width},{height}" for width, height in self.anchors),
            classes=self.classes,
            num=len(self.anchors),
            jitter=0.3,
            ignore_thresh=0.7,
            truth_thresh=1,
            random=1,
        )

    def branch(self, back: int, filters: int, beside: int) -> None:
        """Go back some layers, double the map's size and lay it beside an earlier layer's."""
        self.add("route", layers=-back)
        self.convolution(filters, 1)
        self.add("upsample", stride=2)
        self.add("route", layers=f"-1, {beside}")

    def config(self) -> Config:
        """Return the network, for inputs of 416 pixels."""
        net = {"width": "416", "height": "416", "channels": "3"}
        return Config(net=Section(kind="net", values=net, source="net"), layers=tuple(self.layers))


def yolov3(
    *,
    classes: int = 80,
    stages: Sequence[tuple[int, int]] = STAGES,
    stem: int = 32,
    pyramid: bool = False,
) -> Config:
    """Return YOLOv3, with `pyramid` the one that pools at three sizes before the first head."""
    layout = Layout(ANCHORS, classes)
    layout.convolution(stem, 3)
    ends = []
    for filters, blocks in stages:
        layout.convolution(filters, 3, stride=2)
        for _ in range(blocks):
            layout.convolution(filters // 2, 1)
            layout.convolution(filters, 3)
            layout.add("shortcut", **{"from": -3, "activation": "linear"})
        ends.append(len(layout.layers) - 1)
    for turn, (filters, _) in enumerate(reversed(stages[-3:])):
        if turn:
            layout.branch(4, filters // 2, ends[-1 - turn])
        for place in range(3):
            layout.convolution(filters // 2, 1)
            if pyramid and turn == 0 and place == 1:
                pooled(layout)
                layout.convolution(filters // 2, 1)
            layout.convolution(filters, 3)
        first = 3 * (2 - turn)
        layout.head((first, first + 1, first + 2))
    return layout.config()


def pooled(layout: Layout) -> None:
    """Lay the largest of 5, 9 and 13 cells around beside each cell: He et al. 2014."""
    layout.add("maxpool", stride=1, size=5)
    layout.add("route", layers=-2)
    layout.add("maxpool", stride=1, size=9)
    layout.add("route", layers=-4)
    layout.add("maxpool", stride=1, size=13)
    layout.add("route", layers="-1,-3,-5,-6")


def yolov3_tiny(*, classes: int = 80, stem: int = 16) -> Config:
    """Return YOLOv3-tiny: `stem` channels at first, doubled after each pooling."""
    layout = Layout(TINY_ANCHORS, classes)
    fine = 0
    for turn in range(6):
        fine = layout.convolution(stem * 2**turn, 3) if turn == 4 else fine
        if turn != 4:
            layout.convolution(stem * 2**turn, 3)
        layout.add("maxpool", size=2, stride=2 if turn < 5 else 1)
    layout.convolution(stem * 64, 3)
    layout.convolution(stem * 16, 1)
    layout.convolution(stem * 32, 3)
    layout.head((3, 4, 5))
    layout.branch(4, stem * 8, fine)
    layout.convolution(stem * 16, 3)
    layout.head((0, 1, 2))
    return layout.config()
