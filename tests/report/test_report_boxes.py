"""The page of a run of object detection."""

import json
import re
from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.report import compare_runs, report_run
from octavolt.report.files import read_run
from octavolt.report.verdict import remarks
from tests.report.made_box_run import box_evaluation, made_box_run
from tests.report.test_report_run import Elements, headings


def page_of(run: Path) -> str:
    return report_run(run).read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def words_of(page: str) -> str:
    body = page[page.index("<body>") : page.index("</body>")]
    return Elements(re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)).text


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(made_box_run(tmp_path_factory.mktemp("runs") / "cells"))


def test_page_is_whole_and_has_all_parts_of_boxes(page: str) -> None:
    assert not Elements(page).open
    assert {"Classes, the worst first", "Precision and recall", "The worst pictures"} <= headings(
        page
    )
    assert not {"The most confident mistakes", "Confusion matrix", "Calibration"} & headings(page)


def test_page_says_on_how_many_boxes_it_is_measured(page: str) -> None:
    boxes = box_evaluation()["metrics"]["boxes"]
    assert f"Measured on {boxes} boxes in 8 pictures" in words_of(page)


def test_loss_of_boxes_has_no_unit(page: str) -> None:
    assert "Loss" in headings(page)
    assert "nats" not in words_of(page).split("Environment")[0].split("Settings")[0]


def test_classes_stand_with_the_worst_first(page: str) -> None:
    table = page.split("Classes, the worst first")[1].split("</table>", maxsplit=1)[0]
    shown = re.findall(r'<span class="name" title="(\w+)">', table)
    rows = box_evaluation()["metrics"]["boxes_per_class"]
    assert shown == [one["class"] for one in sorted(rows, key=lambda one: one["ap50"])]


def test_worst_pictures_say_what_is_there_what_was_found_and_how_wrong_that_is(page: str) -> None:
    (shown,) = re.findall(r'<ul class="pictures boxed">(.*?)</ul>', page, flags=re.DOTALL)
    words = Elements(shown).text
    assert words.startswith("1 RBC found, 75.0 % wrong true: 3 RBC, 1 WBC")
    assert 'alt="3 RBC, 1 WBC, found 1 RBC"' in shown


def test_curves_name_the_classes_and_their_mean(page: str) -> None:
    (curve,) = re.findall(r'aria-label="Precision against recall".*?</svg>', page, flags=re.DOTALL)
    assert all(name in curve for name in ("RBC", "WBC", "Platelets", "mean of classes"))


def test_many_classes_are_folded_away_and_only_the_worst_have_curves(tmp_path: Path) -> None:
    classes = [f"class-{number}" for number in range(40)]
    run = made_box_run(tmp_path / "run", classes=classes)
    found = json.loads((run / "evaluation.json").read_text())
    row = found["evaluations"][0]["metrics"]["boxes_per_class"][0]
    rows = [{**row, "class": name, "ap50": place / 40} for place, name in enumerate(classes)]
    found["evaluations"][0]["metrics"]["boxes_per_class"] = rows
    (run / "evaluation.json").write_text(json.dumps(found))
    page = page_of(run)
    assert "<summary>10 more classes</summary>" in page
    assert "By name: the 5 worst classes." in page
    (curve,) = re.findall(r'aria-label="Precision against recall".*?</svg>', page, flags=re.DOTALL)
    assert re.findall(r"class-\d+", curve) == classes[:5]


@pytest.mark.parametrize("hidden", [False, True])
def test_classes_without_a_box_are_named(tmp_path: Path, hidden: bool) -> None:
    run = made_box_run(tmp_path / "run", seed=1)
    if hidden:  # as of data with many classes
        found = json.loads((run / "evaluation.json").read_text())
        del found["evaluations"][0]["metrics"]["boxes_per_class"][2]
        (run / "evaluation.json").write_text(json.dumps(found))
    assert (
        "1 class without a box in the test split: Platelets. Nothing is known of them."
        in remarks(read_run(run))
    )


def test_curves_of_different_lengths_are_told_of(tmp_path: Path) -> None:
    run = made_box_run(tmp_path / "run")
    found = json.loads((run / "evaluation.json").read_text())
    found["evaluations"][0]["metrics"]["boxes_per_class"][1]["precisions"].pop()
    (run / "evaluation.json").write_text(json.dumps(found))
    with pytest.raises(OctavoltError, match=r"'precisions' of a class .* are 100, those .* 101;"):
        read_run(run)


def test_nothing_found_and_nothing_there_still_make_a_page(tmp_path: Path) -> None:
    run = made_box_run(tmp_path / "run")
    found = json.loads((run / "evaluation.json").read_text())
    metrics = found["evaluations"][0]["metrics"]
    kept = {"samples": 8, "boxes": 0, "ap50": 0.0, "missed_fraction": 1.0}
    empty = {"boxes": 0, "ap": None, "ap50": None, "ar_100": None, "precisions": None}
    rows = [{**one, **empty} for one in metrics["boxes_per_class"]]
    metrics.update({**dict.fromkeys(metrics), **kept, "boxes_per_class": rows})
    (run / "evaluation.json").write_text(json.dumps(found))
    page = page_of(run)
    assert "AP50 0.0 % on 0 boxes in 8 pictures" in words_of(page)
    assert "Precision and recall" not in headings(page)


def test_detectors_are_compared_by_their_ap50(tmp_path: Path) -> None:
    runs = [made_box_run(tmp_path / name, seed=seed) for name, seed in (("one", 2), ("two", 4))]
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    words = words_of(page).replace("\N{NO-BREAK SPACE}", " ")
    assert "2 runs compared by AP50" in words
    assert f"{100 * box_evaluation(seed=4)['metrics']['ap50']:.1f} %" in words
    assert "Wilson" not in words
