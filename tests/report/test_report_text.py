"""The page of runs on text."""

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from octavolt.contract import Reading, Recipe
from octavolt.report import compare_runs, report_run
from octavolt.report.files import read_run
from octavolt.report.resolved import command, without_effect
from octavolt.report.words import NOUNS
from octavolt.tasks import TASKS
from octavolt.train.settings import without_effect as refused_in_training
from tests.report.made_run import made_evaluation, made_run, write
from tests.report.made_text_run import (
    TEXT_TASKS,
    made_text_mistake,
    made_text_run,
    text_evaluation,
)
from tests.report.test_report_run import Elements, headings

LABELLED = ("text-classification", "multi-label-text-classification")
Pages = dict[str, str]
every_task = pytest.mark.parametrize("task", TEXT_TASKS)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("runs")
    return {task: page_of(made_text_run(folder / task, task)) for task in TEXT_TASKS}


def page_with(run: Path, *found: dict[str, Any]) -> str:
    """The page of a run with those evaluations alone: it draws no curves."""
    for name in ("steps.jsonl", "epochs.jsonl"):
        (run / name).unlink()
    write(run / "evaluation.json", {"schema": 1, "evaluations": found})
    return page_of(run)


@pytest.fixture
def with_mistake(tmp_path: Path) -> Callable[..., str]:
    """The page of a run whose evaluation shows one mistake, altered as said."""

    def page(task: str, **changes: Any) -> str:
        run = made_text_run(tmp_path / "run", task)
        found = text_evaluation(task, mistakes=[{**made_text_mistake(task, 0), **changes}])
        return page_with(run, found)

    return page


def page_of(run: Path) -> str:
    return report_run(run).read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def words_of(page: str) -> str:
    body = page[page.index("<body>") : page.index("</body>")]
    return Elements(re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)).text


def card(page: str) -> str:
    found = re.search(r'<ul class="texts">(.*?)</ul>', page, flags=re.DOTALL)
    assert found
    return found[1]


def paragraph(page: str, kind: str) -> str:
    return "".join(re.findall(rf'<p class="{kind}" dir="auto">(.*?)</p>', page, flags=re.DOTALL))


@every_task
def test_page_is_whole_and_never_speaks_of_pictures(task: str, pages: Pages) -> None:
    elements = Elements(pages[task])
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert elements.open == []
    assert len(ids) == len(set(ids))
    assert "picture" not in pages[task].split("<body>")[1].lower()


@every_task
def test_no_section_is_empty(task: str, pages: Pages) -> None:
    sections = re.findall(r"<section.*?</section>", pages[task], flags=re.DOTALL)
    shown = ("<table", "<ul", "<svg", "<dl", "<pre")
    assert len(sections) >= 5
    assert all(any(one in section for one in shown) for section in sections)


@every_task
def test_speed_is_told_in_the_task_s_unit(task: str, pages: Pages) -> None:
    unit = TASKS[task].unit
    assert re.search(rf"Throughput [\d.]+ {unit}s/s", words_of(pages[task]))
    assert f"{unit.capitalize()}s a second" in headings(pages[task])


def test_every_task_has_its_nouns_with_its_own_unit() -> None:
    assert {name: one.unit for name, one in NOUNS.items()} == {
        name: task.unit for name, task in TASKS.items()
    }


@pytest.mark.parametrize("task", ["causal-language-modeling", "dialogue"])
def test_language_model_is_judged_by_its_perplexity(task: str, pages: Pages) -> None:
    """12,000 tokens of 3 nats: e^3 = 20.09; 36,000 / ln 2 / 50,000 bytes = 1.0387 bits."""
    words = words_of(pages[task])
    assert "Perplexity 20.1 Less is better; " in words
    assert "Measured on 12,000 tokens, 50,000 bytes of text: the test split of ./texts" in words
    assert "Loss in nats a token 3.00 less is better" in words
    assert "Bits a byte 1.04 less is better" in words
    assert "interval" not in words


def test_masked_language_model_counts_hidden_tokens(pages: Pages) -> None:
    words = words_of(pages["masked-language-modeling"])
    assert "Perplexity 7.39 " in words
    assert "Measured on 4,000 hidden tokens: the test split" in words
    assert "Hidden tokens found 37.5 %" in words


@every_task
def test_curves_are_those_of_the_task_s_primary_metric(task: str, pages: Pages) -> None:
    label = {
        "perplexity": "Perplexity",
        "f1": "F1 over words",
        "micro_f1": "F1 of all decisions",
        "top1_fraction": "Top-1 accuracy",
    }[TASKS[task].primary_metric]
    loss = "Loss in nats a token" if TASKS[task].unit == "token" else "Loss in nats"
    plots = re.findall(r'<svg class="plot"[^>]*aria-label="([^"]*)"', pages[task])
    assert f"{label} of validation against epoch" in plots
    assert {label, loss} <= headings(pages[task])
    drawn = re.search(r'aria-label="Loss against step".*?</svg>', pages[task], flags=re.DOTALL)
    assert drawn
    assert "var(--second)" in drawn[0], "the loss of validation is drawn"


