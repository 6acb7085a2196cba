"""Whole runs of language networks: resumed, on two ranks, in parts, and opened by others."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from octavolt.contract import Input, Places, Reading
from octavolt.data import MODALITIES
from octavolt.data.order import epoch_order
from octavolt.devices import this_machine
from octavolt.errors import OctavoltError
from octavolt.networks.opened import Opened, open_network
from octavolt.networks.weights import read_weights
from octavolt.train import Stopped, resume, train
from octavolt.train.loop import MicroBatch, train_steps
from octavolt.train.optimizers import build_optimizer
from octavolt.train.settings import Request
from tests.data.text.made import TRAINING, conversations, documents, filled, rows, trained
from tests.train.test_loop import state_of
from tests.train.test_ranks import parameters, silent
from tests.train.test_resume import StopAt, same
from tests.train.tiny_bert import ENTRY as BERT
from tests.train.tiny_text import ENTRY as GPT2
from tests.train.tiny_text import VOCABULARY, text_request, write_table, write_text

WORDS = "transformer.wte.weight"
CLASSIFIER: dict[str, Any] = {"network": "tests.train.tiny_bert"}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("data") / "text.txt")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("data") / "table")


@pytest.fixture(scope="module")
def causal(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a causal network."""
    return train(text_request(text, tmp_path_factory.mktemp("causal") / "run"))


