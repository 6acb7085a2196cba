import subprocess
import sys

import pytest

HEAVY = ("torch", "torchvision", "datasets", "matplotlib", "sklearn")


def imported(module: str) -> set[str]:
    """Return the packages that a fresh Python has loaded after importing the module."""
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["octavolt", "octavolt.cli", "octavolt.hardware.policy"])
def test_nothing_heavy_is_imported_to_show_help(module: str) -> None:
    assert imported(module).isdisjoint(HEAVY)


def test_a_heavy_import_would_be_seen() -> None:
    assert "sklearn" in imported("sklearn")
