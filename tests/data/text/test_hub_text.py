from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavolt.contract import DataSet, Reading
from octavolt.data.text.hub_text import open_hub_text
from octavolt.errors import OctavoltError

Saved = Callable[[dict[str, list[Any]]], str]


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    """A folder of Parquet files stands for a data set of the Hub: the library reads both alike."""
    import datasets

    def save(columns: dict[str, list[Any]]) -> str:
        folder = tmp_path / "hub"
        folder.mkdir()
        datasets.Dataset.from_dict(columns).to_parquet(str(folder / "train.parquet"))
        return f"hub:{folder}"

    return save


@pytest.fixture(autouse=True)
def own_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def opened(source: str, task: str) -> DataSet:
    return open_hub_text(source, task=task, seed=0, reading=Reading())


def test_texts_and_labels_are_found_by_their_columns(saved: Saved) -> None:
    source = saved({"text": [f"text {at}" for at in range(12)], "label": ["a", "b"] * 6})
    data = opened(source, "text-classification")
    assert data.classes == ("a", "b")
    assert sum(map(len, data.splits.values())) == 12
    assert data.splits["train"].name(0).startswith("train:")


def test_a_column_of_text_is_documents(saved: Saved) -> None:
    data = opened(
        saved({"text": [f"text {at}" for at in range(9)] + [""]}), "causal-language-modeling"
    )
    assert sum(map(len, data.splits.values())) == 9


def test_questions_are_read(saved: Saved) -> None:
    answers = [{"text": ["b"], "answer_start": [2]}] * 4
    columns: dict[str, list[Any]] = {
        "question": ["What?"] * 4,
        "context": [f"a b {at}" for at in range(4)],
        "answers": answers,
    }
    data = opened(saved(columns), "question-answering")
    assert data.splits["train"].read(0).answers == (("b", 2),)


def test_a_column_of_messages_is_conversations(saved: Saved) -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    data = opened(saved({"messages": [turns] * 4}), "causal-language-modeling")
    assert data.task == "dialogue"
    assert data.splits["train"].read(0)[1].content == "hello"


def test_a_column_that_is_missing_is_named(saved: Saved) -> None:
    source = saved({"text": ["a"] * 4})
    with pytest.raises(OctavoltError, match="has no column 'question'; its columns: text"):
        opened(source, "question-answering")


def test_what_can_not_be_loaded_is_told_with_what_to_do() -> None:
    with pytest.raises(OctavoltError, match=r"HF_ENDPOINT .* give their path instead"):
        opened("hub:./no-such-folder/at-all", "text-classification")
