import pytest

from octavolt.report.mistakes import MOST_CHARACTERS, clipped, excerpt


def test_short_text_stays_but_for_empty_lines() -> None:
    assert clipped("  one\n \n\n two\n") == "one\ntwo"


def test_text_of_400_characters_is_whole() -> None:
    assert clipped("x" * MOST_CHARACTERS) == "x" * MOST_CHARACTERS


def test_text_is_cut_between_words() -> None:
    assert clipped("x" * 380 + " " + "y" * 100) == "x" * 380 + "…"


def test_text_without_spaces_is_cut_at_400_characters() -> None:
    assert clipped("字" * 500) == "字" * MOST_CHARACTERS + "…"


@pytest.mark.parametrize("letter", ["e\u0301", "कि", "👩\u200d👧"])
def test_letter_is_not_parted_from_its_marks(letter: str) -> None:
    for inside in range(len(letter)):
        start = "x" * (MOST_CHARACTERS - inside)
        assert clipped(start + letter + "y" * 50) == start + "…"


def test_excerpt_begins_at_a_word_before_the_answer() -> None:
    context = "some words " * 100 + "the answer" + " and more" * 100
    shown = clipped(excerpt(context, ("the answer",)))
    assert shown.startswith(("…words", "…some"))
    assert "the answer" in shown


def test_excerpt_of_an_early_answer_begins_at_the_beginning() -> None:
    context = "The answer is here. " + "word " * 1000
    assert excerpt(context, ("answer",)) == context


def test_excerpt_without_spaces_still_holds_the_answer() -> None:
    context = "字" * 3000 + "答案" + "字" * 3000
    shown = clipped(excerpt(context, ("答案",)))
    assert "答案" in shown
    assert len(shown) <= MOST_CHARACTERS + 2


def test_excerpt_of_no_answer_is_the_beginning() -> None:
    assert excerpt("word " * 1000, ("no answer", "nor this")).startswith("word ")
