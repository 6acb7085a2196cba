import numpy as np
import pytest

from octavolt.contract import Fault
from octavolt.data.boxes.gathered import MOST_FAULTS_OF_A_KIND, Faults
from octavolt.data.boxes.samples import Boxes


def test_of_each_kind_only_the_first_faults_are_kept() -> None:
    faults = Faults()
    for line in range(MOST_FAULTS_OF_A_KIND + 5):
        faults.add(Fault(kind="wrong-row", file="a", line=line, problem="x", damaged=True))
    faults.add(Fault(kind="loop", file="b", problem="y", stops=False))
    found = faults.all()
    assert len(found) == MOST_FAULTS_OF_A_KIND + 2
    assert found[-1].problem == "the same is wrong in 5 more places, in this file or others"
    assert (found[-1].kind, found[-1].damaged) == ("wrong-row", True)


@pytest.mark.parametrize("chosen", [[], [0], [3, 1], [1, 1, 2], [0, 1, 2, 3]])
def test_boxes_of_chosen_pictures_stay_with_them(chosen: list[int]) -> None:
    counts = [2, 0, 3, 1]
    owner = np.repeat(np.arange(4), counts)
    boxes = Boxes(
        ends=np.cumsum(counts),
        corners=np.repeat(owner[:, None], 4, axis=1).astype(np.float64),
        labels=owner,
        crowd=owner > 1,
        difficult=owner > 2,
        areas=owner.astype(np.float64),
    )
    found = boxes.select(np.array(chosen, np.int64))
    assert len(found.ends) == len(chosen)
    for row, picture in enumerate(chosen):
        assert found.labels[found.rows(row)].tolist() == [picture] * counts[picture]
        assert found.truth(row).boxes.tolist() == [[picture] * 4] * counts[picture]
