import pickle

import numpy as np
import pytest

from octavolt.data.text.samples import (
    Conversations,
    ConversationStore,
    Message,
    Places,
    RowDocuments,
    Rows,
    RowStore,
    packed_texts,
    ragged,
)

TEXTS = ["good", "bad", "你好", "fine"]


def places(count: int) -> Places:
    return Places(
        files=("a.csv",), file_of=np.zeros(count, np.int64), lines=np.arange(2, count + 2)
    )


def rows(texts: list[str], labels: list[int], width: int = 1) -> Rows:
    count = len(texts) // width
    store = RowStore(texts=packed_texts(texts), width=width, places=places(count))
    return Rows(store, np.arange(count), np.array(labels))


def test_a_row_is_read_as_it_was_packed() -> None:
    samples = rows(TEXTS, [0, 1, 0, 1])
    assert [samples.read(index).texts for index in range(4)] == [(text,) for text in TEXTS]
    assert samples.read(3).labels == (1,)
    assert samples.name(3) == "a.csv:5"


def test_a_pair_is_two_texts_of_a_row() -> None:
    assert rows(TEXTS, [0, 1], width=2).read(1).texts == ("你好", "fine")


def test_a_selection_keeps_text_label_and_name_together() -> None:
    samples = rows(TEXTS, [0, 1, 2, 3]).select(np.array([3, 1]))
    assert [samples.read(index).texts[0] for index in range(2)] == ["fine", "bad"]
    assert samples.labels.tolist() == [3, 1]
    assert samples.name(0) == "a.csv:5"


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["good", "bad", "你好", "fine!"], [0, 1, 0, 1]),
        (["good", "bad", "你好", "fine"], [0, 1, 1, 1]),
        (["bad", "good", "你好", "fine"], [0, 1, 0, 1]),
        (["goodb", "ad", "你好", "fine"], [0, 1, 0, 1]),
    ],
    ids=["text", "label", "order", "border"],
)
def test_the_digest_changes_with(texts: list[str], labels: list[int]) -> None:
    assert rows(TEXTS, [0, 1, 0, 1]).digest() != rows(texts, labels).digest()


def test_the_digest_is_that_of_the_same_samples() -> None:
    chosen = rows(["no", *TEXTS], [1, 0, 1, 0, 1]).select(np.arange(1, 5))
    assert chosen.digest() == rows(TEXTS, [0, 1, 0, 1]).digest()


def test_characters_are_counted_not_bytes() -> None:
    assert rows(TEXTS, [0, 1, 0, 1]).measure().characters == len("".join(TEXTS))


def test_samples_come_through_a_pickle() -> None:
    samples = pickle.loads(pickle.dumps(rows(TEXTS, [0, 1, 0, 1])))
    assert samples.read(2).texts == ("你好",)


def test_several_labels_are_read_and_change_the_digest() -> None:
    store = RowStore(texts=packed_texts(["a", "b"]), width=1, places=places(2))
    firsts = np.array([0, 0])
    samples = Rows(store, np.arange(2), firsts, ragged([[0, 2], []]))
    other = Rows(store, np.arange(2), firsts, ragged([[0, 1], []]))
    assert [samples.read(index).labels for index in range(2)] == [(0, 2), ()]
    assert samples.digest() != other.digest()


def test_a_conversation_is_read_as_it_was_packed() -> None:
    store = ConversationStore(
        contents=packed_texts(["one", "two", "be kind", "three", "four"]),
        roles=ragged([[1, 2], [0, 1, 2]]),
        places=places(2),
    )
    samples = Conversations(store, np.array([1]))
    assert samples.read(0) == (
        Message(role="system", content="be kind"),
        Message(role="user", content="three"),
        Message(role="assistant", content="four"),
    )
    assert samples.digest() != Conversations(store, np.array([0])).digest()


def test_a_row_is_a_document() -> None:
    samples = RowDocuments(packed_texts(TEXTS), places(4), np.array([2, 0]))
    assert [list(samples.read(index)) for index in range(2)] == [["你好"], ["good"]]
    assert samples.labels.tolist() == [0, 0]
