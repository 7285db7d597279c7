"""Ways through the workbook for a class: which parts, in which order, how many minutes each.

A path is a file ``docs/instructor/paths/NAME.yaml``. What is asked before a cell, and what is
answered, does not depend on the path: it stands in ``docs/instructor/reveals.yaml``, for each
lesson and cell. ``docs/instructor/README.md`` describes both.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from helpers import lesson_steps, quiz
from helpers.errors import WorkbookError
from helpers.kernels import ROOT

FOLDER = ROOT / "docs" / "instructor" / "paths"
REVEALS = FOLDER.parent / "reveals.yaml"


@dataclass(frozen=True)
class Part:
    """Some minutes with a lesson, with a lab, or with neither (a break, a talk).

    ``steps`` are sections of the lesson (``"03.1"``), all of them where none is named. ``run`` and
    ``ask`` are names of its cells: where to stop and talk, and before which to ask. ``questions``
    are those of the lesson's quiz (``"03-2"``) or of the lab (``"q2"``). ``home`` marks work for
    after the session, which takes none of its minutes.
    """

    minutes: int
    title: str
    lesson: str = ""
    lab: str = ""
    steps: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    say: str = ""
    cut: str = ""
    mark: str = ""
    home: bool = False


@dataclass(frozen=True)
class Session:
    """What is taught without going home in between; ``minutes`` is its length with the breaks."""

    title: str
    minutes: int
    parts: tuple[Part, ...]
    aim: str = ""

    def clock(self) -> Iterator[tuple[int, Part]]:
        """The parts, each with the minutes from the start of the session; homework at its end."""
        now = 0
        for part in self.parts:
            yield now, part
            now += 0 if part.home else part.minutes


@dataclass(frozen=True)
class TeachingPath:
    """A way through the workbook; ``minutes`` are those of all sessions."""

    name: str
    title: str
    summary: str
    sessions: tuple[Session, ...]

    @property
    def minutes(self) -> int:
        """The length of all sessions, breaks included."""
        return sum(session.minutes for session in self.sessions)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts in order, homework after the session in which it is given."""
        return tuple(part for session in self.sessions for part in session.parts)


@dataclass(frozen=True)
class Reveal:
    """What to ask before a cell is run, what comes out, and what else is answered.

    The numbers in ``right`` are those of the cell's stored output; for a cell with a clock they
    stand in its assertion. ``expect`` has for each wrong answer what it means.
    """

    question: str
    right: str
    why: str
    expect: dict[str, str]


def names(folder: Path = FOLDER) -> list[str]:
    """The names of the paths, the shortest one first."""
    return sorted(
        (path.stem for path in folder.glob("*.yaml")), key=lambda n: load(n, folder).minutes
    )


def load(name: str, folder: Path = FOLDER) -> TeachingPath:
    """Read a path. Raises :class:`WorkbookError` when there is none, or it is not well formed."""
    file = folder / f"{name}.yaml"
    if not file.is_file():
        known = sorted(path.stem for path in folder.glob("*.yaml"))
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise WorkbookError(f"There is no course {name!r}, only {', '.join(known)}.{hint}")
    data = _read(file)
    if not isinstance(data, dict):
        raise WorkbookError(
            f"{file.name} is not a teaching path: it needs title, summary and sessions."
        )
    sessions = []
    for place, entry in enumerate(_list(data, "sessions", file.name), 1):
        where = f"{file.name}, session {place}"
        parts = []
        for number, part in enumerate(_list(entry, "parts", where), 1):
            parts.append(_make(Part, part, f"{where}, part {number}"))
            _check_part(parts[-1], f"{where}, part {number} ({parts[-1].title})")
        session = _make(Session, {**entry, "parts": tuple(parts)}, where)
        total = sum(part.minutes for part in parts if not part.home)
        if total != session.minutes:
            raise WorkbookError(
                f"{where} ({session.title}) has {session.minutes} minutes, and its parts together "
                f"{total}: make them equal."
            )
        sessions.append(session)
    return _make(TeachingPath, {**data, "name": name, "sessions": tuple(sessions)}, file.name)


def reveals(file: Path = REVEALS) -> dict[str, dict[str, Reveal]]:
    """For each lesson (``"03"``) and cell what to ask before it. Raises :class:`WorkbookError`."""
    made: dict[str, dict[str, Reveal]] = {}
    for lesson, cells in dict(_read(file)).items():
        made[lesson] = {
            cell: _make(Reveal, entry, f"{file.name}, lesson {lesson}, {cell}")
            for cell, entry in cells.items()
        }
    return made


