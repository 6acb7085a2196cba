"""`octavolt generate`."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from octavolt.errors import OctavoltError

EXIT, RESET = "/exit", "/reset"
HEADING_CHARACTERS = 60


def generate(
    run: Annotated[str, typer.Argument(help="A run folder, its name or latest; or a network.")],
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="A text to go on with; again for more; - for lines of standard input."),
    ] = None,
    prompt_file: Annotated[
        Path | None, typer.Option(help="A file with a prompt in each line.")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help=f"Talk, line by line; {RESET} forgets, {EXIT} ends.")
    ] = False,
    system: Annotated[
        str | None, typer.Option(help="With --chat: what the network is told first.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="With a network: a published name, a folder or a run.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="New tokens of a text at most.")] = 256,
    temperature: Annotated[
        float, typer.Option(help="Less is more predictable; 0 takes the likeliest token.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option(help="Draw from the likeliest tokens; 0 for all.")] = 50,
    top_p: Annotated[
        float, typer.Option(help="Draw from the likeliest tokens of this probability.")
    ] = 1.0,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1, tokens of the text so far are less likely.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Another number gives another text.")] = 0,
    stop: Annotated[
        list[str] | None, typer.Option(help="End a text before this; again for more.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Prompts together in one pass.")] = 8,
    precision: Annotated[
        str, typer.Option(help="auto, fp16, bf16 or fp32; auto is fp32 on a CPU.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write text with a language model. A text is printed without its prompt."""
    check_flags(prompt, prompt_file, chat=chat, system=system, as_json=as_json)
    from octavolt.data import MODALITIES
    from octavolt.devices import set_up, this_machine
    from octavolt.generate import Dialogue, Sampling, best_precision, language_model
    from octavolt.generate import generate as generated
    from octavolt.networks.opened import open_network

    settings = Sampling(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
        max_tokens=max_tokens,
        stop=tuple(stop or ()),
    )
    prompts = [] if chat else all_prompts(prompt or [], prompt_file)
    machine = this_machine(precision=best_precision(precision))
    set_up(machine)
    opened = open_network(run, machine, MODALITIES, weights=weights)
    language_model(opened)
    if chat:
        talk(Dialogue(opened, settings=settings, system=system, say=say))
        return
    # What is to be said beside a text waits for its end, not to stand in the middle of a line.
    notes: list[str] = []
    pieces = generated(opened, prompts, settings=settings, batch_size=batch, say=notes.append)
    if as_json:
        write_document(pieces, prompts, machine.policy.precision)
    elif len(prompts) == 1:
        write_stream(pieces)
    else:
        write_texts(pieces, prompts)
    for sentence in notes:
        say(sentence)


def check_flags(
    prompt: list[str] | None,
    prompt_file: Path | None,
    *,
    chat: bool,
    system: str | None,
    as_json: bool,
) -> None:
    """Raise unless it is clear what to write."""
    given = {
        "--prompt": bool(prompt),
        "--prompt-file": prompt_file is not None,
        "--json": as_json,
    }
    unfit = [flag for flag, is_given in given.items() if is_given]
    if chat and unfit:
        raise OctavoltError(
            f"--chat reads what you say from standard input: leave {' and '.join(unfit)} away."
        )
    if system is not None and not chat:
        raise OctavoltError("--system goes with --chat: give both, or neither.")
    if not chat and not prompt and prompt_file is None:
        raise OctavoltError(
            "Give a text to go on with: --prompt TEXT, --prompt - for lines of standard input, or "
            "--prompt-file FILE. To talk: --chat."
        )


def all_prompts(given: Iterable[str], file: Path | None) -> list[str]:
    """Return the prompts of the flags, in order, then those of the file; raise if none is left."""
    prompts: list[str] = []
    for one in given:
        prompts += filter(None, lines_of_input()) if one == "-" else [one]
    if file is not None:
        prompts += filter(None, lines_of_file(file))
    if not prompts:
        raise OctavoltError(
            f"{file or 'Standard input'} has no prompt: each line that isn't empty is one."
        )
    return prompts


def lines_of_input() -> Iterator[str]:
    """Yield the lines of standard input as they come."""
    with os.fdopen(os.dup(0), "rb") as lines:
        yield from decoded(lines, "standard input")


