import numpy as np

from octavolt.data.remembered import FINDING, worth_keeping


def table(*rows: tuple[int, int]) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
    """Return a finding for each stamp and place of a problem."""
    return np.array([(stamp, 5, 6, 7, 8, 255, place) for stamp, place in rows], FINDING)


def test_what_could_not_be_read_and_what_has_no_stamp_is_forgotten() -> None:
    problems = [("unreadable", "busy"), ("corrupt", "bad")]
    kept, _ = worth_keeping([table((11, 0), (12, 1)), table((13, 2), (0, 0))], problems)
    assert kept["stamp"].tolist() == [11, 13]


def test_problems_are_kept_only_while_a_picture_has_them() -> None:
    problems = [("corrupt", "old"), ("truncated", "one"), ("corrupt", "two")]
    kept, used = worth_keeping([table((11, 3), (12, 0), (13, 2))], problems)
    assert used == [("truncated", "one"), ("corrupt", "two")]
    assert kept["problem"].tolist() == [2, 0, 1]
