"""Videos, cameras and streams of `octavolt predict`."""

import csv
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavolt.cli.boxes_out import in_place, new_folder, say_of_fonts
from octavolt.cli.named import on_one_line
from octavolt.cli.named import shown as printable
from octavolt.errors import OctavoltError
from octavolt.units import counted, format_count, format_seconds

SHOWN_SECONDS = 0.5
"""Between two looks at how it goes."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the user asked of videos."""

    live: bool
    output: Path | None
    form: str
    as_json: bool


def are_videos(named: Sequence[str], *, live: bool) -> bool:
    """Return whether the inputs are videos; raise if only some are, or none though `--live`."""
    from octavolt.video import is_video, without_password

    videos = [is_video(one) for one in named]
    if any(videos) and not all(videos):
        name = without_password(named[videos.index(True)])
        raise OctavoltError(
            f"{name} is a video and {named[videos.index(False)]} isn't. Predict them one after "
            "the other."
        )
    if live and not any(videos):
        raise OctavoltError(
            "--live is for a video, a camera or a stream. Leave it away for pictures."
        )
    return any(videos)


def check_wish(named: Sequence[str], wish: Wish) -> None:
    """Raise if what was asked doesn't go with videos."""
    if wish.form == "coco":
        raise OctavoltError("--format coco is for pictures. For a video: --format jsonl.")
    if wish.as_json and wish.output is None:
        raise OctavoltError(
            "--json of a video is a summary; its boxes are written to --output FOLDER. Give one, "
            "or take --format jsonl instead: a line a frame."
        )
    if wish.output is None:
        return
    for one in named:
        if Path(one).exists() and Path(one).resolve().parent == wish.output.resolve():
            raise OctavoltError(f"--output {wish.output} is the folder of {one}. Give another one.")


def predict_videos(opened: Any, ask: Any, named: Sequence[str], wish: Wish) -> None:
    """Answer videos one after the other; status 2 if one could not be answered to its end."""
    from octavolt.train.signals import noticed
    from octavolt.video import quiet_decoders

    check_wish(named, wish)
    if wish.output is not None:
        new_folder(wish.output, named)
        say_of_fonts(opened.classes)
    quiet_decoders()
    leave_a_core(opened.machine)
    summaries: list[dict[str, Any]] = []
    problems: list[OctavoltError] = []
    write_row = row_writer(wish)
    with noticed(patient=False) as asked:
        for one, name in zip(named, file_names(named), strict=True):
            try:
                summaries.append(
                    predict_video(
                        one,
                        ask,
                        name,
                        wish,
                        opened.classes,
                        write_row,
                        stop=lambda: asked.stop_signal != 0,
                    )
                )
            except OctavoltError as error:
                problems.append(error)
                if len(named) > 1:
                    print(f"octavolt: {error}", file=sys.stderr)
            if asked.stop_signal:
                break
    if wish.as_json:
        print(json.dumps({"videos": summaries}, ensure_ascii=False))
    if problems and len(named) == 1:
        raise problems[0]
    if problems:
        print(f"octavolt: {len(problems)} of {len(named)} could not be answered.", file=sys.stderr)
        sys.exit(2)
    # To stop a camera is the only way to end it; a file that is stopped isn't done.
    if asked.stop_signal and not summaries[-1]["endless"]:
        raise KeyboardInterrupt


def leave_a_core(machine: Any) -> None:
    """Leave one core of a CPU to what reads, draws and encodes beside the network.

    Threads of the arithmetic wait for each other actively: on 2 cores, both of them for the network
    took 127 to 653 ms a frame of 720 lines through YOLOv3-tiny, one of them 80 to 99 ms.
    """
    import torch

    if machine.device.type == "cpu":
        torch.set_num_threads(max(1, machine.threads - 1))


