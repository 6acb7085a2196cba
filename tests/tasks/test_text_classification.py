import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, precision_score, recall_score
from torch import Tensor

from octavolt.tasks.text_classification import (
    LabelledTextBatch,
    MultiLabelScore,
    mistakes_of_several,
    present_several,
)

CLASSES = ("fast", "loud", "red", "rare")


def batch(targets: Tensor) -> LabelledTextBatch:
    nothing = torch.zeros(len(targets), 1, dtype=torch.int64)
    return LabelledTextBatch(
        ids=nothing, mask=nothing == 0, kinds=nothing, targets=targets, labels=nothing[:, 0]
    )


def made() -> tuple[Tensor, Tensor]:
    """Return logits and targets that agree somewhat; no text has the last label."""
    torch.manual_seed(0)
    targets = (torch.rand(100, 4) < torch.tensor([0.5, 0.3, 0.2, 0.0])).float()
    return torch.randn(100, 4) + 2 * targets - 1, targets


def test_metrics_are_those_of_scikit_learn() -> None:
    logits, targets = made()
    score = MultiLabelScore(CLASSES)
    score.update(logits, batch(targets))
    result = score.result()
    said = (logits > 0).int()
    assert result["samples"] == 100
    assert result["micro_f1"] == pytest.approx(f1_score(targets, said, average="micro"))
    assert result["macro_f1"] == pytest.approx(
        f1_score(targets[:, :3], said[:, :3], average="macro")
    )
    exact = (targets == said).all(1).double().mean()
    assert result["exact_match_fraction"] == pytest.approx(float(exact))
    for column, one in enumerate(result["per_class"][:3]):
        assert one["samples"] == int(targets[:, column].sum())
        pair = (targets[:, column], said[:, column])
        assert one["precision"] == pytest.approx(precision_score(*pair))
        assert one["recall"] == pytest.approx(recall_score(*pair))
    assert result["per_class"][3]["recall"] is None
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.double(), targets.double())
    # Kept in units of 2^-30.
    assert result["negative_log_likelihood_nats"] == pytest.approx(float(loss), rel=1e-7)


def test_scores_of_shards_add_up() -> None:
    logits, targets = made()
    whole, first, second = (MultiLabelScore(CLASSES) for _ in range(3))
    whole.update(logits, batch(targets))
    first.update(logits[:13], batch(targets[:13]))
    second.update(logits[13:], batch(targets[13:]))
    merged = MultiLabelScore(CLASSES)
    merged.load(first.sums() + second.sums())
    assert merged.result() == whole.result()


def test_answers_are_all_labels_from_one_half_on() -> None:
    logits = torch.tensor([[0.0, 3.0, -1.0, -2.0], [-1.0, -1.0, -2.0, -3.0]])
    answers = present_several(logits, batch(torch.zeros(2, 4)), CLASSES)
    assert [one["labels"] for one in answers] == [["fast", "loud"], []]
    assert [one["label"] for one in answers[0]["top"]] == ["loud", "fast", "red", "rare"]


def test_mistakes_name_all_labels_and_are_as_sure_as_the_surest_wrong_one() -> None:
    logits = torch.tensor([[1.0, 3.0, -1.0, -2.0], [-1.0, -1.0, -2.0, -3.0]])
    targets = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    (wrong,) = mistakes_of_several(logits, batch(targets), np.array([4, 5]), CLASSES)
    assert (wrong.index, wrong.label, wrong.predicted) == (4, "fast, red", "fast, loud")
    assert wrong.probability == pytest.approx(float(torch.tensor(3.0).sigmoid()))
    (lacking,) = mistakes_of_several(logits[1:], batch(targets[:1]), np.array([9]), CLASSES)
    assert lacking.predicted == "none"
