import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Octavolt, write_picture

ODD_NAMES = ["图片 一.png", "two words.png", "a\nb.png", "-.png", "star[1]*.png"]


def predicted(octavolt: Octavolt, run: Path | str, *inputs: object) -> list[dict[str, Any]]:
    answer = octavolt("predict", run, *inputs, "--json")
    assert (answer.status, answer.err) == (0, "")
    rows: list[dict[str, Any]] = answer.document["predictions"]
    return rows


def files_of(rows: list[dict[str, Any]]) -> list[str]:
    return [row["file"] for row in rows]


def test_files_folders_and_patterns_are_answered_in_order(octavolt: Octavolt, run: Path) -> None:
    for name in ("b/2.png", "b/1.png", "b/deep/3.PNG", "c/5.png", "c/4.png", "a.odd"):
        write_picture(Path(name), 0, 0)
    Path("b/notes.txt").write_text("no picture, and not asked for")
    rows = predicted(octavolt, run, "a.odd", "b", "c/*.png")
    assert files_of(rows) == [
        "a.odd",
        "b/1.png",
        "b/2.png",
        "b/deep/3.PNG",
        "c/4.png",
        "c/5.png",
    ]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_name_comes_back_as_it_is(octavolt: Octavolt, run: Path, name: str, form: str) -> None:
    write_picture(Path(name), 0, 0)
    flags = ["--json"] if form == "json" else ["--format", form]
    answer = octavolt("predict", run, *flags, "--", f"./{name}" if name[0] == "-" else name)
    assert answer.status == 0
    if form == "csv":
        files = [row["file"] for row in csv.DictReader(io.StringIO(answer.out, newline=""))]
    elif form == "jsonl":
        files = [json.loads(answer.out)["file"]]
    else:
        files = files_of(answer.document["predictions"])
    assert [file.removeprefix("./") for file in files] == [name]


def test_line_break_in_a_name_breaks_no_line_of_the_table(octavolt: Octavolt, run: Path) -> None:
    write_picture(Path("a\nb.png"), 0, 0)
    answer = octavolt("predict", run, "a\nb.png", "gone\n.png")
    assert answer.out.startswith("a\\nb.png  ")
    assert answer.out.count("\n") == 1
    assert answer.err.startswith("gone\\n.png: No such file or directory\n")


def test_list_on_standard_input(
    octavolt: Octavolt, run: Path, standard_input: Callable[[bytes], None]
) -> None:
    for name in ("图片 一.png", "in/x.png", "last.png"):
        write_picture(Path(name), 0, 0)
    standard_input("图片 一.png\r\n\nin\nlast.png".encode())
    assert files_of(predicted(octavolt, run, "-")) == ["图片 一.png", "in/x.png", "last.png"]


def test_name_that_is_no_utf8_is_answered(
    octavolt: Octavolt, run: Path, standard_input: Callable[[bytes], None]
) -> None:
    picture = write_picture(Path("x.png"), 0, 0)
    picture.rename(b"caf\xe9.png".decode("utf-8", "surrogateescape"))
    standard_input(b"caf\xe9.png\n")
    assert files_of(predicted(octavolt, run, "-")) == ["caf\\udce9.png"]


def test_bad_files_cost_a_line_of_error_each_and_the_others_are_answered(
    octavolt: Octavolt, run: Path
) -> None:
    write_picture(Path("1.png"), 0, 0)
    Path("2.png").write_bytes(b"")
    Path("3.png").write_bytes(write_picture(Path("x/3.png"), 0, 0).read_bytes()[:100])
    write_picture(Path("5.png"), 0, 1)
    answer = octavolt("predict", run, "1.png", "2.png", "3.png", "4.png", "5.png")
    assert answer.status == 2
    assert [line.split("  ")[0] for line in answer.out.splitlines()] == ["1.png", "5.png"]
    assert answer.err == (
        "2.png: the file is empty\n"
        "3.png: image file is truncated\n"
        "4.png: No such file or directory\n"
        "octavolt: 3 of 5 could not be answered.\n"
    )


