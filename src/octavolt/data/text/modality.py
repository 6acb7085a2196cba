"""Text as a modality: how it is found, checked and made ready."""

from pathlib import Path

from octavolt.contract import (
    Checked,
    DataSet,
    Entry,
    Modality,
    Progress,
    Reading,
    Task,
    Wanted,
)
from octavolt.data.text.checked import check_text
from octavolt.data.text.opened import open_text
from octavolt.data.text.preparation import (
    TextPreparation,
    prepared,
    published_preparation,
    read_preparation,
)


class TextModality(Modality):
    """Texts, pairs of them, questions with contexts, conversations, and plain text."""

    sample = "text"
    metavar = "files of texts, --text TEXT, or - for lines of standard input"
    smaller = "--length"

    def open(self, source: str, *, task: str, seed: int, reading: Reading) -> DataSet:
        """Return the data set that the user named."""
        return open_text(source, task=task, seed=seed, reading=reading)

    def check(self, data: DataSet, *, threads: int, progress: Progress) -> Checked:
        """Return what was found while the texts were read."""
        del threads
        return check_text(data, progress=progress)

    def prepare(self, wanted: Wanted) -> TextPreparation:
        """Choose tokenizer and length."""
        return prepared(wanted)

    def published(
        self, entry: Entry, task: Task, classes: tuple[str, ...], folder: Path | None
    ) -> TextPreparation:
        """Return the preparation of weights that come with no run."""
        return published_preparation(entry, classes, folder, task=task.name)

    def read(self, run: Path) -> TextPreparation:
        """Return the preparation that a run folder holds."""
        return read_preparation(run)


TEXT = TextModality()
