"""What tables and verbs agree on: read this before you add a network, a task or a format."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

Job = Callable[[], None]
Progress = Callable[[int, int], None]
"""Takes what is done and how much there is in all."""
Say = Callable[[str], None]
"""Takes a sentence for the user."""


class Batch(ABC):
    """Samples together, on one device."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """What the losses are means over: pictures, texts, or real tokens that are predicted."""

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
    """The module whose state dict has the names and shapes under which others publish weights."""

    @abstractmethod
    def losses(self, batch: Any, /) -> dict[str, Float[Tensor, ""]]:
        """Return the named mean losses of a batch; training minimizes their sum."""

    @abstractmethod
    def decode(self, outputs: Any, /) -> Any:
        """Turn the outputs of `forward` into what the task's score and `present` take."""

    @abstractmethod
    def head(self) -> Sequence[str]:
        """Return the prefixes, in the body's state dict, of what depends on the classes."""

    def files(self, classes: Sequence[str], /) -> Mapping[str, Any]:
        """Return texts or JSON, by file name, with which others open the weights in a run.

        None, unless a network has its own: most need no more than the state dict.
        """
        del classes
        return {}


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

    lengths: Int[np.ndarray, " samples"] | None = None
    """Tokens of each sample, so that those of like length go together; None if all are alike."""
    evaluation_batch_size: int | None = None
    """Samples in one pass of evaluation; None leaves it to the device."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abstractmethod
    def begin(self, places: Places) -> tuple[Batch, Sequence[Job]]:
        """Return a batch to be filled, and the jobs that fill it, in any order, on any thread."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Return what a person would call the sample: its file, or file and row."""

    def show(self, index: int) -> dict[str, str]:
        """Return the sample for a report: 'jpeg_base64', a small picture, or 'text'; or nothing."""
        del index
        return {}

    def show_marked(self, index: int, marks: Any) -> dict[str, str]:
        """Return the sample with the marks of a `Mistake`; as it is, where there are none."""
        del marks
        return self.show(index)


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
    """What was counted over samples. Scores of shards or ranks merge, in any order."""

    adds: bool = True
    """Whether they merge by adding their sums; otherwise the sums stand one after the other."""

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
    """Of the answer that was given; the surest mistakes are shown first."""
    index: int
    """Of the sample in its split."""
    label: str
    """The right answer, as people read it."""
    predicted: str
    marks: Any = None
    """What `Examples.show_marked` draws on the sample, such as boxes."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What goes in, what comes out, how it is scored."""

    name: str
    modality: str
    """A name in `data.MODALITIES`: what its samples are."""
    sample: str
    """What evaluation counts, in the singular: 'picture', 'text', 'window'."""
    unit: str
    """What `Batch.weight` counts, in the singular: 'picture', 'text', 'token'."""
    new_score: Callable[[Sequence[str]], Score]
    """Takes the names of the classes."""
    present: Callable[[Any, Any, Sequence[str]], list[dict[str, Any]]]
    """Decoded outputs, their batch and the classes to what people read, a dictionary a sample."""
    mistakes: Callable[[Any, Any, Int[np.ndarray, " batch"], Sequence[str]], list[Mistake]]
    """Decoded outputs, their batch, its samples and the classes to the wrong answers among them."""
    primary_metric: str
    """A key of `Score.result`: decides which epoch is the best."""
    tie_metric: str
    """Another, of which less is better: decides where the primary ones are equal."""
    less_is_better: bool = False
    """Whether that holds for the primary metric too, as for a perplexity."""


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
class BoxPreprocessing:
    """How a picture of any size becomes a detector's input; saved with the weights.

    The network's own module normalizes: it takes RGB in 0 to 1.
    """

    height: int
    """Of the input in pixels; with 'shorter-side' what the shorter side is resized to."""
    width: int
    """Of the input in pixels; with 'shorter-side' what the longer side may be at most."""
    fit: str = "letterbox"
    """'letterbox' keeps the aspect and pads around, 'stretch' does not, 'shorter-side' keeps it and
    pads right and below to a multiple of 32: pictures of like aspect go together."""
    padding: int = 128
    """Level of what is padded, 0 to 255."""
    white_level: int = 65535
    """The value of white in pictures of more than 8 bits a channel."""
    anchors: tuple[tuple[float, float], ...] = ()
    """Widths and heights in pixels, fitted to the data; the network's own if empty."""


