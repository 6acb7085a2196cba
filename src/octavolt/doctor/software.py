"""What is installed, mostly without importing it: a broken torch must not break the diagnosis."""

import platform
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from octavolt.doctor.binaries import architectures
from octavolt.doctor.snapshot import Package, Software

LIBRARY = re.compile(r"\.so(\.\d+)*$")
SMALLEST_LIBRARY_BYTES = 100_000
MOST_LIBRARIES = 200
"""Of one package."""
WATCHED = ("flash-attn", "xformers", "bitsandbytes", "onnxruntime-gpu", "vllm", "deepspeed", "apex")
"""Packages whose GPU code may be loaded later, from elsewhere: told even if none is found."""


def read_software(*, scan: bool = True, precision: str | None = None) -> Software:
    """Return what is installed; `scan` looks into each package's libraries, which takes seconds."""
    found: dict[str, str | None] = {"torch": version("torch"), "torch_error": None}
    built_for: tuple[str, ...] = ()
    cuda = cudnn = None
    if found["torch"]:
        try:
            import torch

            # Of torch's own build, told without a driver, unlike `torch.cuda.get_arch_list`.
            flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
            built_for = tuple((flags or "").split())
            cuda = torch.version.cuda
            cudnn = dotted_cudnn(torch.backends.cudnn.version()) if cuda else None
        except Exception as error:  # whatever is wrong with it is what we are here to tell
            found["torch_error"] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return Software(
        python=platform.python_version(),
        torch=found["torch"],
        torch_error=found["torch_error"],
        torch_cuda=cuda,
        architectures=built_for,
        cudnn=cudnn or installed("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
        nccl=installed("nvidia-nccl-cu12", "nvidia-nccl-cu13"),
        triton=version("triton"),
        torchvision=version("torchvision"),
        transformers=version("transformers"),
        packages=tuple(scanned()) if scan else (),
        precision=precision,
    )


def version(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed(*packages: str) -> str | None:
    """Return the version of the first of these that is installed."""
    return next((one for one in map(version, packages) if one), None)


def dotted_cudnn(number: int | None) -> str | None:
    """Return cuDNN's number as a version: 91002 is 9.10.2, as of version 9; 8902 is 8.9.2."""
    if not number:
        return None
    size = 10_000 if number >= 90_000 else 1_000
    return f"{number // size}.{number % size // 100}.{number % 100}"


def scanned() -> Iterator[Package]:
    """Yield the packages that hold GPU code, or are known to load some, by name."""
    for one in sorted(metadata.distributions(), key=lambda one: str(one.metadata["Name"])):
        name = str(one.metadata["Name"])
        libraries = [
            path
            for file in one.files or ()
            if LIBRARY.search(file.name) and (path := Path(str(one.locate_file(file)))).is_file()
        ]
        found: set[str] = set()
        for path in libraries[:MOST_LIBRARIES]:
            if path.stat().st_size >= SMALLEST_LIBRARY_BYTES:
                found |= architectures(path)
        if found or name in WATCHED:
            yield Package(name=name, version=one.version, architectures=tuple(sorted(found)))
