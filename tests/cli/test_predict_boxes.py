import csv
import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from octavolt.cli.boxes_out import category_ids, image_ids, new_name
from octavolt.cli.video_out import file_names
from octavolt.networks import coco
from tests.cli.conftest import Octavolt
from tests.video.squares import painted, read_video, write_png, write_run, write_video


@pytest.fixture(scope="session")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a detector that finds red squares, surely, and green ones."""
    return write_run(tmp_path_factory.mktemp("runs") / "finder")


def write_two(folder: Path) -> None:
    """Write a picture with two squares and one with none."""
    write_png(folder / "a.png", painted(128, 128, red=[(16, 32, 32)], green=[(64, 64, 48)]))
    write_png(folder / "b.png", painted(64, 64))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_formats_agree(octavolt: Octavolt, finder: Path) -> None:
    write_two(Path("in"))
    rows = lines(octavolt("predict", finder, "in", "--format", "jsonl").out)
    assert [row["file"] for row in rows] == ["in/a.png", "in/b.png"]
    assert rows[0]["boxes"] == [
        {"label": "red", "score": 0.875, "box": [16.0, 32.0, 48.0, 64.0]},
        {"label": "绿色", "score": 0.5, "box": [64.0, 64.0, 112.0, 112.0]},
    ]
    assert rows[1]["boxes"] == []
    assert octavolt("predict", finder, "in", "--json").document == {"predictions": rows}
    assert octavolt("predict", finder, "in").out.splitlines() == [
        "in/a.png  red 88 % (16 32 48 64),  绿色 50 % (64 64 112 112)",
        "in/b.png  no box",
    ]
    cells = [*csv.DictReader(io.StringIO(octavolt("predict", finder, "in", "--format", "csv").out))]
    assert [(row["file"], row["label"], row["xmax"]) for row in cells] == [
        ("in/a.png", "red", "48.0"),
        ("in/a.png", "绿色", "112.0"),
        ("in/b.png", "", ""),
    ]


def test_coco_results_are_taken_by_its_reader(octavolt: Octavolt, finder: Path) -> None:
    mask = pytest.importorskip("pycocotools.coco")
    write_two(Path("in"))
    answer = octavolt("predict", finder, "in", "--format", "coco")
    assert answer.status == 0
    assert answer.document == [
        {
            "image_id": 1,
            "category_id": 1,
            "bbox": [16.0, 32.0, 32.0, 32.0],
            "score": 0.875,
            "file_name": "a.png",
        },
        {
            "image_id": 1,
            "category_id": 2,
            "bbox": [64.0, 64.0, 48.0, 48.0],
            "score": 0.5,
            "file_name": "a.png",
        },
    ]
    truth = mask.COCO()
    truth.dataset = {
        "images": [{"id": 1}, {"id": 2}],
        "annotations": [],
        "categories": [{"id": 1, "name": "red"}, {"id": 2, "name": "绿色"}],
    }
    truth.createIndex()
    assert len(truth.loadRes(answer.document).anns) == 2


def test_no_box_at_all_is_an_empty_list(octavolt: Octavolt, finder: Path) -> None:
    write_png(Path("b.png"), painted(64, 64))
    assert octavolt("predict", finder, "b.png", "--format", "coco").document == []


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        (["x/000000000139.jpg", "x/000000000285.jpg"], [139, 285]),
        (["x/7.jpg", "y/7.jpg"], [1, 2]),
        (["x/7.jpg", "x/seven.jpg"], [1, 2]),
        (["x/²"], [1]),
        ([], []),
    ],
)
def test_numbers_of_pictures(files: list[str], ids: list[int]) -> None:
    assert image_ids(files) == ids


def test_numbers_of_classes() -> None:
    published = category_ids(coco.classes())
    assert (published["person"], published["toothbrush"], len(published)) == (1, 90, 80)
    assert category_ids(["cat", "dog"]) == {"cat": 1, "dog": 2}


@pytest.mark.parametrize(
    ("flags", "labels"),
    [
        ([], ["red", "绿色"]),
        (["--score", 0.6], ["red"]),
        (["--classes", "绿色"], ["绿色"]),
        (["--classes", "red, 绿色"], ["red", "绿色"]),
        (["--max-boxes", 1], ["red"]),
        (["--max-boxes", 1, "--tile"], ["red"]),
        (["--tile", "--score", 0.95], []),
    ],
)
def test_limits(octavolt: Octavolt, finder: Path, flags: list[object], labels: list[str]) -> None:
    write_two(Path("in"))
    rows = lines(octavolt("predict", finder, "in/a.png", "--format", "jsonl", *flags).out)
    assert [one["label"] for one in rows[0]["boxes"]] == labels


def test_small_things_are_found_in_tiles(octavolt: Octavolt, finder: Path) -> None:
    squares = [(10, 20, 6), (300, 200, 9), (61, 100, 8)]
    write_png(Path("large.png"), painted(256, 384, red=squares))
    Path("bad.png").write_bytes(b"nothing")
    answer = octavolt("predict", finder, "large.png", "bad.png", "--tile", "--format", "jsonl")
    assert answer.status == 2
    large, bad = lines(answer.out)
    found = {tuple(one["box"]) for one in large["boxes"]}
    assert found == {(x, y, x + side, y + side) for x, y, side in squares}
    assert bad["error"] == "it is no picture in a format that can be read"


@pytest.mark.parametrize("tile", [[], ["--tile"]])
def test_pictures_are_drawn_as_they_lie_below_their_folder(
    octavolt: Octavolt, finder: Path, tile: list[str]
) -> None:
    write_two(Path("in"))
    write_png(Path("in/deep/图片 1.png"), painted(400, 400, red=[(100, 100, 200)]))
    pixels = painted(400, 400, red=[(100, 100, 200)])[:, :, ::-1]
    Path("in/c.jpg").write_bytes(cv2.imencode(".jpg", pixels)[1].tobytes())
    answer = octavolt("predict", finder, "in", "--output", "out/new", *tile)
    assert answer.status == 0
    assert len(answer.out.splitlines()) == 4
    files = sorted(str(one.relative_to("out/new")) for one in Path("out/new").rglob("*.*"))
    assert files == ["a.png", "b.png", "c.jpg", "deep/图片 1.png"]
    encoded = np.frombuffer(Path("out/new/deep/图片 1.png").read_bytes(), np.uint8)
    drawn = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
    assert drawn is not None
    # The first color of the palette, in OpenCV's order, on the left side of the box.
    assert tuple(drawn[200, 100].tolist()) == (0, 159, 230)


def test_names_that_are_taken_get_a_number() -> None:
    taken: set[str] = set()
    files = ["in/a.bmp", "in/A.jpg", "in/a.png", "else/a.gif", "in/b/a.jpg"]
    names = [str(new_name(Path(one), [Path("in")], taken)) for one in files]
    assert names == ["a.jpg", "A-2.jpg", "a.png", "a-3.jpg", "b/a.jpg"]


@pytest.mark.parametrize("output", ["in", "in/drawn", "full", "file"])
def test_output_replaces_nothing(octavolt: Octavolt, finder: Path, output: str) -> None:
    write_two(Path("in"))
    write_png(Path("full/a.png"), painted(8, 8))
    Path("file").touch()
    before = {path: path.read_bytes() for path in Path().rglob("*.png")}
    answer = octavolt("predict", finder, "in", "--output", output)
    said = "lies in in, which is predicted" if output.startswith("in") else "is not empty"
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert {path: path.read_bytes() for path in Path().rglob("*.png")} == before


def test_output_that_can_not_be_made_is_said(octavolt: Octavolt, finder: Path) -> None:
    write_two(Path("in"))
    Path("file").touch()
    answer = octavolt("predict", finder, "in", "--output", "file/below")
    assert answer.status == 2
    assert "Can't write into file/below: Not a directory." in answer.err


def test_other_networks_refuse_flags_of_boxes(octavolt: Octavolt, run: Path) -> None:
    flags = ["--score", "0.5", "--tile", "--output", "out", "--format", "coco"]
    answer = octavolt("predict", run, "a.png", *flags)
    assert answer.status == 2
    assert answer.err == (
        "octavolt: --score, --tile, --output and --format coco are for detectors; tiny finds no "
        "boxes. Leave them away.\n"
    )
    answer = octavolt("predict", run, "a.png", "--live")
    assert answer.err == (
        "octavolt: --live is for detectors; tiny finds no boxes. Leave it away.\n"
    )
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.png", "--classes", "rde"], "No class is named 'rde'. Did you mean 'red'?"),
        (["a.png", "--classes", ","], "--classes names no class."),
        (["a.png", "--live"], "--live is for a video, a camera or a stream."),
        (["a.png", "clip.mp4"], "clip.mp4 is a video and a.png isn't."),
        (["clip.mp4", "--format", "coco"], "--format coco is for pictures."),
        (["clip.mp4", "--json"], "--json of a video is a summary;"),
        (["clip.mp4", "--output", "."], "--output . is the folder of clip.mp4."),
        (["gone.mp4"], "gone.mp4 can't be read: No such file or directory."),
        (["empty.mp4"], "empty.mp4 can't be decoded: the file is empty."),
        (["text.mp4"], "text.mp4 can't be decoded: it is damaged, cut off, or no video."),
        (["997"], "There is no camera 997"),
    ],
)
def test_mistakes_are_one_line(
    octavolt: Octavolt, finder: Path, arguments: list[str], said: str
) -> None:
    write_video(Path("clip.mp4"), frames=2)
    Path("empty.mp4").touch()
    Path("text.mp4").write_text("no video at all")
    answer = octavolt("predict", finder, *arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"octavolt: {said}")
    assert len(answer.err.splitlines()) == 1


def test_video_is_answered_frame_by_frame(octavolt: Octavolt, finder: Path) -> None:
    write_video(Path("clip.mp4"))
    answer = octavolt("predict", finder, "clip.mp4", "--format", "jsonl")
    assert answer.status == 0
    rows = lines(answer.out)
    assert [row["frame"] for row in rows] == [*range(8)]
    assert [row["seconds"] for row in rows] == pytest.approx([k / 25 for k in range(8)])
    lefts = [row["boxes"][0]["box"][0] for row in rows]
    # The coder blurs the sides of squares by a pixel or two.
    assert lefts == pytest.approx([4 * k for k in range(8)], abs=2)
    assert answer.err.startswith("clip.mp4: 8 frames in ")
    assert answer.err.rstrip().endswith("frames/s.")
    table = octavolt("predict", finder, "clip.mp4").out.splitlines()
    assert len(table) == 8
    assert table[1].startswith("clip.mp4  0.040 s  red 88 % (")
    cells = octavolt("predict", finder, "clip.mp4", "--format", "csv").out
    assert [row["frame"] for row in csv.DictReader(io.StringIO(cells))] == [*"01234567"]


def test_video_is_drawn_and_its_boxes_written(octavolt: Octavolt, finder: Path) -> None:
    write_video(Path("片 1.mp4"))
    answer = octavolt("predict", finder, "片 1.mp4", "--output", "out", "--json", "--tile")
    assert answer.status == 0
    (summary,) = answer.document["videos"]
    assert summary["written"] == ["out/片 1.mp4", "out/片 1.jsonl"]
    assert (summary["frames"], summary["dropped"], summary["endless"]) == (8, 0, False)
    rows = lines(Path("out/片 1.jsonl").read_text("utf-8"))
    assert [row["frame"] for row in rows] == [*range(8)]
    frames = read_video(Path("out/片 1.mp4"))
    assert len(frames) == 8
    assert frames[0].shape == (240, 320, 3)


def test_live_video_plays_as_long_and_ends_with_its_last_frame(
    octavolt: Octavolt, finder: Path
) -> None:
    write_video(Path("clip.mp4"), frames=10, rate=50.0)
    answer = octavolt("predict", finder, "clip.mp4", "--live", "--output", "out", "--json")
    assert answer.status == 0
    (summary,) = answer.document["videos"]
    assert summary["frames"] + summary["dropped"] == 10
    assert summary["latency_p95_seconds"] >= summary["latency_p50_seconds"] > 0
    rows = lines(Path("out/clip.jsonl").read_text("utf-8"))
    assert rows[-1]["frame"] == 9
    assert len(read_video(Path("out/clip.mp4"))) == 10
    assert "dropped, latency " in answer.err


def test_damaged_video_leaves_what_came_before(octavolt: Octavolt, finder: Path) -> None:
    writer = cv2.VideoWriter(
        "half.avi", cv2.CAP_FFMPEG, cv2.VideoWriter.fourcc(*"MJPG"), 25.0, (64, 48)
    )
    for number in range(40):
        pixels = painted(48, 64, red=[(number % 30, 8, 24)])
        writer.write(np.ascontiguousarray(pixels[:, :, ::-1]))
    writer.release()
    content = Path("half.avi").read_bytes()
    Path("half.avi").write_bytes(content[: len(content) // 2])
    answer = octavolt("predict", finder, "half.avi", "--output", "out")
    assert answer.status == 2
    assert "half.avi breaks off: it has 40 frames, of which" in answer.err
    assert answer.err.rstrip().endswith("What came before is in out/half.mp4.")
    rows = lines(Path("out/half.jsonl").read_text("utf-8"))
    assert 0 < len(rows) < 40
    assert len(read_video(Path("out/half.mp4"))) == len(rows)


def test_one_bad_video_of_several_is_named_and_the_others_answered(
    octavolt: Octavolt, finder: Path
) -> None:
    Path("bad.mp4").write_text("no video")
    write_video(Path("clip.mp4"), frames=3)
    answer = octavolt("predict", finder, "bad.mp4", "clip.mp4", "--format", "jsonl")
    assert answer.status == 2
    assert len(lines(answer.out)) == 3
    assert "octavolt: bad.mp4 can't be decoded" in answer.err
    assert answer.err.endswith("octavolt: 1 of 2 could not be answered.\n")


def test_interrupt_finishes_the_files(
    octavolt: Octavolt, finder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_video(Path("clip.mp4"), frames=200)
    calls = 0

    def look(self: Any, outputs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return [self.found(one) for one in outputs]

    monkeypatch.setattr("tests.video.squares.SquareFinder.decode", look)
    answer = octavolt("predict", finder, "clip.mp4", "--output", "out")
    assert answer.status == 130
    assert answer.err.startswith("clip.mp4: 3 frames in ")
    assert len(lines(Path("out/clip.jsonl").read_text("utf-8"))) == 3
    assert len(read_video(Path("out/clip.mp4"))) == 3


def test_files_of_videos_have_names_of_their_own() -> None:
    named = ["a/clip.mp4", "b/clip.avi", "0", "rtsp://me:secret@host/door"]
    assert file_names(named) == ["clip", "clip-2", "camera-0", "stream"]
