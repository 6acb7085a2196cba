"""Which releases of torch hold code for sm_70, the V100's compute capability."""

from dataclasses import dataclass

from octavolt.errors import OctavoltError
from octavolt.hardware.facts import Confidence


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A minor release of torch: its ordinary wheel, and the one built with CUDA 12.6."""

    torch: tuple[int, int]
    torchvision: tuple[int, int]
    """The release that was built for it."""
    ordinary_build: str
    """The CUDA build that plain `pip install torch` gives on Linux, as in wheel names."""
    ordinary_wheel_has_sm70: bool
    cu126_wheel_has_sm70: bool
    """False too if there is no such wheel."""
    cudnn: str | None
    """Bundled with the ordinary wheel; None if the wheel was not opened. So are the next two."""
    nccl: str | None
    triton: str | None
    confidence: Confidence
    source: str


RELEASES: tuple[Release, ...] = (
    Release(
        torch=(2, 6),
        torchvision=(0, 21),
        ordinary_build="cu124",
        ordinary_wheel_has_sm70=True,
        cu126_wheel_has_sm70=True,
        cudnn="9.1.0.70",
        nccl="2.21.5",
        triton="3.2.0",
        confidence="high",
        source="code sections of the published 2.6.0 wheel: 5.0 to 9.0",
    ),
    Release(
        torch=(2, 7),
        torchvision=(0, 22),
        ordinary_build="cu126",
        ordinary_wheel_has_sm70=True,
        cu126_wheel_has_sm70=True,
        cudnn="9.5.1.17",
        nccl="2.26.2",
        triton="3.3.1",
        confidence="high",
        source="code sections of the published 2.7.1 wheel: 5.0 to 9.0",
    ),
    Release(
        torch=(2, 8),
        torchvision=(0, 23),
        ordinary_build="cu128",
        ordinary_wheel_has_sm70=True,
        cu126_wheel_has_sm70=True,
        cudnn="9.10.2.21",
        nccl="2.27.3",
        triton="3.4.0",
        confidence="high",
        source="code sections of the published 2.8.0 wheel: 7.0 to 12.0; pytorch#157517",
    ),
    Release(
        torch=(2, 9),
        torchvision=(0, 24),
        ordinary_build="cu128",
        ordinary_wheel_has_sm70=True,
        cu126_wheel_has_sm70=True,
        cudnn="9.10.2.21",
        nccl="2.27.5",
        triton="3.5.1",
        confidence="high",
        source="code sections of the published 2.9.1 wheel",
    ),
    Release(
        torch=(2, 10),
        torchvision=(0, 25),
        ordinary_build="cu128",
        ordinary_wheel_has_sm70=True,
        cu126_wheel_has_sm70=True,
        cudnn="9.10.2.21",
        nccl="2.27.5",
        triton="3.6.0",
        confidence="high",
        source="456 code sections for sm_70 in libtorch_cuda of the published 2.10.0 wheel",
    ),
    Release(
        torch=(2, 11),
        torchvision=(0, 26),
        ordinary_build="cu130",
        ordinary_wheel_has_sm70=False,
        cu126_wheel_has_sm70=True,
        cudnn="9.19.0.56",
        nccl="2.28.9",
        triton="3.6.0",
        confidence="high",
        source="code sections of the published 2.11.0 wheel: 7.5 to 12.0; pytorch#175253",
    ),
    Release(
        torch=(2, 12),
        torchvision=(0, 27),
        ordinary_build="cu130",
        ordinary_wheel_has_sm70=False,
        cu126_wheel_has_sm70=True,
        cudnn="9.20.0.48",
        nccl="2.29.7",
        triton="3.7.1",
        confidence="high",
        source="pytorch#182849, pytorch#178665",
    ),
    Release(
        torch=(2, 13),
        torchvision=(0, 28),
        ordinary_build="cu130",
        ordinary_wheel_has_sm70=False,
        cu126_wheel_has_sm70=True,
        cudnn="9.20.0.48",
        nccl="2.29.7",
        triton="3.7.1",
        confidence="medium",
        source="torch's own table of architectures by CUDA build",
    ),
    Release(
        torch=(2, 14),
        torchvision=(0, 29),
        ordinary_build="cu130",
        ordinary_wheel_has_sm70=False,
        cu126_wheel_has_sm70=True,
        cudnn="9.24.0.43",
        nccl="2.30.7",
        triton="3.8.0",
        confidence="high",
        source="code sections of the published 2.14.1 wheel: 7.5 to 12.1; pytorch#190355 for cu126",
    ),
    Release(
        torch=(2, 15),
        torchvision=(0, 30),
        ordinary_build="cu13x",
        ordinary_wheel_has_sm70=False,
        cu126_wheel_has_sm70=False,
        cudnn=None,
        nccl=None,
        triton=None,
        confidence="medium",
        source="pytorch#190385, pytorch#196249: no cu126 wheel is published; wheel not opened",
    ),
)
"""Oldest first, without gaps. Pairs with torchvision other than 2.10 and 2.14 follow its README."""


def find_release(version: str) -> Release:
    """Return the row of a version such as '2.10.0+cu128'."""
    for release in RELEASES:
        if version.split(".")[:2] == [str(part) for part in release.torch]:
            return release
    known = f"{dotted(RELEASES[0].torch)} to {dotted(RELEASES[-1].torch)}"
    raise OctavoltError(
        f"Nothing is known of torch {version}: the table in hardware/support.py holds {known}. "
        f"Install torch {dotted(last_ordinary_wheel_with_sm70().torch)}, or add a row."
    )


def last_ordinary_wheel_with_sm70() -> Release:
    """Return the newest release that runs on a V100 after a plain `pip install torch`."""
    return max((one for one in RELEASES if one.ordinary_wheel_has_sm70), key=lambda one: one.torch)


def last_cu126_wheel_with_sm70() -> Release:
    """Return the newest release of which any official wheel runs on a V100."""
    return max((one for one in RELEASES if one.cu126_wheel_has_sm70), key=lambda one: one.torch)


def dotted(version: tuple[int, int]) -> str:
    """Return a version as it is written: '2.10'."""
    return ".".join(str(part) for part in version)
