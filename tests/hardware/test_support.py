import re
from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.hardware.support import (
    RELEASES,
    find_release,
    last_cu126_wheel_with_sm70,
    last_ordinary_wheel_with_sm70,
)

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def bounds(package: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the lowest release that the package's pin allows, and the lowest that it doesn't."""
    found = re.search(rf'"{package}>=(\d+)\.(\d+),<(\d+)\.(\d+)"', PYPROJECT.read_text())
    assert found is not None, f"{package} has no pin of the form >=A.B,<C.D"
    first, second, third, fourth = map(int, found.groups())
    return (first, second), (third, fourth)


def test_torch_is_pinned_below_the_release_after_the_last_ordinary_wheel_with_sm70() -> None:
    after = RELEASES[RELEASES.index(last_ordinary_wheel_with_sm70()) + 1]
    assert bounds("torch")[1] == after.torch


def test_every_torch_that_the_pin_allows_has_sm70_in_its_ordinary_wheel() -> None:
    lowest, excluded = bounds("torch")
    allowed = [one for one in RELEASES if lowest <= one.torch < excluded]
    assert allowed[0].torch == lowest
    assert all(one.ordinary_wheel_has_sm70 for one in allowed)


@pytest.mark.parametrize("end", [0, 1], ids=["lowest", "excluded"])
def test_torchvision_is_pinned_to_the_pairs_of_torch(end: int) -> None:
    assert (
        bounds("torchvision")[end]
        == find_release(".".join(map(str, bounds("torch")[end]))).torchvision
    )


def test_releases_follow_one_another_without_a_gap() -> None:
    minors = [one.torch[1] for one in RELEASES]
    assert minors == list(range(minors[0], minors[0] + len(minors)))


def test_the_last_wheel_of_any_kind_is_2_14() -> None:
    assert last_cu126_wheel_with_sm70().torch == (2, 14)


def test_a_release_is_found_by_a_version_with_its_build() -> None:
    assert find_release("2.10.0+cu128").torch == (2, 10)


def test_2_1_is_not_taken_for_2_10() -> None:
    with pytest.raises(OctavoltError) as raised:
        find_release("2.1.0")
    assert str(raised.value) == (
        "Nothing is known of torch 2.1.0: the table in hardware/support.py holds 2.6 to 2.15. "
        "Install torch 2.10, or add a row."
    )
