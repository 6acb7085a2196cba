import hashlib
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.testing import assert_close

from octavolt.contract import Entry, Published, Shape
from octavolt.data import MODALITIES
from octavolt.devices import this_machine
from octavolt.errors import OctavoltError
from octavolt.networks import ENTRIES, mobilenet_v2, resnet50
from octavolt.networks.opened import open_entry, ready
from octavolt.networks.weights import (
    Weights,
    check_fits,
    read_published,
    read_state,
    read_weights,
    take,
)

CLASSES = ("blue", "green", "red")
HEAD = ("classifier.1.weight", "classifier.1.bias")
THREE = Shape(task="image-classification", classes=3)
TINY = replace(mobilenet_v2.ENTRY, name="tiny", build=mobilenet_v2.build_tiny)


def state(classes: int = 3) -> dict[str, Tensor]:
    """Return a state dict of the tiny network, unlike a fresh one's."""
    torch.manual_seed(7)
    return dict(mobilenet_v2.build_tiny(replace(THREE, classes=classes)).body.state_dict())


def same(found: Any, expected: dict[str, Tensor]) -> None:
    assert_close(dict(found), expected, rtol=0, atol=0)


class Harmful:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model_state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module."], ids=["plain", "from-data-parallel"])
def test_state_dict_is_found_as_others_save_it(
    tmp_path: Path, wrapper: str | None, prefix: str
) -> None:
    named = {prefix + name: tensor for name, tensor in state().items()}
    saved = named if wrapper is None else {wrapper: named, "epoch": 3}
    torch.save(saved, tmp_path / "w.pth")
    same(read_state(tmp_path / "w.pth"), state())


def test_safetensors_hold_the_same(tmp_path: Path) -> None:
    save_file(state(), tmp_path / "w.safetensors")
    same(read_state(tmp_path / "w.safetensors"), state())


def test_run_gives_its_classes_too(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "labels.json").write_text(json.dumps({"classes": CLASSES}))
    save_file(state(), tmp_path / "weights.safetensors")
    weights = read_weights(TINY, str(tmp_path))
    same(weights.tensors, state())
    assert (weights.classes, weights.source) == (CLASSES, str(tmp_path))


def test_all_tensors_are_taken_for_the_same_classes() -> None:
    network = mobilenet_v2.build_tiny(THREE)
    taken = take(network, Weights(tensors=state(), classes=CLASSES, source="run"), CLASSES)
    same(network.body.state_dict(), state())
    assert taken.sentence("run") == "62 tensors taken from run."


@pytest.mark.parametrize(
    ("given", "rows"),
    [(("red", "green", "blue"), 3), (("a", "b", "c", "d"), 4), (None, 4)],
    ids=["other order", "other number", "unnamed"],
)
def test_head_of_other_classes_stays_fresh(given: tuple[str, ...] | None, rows: int) -> None:
    network = mobilenet_v2.build_tiny(THREE)
    fresh = {name: network.body.state_dict()[name].clone() for name in HEAD}
    taken = take(network, Weights(tensors=state(rows), classes=given, source="w"), CLASSES)
    body = {name: one for name, one in state(rows).items() if name not in HEAD}
    same(network.body.state_dict(), body | fresh)
    assert taken.replaced == HEAD
    assert taken.sentence("w.pth") == (
        "60 tensors taken from w.pth; 2 replaced for the new classes (classifier.1.weight, "
        "classifier.1.bias)."
    )


def test_tensors_that_are_missing_or_left_over_are_told() -> None:
    tensors = state() | {f"extra.{index}": torch.zeros(1) for index in range(5)}
    del tensors["features.0.0.weight"]
    network = mobilenet_v2.build_tiny(THREE)
    taken = take(network, Weights(tensors=tensors, classes=CLASSES, source="w"), CLASSES)
    assert taken.sentence("w.pth") == (
        "61 tensors taken from w.pth; 1 not in it, left fresh (features.0.0.weight); 5 of it not "
        "used (extra.0, extra.1, extra.2, extra.3, ...)."
    )