def test_language_model_has_no_section_of_figures_that_stand_above(pages: Pages) -> None:
    assert not any(one.startswith("Evaluation") for one in headings(pages["dialogue"]))
    assert ">Evaluation<" not in pages["dialogue"]


def test_other_evaluation_of_a_language_model_shows_its_figures(tmp_path: Path) -> None:
    task = "causal-language-modeling"
    run = made_text_run(tmp_path / "run", task)
    both = [text_evaluation(task, data=data) for data in ("./other", "./texts")]
    page = page_with(run, *both)
    assert "Evaluation: test split of ./other" in headings(page)
    assert words_of(page).count("Bits a byte 1.04") == 2


def test_few_texts_of_a_language_model_are_not_remarked(pages: Pages) -> None:
    assert "are few" not in pages["causal-language-modeling"]


@pytest.mark.parametrize(
    ("task", "remark"),
    [
        ("text-classification", "20 texts are few: the interval says how little they prove."),
        ("multi-label-text-classification", "20 texts are few: as many others may give quite"),
        ("question-answering", "20 questions are few: as many others may give quite"),
    ],
)
def test_few_samples_are_remarked(tmp_path: Path, task: str, remark: str) -> None:
    run = made_text_run(tmp_path / "run", task)
    found = text_evaluation(task)
    found["metrics"]["samples"] = 20
    assert remark in page_with(run, found)


def test_labelled_texts_have_a_table_of_classes(pages: Pages) -> None:
    for task in LABELLED:
        assert "Classes, the worst first" in headings(pages[task])
        assert '<th scope="col" class="n">Texts</th>' in pages[task]
    assert "Confusion matrix" in headings(pages["text-classification"])
    assert "Confusion matrix" not in headings(pages["multi-label-text-classification"])


def test_metrics_of_several_labels_are_named(pages: Pages) -> None:
    words = words_of(pages["multi-label-text-classification"])
    assert "All labels right 61.1 % 53.8 to 67.9 %" in words
    # 2 * 74 hits of 114 labels that are right and 108 that were given.
    assert "F1 of all decisions 66.7 % Measured on 180 texts" in words


def test_all_of_77_classes_are_in_the_table(tmp_path: Path) -> None:
    names = [f"intent {number}" for number in range(77)]
    run = made_text_run(tmp_path / "run", "text-classification")
    found = {**text_evaluation("text-classification"), **made_evaluation(names, 900)}
    page = page_with(run, {**found, "mistakes": []})
    tables = page[page.index("Classes, the worst first") : page.index("Calibration</h3>")]
    assert "47 more classes" in tables
    assert set(re.findall(r'<th scope="row"><span[^>]*>([^<]*)<', tables)) == set(names)


@pytest.mark.parametrize(("count", "shown"), [(5, False), (6, True)])
def test_five_guesses_among_five_classes_are_not_shown(
    tmp_path: Path, count: int, shown: bool
) -> None:
    run = made_run(tmp_path / "run", classes=[f"class {number}" for number in range(count)])
    found = json.loads((run / "evaluation.json").read_text())["evaluations"][0]
    assert ("Top-5 accuracy" in page_with(run, found)) == shown


def test_correlation_is_a_plain_number(tmp_path: Path) -> None:
    run = made_text_run(tmp_path / "run", "text-classification")
    found = text_evaluation("text-classification")
    found["metrics"]["matthews_correlation"] = -0.25
    assert "Matthews correlation -0.25" in words_of(page_with(run, found))


@pytest.mark.parametrize("task", LABELLED)
def test_mistake_is_a_card_with_its_text(task: str, with_mistake: Callable[..., str]) -> None:
    shown = card(with_mistake(task, text="first of a pair\nsecond of it", label="a, b"))
    assert paragraph(shown, "text") == "first of a pair\nsecond of it"
    assert Elements(shown).text == (
        "first of a pair second of it exchange_rate 98.0 % is a, b test.csv:2"
    )


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script></li></ul><img src=x onerror=a()>",
        "我的银行卡还没有到",
        "لم تصل بطاقتي بعد",
        "מתי הכרטיס שלי יגיע?",
        "मेरा कार्ड अभी तक नहीं आया",
        "👩‍👩‍👧 🇨🇭 e\u0301",
    ],
)
def test_text_of_any_script_is_shown_escaped(text: str, with_mistake: Callable[..., str]) -> None:
    page = with_mistake("text-classification", text=text, label=text, predicted=text)
    elements = Elements(page)
    assert elements.open == []
    assert not {"script", "img"} & {tag for tag, _ in elements.found}
    assert elements.text.count(text) >= 3


def test_long_text_is_cut(with_mistake: Callable[..., str]) -> None:
    shown = paragraph(with_mistake("text-classification", text="word " * 1000), "text")
    assert 380 <= len(shown) <= 401
    assert shown.endswith("word…")


def test_mistaken_answer_shows_question_right_and_given_answer_and_their_place(
    with_mistake: Callable[..., str],
) -> None:
    shown = card(with_mistake("question-answering"))
    context = paragraph(shown, "text")
    assert paragraph(shown, "question") == "When was it opened?"
    assert "The bridge was opened in 1884." in context
    assert context.startswith("…")
    assert len(context) <= 402
    assert Elements(shown).text.endswith("no answer 98.0 % right: 1884 test.csv:2")


