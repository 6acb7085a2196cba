import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from octavolt.contract import DataSet, Reading
from octavolt.data.text.tables import open_documents, open_rows
from octavolt.errors import OctavoltError

ROWS = [
    (f"text number {place}" + ", quoted" * (place % 3), "good" if place % 2 else "bad")
    for place in range(12)
]


def delimited(rows: Sequence[tuple[str, ...]], delimiter: str = ",") -> str:
    def cell(text: str) -> str:
        return f'"{text}"' if delimiter in text or "\n" in text or '"' in text else text

    return "".join(delimiter.join(map(cell, row)) + "\n" for row in rows)


def opened(
    folder: Path, content: str | bytes, name: str = "a.csv", reading: Reading | None = None
) -> DataSet:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return open_rows(str(folder / name), seed=0, reading=reading or Reading())


def read(data: DataSet) -> dict[str, str]:
    """Texts, pairs with a bar between, with the names of their labels."""
    return {
        "|".join(row.texts): "+".join(data.classes[label] for label in row.labels)
        for samples in data.splits.values()
        for row in map(samples.read, range(len(samples)))
    }


def problems(data: DataSet) -> list[tuple[str, int | None, str]]:
    return [(fault.kind, fault.line, fault.problem) for fault in data.faults]


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t"), ("a.csv", ";")])
@pytest.mark.parametrize("header", [True, False])
def test_columns_are_found_with_and_without_a_header(
    tmp_path: Path, name: str, delimiter: str, header: bool
) -> None:
    rows = [("sentence", "Intent")] * header + ROWS
    data = opened(tmp_path, delimited(rows, delimiter), name)
    assert read(data) == dict(ROWS)
    assert data.classes == ("bad", "good")
    assert {split: len(samples) for split, samples in data.splits.items()} == {
        "train": 8,
        "val": 2,
        "test": 2,
    }


def test_a_header_of_unknown_names_is_told_from_a_row(tmp_path: Path) -> None:
    data = opened(tmp_path, delimited([("msg", "cls"), *ROWS]))
    assert read(data) == dict(ROWS)
    assert "taken for names of columns" in data.notes[0]


def test_a_word_that_recurs_below_is_no_header(tmp_path: Path) -> None:
    rows = [(text, "question" if label == "good" else "comment") for text, label in ROWS]
    assert read(opened(tmp_path, delimited(rows))) == dict(rows)


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-8-sig"])
def test_chinese_tables_are_read_in_usual_encodings(tmp_path: Path, encoding: str) -> None:
    rows = [(f"这部电影真的很好看第{place}次", "好评") for place in range(6)]
    rows += [(f"服务态度太差第{place}次", "差评") for place in range(6)]
    content = delimited([("评论", "标签"), *rows]).replace("\n", "\r\n").encode(encoding)
    data = opened(tmp_path, content)
    assert read(data) == dict(rows)
    assert ("a.csv is in GB18030." in data.notes) == (encoding == "gb18030")


def test_lines_within_quotes_are_one_row_and_blank_lines_none(tmp_path: Path) -> None:
    text = 'text,label\r\n\r\n"a ""b""\r\nc",x\r\n\r\n' + "d,x\r\n" * 3 + "e,y\r\n" * 4
    data = opened(tmp_path, text)
    assert read(data)['a "b"\nc'] == "x"
    assert data.faults == ()
    names = {
        samples.read(index).texts[0]: samples.name(index)
        for samples in data.splits.values()
        for index in range(len(samples))
    }
    assert names['a "b"\nc'] == "a.csv:3"


def test_quotes_in_a_table_with_tabs_are_text_if_they_do_not_match(tmp_path: Path) -> None:
    rows = [*ROWS, ('"Oh" he said', "good"), ('5" pipe', "bad"), ('"open', "good")]
    content = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
    assert read(opened(tmp_path, content, "a.tsv")) == dict(rows)


@pytest.mark.parametrize(
    ("row", "kind", "problem"),
    [
        ("a,b,good", "wrong-row", "3 columns, where the first row has 2; put a text"),
        ("alone", "wrong-row", "1 column, where the first row has 2"),
        (" ,good", "empty-text", "the text is empty"),
        ("text,", "wrong-row", "the label is missing"),
        ('"a"b,good', "wrong-row", "a quote inside of a quoted text is not doubled"),
    ],
)
def test_a_bad_row_is_a_fault_with_its_line(
    tmp_path: Path, row: str, kind: str, problem: str
) -> None:
    content = delimited([("text", "label"), *ROWS[:6]]) + row + "\n" + delimited(ROWS[6:])
    data = opened(tmp_path, content)
    assert len(data.faults) == 1
    fault = data.faults[0]
    assert (fault.kind, fault.file, fault.line, fault.damaged) == (kind, "a.csv", 8, True)
    assert fault.problem.startswith(problem)
    assert read(data) == dict(ROWS)


