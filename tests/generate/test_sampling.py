import numpy as np
import pytest
import torch

from octavolt.errors import OctavoltError
from octavolt.generate.sampling import (
    Sampling,
    distribution,
    drawn,
    next_tokens,
    penalized,
    uniforms,
)


def some_logits(rows: int = 5, vocabulary: int = 300, seed: int = 0) -> torch.Tensor:
    return 3 * torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [0, 1, 7, 300, 1000])
@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.9, 1.0])
def test_distribution_is_that_of_transformers(temperature: float, top_k: int, top_p: float) -> None:
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = some_logits()
    theirs = logits
    if temperature != 1:
        theirs = TemperatureLogitsWarper(temperature)(None, theirs)
    if top_k:
        theirs = TopKLogitsWarper(top_k)(None, theirs)
    if top_p < 1:
        theirs = TopPLogitsWarper(top_p)(None, theirs)
    expected = theirs.softmax(-1)
    ours = distribution(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    assert torch.equal(ours > 0, expected > 0)
    # Sums of 300 fp32 numbers in another order.
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.3])
def test_repetition_penalty_is_that_of_transformers(penalty: float) -> None:
    from transformers import RepetitionPenaltyLogitsProcessor

    logits = some_logits(2)
    tokens = torch.tensor([[3, 3, 8, 250], [0, 1, 2, 299]])
    seen = torch.zeros(2, 300, dtype=torch.bool).scatter_(1, tokens, True)
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(tokens, logits.clone())
    assert torch.equal(penalized(logits, seen, penalty), theirs)


def test_top_p_keeps_the_likeliest_token_always() -> None:
    logits = torch.zeros(1, 4)
    logits[0, 2] = 1e-3
    chances = distribution(logits, Sampling(temperature=1.0, top_k=0, top_p=1e-9))
    assert chances.tolist() == [[0, 0, 1, 0]]


@pytest.mark.parametrize("temperature", [1e-6, 1e-3])
def test_small_temperature_takes_the_likeliest(temperature: float) -> None:
    chances = distribution(1000 * some_logits(), Sampling(temperature=temperature))
    assert torch.equal(chances.argmax(-1), some_logits().argmax(-1))
    assert torch.equal(chances.sum(-1), torch.ones(5))


def test_draws_follow_the_distribution() -> None:
    chances = torch.tensor([[0.5, 0.0, 0.3, 0.2]])
    settings = Sampling(temperature=1.0, top_k=0)
    tokens = [
        int(next_tokens(chances.log(), None, settings, positions=[0], step=step))
        for step in range(1000)
    ]
    shares = np.bincount(tokens, minlength=4) / 1000
    # Three deviations of a share among 1000 draws are at most 0.048; the seed is fixed.
    np.testing.assert_allclose(shares, [0.5, 0, 0.3, 0.2], atol=0.048)
    assert shares[1] == 0


def test_token_without_probability_is_never_drawn() -> None:
    chances = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]] * 4)
    numbers = torch.tensor([0.0, 0.5, 1 - 1e-16, 1.0], dtype=torch.float64)
    assert drawn(chances, numbers).tolist() == [1, 3, 3, 3]


def test_numbers_follow_from_seed_place_and_step() -> None:
    together = uniforms(7, [0, 1, 2], 5)
    assert together.tolist() == [uniforms(7, [place], 5).item() for place in range(3)]
    others = {uniforms(*one).item() for one in ((7, [0], 6), (8, [0], 5), (7, [5], 0))}
    assert len({*others, *together.tolist()}) == 6


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(OctavoltError) as error:
        Sampling(
            temperature=-1.0,
            top_k=-3,
            top_p=0.0,
            repetition_penalty=0.0,
            seed=-1,
            max_tokens=0,
            stop=("a", ""),
        )
    assert str(error.value) == (
        "These settings can't generate: temperature is -1.0; it must be 0 (always the likeliest "
        "token) or 1e-06 or more; top-k is -3; it must be 0 (all tokens) or more; top-p is 0.0; it "
        "must be above 0 and at most 1; repetition-penalty is 0.0; it must be above 0; 1 is none; "
        "seed is -1; it must be 0 or more; max-tokens is 0; it must be from 1 to 10,000,000; one "
        "text to stop at is empty; it would end every text at once."
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": 1e-9},
        {"top_p": float("nan")},
        {"top_p": 1.01},
        {"repetition_penalty": float("nan")},
    ],
)
def test_wrong_number_is_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(OctavoltError, match=next(iter(wrong)).replace("_", "-")):
        Sampling(**wrong)  # type: ignore[arg-type]


def test_a_text_without_an_end_is_refused() -> None:
    with pytest.raises(OctavoltError, match=r"max-tokens is 10000001; it must be from 1 to"):
        Sampling(max_tokens=10_000_001)
