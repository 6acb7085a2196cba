from dataclasses import replace

import pytest

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.cpu import Cpu
from octavolt.hardware.policy import (
    Hardware,
    Precision,
    attention_kernels,
    on_cpu,
    on_gpu,
    policy,
)

PLAIN = Cpu(name="AMD Ryzen 7 3700X", flags=frozenset({"avx2"}), physical_cores=8)
AMX = Cpu(
    name="Intel Xeon Platinum 8480",
    flags=frozenset({"avx2", "avx512_bf16", "amx_bf16"}),
    physical_cores=56,
)
ZEN4 = Cpu(name="AMD EPYC 9654", flags=frozenset({"avx512_bf16"}), physical_cores=96)

P100 = on_gpu(PLAIN, "Tesla P100-PCIE-16GB", (6, 0))
V100 = on_gpu(PLAIN, "Tesla V100-SXM2-16GB", (7, 0))
T4 = on_gpu(PLAIN, "Tesla T4", (7, 5))
A100 = on_gpu(PLAIN, "NVIDIA A100-SXM4-40GB", (8, 0))
H200 = on_gpu(AMX, "NVIDIA H200", (9, 0))


@pytest.mark.parametrize("hardware", [V100, T4], ids=["V100", "T4"])
def test_volta_and_turing_get_fp16_with_loss_scaling_and_nothing_of_ampere(
    hardware: Hardware,
) -> None:
    chosen = policy(hardware)
    assert (chosen.precision, chosen.autocast, chosen.loss_scaling) == ("fp16", True, True)
    assert chosen.channels_last
    assert chosen.attention == "memory-efficient"
    assert not chosen.tf32


@pytest.mark.parametrize("hardware", [A100, H200], ids=["A100", "H200"])
def test_ampere_and_newer_get_bf16_with_tf32_and_no_loss_scaling(hardware: Hardware) -> None:
    chosen = policy(hardware)
    assert (chosen.precision, chosen.autocast, chosen.loss_scaling) == ("bf16", True, False)
    assert chosen.tf32
    assert chosen.attention == "flash"


def test_pascal_gets_plain_fp32() -> None:
    chosen = policy(P100)
    assert (chosen.precision, chosen.autocast, chosen.loss_scaling) == ("fp32", False, False)
    assert not chosen.channels_last
    assert chosen.attention == "memory-efficient"


@pytest.mark.parametrize("cpu", [AMX, ZEN4], ids=["AMX", "AVX512-BF16"])
def test_a_processor_with_bf16_units_gets_bf16_and_channels_last(cpu: Cpu) -> None:
    chosen = policy(on_cpu(cpu))
    assert (chosen.precision, chosen.autocast, chosen.loss_scaling) == ("bf16", True, False)
    assert chosen.channels_last


def test_another_processor_gets_plain_fp32() -> None:
    chosen = policy(on_cpu(PLAIN))
    assert (chosen.precision, chosen.autocast, chosen.loss_scaling) == ("fp32", False, False)


def test_bf16_units_of_the_processor_do_not_count_for_a_gpu() -> None:
    assert policy(replace(V100, cpu_flags=AMX.flags)).precision == "fp16"


@pytest.mark.parametrize("hardware", [P100, V100, A100, on_cpu(AMX)])
def test_a_thread_is_given_to_each_physical_core(hardware: Hardware) -> None:
    assert policy(hardware).threads == hardware.physical_cores


@pytest.mark.parametrize("hardware", [P100, V100, T4, A100, H200, on_cpu(AMX), on_cpu(PLAIN)])
def test_nothing_is_compiled_unasked(hardware: Hardware) -> None:
    assert not policy(hardware).compile


@pytest.mark.parametrize("hardware", [P100, V100, T4, A100, on_cpu(AMX), on_cpu(PLAIN)])
def test_fp32_asked_for_is_exact_fp32_everywhere(hardware: Hardware) -> None:
    chosen = policy(hardware, "fp32")
    assert chosen.precision == "fp32"
    assert (chosen.autocast, chosen.loss_scaling, chosen.tf32) == (False, False, False)


