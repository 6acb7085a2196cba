import pytest

from octavolt.report.words import decimal, metric, percent, shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0.00"),
        (0.01234, "0.0123"),
        (1.234, "1.23"),
        (63.94, "63.9"),
        (7950.2, "7,950"),
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
    ],
)
def test_decimals_show_the_digits_that_count(value: float | None, words: str) -> None:
    assert decimal(value) == words


def test_share_is_shown_in_per_cent() -> None:
    assert percent(0.9556) == "95.6\N{NO-BREAK SPACE}%"


def test_metric_of_an_unknown_task_keeps_its_name_and_kind() -> None:
    assert metric("first_hit_fraction").label == "First hit"
    assert shown("first_hit_fraction", 0.5) == "50.0\N{NO-BREAK SPACE}%"
    assert shown("mean_overlap", 0.5) == "0.5"
