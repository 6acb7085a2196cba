import json
import shutil
from pathlib import Path

import pytest
import typer.main

from octavolt.cli import app
from tests.cli.conftest import Octavolt, write_folder

TINY = "tests.train.tiny"
TRAIN_FLAGS = {
    "--fit-anchors",
    "--mosaic",
    "--multi-scale",
    "--box-loss",
    "--task",
    "--text-column",
    "--label-column",
    "--label-separator",
    "--tokenizer",
    "--vocabulary-size",
    "--length",
    "--stride",
    "--whole-words",
    "--dropout",
    "--checkpoint-activations",
    "--accumulate",
    "--batch",
    "--cache",
    "--cache-folder",
    "--class-weights",
    "--clip",
    "--crop-scale",
    "--data",
    "--early-stop",
    "--ema",
    "--epochs",
    "--freeze-epochs",
    "--gpus",
    "--image-size",
    "--json",
    "--label-smoothing",
    "--learning-rate",
    "--micro-batch",
    "--mirror",
    "--mixup",
    "--no-class-weights",
    "--no-mirror",
    "--optimizer",
    "--output",
    "--precision",
    "--processes",
    "--recipe",
    "--resume",
    "--save-minutes",
    "--save-steps",
    "--schedule",
    "--seed",
    "--settings",
    "--skip-damaged",
    "--threads",
    "--warmup-epochs",
    "--weight-decay",
    "--weights",
}
"""A new one is a decision: what people change from run to run. The rest is for --settings."""


def flags_of(verb: str) -> set[str]:
    group = typer.main.get_command(app)
    parameters = group.commands[verb].params  # type: ignore[attr-defined]
    return {
        flag
        for one in parameters
        for flag in (*one.opts, *one.secondary_opts)
        if flag.startswith("--")
    }


def test_flags_of_train_are_these() -> None:
    assert flags_of("train") == TRAIN_FLAGS


@pytest.mark.parametrize(
    "verb", ["list", "doctor", "check", "train", "evaluate", "predict", "generate", "report"]
)
def test_every_verb_has_json(verb: str) -> None:
    assert "--json" in flags_of(verb)


def test_train_prints_one_document_with_its_run(octavolt: Octavolt, pictures: Path) -> None:
    answer = octavolt("train", TINY, "--data", pictures, "--epochs", 2, "--output", "run", "--json")
    assert answer.status == 0
    assert set(answer.document) == {"run", "best"}
    assert answer.document["run"] == "run"
    assert answer.document["best"]["best"] is True
    assert (Path("run/weights.safetensors").is_file(), Path("run/report.html").is_file()) == (
        True,
        True,
    )


def test_train_prints_its_run_and_nothing_else(octavolt: Octavolt, pictures: Path) -> None:
    answer = octavolt("train", TINY, "--data", pictures, "--epochs", 1)
    (run,) = answer.out.splitlines()
    assert (Path(run) / "settings.json").is_file()
    assert run.startswith("runs/tiny-colours-")


def test_evaluate_prints_one_document_and_keeps_it(octavolt: Octavolt, run: Path) -> None:
    answer = octavolt("evaluate", run, "--split", "val", "--json")
    assert (answer.status, answer.err) == (0, "")
    kept = json.loads((run / "evaluation.json").read_text())["evaluations"]
    assert answer.document in kept
    assert answer.document["metrics"]["samples"] == 9


def test_evaluate_says_the_same_to_people(octavolt: Octavolt, run: Path) -> None:
    metrics = octavolt("evaluate", run, "--json").document["metrics"]
    answer = octavolt("evaluate", run)
    assert answer.status == 0
    assert answer.out.startswith(f"top-1 {100 * metrics['top1_fraction']:.1f} % (95 % interval ")


def test_evaluation_leaves_out_what_the_training_left_out(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=4)
    (root / "test/red/0.png").write_bytes(b"")
    arguments = ("train", TINY, "--data", root, "--epochs", 1, "--output", "run")
    assert octavolt(*arguments, "--skip-damaged").status == 0
    answer = octavolt("evaluate", "run", "--json")
    assert answer.document["metrics"]["samples"] == 8


def test_check_prints_one_document_though_it_fails(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=4)
    (root / "train/red/0.png").write_bytes(b"")
    answer = octavolt("check", root, "--json")
    assert (answer.status, answer.err) == (2, "")
    (fault,) = answer.document["faults"]
    assert (fault["file"], fault["problem"]) == ("train/red/0.png", "the file is empty")


def test_check_of_sound_data_says_so(octavolt: Octavolt, pictures: Path) -> None:
    answer = octavolt("check", pictures)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == (
        "42 pictures (24 train, 9 val, 9 test), 3 classes, format folder\n"
        "Nothing is wrong with it.\n"
    )


def test_check_counts_faults_and_warnings(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=1)
    (root / "test/red/0.png").write_bytes(b"")
    answer = octavolt("check", root)
    assert answer.status == 2
    assert answer.out.splitlines()[-1].strip() == "1 fault that stops a training, 3 warnings."


