"""Conversations of a user and an assistant, one a line of JSON."""

from array import array
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from octavolt.contract import DataSet, Fault
from octavolt.data.splits import TRAIN
from octavolt.data.text.encodings import encoding_note, text_file
from octavolt.data.text.samples import (
    ROLES,
    Conversations,
    ConversationStore,
    Packing,
    Places,
    ragged,
    whole,
)
from octavolt.data.text.split_files import SplitFiles, nothing_usable, split_files
from octavolt.data.text.table_files import SNIFFED_ROWS, json_objects, not_object
from octavolt.data.text.tables import split_by_name, text_problem
from octavolt.errors import OctavoltError

SUFFIXES = (".jsonl", ".ndjson", ".json")
KEYS = {"messages": ("role", "content"), "conversations": ("from", "value")}
"""Where the messages are, and what of each says who speaks and what; both keys take both."""
SPEAKERS = {
    "system": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
}


class Heard:
    """Good conversations as they are read, and a fault for each other."""

    def __init__(self) -> None:
        self.contents = Packing()
        self.roles: list[list[int]] = []
        self.files: list[str] = []
        self.file_of = array("q")
        self.lines = array("q")
        self.split_of = array("q")
        self.faults: list[Fault] = []

    def add(self, line: int, split: int, one: Any) -> None:
        """Add a conversation, or the fault of what is none."""
        found = turns_of(one)
        if isinstance(found, str):
            self.faults.append(
                Fault(
                    kind="wrong-conversation",
                    file=self.files[-1],
                    line=line,
                    problem=found,
                    damaged=True,
                )
            )
            return
        for _, content in found:
            self.contents.add(content)
        self.roles.append([ROLES.index(role) for role, _ in found])
        self.file_of.append(len(self.files) - 1)
        self.lines.append(line)
        self.split_of.append(split)

    def splits(self, seed: int) -> tuple[dict[str, Conversations], list[str]]:
        """Return the splits; a tenth is held out where none is given."""
        if not any(split == TRAIN for split in self.split_of):
            raise OctavoltError(
                nothing_usable(
                    self.files,
                    self.faults,
                    sample="conversation",
                    advice="Give each a line of JSON.",
                )
            )
        places = Places(
            files=tuple(self.files), file_of=whole(self.file_of), lines=whole(self.lines)
        )
        store = ConversationStore(
            contents=self.contents.packed(), roles=ragged(self.roles), places=places
        )
        names = [places.name(row) for row in range(len(self.lines))]
        rows_of, notes = split_by_name(
            names, whole(self.split_of), seed, "conversation", with_test=False
        )
        return {split: Conversations(store, rows) for split, rows in rows_of.items()}, notes


def files_of(path: Path) -> SplitFiles | None:
    """Return the files of conversations that a path means: itself, or those of a folder."""
    if path.is_dir():
        return split_files(path, SUFFIXES)
    if path.suffix.lower() in SUFFIXES and path.is_file():
        return SplitFiles(files=((path.name, TRAIN),), notes=())
    return None


def recognises(source: str) -> bool:
    """Tell whether the first lines hold an object with messages."""
    path = Path(source).expanduser()
    files = files_of(path)
    if files is None:
        return False
    root = path if path.is_dir() else path.parent
    try:
        part = text_file(root, files.files[0][0])
    except (OctavoltError, OSError):
        return False
    return any(key_of(one) for _, one in islice(json_objects(root, part), SNIFFED_ROWS))


def key_of(one: Any) -> str | None:
    """Return under which key an object holds a list of messages, or None."""
    if not isinstance(one, Mapping):
        return None
    return next((key for key in KEYS if isinstance(one.get(key), list)), None)


def open_conversations(source: str, *, seed: int) -> DataSet:
    """Return the conversations. Raises `OctavoltError` if there are none to train on."""
    path = Path(source).expanduser()
    files = files_of(path)
    if files is None:
        raise OctavoltError(
            f"'{source}' holds no conversations. Give a .jsonl file of lines such as "
            '{"messages": [{"role": "user", "content": "..."}, '
            '{"role": "assistant", "content": "..."}]}.'
        )
    root = path if path.is_dir() else path.parent
    heard, notes = Heard(), [*files.notes]
    for file, split in files.files:
        part = text_file(root, file)
        notes += encoding_note(part)
        heard.files.append(file)
        for line, one in json_objects(root, part):
            heard.add(line, split, one)
    splits, decided = heard.splits(seed)
    return DataSet(
        source=source,
        format="conversations",
        classes=(),
        splits=splits,
        faults=tuple(heard.faults),
        notes=(*notes, *decided),
        task="dialogue",
        root=root,
    )


def turns_of(one: Any) -> list[tuple[str, str]] | str:
    """Return role and content of each message, or what is wrong with the conversation."""
    if not isinstance(one, Mapping):
        return not_object(one)
    key = key_of(one)
    if key is None:
        return f"the object has no list 'messages', only {', '.join(map(str, one)) or 'nothing'}"
    turns: list[tuple[str, str]] = []
    for place, message in enumerate(one[key], start=1):
        turn = turn_of(message)
        if isinstance(turn, str):
            return f"message {place}: {turn}"
        turns.append(turn)
    return wrong_order([role for role, _ in turns]) or turns


def turn_of(message: Any) -> tuple[str, str] | str:
    """Return role and content of a message, or what is wrong with it."""
    if not isinstance(message, Mapping):
        return "this is no object with a role and a content"
    speaker, said = (
        next((message[key] for key in keys if key in message), None)
        for keys in zip(*KEYS.values(), strict=True)
    )
    role = SPEAKERS.get(speaker) if isinstance(speaker, str) else None
    if role is None:
        return f"the role is {speaker!r}; it must be system, user or assistant"
    problem = text_problem(said)
    if problem is not None:
        return problem.replace("the text", "the content", 1)
    return role, str(said)


def wrong_order(roles: Sequence[str]) -> str | None:
    """Return what is wrong with the order of the roles, or None."""
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    skipped = len(roles) - len(spoken)
    if not spoken:
        return "there is no message of a user and an assistant"
    if spoken[0] != "user":
        return f"the first message is of {spoken[0]}; it must be of user, after system if any"
    for place, (role, wanted) in enumerate(
        zip(spoken, ("user", "assistant") * len(spoken), strict=False), start=1 + skipped
    ):
        if role != wanted:
            return f"message {place} is of {role}, where {wanted} has its turn"
    if spoken[-1] != "assistant":
        return "the last message is of user; the assistant must answer it"
    return None
