"""The tasks, by name."""

from octavolt.contract import Task
from octavolt.errors import UnknownNameError
from octavolt.tasks import image_classification

TASKS: dict[str, Task] = {task.name: task for task in (image_classification.TASK,)}


def find(name: str) -> Task:
    """Return the task of that name."""
    if name not in TASKS:
        raise UnknownNameError("task", name, TASKS)
    return TASKS[name]
