"""What a learner has written into a notebook: predictions, quiz answers, answers of a lab."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from helpers.errors import WorkbookError
from helpers.places import FOLDER

_VERDICT = re.compile(r"^Question (q\d+): ", re.M)
# JupyterLab names a new cell by a random UUID, whole or its first part; the build never does.
_ADDED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?")


@dataclass
class Attempt:
    """One notebook as its learner left it.

    ``predictions`` and ``questions`` say for each name whether there is something in place of
    ``None``. ``answers`` does so for the questions of a lab (``"q1"``, ...), and ``verdicts`` holds
    what their check printed when it last ran. ``added``: the ids of cells of the learner's own.
    ``changed``: the ids of checks that are not as they were given out.
    """

    predictions: dict[str, bool] = field(default_factory=dict)
    questions: dict[str, bool] = field(default_factory=dict)
    answers: dict[str, bool] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    @property
    def edited(self) -> bool:
        """Whether there is anything in it that a learner wrote."""
        given = (*self.predictions.values(), *self.questions.values(), *self.answers.values())
        return any(given) or bool(self.added or self.changed)

    @property
    def passed(self) -> list[str]:
        """The questions of the lab whose public checks passed when they last ran."""
        return [name for name, text in self.verdicts.items() if passes(text)]


def passes(verdict: str) -> bool:
    """Whether a check's text says that all of its public cases are right."""
    return bool(re.search(r"^Question q\d+: public checks passed \(", verdict, re.M))


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook in ``path``. Raises :class:`WorkbookError` when it is missing or none."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), 4)
        for cell in notebook.cells:
            _ = cell.id, cell.source, cell.cell_type, cell.metadata
    except OSError as error:
        raise WorkbookError(f"{named(path)} cannot be read: {error.strerror}.") from error
    except Exception as error:  # nbformat lets through whatever the text's parts raise
        raise WorkbookError(
            f"{named(path)} is not a notebook any more ({type(error).__name__}): put it aside, and "
            "take the file that was given out."
        ) from error
    return notebook


def named(path: Path) -> str:
    """``path`` as it is written from the workbook's folder, if it is in it."""
    return path.relative_to(FOLDER).as_posix() if path.is_relative_to(FOLDER) else str(path)


def examine(notebook: nbformat.NotebookNode) -> Attempt:
    """Find in a lesson or a lab what its learner wrote; nothing is run."""
    attempt = Attempt()
    for cell in notebook.cells:
        if is_added(cell.id):
            attempt.added.append(cell.id)
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("locked"):
            question = cell.id.removesuffix("-check")
            text = printed(cell)
            if _VERDICT.search(text):
                attempt.verdicts[question] = text
            if not _as_given(cell):
                attempt.changed.append(cell.id)
        elif grading.get("solution"):
            attempt.answers[cell.id] = not _as_given(cell)
        elif cell.cell_type == "code":
            for call, names in _calls(cell.source):
                kept = attempt.predictions if call == "predict" else attempt.questions
                kept.update(
                    {f"{cell.id}/{k}" if call == "predict" else k: v for k, v in names.items()}
                )
    return attempt


def is_added(cell: str) -> bool:
    """Whether the cell with this id is the learner's own, and not one that was given out."""
    return bool(_ADDED.fullmatch(cell))


def printed(cell: nbformat.NotebookNode) -> str:
    """The text that a code cell printed."""
    texts = (output.get("text", "") for output in cell.get("outputs", []))
    return "".join(text if isinstance(text, str) else "".join(text) for text in texts)


def _as_given(cell: nbformat.NotebookNode) -> bool:
    """Whether the cell's text is the one that was given out, by the checksum that came with it."""
    from nbgrader.utils import compute_checksum  # four seconds, and only labs need it

    checksum = cell.metadata.nbgrader.get("checksum")
    return checksum is None or bool(compute_checksum(cell) == checksum)


def _calls(source: str) -> Iterator[tuple[str, dict[str, bool]]]:
    """Each ``quiz.predict`` and ``quiz.ask``: its names, and whether a value was given."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic, or a line that the learner has not finished
        return
    named = {
        statement.targets[0].id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="quiz"), attr="predict")):
                yield "predict", dict(_given(node, named))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="quiz"), attr="ask"),
                args=[ast.Constant(value=name), *rest],
            ):
                answers = [*rest, *(keyword.value for keyword in node.keywords)]
                if "-" in str(name):  # "03-1" is a question, "03" a lesson's form
                    yield "ask", {str(name): any(not _is_none(answer) for answer in answers)}


def _given(node: ast.expr | None, named: dict[str, ast.expr]) -> Iterator[tuple[str, bool]]:
    """The keywords of a call, and of the dictionaries that are unpacked in it."""
    match node:
        case ast.Call(keywords=keywords):
            for keyword in keywords:
                if keyword.arg is None:
                    yield from _given(keyword.value, named)
                else:
                    yield keyword.arg, not _is_none(keyword.value)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), not _is_none(value)
        case ast.Name(id=name) if name in named:
            yield from _given(named[name], {})


def _is_none(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