def test_weights_of_another_network_are_refused_and_theirs_named() -> None:
    with torch.device("meta"):
        tensors, network = (
            resnet50.ENTRY.build(
                Shape(task="image-classification", classes=1000)
            ).body.state_dict(),
            TINY.build(THREE),
        )
    with pytest.raises(OctavoltError) as raised:
        take(network, Weights(tensors=tensors, classes=None, source="w.pth"), CLASSES)
    assert str(raised.value) == (
        "The weights of w.pth are another network's: 0 of 62 tensors fit by name and shape. They "
        "are those of resnet50: train that, or give this one's with --weights."
    )


def test_pickle_that_runs_code_is_refused_and_not_run(tmp_path: Path) -> None:
    marker, file = tmp_path / "it-ran", tmp_path / "w.pth"
    torch.save({"weight": torch.zeros(1), "more": Harmful(f"touch '{marker}'")}, file)
    with pytest.raises(OctavoltError) as raised:
        read_state(file)
    assert not marker.exists()
    assert str(raised.value) == (
        f"{file} is a pickle that wants to run code, or no weights at all, and was refused. Save "
        "the state dict alone, best as safetensors."
    )


def test_the_harmful_pickle_of_the_tests_would_run(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Harmful(f"touch '{tmp_path}/it-ran'")))
    assert (tmp_path / "it-ran").exists()


