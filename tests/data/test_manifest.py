import re
from pathlib import Path

import pytest

from octavolt.contract import DataSet
from octavolt.data import open_data
from octavolt.errors import OctavoltError

from .conftest import WritePicture


@pytest.fixture
def folder(tmp_path: Path, picture: WritePicture) -> Path:
    for name in ("a", "b", "c", "d", "e", "f", "with, comma", "猫"):
        picture(tmp_path / f"{name}.jpg")
    return tmp_path


def opened(folder: Path, text: str | bytes, name: str = "index.csv") -> DataSet:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_data(f"{folder}/{name}")


def labels(data: DataSet) -> dict[str, str]:
    return {
        pictures.name(index): data.classes[pictures.labels[index]]
        for pictures in data.splits.values()
        for index in range(len(pictures))
    }


ROWS = [("a", "cat"), ("b", "dog"), ("c", "cat"), ("d", "dog"), ("e", "cat"), ("f", "dog")]
EXPECTED = {f"{name}.jpg": label for name, label in ROWS}


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", " "])
@pytest.mark.parametrize("header", [True, False])
def test_any_delimiter_is_found_with_and_without_a_header(
    folder: Path, delimiter: str, header: bool
) -> None:
    lines = [f"filename{delimiter}class"] * header
    lines += [f"{name}.jpg{delimiter}{label}" for name, label in ROWS]
    assert labels(opened(folder, "\n".join(lines), "index.txt")) == EXPECTED


@pytest.mark.parametrize(
    "header", ["path,label", "Image , CATEGORY", "img_path,Target", "file,class"]
)
def test_columns_are_found_by_their_usual_names(folder: Path, header: str) -> None:
    rows = "\n".join(f"{name}.jpg,{label}" for name, label in ROWS)
    assert labels(opened(folder, f"{header}\n{rows}")) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_marks_line_ends_and_quotes_of_spreadsheets_are_read(folder: Path, encoding: str) -> None:
    text = 'id,path,label\r\n1,"with, comma.jpg","big ""cat"""\r\n2,猫.jpg,"two\r\nlines"\r\n'
    rows = "".join(f"3,{name}.jpg,dog\r\n" for name in "abcd")
    found = labels(opened(folder, (text + rows).encode(encoding)))
    assert found["with, comma.jpg"] == 'big "cat"'
    assert found["猫.jpg"] == "two\r\nlines"


def test_a_split_column_divides_the_pictures(folder: Path) -> None:
    rows = "train,cat,a.jpg\nTraining,dog,b.jpg\nval,cat,c.jpg\nvalid,dog,d.jpg\ntest,cat,e.jpg\n"
    data = opened(folder, f"split,class,path\n{rows}")
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 2,
        "val": 2,
        "test": 1,
    }


def test_a_column_of_folds_is_noted_and_not_used(folder: Path) -> None:
    rows = "\n".join(f"{name}.jpg,{label},3" for name, label in ROWS)
    data = opened(folder, f"path,label,fold\n{rows}")
    assert "The column 'fold' is not used: it names no train, val or test." in data.notes


def test_absolute_paths_and_those_of_windows_are_read(folder: Path, picture: WritePicture) -> None:
    away = picture(folder / "sub/away.jpg")
    rows = f"{away},cat\nsub\\away.jpg,dog\n" + "a.jpg,cat\nb.jpg,dog\n" * 3
    assert labels(opened(folder, f"path,label\n{rows}"))[str(away)] == "cat"


def test_wrong_rows_are_faults_with_file_and_line(folder: Path) -> None:
    good = "".join(f"{name}.jpg,{label},train\n" for name, label in ROWS)
    wrong = 'gone.jpg,"a\nb",train\na.jpg,,train\n\n,cat,train\na.jpg,cat\na.jpg,cat,eval\n'
    data = opened(folder, f"path,label,split\n{good}{wrong}")
    assert [(one.file, one.line, one.problem, one.damaged) for one in data.faults[:5]] == [
        ("index.csv", 8, "there is no file 'gone.jpg'", True),
        ("index.csv", 10, "the label is empty", True),
        ("index.csv", 12, "the path is empty", True),
        ("index.csv", 13, "2 columns, where the first row has 3", True),
        ("index.csv", 14, "the split 'eval' is not train, val or test", True),
    ]
    assert sum(map(len, data.splits.values())) == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "'index.csv' is empty. Give each picture a row: its path and its label."),
        (b"path,label\n", "'index.csv' has a header and no rows. Give each picture a row."),
        (
            b"path,label\na.jpg,cat\nb.jpg,caf\xe9\n",
            "'index.csv' is no UTF-8 text from line 3 on. Save it as UTF-8; spreadsheets call that "
            "'CSV UTF-8'.",
        ),
        (
            b"number,label\n1,cat\n",
            "'index.csv' has no column for the path among number, label. Name one of them 'path' "
            "(or ",
        ),
        (
            b"path,kind\na.jpg,cat\n",
            "'index.csv' has no column for the label among path, kind. Name one of them 'label' "
            "(or ",
        ),
        (
            b"path,label\nx.jpg,cat\ny.jpg,dog\n",
            "None of the 2 rows of 'index.csv' can be used; the first, line 2: there is no file "
            "'x.jpg'. Paths are relative to '",
        ),
        (
            b"path,label,split\na.jpg,cat,test\n",
            "No row of 'index.csv' is of the training split. Write 'train' into its column of "
            "splits for the pictures to learn from.",
        ),
        (
            b"one,two,three\n",
            "'index.csv' begins with one, two, three: it is not clear which column holds the paths "
            "and which the labels. Add a first line that says 'path' and 'label'.",
        ),
        (b"\0\0\0\0", "'index.csv' "),
        (
            b"path,label\n" + b"x" * 200_000,
            "'index.csv' is no table: field larger than field limit",
        ),
    ],
)
def test_a_table_that_can_not_be_used_says_why(folder: Path, content: bytes, message: str) -> None:
    with pytest.raises(OctavoltError, match="^" + re.escape(message)):
        opened(folder, content)
