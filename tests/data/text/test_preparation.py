"""Tokenizer and length are chosen once, kept with the run, and make every input."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from octavolt.contract import (
    Checked,
    DataSet,
    Entry,
    Input,
    Reading,
    Samples,
    Task,
    TextLimits,
    Wanted,
)
from octavolt.data.text.preparation import (
    MODELING,
    TextPreparation,
    prepared,
    published_preparation,
    read_preparation,
)
from octavolt.data.text.samples import Question, Row
from octavolt.errors import OctavoltError
from octavolt.networks import ENTRIES
from octavolt.runs import write_json
from octavolt.tasks.text import NOT_ASKED
from tests.data.text.made import (
    EVALUATION,
    Heard,
    conversations,
    documents,
    questions,
    rows,
    trained,
)

TEXTS = ["the cat sat", "a dog ran far away and came back", "你好 😀", "the the the"]
BERT, GPT2 = ENTRIES["bert-tiny"], ENTRIES["gpt2"]


def wanted(
    samples: Samples | None = None,
    *,
    entry: Entry = BERT,
    task: int = 0,
    reading: Reading | None = None,
    folder: Path | None = None,
    say: Heard | None = None,
) -> Wanted:
    found = rows(TEXTS, [0, 1, 0, 1]) if samples is None else samples
    chosen: Task = entry.tasks[task]
    return Wanted(
        entry=entry,
        task=chosen,
        data=DataSet(source="x", format="table", classes=("no", "yes"), splits={"train": found}),
        checked=cast(Checked, NoChecks()),
        reading=reading or Reading(vocabulary_size=300),
        weights_folder=folder,
        say=Heard() if say is None else say,
    )


class NoChecks(Checked):
    """Nothing was looked at."""

    def usable(self, data: DataSet, /) -> DataSet:
        raise NotImplementedError

    def fingerprint(self, data: DataSet, /) -> bytes:
        raise NotImplementedError

    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        raise NotImplementedError

    def digest(self, split: str, /) -> str:
        """Return nothing, so that nothing is kept for later."""
        return ""

    def to_json(self) -> dict[str, Any]:
        raise NotImplementedError


def test_length_is_what_the_longest_text_needs_in_steps_of_8() -> None:
    made = prepared(wanted(rows(["a " * 20, "b"], [0, 1])))
    (ids,) = made.tokenizer.encode(["a " * 20])
    assert len(ids) == 20
    assert made.length == 24  # with two more around them
    assert prepared(wanted(rows(["a", "b"], [0, 1]))).length == 16
    assert prepared(wanted(rows(["a " * 600, "b"], [0, 1]))).length == 512


@pytest.mark.parametrize(("task", "length"), [(2, 384), (3, 128)])
def test_length_of_a_task_is_that_of_the_paper(task: int, length: int) -> None:
    samples: Samples = questions(("a b", "a b c", [])) if task == 2 else documents("a b c d")
    assert prepared(wanted(samples, task=task)).length == length
    shorter = replace(BERT, preprocessing=TextLimits(length=64, tokenizer="wordpiece"))
    assert prepared(wanted(samples, task=task, entry=shorter)).length == 64


def test_length_of_modeling_is_the_networks_own() -> None:
    assert prepared(wanted(documents("a b c"), entry=GPT2)).length == 1024
    reading = Reading(length=2048, vocabulary_size=300)
    longer = prepared(wanted(documents("a b c"), entry=GPT2, reading=reading))
    assert longer.length == 2048


@pytest.mark.parametrize("length", [513, 2048])
def test_length_above_the_positions_is_refused(length: int) -> None:
    with pytest.raises(OctavoltError) as raised:
        prepared(wanted(reading=Reading(length=length)))
    assert str(raised.value) == f"--length is {length}; bert-tiny reads at most 512 tokens."


def test_length_above_the_positions_of_given_weights_is_refused(tmp_path: Path) -> None:
    trained("a b", "bpe", 300).save(tmp_path, length=8)
    for key in ("n_positions", "max_position_embeddings"):
        (tmp_path / "config.json").write_text(json.dumps({key: 40}))
        with pytest.raises(OctavoltError, match=r"^--length is 41; gpt2 reads at most 40 tokens"):
            prepared(
                wanted(documents("a b c"), entry=GPT2, reading=Reading(length=41), folder=tmp_path)
            )


@pytest.mark.parametrize("length", [4, 7])
def test_questions_need_room_for_the_context(length: int) -> None:
    samples = questions(("a b", "a b c", []))
    with pytest.raises(OctavoltError) as raised:
        prepared(wanted(samples, task=2, reading=Reading(length=length)))
    assert str(raised.value) == (
        f"--length is {length}; questions with their contexts need at least 8 tokens."
    )
    prepared(wanted(samples, task=2, reading=Reading(length=8))).examples(samples, EVALUATION)


@pytest.mark.parametrize(
    ("entry", "asked", "kind"),
    [(BERT, None, "wordpiece"), (GPT2, "train", "bpe"), (GPT2, "characters", "characters")],
)
def test_tokenizer_is_trained_on_train_and_said(entry: Entry, asked: str | None, kind: str) -> None:
    heard = Heard()
    samples: Samples = documents(*TEXTS) if entry is GPT2 else rows(TEXTS, [0, 1, 0, 1])
    made = prepared(wanted(samples, entry=entry, reading=Reading(tokenizer=asked), say=heard))
    assert made.tokenizer.kind == kind
    assert made.reading.tokenizer == (asked or "train")
    assert heard == [
        f"A tokenizer of the kind {kind} was trained on train: {made.tokenizer.size} tokens."
    ]


def test_tokenizer_is_the_one_that_is_named(tmp_path: Path) -> None:
    own = trained("own words alone", "wordpiece", 60)
    own.save(tmp_path, length=16)
    made = prepared(wanted(reading=Reading(tokenizer=str(tmp_path))))
    assert made.tokenizer.to_json() == own.to_json()
    assert made.reading.tokenizer == str(tmp_path)


def test_vocabulary_size_of_a_tokenizer_that_is_named_is_refused(tmp_path: Path) -> None:
    trained("own words alone", "wordpiece", 60).save(tmp_path, length=16)
    reading = Reading(tokenizer=str(tmp_path), vocabulary_size=100)
    with pytest.raises(OctavoltError) as raised:
        prepared(wanted(reading=reading))
    assert str(raised.value) == (
        "--vocabulary-size is that of a tokenizer that is trained, but the one of "
        f"{tmp_path} is used. Leave --vocabulary-size away."
    )


def test_weights_without_their_tokenizer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as raised:
        prepared(wanted(folder=tmp_path, reading=Reading()))
    assert str(raised.value) == (
        f"{tmp_path} holds weights but no tokenizer (tokenizer.json, vocab.txt, vocab.json, "
        "encoder.json). Put its files there, or name them with --tokenizer."
    )


def test_weights_bring_their_tokenizer(tmp_path: Path) -> None:
    own = trained("own words alone", "wordpiece", 60)
    own.save(tmp_path, length=16)
    made = prepared(wanted(folder=tmp_path, reading=Reading()))
    assert made.tokenizer.to_json() == own.to_json()
    with pytest.raises(OctavoltError, match=r"^--tokenizer train makes new tokens, which the we"):
        prepared(wanted(folder=tmp_path, reading=Reading(tokenizer="train")))


def test_masked_language_modeling_needs_the_mask(tmp_path: Path) -> None:
    trained("own words", "bpe", 300).save(tmp_path, length=16)
    reading = Reading(tokenizer=str(tmp_path))
    with pytest.raises(OctavoltError, match=r"has no \[MASK\], which masked language modeling ne"):
        prepared(wanted(documents("a b"), task=3, reading=reading))


def test_dialogue_has_tokens_for_roles() -> None:
    talks = conversations([("user", "hi"), ("assistant", "hello")])
    made = prepared(wanted(talks, entry=GPT2, task=1, reading=Reading(vocabulary_size=300)))
    assert {"<|system|>", "<|user|>", "<|assistant|>"} <= set(made.tokenizer.special)


def test_whether_questions_may_have_no_answer_is_seen_in_train() -> None:
    all_answered = questions(("a b", "a b c", [("a", 0)]))
    some_not = questions(("a b", "a b c", [("a", 0)]), ("c", "a b c", []))
    assert not prepared(wanted(all_answered, task=2)).may_be_empty
    assert prepared(wanted(some_not, task=2)).may_be_empty


def test_a_run_gives_back_what_was_saved(tmp_path: Path) -> None:
    made = prepared(wanted(questions(("a b", "a b c", [])), task=2))
    made.save(tmp_path)
    write_json(tmp_path / "labels.json", {"classes": []})
    back = read_preparation(tmp_path)
    assert (back.task, back.reading, back.length, back.may_be_empty) == (
        made.task,
        made.reading,
        made.length,
        True,
    )
    assert back.tokenizer.to_json() == made.tokenizer.to_json()
    assert back.shape(task=made.task) == replace(made.shape(task=made.task), classes=0)
    edited = json.loads((tmp_path / "preprocessing.json").read_text())
    edited["reading"]["length"] = "long"
    write_json(tmp_path / "preprocessing.json", edited)
    with pytest.raises(OctavoltError, match=r"its reading is not that of a run\. It was edited"):
        read_preparation(tmp_path)


def test_published_weights_need_their_folder(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"^Weights of gpt2 in a single file come without"):
        published_preparation(GPT2, (), None, task=GPT2.tasks[0].name)
    trained("a b", "bpe", 300).save(tmp_path, length=8)
    (tmp_path / "config.json").write_text(json.dumps({"n_positions": 40}))
    made = published_preparation(GPT2, (), tmp_path, task=GPT2.tasks[0].name)
    assert made.length == 40


def of_task(task: str, *, length: int = 16) -> TextPreparation:
    kind = "wordpiece" if task not in MODELING[:2] else "bpe"
    return TextPreparation(
        trained("the cat sat on a mat. " * 9, kind, 300),
        task=task,
        classes=("no", "yes"),
        reading=Reading(length=length),
    )


def refused(made: TextPreparation, content: Any) -> str:
    with pytest.raises(ValueError) as raised:
        made.ready(Input(name="x", content=content))
    return str(raised.value)


@pytest.mark.parametrize("task", ["text-classification", *MODELING])
def test_empty_texts_are_refused(task: str) -> None:
    made = of_task(task)
    for content in (" \n", Row(texts=("", " "), labels=())):
        assert refused(made, content) == "the text is empty"
    assert refused(made, ValueError("broken")) == "broken"


def test_pairs_and_texts_make_one_batch() -> None:
    made = of_task("text-classification")
    pair = Row(texts=("the cat", "a mat"), labels=())
    batch: Any = made.collate([made.ready(Input(name="x", content=one)) for one in ("sat", pair)])
    assert batch.mask.sum(1).tolist() == [3, 7]
    assert batch.kinds.sum(1).tolist() == [0, 3]
    assert made.output_names() == ("no", "yes")


def test_masked_text_asks_where_the_mask_is() -> None:
    made = of_task("masked-language-modeling")
    assert refused(made, "the cat") == "the text holds no [MASK] to be found"
    ready = made.ready(Input(name="x", content="the [MASK] sat [MASK]"))
    batch: Any = made.collate([ready, made.ready(Input(name="y", content="[MASK]"))])
    assert (batch.targets != NOT_ASKED).nonzero().tolist() == [[0, 2], [0, 4], [1, 1]]
    assert made.output_names()[made.tokenizer.id("cat")] == "cat"


def test_of_a_long_text_the_end_is_gone_on_from() -> None:
    made = of_task("causal-language-modeling", length=4)
    long, short = "the cat sat on a mat", "mat"
    (whole,) = made.tokenizer.encode([long])
    batch: Any = made.collate([made.ready(Input(name="x", content=one)) for one in (short, long)])
    assert batch.ids[1].tolist() == whole[-4:].tolist()
    last = len(made.tokenizer.encode([short])[0]) - 1
    assert (batch.targets != NOT_ASKED).nonzero().tolist() == [[0, last], [1, 3]]


def test_questions_make_windows() -> None:
    made = of_task("question-answering", length=12)
    asked = Question(identity="q", question="cat", context="the mat sat on " * 4, answers=())
    ready = made.ready(Input(name="x", content=asked))
    batch: Any = made.collate([ready, ready])
    count = len(ready[1])
    assert count > 1
    assert batch.owners.tolist() == [0] * count + [1] * count
    assert batch.identities == ("q", "q")


def test_stride_longer_than_the_length_is_refused() -> None:
    made = of_task("causal-language-modeling", length=8)
    with pytest.raises(OctavoltError) as raised:
        made.examples(documents("a b c d"), replace(EVALUATION, stride=9))
    assert str(raised.value) == (
        "--stride is 9; with a length of 8 it must be at most that, or tokens would be left out."
    )