@pytest.fixture(scope="module")
def classifier(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a classifier."""
    return train(text_request(table, tmp_path_factory.mktemp("labels") / "run", **CLASSIFIER))


def opened(run: Path) -> Opened:
    return open_network(str(run), this_machine(precision="fp32", threads=1), MODALITIES)


def steps(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]


def resumed_in_parts(request: Request, *, stops: tuple[int, int]) -> Path:
    """Return a run that was stopped twice."""
    first, second = stops
    with pytest.raises(Stopped):
        train(request, tell=StopAt(first))
    assert request.output is not None
    with pytest.raises(Stopped):
        resume(request.output, tell=StopAt(second))
    return resume(request.output)


def test_causal_run_stopped_in_the_middle_is_the_run_that_never_stopped(
    causal: Path, text: Path, tmp_path: Path
) -> None:
    epoch = [row["step"] for row in steps(causal) if row["epoch"] == 1]
    assert len(epoch) > 3
    stops = (epoch[1], epoch[-1] + 2)  # in the middle of the first epoch and of the second
    same(causal, resumed_in_parts(text_request(text, tmp_path / "run"), stops=stops))


def test_bucketed_run_stopped_in_the_middle_is_the_run_that_never_stopped(
    classifier: Path, table: Path, tmp_path: Path
) -> None:
    request = text_request(table, tmp_path / "run", **CLASSIFIER)
    same(classifier, resumed_in_parts(request, stops=(4, 8)))


def test_words_stay_tied_and_padded_rows_nothing(causal: Path) -> None:
    tensors = load_file(causal / "weights.safetensors")
    assert len(tensors[WORDS]) == VOCABULARY
    assert VOCABULARY % 8
    assert "lm_head.weight" not in tensors
    body: Any = opened(causal).network.body
    assert body.lm_head.weight is body.transformer.wte.weight
    assert len(body.lm_head.weight) == 304
    assert not body.lm_head.weight[VOCABULARY:].any()


def test_dialogue_run_learns_answers(tmp_path: Path) -> None:
    talk = {
        "messages": [
            {"role": "user", "content": "blue like?"},
            {"role": "assistant", "content": "the sea 😀"},
        ]
    }
    data = tmp_path / "talks.jsonl"
    data.write_text("".join(f"{json.dumps(talk | {'n': n})}\n" for n in range(30)))
    request = text_request(
        data, tmp_path / "run", task="dialogue", changes={"epochs": 12, "learning_rate": 0.01}
    )
    losses = [row["loss"] for row in steps(train(request))]
    assert losses[-1] < 0.5 * losses[0]


def silent_parts(network: str, run: Path, *, micro: tuple[int, ...]) -> tuple[Any, list[float]]:
    """Return parameters after 3 steps in these parts, and the losses; without dropout."""
    of = opened(run)
    shape = replace(of.preparation.shape(task=of.task.name), dropout=0.0)
    torch.manual_seed(0)
    made = (GPT2 if network == "causal" else BERT).build(shape)
    if network == "causal":
        # Padded apart: the last window of a text that is shorter than the others.
        samples: Any = documents("blue like the sea 😀 and old café 你好 " * 14)
    else:
        texts = ["blue", "old green sea and the grass", "red 😀", "the " * 20]
        samples = rows(texts * 2, [0, 1, 2, 0] * 2)
    examples = of.preparation.examples(samples, TRAINING)
    order = epoch_order(len(examples), seed=0, epoch=1)
    assert len(order) >= 8
    parts: list[MicroBatch] = []
    first = 0
    for size in micro:
        places = Places(seed=0, epoch=1, first=first, indices=order[first : first + size])
        parts.append((places, filled(examples, places)))
        first += size
    lengths = {batch.inputs[0].shape[1] for _, batch in parts}  # type: ignore[attr-defined]
    assert len(lengths) > 1 or len(micro) == 1 or network == "causal"
    done = [*train_steps(state_of(made), [parts] * 3, lambda _: 1e-3)]
    return made.state_dict(), [sum(one.losses.values()) for one in done]


@pytest.mark.parametrize("network", ["causal", "classifier"])
def test_four_micro_batches_equal_one_batch(network: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(network)
    parts, losses = silent_parts(network, run, micro=(1, 2, 1, 4))
    whole, expected = silent_parts(network, run, micro=(8,))
    assert losses == pytest.approx(expected, rel=1e-5)
    # Adam divides a gradient by its own size, so a gradient of next to nothing, of which fp32's
    # order of adding makes the most, still moves its parameter by up to the rate: 3 x 1e-3. All
    # but a few are far from that.
    for name, tensor in parts.items():
        off = (tensor - whole[name]).abs()
        assert float((off > 1e-5).float().mean()) < 0.02, name


@pytest.mark.slow
@pytest.mark.parametrize("network", ["causal", "classifier"])
def test_two_ranks_give_the_parameters_of_one(
    network: str, text: Path, table: Path, tmp_path: Path
) -> None:
    data, more = (text, {}) if network == "causal" else (table, CLASSIFIER)
    changes = {"epochs": 1, "dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1}
    runs = [
        train(
            replace(
                text_request(
                    data, tmp_path / str(count), changes=changes, micro_batch_size=2, **more
                ),
                processes=count,
            ),
            tell=silent,
            progress=silent,
        )
        for count in (1, 2)
    ]
    assert [row["losses"] for row in steps(runs[0])] == [
        {name: pytest.approx(value, rel=1e-5) for name, value in row["losses"].items()}
        for row in steps(runs[1])
    ]
    # The sums over micro-batches are added by another process: fp32.
    assert_close(parameters(runs[1]), parameters(runs[0]), rtol=0, atol=1e-6)


def test_transformers_opens_a_causal_run(causal: Path) -> None:
    import transformers

    ours = opened(causal)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(causal).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(causal)
    said = "blue like 你好 😀"
    ready = ours.preparation.ready(Input(name="x", content=said))
    asked = tokenizer(said, return_tensors="pt")["input_ids"]
    assert asked.tolist() == [ready.tolist()]
    with torch.inference_mode():
        # Another number of columns in the last product may add in another order.
        assert_close(ours.network(asked), theirs(asked).logits, rtol=1e-5, atol=1e-6)


def test_transformers_opens_a_classifier(classifier: Path) -> None:
    import transformers

    ours = opened(classifier)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    assert list(theirs.config.id2label.values()) == ["blue", "green", "red"]
    texts = ["blue like 你好", "grass"]
    batch: Any = ours.preparation.collate(
        [ours.preparation.ready(Input(name="x", content=one)) for one in texts]
    )
    asked = tokenizer(texts, padding=True, return_tensors="pt")
    assert asked["input_ids"].tolist() == batch.ids.tolist()
    assert asked["attention_mask"].bool().tolist() == batch.mask.tolist()
    with torch.inference_mode():
        assert_close(ours.network(*batch.inputs), theirs(**asked).logits, rtol=1e-5, atol=1e-6)


def test_a_run_goes_on_from_another(causal: Path, text: Path, tmp_path: Path) -> None:
    """With a rate of nothing, the weights are those of the run that it starts from."""
    changes = {"epochs": 1, "learning_rate": 1e-12, "ema_decay": 0.0, "weight_decay": 0.0}
    run = train(
        text_request(
            text, tmp_path / "run", weights=str(causal), reading=Reading(), changes=changes
        )
    )
    first, second = (load_file(one / "weights.safetensors") for one in (causal, run))
    # The rate is small enough that it is lost in the rounding of fp32, but for zeros.
    assert_close(second, first, rtol=0, atol=1e-9)
    assert (run / "tokenizer.json").read_bytes() == (causal / "tokenizer.json").read_bytes()


def test_a_classifier_starts_from_a_plain_folder(
    classifier: Path, table: Path, tmp_path: Path
) -> None:
    import transformers

    theirs = transformers.AutoModel.from_pretrained(classifier)  # no head
    theirs.save_pretrained(tmp_path / "plain")
    transformers.AutoTokenizer.from_pretrained(classifier).save_pretrained(tmp_path / "plain")
    changes = {"epochs": 1, "learning_rate": 1e-12, "ema_decay": 0.0, "weight_decay": 0.0}
    run = train(
        text_request(
            table,
            tmp_path / "run",
            weights=str(tmp_path / "plain"),
            reading=Reading(),
            changes=changes,
            **CLASSIFIER,
        )
    )
    first, second = (load_file(one / "weights.safetensors") for one in (classifier, run))
    names = [name for name in first if not name.startswith("classifier.")]
    assert len(names) > 30
    assert_close(
        {name: second[name] for name in names},
        {name: first[name] for name in names},
        rtol=0,
        atol=1e-9,
    )


def test_checkpointed_activations_train_to_the_same_weights(
    causal: Path, text: Path, tmp_path: Path
) -> None:
    """With dropout: what is computed again drops the same."""
    same(causal, train(text_request(text, tmp_path / "run", checkpoint_activations=True)))


def test_dropout_reaches_the_network_and_its_config(text: Path, tmp_path: Path) -> None:
    changes = {"epochs": 1, "dropout": 0.25}
    run = train(text_request(text, tmp_path / "run", changes=changes))
    config = json.loads((run / "config.json").read_text())
    assert [config[name] for name in ("embd_pdrop", "resid_pdrop", "attn_pdrop")] == [0.25] * 3
    found = {one.p for one in opened(run).network.modules() if isinstance(one, torch.nn.Dropout)}
    assert found == {0.25}


@pytest.mark.parametrize("network", ["causal", "classifier"])
def test_no_decay_of_norms_biases_and_positions(
    network: str, request: pytest.FixtureRequest
) -> None:
    of = opened(request.getfixturevalue(network))
    recipe = replace(of.entry.recipes["published"], weight_decay=0.5)
    named = dict(of.network.named_parameters())
    optimizer = build_optimizer(named.items(), recipe)
    names = {id(one): name for name, one in named.items()}
    spared = {
        names[id(one)]
        for group in optimizer.param_groups
        if group["weight_decay"] == 0
        for one in group["params"]
    }
    decayed = set(named) - spared
    assert all(name.endswith("weight") and named[name].ndim == 2 for name in decayed)
    assert all(
        name.endswith(".bias")
        or ".ln_" in name
        or "LayerNorm" in name
        or "wpe" in name
        or "position_embeddings" in name
        for name in spared
    )
    positions = [name for name in spared if "wpe" in name or "position_embeddings" in name]
    assert len(positions) == 1
    assert any("wte" in name or "word_embeddings" in name for name in decayed)


PEAK = """
import resource, sys, torch
from octavolt.contract import Making, Shape
from octavolt.data.loader import Loader
from octavolt.data.text.packed_text import CausalExamples
from octavolt.devices import this_machine
from octavolt.evaluate import score_split
from octavolt.networks import gpt2
from octavolt.ranks import Rank
from tests.data.text.made import documents, trained
tokenizer = trained("abcdefgh", "characters", 20)
tokenizer.size = 50_304
windows = int(sys.argv[1])
examples = CausalExamples(
    documents("abcdefgh" * 128 * windows), tokenizer, length=1024, stride=1024, making=Making()
)
assert len(examples) == windows, len(examples)
task = gpt2.TASKS[0]
shape = Shape(task=task.name, vocabulary_size=tokenizer.size, length=1024)
network = gpt2.build({"n_embd": 16, "n_layer": 2, "n_head": 2}, shape)
machine = this_machine(precision="fp32", threads=1)
torch.set_num_threads(1)
with Loader(threads=1, ahead=machine.ahead) as loader:
    scored = score_split(
        network, examples, loader, machine, task=task, classes=(), rank=Rank()
    )
assert scored.metrics["tokens"] == 1024 * windows
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_evaluation_takes_the_memory_of_one_batch() -> None:
    """Logits of a pass of two windows are 412 MB; four windows' would be twice that."""
    peaks = []
    for windows in (2, 4):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(windows)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    # The logits of a single window, of which nothing may be kept from pass to pass.
    assert peaks[1] - peaks[0] < 1024 * 50_304 * 4 / 2


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"changes": {"mixup_alpha": 0.2}},
        "mixup_alpha: of no effect on causal-language-modeling. Leave the flag or setting away.",
    ),
    (
        {"changes": {"label_smoothing": 0.1, "class_weights": True}},
        "label_smoothing, class_weights: of no effect on causal-language-modeling. Leave the flag "
        "or setting away.",
    ),
    (
        {"changes": {"freeze_epochs": 1}},
        "tiny-gpt2 has no head of its own for causal-language-modeling, so nothing would be left "
        "to train: leave --freeze-epochs away.",
    ),
    (
        {"reading": Reading(image_size=64)},
        "--image-size: of no effect on causal-language-modeling. Leave it away.",
    ),
    (
        {"reading": Reading(whole_words=True, label_column="x")},
        "--label-column, --whole-words: of no effect on causal-language-modeling. Leave it away.",
    ),
    (
        {"reading": Reading(vocabulary_size=300, length=8, stride=9)},
        "--stride is 9; with a length of 8 it must be at most that, or tokens would be left out.",
    ),
    (
        {"reading": Reading(length=3, stride=0)},
        "length is 3; it must be at least 4. stride is 0; it must be at least 1.",
    ),
    (
        {"reading": Reading(length=2**17)},
        "--length is 131072; tiny-gpt2 reads at most 65536 tokens.",
    ),
)


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[m[:24] for _, m in REFUSED])
def test_what_has_no_effect_or_can_not_be_is_refused(
    changes: dict[str, Any], message: str, text: Path, tmp_path: Path
) -> None:
    with pytest.raises(OctavoltError) as raised:
        train(text_request(text, tmp_path / "run", **changes))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (Reading(stride=4), "--stride: of no effect on text-classification. Leave it away."),
        (
            Reading(length=65, vocabulary_size=300),
            "--length is 65; tiny-bert reads at most 64 tokens.",
        ),
    ],
)
def test_what_a_classifier_can_not_take_is_refused(
    reading: Reading, message: str, table: Path, tmp_path: Path
) -> None:
    with pytest.raises(OctavoltError) as raised:
        train(text_request(table, tmp_path / "run", reading=reading, **CLASSIFIER))
    assert str(raised.value) == message