@pytest.mark.parametrize("content", [b'{"weight": [1, 2]}', b"", b"\x89PNG\r\n"])
def test_what_is_no_pickle_is_named_without_a_traceback(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "w.pth"
    file.write_bytes(content)
    with pytest.raises(OctavoltError, match=r"w\.pth (can't be read as weights|is a pickle)"):
        read_state(file)


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
@pytest.mark.parametrize("kept", [0.01, 0.5, 0.99])
def test_truncated_file_is_named(tmp_path: Path, name: str, kept: float) -> None:
    file = tmp_path / name
    if name.endswith("pth"):
        torch.save(state(), file)
    else:
        save_file(state(), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(OctavoltError, match=rf"{name} can't be read as weights: \S"):
        read_state(file)


def test_whole_network_in_a_pickle_is_refused(tmp_path: Path) -> None:
    torch.save(mobilenet_v2.build_tiny(THREE), tmp_path / "w.pth")
    with pytest.raises(OctavoltError, match=r"was refused\. Save the state dict alone"):
        read_state(tmp_path / "w.pth")


def test_pickle_of_something_else_says_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "w.pth"
    torch.save([torch.zeros(1)], file)
    with pytest.raises(OctavoltError) as raised:
        read_state(file)
    assert str(raised.value) == f"{file} holds list, not a state dict of tensors by name."


def published(file: str, address: str) -> Published:
    of = mobilenet_v2.ENTRY.weights["imagenet"]
    assert isinstance(of, Published)
    return replace(of, file=file, address=address)


def test_published_file_that_can_not_be_fetched_is_named_with_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    address = (tmp_path / "nowhere/net-b0353104.pth").as_uri()
    with pytest.raises(OctavoltError) as raised:
        read_published(ENTRIES["mobilenet-v2"], published("net-b0353104.pth", address))
    assert str(raised.value) == (
        f"Can't fetch net-b0353104.pth (MobileNet_V2_Weights.IMAGENET1K_V1) from {address}: "
        f"[Errno 2] No such file or directory: '{tmp_path}/nowhere/net-b0353104.pth'. Fetch it "
        f"elsewhere and put it into {tmp_path}/torch/hub/checkpoints, or give its path with "
        "--weights."
    )


def test_published_file_is_taken_from_the_cache_of_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub/checkpoints").mkdir(parents=True)
    torch.save(state(), tmp_path / "hub/checkpoints/net-0.pth")
    weights = read_published(ENTRIES["mobilenet-v2"], published("net-0.pth", "file:///nowhere"))
    same(weights.tensors, state())
    assert weights.classes is not None
    assert len(weights.classes) == 1000


def test_published_file_is_fetched_and_its_checksum_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    source = tmp_path / "source.pth"
    torch.save(state(), source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:8]
    same(
        read_published(
            ENTRIES["mobilenet-v2"], published(f"net-{digest}.pth", source.as_uri())
        ).tensors,
        state(),
    )
    with pytest.raises(OctavoltError, match=r"Can't fetch net-00000000\.pth .* invalid hash"):
        read_published(ENTRIES["mobilenet-v2"], published("net-00000000.pth", source.as_uri()))
    names = [path.name for path in (tmp_path / "torch/hub/checkpoints").iterdir()]
    assert names == [f"net-{digest}.pth"]


def test_weights_without_names_get_numbers_for_classes() -> None:
    found = Weights(tensors=state(), classes=None, source="w.pth")
    opened = open_entry(TINY, TINY.tasks[0], found, this_machine(precision="fp32"), MODALITIES)
    assert opened.classes == ("0", "1", "2")


def test_weights_without_a_head_know_no_classes() -> None:
    tensors = {name: one for name, one in state().items() if name not in HEAD}
    found = Weights(tensors=tensors, classes=None, source="w.pth")
    with pytest.raises(OctavoltError) as raised:
        open_entry(TINY, TINY.tasks[0], found, this_machine(), MODALITIES)
    assert str(raised.value) == (
        "The weights of w.pth have no head (classifier.1.weight): they can start a training, but "
        "they know no classes. Train first: octavolt train tiny --weights w.pth --data YOURS"
    )


@pytest.mark.parametrize("lacking", ["classifier.1.weight", "features.1.conv.0.0.weight"])
def test_network_with_fresh_tensors_gives_no_answers(lacking: str) -> None:
    tensors = {name: tensor for name, tensor in state().items() if name != lacking}
    found = Weights(tensors=tensors, classes=CLASSES, source="w")
    with pytest.raises(
        OctavoltError, match=rf"^w can't answer: of tiny with 3 classes .*{lacking}"
    ):
        ready(TINY, found, THREE, CLASSES, this_machine())


def test_labels_that_are_not_those_of_the_weights_give_no_answers() -> None:
    found = Weights(tensors=state(3), classes=CLASSES, source="w")
    with pytest.raises(OctavoltError, match=r"^w can't answer: of tiny with 2 classes it lacks cl"):
        ready(TINY, found, replace(THREE, classes=2), CLASSES[:2], this_machine())


LANGUAGE: dict[str, Entry] = {
    name: replace(ENTRIES[name], name=f"tiny-{name}", build=ENTRIES[name].build_tiny)
    for name in ("bert-tiny", "gpt2")
}


def language_body(name: str) -> dict[str, Tensor]:
    """Return the state dict of a tiny language network, unlike a fresh one's."""
    torch.manual_seed(7)
    return dict(LANGUAGE[name].build(language_shape(name)).body.state_dict())


def language_shape(name: str, **changes: Any) -> Shape:
    shape_ = Shape(
        task=LANGUAGE[name].tasks[0].name,
        classes=3 if name == "bert-tiny" else 0,
        vocabulary_size=27,
        length=12,
    )
    return replace(shape_, **changes)


def plain_folder(folder: Path, name: str) -> Path:
    """Save a tiny network as transformers does, and return its folder."""
    shape_ = language_shape(name)
    torch.manual_seed(7)
    network: Any = LANGUAGE[name].build(shape_)
    body = network.body
    tensors = {key: one.clone() for key, one in body.state_dict().items()}
    sizes = body.config.to_dict() | {"vocab_size": 27}
    kind = type(body)
    theirs = kind(type(body.config)(**sizes))
    theirs.load_state_dict(tensors, strict=False)
    theirs.tie_weights()
    theirs.save_pretrained(folder)
    return folder


def taken_from(folder: Path, name: str) -> Any:
    """Return the body that a network has from a folder, and what was taken."""
    entry = LANGUAGE[name]
    found = read_weights(entry, str(folder))
    torch.manual_seed(1)
    network = entry.build(language_shape(name, sizes=found.sizes))
    return network.body.state_dict(), take(network, found, CLASSES)


@pytest.mark.parametrize("name", LANGUAGE)
def test_folder_that_transformers_saved_is_taken_whole(name: str, tmp_path: Path) -> None:
    state_, taken = taken_from(plain_folder(tmp_path, name), name)
    same(state_, language_body(name))
    assert (taken.missing, taken.replaced, taken.unused) == ((), (), ())


def rewritten(folder: Path, change: Callable[[str], str | None], *, pickled: bool = False) -> None:
    """Rename the tensors of a folder, or leave them out; pickle them if asked to."""
    file = folder / "model.safetensors"
    renamed = {change(name): tensor for name, tensor in read_state(file).items()}
    tensors = {name: tensor for name, tensor in renamed.items() if name is not None}
    file.unlink()
    if pickled:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, file)


@pytest.mark.parametrize("name", LANGUAGE)
@pytest.mark.parametrize("pickled", [False, True], ids=["safetensors", "pickle"])
def test_base_model_without_prefix_and_head_is_taken(
    name: str, pickled: bool, tmp_path: Path
) -> None:
    prefix = {"bert-tiny": "bert.", "gpt2": "transformer."}[name]
    rewritten(
        plain_folder(tmp_path, name),
        lambda one: one.removeprefix(prefix) if one.startswith(prefix) else None,
        pickled=pickled,
    )
    state_, taken = taken_from(tmp_path, name)
    expected = {key: one for key, one in language_body(name).items() if key.startswith(prefix)}
    same({key: state_[key] for key in expected}, expected)
    head = () if name == "gpt2" else ("classifier.weight", "classifier.bias")
    assert (taken.missing, taken.unused) == (head, ())


def test_old_names_of_norms_are_understood(tmp_path: Path) -> None:
    rewritten(
        plain_folder(tmp_path, "bert-tiny"),
        lambda one: one.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ),
    )
    assert any(name.endswith("LayerNorm.gamma") for name in read_state(tmp_path / FILE))
    state_, taken = taken_from(tmp_path, "bert-tiny")
    same(state_, language_body("bert-tiny"))
    assert (taken.missing, taken.unused) == ((), ())


