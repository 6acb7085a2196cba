from pathlib import Path

import pytest

from octavolt.data.text.docstrings import demo, open_docstrings
from octavolt.errors import OctavoltError

LONG = "says enough to be told from what the others say"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for package in ("aa", "bb"):
        (tmp_path / package).mkdir()
        for number in range(4):
            (tmp_path / package / f"m{number}.py").write_text(
                f'"""Module {number} of {package} {LONG}."""\n\n'
                f"class One:\n    def two(self):\n"
                f'        """Method {number} of {package} {LONG}."""\n'
                f'        if 1:\n            def three(): "short"\n'
            )
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "x.py").write_text(f'"""A test {LONG}."""')
    (tmp_path / "broken.py").write_text("def")
    return tmp_path


def test_the_class_of_a_docstring_is_its_package(library: Path) -> None:
    data = demo(library, task="text-classification", seed=0)
    assert data.classes == ("aa", "bb")
    rows = {
        samples.name(index): samples.read(index)
        for samples in data.splits.values()
        for index in range(len(samples))
    }
    assert len(rows) == 16
    assert rows["bb/m2.py:5"].texts == (f"Method 2 of bb {LONG}.",)
    assert rows["bb/m2.py:5"].labels == (1,)


def test_all_docstrings_are_documents(library: Path) -> None:
    data = demo(library, task="causal-language-modeling", seed=0)
    assert {split: len(samples) for split, samples in data.splits.items()} == {
        "train": 12,
        "val": 2,
        "test": 2,
    }
    assert data.notes[0].startswith("16 docstrings of the standard library of Python 3.")


def test_a_task_without_a_demo_is_told_which_have_one() -> None:
    with pytest.raises(OctavoltError, match="no demo for question-answering; there is one for"):
        open_docstrings(task="question-answering", seed=0)
