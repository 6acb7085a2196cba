"""What the driver tells of the cards, by NVML; nothing is required to exist."""

from collections.abc import Callable
from typing import Any, TypeVar

from octavolt.doctor.snapshot import Card, NvLink

Told = TypeVar("Told")

REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of `nvmlClocksThrottleReasons`, in nvml.h."""
MOST_LINKS = 6
"""Of a V100."""


def read_cards(nvml: Any = None) -> tuple[str | None, tuple[Card, ...], str | None]:
    """Return the driver's version, its cards, and why it can't be asked, if it can't."""
    if nvml is None:
        import pynvml

        nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        # No library is no driver: what the bus tells then says whether one is missing.
        missing = getattr(nvml, "NVML_ERROR_LIBRARY_NOT_FOUND", 12)
        return None, (), None if error.value == missing else str(error)
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        buses = {bus_of(nvml, one): number for number, one in enumerate(handles)}
        driver = as_text(nvml.nvmlSystemGetDriverVersion())
        return driver, tuple(card(nvml, one, buses) for one in handles), None
    except nvml.NVMLError as error:
        return None, (), str(error)
    finally:
        nvml.nvmlShutdown()


def card(nvml: Any, handle: Any, buses: dict[str, int]) -> Card:
    """Return one card; what its driver doesn't tell stays None."""

    def ask(
        function: str, *rest: Any, then: Callable[[Any], Told] = lambda one: one
    ) -> Told | None:
        try:
            return then(getattr(nvml, function)(handle, *rest))
        except (nvml.NVMLError, AttributeError, TypeError, ValueError):
            return None

    ids = nvml.nvmlDeviceGetPciInfo(handle).pciDeviceId
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    retired = [ask("nvmlDeviceGetRetiredPages", cause, then=len) for cause in (0, 1)]
    limits = ask("nvmlDeviceGetPowerManagementLimitConstraints") or (None, None)
    bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    return Card(
        name=as_text(nvml.nvmlDeviceGetName(handle)).removeprefix("NVIDIA "),
        pci_id=f"{ids & 0xFFFF:04x}:{ids >> 16:04x}",
        memory_bytes=memory.total,
        used_bytes=memory.used,
        processes=ask("nvmlDeviceGetComputeRunningProcesses", then=len),
        ecc=ask("nvmlDeviceGetEccMode", then=lambda modes: bool(modes[0])),
        retired_pages=None if None in retired else sum(one for one in retired if one),
        retirement_pending=ask("nvmlDeviceGetRetiredPagesPendingStatus", then=bool),
        pcie_generation=ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        pcie_width=ask("nvmlDeviceGetCurrPcieLinkWidth"),
        widest_pcie=ask("nvmlDeviceGetMaxPcieLinkWidth"),
        power_limit_watts=ask("nvmlDeviceGetPowerManagementLimit", then=watts),
        default_limit_watts=ask("nvmlDeviceGetPowerManagementDefaultLimit", then=watts),
        lowest_limit_watts=None if limits[0] is None else watts(limits[0]),
        highest_limit_watts=None if limits[1] is None else watts(limits[1]),
        core_celsius=ask("nvmlDeviceGetTemperature", 0),
        memory_celsius=ask(
            "nvmlDeviceGetFieldValues", [82], then=lambda found: int(found[0].value.uiVal)
        ),
        clock_megahertz=ask("nvmlDeviceGetClockInfo", 1),
        highest_clock_megahertz=ask("nvmlDeviceGetMaxClockInfo", 1),
        throttled_by=tuple(name for bit, name in REASONS.items() if bits & bit),
        persistence=ask("nvmlDeviceGetPersistenceMode", then=bool),
        links=links(nvml, handle, buses),
    )


def links(nvml: Any, handle: Any, buses: dict[str, int]) -> tuple[NvLink, ...]:
    """Return the links that a card has, up or down; none on cards without."""
    found = []
    for number in range(MOST_LINKS):
        try:
            up = bool(nvml.nvmlDeviceGetNvLinkState(handle, number))
            peer = None
            if up:
                info = nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, number)
                peer = buses.get(as_text(info.busId).lower())
            found.append(NvLink(up=up, peer=peer))
        except (nvml.NVMLError, AttributeError):
            break
    return tuple(found)


def bus_of(nvml: Any, handle: Any) -> str:
    """Return where on the bus a card is; it isn't kept."""
    return as_text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower()


def as_text(value: Any) -> str:
    """Return a string of the binding, whose older versions give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def watts(milliwatts: float) -> float:
    """Return watts."""
    return milliwatts / 1000
