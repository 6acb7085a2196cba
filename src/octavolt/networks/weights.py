"""Weights from elsewhere: read without running their code, matched by name and shape."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from octavolt.contract import Entry, Network, Published
from octavolt.errors import OctavoltError, UnknownNameError
from octavolt.networks import ENTRIES
from octavolt.runs import find_run, read_fields
from octavolt.units import counted

MATCHING_FRACTION = 0.5
"""With fewer of the network's tensors in a file, the file is another network's."""
WRAPPERS = ("state_dict", "model_state_dict", "model", "network", "module")
"""Names under which others nest a state dict."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A state dict, and what is known about it."""

    tensors: Mapping[str, Tensor]
    classes: tuple[str, ...] | None
    source: str


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
    """Return the weights that a published name, a file or a run means."""
    if named in entry.weights:
        return read_published(entry.weights[named])
    path = Path(named)
    if path.is_file():
        return Weights(tensors=read_state(path), classes=None, source=path.name)
    if path.exists() or (Path("runs") / named).exists() or named == "latest":
        return read_run(find_run(named))
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
    return Weights(tensors=read_state(path), classes=classes, source=str(folder))


def read_published(published: Published) -> Weights:
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
    return Weights(tensors=read_state(path), classes=published.classes(), source=published.name)


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
    result = fitting(network, weights, classes)
    tensors = {name: weights.tensors[name] for name in result.taken}
    network.body.load_state_dict(tensors, strict=False)
    return result


def check_fits(entry: Entry, named: str, classes: Sequence[str]) -> None:
    """Raise unless the weights of that name are the network's."""
    with torch.device("meta"):
        network = entry.build(len(classes))
    fitting(network, read_weights(entry, named), classes)


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
        elif given.shape == tensor.shape:
            taken.append(name)
        else:
            missing.append(name)
    if len(taken) < MATCHING_FRACTION * len(own):
        raise OctavoltError(another_networks(weights, len(taken), len(own)))
    return Taken(
        taken=tuple(taken),
        replaced=tuple(replaced),
        missing=tuple(missing),
        unused=tuple(name for name in weights.tensors if name not in own),
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
            body: nn.Module = entry.build(2).body
        own = body.state_dict()
        same = sum(name in tensors and tensors[name].shape == own[name].shape for name in own)
        if same / len(own) > best_fraction:
            best, best_fraction = entry.name, same / len(own)
    return best
