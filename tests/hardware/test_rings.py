from dataclasses import replace

import pytest

from octavolt.errors import OctavoltError
from octavolt.hardware.hosts import HOSTS, Host, find_host
from octavolt.hardware.rings import Rings, rings

each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
COUNTS = range(2, 17)


def rate(host: str, count: int) -> float:
    return rings(find_host(host), count).wire_bytes_per_second


@each_host
def test_from_2_to_16_gpus_each_host_has_rings(host: Host) -> None:
    for count in COUNTS:
        found = rings(host, count)
        assert 0 < found.bytes_per_second <= found.wire_bytes_per_second
        assert len(found.gpus) == len(set(found.gpus)) <= host.gpu_count
        assert found.host_count * len(found.gpus) >= count
        assert (found.host_count - 1) * host.gpu_count < count
        assert (found.hop == "network") is (count > host.gpu_count)


@each_host
def test_nothing_is_faster_than_what_it_passes(host: Host) -> None:
    inside = [rings(host, count).bytes_per_second for count in COUNTS if count <= host.gpu_count]
    for count in COUNTS:
        if count > host.gpu_count:
            found = rings(host, count)
            assert found.wire_bytes_per_second <= host.network_bytes_per_second
            assert not inside or found.bytes_per_second <= max(inside)


@pytest.mark.parametrize(("count", "links"), [(2, 2), (3, 2), (4, 4), (5, 2), (8, 6)], ids=str)
def test_rings_of_a_dgx_1_are_as_fast_as_links_go_side_by_side(count: int, links: int) -> None:
    found = rings(find_host("dgx-1"), count)
    assert (found.hop, found.ring_count) == ("nvlink", links)
    assert found.wire_bytes_per_second == links * 25e9
    # NCCL reckons 20 GB/s of a link on sm_70.
    assert found.bytes_per_second == pytest.approx(links * 20e9)


def test_a_switch_gives_every_gpu_all_its_links() -> None:
    assert [rate("dgx-2", count) for count in (2, 5, 16)] == [150e9] * 3
    assert rings(find_host("dgx-2"), 16).hop == "nvswitch"


def test_cards_without_links_go_by_pcie_and_slower_between_processors() -> None:
    assert rate("pcie-server", 4) == pytest.approx(15.75e9, rel=1e-3)
    near, far = (rings(find_host("pcie-server"), count) for count in (4, 8))
    assert (near.hop, far.hop) == ("pcie", "sys")
    # NCCL: 12 GB/s of PCIe 3.0, a sixth less through an Intel processor.
    assert near.bytes_per_second == pytest.approx(10e9, rel=1e-3)
    old = replace(
        find_host("pcie-server"), between_processors=find_host("dgx-1").between_processors
    )
    assert rings(old, 8).bytes_per_second == 6e9


def test_cube_mesh_beats_pcie_and_pcie_beats_two_hosts_of_a_cloud() -> None:
    assert rate("p3.16xlarge", 8) > rate("pcie-server", 8) > rate("p3.16xlarge", 16)
    assert rate("p3.16xlarge", 16) == 25e9 / 8


def test_few_gpus_of_several_hosts_are_spread_evenly() -> None:
    found = rings(find_host("dgx-1"), 12)
    assert (found.host_count, len(found.gpus), found.hop) == (2, 6, "network")
    assert found.wire_bytes_per_second == 50e9


def test_one_gpu_exchanges_nothing() -> None:
    with pytest.raises(OctavoltError, match="1 GPUs exchange nothing"):
        rings(find_host("dgx-1"), 1)


def test_a_chip_whose_links_no_source_gives_raises() -> None:
    def on(chip: str) -> Rings:
        return rings(replace(find_host("dgx-1"), chip=chip), 8)

    with pytest.raises(OctavoltError, match="No source gives peer_link of v100-dgxs-16gb"):
        on("v100-dgxs-16gb")
    with pytest.raises(OctavoltError, match="No source gives a share that data get of NVLink"):
        on("v100-pcie-16gb")
