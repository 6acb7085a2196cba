import pytest

from octavolt.report.words import METRICS, decimal, metric, percent, shown
from octavolt.tasks import TASKS
from octavolt.tasks.average_precision import DetectionScore
from tests.report.made_run import FRUIT, made_evaluation
from tests.report.made_text_run import TEXT_TASKS, made_metrics


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


def test_every_metric_that_a_task_measures_has_its_words() -> None:
    measured = [made_evaluation(FRUIT, 20)["metrics"], *map(made_metrics, TEXT_TASKS)]
    names = {name for one in measured for name in one if isinstance(one[name], float)}
    boxes = DetectionScore(["cat"]).result()
    names |= {name for name in boxes if isinstance(boxes[name], float | None)} - {"samples"}
    assert names == set(METRICS)


def test_metrics_of_which_less_is_better_say_so() -> None:
    less = {name for name, one in METRICS.items() if one.explanation.startswith("less is better")}
    assert {task.primary_metric for task in TASKS.values() if task.less_is_better} <= less
    assert {task.tie_metric for task in TASKS.values()} <= less
    assert not less & {task.primary_metric for task in TASKS.values() if not task.less_is_better}


def test_only_shares_of_samples_have_an_interval() -> None:
    assert {name for name, one in METRICS.items() if one.counts_samples} == {
        "top1_fraction",
        "top5_fraction",
        "exact_match",
        "exact_match_fraction",
    }
