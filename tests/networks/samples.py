"""A batch for each task, such as any network of the table takes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from octavolt.contract import Batch, Entry, Preprocessing, Shape, Task
from octavolt.networks import ENTRIES
from octavolt.tasks.causal_language_modeling import CausalBatch
from octavolt.tasks.image_classification import PictureBatch
from octavolt.tasks.masked_language_modeling import MaskedBatch
from octavolt.tasks.object_detection import BoxBatch, Frame, Scene, Truth
from octavolt.tasks.question_answering import QuestionBatch
from octavolt.tasks.text import NOT_ASKED
from octavolt.tasks.text_classification import LabelledTextBatch

CLASSES = 4
ROWS = 27
"""Of the vocabulary: no multiple of 8."""
LENGTH = 12
each_task = pytest.mark.parametrize(
    ("entry", "task"),
    [
        pytest.param(ENTRIES[name], task, id=task.name)
        for name in ("bert-base", "gpt2")
        for task in ENTRIES[name].tasks
    ],
)
"""Every task of a language network."""


def shape(task: Task, **changes: object) -> Shape:
    """Return what the tiny networks are built like."""
    fields: dict[str, object] = {
        "task": task.name,
        "classes": CLASSES,
        "vocabulary_size": ROWS,
        "length": LENGTH,
    }
    return Shape(**fields | changes)  # type: ignore[arg-type]


def pictures(entry: Entry, count: int) -> PictureBatch:
    size = entry.tiny_image_size
    random = torch.Generator().manual_seed(0)
    assert isinstance(entry.preprocessing, Preprocessing)
    return PictureBatch(
        pixels=torch.randint(0, 256, (count, size, size, 3), dtype=torch.uint8, generator=random),
        labels=torch.arange(count) % CLASSES,
        class_count=CLASSES,
        preprocessing=entry.preprocessing,
    )


def boxed_pictures(entry: Entry, count: int) -> BoxBatch:
    """Return pictures with one to three bright boxes each, of a class by their color."""
    side = entry.tiny_image_size
    random = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 80, (count, side, side, 3), dtype=torch.uint8, generator=random)
    frame = Frame(scale_x=1.0, scale_y=1.0, left=0.0, top=0.0, height=side, width=side)
    scenes = []
    for picture in range(count):
        boxes, labels = [], []
        for place in range(1 + picture % 3):
            left, top = 4.0 + 20 * place, 6.0 + 10 * (picture % 4)
            boxes.append([left, top, left + 16, top + 18])
            labels.append((picture + place) % CLASSES)
            part = pixels[picture, int(top) : int(top) + 18, int(left) : int(left) + 16]
            part[:, :, labels[-1] % 3] = 120 + 30 * labels[-1]
        corners = torch.tensor(boxes)
        truth = Truth(
            boxes=corners.double(),
            labels=torch.tensor(labels),
            crowd=torch.zeros(len(labels), dtype=torch.bool),
            difficult=torch.zeros(len(labels), dtype=torch.bool),
            areas=torch.full((len(labels),), 16.0 * 18, dtype=torch.float64),
        )
        scenes.append(
            Scene(
                frame=frame,
                filled=(side, side),
                boxes=corners,
                labels=truth.labels,
                truth=truth,
                index=picture,
            )
        )
    return BoxBatch(pixels=pixels, scenes=tuple(scenes))


def texts(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return tokens, where they are real, and their kinds; all but the first text are padded."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(4, ROWS, (count, LENGTH), generator=random)
    lengths = LENGTH - torch.arange(count) % 4
    mask = torch.arange(LENGTH) < lengths[:, None]
    kinds = (torch.arange(LENGTH) >= LENGTH // 2) & mask
    return ids * mask, mask, kinds.long()


def one_label(_entry: Entry, count: int) -> LabelledTextBatch:
    ids, mask, kinds = texts(count)
    labels = torch.arange(count) % CLASSES
    targets = torch.nn.functional.one_hot(labels, CLASSES).float()
    return LabelledTextBatch(ids=ids, mask=mask, kinds=kinds, labels=labels, targets=targets)


def several_labels(_entry: Entry, count: int) -> LabelledTextBatch:
    ids, mask, kinds = texts(count)
    targets = ((torch.arange(count)[:, None] + 1 >> torch.arange(CLASSES)) % 2).float()
    labels = torch.zeros(count, dtype=torch.int64)
    return LabelledTextBatch(ids=ids, mask=mask, kinds=kinds, labels=labels, targets=targets)


def questions(_entry: Entry, count: int) -> QuestionBatch:
    ids, mask, kinds = texts(count)
    starts = torch.arange(count) % 5
    return QuestionBatch(
        ids=ids, mask=mask, kinds=kinds, owners=torch.arange(count), starts=starts, ends=starts + 1
    )


def hidden(_entry: Entry, count: int) -> MaskedBatch:
    ids, mask, kinds = texts(count)
    asked = mask & (torch.arange(LENGTH) % 5 == 2)
    return MaskedBatch(
        ids=ids.masked_fill(asked, 3),
        mask=mask,
        kinds=kinds,
        targets=ids.masked_fill(~asked, NOT_ASKED),
    )


def following(_entry: Entry, count: int) -> CausalBatch:
    ids, mask, _ = texts(count)
    asked = mask.roll(-1, 1)
    asked[:, -1] = False
    return CausalBatch(
        ids=ids, targets=ids.roll(-1, 1).masked_fill(~asked, NOT_ASKED), bytes=int(asked.sum())
    )


BATCHES: dict[str, Callable[[Entry, int], Batch]] = {
    "image-classification": pictures,
    "object-detection": boxed_pictures,
    "text-classification": one_label,
    "multi-label-text-classification": several_labels,
    "question-answering": questions,
    "masked-language-modeling": hidden,
    "causal-language-modeling": following,
    "dialogue": following,
}
"""By task: takes the entry and the number of samples."""
