import json
from pathlib import Path

import pytest

from octavolt.contract import Reading
from octavolt.data.text.opened import kind_of, open_text
from octavolt.errors import OctavoltError

TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
LINES = "".join(f"line {number}\n" for number in range(100))
TABLE = "text,label\n" + "".join(f"text {at},{'ab'[at % 2]}\n" for at in range(12))
QUESTION = {
    "context": "a b c",
    "qas": [{"id": "q", "question": "b?", "answers": [{"text": "b", "answer_start": 2}]}],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "plain.txt").write_text(LINES)
    (tmp_path / "texts.jsonl").write_text('{"text": "some text"}\n' * 9)
    (tmp_path / "chat.jsonl").write_text((json.dumps({"messages": TURNS}) + "\n") * 9)
    (tmp_path / "squad.json").write_text(
        json.dumps({"data": [{"title": "x", "paragraphs": [QUESTION]}]})
    )
    (tmp_path / "pictures.csv").write_text("path,label\na.jpg,cat\nb.jpg,dog\n" * 3)
    (tmp_path / "pictures.txt").write_text("a.jpg cat\nb.jpg dog\n" * 3)
    for kind in ("pos", "neg"):
        for folder, suffix in (("classes", "txt"), ("photos", "jpg")):
            (tmp_path / folder / kind).mkdir(parents=True)
            for at in range(4):
                (tmp_path / folder / kind / f"{at}.{suffix}").write_text(f"{kind} {at}")
    (tmp_path / "lone").mkdir()
    (tmp_path / "lone" / "input.txt").write_text(LINES)
    (tmp_path / "lone" / "MANIFEST.json").write_text('{"name": "lone"}')
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("table.csv", "text-classification"),
        ("plain.txt", "causal-language-modeling"),
        ("texts.jsonl", "causal-language-modeling"),
        ("chat.jsonl", "dialogue"),
        ("squad.json", "question-answering"),
        ("classes", "text-classification"),
        ("lone", "causal-language-modeling"),
        ("pictures.csv", None),
        ("pictures.txt", None),
        ("photos", None),
        ("absent", None),
    ],
)
def test_the_task_is_guessed_by_looking(root: Path, name: str, kind: str | None) -> None:
    assert kind_of(str(root / name)) == kind


@pytest.mark.parametrize(
    ("name", "task", "form"),
    [
        ("table.csv", "text-classification", "csv"),
        ("table.csv", "masked-language-modeling", "csv"),
        ("plain.txt", "causal-language-modeling", "text"),
        ("lone", "masked-language-modeling", "text"),
        ("texts.jsonl", "causal-language-modeling", "json-lines"),
        ("chat.jsonl", "causal-language-modeling", "conversations"),
        ("chat.jsonl", "dialogue", "conversations"),
        ("classes", "text-classification", "text-folder"),
        ("classes", "causal-language-modeling", "text"),
    ],
)
def test_a_source_is_opened_in_the_format_of_its_task(
    root: Path, name: str, task: str, form: str
) -> None:
    data = open_text(str(root / name), task=task, seed=0, reading=Reading())
    assert data.format == form
    assert {"train", "val"} <= set(data.splits)


def test_a_single_context_can_not_be_divided(root: Path) -> None:
    with pytest.raises(OctavoltError, match="too few to hold any out"):
        open_text(str(root / "squad.json"), task="question-answering", seed=0, reading=Reading())


def test_what_a_task_does_not_read_is_told_with_what_it_does(root: Path) -> None:
    with pytest.raises(OctavoltError, match=r"for dialogue\. It reads demo: .*; conversations: "):
        open_text(str(root / "plain.txt"), task="dialogue", seed=0, reading=Reading())


def test_a_misspelt_path_gets_a_guess(root: Path) -> None:
    with pytest.raises(OctavoltError, match=r"Did you mean '.*/plain\.txt'\?"):
        open_text(
            str(root / "plan.txt"), task="causal-language-modeling", seed=0, reading=Reading()
        )


def test_an_archive_is_to_be_unpacked(root: Path) -> None:
    (root / "a.zip").write_bytes(b"PK")
    with pytest.raises(OctavoltError, match="is an archive"):
        open_text(str(root / "a.zip"), task="text-classification", seed=0, reading=Reading())


@pytest.mark.parametrize(
    ("name", "task", "advice"),
    [
        ("plain.txt", "text-classification", "kind: --task masked-language-modeling."),
        ("squad.json", "text-classification", "It looks like data for --task question-answering."),
        ("chat.jsonl", "text-classification", "It looks like data for --task dialogue."),
        ("table.csv", "question-answering", "It looks like data for --task text-classification."),
    ],
)
def test_data_for_another_task_are_told(root: Path, name: str, task: str, advice: str) -> None:
    with pytest.raises(OctavoltError, match=advice):
        open_text(str(root / name), task=task, seed=0, reading=Reading())


def test_no_other_task_is_advised_for_data_of_the_right_one(root: Path) -> None:
    (root / "table.csv").write_text("text,label\n")
    with pytest.raises(OctavoltError, match=r"Give each text a row\.$"):
        open_text(str(root / "table.csv"), task="text-classification", seed=0, reading=Reading())
