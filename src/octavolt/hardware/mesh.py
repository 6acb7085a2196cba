"""GPUs joined by NVLinks: which of them to take, and how many rings go round these at once."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

Matrix = tuple[tuple[int, ...], ...]
"""NVLinks between each two GPUs. Each link carries data both ways at once."""
Circle = tuple[int, ...]
"""GPUs in the order in which data pass them; from the last they go to the first."""

CUBE_MESH: Matrix = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
"""As `nvidia-smi topo -m` prints it on a DGX-1 with V100s: microsoft/msccl-tools,
tests/test_topologies.py. Where it is 0, data go by PCIe and between the processors."""
QUAD: Matrix = tuple(row[:4] for row in CUBE_MESH[:4])
"""Half of it, as on boards of four."""


@cache
def best_rings(links: Matrix, count: int) -> tuple[Circle, ...]:
    """Return the most rings that go at once round any so many GPUs; of equal sets the first.

    Each ring passes every GPU once, and has a direction of a link for itself from each to the next.
    Empty if NVLinks alone make no ring. NCCL fills a cube mesh in this way (NVIDIA/nccl issue 299).
    """
    found: tuple[Circle, ...] = ()
    for gpus in combinations(range(len(links)), count):
        found = max(found, most_rings(links, gpus), key=len)
    return found


def most_rings(links: Matrix, gpus: tuple[int, ...]) -> tuple[Circle, ...]:
    """Return the most rings at once round these GPUs, by trying all."""
    if len(gpus) < 2:
        return ()
    circles = [*circles_of(links, gpus)]
    limit = min(sum(links[one][other] for other in gpus) for one in gpus)
    free = {(one, other): links[one][other] for one in gpus for other in gpus}
    best: tuple[Circle, ...] = ()
    taken: list[Circle] = []

    def take_from(start: int) -> None:
        nonlocal best
        best = max(best, tuple(taken), key=len)
        for place in range(start, len(circles)):
            hops = hops_of(circles[place])
            if len(best) < limit and all(free[hop] for hop in hops):
                for hop in hops:
                    free[hop] -= 1
                taken.append(circles[place])
                take_from(place)
                taken.pop()
                for hop in hops:
                    free[hop] += 1

    take_from(0)
    return best


def circles_of(links: Matrix, gpus: tuple[int, ...]) -> Iterator[Circle]:
    """Yield every circle of NVLinks through all of these GPUs, in both directions."""
    first, *others = gpus

    def lengthened(path: Circle, left: frozenset[int]) -> Iterator[Circle]:
        if not left and links[path[-1]][first]:
            yield path
        for other in sorted(left):
            if links[path[-1]][other]:
                yield from lengthened((*path, other), left - {other})

    yield from lengthened((first,), frozenset(others))


def hops_of(circle: Circle) -> list[tuple[int, int]]:
    """Return from which GPU to which a ring goes."""
    return [*pairwise((*circle, circle[0]))]
