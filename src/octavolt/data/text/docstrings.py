"""The docstrings of Python's standard library: real text that is always at hand."""

import ast
import platform
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from octavolt.contract import DataSet
from octavolt.data.splits import TRAIN, Found, divided, natural_key, naturally
from octavolt.data.text.samples import (
    Packed,
    Places,
    RowDocuments,
    Rows,
    RowStore,
    packed_texts,
)
from octavolt.data.text.tables import split_by_name
from octavolt.errors import OctavoltError
from octavolt.units import counted

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
INSIDE = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""What statements may stand in."""
TASKS = ("text-classification", "masked-language-modeling", "causal-language-modeling")
SKIPPED = {
    *("test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "ensurepip"),
    *("turtledemo", "__pycache__", "pydoc_data", "this.py", "antigravity.py"),
}
CLASS_COUNT = 8
SHORTEST_CHARACTERS = 20
"""A docstring that is shorter says too little to be told apart."""


@dataclass(frozen=True, kw_only=True)
class Docstring:
    """What a module, a class or a function says of itself."""

    package: str
    """Of the standard library: the folder or the file that it comes from."""
    file: str
    line: int
    text: str


def open_docstrings(*, task: str, seed: int) -> DataSet:
    """Return the demo of a task. Raises `OctavoltError` for a task that has none."""
    if task not in TASKS:
        raise OctavoltError(
            f"There is no demo for {task}; there is one for {', '.join(TASKS)}. Give the path of "
            "data of your own."
        )
    return demo(Path(sysconfig.get_paths()["stdlib"]), task=task, seed=seed)


def demo(library: Path, *, task: str, seed: int) -> DataSet:
    """Return the docstrings of the Python files below a folder, as the data set of a task."""
    files = sorted(
        (path.relative_to(library).as_posix() for path in sources(library)), key=natural_key
    )
    if task == "text-classification":
        chosen = wordiest(library, files)
        return by_package(list(distinct(docstrings(library, chosen))), seed)
    found = list(distinct(docstrings(library, files)))
    splits, notes = split_by_name(
        [f"{one.file}:{one.line}" for one in found],
        np.full(len(found), TRAIN, np.int64),
        seed,
        "docstring",
        with_test=True,
    )
    texts, places = stored(found)
    return DataSet(
        source="demo",
        format="demo",
        classes=(),
        splits={split: RowDocuments(texts, places, rows) for split, rows in splits.items()},
        notes=(origin(found), *notes),
    )


def by_package(found: list[Docstring], seed: int) -> DataSet:
    """Return the docstrings, labelled with the packages that they are from."""
    classes = naturally({one.package for one in found})
    texts, places = stored(found)
    division = divided(
        Found(
            build=partial(Rows, RowStore(texts=texts, width=1, places=places)),
            names=classes,
            labels=np.array([classes.index(one.package) for one in found], np.int64),
            split_of=np.full(len(found), TRAIN, np.int64),
            sample="text",
        ),
        seed=seed,
    )
    return DataSet(
        source="demo",
        format="demo",
        classes=division.classes,
        splits=division.splits,
        faults=division.faults,
        notes=(
            origin(found),
            f"The class is what a docstring is from: {', '.join(classes)}.",
            *division.notes,
        ),
        task="text-classification",
    )


def origin(found: list[Docstring]) -> str:
    """Return the sentence on where the texts are from."""
    version = platform.python_version()
    return f"{counted(len(found), 'docstring')} of the standard library of Python {version}."


def stored(found: list[Docstring]) -> tuple[Packed, Places]:
    """Return the texts, and where they stand."""
    files = list(dict.fromkeys(one.file for one in found))
    place_of = {file: place for place, file in enumerate(files)}
    places = Places(
        files=tuple(files),
        file_of=np.array([place_of[one.file] for one in found], np.int64),
        lines=np.array([one.line for one in found], np.int64),
    )
    return packed_texts(one.text for one in found), places


def distinct(found: Iterator[Docstring]) -> Iterator[Docstring]:
    """Yield each text but once."""
    seen: set[str] = set()
    for one in found:
        if one.text not in seen:
            seen.add(one.text)
            yield one


def wordiest(library: Path, files: Sequence[str]) -> list[str]:
    """Return the files of the packages with the most docstrings, which need not be parsed for it.

    Triple quotes are counted, as nearly all of them hold docstrings.
    """
    counts: Counter[str] = Counter()
    for file in files:
        counts[package_of(file)] += (library / file).read_bytes().count(b'"""')
    most = sorted(counts, key=lambda package: (-counts[package], package))[:CLASS_COUNT]
    return [file for file in files if package_of(file) in most]


def package_of(file: str) -> str:
    """Return the package or the module of the library that a file belongs to."""
    return file.split("/", maxsplit=1)[0].removesuffix(".py")


def docstrings(library: Path, files: Iterable[str]) -> Iterator[Docstring]:
    """Yield the docstrings of files below a folder; nothing is imported."""
    for file in files:
        tree = parsed(library / file)
        if tree is None:
            continue
        for node in documented(tree):
            text = ast.get_docstring(node)
            if text is not None and len(text) >= SHORTEST_CHARACTERS and is_unicode(text):
                line = node.body[0].lineno
                yield Docstring(package=package_of(file), file=file, line=line, text=text)


def documented(tree: ast.Module) -> Iterator[Documented]:
    """Yield the module, and the classes and functions among its statements and theirs."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Documented):
            yield node
        # Expressions hold no docstrings, and are most of a tree.
        inside = [one for one in ast.iter_child_nodes(node) if isinstance(one, INSIDE)]
        waiting.extend(reversed(inside))


def sources(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder that are the library itself."""
    for path in folder.iterdir():
        if path.name in SKIPPED or path.name.startswith((".", "_", "config-", "test_")):
            continue
        if path.is_dir():
            yield from sources(path)
        elif path.suffix == ".py":
            yield path


def parsed(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file; None if it is none of this Python."""
    try:
        with warnings.catch_warnings():
            # Old sources hold escapes that newer Pythons warn of.
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return None


def is_unicode(text: str) -> bool:
    """Tell whether a text can be written as UTF-8: one that explains surrogates may hold one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
