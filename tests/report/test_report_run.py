import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.report import report_run
from octavolt.report.files import read_run
from octavolt.report.resolved import command
from tests.report.made_run import made_evaluation, made_run, write, write_lines

VOID = {"meta", "img", "br", "link", "input"}


class Elements(HTMLParser):
    """Every element with its attributes, every word, and what was never closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_of(made_run(tmp_path_factory.mktemp("runs") / "fruit"))


def report_of(run: Path) -> str:
    return report_run(run).read_text(encoding="utf-8")


def headings(page: str) -> set[str]:
    return set(re.findall(r"<h[23][^>]*>([^<]*)<", page))


def test_page_loads_nothing(page: str) -> None:
    elements = Elements(page).found
    assert not {tag for tag, _ in elements} & {"script", "link", "iframe", "object", "embed"}
    for _, attributes in elements:
        for key in ("src", "href", "xlink:href", "data"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/"))
    assert not re.search(r"@import|url\((?!#)|https?://", page)


def test_elements_are_closed_in_their_order(page: str) -> None:
    assert Elements(page).open == []


def test_no_two_elements_share_an_id(page: str) -> None:
    ids = [attributes["id"] for _, attributes in Elements(page).found if "id" in attributes]
    assert len(ids) == len(set(ids)) > 10


def test_every_reference_inside_the_page_has_its_target(page: str) -> None:
    elements = Elements(page).found
    ids = {attributes.get("id") for _, attributes in elements}
    asked = {(attributes.get("href") or "#")[1:] for _, attributes in elements} - {""}
    plots, sections = 7, 6
    assert len(asked) >= plots + sections  # the ticks of each plot are such references
    assert asked | set(re.findall(r"url\(#([^)]*)\)", page)) <= ids


def test_plots_and_pictures_say_what_they_show(page: str) -> None:
    shown = [(tag, one) for tag, one in Elements(page).found if one.get("role") == "img"]
    pictures = [one for tag, one in Elements(page).found if tag == "img"]
    assert len(shown) == 7
    assert all(one["aria-label"] for _, one in shown)
    assert len(pictures) == 6
    assert all(one["alt"] for one in pictures)


def test_colours_of_plots_follow_the_page(page: str) -> None:
    plots = "".join(re.findall(r"<svg class=\"plot\".*?</svg>", page, flags=re.DOTALL))
    assert "var(--first)" in plots
    assert not re.search(r"#[0-9a-fA-F]{6}", plots)


def test_whole_run_shows_every_section(page: str) -> None:
    assert headings(page) == {
        "Curves",
        "Loss in nats",
        "Top-1 accuracy",
        "Learning rate",
        "Gradient norm",
        "Pictures a second",
        "Waiting for data",
        "Evaluation: test split of ./fruit",
        "Classes, the worst first",
        "Calibration",
        "Confusion matrix",
        "The most confident mistakes",
        "Settings",
        "Environment",
        "Events",
        "Damaged pictures",
    }


def test_run_of_settings_alone_says_how_to_evaluate(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    for path in run.iterdir():
        if path.name != "settings.json":
            path.unlink()
    page = report_of(run)
    assert headings(page) == {"Settings"}
    assert f"Measure it: octavolt evaluate {run}" in Elements(page).text.replace("  ", " ")


def test_run_that_was_not_evaluated_shows_the_best_epoch_of_validation(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit", evaluated=False)
    text = Elements(report_of(run)).text
    assert "Top-1 accuracy, validation 93.8 % Best epoch 9" in text.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert f"octavolt evaluate {run}" in text


def test_verdict_is_the_test_split_of_the_run_s_own_data(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    own = json.loads((run / "evaluation.json").read_text())["evaluations"][0]
    others = [{**own, "split": "val"}, {**own, "data": "./other"}]
    write(run / "evaluation.json", {"schema": 1, "evaluations": [own, *others]})
    text = Elements(report_of(run)).text
    assert "Measured on 180 pictures: the test split of ./fruit" in text


def test_only_the_newest_evaluation_of_a_split_is_shown(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    old = made_evaluation(("Apple", "Pear"), 30)
    new = made_evaluation(("Apple", "Pear"), 50)
    write(run / "evaluation.json", {"schema": 1, "evaluations": [old, new]})
    text = Elements(report_of(run)).text
    assert "Measured on 50 pictures" in text
    assert "30 pictures" not in text


def test_names_are_escaped(tmp_path: Path) -> None:
    names = ("<script>alert(1)</script>", "\"><img src=x onerror='a()'>", "中文类别", "n" * 300)
    data = "./<b>fruit</b>"
    run = made_run(tmp_path / "fruit", classes=names, settings={"data": data, "network": "<i>"})
    write(run / "damaged.json", [{"file": "<script>", "problem": "</table>"}])
    write_lines(run / "events.jsonl", [{"step": None, "kind": "<script>", "message": "</main>"}])
    write(run / "environment.json", {"cpu": "<script>", "gpus": ["<script>"]})
    page = report_of(run)
    tags = {tag for tag, _ in Elements(page).found}
    assert "script" not in tags
    assert Elements(page).open == []
    assert "<script" not in page
    assert "<b>fruit" not in page
    assert not any("onerror" in attributes for _, attributes in Elements(page).found)
    assert all(name in Elements(page).text for name in names)


def test_confusion_counts_stand_in_the_matrix(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    confusion = json.loads((run / "evaluation.json").read_text())["evaluations"][0]["metrics"][
        "confusion"
    ]
    table = re.search(r'<table class="matrix.*?</table>', report_of(run), flags=re.DOTALL)
    assert table
    cells = re.findall(r"<td[^>]*>(\d*)</td>", table[0])
    assert [int(cell or 0) for cell in cells] == [count for row in confusion for count in row]


def test_loss_that_is_not_a_number_is_remarked(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    rows[6]["loss"], rows[7]["loss"], rows[8]["loss"] = float("nan"), None, float("inf")
    write_lines(run / "steps.jsonl", rows)
    assert (
        "The loss was not a finite number at 3 logged steps, first at step 7: lower the learning "
        "rate, or look at that step's pictures."
    ) in report_of(run).replace("&#39;", "'")


def test_run_in_which_no_loss_is_a_number_still_has_a_report(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit", epochs=1, evaluated=False)
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    write_lines(run / "steps.jsonl", [{**row, "loss": None} for row in rows])
    write_lines(run / "epochs.jsonl", [])
    assert "Loss in nats" in headings(report_of(run))


def test_evaluation_without_pictures_still_has_a_report(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    empty = {**made_evaluation(("a", "b"), 2), "metrics": {"samples": 0}, "mistakes": []}
    write(run / "evaluation.json", {"schema": 1, "evaluations": [empty]})
    assert "Measured on 0 pictures" in Elements(report_of(run)).text


def test_class_without_pictures_is_remarked(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit", classes=[f"class {n}" for n in range(20)], pictures=25)
    absent = [
        row["class"]
        for row in json.loads((run / "evaluation.json").read_text())["evaluations"][0]["metrics"][
            "per_class"
        ]
        if row["samples"] == 0
    ]
    listed = ", ".join(absent[:5])
    assert f"without a picture in the test split: {listed}" in report_of(run)


def test_long_wait_for_data_is_remarked(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    write_lines(run / "steps.jsonl", [{**row, "waiting_fraction": 0.34} for row in rows])
    assert "Training waited for data 34" in report_of(run)


def test_thousand_classes_stay_under_5_megabytes(tmp_path: Path) -> None:
    names = [f"class with a name of usual length {number}" for number in range(1000)]
    run = made_run(tmp_path / "fruit", classes=names, pictures=5000)
    page = report_of(run)
    assert len(page.encode()) < 5e6
    assert {"Most often confused", "Confusion matrix"} <= headings(page)
    assert 'class="matrix' not in page


def test_picture_that_is_no_jpeg_is_left_out(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    found = made_evaluation(("a", "b"), 20)
    found["mistakes"][0]["jpeg_base64"] = "not base64 at all"
    found["mistakes"][1]["jpeg_base64"] = None
    found["mistakes"][2]["jpeg_base64"] = base64.b64encode(b"<svg onload='a()'>").decode()
    write(run / "evaluation.json", {"schema": 1, "evaluations": [found]})
    page = report_of(run)
    assert page.count("no picture") == 3
    assert page.count("<img") == 3


def test_report_is_the_same_when_written_again(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    assert report_of(run) == report_of(run)


def test_command_repeats_the_run(page: str) -> None:
    command = re.search(r"<pre>(.*)</pre>", page)
    assert command
    assert command[1].startswith(
        "octavolt train mobilenet-v2 --data ./fruit --weights imagenet --image-size 224 "
        "--precision bf16 --seed 0 --epochs 10 --batch 32 --optimizer adamw "
        "--learning-rate 0.001 --settings "
    )


@pytest.mark.parametrize(("gpus", "flag"), [([], "--processes 4"), (["V100"] * 4, "--gpus 4")])
def test_command_starts_as_many_processes(tmp_path: Path, gpus: list[str], flag: str) -> None:
    run = read_run(made_run(tmp_path / "fruit", evaluated=False, settings={"processes": 4}))
    assert f" {flag} " in command(run.settings, run.folder, has_gpus=bool(gpus))


def test_command_of_odd_names_is_quoted(tmp_path: Path) -> None:
    run = read_run(made_run(tmp_path / "fruit", evaluated=False, settings={"data": "a b; rm *"}))
    assert " --data 'a b; rm *' " in command(run.settings, run.folder, has_gpus=False)


def test_folder_without_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as raised:
        report_run(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} is no run folder: it holds no settings.json. "
        "Give the folder that octavolt train made."
    )


def test_report_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit", evaluated=False)
    (run / "report.html").mkdir()
    with pytest.raises(OctavoltError, match=r"^Can't write .*report.html: Is a directory\."):
        report_run(run)
    assert not list(run.glob("*.part"))


def test_reading_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    run = made_run(tmp_path / "fruit")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    read_run(run)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