def test_class_weights_are_refused_where_a_text_has_several_labels(tmp_path: Path) -> None:
    rows_ = [{"text": f"text {n}", "label": "a,b" if n % 2 else "b"} for n in range(40)]
    data = tmp_path / "several.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows_))
    with pytest.raises(OctavoltError) as raised:
        train(
            text_request(
                data,
                tmp_path / "run",
                reading=Reading(label_separator=",", vocabulary_size=300),
                changes={"class_weights": True},
                **CLASSIFIER,
            )
        )
    assert str(raised.value) == (
        "class_weights: of no effect on multi-label-text-classification. Leave the flag or "
        "setting away."
    )


def test_what_has_no_effect_on_the_task_that_the_data_decide_on_is_refused(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    data = tmp_path / "talks.jsonl"
    data.write_text(f"{json.dumps({'messages': turns})}\n" * 20)
    with pytest.raises(OctavoltError) as raised:
        train(text_request(data, tmp_path / "run", reading=Reading(stride=4)))
    assert str(raised.value) == "--stride: of no effect on dialogue. Leave it away."


def test_flags_of_text_are_refused_for_pictures(tmp_path: Path) -> None:
    request = Request(
        network="mobilenet-v2", data="nowhere", reading=Reading(length=8, tokenizer="train")
    )
    with pytest.raises(OctavoltError) as raised:
        train(request)
    assert str(raised.value) == (
        "--length, --tokenizer: of no effect on image-classification. Leave it away."
    )


@pytest.mark.parametrize(
    ("network", "task"), [("bert", "text-classification"), ("ssdlite", "object-detection")]
)
def test_a_cache_is_refused_where_nothing_would_be_kept_in_it(
    network: str, task: str, tmp_path: Path
) -> None:
    request = Request(network=network, data="nowhere", cache=tmp_path / "cache")
    with pytest.raises(OctavoltError) as raised:
        train(request)
    assert str(raised.value) == f"--cache: of no effect on {task}. Leave it away."


def test_stride_longer_than_the_length_is_refused_before_there_is_a_run(
    text: Path, tmp_path: Path
) -> None:
    reading = Reading(vocabulary_size=300, length=8, stride=9)
    with pytest.raises(OctavoltError, match=r"^--stride is 9;"):
        train(text_request(text, tmp_path / "run", reading=reading))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("asked", [{"vocabulary_size": 300}, {"tokenizer": "train"}])
def test_tokens_of_given_weights_are_kept(
    asked: dict[str, Any], causal: Path, text: Path, tmp_path: Path
) -> None:
    message = {
        "vocabulary_size": "--vocabulary-size is that of a tokenizer that is trained, but the one "
        f"of {causal} is used. Leave --vocabulary-size away.",
        "tokenizer": f"--tokenizer train makes new tokens, which the weights of {causal} don't "
        "know. Leave --tokenizer away to use the weights' own, or --weights to train from the "
        "start.",
    }
    with pytest.raises(OctavoltError) as raised:
        train(text_request(text, tmp_path / "run", weights=str(causal), reading=Reading(**asked)))
    assert str(raised.value) == message[next(iter(asked))]


def test_a_tokenizer_of_another_size_is_refused_with_both_sizes(
    causal: Path, text: Path, tmp_path: Path
) -> None:
    own = trained(" ".join(f"word{number}" for number in range(200)) * 3, "bpe", 340)
    own.save(tmp_path, length=8)
    assert own.size == 340
    with pytest.raises(OctavoltError) as raised:
        train(
            text_request(
                text,
                tmp_path / "run",
                weights=str(causal),
                reading=Reading(tokenizer=str(tmp_path)),
            )
        )
    assert str(raised.value) == (
        f"The tokenizer has 340 tokens, but the weights of {causal} know {VOCABULARY}: they "
        "don't belong together. Leave --tokenizer away to use the weights' own, or give --weights "
        "none to train with this one from the start."
    )


def test_weights_of_another_kind_of_network_are_refused(
    causal: Path, table: Path, tmp_path: Path
) -> None:
    with pytest.raises(OctavoltError, match=r"kind 'gpt2', as their config.json says; .* 'bert'"):
        train(
            text_request(
                table, tmp_path / "run", weights=str(causal), reading=Reading(), **CLASSIFIER
            )
        )


@pytest.mark.slow
def test_names_of_the_hub_offline_say_what_to_fetch() -> None:
    code = (
        "from octavolt.networks import ENTRIES\n"
        "from octavolt.networks.weights import read_weights\n"
        "from octavolt.errors import OctavoltError\n"
        "try:\n    read_weights(ENTRIES['gpt2'], 'gpt2')\n"
        "except OctavoltError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=offline(),
    )
    assert done.stdout.startswith(
        "Can't fetch openai-community/gpt2 from the Hugging Face Hub: "
    ), done.stdout
    assert done.stdout.endswith(
        "Fetch its config.json, its weights and the files of its tokenizer elsewhere into one "
        "folder, and give that with --weights; HF_ENDPOINT names a mirror.\n"
    )


def offline() -> dict[str, str]:
    import os

    empty = os.environ["XDG_CACHE_HOME"]
    return os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": f"{empty}/nothing-of-the-hub"}


def test_talks_need_the_tokens_of_roles(causal: Path) -> None:
    of = opened(causal)
    preparation: Any = of.preparation
    preparation.task = "dialogue"
    with pytest.raises(OctavoltError, match=r"^The tokenizer has no <\|system\|>"):
        of.preparation.examples(conversations([("user", "x"), ("assistant", "y")]), TRAINING)


def test_a_run_without_weights_says_how_to_go_on(causal: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text((causal / "settings.json").read_text())
    (tmp_path / "config.json").write_text((causal / "config.json").read_text())
    with pytest.raises(OctavoltError, match=r"holds no weights\.safetensors: it stopped before"):
        read_weights(GPT2, str(tmp_path))
