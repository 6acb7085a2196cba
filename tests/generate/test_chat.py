import pytest

from octavolt.errors import OctavoltError
from octavolt.generate import Dialogue, Sampling
from octavolt.generate.loop import LanguageModel, continued
from tests.generate.made import Bytes, model, opened, talking

SETTINGS = Sampling(temperature=0, max_tokens=8)
SYSTEM, USER, ASSISTANT, END = 257, 258, 259, 256


def dialogue(
    length: int = 64, system: str | None = None, settings: Sampling = SETTINGS
) -> tuple[Dialogue, list[str]]:
    said: list[str] = []
    made = opened(model(talking(), length=length), task="dialogue")
    return Dialogue(made, settings=settings, system=system, say=said.append), said


def answer(one: Dialogue, text: str) -> str:
    return "".join(piece.text for piece in one.ask(text))


def test_answer_follows_the_whole_conversation() -> None:
    one, said = dialogue(system="s")
    first = answer(one, "ab")
    second = answer(one, "c")
    prompt = [SYSTEM, *b"s", END, USER, *b"ab", END, ASSISTANT, *first.encode(), END]
    prompt += [USER, *b"c", END, ASSISTANT]
    expected = continued(one.model, [prompt], settings=SETTINGS)
    assert second == "".join(piece.text for piece in expected)
    assert not said


def test_reset_forgets_all_but_the_system() -> None:
    one, _ = dialogue(system="s")
    answer(one, "ab")
    one.reset()
    again = answer(one, "ab")
    fresh, _ = dialogue(system="s")
    assert again == answer(fresh, "ab")
    assert [message["role"] for message in one.turns] == ["user", "assistant"]


def test_same_question_twice_draws_other_numbers() -> None:
    settings = Sampling(temperature=4.0, top_k=0, max_tokens=12)
    one, _ = dialogue(settings=settings)
    first = answer(one, "ab")
    one.reset()
    assert answer(one, "ab") != first
    another, _ = dialogue(settings=settings)
    assert answer(another, "ab") == first


def test_oldest_turns_are_forgotten_when_the_window_is_full() -> None:
    one, said = dialogue(length=40, system="s")
    for question, reply in (("first", "x" * 8), ("second", "y" * 8)):
        one.turns += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": reply},
        ]
    # 3 for the system; 7 + 10, 8 + 10, 7 + 1 for the turns; 8 are left for the answer.
    answer(one, "third")
    assert [message["content"] for message in one.turns[:3]] == ["second", "y" * 8, "third"]
    assert said == [
        "The oldest turn was forgotten: the network sees 40 tokens at once, 8 of them for its "
        "answer."
    ]
    assert one.system


def test_message_that_is_too_long_is_an_error_and_forgotten() -> None:
    one, _ = dialogue(length=40, system="s")
    answer(one, "first")
    before = [*one.turns]
    with pytest.raises(OctavoltError) as error:
        next(one.ask("x" * 50))
    assert str(error.value) == (
        "This message has 56 tokens with what the system was told; the network sees 40 at most. "
        "Shorten it by 16 or more."
    )
    assert one.turns == before


def test_answer_that_is_broken_off_stays_said() -> None:
    one, _ = dialogue(settings=Sampling(temperature=4.0, top_k=0, max_tokens=12))
    pieces = one.ask("ab")
    text = next(pieces).text
    pieces.close()  # type: ignore[attr-defined]
    assert one.turns[-1] == {"role": "assistant", "content": text}


def test_run_without_roles_is_an_error() -> None:
    made: LanguageModel = model(Bytes(size=257, end_id=256))
    with pytest.raises(OctavoltError) as error:
        Dialogue(opened(made), settings=SETTINGS)
    assert str(error.value) == (
        "gpt2 was not trained on conversations, so it can't hold one. The tokenizer has no "
        "<|system|>, <|user|>, <|assistant|>, so it can't tell who speaks in a conversation. Train "
        "on conversations: octavolt train gpt2 --data conversations.jsonl"
    )
