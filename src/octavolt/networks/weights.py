"""Weights from elsewhere: read without running their code, matched by name and shape."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from octavolt.contract import Entry, HubWeights, Network, Published, Shape
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.networks import ENTRIES
from octavolt.networks.hub import HUB_NAME, fetched_folder
from octavolt.runs import find_run, read_fields
from octavolt.units import counted

MATCHING_FRACTION = 0.5
"""With fewer of the network's tensors in a file, the file is another network's."""
STATE_ENDINGS = (".safetensors", ".pt", ".pth", ".bin")
"""Of files that hold a state dict; a network's own format may have any other."""
MOST_ADDED_TOKENS = 8
"""Of a dialogue: the roles and what else stands between messages."""
WRAPPERS = ("state_dict", "model_state_dict", "model", "network", "module")
"""Names under which others nest a state dict."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A state dict, and what is known about it."""

    tensors: Mapping[str, Tensor]
    classes: tuple[str, ...] | None
    source: str
    folder: Path | None = None
    """Where they lie, if in a folder that tells more: their sizes, their tokenizer."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """What config.json of that folder says, or what the tensors show."""
    partial: bool = False
    """Whether they are meant for a part of the network, such as its backbone."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Which tensors came from the weights."""

    taken: tuple[str, ...]
    replaced: tuple[str, ...]
    """Left fresh since they depend on the classes, which differ."""
    missing: tuple[str, ...]
    """In the network, not in the weights: fresh."""
    unused: tuple[str, ...]
    """In the weights, not in the network."""

    def sentence(self, source: str) -> str:
        """Return what people are told."""
        parts = [f"{counted(len(self.taken), 'tensor')} taken from {source}"]
        for names, what in (
            (self.replaced, "replaced for the new classes"),
            (self.missing, "not in it, left fresh"),
            (self.unused, "of it not used"),
        ):
            if names:
                shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
                parts.append(f"{len(names)} {what} ({shown})")
        return "; ".join(parts) + "."


def read_weights(entry: Entry, named: str) -> Weights:
    """Return the weights that a published name, a file, a folder or a run means."""
    if named in entry.weights:
        published = entry.weights[named]
        if isinstance(published, HubWeights):
            return read_folder(fetched_folder(published.repository))
        return read_published(entry, published)
    path = Path(named).expanduser()
    if path.is_file():
        given = [one for one in entry.weights.values() if isinstance(one, Published)]
        known = next((one for one in given if one.file == path.name), None)
        return shown(read_file(entry, path), None, path.name, known)
    if (path / "config.json").is_file() and not (path / "settings.json").is_file():
        return read_folder(path)
    if path.exists() or (Path("runs") / named).exists() or named == "latest":
        return read_run(find_run(named))
    on_hub = any(isinstance(one, HubWeights) for one in entry.weights.values())
    if on_hub and HUB_NAME.fullmatch(named):
        return read_folder(fetched_folder(named))
    if path.suffix or len(path.parts) > 1:
        raise OctavoltError(f"There are no weights at {path}: no such file or run folder.")
    raise UnknownNameError("file, run or set of weights", named, ["none", *entry.weights])


def read_run(folder: Path) -> Weights:
    """Return the best weights of a run."""
    path = folder / "weights.safetensors"
    if not path.is_file():
        raise OctavoltError(
            f"{folder} holds no weights.safetensors: it stopped before its first epoch was "
            f"evaluated. Go on with: octavolt train --resume {folder}"
        )
    classes = tuple(read_fields(folder / "labels.json", classes=list)["classes"])
    return Weights(
        tensors=read_state(path),
        classes=classes,
        source=str(folder),
        folder=folder,
        sizes=written_sizes(folder),
    )


def written_sizes(run: Path) -> dict[str, Any]:
    """Return what config.json of a run says of the network's sizes, if it has one."""
    path = run / "config.json"
    return read_fields(path) if path.is_file() else {}


