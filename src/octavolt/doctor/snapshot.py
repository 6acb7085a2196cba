"""What a machine is, as far as it can be read without rights: one document, without its names.

No serial number, host, user or path stands in it, so that it can be shown to others.
"""

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from octavolt.errors import OctavoltError

SCHEMA = 1
MOST_BYTES = 4 * 2**20
"""Of a snapshot's file: a host with 16 cards has some 20 KiB."""

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True, slots=True)
class NvLink:
    """One link of a card."""

    up: bool
    peer: int | None = None
    """Number of the card at its other end, None if it is a switch or not told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """A GPU as the driver tells it; None is what it doesn't tell."""

    name: str
    pci_id: str
    """Vendor and device, as in '10de:1db1'."""
    memory_bytes: int
    used_bytes: int | None = None
    processes: int | None = None
    """Of others that use it."""
    ecc: bool | None = None
    retired_pages: int | None = None
    retirement_pending: bool | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    widest_pcie: int | None = None
    power_limit_watts: float | None = None
    default_limit_watts: float | None = None
    lowest_limit_watts: float | None = None
    highest_limit_watts: float | None = None
    core_celsius: int | None = None
    memory_celsius: int | None = None
    clock_megahertz: int | None = None
    highest_clock_megahertz: int | None = None
    throttled_by: tuple[str, ...] = ()
    """Of `nvmlDeviceGetCurrentClocksThrottleReasons`: see `cards.REASONS`."""
    persistence: bool | None = None
    links: tuple[NvLink, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """An installed package whose files carry code for GPUs."""

    name: str
    version: str
    architectures: tuple[str, ...] | None = None
    """Such as 'sm_70'; None if it was not looked into."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Software:
    """What is installed; None is what isn't, or can't be told."""

    python: str
    torch: str | None = None
    torch_error: str | None = None
    """Why it can't be imported."""
    torch_cuda: str | None = None
    architectures: tuple[str, ...] = ()
    """That torch has kernels for; none in a build for CPUs."""
    cudnn: str | None = None
    nccl: str | None = None
    triton: str | None = None
    torchvision: str | None = None
    transformers: str | None = None
    packages: tuple[Package, ...] = ()
    precision: str | None = None
    """That was asked for, where a verb asks."""
    compiles: bool = False
    """Whether torch.compile is asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """All of it."""

    system: str
    """Such as 'Linux 6.1'."""
    container_cuda: str | None = None
    """Of the image's own toolkit, where it says so."""
    driver: str | None = None
    driver_error: str | None = None
    """Why the driver can't be asked, though there are cards."""
    open_module: bool | None = None
    """Whether the driver's kernel module is the open one."""
    pci_ids: tuple[str, ...] = ()
    """NVIDIA's display and compute devices that the bus has, with or without a driver."""
    cards: tuple[Card, ...] = ()
    software: Software
    processor: str = ""
    processor_flags: tuple[str, ...] = ()
    """Those of bf16 and vector units alone."""
    physical_cores: int = 1
    numa_nodes: int = 1
    memory_bytes: int = 0
    shared_memory_bytes: int | None = None
    """Size of /dev/shm."""
    free_disk_bytes: int | None = None
    """Where runs are written."""
    disk_bytes_per_second: float | None = None
    """Of writing; None if not measured."""
    jpegs_per_second: float | None = None
    """Decoded to 224 pixels by one core, from 500 x 375; None if not measured."""


def to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a document that `from_json` takes."""
    return {"schema": SCHEMA, **dataclasses.asdict(snapshot)}


def read_snapshot(path: Path) -> Snapshot:
    """Return what a file holds. Raises `OctavoltError` with the field that is wrong."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise OctavoltError(f"{path} can't be read: {error.strerror}.") from error
    if len(text) > MOST_BYTES:
        raise OctavoltError(f"{path} is no snapshot: it has over {MOST_BYTES:,} bytes.")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OctavoltError(f"{path} is no snapshot: {error}.") from error
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        raise OctavoltError(
            f"{path} is no snapshot of schema {SCHEMA}, but of {found}. Write it anew with: "
            "octavolt doctor --save FILE"
        )
    del value["schema"]
    try:
        return built(Snapshot, value, "")
    except (TypeError, ValueError) as error:
        raise OctavoltError(f"{path} is no snapshot: {error}.") from error


def built(kind: type[Made], value: Any, place: str) -> Made:
    """Return a dataclass from the dictionary that `asdict` made of it; raises `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'it'} must be an object")  # noqa: TRY004 - one kind of error
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise ValueError(f"{place}{unknown[0]} is no field of a snapshot")
    made = {key: converted(hints[key], one, f"{place}{key}") for key, one in value.items()}
    return kind(**made)


def converted(hint: Any, value: Any, place: str) -> Any:
    """Return a value of JSON as a field's type wants it; raises `ValueError`."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in {types.UnionType, typing.Union}:
        if value is None:
            return None
        return converted(next(one for one in parts if one is not type(None)), value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{place} must be a list")
        return tuple(converted(parts[0], one, f"{place}[{n}]") for n, one in enumerate(value))
    if dataclasses.is_dataclass(hint):
        return built(hint, value, f"{place}.")  # type: ignore[arg-type]
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{place} must be {hint.__name__}, not {value!r:.40}")
    return value
