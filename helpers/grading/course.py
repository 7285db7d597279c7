"""A lab as the grader sees it: its cells without answers, its questions, its hidden checks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from helpers.errors import WorkbookError
from helpers.grading.hidden import Bank, Hidden, read_bank

_HELPERS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Question:
    """One question of a lab: its points, its answer cell without and with the answer."""

    name: str
    points: float
    blank: str
    right: str
    by_hand: bool  # an answer in words, marked by the instructor


@dataclass(frozen=True)
class Lab:
    """A lab of the course at ``root`` (a checkout with its ``labs/`` and ``solutions/``)."""

    root: Path
    name: str

    @property
    def checks(self) -> Path:
        """The file with the lab's hidden checks and known wrong answers."""
        return self.root / "solutions" / self.name / "checks.py"

    @cached_property
    def bank(self) -> Bank:
        """What that file holds."""
        return read_bank(self.checks)

    @cached_property
    def cells(self) -> list[tuple[str, str]]:
        """(id, source) of the code cells of the lab that learners get."""
        cells = _notebook(self._blank)["cells"]
        return [(cell["id"], _text(cell)) for cell in cells if cell["cell_type"] == "code"]

    @cached_property
    def questions(self) -> list[Question]:
        """The questions in order, with the points that the master states."""
        blanks = {name: _text(cell) for name, _, cell in _graded(self._blank)}
        answers = {}
        points = {}
        last = ""
        for name, role, cell in _graded(self._master):
            if role["solution"]:
                last, answers[name] = name, cell
            if role["grade"]:
                points[last] = float(role["points"])
        return [
            Question(name, points[name], blanks[name], _text(cell), cell["cell_type"] == "markdown")
            for name, cell in answers.items()
            if name in points
        ]

    def hidden(self, question: str) -> list[Hidden]:
        """The hidden checks of a question; :class:`WorkbookError` when it has none."""
        found = self.bank.hidden.get(question)
        if not found:
            raise WorkbookError(f"Lab {self.name} has no hidden check of {question}.")
        return found

    def drawing(self, question: str) -> list[tuple[str, str]]:
        """(id, source) of the cells that draw what a question about the own variant is about.

        They are all from the one with ``variants.drawn(`` up to the answer.
        """
        found: list[tuple[str, str]] = []
        for name, source in self.cells:
            if name == question:
                break
            if found or "variants.drawn(" in source:
                found.append((name, source))
        return found

    @cached_property
    def has_variants(self) -> bool:
        """Whether a grade depends on the learner's variant."""
        return any(check.own for checks in self.bank.hidden.values() for check in checks)

    @cached_property
    def digest(self) -> str:
        """Of all that a grade depends on beside the submission and the secret."""
        digest = hashlib.sha256()
        for path in (self._blank, self._master, self.checks, *sorted(_HELPERS.rglob("*.py"))):
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    @property
    def _blank(self) -> Path:
        return self.root / "labs" / self.name / f"{self.name}.ipynb"

    @property
    def _master(self) -> Path:
        return self.root / "solutions" / self.name / f"{self.name}.ipynb"


def find_labs(root: Path) -> list[Lab]:
    """The labs of a course that have hidden checks, in order."""
    labs = [Lab(root, path.parent.name) for path in sorted(root.glob("solutions/*/checks.py"))]
    return [lab for lab in labs if lab.bank.hidden]


def _notebook(path: Path) -> dict[str, Any]:
    try:
        notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbookError(f"{path} is missing: run `make notebooks`.") from error
    return notebook


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _graded(path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(grade_id, nbgrader's metadata, cell) of the cells that answer or grade something."""
    for cell in _notebook(path)["cells"]:
        if role := cell["metadata"].get("nbgrader"):
            yield role["grade_id"], role, cell
