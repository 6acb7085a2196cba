"""What a user can put right: the whole message, on standard error, with exit status 2."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch

from octavolt.cli.show import Shower
from octavolt.cli.training import check_gpus, ending
from octavolt.errors import OctavoltError
from octavolt.hardware.chips import CHIPS
from octavolt.train import Stopped, train
from tests.cli.conftest import Octavolt, write_folder, write_picture
from tests.train.test_resume import StopAt
from tests.train.tiny import request

TINY = "tests.train.tiny"


def refused(octavolt: Octavolt, *arguments: object) -> str:
    """Return the message of a command that must fail, without 'octavolt: ' and the line's end."""
    answer = octavolt(*arguments)
    assert answer.status == 2, answer
    assert answer.out == ""
    assert answer.err.startswith("octavolt: ")
    assert answer.err.endswith("\n")
    return answer.err.removeprefix("octavolt: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "resnet5", "--data", "demo"],
            "No network is named 'resnet5'. Did you mean 'resnet50'? Known: resnet50, "
            "inception-v3, mobilenet-v2, bert-base, bert-large, bert-tiny, bert-mini, bert-small, "
            "gpt2, gpt2-medium, gpt2-large, gpt2-xl, gpt2-nano, yolov3, yolov3-spp, "
            "yolov3-tiny, faster-rcnn, faster-rcnn-mobilenet, ssd300, ssdlite.",
        ),
        (
            ["train", "mobilenet-v2", "--data", "dmo"],
            "There is no data set 'dmo'. Did you mean 'demo'? A data set is the path of a folder "
            "or a file, hub:NAME, or demo.",
        ),
        (
            ["train", "mobilenet-v2"],
            "Say the data: --data DATA. For example: octavolt train mobilenet-v2 --data ./flowers",
        ),
        (
            ["train", "--data", "demo"],
            "Say a network. For example: octavolt train mobilenet-v2 --data ./flowers",
        ),
        (
            ["train", "mobilenet-v2", "--data", "demo", "--batch", "abc"],
            "--batch is 'abc'; it must be 'auto' or a whole number from 1 on.",
        ),
        (
            ["train", "mobilenet-v2", "--data", "demo", "--accumulate", "2"],
            "--accumulate needs --batch, which it divides.",
        ),
        (
            ["train", "mobilenet-v2", "--data", "demo", "--precision", "bf"],
            "No precision is named 'bf'. Did you mean 'bf16'? Known: auto, fp16, bf16, fp32.",
        ),
        (
            ["train", "mobilenet-v2", "--data", "demo", "--save-minutes", "-1"],
            "save_minutes is -1.0; it must be above 0.",
        ),
        (
            ["train", "--resume", "latest", "--epochs", "5", "--seed", "1"],
            "--resume goes on with the settings of the run; --epochs, --seed can't be changed. "
            "Leave the flags away, or begin a new run with --weights RUN.",
        ),
        (
            ["evaluate", "mobilenet-v2"],
            "'mobilenet-v2' is a network, not a run. Give its weights too: --weights imagenet, a "
            "file, a folder or a run; or train it first.",
        ),
        (
            ["evaluate", "mobilenet-v2", "--weights", "imagnet"],
            "No file, run or set of weights is named 'imagnet'. Did you mean 'imagenet'? Known: "
            "none, imagenet.",
        ),
        (
            ["evaluate", "mobilenet-v2", "--weights", "no/such.pth"],
            "There are no weights at no/such.pth: no such file or run folder.",
        ),
        (
            ["predict", "some-run"],
            "Name files, folders or patterns to predict, or - for standard input; --text TEXT is a "
            "text itself.",
        ),
        (
            ["predict", "some-run", "x.png", "--format", "jsonlines"],
            "No format is named 'jsonlines'. Did you mean 'jsonl'? Known: table, jsonl, csv, coco.",
        ),
        (
            ["predict", "some-run", "x.png"],
            "'some-run' is no run folder: it holds no settings.json, nor does runs/some-run.",
        ),
        (
            ["list", "network"],
            "No table is named 'network'. Did you mean 'networks'? Known: networks, data, tasks, "
            "gpus, hosts.",
        ),
        (
            ["list", "gpus", "v100-sxm2-16g"],
            "No GPU is named 'v100-sxm2-16g'. Did you mean 'v100-sxm2-16gb'? Known: "
            + ", ".join(CHIPS)
            + ".",
        ),
        (
            ["list", "tasks", "object-detection"],
            "A single one can be listed of gpus and hosts, not of tasks.",
        ),
    ],
)
def test_message_without_any_files(octavolt: Octavolt, arguments: list[str], message: str) -> None:
    assert refused(octavolt, *arguments) == message


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--optimizer", "adm", "--schedule", "cosin", "--epochs", "0", "--mixup", "-2"],
            "No optimizer is named 'adm'. Did you mean 'adam'? Known: sgd, adam, adamw, rmsprop, "
            "lamb. "
            "No schedule is named 'cosin'. Did you mean 'cosine'? Known: constant, step, cosine, "
            "one-cycle, linear, inverse-sqrt. epochs is 0; it must be at least 1. mixup_alpha is "
            "-2.0; it must be a number from 0 on.",
        ),
        (
            ["--recipe", "finetune"],
            "No recipe of tiny is named 'finetune'. Did you mean 'fine-tune'? Known: published, "
            "small-data, fine-tune.",
        ),
        (
            ["--early-stop", "0", "--clip", "0", "--label-smoothing", "1"],
            "label_smoothing is 1.0; it must be from 0 to below 1. early_stop_epochs is 0; it must "
            "be at least 1. max_gradient_norm is 0.0; it must be above 0.",
        ),
    ],
)
def test_all_that_is_wrong_with_a_recipe_is_said_at_once(
    octavolt: Octavolt, pictures: Path, flags: list[str], message: str
) -> None:
    assert refused(octavolt, "train", TINY, "--data", pictures, *flags) == message


