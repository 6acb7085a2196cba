import itertools

import pytest

from octavolt.generate.stops import Stops


def passed(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    one = Stops(stops)
    text = "".join(one.add(piece) for piece in pieces)
    return text + one.finish(), one.found


def cuts(text: str) -> list[list[str]]:
    """Return all ways to cut a text in pieces."""
    ways = []
    for ends in itertools.product([False, True], repeat=len(text) - 1):
        places = [0, *(at for at, end in enumerate(ends, start=1) if end), len(text)]
        ways.append([text[a:b] for a, b in itertools.pairwise(places)])
    return ways


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        (["bc"], "abcd", "a"),
        (["aab"], "aaaabx", "aa"),
        (["abcd", "c"], "xabcdx", "xab"),
        (["bc", "abc"], "xabcx", "x"),
        (["\n\n"], "a\nb\n\nc", "a\nb"),
        (["abc"], "ababab", None),
        (["ab"], "xxa", None),
        ([], "xyz", None),
    ],
)
def test_text_passes_up_to_the_stop_however_it_is_cut(
    stops: list[str], text: str, expected: str | None
) -> None:
    for pieces in cuts(text):
        assert passed(stops, pieces) == ((text, False) if expected is None else (expected, True))


def test_no_more_is_held_back_than_may_begin_a_stop_string() -> None:
    one = Stops(["\nUser:"])
    assert [one.add(piece) for piece in ("Hi", "\n", "\nUs", "e", "d:")] == [
        "Hi",
        "",
        "\n",
        "",
        "\nUsed:",
    ]


def test_nothing_passes_after_the_stop() -> None:
    one = Stops(["b"])
    assert [one.add("ab"), one.add("c"), one.finish()] == ["a", "", ""]
