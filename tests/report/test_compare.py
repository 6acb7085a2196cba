import json
from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.report import compare_runs, comparison_table, differing
from octavolt.report.intervals import wilson_interval
from tests.report.made_run import made_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        made_run(folder / "first"),
        made_run(folder / "<second>", epochs=6, settings={"precision": "fp16"}),
        made_run(folder / "third", evaluated=False),
    ]


def test_row_holds_settings_metric_time_and_speed(runs: list[Path]) -> None:
    row = comparison_table(runs)[0]
    metrics = json.loads((runs[0] / "evaluation.json").read_text())["evaluations"][0]["metrics"]
    interval = wilson_interval(round(180 * metrics["top1_fraction"]), 180)
    assert row.pop("samples_per_second") == pytest.approx(64, abs=1)
    assert row == {
        "run": "first",
        "network": "mobilenet-v2",
        "task": "image-classification",
        "data": "./fruit",
        "weights": "imagenet",
        "precision": "bf16",
        "image_size": 224,
        "tokenizer": None,
        "vocabulary_size": None,
        "length": None,
        "epochs": 10,
        "batch_size": 32,
        "learning_rate": 0.001,
        "dropout": None,
        "metric": "top1_fraction",
        "value": metrics["top1_fraction"],
        "split": "test",
        "samples": 180,
        "low": interval.low,
        "high": interval.high,
        "bits_per_byte": None,
        "train_seconds": 225.0,
        "unit": "picture",
    }


def test_table_is_ready_for_json(runs: list[Path]) -> None:
    table = comparison_table(runs)
    assert json.loads(json.dumps(table, allow_nan=False)) == table


def test_run_that_was_not_evaluated_has_the_best_validation_and_no_interval(
    runs: list[Path],
) -> None:
    row = comparison_table(runs)[2]
    assert (row["split"], row["low"], row["high"]) == ("val", None, None)
    assert row["value"] == pytest.approx(0.95 - 0.45 * 2.718281828 ** (-9 / 2.5))


def test_settings_that_differ_are_found(runs: list[Path]) -> None:
    assert differing(comparison_table(runs)) == ["precision", "epochs"]


def test_page_marks_what_differs_and_nothing_else(runs: list[Path], tmp_path: Path) -> None:
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert page.count('differs">') == 2 * (1 + 3)


def test_page_names_every_run_escaped(runs: list[Path], tmp_path: Path) -> None:
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert "<second>" not in page
    assert all(name in page for name in ("first", "&lt;second&gt;", "third"))


def test_page_loads_nothing(runs: list[Path], tmp_path: Path) -> None:
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert "http" not in page
    assert "<script" not in page


def test_page_has_a_plot_against_epochs_and_one_against_minutes(
    runs: list[Path], tmp_path: Path
) -> None:
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert page.count('<svg class="plot"') == 2


def test_runs_without_a_validation_have_a_table_alone(tmp_path: Path) -> None:
    run = made_run(tmp_path / "first")
    (run / "epochs.jsonl").unlink()
    page = compare_runs([run, run], tmp_path / "compare.html").read_text()
    assert '<svg class="plot"' not in page
    assert "<table" in page


def test_difference_within_the_intervals_is_remarked(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / "a", pictures=170), made_run(tmp_path / "b", pictures=180)]
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert "their difference may be chance" in page


def test_measurements_on_different_splits_are_remarked(runs: list[Path], tmp_path: Path) -> None:
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    assert "different data or splits" in page
    assert "Not evaluated yet: third." in page


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"^No run was given to compare"):
        compare_runs([], tmp_path / "compare.html")