FILE = "model.safetensors"


def shards(folder: Path) -> Path:
    """Cut the tensors of a folder into two files with an index."""
    tensors = read_state(folder / FILE)
    names = sorted(tensors)
    places = {name: f"part-{index % 2}.safetensors" for index, name in enumerate(names)}
    for part in sorted(set(places.values())):
        save_file({name: tensors[name] for name in names if places[name] == part}, folder / part)
    (folder / FILE).unlink()
    index = folder / f"{FILE}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index


def test_weights_in_several_files_are_taken_together(tmp_path: Path) -> None:
    shards(plain_folder(tmp_path, "gpt2"))
    state_, taken = taken_from(tmp_path, "gpt2")
    same(state_, language_body("gpt2"))
    assert taken.missing == ()


@pytest.mark.parametrize("outside", ["../elsewhere.safetensors", "/etc/hostname", "none.bin"])
def test_index_that_names_a_file_elsewhere_is_refused(outside: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    index = shards(plain_folder(folder, "gpt2"))
    save_file(state(), tmp_path / "elsewhere.safetensors")
    places = json.loads(index.read_text())["weight_map"]
    places[min(places)] = outside
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    with pytest.raises(OctavoltError) as raised:
        read_weights(LANGUAGE["gpt2"], str(folder))
    name = Path(outside).name
    assert str(raised.value) == f"{index} names {name}, which is not in {folder}."


def test_harmful_pickle_of_a_folder_is_refused_and_not_run(tmp_path: Path) -> None:
    folder, marker = plain_folder(tmp_path, "gpt2"), tmp_path / "it-ran"
    (folder / FILE).unlink()
    torch.save({"wte.weight": Harmful(f"touch '{marker}'")}, folder / "pytorch_model.bin")
    with pytest.raises(OctavoltError, match=r"pytorch_model\.bin is a pickle that wants to run"):
        read_weights(LANGUAGE["gpt2"], str(folder))
    assert not marker.exists()


def test_folder_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    (plain_folder(tmp_path, "gpt2") / FILE).unlink()
    with pytest.raises(OctavoltError) as raised:
        read_weights(LANGUAGE["gpt2"], str(tmp_path))
    assert str(raised.value) == (
        f"{tmp_path} holds no weights: neither model.safetensors nor pytorch_model.bin, nor an "
        "index of several. Fetch the rest of it, or give another folder with --weights."
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"0": "LABEL_0", "1": "LABEL_1"}, None),
        ({str(place): f"c{place}" for place in range(11)}, tuple(f"c{at}" for at in range(11))),
    ],
    ids=["numbered by the library", "named"],
)
def test_classes_of_a_folder_are_those_of_its_config(
    names: dict[str, str], expected: tuple[str, ...] | None, tmp_path: Path
) -> None:
    config_ = json.loads((plain_folder(tmp_path, "bert-tiny") / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config_ | {"id2label": names}))
    assert read_weights(LANGUAGE["bert-tiny"], str(tmp_path)).classes == expected


