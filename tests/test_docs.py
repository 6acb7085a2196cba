"""What the documents say is so: commands run, flags exist, links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer.main
from PIL import Image

from octavolt.cli import app, main
from octavolt.data import open_data

ROOT = Path(__file__).parent.parent
PAGES = [path.relative_to(ROOT) for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])]
TOUR = Path("docs/start.md")
SHORTENED = ["--epochs", "1", "--freeze-epochs", "1", "--image-size", "32", "--batch", "256"]
"""Added to each training of the tour, which is otherwise run as it stands."""
TEXT = Path("docs/text.md")
SHORTENED_TEXT = ["--epochs", "1", "--length", "32", "--batch", "512"]
BOXES = Path("docs/boxes.md")
SHORTENED_BOXES = ["--epochs", "1", "--image-size", "64", "--batch", "64"]
SHELL = {"bash", "console", "sh"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
VERBS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str

    def commands(self) -> list[str]:
        """Return the commands: in a console those after a prompt, otherwise all lines."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in lines if line.strip() and not line.startswith("#")]


def read(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    return [Block(language=one[1], text=one[2]) for one in FENCE.finditer(text)]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def lines_with_octavolt(text: str) -> Iterator[list[str]]:
    """Yield the words after `octavolt` of each command in blocks and in backticks."""
    inline = re.findall(r"`([^`\n]+)`", prose(text))
    for command in [*inline, *(line for one in blocks(text) for line in one.text.splitlines())]:
        found = re.search(r"(?:^|[\s/])octavolt ([a-z].*)", command)
        if found and found[1].split()[0] in VERBS:
            yield shlex.split(found[1].split("  #")[0].rstrip("."), posix=False)


def flags_of(verb: str) -> set[str]:
    return {flag for one in VERBS[verb].params for flag in (*one.opts, *one.secondary_opts)} | {
        "--help"
    }


def anchors(text: str) -> set[str]:
    """Return the names by which links find the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    text = read(page)
    for link in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if heading:
            assert heading in anchors(target.read_text(encoding="utf-8")), f"{page}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_have_the_flags_that_pages_give_them(page: Path) -> None:
    for verb, *words in lines_with_octavolt(read(page)):
        flags = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert flags <= flags_of(verb), f"{page}: octavolt {verb} {' '.join(words)}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_flags_in_the_prose_belong_to_some_command(page: Path) -> None:
    known = {flag for verb in VERBS for flag in flags_of(verb)}
    named = set(re.findall(r"`(--[a-z-]+)[^`]*`", prose(read(page))))
    assert named <= known, f"{page}: {named - known}"


def test_the_chinese_readme_has_the_sections_and_commands_of_the_english_one() -> None:
    english, chinese = read(Path("README.md")), read(Path("README.zh-CN.md"))
    levels = [re.findall(r"^(#+) ", prose(text), re.MULTILINE) for text in (english, chinese)]
    assert levels[0] == levels[1]
    shell = [
        [one.text for one in blocks(text) if one.language in SHELL] for text in (english, chinese)
    ]
    assert [without_comments(one) for one in shell[0]] == [
        without_comments(one) for one in shell[1]
    ]


def without_comments(text: str) -> list[str]:
    lines = [re.sub(r"(^|\s+)#(?!SBATCH).*", "", line).rstrip() for line in text.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("digit", range(10))
def test_the_example_digits_are_ones_that_no_training_has_seen(digit: int) -> None:
    held_out = open_data("demo", seed=0).splits["test"]
    labels = {
        np.asarray(held_out.read(index)).tobytes(): int(held_out.labels[index])
        for index in range(len(held_out))
    }
    with Image.open(ROOT / "examples" / "digits" / f"{digit}.png") as image:
        assert labels.get(image.tobytes()) == digit


@pytest.mark.slow
def test_the_tour_works_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(ROOT / "examples", "examples")
    ran = 0
    for block in blocks(read(TOUR)):
        if block.language == "python":
            exec(compile(block.text, str(TOUR), "exec"), {})
        elif block.language in {"bash", "console"}:
            for command in block.commands():
                ran += run(command, monkeypatch, SHORTENED)
    assert ran >= 10
    assert Path("runs/digits/report.html").is_file()
    assert Path("comparison.html").is_file()


@pytest.mark.slow
def test_the_page_on_text_works_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # What stands behind a pipe is a process of its own, which has to find the command.
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "octavolt"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m octavolt "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    shell = [block for block in blocks(read(TEXT)) if block.language == "bash"]
    ran = sum(run(one, monkeypatch, SHORTENED_TEXT) for block in shell for one in block.commands())
    assert ran >= 9
    assert Path("runs/model/report.html").is_file()


@pytest.mark.slow
def test_the_page_on_boxes_works_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shell = [block for block in blocks(read(BOXES)) if block.language == "bash"]
    commands = [one.partition(" > ")[0] for block in shell for one in block.commands()]
    assert sum(run(one, monkeypatch, SHORTENED_BOXES) for one in commands) >= 9
    drawn = [*Path("drawn").iterdir()]
    assert len(drawn) == len([*Path("digits-coco/images/test").iterdir()])


def run(command: str, monkeypatch: pytest.MonkeyPatch, shortened: list[str]) -> bool:
    """Run a command here, or in a shell if it isn't ours; say whether it is."""
    wanted = re.search(r"# exit status (\d+)", command)
    words = shlex.split(command, comments=True)
    if words[0] != "octavolt":
        subprocess.run(["bash", "-c", command], check=True)
        return False
    if words[1] == "train":
        words += shortened
    monkeypatch.setattr(sys, "argv", words)
    try:
        main()
        status: object = 0
    except SystemExit as end:
        status = end.code or 0
    assert status == (int(wanted[1]) if wanted else 0), command
    return True
