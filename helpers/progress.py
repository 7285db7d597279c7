"""What a learner has done: which lessons and labs, kept in a file of their own.

``make progress`` reads the notebooks as they are on the disk and adds what it finds to
``progress.json`` in the workbook's folder. That file only ever gains: a fresh copy of a lesson does
not take back what was done in the old one. Git does not know it, so no update touches it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from helpers import artifact_cache, attempts, quiz, quiz_record
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT

FILE = ROOT / "progress.json"


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


def table(root: Path = ROOT, path: Path = FILE) -> str:
    """Read the notebooks, add what is new to the file, and show all of it."""
    kept = load(path)
    rows = [["", "predictions", "questions", "lab: answered", "checks passed", "verified"]]
    for lesson in sorted((root / "notebooks").glob("*.ipynb")):
        topic = lesson.stem
        if not topic[:2].isdecimal() or "." in topic:
            continue
        done = kept.setdefault(topic, Done())
        here = attempts.examine(attempts.read(lesson))
        here.questions = _questions(root / "notebooks" / "quiz" / f"{topic}.yaml", here)
        done.add(here)
        row = [topic, _of(done.predictions, here.predictions), _of(done.questions, here.questions)]
        lab = root / "labs" / topic / f"{topic}.ipynb"
        if lab.exists():
            attempt = attempts.examine(attempts.read(lab))
            done.add(attempt)
            row += [_of(done.answers, attempt.answers), _of(done.passed, attempt.answers)]
        rows.append(row + [""] * (5 - len(row)) + [done.verified])
    store(kept, path)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
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


def main() -> None:
    """Entry of the command line."""
    print(table())
    print(
        "\nKept in progress.json. A lab counts as passed by its public checks: make verify LAB=03"
    )


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