@pytest.mark.parametrize("tokens", [27, 28, 35])
def test_rows_of_a_few_added_tokens_stay_fresh(tokens: int, tmp_path: Path) -> None:
    found = read_weights(LANGUAGE["gpt2"], str(plain_folder(tmp_path, "gpt2")))
    shape_ = language_shape("gpt2", sizes=found.sizes, vocabulary_size=tokens)
    check_fits(LANGUAGE["gpt2"], found, shape_, ())
    network = LANGUAGE["gpt2"].build(shape_)
    words = "transformer.wte.weight"
    fresh = network.body.state_dict()[words].clone()
    take(network, found, ())
    after = network.body.state_dict()[words]
    assert len(after) == tokens
    same({"old": after[:27]}, {"old": language_body("gpt2")[words]})
    same({"new": after[27:]}, {"new": fresh[27:]})


@pytest.mark.parametrize("tokens", [36, 300])
def test_tokenizer_of_another_size_is_refused_with_both_sizes(tokens: int, tmp_path: Path) -> None:
    found = read_weights(LANGUAGE["bert-tiny"], str(plain_folder(tmp_path, "bert-tiny")))
    shape_ = language_shape("bert-tiny", sizes=found.sizes, vocabulary_size=tokens)
    with pytest.raises(OctavoltError) as raised:
        check_fits(LANGUAGE["bert-tiny"], found, shape_, CLASSES)
    assert str(raised.value) == (
        f"The tokenizer has {tokens} tokens, but the weights of {tmp_path} know 27: they don't "
        "belong together. Leave --tokenizer away to use the weights' own, or give --weights none "
        "to train with this one from the start."
    )


def test_weights_of_another_kind_are_refused(tmp_path: Path) -> None:
    found = read_weights(LANGUAGE["bert-tiny"], str(plain_folder(tmp_path, "gpt2")))
    shape_ = language_shape("bert-tiny", sizes=found.sizes)
    with pytest.raises(OctavoltError, match=r"of the kind 'gpt2', as their config\.json says"):
        check_fits(LANGUAGE["bert-tiny"], found, shape_, CLASSES)
