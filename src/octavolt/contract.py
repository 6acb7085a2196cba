"""What tables and verbs agree on: read this before you add a network, a task or a format."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

Job = Callable[[], None]


class Batch(ABC):
    """Samples together, on one device."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """What the losses are means over: pictures, or real tokens."""

    @abstractmethod
    def to(self, device: torch.device) -> "ReadyBatch":
        """Return the batch on that device, ready for the network."""


class ReadyBatch(Batch):
    """A batch as the network takes it."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Tensor, ...]:
        """What `Network.forward` takes."""


class Network(nn.Module, ABC):
    """A network behind the three calls that all verbs use.

    The first is `forward`, tensor to tensor: what plan, export and explain trace.
    """

    body: nn.Module
    """The module whose state dict has the names under which others publish weights."""

    @abstractmethod
    def losses(self, batch: Any, /) -> dict[str, Float[Tensor, ""]]:
        """Return the named mean losses of a batch; training minimizes their sum."""

    @abstractmethod
    def decode(self, outputs: Any, /) -> Any:
        """Turn the outputs of `forward` into what the task's score and `present` take."""

    @abstractmethod
    def head(self) -> Sequence[str]:
        """Return the prefixes, in the body's state dict, of what depends on the classes."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """Contiguous places in the order of an epoch. A sample's randomness follows from its place."""

    seed: int
    epoch: int
    """Counted from 1."""
    first: int
    """Position in the epoch of the first sample, from 0."""
    indices: Int[np.ndarray, " batch"]
    """Which sample of the split stands at each position."""

    def random(self, offset: int, purpose: int = 0) -> np.random.Generator:
        """Return the generator of the sample at `first + offset`: never of a worker or a rank."""
        return np.random.Generator(
            np.random.SFC64([self.seed, self.epoch, self.first + offset, purpose])
        )

    def torch_seed(self) -> int:
        """Return the seed of dropout in a batch that starts here."""
        sequence = np.random.SeedSequence([self.seed, self.epoch, self.first])
        return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


class Examples(ABC):
    """The samples of one split, made ready for a network."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abstractmethod
    def begin(self, places: Places) -> tuple[Batch, Sequence[Job]]:
        """Return a batch to be filled, and the jobs that fill it, in any order, on any thread."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Return what a person would call the sample: its file, or file and row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing wrong with a data set."""

    kind: str
    """One of `data.check.KINDS`, such as 'truncated'."""
    file: str
    line: int | None = None
    problem: str
    stops: bool = True
    """Whether training refuses to start; otherwise it is a warning."""
    damaged: bool = False
    """Whether `--skip-damaged` may leave the sample out and go on."""


class Score(ABC):
    """Sums over samples. Scores of shards or ranks merge by adding their sums, in any order."""

    @abstractmethod
    def update(self, outputs: Any, batch: Any, /) -> None:
        """Count one batch of decoded outputs."""

    @abstractmethod
    def sums(self) -> Int[Tensor, " sums"]:
        """Return all that was counted: whole numbers, so that no order of adding matters."""

    @abstractmethod
    def load(self, sums: Int[Tensor, " sums"], /) -> None:
        """Replace what was counted."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """Return the metrics, ready for JSON."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A sample that was answered wrongly, and how sure the network was."""

    probability: float
    index: int
    """Of the sample in its split."""
    label: int
    predicted: int


