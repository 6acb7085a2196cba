import os
from pathlib import Path

import pytest

from octavolt.data import open_data
from octavolt.errors import OctavoltError

from .conftest import WritePicture


def fill(root: Path, picture: WritePicture, *names: str, count: int = 1) -> None:
    for name in names:
        for number in range(count):
            picture(root / name / f"{number}.jpg")


@pytest.mark.parametrize(
    ("train", "val", "test"),
    [("train", "val", "test"), ("Training", "VALID", "testing"), ("TRAIN", "dev", "Test")],
)
def test_splits_have_any_of_their_usual_names(
    tmp_path: Path, picture: WritePicture, train: str, val: str, test: str
) -> None:
    for split in (train, val, test):
        fill(tmp_path / split, picture, "cat", "dog", count=2)
    data = open_data(str(tmp_path))
    assert {split: len(pictures) for split, pictures in data.splits.items()} == {
        "train": 4,
        "val": 4,
        "test": 4,
    }
    assert data.classes == ("cat", "dog")
    assert data.faults == ()
    assert data.splits["val"].name(0) == f"{val}/cat/0.jpg"


def test_splits_may_lie_inside_a_folder_of_images(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path / "images/train", picture, "cat", "dog", count=3)
    fill(tmp_path / "images/val", picture, "cat", "dog")
    (tmp_path / "labels").mkdir()
    data = open_data(str(tmp_path))
    assert len(data.splits["train"]) == 6
    assert data.splits["val"].name(1) == "images/val/dog/0.jpg"


def test_folders_that_only_wrap_the_data_set_are_entered(
    tmp_path: Path, picture: WritePicture
) -> None:
    fill(tmp_path / "flowers/flowers", picture, "rose", "tulip", count=3)
    data = open_data(str(tmp_path))
    assert data.classes == ("rose", "tulip")
    assert data.notes[0] == "The classes are the folders in 'flowers/flowers'."


def test_a_class_may_be_named_train(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "bus", "plane", "train", count=3)
    assert open_data(str(tmp_path)).classes == ("bus", "plane", "train")


def test_classes_sort_as_people_count(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "day 10", "day 9", "Day 1", count=3)
    assert open_data(str(tmp_path)).classes == ("Day 1", "day 9", "day 10")


@pytest.mark.parametrize("name", ["新鲜 水果", "two words", "line\nbreak", "tab\there", "'\""])
def test_any_name_of_class_and_file_is_read(
    tmp_path: Path, picture: WritePicture, name: str
) -> None:
    for number in range(3):
        picture(tmp_path / name / f"{name}{number}.jpg", f"{number}".encode())
        picture(tmp_path / "plain" / f"{number}.jpg")
    data = open_data(str(tmp_path))
    assert name in data.classes
    pictures = [(split, index) for split in data.splits for index in range(2)]
    contents = {data.splits[split].read(index) for split, index in pictures if index < 2}
    assert {b"0", b"1", b"2"} <= contents


def test_a_name_that_is_no_utf_8_is_read_and_can_be_printed(
    tmp_path: Path, picture: WritePicture
) -> None:
    fill(tmp_path / "train", picture, "cat", "dog")
    fill(tmp_path / "val", picture, "cat", "dog")
    odd = os.fsencode(tmp_path) + b"/train/cat/\xff.jpg"
    Path(os.fsdecode(odd)).write_bytes(b"odd")
    train = open_data(str(tmp_path)).splits["train"]
    assert train.read(1) == b"odd"
    assert train.name(1).encode("utf-8") == b"train/cat/\\xff.jpg"


def test_hidden_files_and_junk_are_passed_over(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "cat", "dog", count=3)
    for junk in ("cat/.DS_Store", "cat/Thumbs.db", ".git/config", "__MACOSX/a", "dog/._x.jpg"):
        picture(tmp_path / junk)
    data = open_data(str(tmp_path))
    assert data.classes == ("cat", "dog")
    assert sum(map(len, data.splits.values())) == 6


def test_a_link_back_up_is_named_and_ends(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "cat", "dog", count=3)
    (tmp_path / "cat/up").symlink_to(tmp_path)
    (tmp_path / "cat/self").symlink_to(tmp_path / "cat")
    data = open_data(str(tmp_path))
    assert sum(map(len, data.splits.values())) == 6
    assert [(fault.kind, fault.file, fault.stops) for fault in data.faults] == [
        ("loop", "cat/self", False),
        ("loop", "cat/up", False),
    ]


