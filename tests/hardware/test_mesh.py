from itertools import combinations

import pytest

from octavolt.hardware.mesh import CUBE_MESH, QUAD, Matrix, best_rings, hops_of, most_rings

BOARDS = {"cube-mesh": CUBE_MESH, "quad": QUAD}
each_board = pytest.mark.parametrize("links", BOARDS.values(), ids=BOARDS)
each_count = pytest.mark.parametrize("count", range(2, 9))


@each_board
def test_links_are_the_same_from_both_ends_and_none_leads_to_itself(links: Matrix) -> None:
    assert [*zip(*links, strict=True)] == [*links]
    assert all(row[place] == 0 for place, row in enumerate(links))


def test_every_gpu_of_the_cube_mesh_has_six_links() -> None:
    assert [sum(row) for row in CUBE_MESH] == [6] * 8


def test_both_halves_of_the_cube_mesh_are_alike_and_joined_by_six_links() -> None:
    assert tuple(row[4:] for row in CUBE_MESH[4:]) == QUAD
    assert sum(sum(row[4:]) for row in CUBE_MESH[:4]) == 6


@each_count
def test_rings_pass_every_gpu_once_and_share_no_direction_of_a_link(count: int) -> None:
    circles = best_rings(CUBE_MESH, count)
    assert len({frozenset(circle) for circle in circles}) == 1
    assert all(len(set(circle)) == len(circle) == count for circle in circles)
    hops = [hop for circle in circles for hop in hops_of(circle)]
    assert all(hops.count(hop) <= CUBE_MESH[hop[0]][hop[1]] for hop in hops)


@each_count
def test_no_set_has_more_rings_than_its_worst_joined_gpu_has_links(count: int) -> None:
    for gpus in combinations(range(8), count):
        fewest = min(sum(CUBE_MESH[one][other] for other in gpus) for one in gpus)
        assert len(most_rings(CUBE_MESH, gpus)) <= fewest
        assert len(most_rings(CUBE_MESH, gpus)) <= len(best_rings(CUBE_MESH, count))


@pytest.mark.parametrize(
    ("count", "rings"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 2), (6, 4), (7, 4), (8, 6)]
)
def test_rings_of_a_cube_mesh(count: int, rings: int) -> None:
    assert len(best_rings(CUBE_MESH, count)) == rings


@pytest.mark.parametrize("gpus", [(0, 5), (0, 6), (0, 7), (0, 3, 5), (0, 1, 2, 3, 4)], ids=str)
def test_badly_chosen_gpus_have_no_ring_of_nvlinks(gpus: tuple[int, ...]) -> None:
    assert most_rings(CUBE_MESH, gpus) == ()


def test_numbering_the_gpus_otherwise_changes_no_number_of_rings() -> None:
    order = (5, 2, 7, 0, 3, 6, 1, 4)
    shuffled = tuple(tuple(CUBE_MESH[one][other] for other in order) for one in order)
    for count in range(2, 9):
        assert len(best_rings(shuffled, count)) == len(best_rings(CUBE_MESH, count))