def lines_of_file(file: Path) -> Iterator[str]:
    """Yield the lines of a file."""
    try:
        with file.open("rb") as lines:
            yield from decoded(lines, str(file))
    except OSError as error:
        raise OctavoltError(f"{file} can't be read: {error.strerror}.") from error


def decoded(lines: Iterable[bytes], source: str) -> Iterator[str]:
    """Yield lines as text, without their ends; raise for one that isn't UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OctavoltError(
                f"Line {number} of {source} is not UTF-8 at byte {error.start + 1}. Convert it, "
                "as with: iconv -f latin1 -t utf-8"
            ) from error


def say(sentence: str) -> None:
    """Print a sentence beside the text."""
    print(f"octavolt: {sentence}", file=sys.stderr)


def write_stream(pieces: Iterable[Any]) -> None:
    """Print a text as it comes, and end its line even if it is broken off."""
    try:
        for piece in pieces:
            show(piece.text)
    except KeyboardInterrupt:
        print(flush=True)
        raise
    print(flush=True)


def write_texts(pieces: Iterable[Any], prompts: list[str]) -> None:
    """Print each text under its prompt, in order; those that are broken off as far as they came."""
    texts = ["" for _ in prompts]
    done: set[int] = set()
    shown = 0
    try:
        for piece in pieces:
            texts[piece.prompt] += piece.text
            if piece.done:
                done.add(piece.prompt)
            while shown in done:
                write_text(shown, prompts, texts[shown])
                shown += 1
    except KeyboardInterrupt:
        for place in range(shown, len(prompts)):
            if texts[place]:
                write_text(place, prompts, texts[place])
        raise


def write_text(place: int, prompts: list[str], text: str) -> None:
    """Print one text, and above it which prompt it answers."""
    line = prompts[place].splitlines()[0] if prompts[place] else ""
    cut = line if len(line) <= HEADING_CHARACTERS else f"{line[: HEADING_CHARACTERS - 3]}..."
    print(f"--- {place + 1} of {len(prompts)}: {cut}")
    show(text)
    print(flush=True)


@dataclass(kw_only=True)
class Tally:
    """What one prompt got so far."""

    prompt: str
    text: str = ""
    prompt_tokens: int | None = None
    """None until it is its turn."""
    tokens: int = 0
    reason: str = "interrupted"


def write_document(pieces: Iterable[Any], prompts: list[str], precision: str) -> None:
    """Print one JSON document; with what there is, if it is broken off."""
    tallies = [Tally(prompt=prompt) for prompt in prompts]
    began = time.perf_counter()
    try:
        for piece in pieces:
            tally = tallies[piece.prompt]
            tally.text += piece.text
            tally.prompt_tokens, tally.tokens = piece.prompt_tokens, piece.tokens
            tally.reason = piece.reason or tally.reason
    except KeyboardInterrupt:
        print(document(tallies, time.perf_counter() - began, precision))
        raise
    print(document(tallies, time.perf_counter() - began, precision))


def document(tallies: list[Tally], seconds: float, precision: str) -> str:
    """Return the JSON document of all texts."""
    tokens = sum(tally.tokens for tally in tallies)
    value = {
        "completions": [asdict(tally) for tally in tallies],
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
        "precision": precision,
    }
    return json.dumps(value, ensure_ascii=False)


def talk(dialogue: Any) -> None:
    """Answer the lines of standard input until it ends, or /exit."""
    is_terminal = os.isatty(0)
    ask(is_terminal)
    for line in lines_of_input():
        if line.strip() == EXIT:
            return
        if line.strip() == RESET:
            dialogue.reset()
            say("What was said is forgotten.")
        elif line.strip():
            try:
                write_stream(dialogue.ask(line))
            except OctavoltError as error:
                say(str(error))
        ask(is_terminal)


def ask(is_terminal: bool) -> None:
    """Show a person that it is their turn."""
    if is_terminal:
        print("> ", end="", flush=True)


def show(text: str) -> None:
    """Print part of a text; on a terminal without what would control it."""
    if sys.stdout.isatty():
        text = "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)
    print(text, end="", flush=True)