def test_pictures_too_small_for_the_network(octavolt: Octavolt, pictures: Path) -> None:
    arguments = ("train", "inception-v3", "--data", pictures, "--image-size", 8)
    assert refused(octavolt, *arguments) == (
        "inception-v3 can't see pictures of 8 pixels: its smallest --image-size is 75."
    )


def test_unknown_data_beside_a_folder_of_nearly_that_name(octavolt: Octavolt) -> None:
    Path("flowers").mkdir()
    assert refused(octavolt, "check", "flwers") == (
        "There is no data set 'flwers'. Did you mean 'flowers'? A data set is the path of a folder "
        "or a file, hub:NAME, or demo."
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"presicion": "fp32"},
            "No setting in own.json is named 'presicion'. Did you mean 'precision'? Known: "
            "network, task, data, weights, reading, precision, seed, recipe_name, recipe, "
            "micro_batch_size, checkpoint_activations, processes, threads, skip_damaged, cache, "
            "save_minutes, save_steps, log_steps, classes, split_counts, schema, octavolt.",
        ),
        (
            {"recipe": {"epoch": 3}},
            "No setting of the recipe in own.json is named 'epoch'. Did you mean 'epochs'? Known: "
            "source, epochs, batch_size, optimizer, learning_rate, momentum, weight_decay, "
            "decay_norms_and_biases, schedule, warmup_epochs, step_epochs, step_factor, "
            "label_smoothing, mixup_alpha, ema_decay, class_weights, freeze_epochs, "
            "early_stop_epochs, max_gradient_norm, dropout, crop_scale_min, mirror, mosaic_share, "
            "expand_max, box_crop, scale_jitter, color_jitter, multi_scale, box_loss.",
        ),
        (
            {"epochs": 3},
            'own.json: epochs is a part of the recipe. Write it as {"recipe": {"epochs": 3}}.',
        ),
        (
            {"recipe": "fine-tune"},
            'own.json: recipe is "fine-tune"; it must be an object of settings, such as '
            '{"epochs": 30}. The name of a recipe is recipe_name.',
        ),
        (
            {"recipe": {"epochs": "3", "mirror": 1, "warmup_epochs": 1}},
            'own.json: epochs is "3"; it must be a whole number. mirror is 1; it must be true or '
            "false.",
        ),
        (
            {"seed": 1.5, "save_steps": True, "precision": None},
            "own.json: seed is 1.5; it must be a whole number. save_steps is true; it must be a "
            "whole number or null. precision is null; it must be text.",
        ),
        (
            {"seed": -1, "log_steps": 0, "save_steps": 0, "micro_batch_size": 0},
            "seed is -1; it must be from 0 to below 2 to the 63rd. micro_batch_size is 0; it must "
            "be at least 1. save_steps is 0; it must be at least 1. log_steps is 0; it must be at "
            "least 1.",
        ),
        ([3], "own.json holds list, not an object of settings."),
    ],
)
def test_settings_file(octavolt: Octavolt, pictures: Path, settings: object, message: str) -> None:
    Path("own.json").write_text(json.dumps(settings))
    arguments = ("train", TINY, "--data", pictures, "--settings", "own.json")
    assert refused(octavolt, *arguments) == message


