"""Which precision and kernels a machine is given: the one place that decides it."""

from dataclasses import dataclass
from typing import Literal, cast

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.cpu import Cpu

Precision = Literal["fp16", "bf16", "fp32"]
Attention = Literal["memory-efficient", "flash", "any"]

ASKED = ("auto", "fp16", "bf16", "fp32")
VOLTA = (7, 0)
AMPERE = (8, 0)
CPU_BF16_UNITS = ("amx_bf16", "avx512_bf16")
"""Flags of processors with bf16 arithmetic, the faster first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """What the choice depends on: a GPU with the processor that feeds it, or a processor alone."""

    kind: Literal["cuda", "cpu"]
    name: str
    capability: tuple[int, int] | None
    """Compute capability of a GPU; None for a CPU."""
    cpu_flags: frozenset[str]
    physical_cores: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """How networks are run here."""

    precision: Precision
    """Of matrix products and convolutions. Weights, losses, norms and boxes are fp32 throughout."""
    autocast: bool
    loss_scaling: bool
    channels_last: bool
    tf32: bool
    attention: Attention
    """The kernel; 'any' leaves torch its choice."""
    compile: bool
    threads: int
    pad_to_multiple: int
    """Tensor cores want sizes in multiples of 16 bytes, which is 8 numbers of fp16."""
    reason: str
    """A sentence for the user."""


def on_cpu(cpu: Cpu) -> Hardware:
    """Return the hardware of a machine whose GPUs, if any, are not used."""
    return Hardware(
        kind="cpu",
        name=cpu.name,
        capability=None,
        cpu_flags=cpu.flags,
        physical_cores=cpu.physical_cores,
    )


def on_gpu(cpu: Cpu, name: str, capability: tuple[int, int]) -> Hardware:
    """Return the hardware of a GPU in that machine."""
    return Hardware(
        kind="cuda",
        name=name,
        capability=capability,
        cpu_flags=cpu.flags,
        physical_cores=cpu.physical_cores,
    )


def policy(hardware: Hardware, asked: str = "auto") -> Policy:
    """Return the fastest safe settings, or those that follow from the precision asked for.

    Capability is what counts: `torch.cuda.is_bf16_supported()` is True on a V100, which emulates
    bf16 at an eighth of the rate of fp16 or less.
    """
    if asked not in ASKED:
        raise UnknownNameError("precision", asked, ASKED)
    check_can(hardware, asked)
    precision = best_precision(hardware) if asked == "auto" else cast(Precision, asked)
    narrow = precision != "fp32"
    return Policy(
        precision=precision,
        autocast=narrow,
        loss_scaling=precision == "fp16",
        # In fp32 the layout gains nothing sure on a GPU and costs some networks time.
        channels_last=narrow,
        tf32=narrow and is_ampere_or_newer(hardware),
        attention=attention(hardware, precision),
        compile=False,
        threads=hardware.physical_cores,
        pad_to_multiple=8,
        reason=reason(hardware, precision),
    )


def best_precision(hardware: Hardware) -> Precision:
    """Return the fastest precision that the hardware has units for."""
    if hardware.capability is None:
        return "bf16" if cpu_bf16_unit(hardware) else "fp32"
    if hardware.capability < VOLTA:
        return "fp32"
    return "fp16" if hardware.capability < AMPERE else "bf16"


def check_can(hardware: Hardware, asked: str) -> None:
    """Raise unless the hardware is fit for the precision that the user named."""
    if asked == "fp16" and hardware.capability is None:
        raise OctavoltError(
            f"{hardware.name} is a CPU, and torch trains in fp16 several times slower than in "
            f"fp32 there. Use --precision {best_precision(hardware)}, or leave the flag away."
        )
    if asked == "bf16" and hardware.capability is not None and hardware.capability < AMPERE:
        raise OctavoltError(
            f"{titled(hardware)} has no bf16 units, which come with 8.0: "
            "torch would emulate them, slowly and without a word. "
            f"Use --precision {best_precision(hardware)}, or leave the flag away."
        )


def attention(hardware: Hardware, precision: Precision) -> Attention:
    """Return the attention kernel: flash exists for two-byte types on 8.0 and newer only."""
    if hardware.capability is None:
        return "any"
    return "flash" if is_ampere_or_newer(hardware) and precision != "fp32" else "memory-efficient"


def attention_kernels(chosen: Attention) -> frozenset[str]:
    """Return what scaled dot-product attention may take, by torch's names.

    'math', which writes the whole matrix of scores to memory, stays as the last resort: for shapes
    that the kernel can't take.
    """
    if chosen == "memory-efficient":
        return frozenset({"mem_efficient", "math"})
    return frozenset({"flash", "mem_efficient", "cudnn", "math"})


def is_ampere_or_newer(hardware: Hardware) -> bool:
    """Return whether it is a GPU with bf16 and TF32 units."""
    return hardware.capability is not None and hardware.capability >= AMPERE


def cpu_bf16_unit(hardware: Hardware) -> str:
    """Return the flag of the processor's fastest bf16 unit, or an empty string."""
    return next((flag for flag in CPU_BF16_UNITS if flag in hardware.cpu_flags), "")


def reason(hardware: Hardware, precision: Precision) -> str:
    """Return why that precision is used, in a sentence."""
    if hardware.capability is None:
        return cpu_reason(hardware, precision)
    named = titled(hardware)
    if precision == best_precision(hardware):
        units = {
            "fp32": "is older than tensor cores",
            "fp16": "has fp16 tensor cores and no bf16 units",
            "bf16": "has bf16 tensor cores and TF32",
        }[precision]
        scaling = " with loss scaling" if precision == "fp16" else ""
        return f"{precision}{scaling}: {named} {units}."
    if hardware.capability < VOLTA:
        return f"{precision} as asked: {named} has no tensor cores, so this saves memory, not time."
    return f"{precision} as asked: {named} is usually faster in {best_precision(hardware)}."


def cpu_reason(hardware: Hardware, precision: Precision) -> str:
    """Return why that precision is used on a processor."""
    unit = cpu_bf16_unit(hardware)
    cores = "core" if hardware.physical_cores == 1 else "cores"
    threads = f"a thread for each of {hardware.physical_cores} {cores}"
    if precision == "bf16":
        units = f"has {unit} units" if unit else "has no bf16 units and emulates them, slowly"
        return f"bf16: {hardware.name} {units}; {threads}."
    if unit:
        return f"fp32 as asked: {hardware.name} is usually faster in bf16; {threads}."
    return f"fp32: {hardware.name} has no bf16 units; {threads}."


def titled(hardware: Hardware) -> str:
    """Return the card with its capability: 'Tesla V100-SXM2-16GB (compute capability 7.0)'."""
    assert hardware.capability is not None, hardware
    major, minor = hardware.capability
    return f"{hardware.name} (compute capability {major}.{minor})"