def predict_video(
    named: str,
    ask: Any,
    name: str,
    wish: Wish,
    classes: Sequence[str],
    write_row: Callable[[str, Any], None] | None,
    *,
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """Answer one video; return how it went. Whatever happens, what was written is whole."""
    from octavolt.cli.show import Shower
    from octavolt.video import Tally, VideoFile, open_frames, played

    frames, tally, shower = open_frames(named), Tally(), Shower()
    live = wish.live or frames.endless
    file: VideoFile | None = None
    looked = time.monotonic()
    try:
        try:
            for shown in played(frames, ask, live=live, tally=tally, stop=stop):
                if wish.output is not None:
                    file = file or VideoFile(wish.output, name, rate=frames.rate, classes=classes)
                    file.add(shown)
                if write_row is not None:
                    write_row(frames.name, shown)
                if time.monotonic() - looked >= SHOWN_SECONDS:
                    looked = time.monotonic()
                    shower.moving(so_far(tally, shown.frame.number, frames.frame_count, live=live))
        finally:
            shower.close()
            frames.close()
            if file is not None:
                file.close()
    except OctavoltError as error:
        if file is None or not file.written:
            raise
        raise OctavoltError(f"{error} What came before is in {file.path}.") from error
    written = [] if file is None else [str(file.path), str(file.lines.path)]
    into = f" Written: {' and '.join(written)}" if written else ""
    print(f"{frames.name}: {in_all(tally, live=live)}.{into}", file=sys.stderr, flush=True)
    return {
        "file": frames.name,
        "endless": frames.endless,
        "frames": tally.frames,
        "dropped": tally.dropped,
        "seconds": tally.seconds,
        "frames_per_second": tally.rate,
        "latency_p50_seconds": tally.latency(0.5) if live else None,
        "latency_p95_seconds": tally.latency(0.95) if live else None,
        "written": written,
    }


def so_far(tally: Any, number: int, count: int | None, *, live: bool) -> str:
    """Return how a video goes."""
    of = f" of {format_count(count)}" if count else ""
    line = f"frame {format_count(number + 1)}{of}  {tally.recent_rate:.1f} frames/s"
    return f"{line}  {dropped(tally)}" if live else line


def in_all(tally: Any, *, live: bool) -> str:
    """Return how a video went."""
    line = (
        f"{counted(tally.frames, 'frame')} in {format_seconds(tally.seconds)}, "
        f"{tally.rate:.1f} frames/s"
    )
    return f"{line}, {dropped(tally)}" if live else line


def dropped(tally: Any) -> str:
    """Return how many frames there was no time for, and how late the answers came."""
    return (
        f"{format_count(tally.dropped)} dropped, latency {1000 * tally.latency(0.5):.0f} ms, "
        f"95 % within {1000 * tally.latency(0.95):.0f} ms"
    )


def row_writer(wish: Wish) -> Callable[[str, Any], None] | None:
    """Return what prints a frame; None if frames go to files alone."""
    if wish.as_json or (wish.output is not None and wish.form == "table"):
        return None
    if wish.form == "jsonl":
        return print_line
    if wish.form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        names = ["label", "score", "xmin", "ymin", "xmax", "ymax"]
        writer.writerow(["file", "frame", "seconds", *names])
        return lambda file, shown: print_cells(writer, file, shown)
    return print_words


def print_line(file: str, shown: Any) -> None:
    """Print a frame as a JSON line."""
    from octavolt.video.written import row_of

    row = {"file": printable(file), **row_of(shown)}
    print(json.dumps(row, ensure_ascii=False), flush=True)


def print_cells(writer: Any, file: str, shown: Any) -> None:
    """Print a row a box; a frame without any has one row."""
    start = [printable(file), shown.frame.number, f"{shown.frame.seconds:.3f}"]
    for each in shown.answer["boxes"]:
        writer.writerow([*start, each["label"], f"{each['score']:.6f}", *each["box"]])
    if not shown.answer["boxes"]:
        writer.writerow([*start, *[""] * 6])


def print_words(file: str, shown: Any) -> None:
    """Print a frame on one line."""
    said = [in_place(each) for each in shown.answer["boxes"]] or ["no box"]
    start = f"{on_one_line(file)}  {shown.frame.seconds:.3f} s"
    print(f"{start}  {',  '.join(said)}", flush=True)


def file_names(named: Sequence[str]) -> list[str]:
    """Return what the files of each video are called, without an ending."""
    from octavolt.video.source import is_address, is_camera_number

    names: list[str] = []
    for one in named:
        plain = (
            f"camera-{one}"
            if is_camera_number(one)
            else "stream"
            if is_address(one)
            else Path(one).stem
        )
        name, turn = plain, 1
        while name.lower() in map(str.lower, names):
            turn += 1
            name = f"{plain}-{turn}"
        names.append(name)
    return names
