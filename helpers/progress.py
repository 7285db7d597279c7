"""What a learner has done: which lessons and labs, kept in a file of their own.

``make progress`` reads the notebooks as they are on the disk and adds what it finds to
``progress.json`` in the workbook's folder. That file only ever gains: a fresh copy of a lesson does
not take back what was done in the old one. Git does not know it, so no update touches it.
``make progress COURSE=three_hours`` shows the same by the parts of a class.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import nbformat

from helpers import artifact_cache, attempts, quiz, quiz_record, teaching_paths
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.places import FOLDER

FILE = FOLDER / "progress.json"


@dataclass
class Done:
    """What was ever seen done of one topic; names as in :class:`helpers.attempts.Attempt`."""

    predictions: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    verified: str = ""  # the day of the last `make verify`

    def add(self, attempt: attempts.Attempt) -> None:
        """Add what a notebook holds."""
        for mine, found in (
            (self.predictions, attempt.predictions),
            (self.questions, attempt.questions),
            (self.answers, attempt.answers),
        ):
            mine += [name for name, given in found.items() if given and name not in mine]
        self.passed += [name for name in attempt.passed if name not in self.passed]


def load(path: Path = FILE) -> dict[str, Done]:
    """What is kept. A file that cannot be read is put aside, never written over."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise WorkbookError(f"{attempts.named(path)} cannot be read: {error}.") from error
    try:
        return {str(topic): Done(**entry) for topic, entry in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        aside = path.with_suffix(".damaged.json")
        path.replace(aside)
        print(f"{path.name} was damaged: it is kept as {aside.name}, and a new one begins.")
        return {}


def store(kept: dict[str, Done], path: Path = FILE) -> None:
    """Write the file, whole or not at all."""
    data: dict[str, Any] = {topic: asdict(done) for topic, done in sorted(kept.items())}
    try:
        artifact_cache.write(path, (json.dumps(data, indent=1) + "\n").encode())
    except OSError as error:
        raise WorkbookError(
            f"{attempts.named(path)} cannot be written: {error.strerror}."
        ) from error


def note_lab(topic: str, verdicts: dict[str, str], path: Path = FILE) -> None:
    """Keep what ``make verify`` found of a lab."""
    kept = load(path)
    done = kept.setdefault(topic, Done())
    done.verified = date.today().isoformat()
    found = [question for question, text in verdicts.items() if attempts.passes(text)]
    done.passed += [question for question in found if question not in done.passed]
    store(kept, path)


@dataclass
class Topic:
    """One lesson with its lab: what was ever done, and what is there now to be done."""

    done: Done
    lesson: attempts.Attempt
    lab: attempts.Attempt | None
    sections: dict[str, int]  # of each cell of the lesson, as in "03.4"


def read(root: Path = FOLDER, path: Path = FILE) -> dict[str, Topic]:
    """Read the notebooks, add what is new to the file, and give all of it by name."""
    kept, found = load(path), {}
    for lesson in sorted((root / "notebooks").glob("*.ipynb")):
        topic = lesson.stem
        if not topic[:2].isdecimal() or "." in topic:
            continue
        done, notebook = kept.setdefault(topic, Done()), attempts.read(lesson)
        here = attempts.examine(notebook)
        here.questions = _questions(root / "notebooks" / "quiz" / f"{topic}.yaml", here)
        done.add(here)
        lab = root / "labs" / topic / f"{topic}.ipynb"
        attempt = attempts.examine(attempts.read(lab)) if lab.exists() else None
        if attempt:
            done.add(attempt)
        found[topic] = Topic(done, here, attempt, _sections(notebook))
    store(kept, path)
    return found


def table(root: Path = FOLDER, path: Path = FILE) -> str:
    """All lessons and labs, and what was done of each."""
    rows = [["", "predictions", "questions", "lab: answered", "checks passed", "verified"]]
    for name, topic in read(root, path).items():
        done, here = topic.done, topic.lesson
        row = [name, _of(done.predictions, here.predictions), _of(done.questions, here.questions)]
        if topic.lab:
            row += [_of(done.answers, topic.lab.answers), _of(done.passed, topic.lab.answers)]
        rows.append(row + [""] * (5 - len(row)) + [done.verified])
    return _aligned(rows)


def course(course: teaching_paths.TeachingPath, root: Path = FOLDER, path: Path = FILE) -> str:
    """The parts of a teaching path in their order, and what was done of each."""
    topics = {name[:2]: topic for name, topic in read(root, path).items()}
    rows = [[course.title, "", "predictions", "questions", "lab: answered", "checks passed"]]
    for session in course.sessions:
        if len(course.sessions) > 1:
            rows += [[""], [session.title]]
        for part in session.parts:
            topic = topics.get(part.lesson or part.lab)
            if topic is None:
                continue
            page = f"lesson {part.lesson}" if part.lesson else f"lab {part.lab}"
            title = f"{part.title} (at home)" if part.home else part.title
            rows.append([title, page, *_part(part, topic)])
    return _aligned(rows)


def _part(part: teaching_paths.Part, topic: Topic) -> list[str]:
    """The four last columns of one part of a teaching path, empty where nothing is asked."""
    done = topic.done
    if part.lab:
        there = topic.lab.answers if topic.lab else {}
        asked = {name: there[name] for name in part.questions or there if name in there}
        return ["", "", _of(done.answers, asked), _of(done.passed, asked)] if asked else [""] * 4
    taken = {int(step.partition(".")[2]) for step in part.steps} or {*topic.sections.values()}
    cells = {cell for cell, section in topic.sections.items() if section in taken}
    there = topic.lesson.predictions
    guessed = {name: there[name] for name in there if name.partition("/")[0] in cells}
    whole = topic.lesson.questions if "quiz" in cells else {}
    asked = dict.fromkeys(part.questions, False) or whole
    columns = (_of(done.predictions, guessed), guessed), (_of(done.questions, asked), asked)
    return [*(text if there else "" for text, there in columns), "", ""]


def _sections(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """The section of each code cell that was given out: the ``##`` headings before it."""
    number, found = 0, {}
    for cell in notebook.cells:
        if attempts.is_added(cell.id):
            continue
        if cell.cell_type == "markdown":
            number += sum(line.startswith("## ") for line in cell.source.splitlines())
        else:
            found[cell.id] = number
    return found


def _aligned(rows: list[list[str]]) -> str:
    """The rows as lines, the first column to the left, the others to the right; titles as is."""
    whole = [row for row in rows if len(row) > 1]
    widths = [max(len(row[place]) for row in whole) for place in range(len(whole[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in rows
    ]
    return "\n".join(lines)


def _questions(bank: Path, attempt: attempts.Attempt) -> dict[str, bool]:
    """All questions of a lesson, and which were answered: in its code, its form or a terminal."""
    record = quiz_record.load()
    names = [question.id for question in quiz.load(bank)] if bank.exists() else attempt.questions
    return {name: attempt.questions.get(name, False) or name in record for name in names}


def _of(done: list[str], there: dict[str, bool]) -> str:
    """``3 of 5``: of what is there now, how much was ever done."""
    return f"{len(set(done) & set(there))} of {len(there)}"


def main(arguments: list[str]) -> None:
    """Entry of the command line: the name of a teaching path, or nothing."""
    print(course(teaching_paths.load(arguments[0])) if arguments else table())
    print(
        "\nKept in progress.json. A lab counts as passed by its public checks: make verify LAB=03"
    )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WorkbookError as error:
        exit_with_sentence(error)