def test_links_to_nothing_and_pipes_are_faults(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "cat", "dog", count=3)
    (tmp_path / "cat/gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "cat/ring.jpg").symlink_to(tmp_path / "cat/ring.jpg")
    os.mkfifo(tmp_path / "cat/pipe.jpg")
    data = open_data(str(tmp_path))
    assert [(fault.file, fault.problem) for fault in data.faults] == [
        ("cat/gone.jpg", "a link to nothing"),
        ("cat/pipe.jpg", "a pipe, a socket or a device, no file"),
        ("cat/ring.jpg", "Too many levels of symbolic links"),
    ]


def test_pictures_deeper_in_a_class_folder_belong_to_it(
    tmp_path: Path, picture: WritePicture
) -> None:
    fill(tmp_path, picture, "cat/black", "cat/white", "dog", "dog/old", count=3)
    data = open_data(str(tmp_path))
    assert data.classes == ("cat", "dog")
    assert sum(map(len, data.splits.values())) == 12


def test_an_empty_class_folder_is_a_warning(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path, picture, "cat", "dog", count=3)
    (tmp_path / "emu").mkdir()
    data = open_data(str(tmp_path))
    assert data.classes == ("cat", "dog")
    assert [(fault.kind, fault.file, fault.stops) for fault in data.faults] == [
        ("empty-class", "emu", False)
    ]


def test_a_test_folder_without_classes_is_noted(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path / "train", picture, "cat", "dog", count=3)
    picture(tmp_path / "test/1.jpg")
    data = open_data(str(tmp_path))
    assert data.notes[0] == "'test' holds no class folders and is not used."


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OctavoltError) as caught:
        open_data(str(tmp_path))
    assert str(caught.value) == (
        f"The folder '{tmp_path}' is empty. Put one folder a class into it, named as the class."
    )


def test_a_folder_of_files_names_the_table_beside_them(
    tmp_path: Path, picture: WritePicture
) -> None:
    picture(tmp_path / "a.jpg")
    (tmp_path / "index.csv").write_text("path,label\n")
    with pytest.raises(OctavoltError) as caught:
        open_data(str(tmp_path))
    assert str(caught.value) == (
        f"The folder '{tmp_path}' holds 2 files but no folders. Sort the pictures into one folder "
        f"a class, named as the class. Or name '{tmp_path}/index.csv' if that lists the pictures."
    )


def test_class_folders_without_files_say_so(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "dog").mkdir()
    with pytest.raises(OctavoltError, match=r"hold no files\. Put the pictures of each class"):
        open_data(str(tmp_path))


def test_a_missing_training_folder_is_named(tmp_path: Path, picture: WritePicture) -> None:
    fill(tmp_path / "val", picture, "cat", "dog")
    fill(tmp_path / "test", picture, "cat", "dog")
    with pytest.raises(OctavoltError, match=r"no folder of training pictures, only test, val\."):
        open_data(str(tmp_path))


def test_two_folders_for_one_split_are_refused(tmp_path: Path, picture: WritePicture) -> None:
    for split in ("train", "val", "dev"):
        fill(tmp_path / split, picture, "cat", "dog")
    with pytest.raises(OctavoltError, match="'dev' and 'val' both hold the val split"):
        open_data(str(tmp_path))


def test_a_path_that_does_not_exist_names_the_nearest_beside(
    tmp_path: Path, picture: WritePicture
) -> None:
    (tmp_path / "flowers").mkdir()
    with pytest.raises(OctavoltError) as caught:
        open_data(f"{tmp_path}/flwers")
    assert str(caught.value) == (
        f"There is no data set '{tmp_path}/flwers'. Did you mean '{tmp_path}/flowers'? A data set "
        "is the path of a folder or a file, hub:NAME, or demo."
    )


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "flowers.tar.gz").write_bytes(b"x")
    with pytest.raises(OctavoltError, match=r"is an archive\. Unpack it and name the folder\."):
        open_data(f"{tmp_path}/flowers.tar.gz")


def test_a_folder_that_may_not_be_listed_is_a_fault(
    tmp_path: Path, picture: WritePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, picture, "cat", "dog", "emu", count=3)
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "dog").chmod(0o311)
    # Root may list everything, so the test looks as nobody.
    as_root = os.geteuid() == 0
    if as_root:
        os.seteuid(65534)
    try:
        data = open_data(".")
    finally:
        if as_root:
            os.seteuid(0)
    assert data.classes == ("cat", "emu")
    assert ("unreadable", "dog", True) in [(one.kind, one.file, one.stops) for one in data.faults]