def read_folder(folder: Path) -> Weights:
    """Return the weights of a folder as the Hugging Face Hub lays them out.

    The classes are those of its configuration, unless it has numbered them itself.
    """
    sizes = read_fields(folder / "config.json")
    tensors: dict[str, Tensor] = {}
    for file in weight_files(folder):
        tensors |= read_state(file)
    names = sizes.get("id2label")
    classes: tuple[str, ...] | None = None
    if isinstance(names, dict) and not all(str(one).startswith("LABEL_") for one in names.values()):
        classes = tuple(str(names[key]) for key in sorted(names, key=int))
    return Weights(tensors=tensors, classes=classes, source=str(folder), folder=folder, sizes=sizes)


def weight_files(folder: Path) -> list[Path]:
    """Return the files that hold a folder's tensors: safetensors before pickles."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{name}.index.json"
        if index.is_file():
            places = read_fields(index, weight_map=dict)["weight_map"].values()
            files = [folder / one for one in sorted({str(one) for one in places})]
            outside = [one for one in files if one.parent != folder or not one.is_file()]
            if outside:
                raise OctavoltError(f"{index} names {outside[0].name}, which is not in {folder}.")
            return files
        if (folder / name).is_file():
            return [folder / name]
    raise OctavoltError(
        f"{folder} holds no weights: neither model.safetensors nor pytorch_model.bin, nor an index "
        "of several. Fetch the rest of it, or give another folder with --weights."
    )


def read_published(entry: Entry, published: Published) -> Weights:
    """Return a published file's weights from torch's cache, fetched first if it isn't there."""
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / published.file
    if not path.is_file():
        digest = published.file.rpartition("-")[2].partition(".")[0]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(
                published.address, str(path), hash_prefix=digest, progress=False
            )
        except (OSError, RuntimeError) as error:
            why = error.reason if type(error) is URLError else error
            raise OctavoltError(
                f"Can't fetch {published.file} ({published.name}) from {published.address}: "
                f"{why}. Fetch it elsewhere and put it into {folder}, or give its path with "
                "--weights."
            ) from error
    return shown(read_file(entry, path), published.classes() or None, published.name, published)


def shown(
    tensors: Mapping[str, Tensor],
    classes: tuple[str, ...] | None,
    source: str,
    published: Published | None,
) -> Weights:
    """Return the weights of a file, which is a published one or any other.

    Norms that count no batches were frozen when they were saved.
    """
    convert = published.converted if published is not None else None
    if convert is not None:
        tensors = convert(tensors)
    ends = {name.rpartition(".")[2] for name in tensors}
    frozen = "running_var" in ends and "num_batches_tracked" not in ends
    return Weights(
        tensors=tensors,
        classes=classes,
        source=source,
        sizes={"frozen_norms": True} if frozen else {},
        partial=convert is not None,
    )


def read_file(entry: Entry, path: Path) -> Mapping[str, Tensor]:
    """Return the body's state dict of a file, in the network's own format if it has one."""
    if entry.read_file is not None and path.suffix not in STATE_ENDINGS:
        return entry.read_file(path)
    return read_state(path)


def read_state(path: Path) -> dict[str, Tensor]:
    """Return a state dict from a safetensors file, or from a pickle that holds only tensors."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, EOFError, OSError, RuntimeError, ValueError, KeyError) as error:
        raise OctavoltError(f"{path} can't be read as weights: {first_line(error)}") from error
    except pickle.UnpicklingError as error:
        raise OctavoltError(
            f"{path} is a pickle that wants to run code, or no weights at all, and was refused. "
            "Save the state dict alone, best as safetensors."
        ) from error
    for wrapper in WRAPPERS:
        if isinstance(loaded, dict) and isinstance(loaded.get(wrapper), dict):
            loaded = loaded[wrapper]
    if not isinstance(loaded, dict) or not all(isinstance(one, Tensor) for one in loaded.values()):
        raise OctavoltError(
            f"{path} holds {type(loaded).__name__}, not a state dict of tensors by name."
        )
    return {str(name).removeprefix("module."): tensor for name, tensor in loaded.items()}


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, which may run over many."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def take(network: Network, weights: Weights, classes: Sequence[str]) -> Taken:
    """Load what fits into the network's body; a head of other classes stays fresh."""
    own = network.body.state_dict()
    weights = aligned(weights, own)
    result = fitting(network, weights, classes)
    tensors = {name: weights.tensors[name] for name in result.taken}
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:  # the vocabulary has grown or was padded
            rows = min(len(tensor), len(own[name]))
            tensors[name] = own[name].clone()
            tensors[name][:rows] = tensor[:rows]
    network.body.load_state_dict(tensors, strict=False)
    return result


