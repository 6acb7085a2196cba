import re
import runpy
from pathlib import Path

import pytest

from octavolt.hardware.chips import CHIPS
from octavolt.hardware.chips_volta import VOLTA
from octavolt.units import GIB

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["v100.md", "v100.zh-CN.md"])
def test_the_pages_on_the_v100_have_the_figures_of_the_table(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    table = re.findall(r"^\| (\S+) \| (.+) \|$", text, re.MULTILINE)
    rows = [(name, cells) for name, cells in table if name in CHIPS]
    assert [name for name, _ in rows] == [chip.name for chip in VOLTA]
    for name, cells in rows:
        chip = CHIPS[name]
        # The table of chips says in words that these have NVLink, of a rate that no source gives.
        said = chip.source if chip.peer_link is None else chip.peer_link.name
        link = "NVLink" if "nvlink" in said.lower() else "PCIe"
        assert cells.split(" | ") == [
            ", ".join(one.removeprefix("10de:") for one in chip.pci_ids),
            f"{chip.boost_hertz / 1e6:.0f}",
            f"{chip.peak('fp32') / 1e12:g}",
            f"{chip.peak('fp16') / 1e12:g}",
            f"{chip.memory_bytes / GIB:.0f}",
            f"{chip.memory_bytes_per_second / 1e9:.0f}",
            f"{chip.power_limit_watts:.0f}",
            link,
        ]


def test_the_page_of_gpus_is_what_the_script_writes() -> None:
    page = runpy.run_path(str(ROOT / "scripts" / "write_gpus"))["page"]()
    assert (ROOT / "docs" / "gpus.md").read_text() == page
    assert all(f"### {name}\n" in page for name in CHIPS)
