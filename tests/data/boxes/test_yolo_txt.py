from pathlib import Path

import pytest

from octavolt.data.boxes.opened import kind_of, open_boxes
from octavolt.errors import OctavoltError

from .made import boxes, kinds, picture, the_fault

LINE = "1 0.5 0.5 0.5 0.25\n"
CORNERS = [15, 15, 45, 25]


def text(file: Path, content: str = LINE) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def folder(root: Path, *, names: str = "cat\ndog\n") -> Path:
    for split, name in (("train", "a"), ("train", "b"), ("val", "c")):
        picture(root / "images" / split / f"{name}.jpg", ord(name))
        text(root / "labels" / split / f"{name}.txt")
    if names:
        (root / "classes.txt").write_text(names)
    return root


EXPECTED = {name: [("dog", CORNERS)] for name in ("train/a.jpg", "train/b.jpg", "val/c.jpg")}


def test_shares_become_pixels(tmp_path: Path) -> None:
    data = open_boxes(str(folder(tmp_path)))
    assert (data.format, data.classes, data.faults) == ("yolo", ("cat", "dog"), ())
    assert boxes(data) == EXPECTED


def test_without_names_classes_are_numbers(tmp_path: Path) -> None:
    data = open_boxes(str(folder(tmp_path, names="")))
    assert data.classes == ("0", "1")
    assert "No file names the classes: they are called by their numbers." in data.notes


def test_fewer_names_than_numbers_is_an_error(tmp_path: Path) -> None:
    root = folder(tmp_path, names="cat\n")
    with pytest.raises(
        OctavoltError,
        match=r"'classes\.txt' names 1 class, 0 to 0, but 'labels/train/a\.txt', line 1, is of "
        r"class 1; the largest of all is 1\.",
    ):
        open_boxes(str(root))


@pytest.mark.parametrize(
    "settings",
    [
        "train: images/train\nval: images/val\nnc: 2\nnames: ['cat', dog]\n",
        "path: .\ntrain: ../images/train\nval: ../images/val\nnames:\n  0: cat\n  1: dog\n",
        "names: {1: dog, 0: cat}\ntrain: train.txt\nval:\n  - images/val\n",
        "path: /there/is/no/such\ntrain: /on/another/images/train\nval: images/val\n"
        "names:\n- cat\n- dog\n",
    ],
)
@pytest.mark.parametrize("named", ["folder", "file"])
def test_a_yaml_names_classes_and_folders(tmp_path: Path, settings: str, named: str) -> None:
    root = folder(tmp_path, names="x\n")
    (root / "data.yaml").write_text(settings)
    (root / "train.txt").write_text("./images/train/a.jpg\n\nimages/train/b.jpg\n")
    source = root if named == "folder" else root / "data.yaml"
    assert kind_of(str(source))
    data = open_boxes(str(source))
    assert (data.classes, data.faults) == (("cat", "dog"), ())
    assert boxes(data) == EXPECTED


def test_a_yaml_may_name_a_folder_elsewhere(tmp_path: Path) -> None:
    root = folder(tmp_path / "far")
    (tmp_path / "near").mkdir()
    file = tmp_path / "near/data.yaml"
    file.write_text(f"path: {root}\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")
    assert boxes(open_boxes(str(file))) == EXPECTED


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("train: images/train\nnames: [a\n", r"'data\.yaml', line 3: no YAML"),
        ("train: images/train\nnames: {0: a, 2: b}\n", "names no class 1"),
        ("train: images/train\nnames: [a]\nnc: 3\n", "says nc: 3 and has 1 name"),
        ("train: nowhere\nnames: [a]\n", "names 'nowhere' for train"),
        ("train: images/train\nnames: {a: {b: c}}\n", "has no names of classes"),
    ],
)
def test_a_yaml_that_is_wrong_is_an_error(tmp_path: Path, settings: str, message: str) -> None:
    root = folder(tmp_path)
    (root / "data.yaml").write_text(settings)
    with pytest.raises(OctavoltError, match=message):
        open_boxes(str(root))


def test_names_that_yaml_takes_for_truth_stay_names(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [no, 010]\n")
    assert open_boxes(str(root)).classes == ("no", "010")


@pytest.mark.parametrize("layout", ["{split}/images/{name}", "obj_{split}_data/{name}"])
def test_other_layouts_are_found(tmp_path: Path, layout: str) -> None:
    for split, name in (("train", "a"), ("train", "b"), ("valid", "c")):
        image = layout.format(split=split, name=name)
        picture(tmp_path / f"{image}.jpg")
        text(tmp_path / f"{image.replace('/images/', '/labels/')}.txt")
    (tmp_path / "obj.names").write_text("cat\ndog\n")
    assert kind_of(str(tmp_path))
    assert boxes(open_boxes(str(tmp_path))) == EXPECTED


def test_a_picture_without_text_is_background_and_a_text_without_picture_a_fault(
    tmp_path: Path,
) -> None:
    root = folder(tmp_path)
    picture(root / "images/train/empty.jpg")
    text(root / "labels/train/empty.txt", "")
    picture(root / "images/train/none.jpg")
    text(root / "labels/train/lost.txt")
    data = open_boxes(str(root))
    assert kinds(data) == [
        ("no-annotation", "images/train/none.jpg", None),
        ("missing-file", "labels/train/lost.txt", None),
    ]
    assert boxes(data)["train/empty.jpg"] == boxes(data)["train/none.jpg"] == []


def test_a_split_without_any_text_is_not_used(tmp_path: Path) -> None:
    root = folder(tmp_path)
    picture(root / "images/test/z.jpg")
    data = open_boxes(str(root))
    assert [*data.splits] == ["train", "val"]
    assert "The split test is not used: no text for its 1 picture." in data.notes


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1 0,5 0.5 0.5 0.25", "the number '0,5' has a comma; write 0.5"),
        ("1 0.5 0.5 0.5", "4 values; a box has class, x, y, width, height"),
        ("1 0.1 0.1 0.2 0.2 0.3 0.3", "7 values; a box has class, x, y, width, height (an outline"),
        ("1 30 20 30 10", "30 looks like pixels"),
        ("-1 0.5 0.5 0.5 0.25", "the class '-1' is no whole number"),
        ("dog 0.5 0.5 0.5 0.25", "'dog' is no number"),
        ("1 1.5 0.5 0.5 0.25", "the box 75, 15, 105, 25 lies outside of its picture"),
    ],
)
def test_what_is_no_box_costs_its_picture(tmp_path: Path, line: str, problem: str) -> None:
    root = folder(tmp_path)
    text(root / "labels/train/b.txt", f"{LINE}\n{line}\n")
    data = open_boxes(str(root))
    (fault,) = data.faults
    assert (fault.file, fault.line, fault.damaged) == ("labels/train/b.txt", 3, True)
    assert fault.problem.startswith(problem)
    assert [*boxes(data)] == ["train/a.jpg", "val/c.jpg"]


def test_two_pictures_of_one_text_are_a_fault(tmp_path: Path) -> None:
    root = folder(tmp_path)
    picture(root / "images/train/a.png")
    assert (
        "'images/train/a.jpg' has the same text"
        in the_fault(open_boxes(str(root)), "wrong-annotation").problem
    )


def test_a_picture_that_can_not_be_read_keeps_its_place_for_the_check(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / "images/train/a.jpg").write_bytes(b"no picture")
    data = open_boxes(str(root))
    assert data.splits["train"].sizes.tolist() == [[0, 0], [40, 60]]
    assert boxes(data)["train/a.jpg"] == []