@pytest.mark.parametrize("flags", [["--json"], ["--format", "jsonl"], ["--format", "csv"]])
def test_error_stands_in_the_row_of_its_file(
    octavolt: Octavolt, run: Path, flags: list[str]
) -> None:
    write_picture(Path("1.png"), 0, 0)
    answer = octavolt("predict", run, "1.png", "2.png", *flags)
    assert answer.status == 2
    assert answer.err == "octavolt: 1 of 2 could not be answered.\n"
    if flags == ["--json"]:
        rows = answer.document["predictions"]
    elif "jsonl" in flags:
        rows = [json.loads(line) for line in answer.out.splitlines()]
    else:
        rows = [*csv.DictReader(io.StringIO(answer.out))]
    assert rows[1]["error"] == "No such file or directory"
    assert not rows[0].get("error")


def test_forms_say_the_same(octavolt: Octavolt, run: Path, pictures: Path) -> None:
    folder = pictures / "test"
    rows = predicted(octavolt, run, folder)
    lines = octavolt("predict", run, folder, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == rows
    cells = [*csv.DictReader(io.StringIO(octavolt("predict", run, folder, "--format", "csv").out))]
    for row, cell in zip(rows, cells, strict=True):
        assert (cell["file"], cell["label_1"]) == (row["file"], row["label"])
        assert [cell[f"probability_{place}"] for place in (1, 2, 3)] == [
            f"{one['probability']:.6f}" for one in row["top"]
        ]
    table = octavolt("predict", run, folder, "--top", 1).out.splitlines()
    assert table == [
        f"{row['file']}  {row['label']} {100 * row['probability']:.1f} %" for row in rows
    ]


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_batch_size_changes_no_label(
    octavolt: Octavolt, run: Path, pictures: Path, batch: int
) -> None:
    small = predicted(octavolt, run, pictures / "test", "--batch", batch)
    large = predicted(octavolt, run, pictures / "test", "--batch", 32)
    assert [row["label"] for row in small] == [row["label"] for row in large]
    # Kernels for other batch sizes add in another order, in bf16 where the machine has it.
    assert [row["probability"] for row in small] == pytest.approx(
        [row["probability"] for row in large], abs=0.02
    )


def test_predictions_are_what_evaluation_counts(
    octavolt: Octavolt, run: Path, pictures: Path
) -> None:
    rows = predicted(octavolt, run, pictures / "test", "--precision", "fp32")
    counts = {(true, said): 0 for true in "bgr" for said in "bgr"}
    for row in rows:
        counts[Path(row["file"]).parent.name[0], row["label"][0]] += 1
    metrics = octavolt("evaluate", run, "--precision", "fp32", "--json").document["metrics"]
    expected = [[counts[true, said] for said in "bgr"] for true in "bgr"]
    assert metrics["confusion"] == expected
    assert metrics["samples"] == len(rows) == 9


def test_empty_folder_is_an_error(octavolt: Octavolt, run: Path) -> None:
    Path("none").mkdir()
    answer = octavolt("predict", run, "none")
    assert answer.status == 2
    assert (answer.out, answer.err) == ("", "octavolt: No picture was found in none.\n")


def test_pattern_that_matches_nothing_is_an_error_by_its_name(
    octavolt: Octavolt, run: Path
) -> None:
    answer = octavolt("predict", run, "no*.png")
    assert answer.status == 2
    assert answer.err.startswith("no*.png: No such file or directory\n")


def test_network_with_weights_of_a_file_needs_no_run(
    octavolt: Octavolt, run: Path, pictures: Path
) -> None:
    weights = run / "weights.safetensors"
    rows = predicted(octavolt, "tests.train.tiny", pictures / "test", "--weights", weights)
    assert {row["label"] for row in rows} <= {"0", "1", "2"}


def test_a_pipe_and_an_empty_name_are_refused_at_once(octavolt: Octavolt, run: Path) -> None:
    os.mkfifo("pipe.jpg")
    answer = octavolt("predict", run, "pipe.jpg", "")
    assert answer.status == 2
    assert answer.err.count("it is no ordinary file") == 2
