import re

import pytest

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.chip import Chip
from octavolt.hardware.chips import CHIPS, find_chip
from octavolt.hardware.chips_volta import VOLTA
from octavolt.units import GIB

each_chip = pytest.mark.parametrize("chip", CHIPS.values(), ids=CHIPS)
each_volta = pytest.mark.parametrize("chip", VOLTA, ids=[one.name for one in VOLTA])
UNITS = {(6, 0): 64, (7, 0): 64, (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 9): 128, (9, 0): 128}
"""fp32 units of a multiprocessor by capability: NVIDIA's whitepapers of each architecture."""
TENSOR_FLOPS = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024, (9, 0): 4096}
"""fp16 with fp32 sums, a clock and multiprocessor: the same; GeForce cards do half."""


def test_sxm2_peaks_by_hand() -> None:
    """80 x 64 units x 2 flops x 1.53 GHz is 15.67e12; tensor cores do 8 times that, 125.3e12."""
    chip = find_chip("v100-sxm2-16gb")
    assert chip.peak("fp32") == pytest.approx(80 * 64 * 2 * 1.53e9, rel=0.005)
    assert chip.peak("fp16") == pytest.approx(80 * 64 * 2 * 1.53e9 * 8, rel=0.005)


@each_chip
def test_fp32_rate_follows_from_units_and_clock(chip: Chip) -> None:
    by_hand = chip.multiprocessor_count * UNITS[chip.capability] * 2 * chip.boost_hertz
    # Data sheets round to three digits, and the clock of PCIe cards down.
    assert chip.peak("fp32") == pytest.approx(by_hand, rel=0.012)


@each_chip
def test_tensor_rate_is_at_most_that_of_units_and_clock(chip: Chip) -> None:
    if chip.capability < (7, 0):
        assert "fp16" not in chip.peak_flops_per_second
        return
    flops = TENSOR_FLOPS[chip.capability] / (2 if chip.name.startswith("rtx-") else 1)
    by_hand = chip.multiprocessor_count * flops * chip.boost_hertz
    # NVIDIA takes a lower clock than the boost's for H100's tensor cores.
    least = 0.9 if chip.capability >= (9, 0) else 0.85
    assert least * by_hand < chip.peak("fp16") < 1.005 * by_hand


@each_chip
def test_bf16_and_tf32_come_with_ampere(chip: Chip) -> None:
    newer = chip.capability >= (8, 0)
    assert ("bf16" in chip.peak_flops_per_second) is newer
    assert ("tf32" in chip.peak_flops_per_second) is newer
    if newer:
        assert chip.peak("bf16") == chip.peak("fp16")
        # Half, and rounded to three digits.
        assert chip.peak("tf32") == pytest.approx(chip.peak("fp16") / 2, rel=0.01)


@each_volta
def test_fp64_and_fp16_vector_rates_are_half_and_twice_that_of_fp32(chip: Chip) -> None:
    # Rounded to two digits in places.
    assert chip.peak("fp64") == pytest.approx(chip.peak("fp32") / 2, rel=0.01)
    assert chip.peak("fp16-vector") == pytest.approx(chip.peak("fp32") * 2, rel=0.02)


@each_chip
def test_memory_is_the_one_in_the_name(chip: Chip) -> None:
    named = re.search(r"(\d+)gb$", chip.name)
    if named is not None:
        assert chip.memory_bytes == int(named[1]) * GIB


def test_no_two_chips_share_a_name_or_a_pci_id() -> None:
    names = [name for chip in CHIPS.values() for name in (chip.name, *chip.reported_names)]
    ids = [one for chip in CHIPS.values() for one in chip.pci_ids]
    assert len(names) == len(set(names))
    assert len(ids) == len(set(ids))


def test_a_rate_that_the_table_lacks_raises() -> None:
    with pytest.raises(OctavoltError) as raised:
        find_chip("v100-pcie-16gb").peak("bf16")
    assert str(raised.value) == (
        "v100-pcie-16gb has no bf16 rate. Known: fp64, fp32, fp16-vector, fp16. "
        "Use one of those, or add the rate with its source in hardware/chips.py."
    )


def test_six_nvlinks_carry_150_gigabytes_a_second_each_way() -> None:
    assert find_chip("v100-sxm2-32gb").peer().bytes_per_second == 150e9


def test_a_number_without_a_source_raises() -> None:
    with pytest.raises(OctavoltError) as raised:
        find_chip("titan-v").lowest_power_limit()
    assert str(raised.value) == (
        "No source gives lowest_power_limit_watts of titan-v. Choose another GPU, or add the "
        "number with its source in hardware/chips.py."
    )


def test_a_link_without_a_source_raises() -> None:
    with pytest.raises(OctavoltError, match="No source gives peer_link of quadro-gv100"):
        find_chip("quadro-gv100").peer()


@pytest.mark.parametrize(
    "name",
    ["v100s-pcie-32gb", "V100S_PCIe_32GB", "Tesla V100S-PCIE-32GB", "NVIDIA Tesla V100S-PCIE-32GB"],
)
def test_a_chip_is_found_by_our_name_or_by_the_drivers(name: str) -> None:
    assert find_chip(name).pci_ids == ("10de:1df6",)


def test_an_unknown_chip_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'v100-sxm2-16gb'"):
        find_chip("v100-smx2-16gb")