@dataclass(frozen=True, kw_only=True)
class TextLimits:
    """What a network sets for its texts."""

    length: int
    """Tokens of the longest input, special ones counted."""
    tokenizer: str
    """The kind that is trained from the data where none is given: 'wordpiece' or 'bpe'."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the user said of how data are read; None is left to us. Saved in a run's settings."""

    image_size: int | None = None
    text_column: str | None = None
    """A name or, without a header, a number from 1; two with a comma between are a pair."""
    label_column: str | None = None
    label_separator: str | None = None
    """What stands between several labels of one text."""
    tokenizer: str | None = None
    """'train', 'characters', or the path of a tokenizer's file or folder."""
    vocabulary_size: int | None = None
    length: int | None = None
    """Tokens of a sample at most."""
    stride: int | None = None
    """Tokens from one window to the next, where a long text is read in windows."""
    whole_words: bool = False
    """Whether masked language modeling hides whole words."""
    fit_anchors: bool = False
    """Whether the anchors of YOLOv3 are fitted to the boxes of the training data."""


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
    dropout: float | None = None
    """Of the whole network; None leaves what its paper says."""
    crop_scale_min: float = 0.08
    """Smallest share of a picture's area that a random crop takes; 1 takes no crops."""
    mirror: bool = True
    mosaic_share: float = 0.0
    """Share of the pictures with boxes that are laid out of four."""
    expand_max: float = 1.0
    """How many times as wide and high a picture's ground may become: Liu et al. 2016, 3.6."""
    box_crop: bool = False
    """Whether pictures are cropped by the rules of Liu et al. 2016, section 2.2."""
    scale_jitter: float = 0.0
    """Pictures with boxes are resized by a random factor in [1 - this, 1 + this]."""
    color_jitter: float = 0.0
    """Strength of random hue, saturation and brightness; 1 is as in Darknet's YOLOv3."""
    multi_scale: float = 0.0
    """The input's size changes every 10 batches, by up to this share, in steps of 32 pixels."""
    box_loss: str | None = None
    """Of YOLOv3: 'squared' as in its paper, 'giou' or 'ciou'; None leaves it to the network."""


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
    """None of a backbone's weights."""
    licence: str
    converted: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] | None = None
    """Turns the file's tensors into the body's or, of another network's, into some of them; None
    where they are the body's."""


@dataclass(frozen=True, kw_only=True)
class HubWeights:
    """A repository of the Hugging Face Hub, or the name under which a user knows one."""

    repository: str
    licence: str


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What of a network follows from its task, its data and the weights that it starts from."""

    task: str
    classes: int = 0
    vocabulary_size: int = 0
    """Rows that the tokenizer can name; networks pad them inside."""
    length: int = 0
    """Tokens of the longest input."""
    padding_id: int = 0
    end_id: int | None = None
    """The token that ends a text, where the tokenizer has one."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """What the `config.json` of published weights says, where sizes are not the entry's own."""
    dropout: float | None = None
    checkpoint_activations: bool = False
    """Whether activations are computed again in the backward pass rather than kept."""
    anchors: tuple[tuple[float, float], ...] = ()
    """Widths and heights in pixels of the input; the network's own if empty."""
    box_loss: str | None = None
    """As in `Recipe`."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One network in the table."""

    name: str
    tasks: tuple[Task, ...]
    """The first is the one that is meant without `--task`."""
    build: Callable[[Shape], Network]
    build_tiny: Callable[[Shape], Network]
    """The same code at a size that trains on a CPU in a second."""
    example_inputs: Callable[[int], tuple[Tensor, ...]]
    """Takes the number of samples."""
    preprocessing: "Preprocessing | BoxPreprocessing | TextLimits"
    recipes: Mapping[str, Recipe]
    """Keys 'published', 'small-data' and 'fine-tune': see `train.settings.choose_recipe`."""
    targets: tuple[Target, ...]
    published_shape: Shape
    """What the two numbers below are of."""
    parameter_count: int
    forward_multiply_adds: int
    """Of one sample at the size of `example_inputs`: of convolutions and products of matrices.

    Attention counts too, in causal networks as if each token saw all; so do padded rows.
    """
    weights: Mapping[str, Published | HubWeights]
    explain_layer: str
    """Name of the module whose output explanations weigh."""
    paper: str
    tiny_image_size: int = 32
    smallest_image_size: int = 32
    read_file: Callable[[Path], Mapping[str, Tensor]] | None = None
    """Returns the body's state dict from a file that is neither safetensors nor torch's.

    Raises `OctavoltError`.
    """


class Samples(ABC):
    """The samples of one split as they lie on disk or in memory, with a label each."""

    labels: NDArray[np.int64]
    """Indices into the classes; zeros where the task has no classes."""

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    @abstractmethod
    def read(self, index: int) -> Any:
        """Return what the modality's examples are made of. Raises `OSError` if it can't be read."""

    @abstractmethod
    def name(self, index: int) -> str:
        """Return the file relative to the data set, or 'file:row'."""

    @abstractmethod
    def select(self, indices: NDArray[np.int64]) -> "Samples":
        """Return only those samples, in that order."""

    def relabelled(self, index: NDArray[np.int64]) -> "Samples":
        """Return the samples with the labels that `index` has in place of theirs."""
        copied = self.select(np.arange(len(self)))
        copied.labels = index[self.labels]
        return copied


