import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss, matthews_corrcoef
from torch import Tensor

from octavolt.tasks.classification import (
    ClassificationScore,
    matthews_correlation,
    mistakes,
    present,
)
from octavolt.tasks.text_classification import LabelledTextBatch

CLASSES = ("cat", "dog", "eel")


def batch(labels: Tensor) -> LabelledTextBatch:
    nothing = torch.zeros(len(labels), 1, dtype=torch.int64)
    return LabelledTextBatch(
        ids=nothing,
        mask=nothing == 0,
        kinds=nothing,
        targets=torch.nn.functional.one_hot(labels, 3).float(),
        labels=labels,
    )


def made(samples: int = 200) -> tuple[Tensor, Tensor]:
    """Return logits and labels that agree somewhat."""
    torch.manual_seed(0)
    labels = torch.randint(0, 3, (samples,))
    return torch.randn(samples, 3) + torch.nn.functional.one_hot(labels, 3), labels


def test_metrics_are_those_of_scikit_learn() -> None:
    logits, labels = made()
    score = ClassificationScore(CLASSES)
    score.update(logits, batch(labels))
    result = score.result()
    predicted = logits.argmax(1)
    assert result["samples"] == 200
    assert result["top1_fraction"] == pytest.approx(accuracy_score(labels, predicted))
    assert result["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    assert result["matthews_correlation"] == pytest.approx(matthews_corrcoef(labels, predicted))
    # Kept in units of 2^-30.
    expected = log_loss(labels, logits.double().softmax(1))
    assert result["negative_log_likelihood_nats"] == pytest.approx(expected, rel=1e-7)
    assert sum(one["samples"] for one in result["per_class"]) == 200
    assert sum(one["samples"] for one in result["calibration_bins"]) == 200


def test_scores_of_shards_add_up() -> None:
    logits, labels = made()
    whole = ClassificationScore(CLASSES)
    whole.update(logits, batch(labels))
    sums = torch.zeros_like(whole.sums())
    for rows in (slice(0, 7), slice(7, 150), slice(150, 200)):
        part = ClassificationScore(CLASSES)
        part.update(logits[rows], batch(labels[rows]))
        sums += part.sums()
    merged = ClassificationScore(CLASSES)
    merged.load(sums)
    assert merged.result() == whole.result()


@pytest.mark.parametrize("confusion", [[[5, 0], [3, 0]], [[2, 2], [0, 0]]])
def test_correlation_with_a_constant_is_zero(confusion: list[list[int]]) -> None:
    assert matthews_correlation(torch.tensor(confusion)) == 0.0


def test_correlation_of_many_samples_does_not_overflow() -> None:
    """Products of these counts pass 2^63; by hand (8/9 of them on the diagonal) it is 7/9."""
    many = 4 * 10**9
    confusion = torch.tensor([[8 * many, many], [many, 8 * many]])
    assert matthews_correlation(confusion) == pytest.approx(7 / 9)


def test_answers_and_mistakes_are_named() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 3.0, 0.0]])
    labels = torch.tensor([0, 2])
    answers = present(logits, batch(labels), CLASSES)
    assert [one["label"] for one in answers] == ["cat", "dog"]
    assert [one["label"] for one in answers[0]["top"]] == ["cat", "dog", "eel"]
    (wrong,) = mistakes(logits, batch(labels), np.array([10, 11]), CLASSES)
    assert (wrong.index, wrong.label, wrong.predicted) == (11, "eel", "dog")
    assert wrong.probability == pytest.approx(float(logits[1].softmax(0)[1]))


def test_nothing_counted_is_no_metric() -> None:
    assert ClassificationScore(CLASSES).result() == {"samples": 0}