@dataclass(frozen=True, kw_only=True)
class Task:
    """What goes in, what comes out, how it is scored."""

    name: str
    new_score: Callable[[Sequence[str]], Score]
    """Takes the names of the classes."""
    present: Callable[[Any, Sequence[str]], list[dict[str, Any]]]
    """Decoded outputs and classes to what people read, a dictionary a sample."""
    mistakes: Callable[[Any, Any, Int[np.ndarray, " batch"]], list[Mistake]]
    """Decoded outputs, their batch and its samples to the wrong answers among them."""
    primary_metric: str
    """A key of `Score.result`; larger is better."""
    tie_metric: str
    """Another, of which less is better: decides where the primary ones are equal."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How a picture becomes a network's input; saved with the weights."""

    image_size: int
    """Height and width of the input in pixels."""
    crop_fraction: float = 0.875
    """Share of the resized picture's shorter side that the central crop keeps in evaluation."""
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    deviation: tuple[float, float, float] = (0.229, 0.224, 0.225)
    white_level: int = 65535
    """The value of white in pictures of more than 8 bits a channel."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained when the user says nothing else."""

    source: str
    epochs: int
    batch_size: int
    """Samples per update of the parameters, over all ranks and accumulated micro-batches."""
    optimizer: str
    learning_rate: float
    """At `batch_size` samples an update."""
    momentum: float = 0.9
    weight_decay: float = 0.0
    decay_norms_and_biases: bool = False
    schedule: str = "cosine"
    warmup_epochs: float = 0.0
    step_epochs: int = 30
    """For the schedule 'step': epochs between falls of the learning rate."""
    step_factor: float = 0.1
    label_smoothing: float = 0.0
    mixup_alpha: float = 0.0
    ema_decay: float = 0.0
    """Decay of the running mean of the weights a step; 0 keeps none."""
    class_weights: bool = False
    freeze_epochs: int = 0
    """Epochs in which only the head is trained."""
    early_stop_epochs: int | None = None
    max_gradient_norm: float | None = None
    crop_scale_min: float = 0.08
    """Smallest share of a picture's area that a random crop takes; 1 takes no crops."""
    mirror: bool = True


@dataclass(frozen=True, kw_only=True)
class Target:
    """A published accuracy."""

    metric: str
    value: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Published:
    """A file of weights that others publish."""

    name: str
    address: str
    file: str
    """Its name in torch's cache; the digits are the start of its SHA-256."""
    classes: Callable[[], tuple[str, ...]]
    licence: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One network in the table."""

    name: str
    tasks: tuple[Task, ...]
    build: Callable[[int], Network]
    """Takes the number of classes."""
    build_tiny: Callable[[int], Network]
    """The same code at a size that trains on a CPU in a second."""
    tiny_image_size: int
    example_inputs: Callable[[int], tuple[Tensor, ...]]
    """Takes the number of samples."""
    preprocessing: Preprocessing
    recipes: Mapping[str, Recipe]
    """Keys 'published', 'small-data' and 'fine-tune': see `train.settings.choose_recipe`."""
    targets: tuple[Target, ...]
    parameter_count: int
    forward_multiply_adds: int
    """Of one sample at the size of `example_inputs`."""
    weights: Mapping[str, Published]
    explain_layer: str
    """Name of the module whose output explanations weigh."""
    paper: str
    smallest_image_size: int = 32


class Pictures(ABC):
    """The pictures of one split as they lie on disk or in memory, with a label each."""

    labels: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.labels)

    @abstractmethod
    def read(self, index: int) -> bytes | memoryview | NDArray[np.uint8] | NDArray[np.uint16]:
        """Return the bytes of an encoded picture, or pixels: (height, width) or with channels.

        Raises `OSError` if the file can't be read.
        """

    @abstractmethod
    def name(self, index: int) -> str:
        """Return the file relative to the data set, or 'file:row'."""

    @abstractmethod
    def select(self, indices: NDArray[np.int64]) -> "Pictures":
        """Return only those pictures, in that order."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """What a data format found: classes, splits, and what is wrong so far."""

    source: str
    """As the user named it."""
    format: str
    classes: tuple[str, ...]
    """From the training split alone; a label is an index into it."""
    splits: Mapping[str, Pictures]
    """Keys among 'train', 'val' and 'test'."""
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    """What was decided by looking, one sentence each: shown to the user."""
    mirrorable: bool = True
    """Whether a mirrored picture keeps its class: not so for digits and letters."""
    root: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
