from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from octavolt import devices
from octavolt.generate.loop import LanguageModel
from octavolt.networks import opened as opened_module
from tests.cli.conftest import Octavolt
from tests.generate.made import Bytes, machine, model, opened, reference, talking

GREEDY = ("--temperature", "0", "--max-tokens", "12")


def text_of(made: LanguageModel, prompt: str, count: int = 12) -> str:
    tokens = reference(made.body, [*prompt.encode()], count, made.tokenizer.size)
    return str(made.tokenizer.decode(tokens))


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that says what every run is from now on."""

    def open_as(made: LanguageModel, task: str = "causal-language-modeling") -> None:
        monkeypatch.setattr(opened_module, "open_network", lambda *_, **__: opened(made, task=task))
        # One thread, so that products this small wait for no other.
        monkeypatch.setattr(devices, "this_machine", machine)

    return open_as


@pytest.fixture
def made(opens: Callable[..., None]) -> LanguageModel:
    one = model(Bytes(size=128), length=128)
    opens(one)
    return one


def test_one_text_is_printed_without_its_prompt(octavolt: Octavolt, made: LanguageModel) -> None:
    answer = octavolt("generate", "run", "--prompt", "Once", *GREEDY)
    assert (answer.status, answer.out, answer.err) == (0, f"{text_of(made, 'Once')}\n", "")


def test_several_texts_come_in_order_under_their_prompts(
    octavolt: Octavolt, made: LanguageModel
) -> None:
    prompts = ["One", "Two\nlines", "x" * 62]
    flags = [flag for prompt in prompts for flag in ("--prompt", prompt)]
    answer = octavolt("generate", "run", *flags, *GREEDY, "--batch", "2")
    assert answer.out == (
        f"--- 1 of 3: One\n{text_of(made, prompts[0])}\n"
        f"--- 2 of 3: Two\n{text_of(made, prompts[1])}\n"
        f"--- 3 of 3: {'x' * 57}...\n{text_of(made, prompts[2])}\n"
    )


def test_document_has_all(octavolt: Octavolt, made: LanguageModel) -> None:
    answer = octavolt("generate", "run", "--prompt", "One", "--prompt", "T", *GREEDY, "--json")
    assert (answer.status, answer.err) == (0, "")
    document = answer.document
    assert document["completions"] == [
        {
            "prompt": prompt,
            "text": text_of(made, prompt),
            "prompt_tokens": len(prompt),
            "tokens": 12,
            "reason": "length",
        }
        for prompt in ("One", "T")
    ]
    assert document["tokens"] == 24
    assert document["tokens_per_second"] == pytest.approx(24 / document["seconds"])
    assert document["precision"] == "fp32"


@pytest.mark.parametrize("by_file", [True, False])
def test_lines_are_prompts(
    octavolt: Octavolt,
    made: LanguageModel,
    standard_input: Callable[[bytes], None],
    by_file: bool,
) -> None:
    content = "\ufeffOne\r\n\nzwei ä".encode()
    Path("prompts.txt").write_bytes(content)
    standard_input(content)
    flags = ("--prompt-file", "prompts.txt") if by_file else ("--prompt", "-")
    answer = octavolt("generate", "run", *flags, *GREEDY, "--json")
    assert [one["prompt"] for one in answer.document["completions"]] == ["One", "zwei ä"]


def interrupted(generate: Callable[..., Iterator[Any]], pieces: int) -> Callable[..., Any]:
    def broken_off(*given: Any, **named: Any) -> Iterator[Any]:
        for number, piece in enumerate(generate(*given, **named)):
            if number == pieces:
                raise KeyboardInterrupt
            yield piece

    return broken_off


@pytest.mark.parametrize("flags", [(), ("--prompt", "Two"), ("--json",)])
def test_interrupt_keeps_what_is_written(
    octavolt: Octavolt,
    made: LanguageModel,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
) -> None:
    import octavolt.generate as package

    monkeypatch.setattr(package, "generate", interrupted(package.generate, 6))
    answer = octavolt("generate", "run", "--prompt", "One", *flags, *GREEDY)
    assert (answer.status, answer.err) == (130, "")
    if flags == ("--json",):
        (completion,) = answer.document["completions"]
        assert completion["text"] == text_of(made, "One", 6)
        assert (completion["tokens"], completion["reason"]) == (6, "interrupted")
    elif flags:
        one, two = text_of(made, "One", 3), text_of(made, "Two", 3)
        assert answer.out == f"--- 1 of 2: One\n{one}\n--- 2 of 2: Two\n{two}\n"
    else:
        assert answer.out == f"{text_of(made, 'One', 6)}\n"


def test_dialogue(
    octavolt: Octavolt,
    opens: Callable[..., None],
    standard_input: Callable[[bytes], None],
) -> None:
    made = model(talking())
    opens(made, "dialogue")
    standard_input(b"hi\n\n/reset\nhi\n" + b"x" * 80 + b"\n/exit\nnever read\n")
    answer = octavolt("generate", "run", "--chat", *GREEDY)
    prompt = [258, *b"hi", 256, 259]
    tokens = reference(made.body, prompt, 12, 260)
    text = made.tokenizer.decode(tokens[: tokens.index(256)] if 256 in tokens else tokens)
    assert (answer.status, answer.out) == (0, f"{text}\n{text}\n")
    assert answer.err == (
        "octavolt: What was said is forgotten.\n"
        "octavolt: This message has 83 tokens; the network sees 64 at most. Shorten it by 19 or "
        "more.\n"
    )


def test_dialogue_with_a_run_that_knows_no_roles_is_an_error(
    octavolt: Octavolt, made: LanguageModel
) -> None:
    answer = octavolt("generate", "run", "--chat")
    assert answer.status == 2
    assert answer.err.startswith("octavolt: gpt2 was not trained on conversations")
    assert answer.err.endswith("octavolt train gpt2 --data conversations.jsonl\n")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            (),
            "Give a text to go on with: --prompt TEXT, --prompt - for lines of standard input, or "
            "--prompt-file FILE. To talk: --chat.",
        ),
        (
            ("--chat", "--prompt", "x", "--json"),
            "--chat reads what you say from standard input: leave --prompt and --json away.",
        ),
        (("--prompt", "x", "--system", "y"), "--system goes with --chat: give both, or neither."),
        (
            ("--prompt-file", "empty.txt"),
            "empty.txt has no prompt: each line that isn't empty is one.",
        ),
        (("--prompt-file", "gone.txt"), "gone.txt can't be read: No such file or directory."),
        (
            ("--prompt-file", "latin.txt"),
            "Line 2 of latin.txt is not UTF-8 at byte 2. Convert it, as with: iconv -f latin1 -t "
            "utf-8",
        ),
        (
            ("--prompt", "x", "--top-p", "2"),
            "These settings can't generate: top-p is 2.0; it must be above 0 and at most 1.",
        ),
        (
            ("--prompt", "x" * 129),
            "Prompt 1 of 1 has 129 tokens; this network sees 128 at most. Shorten it by 1 or more.",
        ),
    ],
)
def test_errors(
    octavolt: Octavolt, made: LanguageModel, flags: tuple[str, ...], message: str
) -> None:
    Path("empty.txt").write_text("\n\n")
    Path("latin.txt").write_bytes("ok\naé".encode("latin1"))
    answer = octavolt("generate", "run", *flags)
    assert (answer.status, answer.out, answer.err) == (2, "", f"octavolt: {message}\n")
