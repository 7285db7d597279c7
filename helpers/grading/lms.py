"""Points of a class as the tables that Canvas and Moodle import.

Canvas reads a file with its own five columns about a student, a row ``Points Possible`` and a
column for each assignment. Moodle reads any columns and asks which is which; the headers here are
those of its own export. A student is known by the name of a folder, which a roster translates.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.errors import WorkbookError
from helpers.grading.cohort import Class
from helpers.grading.submission import printable

FOLDER = "folder"
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("Username", "ID number", "Email address")
VARIANT = "Variant"
_LOGINS = ("SIS Login ID", "Username")  # what the name of a folder stands for
_POSSIBLE = "Points Possible"  # the name in Canvas's row of what a column is worth
_UNIQUE = ("ID", "SIS User ID", "SIS Login ID", *MOODLE)

Roster = Mapping[str, Mapping[str, str]]
"""For each folder, by the names of the columns above, who it is."""


def _people(path: Path) -> list[dict[str, str]]:
    """The rows of a roster, by column."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head, *rows = list(csv.reader(file)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise WorkbookError(f"The roster {path} cannot be read as UTF-8 CSV: {error}.") from error
    known = {name.casefold(): name for name in (FOLDER, *CANVAS, *MOODLE, VARIANT)}
    columns = [known.get(name.strip().casefold(), "") for name in head]
    if FOLDER not in columns or not {*CANVAS, *MOODLE, VARIANT} & {*columns}:
        raise WorkbookError(
            f"The roster {path} needs a column `{FOLDER}` and one or more of "
            f"{', '.join((*CANVAS, *MOODLE, VARIANT))}, separated by commas."
        )
    cells = [zip(columns, row, strict=False) for row in rows]
    return [{name: text.strip() for name, text in row if name and text.strip()} for row in cells]


def absent(path: Path, students: Iterable[str]) -> list[str]:
    """Who is in the roster and has none of these folders, in the order of the rows."""
    folders = set(students)
    names = []
    for person in _people(path):
        folder = person.get(FOLDER, "")
        known = [person[name] for name in (*CANVAS, *MOODLE) if name in person]
        name = folder or next(iter(known), "")
        if name and folder not in folders and name != _POSSIBLE:
            names.append(name)
    return names


def read_roster(path: Path) -> Roster:
    """Who the folders belong to, from a CSV file with the column ``folder`` and others above.

    An export of the gradebook with that column added is one: other columns are not read. Raises
    :class:`WorkbookError` when columns are missing, or when two rows are of one folder or person.
    """
    roster: dict[str, dict[str, str]] = {}
    for person in _people(path):
        folder = person.pop(FOLDER, "")
        if not folder:
            continue  # a row of somebody who has no folder, or of Canvas's points
        if folder in roster:
            raise WorkbookError(f"The roster {path} has two rows for the folder {folder!r}.")
        roster[folder] = person
    for name in _UNIQUE:
        owners: dict[str, str] = {}
        for folder, person in roster.items():
            if name not in person:
                continue
            other = owners.setdefault(person[name], folder)
            if other != folder:
                raise WorkbookError(
                    f"The roster {path} gives the folders {other!r} and {folder!r} the same {name}."
                )
    return roster


def canvas(graded: Class, roster: Roster) -> str:
    """The table for *Import* in Canvas's gradebook: a column a lab, no points where none was sent.

    The first row gives what each lab is worth.
    """
    labs, worth, points = _totals(graded)
    rows = [[f"    {_POSSIBLE}", "", "", "", "", *(worth[lab] for lab in labs)]]
    for student in graded.students:
        person = _person(student, roster)
        name = person.get("Student", printable(student))
        if _POSSIBLE in name:  # Canvas would take the row for that of the points
            name = ""
        who = [name, *(person.get(column, "") for column in CANVAS[1:])]
        rows.append([*map(harmless, who), *(points.get((student, lab), "") for lab in labs)])
    return table([*CANVAS, *labs], rows)


def moodle(graded: Class, roster: Roster) -> str:
    """The table for *Import, CSV file* in Moodle's gradebook: ``-`` where no lab was sent.

    A column that tells who a student is stands here only when it does so for everyone: a row
    without would have its points given to the student before it.
    """
    labs, _, points = _totals(graded)
    people = [_person(student, roster) for student in graded.students]
    who = [name for name in MOODLE if all(name in person for person in people)]
    if not who:
        who = ["Username"]
        people = [{"Username": printable(student)} for student in graded.students]
    rows = [
        [
            *(harmless(person[name]) for name in who),
            *(points.get((student, lab), "-") for lab in labs),
        ]
        for student, person in zip(graded.students, people, strict=True)
    ]
    return table([*who, *labs], rows)


def _person(student: str, roster: Roster) -> dict[str, str]:
    """Who a student is, where the roster does not say it: the folder's name as login."""
    person = dict(roster.get(student, {}))
    if not person.keys() & {*_UNIQUE}:
        person.update(dict.fromkeys(_LOGINS, printable(student)))
    return person


def _totals(graded: Class) -> tuple[list[str], dict[str, str], dict[tuple[str, str], str]]:
    """The labs in order, what each is worth, and the points by student and lab."""
    names = {printable(student): student for student in graded.students}
    labs = sorted({record["lab"] for record in graded.records})
    worth = {record["lab"]: number(record["of"]) for record in graded.records}
    points = {(names[r["student"]], r["lab"]): number(r["points"]) for r in graded.records}
    return labs, worth, points


def number(value: float) -> str:
    """Points as people write them: no more digits than needed."""
    return f"{round(value, 3):g}"


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe comes before it if need be."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
