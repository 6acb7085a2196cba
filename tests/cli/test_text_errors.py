"""What a user of texts can put right: the whole message, with exit status 2."""

from pathlib import Path

import pytest

from octavolt.errors import OctavoltError
from octavolt.train import train
from tests.cli.conftest import Octavolt
from tests.cli.test_errors import refused
from tests.train.tiny import request

TINY = "tests.cli.tiny_text"
ROWS = [(f"the card is lost {number}", "lost") for number in range(10)]
ROWS += [(f"the rate of today {number}", "rate") for number in range(10)]


def write_table(path: Path) -> Path:
    """Write texts of two classes, the columns of which are named."""
    lines = [f"{text},{label}" for text, label in ROWS]
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of texts; not to be changed."""
    return write_table(tmp_path_factory.mktemp("data") / "cards.csv")


@pytest.fixture(scope="session")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that tells two classes of texts apart, or not; not to be changed."""
    folder = tmp_path_factory.mktemp("runs") / "cards"
    return train(request(table, folder, network=TINY, changes={"epochs": 1, "ema_decay": 0.0}))


def test_weights_of_a_run_answer_for_a_network_of_the_table(octavolt: Octavolt, run: Path) -> None:
    answer = octavolt("predict", TINY, "--weights", run, "--text", "the card", "--json")
    assert answer.status == 0, answer
    (row,) = answer.document["predictions"]
    assert {one["label"] for one in row["top"]} == {"lost", "rate"}


def test_evaluation_says_what_it_counted_and_no_top_five_of_two(
    octavolt: Octavolt, run: Path
) -> None:
    answer = octavolt("evaluate", run)
    assert answer.status == 0, answer
    assert " on 2 texts of " in answer.out.replace("\n", " ")
    assert "top-5" not in answer.out


def test_columns_of_the_run_s_own_data(octavolt: Octavolt, run: Path) -> None:
    assert refused(octavolt, "evaluate", run, "--text-column", "label") == (
        "--text-column and --label-column tell how other data are read; these are the run's own, "
        "whose columns its settings name. Leave them away."
    )


def test_task_that_a_run_was_not_trained_for(octavolt: Octavolt, run: Path) -> None:
    arguments = ("predict", run, "--text", "a", "--task", "question-answering")
    assert refused(octavolt, *arguments) == (
        f"{run} was trained for text-classification, not for question-answering. Leave --task away."
    )


def test_weights_for_a_run(octavolt: Octavolt, run: Path) -> None:
    assert refused(octavolt, "predict", run, "--text", "a", "--weights", run) == (
        f"'{run}' is a run and has its own weights. Leave --weights away, or name a network "
        "instead of the run."
    )


@pytest.mark.parametrize(
    ("network", "known"),
    [
        ("bert-tiny", "bert_uncased_L-2_H-128_A-2, a file, a folder or a run"),
        ("gpt2-nano", "a file, a folder or a run"),
    ],
)
def test_network_without_weights(octavolt: Octavolt, network: str, known: str) -> None:
    assert refused(octavolt, "predict", network, "--text", "a") == (
        f"'{network}' is a network, not a run. Give its weights too: --weights {known}; or train "
        "it first."
    )


def test_settings_that_are_not_finite(octavolt: Octavolt, table: Path) -> None:
    flags = ("--learning-rate", "inf", "--weight-decay", "inf", "--warmup-epochs", "inf")
    answer = octavolt("train", TINY, "--data", table, *flags)
    assert answer.status == 2
    assert answer.err.endswith(
        "octavolt: learning_rate is inf; it must be a number above 0. weight_decay is inf; it must "
        "be a number from 0 on. warmup_epochs is inf; it must be a number from 0 on.\n"
    )


def test_outputs_that_are_no_numbers(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    changes = {"epochs": 1, "learning_rate": 1e38, "optimizer": "sgd", "max_gradient_norm": None}
    with pytest.raises(OctavoltError, match=r"went astray: .* Train anew with a tenth of the --l"):
        train(request(table, folder, network=TINY, changes=changes | {"batch_size": 99}))
