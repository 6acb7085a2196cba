import pytest

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.chips import CHIPS
from octavolt.hardware.hosts import CUBE_MESH, HOSTS, QUAD, Host, find_host

each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)


def test_every_gpu_of_the_cube_mesh_has_six_links() -> None:
    assert [sum(row) for row in CUBE_MESH] == [6] * 8


@each_host
def test_links_are_the_same_from_both_ends_and_none_leads_to_itself(host: Host) -> None:
    if host.links is None:
        return
    assert len(host.links) == host.gpu_count
    assert all(len(row) == host.gpu_count for row in host.links)
    assert [*zip(*host.links, strict=True)] == [*host.links]
    assert all(row[place] == 0 for place, row in enumerate(host.links))


@each_host
def test_its_gpus_are_in_the_table_and_it_says_where_its_figures_come_from(host: Host) -> None:
    assert host.chip in CHIPS
    assert host.source


@pytest.mark.parametrize(("count", "links"), [(2, 2), (3, 3), (4, 4), (8, 6)], ids=str)
def test_the_best_joined_gpus_of_a_dgx_1_are_chosen(count: int, links: int) -> None:
    host = find_host("dgx-1")
    assert host.links_of(host.best(count)) == links
    assert host.bytes_per_second(count) == links * 25e9
    assert host.joint(count) == "nvlink"


def test_a_pair_that_is_badly_chosen_has_no_link() -> None:
    assert find_host("dgx-1").links_of((0, 5)) == 0


def test_a_half_of_the_cube_mesh_is_the_board_of_four() -> None:
    assert find_host("dgx-1").links_of((0, 1, 2, 3)) == min(map(sum, QUAD)) == 4


def test_a_switch_gives_every_gpu_all_its_links() -> None:
    host = find_host("dgx_2")
    assert [host.bytes_per_second(count) for count in (2, 16)] == [150e9, 150e9]
    assert host.joint(16) == "nvswitch"


def test_cards_without_links_go_by_pcie() -> None:
    host = find_host("pcie-server")
    assert host.joint(4) == "pcie"
    assert host.bytes_per_second(4) == pytest.approx(15.75e9, rel=1e-3)


def test_more_gpus_than_it_has_are_refused() -> None:
    with pytest.raises(OctavoltError) as raised:
        find_host("p3.8xlarge").bytes_per_second(8)
    assert str(raised.value) == (
        "p3.8xlarge has 4 GPUs, not 8. Ask for 1 to 4, or for several hosts."
    )


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="dgx-1"):
        find_host("dgx1")
