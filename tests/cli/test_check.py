from pathlib import Path

import pytest

from octavolt.cli.check import write_anew
from octavolt.data.boxes.opened import open_boxes
from tests.data.boxes.made import annotation, coco, image, picture

from .conftest import Octavolt


@pytest.mark.parametrize(
    ("given", "other"), [(("--write", "coco"), "--output"), (("--output", "new"), "--write")]
)
def test_format_and_folder_are_given_together(
    octavolt: Octavolt, given: tuple[str, str], other: str
) -> None:
    answer = octavolt("check", "demo", *given)
    assert answer.status == 2
    assert answer.err == (
        f"octavolt: {given[0]} needs {other}: --write FORMAT --output FOLDER writes the boxes "
        "anew.\n"
    )


def test_what_can_not_be_written_is_said_before_anything_is_read(octavolt: Octavolt) -> None:
    Path("full").mkdir()
    Path("full/file").touch()
    for given, message in (
        (("coc", "new"), "No format of boxes to write is named 'coc'. Did you mean 'coco'?"),
        (("coco", "full"), "'full' is there already."),
    ):
        answer = octavolt("check", "no such data", "--write", given[0], "--output", given[1])
        assert answer.status == 2
        assert message in answer.err


def test_data_without_boxes_are_not_written(octavolt: Octavolt, pictures: Path) -> None:
    answer = octavolt("check", pictures, "--write", "coco", "--output", "new")
    assert answer.status == 2
    assert "has no boxes to write" in answer.err
    assert not Path("new").exists()


def test_what_was_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture(tmp_path / "1.jpg")
    file = coco(
        tmp_path / "a.json",
        [image(1, "1.jpg")],
        [annotation(1, 1, 3, 5, 5, 10, 10), annotation(2, 1, 3, 5, 5, 9, 9, iscrowd=1)],
    )
    write_anew(open_boxes(str(file)), "voc", tmp_path / "new")
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        f"1 picture and 1 box written as voc to {tmp_path / 'new'}; 1 box around a crowd left out, "
        "which voc can't tell.\n",
    )