@pytest.mark.parametrize("asked", ["fp16", "fp32"])
def test_flash_attention_is_never_given_to_a_v100(asked: Precision) -> None:
    assert policy(V100, asked).attention == "memory-efficient"


def test_flash_attention_is_not_given_to_fp32() -> None:
    assert policy(A100, "fp32").attention == "memory-efficient"


def test_fp16_asked_for_on_ampere_is_scaled() -> None:
    assert policy(A100, "fp16").loss_scaling


def test_bf16_may_be_rehearsed_on_any_processor() -> None:
    assert policy(on_cpu(PLAIN), "bf16").precision == "bf16"


def test_bf16_on_a_v100_is_refused_with_what_to_use() -> None:
    with pytest.raises(OctavoltError) as raised:
        policy(V100, "bf16")
    assert str(raised.value) == (
        "Tesla V100-SXM2-16GB (compute capability 7.0) has no bf16 units, which come with 8.0: "
        "torch would emulate them, slowly and without a word. "
        "Use --precision fp16, or leave the flag away."
    )


def test_bf16_on_pascal_is_refused_in_favour_of_fp32() -> None:
    with pytest.raises(OctavoltError, match=r"Use --precision fp32, or leave the flag away\.$"):
        policy(P100, "bf16")


def test_fp16_on_a_processor_is_refused_with_what_to_use() -> None:
    with pytest.raises(OctavoltError) as raised:
        policy(on_cpu(AMX), "fp16")
    assert str(raised.value) == (
        "Intel Xeon Platinum 8480 is a CPU, and torch trains in fp16 several times slower than in "
        "fp32 there. Use --precision bf16, or leave the flag away."
    )


def test_an_unknown_precision_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError) as raised:
        policy(V100, "fp61")
    assert str(raised.value) == (
        "No precision is named 'fp61'. Did you mean 'fp16'? Known: auto, fp16, bf16, fp32."
    )


@pytest.mark.parametrize(
    ("hardware", "asked", "reason"),
    [
        (
            V100,
            "auto",
            "fp16 with loss scaling: Tesla V100-SXM2-16GB (compute capability 7.0) "
            "has fp16 tensor cores and no bf16 units.",
        ),
        (
            P100,
            "fp16",
            "fp16 as asked: Tesla P100-PCIE-16GB (compute capability 6.0) has no tensor cores, "
            "so this saves memory, not time.",
        ),
        (
            V100,
            "fp32",
            "fp32 as asked: Tesla V100-SXM2-16GB (compute capability 7.0) is usually faster "
            "in fp16.",
        ),
        (
            on_cpu(AMX),
            "auto",
            "bf16: Intel Xeon Platinum 8480 has amx_bf16 units; a thread for each of 56 cores.",
        ),
        (
            on_cpu(PLAIN),
            "auto",
            "fp32: AMD Ryzen 7 3700X has no bf16 units; a thread for each of 8 cores.",
        ),
        (
            on_cpu(PLAIN),
            "bf16",
            "bf16: AMD Ryzen 7 3700X has no bf16 units and emulates them, slowly; "
            "a thread for each of 8 cores.",
        ),
    ],
)
def test_the_reason_names_the_hardware_and_why(hardware: Hardware, asked: str, reason: str) -> None:
    assert policy(hardware, asked).reason == reason


@pytest.mark.parametrize("hardware", [P100, V100, A100, on_cpu(PLAIN)])
def test_sizes_are_padded_to_16_bytes_of_fp16(hardware: Hardware) -> None:
    assert policy(hardware).pad_to_multiple * 2 == 16


@pytest.mark.parametrize("cpu", [AMX, PLAIN], ids=["AMX", "plain"])
def test_torch_chooses_the_attention_of_a_processor(cpu: Cpu) -> None:
    assert policy(on_cpu(cpu)).attention == "any"


def test_attention_on_volta_is_never_flash() -> None:
    volta = attention_kernels(policy(V100).attention)
    assert volta == {"mem_efficient", "math"}
    assert "flash" in attention_kernels(policy(A100).attention)
