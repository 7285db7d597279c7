"""Which quiz questions were answered, and how the last answer was.

A file of its own beside ``progress.json``, which Git does not know. It serves ``make quiz``, which
asks first what was wrong, and ``make progress``. A learner can do without it: where it cannot be
read or written, nothing is remembered and nothing fails.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from helpers import artifact_cache
from helpers.places import FOLDER

FILE = FOLDER / "progress-quiz.json"


@dataclass
class Record:
    """The answers to one question: how many were right and wrong, and the last one."""

    right: int = 0
    wrong: int = 0
    last: bool = False


def load(path: Path | None = None) -> dict[str, Record]:
    """The records by question; empty when there are none or the file is damaged."""
    try:
        entries = json.loads((path or FILE).read_text(encoding="utf-8"))
        return {str(name): Record(**entry) for name, entry in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def note(question: str, right: bool, path: Path | None = None) -> None:
    """Add one answer."""
    kept = load(path)
    record = kept.setdefault(question, Record())
    record.right += right
    record.wrong += not right
    record.last = right
    data = {name: asdict(entry) for name, entry in sorted(kept.items())}
    with contextlib.suppress(OSError):
        artifact_cache.write(path or FILE, (json.dumps(data, indent=1) + "\n").encode())
