"""What `predict` is asked."""

from pathlib import Path

from octavolt.contract import Reading
from octavolt.data.text.inputs import read_inputs


def test_an_empty_file_is_an_input_with_an_error(tmp_path: Path) -> None:
    for name, content in (("a.txt", ""), ("b.txt", "one\n")):
        (tmp_path / name).write_text(content)
    named = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    found = [*read_inputs(named, task="text-classification", reading=Reading())]
    assert [one.name for one in found] == [named[0], f"{named[1]}:1"]
    assert str(found[0].content) == "the file holds no text"
