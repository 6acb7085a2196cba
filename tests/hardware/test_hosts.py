import pytest

from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.hardware.chips import CHIPS
from octavolt.hardware.hosts import HOSTS, Host, find_host

each_host = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)


@each_host
def test_it_has_a_row_of_links_for_each_gpu(host: Host) -> None:
    if host.links is not None:
        assert [len(row) for row in host.links] == [host.gpu_count] * host.gpu_count
        assert not host.switched


@each_host
def test_no_gpu_has_more_links_than_its_chip(host: Host) -> None:
    for row in host.links or ():
        assert sum(row) <= CHIPS[host.chip].peer().lane_count


@each_host
def test_its_gpus_are_in_the_table_and_it_says_where_its_figures_come_from(host: Host) -> None:
    assert host.chip in CHIPS
    assert host.source


@each_host
def test_nothing_that_is_assumed_is_called_sure(host: Host) -> None:
    if "our assumption" in host.source:
        assert host.confidence != "high"


def test_what_joins_the_gpus() -> None:
    joined = {host.name: host.joint(host.gpu_count) for host in HOSTS.values()}
    assert joined["dgx-1"] == joined["p3.8xlarge"] == "nvlink"
    assert joined["dgx-2"] == "nvswitch"
    assert joined["pcie-server"] == joined["p3.2xlarge"] == "pcie"


def test_with_two_processors_each_has_half_of_the_gpus() -> None:
    host = find_host("pcie-server")
    assert [host.processor_of(gpu) for gpu in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [find_host("workstation").processor_of(gpu) for gpu in range(2)] == [0, 0]


def test_more_gpus_than_it_has_are_refused() -> None:
    with pytest.raises(OctavoltError) as raised:
        find_host("p3.8xlarge").joint(8)
    assert str(raised.value) == (
        "p3.8xlarge has 4 GPUs, not 8. Ask for 1 to 4, or for several hosts."
    )


def test_an_unknown_host_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'dgx-1'"):
        find_host("dgx1")
