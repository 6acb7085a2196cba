"""The tasks, by name."""

from octavolt.contract import Task
from octavolt.errors import UnknownNameError
from octavolt.tasks import (
    average_precision,
    causal_language_modeling,
    image_classification,
    masked_language_modeling,
    question_answering,
    text_classification,
)

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        image_classification.TASK,
        average_precision.TASK,
        text_classification.TASK,
        text_classification.MULTI_LABEL_TASK,
        question_answering.TASK,
        masked_language_modeling.TASK,
        causal_language_modeling.TASK,
        causal_language_modeling.DIALOGUE_TASK,
    )
}


def find(name: str) -> Task:
    """Return the task of that name."""
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    return TASKS[name]