def test_a_quote_that_is_never_closed_is_told_with_its_line(tmp_path: Path) -> None:
    content = delimited([("text", "label"), *ROWS]) + '"open,good\nmore,bad\nmore,bad\n'
    fault = opened(tmp_path, content).faults[0]
    assert fault.line == 14
    assert "never closed; 3 lines" in fault.problem


def test_a_very_long_text_is_read(tmp_path: Path) -> None:
    long = "word " * 100_000
    assert long in read(opened(tmp_path, delimited([("text", "label"), (long, "bad"), *ROWS])))


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as caught:
        opened(
            tmp_path, delimited([("text", "label"), *ROWS]), reading=Reading(text_column="texts")
        )
    assert str(caught.value) == (
        "'a.csv' has no column 'texts', which --text-column names. Did you mean 'text'? It has "
        "text, label."
    )


def test_columns_are_taken_by_name_and_by_number(tmp_path: Path) -> None:
    rows = [(str(place), label, "other", text) for place, (text, label) in enumerate(ROWS)]
    named = delimited([("number", "kind", "text", "said"), *rows])
    reading = Reading(text_column="said", label_column="kind")
    assert read(opened(tmp_path, named, reading=reading)) == dict(ROWS)
    reading = Reading(text_column="4", label_column="2")
    assert read(opened(tmp_path, delimited(rows), reading=reading)) == dict(ROWS)


def test_a_name_for_a_table_without_a_header_asks_for_a_number(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match="Give the number of the column, from 1"):
        opened(tmp_path, delimited(ROWS), reading=Reading(text_column="said"))


@pytest.mark.parametrize("said", [None, "premise,hypothesis"])
def test_pairs_are_found_and_taken(tmp_path: Path, said: str | None) -> None:
    rows = [(text, f"second {place}", label) for place, (text, label) in enumerate(ROWS)]
    content = delimited([("premise", "hypothesis", "label"), *rows])
    data = opened(tmp_path, content, reading=Reading(text_column=said))
    assert read(data) == {f"{one}|{two}": label for one, two, label in rows}


def test_labels_that_are_quantities_are_refused(tmp_path: Path) -> None:
    rows = [("text", "label"), *((f"text {place}", f"{place / 7:.3f}") for place in range(12))]
    with pytest.raises(OctavoltError, match="quantities, not classes"):
        opened(tmp_path, delimited(rows))


@pytest.mark.parametrize("labels", [("0", "1"), ("0.0", "1.0")])
def test_whole_numbers_are_names(tmp_path: Path, labels: tuple[str, str]) -> None:
    rows = [("text", "label"), *((f"text {place}", labels[place % 2]) for place in range(12))]
    assert opened(tmp_path, delimited(rows)).classes == ("0", "1")


def test_one_class_is_too_few(tmp_path: Path) -> None:
    rows = [("text", "label"), *((f"text {place}", "x") for place in range(12))]
    assert [fault.kind for fault in opened(tmp_path, delimited(rows)).faults] == ["too-few-classes"]


def test_a_small_class_is_told_in_texts(tmp_path: Path) -> None:
    faults = opened(tmp_path, delimited([("text", "label"), *ROWS, ("lone", "odd")])).faults
    assert [fault.problem for fault in faults] == [
        "class 'odd' has 1 text; it needs at least 3 to be split: add texts, or give val and test "
        "splits of your own"
    ]


