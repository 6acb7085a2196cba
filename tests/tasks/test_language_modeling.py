import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from octavolt.contract import Score
from octavolt.tasks import causal_language_modeling as causal
from octavolt.tasks import masked_language_modeling as masked
from octavolt.tasks import vocabulary
from octavolt.tasks.causal_language_modeling import CausalBatch, CausalScore
from octavolt.tasks.masked_language_modeling import MaskedBatch, MaskedScore
from octavolt.tasks.text import NOT_ASKED

ROWS = 11


def made(texts: int = 5, length: int = 6) -> tuple[Tensor, Tensor]:
    """Return logits, and targets of which a third is not asked."""
    random = torch.Generator().manual_seed(0)
    targets = torch.randint(0, ROWS, (texts, length), generator=random)
    targets[torch.rand(texts, length, generator=random) < 1 / 3] = NOT_ASKED
    return torch.randn(texts, length, ROWS, generator=random), targets


def causal_batch(targets: Tensor, byte_count: int = 50) -> CausalBatch:
    return CausalBatch(ids=torch.zeros_like(targets), targets=targets, bytes=byte_count)


def masked_batch(targets: Tensor) -> MaskedBatch:
    ids = torch.zeros_like(targets)
    return MaskedBatch(ids=ids, mask=ids == 0, kinds=ids, targets=targets)


def expected_nats(logits: Tensor, targets: Tensor) -> float:
    loss = cross_entropy(logits.double().flatten(0, 1), targets.flatten(), ignore_index=NOT_ASKED)
    return float(loss)


def test_causal_metrics_by_torch_and_by_hand() -> None:
    logits, targets = made()
    score = CausalScore(())
    score.update(logits, causal_batch(targets))
    result = score.result()
    tokens = int((targets != NOT_ASKED).sum())
    nats = expected_nats(logits, targets)
    assert (result["samples"], result["tokens"], result["bytes"]) == (5, tokens, 50)
    # Kept in units of 2^-30.
    assert result["nats_per_token"] == pytest.approx(nats, rel=1e-8)
    assert result["perplexity"] == pytest.approx(math.exp(nats), rel=1e-7)
    assert result["bits_per_byte"] == pytest.approx(nats * tokens / math.log(2) / 50, rel=1e-8)


def test_of_two_likely_tokens_each_costs_one_bit() -> None:
    """Two of the vocabulary are as likely, the rest impossible: perplexity 2, a bit a token."""
    logits = torch.full((1, 4, ROWS), -1e9)
    logits[:, :, :2] = 0
    score = CausalScore(())
    score.update(logits, causal_batch(torch.tensor([[0, 1, 1, NOT_ASKED]]), byte_count=6))
    result = score.result()
    assert result["perplexity"] == pytest.approx(2)
    assert result["bits_per_byte"] == pytest.approx(0.5)


def test_masked_metrics_by_torch_and_by_hand() -> None:
    logits, targets = made()
    score = MaskedScore(())
    score.update(logits, masked_batch(targets))
    result = score.result()
    asked = targets != NOT_ASKED
    hits = (logits.argmax(2) == targets)[asked]
    assert result["accuracy_fraction"] == pytest.approx(float(hits.double().mean()))
    assert result["perplexity"] == pytest.approx(math.exp(expected_nats(logits, targets)), rel=1e-7)
    assert (result["samples"], result["tokens"]) == (5, int(asked.sum()))


@pytest.mark.parametrize("new", [CausalScore, MaskedScore])
def test_scores_of_shards_add_up(new: Callable[[Sequence[str]], Score]) -> None:
    logits, targets = made()

    def scored(rows: slice) -> Score:
        score: Score = new(())
        one = targets[rows]
        score.update(
            logits[rows],
            causal_batch(one, 10 * len(one)) if new is CausalScore else masked_batch(one),
        )
        return score

    merged = new(())
    merged.load(scored(slice(0, 2)).sums() + scored(slice(2, 5)).sums())
    assert merged.result() == scored(slice(0, 5)).result()


def test_slices_of_positions_change_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, targets = made()
    whole = vocabulary.nats_and_hits(logits, targets)
    seen: list[int] = []

    def counted(logits: Tensor, dim: int) -> Tensor:
        seen.append(len(logits))
        return torch.log_softmax(logits, dim)

    monkeypatch.setattr(vocabulary, "log_softmax", counted)
    monkeypatch.setattr(vocabulary, "SLICE_ELEMENTS", 4 * ROWS)
    assert vocabulary.nats_and_hits(logits, targets) == whole
    assert max(seen) == 4
    assert sum(seen) == whole[2]


@pytest.mark.parametrize(
    ("score", "batch"),
    [
        (CausalScore(()), causal_batch(torch.full((2, 3), NOT_ASKED), 0)),
        (MaskedScore(()), masked_batch(torch.full((2, 3), NOT_ASKED))),
    ],
    ids=["causal", "masked"],
)
def test_nothing_asked_is_no_metric(score: Score, batch: CausalBatch | MaskedBatch) -> None:
    score.update(torch.zeros(2, 3, ROWS), batch)
    assert score.result()["tokens"] == batch.weight == 0
    assert "perplexity" not in score.result()


def test_impossible_token_leaves_the_figures_finite() -> None:
    logits = torch.zeros(1, 1, ROWS)
    logits[0, 0, 3] = -float("inf")
    score = CausalScore(())
    score.update(logits, causal_batch(torch.tensor([[3]])))
    assert all(math.isfinite(value) for value in score.result().values())


def test_next_tokens_are_those_after_the_text_and_have_names() -> None:
    logits = torch.zeros(2, 3, ROWS)
    logits[0, 1, 7], logits[1, 2, 4] = 9.0, 9.0
    batch = causal_batch(torch.tensor([[1, 1, NOT_ASKED], [NOT_ASKED] * 3]))
    named = causal.present(logits, batch, [f"word{index}" for index in range(ROWS)])
    assert [one["top"][0]["label"] for one in named] == ["word7", "word4"]
    assert causal.present(logits, batch, ())[0]["top"][0]["label"] == "7"
    assert len(named[0]["top"]) == 5


def test_hidden_tokens_are_shown_where_they_are() -> None:
    logits = torch.zeros(2, 3, ROWS)
    logits[0, 1, 7] = 9.0
    batch = masked_batch(torch.tensor([[NOT_ASKED, 0, NOT_ASKED], [NOT_ASKED] * 3]))
    first, second = masked.present(logits, batch, ())
    ((place),) = first["hidden"]
    assert (place["position"], place["top"][0]["label"]) == (1, "7")
    assert second == {"hidden": []}


def test_batch_goes_to_a_device_whole() -> None:
    batch = causal_batch(torch.tensor([[1, NOT_ASKED]]))
    there = batch.to(torch.device("meta"))
    assert there.ids.is_meta
    assert there.targets.is_meta
    assert there.bytes == 50
    assert replace(there, ids=batch.ids, targets=batch.targets).weight == batch.weight == 1


def test_less_perplexity_is_better() -> None:
    for task in (causal.TASK, causal.DIALOGUE_TASK, masked.TASK):
        assert task.less_is_better
        assert task.primary_metric == "perplexity"