def aligned(weights: Weights, own: Mapping[str, Tensor]) -> Weights:
    """Return the weights under the network's names.

    Others leave out the part before the first dot, such as 'bert.', and once called the scale and
    shift of a norm 'gamma' and 'beta'.
    """
    renamed = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): tensor
        for name, tensor in weights.tensors.items()
    }
    prefixes = sorted({f"{name.partition('.')[0]}." for name in own})
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in renamed):
            for name in [one for one in renamed if f"{prefix}{one}" in own]:
                renamed[f"{prefix}{name}"] = renamed.pop(name)
    return replace(weights, tensors=renamed)


def check_fits(entry: Entry, weights: Weights, shape: Shape, classes: Sequence[str]) -> None:
    """Raise unless the weights are the network's."""
    with torch.device("meta"):
        network = entry.build(shape)
    check_vocabulary(weights, shape)
    fitting(network, aligned(weights, network.body.state_dict()), classes)


def check_vocabulary(weights: Weights, shape: Shape) -> None:
    """Raise if the tokenizer can't be the one that the weights were trained with."""
    rows = weights.sizes.get("vocab_size")
    if not rows or not shape.vocabulary_size or same_vocabulary(rows, shape.vocabulary_size):
        return
    raise OctavoltError(
        f"The tokenizer has {shape.vocabulary_size:,} tokens, but the weights of {weights.source} "
        f"know {rows:,}: they don't belong together. Leave --tokenizer away to use the weights' "
        "own, or give --weights none to train with this one from the start."
    )


def same_vocabulary(published: int, tokens: int) -> bool:
    """Whether rows of published weights and of a tokenizer may belong together.

    A few tokens may have been added, and some publish rows padded to a multiple of 128.
    """
    return 0 <= tokens - published <= MOST_ADDED_TOKENS or 0 <= published - tokens < 128


def fitting(network: Network, weights: Weights, classes: Sequence[str]) -> Taken:
    """Return which tensors fit; raise if they are too few to be this network's."""
    own = network.body.state_dict()
    other_classes = weights.classes is not None and weights.classes != tuple(classes)
    heads = tuple(network.head())
    taken, replaced, missing = [], [], []
    for name, tensor in own.items():
        given = weights.tensors.get(name)
        is_head = name.startswith(heads)
        if given is None:
            missing.append(name)
        elif is_head and (other_classes or given.shape != tensor.shape):
            replaced.append(name)
        elif given.shape == tensor.shape or grown(given, tensor, weights):
            taken.append(name)
        else:
            missing.append(name)
    wanted = len(weights.tensors) if weights.partial else len(own)
    if len(taken) < MATCHING_FRACTION * wanted:
        raise OctavoltError(another_networks(weights, len(taken), wanted))
    return Taken(
        taken=tuple(taken),
        replaced=tuple(replaced),
        missing=tuple(missing),
        unused=tuple(name for name in weights.tensors if name not in own),
    )


def grown(given: Tensor, own: Tensor, weights: Weights) -> bool:
    """Whether a tensor has a row a token, and only their number differs."""
    return (
        given.shape[1:] == own.shape[1:]
        and len(given) == weights.sizes.get("vocab_size")
        and same_vocabulary(len(given), len(own))
    )


def another_networks(weights: Weights, found: int, wanted: int) -> str:
    """Return what is said of weights that don't belong to the network."""
    guess = whose(weights.tensors)
    advice = f"They are those of {guess}: train that, or give" if guess else "Give"
    return (
        f"The weights of {weights.source} are another network's: {found} of {wanted} tensors fit "
        f"by name and shape. {advice} this one's with --weights."
    )


def whose(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the network of the table that most of the tensors fit, or None."""
    best, best_fraction = None, MATCHING_FRACTION
    for entry in ENTRIES.values():
        with torch.device("meta"):
            body: nn.Module = entry.build(Shape(task=entry.tasks[0].name, classes=2)).body
        own = body.state_dict()
        same = sum(name in tensors and tensors[name].shape == own[name].shape for name in own)
        if same / len(own) > best_fraction:
            best, best_fraction = entry.name, same / len(own)
    return best