@cache
def sections(lesson: str) -> tuple[lesson_steps.Step, ...]:
    """The sections of lesson ``"03"``, read once: a path names many of them."""
    return tuple(lesson_steps.steps(lesson))


@cache
def _questions(lesson: str) -> tuple[str, ...]:
    return tuple(question.id for question in quiz.lesson(lesson))


def faults(path: TeachingPath) -> Iterator[str]:
    """What the path names and the workbook lacks, one sentence each."""
    known = reveals()
    for part in path.parts:
        where = f"{path.name}.yaml, {part.title}"
        if part.lesson:
            if part.lesson not in lesson_steps.lessons():
                yield f"{where}: there is no lesson {part.lesson}."
                continue
            steps = {step.name: step for step in sections(part.lesson)}
            yield from (f"{where}: there is no step {s}." for s in part.steps if s not in steps)
            taken = [steps[name] for name in part.steps or steps if name in steps]
            cells = [cell.name for step in taken for cell in step.cells if cell.name]
            yield from (f"{where}: no cell {c} in its steps." for c in part.run if c not in cells)
            if [cell for cell in cells if cell in part.run] != [*part.run]:
                yield f"{where}: run does not name the cells in the order of the lesson."
            asked = [*known.get(part.lesson, {})]
            yield from (
                f"{where}: reveals.yaml has no cell {c}." for c in part.ask if c not in asked
            )
            yield from (
                f"{where}: {c} is asked and not run." for c in part.ask if c not in part.run
            )
            there = _questions(part.lesson)
        elif part.lab:
            folders = [*(ROOT / "labs").glob(f"{part.lab}_*")]
            if not folders:
                yield f"{where}: there is no lab {part.lab}."
                continue
            text = "".join(page.read_text(encoding="utf-8") for page in folders[0].glob("*.ipynb"))
            there = tuple(re.findall(r'"id": "(q\d+)"', text))
        else:
            continue
        yield from (f"{where}: there is no question {q}." for q in part.questions if q not in there)


def _check_part(part: Part, where: str) -> None:
    if part.minutes < 1:
        raise WorkbookError(f"{where} takes {part.minutes} minutes: give it at least one.")
    if part.lesson and part.lab:
        raise WorkbookError(f"{where} has a lesson and a lab: make two parts of it.")
    if not part.lesson and (part.steps or part.run or part.ask):
        raise WorkbookError(
            f"{where} has steps or cells, and no lesson: write, for example, lesson: '03'."
        )


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbookError(f"{file.name} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or "it is no UTF-8"
        raise WorkbookError(f"{file.name}{line}: this is not YAML: {said}.") from error


def _list(data: Any, key: str, where: str) -> list[Any]:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, list) or not found:
        raise WorkbookError(f"{where} has no list of {key}.")
    return found


def _make(kind: type, entry: Any, where: str) -> Any:
    """An object of the dataclass ``kind`` from a mapping; sentences for all that does not fit."""
    if not isinstance(entry, Mapping):
        raise WorkbookError(f"{where} is {entry!r}: it must be keys and values.")
    known = {field.name: field for field in fields(kind)}
    for key in entry:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise WorkbookError(f"{where} has the unknown key {key!r}.{hint}")
    for name, field in known.items():
        if name not in entry and field.default is MISSING:
            raise WorkbookError(f"{where} lacks {name}.")
    return kind(
        **{
            key: _value(value, str(known[key].type), f"{where}: {key}")
            for key, value in entry.items()
        }
    )


def _value(value: Any, wanted: str, where: str) -> Any:
    if wanted == "tuple[str, ...]":
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise WorkbookError(
                f"{where} must be a list of texts, such as ['03.1', '03.2'], not {value!r}."
            )
        return tuple(value)
    if wanted.startswith("dict"):
        if not isinstance(value, dict) or not value:
            raise WorkbookError(f"{where} must be texts with their meanings, not {value!r}.")
        return {str(key): " ".join(str(text).split()) for key, text in value.items()}
    plain = {"int": int, "str": str, "bool": bool}.get(wanted)
    if plain and type(value) is not plain:
        kind = {"int": "a whole number", "str": "a text", "bool": "true or false"}[wanted]
        quotes = " (put it in quotes)" if wanted == "str" else ""
        raise WorkbookError(f"{where} must be {kind}{quotes}, not {value!r}.")
    return " ".join(value.split()) if wanted == "str" else value