def test_a_column_of_splits_divides(tmp_path: Path) -> None:
    rows = [
        (text, label, ("train", "dev", "test")[place // 4])
        for place, (text, label) in enumerate(ROWS)
    ]
    data = opened(tmp_path, delimited([("text", "label", "split"), *rows]))
    assert {split: len(samples) for split, samples in data.splits.items()} == {
        "train": 4,
        "val": 4,
        "test": 4,
    }


@pytest.mark.parametrize("array", [False, True])
def test_json_lines_and_arrays_are_read_with_their_lines(tmp_path: Path, array: bool) -> None:
    indent = 1 if array else None
    rows = [*ROWS[:3], ("", "good"), *ROWS[4:]]
    objects = [json.dumps({"text": text, "label": label}, indent=indent) for text, label in rows]
    content = "[\n" + ",\n".join(objects) + "\n]" if array else "\n".join(objects)
    data = opened(tmp_path, content, "a.json" if array else "a.jsonl")
    assert problems(data) == [("empty-text", 2 + 3 * 4 if array else 4, "the text is empty")]
    assert read(data) == dict(ROWS[:3] + ROWS[4:])
    assert data.format == "json-lines"


def test_a_line_that_is_no_json_is_a_fault(tmp_path: Path) -> None:
    objects = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    data = opened(tmp_path, "\n".join([*objects, '{"text": "a"', '["a"]']), "a.jsonl")
    assert [line for _, line, _ in problems(data)] == [13, 14]
    assert problems(data)[1][2] == 'this is no JSON object but ["a"]'


def test_half_a_character_is_a_fault(tmp_path: Path) -> None:
    objects = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    data = opened(
        tmp_path, "\n".join([*objects, '{"text": "a\\ud83d", "label": "bad"}']), "a.jsonl"
    )
    assert problems(data)[0][1:] == (
        13,
        "character 2 of the text is half of one (a lone surrogate)",
    )


def test_lists_of_labels_make_the_task_another(tmp_path: Path) -> None:
    lists = [["a"], ["a", "b"], [], ["c"]] * 5
    lines = [json.dumps({"text": f"text {at}", "labels": one}) for at, one in enumerate(lists)]
    data = opened(tmp_path, "\n".join(lines), "a.jsonl")
    assert data.task == "multi-label-text-classification"
    assert read(data) == {f"text {at}": "+".join(one) for at, one in enumerate(lists)}


def test_a_separator_divides_labels(tmp_path: Path) -> None:
    rows = [(f"text {at}", ("a", "a;b", "b;c", "c")[at % 4]) for at in range(20)]
    content = delimited([("text", "label"), *rows])
    data = opened(tmp_path, content, reading=Reading(label_separator=";"))
    assert data.classes == ("a", "b", "c")
    assert read(data) == {text: label.replace(";", "+") for text, label in rows}


def test_a_label_of_val_that_train_lacks_is_left_out(tmp_path: Path) -> None:
    for name, labels in (("train", ["a", "b"]), ("val", ["a", "z"])):
        lines = [json.dumps({"text": f"{name} {at}", "labels": labels}) for at in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    data = open_rows(str(tmp_path), seed=0, reading=Reading())
    assert data.classes == ("a", "b")
    assert data.splits["val"].read(0).labels == (0,)
    assert [fault.problem for fault in data.faults] == [
        "label 'z' is not in train; left out of 3 texts"
    ]


def test_files_named_as_splits_are_splits_and_others_are_named(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.csv").write_text(
            delimited([("text", "label"), *((f"{name}: {text}", label) for text, label in ROWS)])
        )
    (tmp_path / "categories.json").write_text('["good", "bad"]')
    (tmp_path / "LICENSE.txt").write_text("free")
    data = open_rows(str(tmp_path), seed=0, reading=Reading())
    assert {split: len(samples) for split, samples in data.splits.items()} == dict.fromkeys(
        ("train", "val", "test"), 12
    )
    assert data.splits["val"].read(0).texts[0].startswith("dev: ")
    assert data.notes[0] == "Not used: LICENSE.txt, categories.json."


def test_a_test_split_without_labels_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(delimited([("text", "label"), *ROWS]))
    (tmp_path / "test.csv").write_text("text,label\none,\ntwo,\n")
    data = open_rows(str(tmp_path), seed=0, reading=Reading())
    assert data.faults == ()
    assert "test.csv has no labels and is not used." in data.notes


def test_shards_of_parquet_are_read_with_the_names_of_their_classes(tmp_path: Path) -> None:
    import datasets

    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    folder = tmp_path / "data"
    folder.mkdir()
    for shard in range(2):
        rows = ROWS[shard * 6 : shard * 6 + 6]
        columns = {
            "text": [text for text, _ in rows],
            "label": [int(label == "good") for _, label in rows],
        }
        table = datasets.Dataset.from_dict(columns, features=features)
        table.to_parquet(str(folder / f"train-0000{shard}-of-00002.parquet"))
    data = open_rows(str(tmp_path), seed=0, reading=Reading())
    assert data.format == "parquet"
    assert read(data) == dict(ROWS)


def test_a_table_without_a_good_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match=r"None of the 2 rows .* line 2: the label is missing"):
        opened(tmp_path, "text,label\na,\nb,\n")


def test_rows_are_documents_for_language_modeling_and_empty_ones_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"text": text}) for text, _ in [*ROWS, ("", "")])
    )
    data = open_documents(str(tmp_path / "a.jsonl"), seed=0, reading=Reading())
    found = [
        "".join(samples.read(index))
        for samples in data.splits.values()
        for index in range(len(samples))
    ]
    assert sorted(found) == sorted(text for text, _ in ROWS)
    assert data.faults == ()
    assert "a.jsonl: 1 empty row left out." in data.notes


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_brackets_without_end_are_a_message(tmp_path: Path, name: str) -> None:
    with pytest.raises(OctavoltError, match="too many brackets are open at once"):
        opened(tmp_path, "[" * 100_000, name)


def test_damaged_parquet_is_a_message(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}
    pyarrow.parquet.write_table(pyarrow.table(rows), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    for damaged in (content[:200], content[:4] + bytes(200) + content[204:], b"PAR1" + content[8:]):
        with pytest.raises(
            OctavoltError, match=r"'a.parquet' can't be read as Parquet: .*[^.]\. G"
        ):
            opened(tmp_path, damaged, "a.parquet")


def test_one_column_is_not_text_and_label(tmp_path: Path) -> None:
    reading = Reading(text_column="label", label_column="label")
    with pytest.raises(OctavoltError, match="would both be read from 'label'"):
        opened(tmp_path, delimited([("text", "label"), *ROWS]), reading=reading)


def test_an_empty_separator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError, match="--label-separator is empty"):
        opened(tmp_path, delimited(ROWS), reading=Reading(label_separator=""))
