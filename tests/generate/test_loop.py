from collections.abc import Sequence
from typing import Any

import pytest
import torch

from octavolt.errors import OctavoltError
from octavolt.generate import complete, generate
from octavolt.generate.decoder import visible
from octavolt.generate.loop import Answer, LanguageModel, continued
from octavolt.generate.sampling import Sampling
from tests.generate.made import Bytes, model, opened, reference

GREEDY = Sampling(temperature=0, max_tokens=24)
PROMPTS = [[5, 9, 200], [7], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]]


class Numbers(Bytes):
    """Shows tokens as numbers, so that texts tell them apart."""

    def stream(self) -> Any:
        return NumberStream()


class NumberStream:
    def add(self, token: int) -> str:
        return f" {token}"

    def finish(self) -> str:
        return ""


def written(made: LanguageModel, texts: Sequence[Sequence[int]], **given: Any) -> list[list[int]]:
    out = ["" for _ in texts]
    first = given.get("first", 0)
    for piece in continued(made, texts, **given):
        out[piece.prompt - first] += piece.text
    return [[int(one) for one in text.split()] for text in out]


@pytest.mark.parametrize("seed", range(4))
def test_greedy_tokens_are_those_of_transformers(seed: int) -> None:
    made = model(Numbers(size=265), seed=seed, length=128)
    ours = written(made, [[3, 1, 4]], settings=Sampling(temperature=0, max_tokens=64))
    assert ours == [reference(made.body, [3, 1, 4], 64, 265)]
    assert len(set(ours[0])) > 4


@pytest.mark.parametrize(
    "changes", [{"scale_attn_by_inverse_layer_idx": True}, {"scale_attn_weights": False}]
)
def test_scale_of_attention_is_the_configured_one(changes: dict[str, Any]) -> None:
    made = model(Numbers(), **changes)
    usual = model(Numbers())
    ours = written(made, [PROMPTS[0]], settings=GREEDY)
    assert ours == [reference(made.body, PROMPTS[0], 24, 256)]
    assert ours != written(usual, [PROMPTS[0]], settings=GREEDY)


def test_rows_that_only_pad_the_vocabulary_are_never_drawn() -> None:
    made = model(Numbers(size=100), rows=272)
    with torch.no_grad():
        made.body.transformer.wte.weight[100:] = 50  # by far the likeliest, were they drawn
        made.body.transformer.ln_f.bias[:] = 1
    for settings in (GREEDY, Sampling(temperature=5.0, top_k=0, max_tokens=40)):
        assert max(written(made, [[7]], settings=settings)[0]) < 100


@pytest.mark.parametrize("settings", [GREEDY, Sampling(temperature=3.0, max_tokens=24, seed=5)])
def test_answer_does_not_depend_on_the_batch(settings: Sampling) -> None:
    made = model(Numbers())
    together = written(made, PROMPTS, settings=settings)
    for place, prompt in enumerate(PROMPTS):
        assert written(made, [prompt], settings=settings, first=place) == [together[place]]
    for batch_size in (1, 2):
        assert written(made, PROMPTS, settings=settings, batch_size=batch_size) == together


def test_texts_that_end_leave_the_others_as_they_are() -> None:
    """Wherever one ends, the batch goes on with fewer rows."""
    whole = written(model(Numbers()), PROMPTS, settings=GREEDY)
    lengths = set()
    for end in {text[place] for text in whole for place in (0, 5, 12, 23)}:
        expected = [text[: text.index(end)] if end in text else text for text in whole]
        assert written(model(Numbers(end_id=end)), PROMPTS, settings=GREEDY) == expected
        lengths.add(tuple(len(text) for text in expected))
    assert any(0 < min(several) < max(several) for several in lengths)


def test_seeds_and_places_make_the_text() -> None:
    made = model(Numbers())
    texts = [
        written(
            made, [[7]], settings=Sampling(temperature=3.0, seed=seed, max_tokens=12), first=first
        )
        for seed, first in ((1, 0), (1, 0), (2, 0), (1, 1))
    ]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert texts[0] != texts[3]


