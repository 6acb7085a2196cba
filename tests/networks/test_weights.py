import hashlib
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.testing import assert_close

from octavolt.contract import Published, Shape
from octavolt.data import MODALITIES
from octavolt.devices import this_machine
from octavolt.errors import OctavoltError
from octavolt.networks import mobilenet_v2, resnet50
from octavolt.networks.opened import open_entry, ready
from octavolt.networks.weights import Weights, read_published, read_state, read_weights, take

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
        read_published(published("net-b0353104.pth", address))
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
    weights = read_published(published("net-0.pth", "file:///nowhere"))
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
    same(read_published(published(f"net-{digest}.pth", source.as_uri())).tensors, state())
    with pytest.raises(OctavoltError, match=r"Can't fetch net-00000000\.pth .* invalid hash"):
        read_published(published("net-00000000.pth", source.as_uri()))
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
