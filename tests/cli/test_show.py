import pytest

from octavolt.cli.show import metric_value, short_name
from octavolt.report.words import METRICS


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("top1_fraction", "top-1"),
        ("top5_fraction", "top-5"),
        ("macro_f1", "macro F1"),
        ("matthews_correlation", "Matthews correlation"),
        ("bits_per_byte", "bits per byte"),
    ],
)
def test_metric_is_named_as_people_write_it(metric: str, words: str) -> None:
    assert short_name(metric) == words


@pytest.mark.parametrize("name", METRICS)
def test_share_is_in_per_cent_and_a_number_plain(name: str) -> None:
    assert metric_value(name, 0.25) == ("25.0 %" if METRICS[name].is_fraction else "0.250")