def slid(made: LanguageModel, prompt: list[int], new: int) -> list[int]:
    """Return greedy tokens by transformers' forward alone, one whole window a token."""
    length, size = made.length, made.tokenizer.size
    window, tokens = [*prompt], []
    with torch.inference_mode():
        for _ in range(new):
            if len(window) > length:
                window = window[-(length // 2) :]
            token = int(made.body(torch.tensor([window])).logits[0, -1, :size].argmax())
            window.append(token)
            tokens.append(token)
    return tokens


def test_window_slides_by_half_and_says_so_once() -> None:
    made = model(Numbers(), length=16)
    said: list[str] = []
    settings = Sampling(temperature=0, max_tokens=60)
    ours = written(made, PROMPTS, settings=settings, say=said.append)
    assert ours == [slid(made, prompt, 60) for prompt in PROMPTS]
    assert said == [
        "A text is longer than the 16 tokens that this network sees at once: from here on it "
        "writes with the last 8 in view, and forgets what came before."
    ]


def test_cache_is_computed_anew_once_a_slide(monkeypatch: pytest.MonkeyPatch) -> None:
    from octavolt.generate.decoder import Decoder

    begun: list[int] = []
    begin = Decoder.begin

    def counted(self: Any, texts: Any, *, columns: int) -> Any:
        begun.append(len(texts[0]))
        return begin(self, texts, columns=columns)

    monkeypatch.setattr(Decoder, "begin", counted)
    written(model(Numbers(), length=16), [[7]], settings=Sampling(temperature=0, max_tokens=40))
    # 16 tokens are full after 16 are written; each half that is kept then lasts 9 more.
    assert begun == [1, 8, 8, 8]


def test_row_that_outlives_a_longer_one_is_not_cut() -> None:
    """The longer text fills the buffer and ends; the short one has used little of its window."""
    alone = model(Numbers(), length=16)
    long = [*range(1, 13)]
    end = written(alone, [long], settings=Sampling(temperature=0, max_tokens=3))[0][-1]
    made = model(Numbers(end_id=end), length=16)
    said: list[str] = []
    ours = written(made, [long, [7]], settings=Sampling(temperature=0, max_tokens=15))
    expected = slid(made, [7], 15)
    assert ours[1] == expected[: len(ours[1])]
    assert len(ours[1]) == 15 or expected[len(ours[1])] == end
    assert not said


def test_prompt_longer_than_the_network_sees_is_an_error_before_anything() -> None:
    made = model(Numbers(), length=16)
    with pytest.raises(OctavoltError) as error:
        next(continued(made, [[1], [1] * 20], settings=GREEDY))
    assert str(error.value) == (
        "Prompt 2 of 2 has 20 tokens; this network sees 16 at most. Shorten it by 4 or more."
    )


def test_prompt_that_fills_the_window_is_answered() -> None:
    made = model(Numbers(), length=16)
    prompt = [*range(16)]
    ours = written(made, [prompt], settings=Sampling(temperature=0, max_tokens=5))
    assert ours == [slid(made, prompt, 5)]


def test_empty_prompt_begins_after_the_end_of_another_text() -> None:
    made = model(Bytes(size=257, end_id=256))
    (completion,) = complete(opened(made), [""], settings=GREEDY)
    assert completion.prompt_tokens == 1
    wanted = reference(made.body, [256], 24, 257)
    assert completion.tokens == (wanted.index(256) + 1 if 256 in wanted else 24)


def test_empty_prompt_without_such_a_token_is_an_error() -> None:
    with pytest.raises(OctavoltError, match="Prompt 2 of 2 is empty, and this run's tokenizer"):
        next(generate(opened(model()), ["x", ""], settings=GREEDY))


def test_network_that_writes_nothing_is_an_error() -> None:
    with pytest.raises(OctavoltError) as error:
        next(generate(opened(model(), task="text-classification"), ["x"], settings=GREEDY))
    assert str(error.value) == (
        "This network is a gpt2 for text-classification, which writes no text: use octavolt "
        "predict with it. To generate, name a run of gpt2 for causal-language-modeling or dialogue."
    )


def test_stop_string_ends_the_text_and_is_not_shown() -> None:
    made = model(Numbers())
    tokens = written(made, [PROMPTS[0]], settings=GREEDY)[0]
    # Spans three tokens, and begins within one.
    at = next(i for i in range(3, 20) if tokens[i] >= 10)
    stop = f"{str(tokens[at])[1:]} {tokens[at + 1]} {str(tokens[at + 2])[:1]}"
    settings = Sampling(temperature=0, max_tokens=24, stop=("no such text", stop))
    pieces = [*continued(made, [PROMPTS[0]], settings=settings)]
    whole = " " + " ".join(map(str, tokens))
    assert "".join(piece.text for piece in pieces) == whole[: whole.index(stop)]
    assert [piece.reason for piece in pieces if piece.done] == ["stop"]
    assert pieces[-1].tokens <= at + 3


def test_reasons_and_counts() -> None:
    made = model(Numbers())
    tokens = written(made, [PROMPTS[0]], settings=GREEDY)[0]
    (length,) = [piece for piece in continued(made, [PROMPTS[0]], settings=GREEDY) if piece.done]
    assert (length.reason, length.tokens, length.prompt_tokens) == ("length", 24, 3)
    ended = model(Numbers(end_id=tokens[4]))
    *_, last = continued(ended, [PROMPTS[0]], settings=GREEDY)
    assert (last.reason, last.tokens) == ("end", tokens.index(tokens[4]) + 1)


def test_characters_are_whole_in_every_piece() -> None:
    made = model(Bytes(), seed=3)
    texts = [
        piece.text
        for piece in continued(
            made, [[206]], settings=Sampling(temperature=4.0, top_k=0, max_tokens=100)
        )
    ]
    tokens = written(
        LanguageModel(body=made.body, tokenizer=Numbers(), machine=made.machine),
        [[206]],
        settings=Sampling(temperature=4.0, top_k=0, max_tokens=100),
    )[0]
    # Bytes drawn at random: whole characters of several bytes among them, and bytes that are none.
    assert "".join(texts).replace("\ufffd", "") == bytes(tokens).decode(errors="ignore")


@pytest.mark.parametrize("precision", ["bf16"])
def test_narrow_numbers_give_the_logits_of_autocast(precision: str) -> None:
    from octavolt.generate.decoder import Decoder

    made = model(precision=precision)
    decoder = Decoder(made.body, made.machine, vocabulary_size=256, rows=1)
    ours = decoder.begin([[5, 9]], columns=8)
    for token in (200, 3):
        ours = decoder.advance(torch.tensor([token]))
    with torch.inference_mode(), made.machine.autocast():
        theirs = made.body(torch.tensor([[5, 9, 200, 3]])).logits[:, -1, :256].float()
    assert decoder.dtype == torch.bfloat16
    # Both round to 8 bits at the same places; kernels for one column and for four add up in
    # different orders, which shows as a unit or two of bf16 in logits of about 10.
    torch.testing.assert_close(ours, theirs, rtol=0, atol=4 * 2**-4)
    assert not torch.equal(ours, theirs * 0)


def test_nothing_of_the_network_changes() -> None:
    made = model(Numbers())
    before = {name: tensor.clone() for name, tensor in made.body.state_dict().items()}
    written(made, PROMPTS, settings=GREEDY)
    for name, tensor in made.body.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert made.body.transformer.wte.weight.requires_grad


def test_what_pads_a_row_sees_itself_and_nobody_sees_it() -> None:
    seen = visible(torch.tensor([0, 2]), torch.arange(3))[:, 0].int().tolist()
    assert seen == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([*b"xy"], ["", "xy"]),  # held back as the start of a stop string, which never came
        ([ord("a"), 0xE4], ["a", "\ufffd"]),  # the first of three bytes
        ([0xE4, 256], ["", "\ufffd"]),
        ([ord("x"), 256], ["", "x"]),
    ],
)
def test_text_that_ends_keeps_nothing_back(tokens: list[int], expected: list[str]) -> None:
    settings = Sampling(max_tokens=2, stop=("xyz",))
    one = Answer(0, [1], model(Bytes(size=257, end_id=256)), settings)
    pieces = [one.add(token) for token in tokens]
    assert [piece.text for piece in pieces] == expected
    assert [piece.done for piece in pieces] == [False, True]