def test_report_prints_one_document(octavolt: Octavolt, run: Path) -> None:
    answer = octavolt("report", run, "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.document["report"] == str(run / "report.html")


def test_reports_of_two_runs_are_one_document(octavolt: Octavolt, run: Path) -> None:
    other = shutil.copytree(run, "other")
    answer = octavolt("report", run, other, "--output", "both.html", "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.document["report"] == "both.html"
    assert len(answer.document["runs"]) == 2


@pytest.mark.parametrize("table", ["networks", "data", "tasks", "gpus", "hosts"])
def test_list_prints_one_document_of_rows(octavolt: Octavolt, table: str) -> None:
    answer = octavolt("list", table, "--json")
    assert (answer.status, answer.err) == (0, "")
    assert len(answer.document) >= 1
    assert octavolt("list", table).status == 0


def test_one_gpu_is_listed_with_all_its_figures_and_units(octavolt: Octavolt) -> None:
    text = octavolt("list", "gpus", "V100_SXM2_16GB").out
    assert "boost clock           1530 MHz" in text
    assert "memory bandwidth      900 GB/s" in text
    assert "fp16 rate             125 x 10^12 flops/s" in text
    assert "peer link             nvlink-2.0-x6, 150.0 GB/s each way" in text
    document = octavolt("list", "gpus", "titan-v", "--json").document
    assert document["lowest_power_limit_watts"] is None
    assert "lowest power limit    no source says" in octavolt("list", "gpus", "titan-v").out


def test_one_host_is_listed_with_its_links(octavolt: Octavolt) -> None:
    lines = octavolt("list", "hosts", "dgx-1").out.splitlines()
    at = lines.index("NVLinks between GPUs")
    assert lines[at + 1 : at + 3] == ["       0 1 2 3 4 5 6 7", "    0  - 1 1 2 2 - - -"]
    assert "     2  nvlink           2          50         40  0 3" in lines
    assert "    16  network          6          50         48  0 1 2 3 7 5 6 4" in lines
    document = octavolt("list", "hosts", "dgx-1", "--json").document
    assert document["links"][0][3] == 2
    assert [one["ring_count"] for one in document["all_reduce"]] == [2, 2, 4, 2, 4, 4, 6, 6]


@pytest.mark.parametrize(("table", "name"), [("gpus", "v100-pcie-32gb"), ("hosts", "dgx-2")])
def test_tables_of_hardware_hold_numbers_in_json(octavolt: Octavolt, table: str, name: str) -> None:
    rows = {row["name"]: row for row in octavolt("list", table, "--json").document}
    assert rows[name] == octavolt("list", table, name, "--json").document
    assert isinstance(rows[name]["memory_bytes"], int)


def test_tables_of_hardware_fit_in_100_columns(octavolt: Octavolt) -> None:
    for arguments in (["gpus"], ["hosts"], ["hosts", "dgx-1"], ["hosts", "dgx-2"]):
        assert max(map(len, octavolt("list", *arguments).out.splitlines())) <= 100


def test_a_host_without_links_says_nothing_of_them(octavolt: Octavolt) -> None:
    out = octavolt("list", "hosts", "p3.2xlarge").out
    assert "NVLinks" not in out
    assert "no source says" not in out


def test_latest_is_the_newest_run(octavolt: Octavolt, run: Path) -> None:
    Path("runs").mkdir()
    shutil.copytree(run, "runs/tiny")
    assert octavolt("report", "latest").out == "runs/tiny/report.html\n"


def test_finished_latest_run_is_not_resumed(octavolt: Octavolt, run: Path) -> None:
    Path("runs").mkdir()
    shutil.copytree(run, "runs/tiny")
    answer = octavolt("train", "--resume", "latest", "--threads", 1)
    assert answer.status == 2
    assert answer.err == (
        "octavolt: runs/tiny is finished: 4 epochs. Evaluate it, or begin a new run from it: "
        "--weights runs/tiny\n"
    )


def test_flags_go_before_the_settings_file(octavolt: Octavolt, pictures: Path) -> None:
    settings = {
        "network": TINY,
        "data": str(pictures),
        "recipe_name": "published",
        "seed": 4,
        "recipe": {"epochs": 7, "optimizer": "adam"},
    }
    Path("own.json").write_text(json.dumps(settings))
    flags = ("--recipe", "fine-tune", "--epochs", 1, "--output", "run")
    assert octavolt("train", "--settings", "own.json", *flags).status == 0
    found = json.loads(Path("run/settings.json").read_text())
    assert (found["recipe_name"], found["seed"]) == ("fine-tune", 4)
    assert (found["recipe"]["epochs"], found["recipe"]["optimizer"]) == (1, "adam")


def test_settings_of_a_run_repeat_it(octavolt: Octavolt, run: Path) -> None:
    assert octavolt("train", "--settings", run / "settings.json", "--output", "again").status == 0
    first, second = ((one / "weights.safetensors").read_bytes() for one in (run, Path("again")))
    assert first == second


def test_version(octavolt: Octavolt) -> None:
    from octavolt import __version__

    assert octavolt("--version").out == f"octavolt {__version__}\n"