class Pictures(Samples):
    """The pictures of one split as they lie on disk or in memory, with a label each."""

    @abstractmethod
    def read(self, index: int) -> bytes | memoryview | NDArray[np.uint8] | NDArray[np.uint16]:
        """Return the bytes of an encoded picture, or pixels: (height, width) or with channels.

        Raises `OSError` if the file can't be read.
        """

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
    splits: Mapping[str, Any]
    """`Samples` of the task's modality; keys among 'train', 'val' and 'test'."""
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    """What was decided by looking, one sentence each: shown to the user."""
    mirrorable: bool = True
    """Whether a mirrored picture keeps its class: not so for digits and letters."""
    task: str | None = None
    """The task that the data decide on, where they do: one label a text, or several."""
    root: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Checked(ABC):
    """All that was found wrong with a data set, by looking at each of its samples."""

    faults: tuple[Fault, ...]
    """Sorted: what stops training first, then by kind, file and line."""

    @abstractmethod
    def usable(self, data: DataSet, /) -> DataSet:
        """Return the data set without its damaged samples; their faults go with them.

        Where that empties a class or a split, the data set has a fault that stops training.
        """

    @abstractmethod
    def fingerprint(self, data: DataSet, /) -> bytes:
        """Return a file that tells these data from any others: a run keeps it as data.tsv.gz."""

    @abstractmethod
    def check_unchanged(self, file: Path, data: DataSet, /) -> None:
        """Raise unless the data still are those of the fingerprint in the file."""

    @abstractmethod
    def digest(self, split: str, /) -> str:
        """Return what changes if a sample of the split does."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the faults and the figures, ready for JSON."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """What a split's examples are made with."""

    recipe: Recipe | None = None
    """In training; None makes the examples of evaluation, of which nothing is random."""
    split: str = "all"
    digest: str = ""
    """What changes if a sample of the split does; empty keeps nothing for later."""
    cache: Path | None = None
    """Where pictures are re-encoded to, if they are."""
    threads: int = 1
    pin: bool = False
    """Whether batches lie in pinned memory, from which a GPU copies while others work."""
    local_rank: int = 0
    stride: int | None = None
    """Tokens from one window of evaluation to the next; None leaves it to the preparation."""
    say: Say = lambda _: None
    progress: Progress = lambda _done, _total: None


@dataclass(frozen=True, kw_only=True)
class Input:
    """One thing to predict."""

    name: str
    """A file, or file and row."""
    content: Any = None
    """What was read of it already; None for what is read when it is its turn."""


class Preparation(ABC):
    """How samples become a network's input: decided once, saved with the run, used by all verbs."""

    classes: tuple[str, ...]
    reading: Reading
    """What was decided: saved in the run's settings."""

    def output_names(self) -> Sequence[str]:
        """Return what the network's outputs stand for: classes, unless they are tokens."""
        return self.classes

    @abstractmethod
    def shape(self, *, task: str) -> Shape:
        """Return what a network must be built like to take these inputs."""

    @abstractmethod
    def save(self, run: Path) -> None:
        """Write what `Modality.read` needs into a run folder."""

    @abstractmethod
    def examples(self, samples: Any, making: Making) -> Examples:
        """Return the samples of one split, ready for the network."""

    @abstractmethod
    def inputs(self, named: Sequence[str]) -> Iterator[Input]:
        """Yield what paths, folders, patterns and '-', for standard input, mean, in order.

        A name that means nothing is yielded itself, so that it gets a line of error like a bad one.
        """

    @abstractmethod
    def ready(self, one: Input) -> Any:
        """Return an input as `collate` takes it: on any thread.

        Raises `OSError`, `ValueError` or `MemoryError`, whose message tells what is wrong with it.
        """

    @abstractmethod
    def collate(self, ready: Sequence[Any]) -> Batch:
        """Return the batch of several inputs."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a preparation is made for."""

    entry: Entry
    task: Task
    data: DataSet
    checked: Checked
    reading: Reading
    weights_folder: Path | None
    """Where the weights to start from lie, if in a folder: their tokenizer lies beside them."""
    say: Say = lambda _: None
    progress: Progress = lambda _done, _total: None


class Modality(ABC):
    """What samples are, such as pictures: how they are found, checked and made ready."""

    sample: str
    """What people call one, in the singular."""
    metavar: str
    """What `predict` takes, as its messages call it."""
    smaller: str
    """The flag that makes a sample smaller, where memory is short."""

    @abstractmethod
    def open(self, source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
        """Return the data set that the user named."""

    @abstractmethod
    def check(self, data: DataSet, *, threads: int, progress: Progress) -> Checked:
        """Return all that is wrong with a data set."""

    @abstractmethod
    def prepare(self, wanted: Wanted) -> Preparation:
        """Decide how samples become the network's input."""

    @abstractmethod
    def published(
        self, entry: Entry, task: Task, classes: tuple[str, ...], folder: Path | None
    ) -> Preparation:
        """Return the preparation of weights that come with no run, from their folder if any."""

    @abstractmethod
    def read(self, run: Path) -> Preparation:
        """Return the preparation that a run folder holds."""