def test_settings_file_that_is_no_json_is_named_with_its_line(octavolt: Octavolt) -> None:
    Path("own.json").write_text('{"seed": 1,\n "data": }')
    assert refused(octavolt, "train", TINY, "--settings", "own.json") == (
        "own.json, line 2: not JSON: Expecting value."
    )


def test_empty_folder(octavolt: Octavolt) -> None:
    Path("flowers").mkdir()
    assert refused(octavolt, "train", TINY, "--data", "flowers") == (
        "The folder 'flowers' is empty. Put one folder a class into it, named as the class."
    )


def test_class_with_one_picture(octavolt: Octavolt) -> None:
    for index in range(4):
        write_picture(Path(f"flowers/rose/{index}.png"), 0, index)
    write_picture(Path("flowers/tulip/only.png"), 1, 9)
    assert refused(octavolt, "train", TINY, "--data", "flowers") == (
        "flowers has 1 fault that stops a training:\n"
        "  train: class 'tulip' has 1 picture; it needs at least 3 to be split: add pictures, or "
        "give val and test folders of your own\n"
        "Mend the data first."
    )


def test_damaged_pictures_are_named_all_at_once(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=4)
    (root / "train/red/0.png").write_bytes(b"")
    (root / "val/blue/1.png").write_text("no picture")
    assert refused(octavolt, "train", TINY, "--data", "colours") == (
        "colours has 2 faults that stop a training:\n"
        "  train/red/0.png: the file is empty\n"
        "  val/blue/1.png: a text file\n"
        "Mend them, or leave them out with --skip-damaged."
    )


def test_class_or_split_without_a_whole_picture_stops_a_training_that_skips_damaged_ones(
    octavolt: Octavolt,
) -> None:
    root = write_folder(Path("colours"), train=2, held_out=1)
    for path in [*root.glob("train/red/*.png"), *root.glob("val/*/*.png")]:
        path.write_bytes(b"")
    answer = octavolt("train", TINY, "--data", "colours", "--skip-damaged")
    assert answer.status == 2
    assert answer.err.endswith(
        "octavolt: colours has 2 faults that stop a training:\n"
        "  train: class 'red' has no picture in train that can be read\n"
        "  val: no picture in val can be read, so no epoch could be judged\n"
        "Mend the data first.\n"
    )


def test_class_that_the_network_does_not_know(octavolt: Octavolt, run: Path) -> None:
    for index in range(12):
        write_picture(Path(f"others/{'grean' if index % 2 else 'red'}/{index}.png"), 0, index)
    assert refused(octavolt, "evaluate", run, "--data", "others") == (
        "others has classes that the network doesn't know: grean. The nearest to 'grean' is "
        "'green'. The network's: blue, green, red."
    )


def test_split_that_the_data_lack(octavolt: Octavolt, run: Path, pictures: Path) -> None:
    assert refused(octavolt, "evaluate", run, "--split", "tset") == (
        f"{pictures} has no split 'tset'. It has: train, val, test, and all."
    )


def test_weights_of_another_network(octavolt: Octavolt, pictures: Path) -> None:
    torch.save({"stem.weight": torch.zeros(3), "stem.bias": torch.zeros(3)}, "other.pth")
    answer = octavolt("train", TINY, "--data", pictures, "--weights", "other.pth", "--output", "o")
    assert answer.status == 2
    assert answer.err == (
        "octavolt: The weights of other.pth are another network's: 0 of 62 tensors fit by name "
        "and shape. Give this one's with --weights.\n"
    )
    assert not Path("o").exists()


def test_run_without_weights(octavolt: Octavolt, run: Path) -> None:
    copied = shutil.copytree(run, "unready")
    (Path(copied) / "weights.safetensors").unlink()
    assert refused(octavolt, "predict", "unready", "x.png") == (
        "unready holds no weights.safetensors: it stopped before its first epoch was evaluated. Go "
        "on with: octavolt train --resume unready"
    )


def test_run_of_a_newer_schema(octavolt: Octavolt, run: Path) -> None:
    Path("newer").mkdir()
    settings = json.loads((run / "settings.json").read_text()) | {"schema": 2}
    Path("newer/settings.json").write_text(json.dumps(settings))
    assert refused(octavolt, "evaluate", "newer") == (
        "newer/settings.json has schema 2; this octavolt reads up to 1. It was written by a newer "
        "one: pip install --upgrade octavolt"
    )