def test_context_without_the_right_answer_is_shown_where_the_given_one_is(
    with_mistake: Callable[..., str],
) -> None:
    shown = with_mistake("question-answering", label="no answer", predicted="1884")
    assert "The bridge was opened in 1884." in paragraph(shown, "text")


def test_questions_with_and_without_an_answer_are_told_apart(pages: Pages) -> None:
    table = pages["question-answering"].split("Questions by kind")[1].split("</table>")[0]
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", table)
    assert cells[5:9] == ["with an answer", "150", "80.0 %", "60.0 %"]
    assert cells[10:14] == ["without an answer", "30", "70.0 %", "70.0 %"]


def test_questions_of_one_kind_are_not_told_apart(tmp_path: Path) -> None:
    run = made_text_run(tmp_path / "run", "question-answering")
    found = text_evaluation("question-answering")
    found["metrics"]["no_answer"] = {"samples": 0, "exact_match": None, "f1": None}
    assert "Questions by kind" not in page_with(run, found)


def test_damaged_texts_are_called_so(pages: Pages) -> None:
    assert "Damaged texts" in headings(pages["text-classification"])
    assert "1 damaged text left out" in pages["text-classification"]


def test_command_has_the_flags_of_text(tmp_path: Path) -> None:
    reading = Reading(
        text_column="question,answer",
        label_column="intent",
        label_separator="|",
        tokenizer="train",
        vocabulary_size=4000,
        length=128,
        stride=64,
        whole_words=True,
    )
    task = "masked-language-modeling"
    run = made_text_run(tmp_path / "run", task, reading=reading, recipe={"dropout": 0.0})
    settings = json.loads((run / "settings.json").read_text())
    write(run / "settings.json", {**settings, "checkpoint_activations": True})
    found = read_run(run)
    assert command(found.settings, run, has_gpus=False).startswith(
        "octavolt train bert-base --data ./texts --weights imagenet "
        "--task masked-language-modeling --text-column question,answer --label-column intent "
        "--label-separator '|' --tokenizer train --vocabulary-size 4000 --length 128 --stride 64 "
        "--whole-words --precision bf16 --seed 0 --checkpoint-activations --epochs 2 "
    )
    assert " --dropout 0.0 --settings " in command(found.settings, run, has_gpus=False)


def test_flags_of_what_does_not_apply_are_left_out(pages: Pages) -> None:
    command = re.search(r"<pre>(.*)</pre>", pages["text-classification"])
    assert command
    assert set(re.findall(r"--[a-z-]+", command[1])) == {
        "--data",
        "--weights",
        "--task",
        "--tokenizer",
        "--length",
        "--precision",
        "--seed",
        "--epochs",
        "--batch",
        "--optimizer",
        "--learning-rate",
        "--settings",
    }


@pytest.mark.parametrize(
    ("task", "gone", "kept"),
    [
        ("text-classification", ("image size", "mixup", "mirror", "whole"), ("label smoothing",)),
        ("causal-language-modeling", ("crop scale", "label smoothing", "whole"), ("length",)),
        ("masked-language-modeling", ("class weights", "stride"), ("whole words",)),
    ],
)
def test_settings_that_do_not_apply_are_not_listed(
    task: str, gone: tuple[str, ...], kept: tuple[str, ...], pages: Pages
) -> None:
    listed = pages[task].split('id="settings"')[1].split("</section>")[0]
    assert not [one for one in gone if one in listed]
    assert all(one in listed for one in kept)
    assert "the network&#39;s own" in listed


@pytest.mark.parametrize("task", TASKS)
def test_settings_without_effect_are_those_that_training_refuses(task: str) -> None:
    assert without_effect(task) == set(refused_in_training(TASKS[task]))
    assert without_effect(task) <= {one.name for one in fields(Recipe)}


def test_comparison_of_texts_has_no_column_of_pictures(tmp_path: Path) -> None:
    task = "causal-language-modeling"
    runs = [
        made_text_run(tmp_path / "first", task, reading=Reading(tokenizer="train", length=128)),
        made_text_run(tmp_path / "second", task, reading=Reading(tokenizer="gpt2", length=64)),
    ]
    page = compare_runs(runs, tmp_path / "compare.html").read_text()
    words = words_of(page)
    columns = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page)
    assert columns[:3] == ["Run", "Perplexity", "Bits a byte"]
    assert not {"Interval, %", "Image size", "Vocabulary size", "Dropout", "Task"} & set(columns)
    assert re.search(r"[\d.]+ tokens ", words)
    assert "Perplexities of different tokenizers can't be compared" in words
    assert "Wilson" not in words


def test_perplexities_of_one_tokenizer_are_compared_without_a_remark(tmp_path: Path) -> None:
    runs = [made_text_run(tmp_path / name, "dialogue") for name in ("first", "second")]
    assert "Perplexities" not in compare_runs(runs, tmp_path / "compare.html").read_text()
