"""Darknet's .cfg: sections of values, a layer each, the first for the whole network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from octavolt.errors import OctavoltError, UnknownNameError

MOST_BYTES = 4 * 2**20
"""The longest published cfg has 40 kB."""
MOST_LAYERS = 2000
NET = ("net", "network")
LAYERS = {"convolutional", "shortcut", "route", "upsample", "maxpool", "dropout", "yolo"}
"""Layers of the YOLOv3 family."""
OTHER_NAMES = {"conv": "convolutional", "max": "maxpool"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section, its values as they are written."""

    kind: str
    values: dict[str, str]
    source: str = ""
    """The file, for messages."""
    line: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    """Where each value stands."""

    def fault(self, name: str, rule: str) -> OctavoltError:
        """Return the error for a value that can't be used."""
        line = self.lines.get(name, self.line)
        if name not in self.values:
            return OctavoltError(
                f"{self.source}, line {line}: [{self.kind}] has no {name}; it must be {rule}."
            )
        return OctavoltError(
            f"{self.source}, line {line}: {name} is '{self.values[name]}'; it must be {rule}."
        )

    def number(self, name: str, default: float) -> float:
        """Return a number."""
        try:
            return float(self.values.get(name, default))
        except ValueError as error:
            raise self.fault(name, "a number") from error

    def whole(
        self, name: str, default: int | None = None, *, least: int = 1, most: int = 2**20
    ) -> int:
        """Return a whole number; one without a default must be there."""
        text = self.values.get(name, default)
        try:
            value = int(text) if text is not None else least - 1
        except ValueError as error:
            raise self.fault(name, "a whole number") from error
        if not least <= value <= most:
            raise self.fault(name, f"a whole number from {least} to {most}")
        return value

    def wholes(self, name: str, default: str | None = None) -> tuple[int, ...]:
        """Return whole numbers with commas between."""
        try:
            return tuple(int(one) for one in pieces(self.values.get(name, default)))
        except ValueError as error:
            raise self.fault(name, "whole numbers with commas between") from error

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return numbers with commas between."""
        try:
            return tuple(float(one) for one in pieces(self.values.get(name)))
        except ValueError as error:
            raise self.fault(name, "numbers with commas between") from error

    def changed(self, **values: str) -> "Section":
        """Return the section with other values."""
        return replace(self, values=self.values | values)


def pieces(text: str | None) -> list[str]:
    """Return what stands between commas; a comma at the end ends nothing."""
    if text is None:
        raise ValueError("missing")
    return [one for one in (one.strip() for one in text.split(",")) if one]


@dataclass(frozen=True, kw_only=True)
class Config:
    """A network as its cfg describes it."""

    net: Section
    layers: tuple[Section, ...]

    @property
    def height(self) -> int:
        """Return the height of the input in pixels."""
        return self.net.whole("height", 416)

    @property
    def width(self) -> int:
        """Return the width of the input in pixels."""
        return self.net.whole("width", 416)

    def heads(self) -> list[int]:
        """Return which layers are detection heads."""
        return [place for place, one in enumerate(self.layers) if one.kind == "yolo"]


def read_cfg(path: Path) -> Config:
    """Return the network that a cfg describes; raise, with the line, on what isn't understood."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise OctavoltError(f"{path} is larger than any cfg: 4 MiB at most.")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise OctavoltError(f"{path} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise OctavoltError(f"{path} is no cfg: it is not text.") from error
    return parse_cfg(text, source=str(path))


def parse_cfg(text: str, *, source: str) -> Config:
    """Return the network that a cfg's text describes."""
    first, *layers = [*sections(text, source)] or [Section(kind="", values={}, line=1)]
    if first.kind not in NET:
        raise OctavoltError(
            f"{source}, line {first.line}: a cfg begins with [net], and this one does not."
        )
    for one in layers:
        if one.kind not in LAYERS:
            error = UnknownNameError("layer", one.kind, LAYERS)
            raise OctavoltError(f"{source}, line {one.line}: {error}")
    config = Config(net=first, layers=tuple(layers))
    if not config.heads():
        raise OctavoltError(f"{source} has no [yolo] section: it describes no detector.")
    if len(layers) > MOST_LAYERS:
        raise OctavoltError(f"{source} has {len(layers):,} layers; at most {MOST_LAYERS:,} are.")
    return config


def sections(text: str, source: str) -> Iterator[Section]:
    """Yield the sections in order; '#' and ';' begin comments."""
    current: Section | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].partition(";")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            if current is not None:
                yield current
            kind = line.strip("[] ").lower()
            kind = OTHER_NAMES.get(kind, kind)
            current = Section(kind=kind, values={}, source=source, line=number)
            continue
        name, equals, value = line.partition("=")
        if not equals or current is None:
            raise OctavoltError(
                f"{source}, line {number}: '{line[:60]}' is neither [layer] nor name=value."
            )
        current.values[name.strip()] = value.strip()
        current.lines[name.strip()] = number
    if current is not None:
        yield current


def write_cfg(config: Config) -> str:
    """Return the text of a cfg, as Darknet and OpenCV 4 read it."""
    blocks = [
        "\n".join([f"[{one.kind}]", *(f"{name}={value}" for name, value in one.values.items())])
        for one in (config.net, *config.layers)
    ]
    return "\n\n".join(blocks) + "\n"


def with_classes(config: Config, classes: int) -> Config:
    """Return the network with heads for so many classes."""
    layers = [*config.layers]
    for place in config.heads():
        head, before = layers[place], layers[place - 1]
        if before.kind != "convolutional":
            raise OctavoltError(
                f"{head.source}, line {head.line}: a [yolo] stands after [{before.kind}]; only a "
                "[convolutional] can be fitted to the number of classes."
            )
        anchors = len(head.wholes("mask"))
        layers[place] = head.changed(classes=str(classes))
        layers[place - 1] = before.changed(filters=str(anchors * (5 + classes)))
    return replace(config, layers=tuple(layers))


def with_anchors(config: Config, anchors: Sequence[tuple[float, float]]) -> Config:
    """Return the network with other anchors: widths and heights in pixels of the input."""
    text = ", ".join(f"{width:g},{height:g}" for width, height in anchors)
    layers = [*config.layers]
    for place in config.heads():
        layers[place] = layers[place].changed(anchors=text, num=str(len(anchors)))
    return replace(config, layers=tuple(layers))


def anchors_of(config: Config) -> tuple[tuple[float, float], ...]:
    """Return all anchors: widths and heights in pixels of the input."""
    head = config.layers[config.heads()[0]]
    values = head.numbers("anchors")
    if len(values) % 2 or not values or min(values) <= 0:
        raise head.fault("anchors", "pairs of widths and heights above 0")
    return tuple(zip(values[::2], values[1::2], strict=True))
