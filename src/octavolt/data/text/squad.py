"""Questions about passages: the JSON of SQuAD 1.1 and 2.0, or flat rows as the Hub has them."""

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from octavolt.contract import DataSet, Fault
from octavolt.data.splits import TRAIN
from octavolt.data.text.encodings import Part, decoded, encoding_note, text_file
from octavolt.data.text.samples import (
    Packing,
    Places,
    Questions,
    QuestionStore,
    hashed,
    ragged,
    whole,
)
from octavolt.data.text.split_files import SplitFiles, nothing_usable, split_files
from octavolt.data.text.table_files import Table, json_objects, not_object, table
from octavolt.data.text.tables import split_by_name, text_problem
from octavolt.errors import OctavoltError

SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")
FLAT = ("question", "context", "answers")
"""What a flat row has, besides an id."""
PEEKED_CHARACTERS = 1_000_000
MOST_SHOWN = 60
"""Characters of an answer in a message."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question as the file has it, not yet checked."""

    line: int
    identity: Any
    question: Any
    context: Any
    answers: Any
    """A list of objects, or an object of two lists; None if there is nothing."""
    impossible: bool | None = None
    """Whether the file says that there is no answer; None if it says nothing."""


@dataclass(kw_only=True)
class Gathered:
    """Good questions as they are read, and a fault for each other."""

    identities: Packing = field(default_factory=Packing)
    questions: Packing = field(default_factory=Packing)
    contexts: Packing = field(default_factory=Packing)
    answer_texts: Packing = field(default_factory=Packing)
    starts: list[tuple[int, ...]] = field(default_factory=list)
    context_of: list[int] = field(default_factory=list)
    known_contexts: dict[str, int] = field(default_factory=dict)
    known_identities: dict[tuple[int, str], str] = field(default_factory=dict)
    """Split and identity, to where it stands."""
    files: list[str] = field(default_factory=list)
    file_of: "array[int]" = field(default_factory=lambda: array("q"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    split_of: "array[int]" = field(default_factory=lambda: array("q"))
    faults: list[Fault] = field(default_factory=list)

    def read(self, file: str, split: int, asked: Iterable[Asked | Fault]) -> None:
        """Add the questions of a file."""
        self.files.append(file)
        for one in asked:
            if isinstance(one, Fault):
                self.faults.append(one)
            else:
                self.add(split, one)

    def add(self, split: int, one: Asked) -> None:
        """Add a question, or the fault that is wrong with it."""
        file = self.files[-1]
        identity = str(one.identity) if one.identity is not None else f"{file}:{one.line}"
        problem = question_problem(one) or self.twice(split, identity)
        if problem is not None:
            self.fault("wrong-question", one.line, f"question '{identity}': {problem}")
            return
        answers = () if one.impossible else answers_in(one.answers)
        wrong = answers if isinstance(answers, str) else answer_problem(one.context, answers)
        if isinstance(answers, str) or wrong is not None:
            self.fault("wrong-answer", one.line, f"question '{identity}': {wrong}")
            return
        self.known_identities[split, identity] = f"{file}:{one.line}"
        self.identities.add(identity)
        self.questions.add(one.question)
        if one.context not in self.known_contexts:
            self.known_contexts[one.context] = len(self.contexts)
            self.contexts.add(one.context)
        self.context_of.append(self.known_contexts[one.context])
        for text, _ in answers:
            self.answer_texts.add(text)
        self.starts.append(tuple(start for _, start in answers))
        self.file_of.append(len(self.files) - 1)
        self.lines.append(one.line)
        self.split_of.append(split)

    def twice(self, split: int, identity: str) -> str | None:
        """Return that a question of the same name was there before, or None."""
        before = self.known_identities.get((split, identity))
        return f"its id stands already at {before}" if before else None

    def fault(self, kind: str, line: int, problem: str) -> None:
        """Add a fault of the file that is read."""
        self.faults.append(
            Fault(kind=kind, file=self.files[-1], line=line, problem=problem, damaged=True)
        )

    def splits(self, seed: int) -> tuple[dict[str, Questions], list[str]]:
        """Return the splits; where there is no val, it is a tenth of the contexts."""
        if not any(split == TRAIN for split in self.split_of):
            raise OctavoltError(
                nothing_usable(
                    self.files,
                    self.faults,
                    sample="question",
                    advice="Give a file of SQuAD with questions.",
                )
            )
        store = QuestionStore(
            identities=self.identities.packed(),
            questions=self.questions.packed(),
            contexts=self.contexts.packed(),
            context_of=np.array(self.context_of, np.int64),
            answer_texts=self.answer_texts.packed(),
            answer_starts=ragged(self.starts),
            places=Places(
                files=tuple(self.files), file_of=whole(self.file_of), lines=whole(self.lines)
            ),
        )
        # Questions about the same passage stay together, whatever the order of the file.
        names = [f"{hashed([store.contexts.raw(context)]):016x}" for context in self.context_of]
        rows_of, notes = split_by_name(
            names, whole(self.split_of), seed, "question", with_test=False
        )
        return {split: Questions(store, rows) for split, rows in rows_of.items()}, notes


def question_problem(one: Asked) -> str | None:
    """Return what is wrong with a question or its context, or None."""
    for cell, what in ((one.question, "question"), (one.context, "context")):
        problem = text_problem(cell)
        if problem is not None:
            return problem.replace("text", what, 1)
    if one.answers is None and not one.impossible:
        return "it has no 'answers'; an empty list says that it can't be answered"
    if one.impossible is False and not answers_in(one.answers):
        return "'is_impossible' is false, but there is no answer"
    return None


def answers_in(given: Any) -> tuple[tuple[str, int], ...] | str:
    """Return texts and starts, or what is wrong with how they are written."""
    if isinstance(given, Mapping):
        texts, starts = given.get("text"), given.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            return "its answers have no lists 'text' and 'answer_start' of one length"
        pairs = list(zip(texts, starts, strict=True))
    elif isinstance(given, list) and all(isinstance(one, Mapping) for one in given):
        pairs = [(one.get("text"), one.get("answer_start")) for one in given]
    else:
        return "its answers are no list of objects with 'text' and 'answer_start'"
    for text, start in pairs:
        if text_problem(text) is not None or isinstance(start, bool) or not isinstance(start, int):
            return f"an answer is {text!r} at {start!r}; it must be a text and a number"
    return tuple(pairs)


def answer_problem(context: str, answers: Sequence[tuple[str, int]]) -> str | None:
    """Return what is wrong with where the answers stand, or None."""
    for text, start in answers:
        there = context[start : start + len(text)] if start >= 0 else ""
        if there == text:
            continue
        places = starts_of(context, text)
        nearest = min(places, key=lambda place: abs(place - start)) if places else None
        elsewhere = (
            f"it starts at {nearest}"
            if nearest is not None
            else "it does not occur in the context at all"
        )
        found = f"'{there[:MOST_SHOWN]}' stands" if there else "the context has ended"
        return (
            f"the answer '{text[:MOST_SHOWN]}' does not start at character {start} of its context, "
            f"where {found}; {elsewhere}"
        )
    return None


def starts_of(context: str, text: str) -> list[int]:
    """Return all places at which a text starts in a context."""
    places, place = [], context.find(text)
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return places


def asked_in_json(root: Path, part: Part) -> Iterator[Asked | Fault]:
    """Yield the questions of a file of SQuAD, or of flat objects, one a line."""
    if is_nested(peek(root, part)):
        yield from nested(part.file, "".join(decoded(root, part)))
        return
    for line, one in json_objects(root, part):
        if isinstance(one, Mapping):
            yield flat(line, one)
        else:
            yield Fault(
                kind="wrong-question",
                file=part.file,
                line=line,
                problem=not_object(one),
                damaged=True,
            )


def asked_in_table(one: Table) -> Iterator[Asked | Fault]:
    """Yield the questions of a table with columns for question, context and answers."""
    for record in one.records():
        yield flat(record.line, dict(zip(one.names or (), record.cells, strict=True)))


def flat(line: int, one: Mapping[str, Any]) -> Asked:
    """Return the question of a flat object."""
    return Asked(
        line=line,
        identity=one.get("id"),
        question=one.get("question"),
        context=one.get("context"),
        answers=one.get("answers"),
        impossible=one.get("is_impossible"),
    )


def nested(file: str, text: str) -> Iterator[Asked]:
    """Yield the questions of a file of SQuAD. Raises `OctavoltError` if it is built otherwise."""
    try:
        articles = json.loads(text)["data"]
        paragraphs = [one for article in articles for one in article["paragraphs"]]
        asked = [(one["context"], question) for one in paragraphs for question in one["qas"]]
        ids = [question.get("id") for _, question in asked]
    except json.JSONDecodeError as error:
        raise OctavoltError(
            f"'{file}' is no JSON: line {error.lineno}, column {error.colno}: {error.msg}. Get or "
            "write it once more."
        ) from error
    except RecursionError as error:
        raise OctavoltError(
            f"'{file}' is no data: too many brackets are open at once. Get or write it once more."
        ) from error
    except (AttributeError, KeyError, TypeError) as error:
        lacking = isinstance(error, KeyError)
        what = f"it lacks {error} somewhere" if lacking else "its lists and objects are others"
        raise OctavoltError(
            f"'{file}' is not built like SQuAD: {what}. SQuAD is "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}.'
        ) from error
    place, line = 0, 1
    for identity, (context, question) in zip(ids, asked, strict=True):
        found = text.find(json.dumps(identity, ensure_ascii=False), place)
        if found >= 0:
            line += text.count("\n", place, found)
            place = found
        yield Asked(
            line=line,
            identity=identity,
            question=question.get("question"),
            context=context,
            answers=question.get("answers"),
            impossible=question.get("is_impossible"),
        )


def peek(root: Path, part: Part) -> str:
    """Return the beginning of a file."""
    return "".join(islice(decoded(root, part), 1))[:PEEKED_CHARACTERS]


def is_nested(beginning: str) -> bool:
    """Tell whether a file begins like one of SQuAD."""
    return (
        beginning.lstrip()[:1] == "{" and '"paragraphs"' in beginning and '"context"' in beginning
    )


def files_of(path: Path) -> SplitFiles | None:
    """Return the files of questions that a path means: itself, or those of a folder."""
    if path.is_dir():
        return split_files(path, SUFFIXES)
    if path.suffix.lower() in SUFFIXES and path.is_file():
        return SplitFiles(files=((path.name, TRAIN),), notes=())
    return None


def recognises(source: str) -> bool:
    """Tell whether a file begins with questions about passages."""
    path = Path(source).expanduser()
    files = files_of(path)
    if files is None:
        return False
    root = path if path.is_dir() else path.parent
    file = files.files[0][0]
    try:
        if file.lower().endswith(".parquet"):
            return set(FLAT) <= set(table(root, file).names or ())
        part = text_file(root, file)
    except (OctavoltError, OSError):
        return False
    if is_nested(peek(root, part)):
        return True
    first = next((one for _, one in json_objects(root, part)), None)
    return isinstance(first, Mapping) and set(FLAT) <= set(first)


def open_questions(source: str, *, seed: int) -> DataSet:
    """Return the questions. Raises `OctavoltError` if there are none to train on."""
    path = Path(source).expanduser()
    files = files_of(path)
    if files is None:
        raise OctavoltError(
            f"'{source}' holds no questions. Give a .json file of SQuAD, or a folder with "
            "train.json and dev.json."
        )
    root = path if path.is_dir() else path.parent
    gathered, notes = Gathered(), [*files.notes]
    for file, split in files.files:
        if file.lower().endswith(".parquet"):
            gathered.read(file, split, asked_in_table(table(root, file)))
            continue
        part = text_file(root, file)
        notes += encoding_note(part)
        gathered.read(file, split, asked_in_json(root, part))
    splits, decided = gathered.splits(seed)
    return DataSet(
        source=source,
        format="squad",
        classes=(),
        splits=splits,
        faults=tuple(gathered.faults),
        notes=(*notes, *decided),
        task="question-answering",
        root=root,
    )