def test_run_nearly_of_that_name(octavolt: Octavolt) -> None:
    for name in ("tiny-colours", "else"):
        Path("runs", name).mkdir(parents=True)
        Path("runs", name, "settings.json").write_text("{}")
    assert refused(octavolt, "train", "--resume", "tiny-colour") == (
        "'tiny-colour' is no run folder: it holds no settings.json, nor does runs/tiny-colour. Did "
        "you mean 'tiny-colours'?"
    )


def test_latest_where_there_is_no_run(octavolt: Octavolt) -> None:
    assert refused(octavolt, "train", "--resume", "latest") == (
        f"There is no run in {Path('runs').resolve()} yet. Make one: octavolt train mobilenet-v2 "
        "--data demo"
    )


def test_resumed_run_whose_pictures_changed(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=4)
    with pytest.raises(Stopped):
        train(request(root, Path("run")), tell=StopAt(1))
    write_picture(root / "train/red/new.png", 2, 100)
    (root / "train/red/1.png").unlink()
    write_picture(root / "train/green/0.png", 1, 101)
    (root / "val/blue/2.png").rename(root / "val/red/moved.png")
    assert refused(octavolt, "train", "--resume", "run") == (
        "The data of run changed since it began: 5 differences: "
        "train/green/0.png was changed; train/red/1.png was removed; train/red/new.png was added; "
        "val/blue/2.png was removed; val/red/moved.png was added. Put them back, or begin a new "
        "run with --weights run."
    )


def test_resumed_run_whose_table_relabels_a_picture(octavolt: Octavolt) -> None:
    root = write_folder(Path("colours"), train=4)
    files = sorted(root.glob("*/*/*.png"))
    rows = [f"{one},{one.parts[2]},{one.parts[1]}" for one in files]
    table = Path("table.csv")
    table.write_text("\n".join(["path,label,split", *rows]))
    with pytest.raises(Stopped):
        train(request(table, Path("run")), tell=StopAt(1))
    rows[-1] = rows[-1].replace(",red,", ",blue,")
    table.write_text("\n".join(["path,label,split", *rows]))
    assert refused(octavolt, "train", "--resume", "run") == (
        f"The data of run changed since it began: 1 difference: {files[-1]} was relabelled from "
        "'red' to 'blue'. Put them back, or begin a new run with --weights run."
    )


def test_folder_that_can_not_be_written(octavolt: Octavolt, pictures: Path) -> None:
    Path("file").write_text("")
    arguments = ("train", TINY, "--data", pictures, "--output", "file/run")
    assert refused(octavolt, *arguments) == (
        "Can't write into file/run: Not a directory. Give a folder of yours with --output."
    )


def test_folder_that_holds_something(octavolt: Octavolt, pictures: Path) -> None:
    Path("full").mkdir()
    Path("full/thesis.tex").write_text("")
    arguments = ("train", TINY, "--data", pictures, "--output", "full")
    assert refused(octavolt, *arguments) == (
        "full exists and is not empty. Give another --output, or go on with that run: octavolt "
        "train --resume full"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has GPUs")
def test_gpus_on_a_machine_without_any(octavolt: Octavolt) -> None:
    assert refused(octavolt, "train", TINY, "--data", "demo", "--gpus", 2) == (
        "--gpus 2, but this machine has no GPU that torch can see. Leave --gpus away to train on "
        "the CPU."
    )


@pytest.mark.parametrize("flag", ["--gpus", "--processes"])
def test_more_processes_than_gpus(flag: str) -> None:
    with pytest.raises(OctavoltError) as raised:
        check_gpus(flag, 4, there=2)
    assert str(raised.value) == (
        f"{flag} 4, but this machine has 2 GPUs, one a process. Use --gpus 2 or fewer."
    )


@pytest.mark.parametrize(
    "flags", [["--gpus", "0"], ["--epochs", "some"], ["--seed", "-1"], ["--epochz", "3"]]
)
def test_flag_that_can_not_be_parsed_is_named_without_a_traceback(
    octavolt: Octavolt, flags: list[str]
) -> None:
    answer = octavolt("train", TINY, "--data", "demo", *flags)
    assert (answer.status, answer.out) == (2, "")
    assert flags[0] in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_stopped_training_does_not_pass_for_a_finished_one(
    number: signal.Signals, status: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def verb() -> Path:
        return train(request(write_folder(tmp_path / "data", train=4), tmp_path / "run"), tell=stop)

    stop = StopAt(2, number)
    with pytest.raises(SystemExit) as ended:
        ending(verb, Shower(), {})
    assert ended.value.code == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"octavolt: saved at step 2. Go on with: octavolt train --resume {tmp_path / 'run'}\n"
    )
