"""What an instructor and learners read of a graded class: a table, pages, a summary.

Everything that a submission can choose is escaped; the pages run no script and load nothing. The
same results give the same bytes.
"""

from __future__ import annotations

import html
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from helpers.grading import cohort, lms
from helpers.grading.cohort import Class, Record
from helpers.grading.lms import number
from helpers.grading.submission import file_name, printable

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:56em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #bbb;padding:.3em .6em;"
    "text-align:left;vertical-align:top}th{background:#f2f2f2}"
    "caption{text-align:left;font-weight:bold;padding:.3em 0}"
)
_PAGE = (
    "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
    "<meta http-equiv='Content-Security-Policy' "
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    "<meta name='viewport' content='width=device-width'>"
    "<title>{title}</title><style>{style}</style></head>\n<body>\n{body}\n</body></html>\n"
)
STATES = {
    "not attempted": "Not attempted: the answer cell is as it was given out.",
    "missing": "The answer cell is missing.",
    "unreadable": "The notebook could not be read.",
    "by hand": "To be marked by hand.",
}
"""What is said of a question that was not run."""


def write(graded: Class, out: Path, roster: lms.Roster | None = None) -> None:
    """Write ``grades.csv``, ``feedback/``, ``summary.html`` and ``summary.json`` into ``out``.

    Beside them ``canvas.csv`` and ``moodle.csv``, in which ``roster`` says who the students are.
    """
    files = {"grades.csv": grades(graded), "summary.html": summary_page(graded)}
    files["canvas.csv"] = lms.canvas(graded, roster or {})
    files["moodle.csv"] = lms.moodle(graded, roster or {})
    files["summary.json"] = json.dumps(summary(graded), indent=1, sort_keys=True) + "\n"
    for student in graded.students:
        mine = [r for r in graded.records if r["student"] == printable(student)]
        files[f"feedback/{file_name(student)}.html"] = feedback_page(student, mine)
    for name, text in files.items():
        cohort.write(out / name, text)


def grades(graded: Class) -> str:
    """The table of points as CSV: student, lab, question, points, of.

    A question to be marked by hand has no points yet. A name that a spreadsheet would take for a
    formula gets an apostrophe before it.
    """
    rows = []
    for record in graded.records:
        name = lms.harmless(record["student"])
        for verdict in record["questions"]:
            points = "" if verdict["state"] == "by hand" else number(verdict["points"])
            of = number(verdict["of"])
            rows.append([name, record["lab"], verdict["question"], points, of])
    return lms.table(["student", "lab", "question", "points", "of"], rows)


def feedback_page(student: str, records: Sequence[Record]) -> str:
    """One page for a student: for each lab the points, and what was tried and failed."""
    parts = [f"<h1>{_escaped(printable(student))}</h1>"]
    if not records:
        parts.append("<p>No notebook of a graded lab was handed in.</p>")
    for record in records:
        parts += _feedback_on(record)
    return _page(f"Feedback for {printable(student)}", parts)


def _feedback_on(record: Record) -> Iterable[str]:
    total = f"{number(record['points'])} of {number(record['of'])} points"
    yield f"<h2>{_escaped(record['lab'])}: {total}</h2>"
    if record.get("variant"):
        yield f"<p>Variant: {_escaped(record['variant'])}</p>"
    for note in record["notes"]:
        yield f"<p>{_escaped(note)}</p>"
    for verdict in record["questions"]:
        points = f"{number(verdict['points'])} of {number(verdict['of'])}"
        if verdict["state"] == "by hand":
            points = f"{number(verdict['of'])} points"
        yield f"<h3>Question {_escaped(verdict['question'])}: {points}</h3>"
        if verdict["state"] in STATES:
            yield f"<p>{STATES[verdict['state']]}</p>"
            continue
        rows = [
            (check["tried"], "passed" if check["kind"] == "right" else check["feedback"])
            for check in verdict["checks"]
        ]
        yield _table("", ("What was tried", "What came of it"), rows)


def summary(graded: Class) -> Record:
    """Figures of a class: by lab and question the points, the failures by kind, the mistakes."""
    labs: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in graded.records:
        for verdict in record["questions"]:
            name = verdict["question"]
            row = labs[record["lab"]].setdefault(name, _empty_row(verdict["of"]))
            _count(row, verdict)
    return {
        "students": len(graded.students),
        "notebooks": len(graded.records),
        "without a notebook": _without(graded),
        "ignored": [printable(name) for name in graded.ignored],
        "labs": {lab: dict(questions) for lab, questions in sorted(labs.items())},
    }


def _without(graded: Class) -> list[str]:
    students = {record["student"] for record in graded.records}
    return [printable(name) for name in graded.students if printable(name) not in students]


def _empty_row(of: float) -> Record:
    return {"of": of, "handed in": 0, "attempted": 0, "points": 0.0, "kinds": {}, "failed": {}}


def _count(row: Record, verdict: Record) -> None:
    row["handed in"] += 1
    row["attempted"] += verdict["state"] == "graded"
    row["points"] = round(row["points"] + verdict["points"], 3)
    kinds: Counter[str] = Counter(row["kinds"])
    kinds[verdict["state"]] += verdict["state"] != "graded"
    kinds.update(check["kind"] for check in verdict["checks"])
    row["kinds"] = {kind: count for kind, count in sorted(kinds.items()) if count}
    failed: Counter[str] = Counter(row["failed"])
    failed.update(check["tried"] for check in verdict["checks"] if check["kind"] != "right")
    row["failed"] = dict(failed)


def summary_page(graded: Class) -> str:
    """The summary for the instructor: difficulty of each question, failures, who is missing."""
    figures = summary(graded)
    parts = ["<h1>Summary</h1>"]
    parts.append(f"<p>{figures['students']} students, {figures['notebooks']} notebooks.</p>")
    for what in ("without a notebook", "ignored"):
        if figures[what]:
            names = ", ".join(map(_escaped, figures[what]))
            parts.append(f"<p>{what.capitalize()}: {names}.</p>")
    for lab, questions in figures["labs"].items():
        rows = [
            (
                name,
                f"{row['attempted']} of {row['handed in']}",
                number(row["points"] / row["handed in"]),
                number(row["of"]),
                ", ".join(f"{kind} {count}" for kind, count in row["kinds"].items()),
                "; ".join(f"{tried} ({count})" for tried, count in row["failed"].items()),
            )
            for name, row in questions.items()
        ]
        head = ("Question", "Attempted", "Mean", "Of", "Checks by kind", "Failed (times)")
        parts.append(_table(lab, head, rows))
    parts.append(_points_of_all(graded))
    return _page("Summary", parts)


def _points_of_all(graded: Class) -> str:
    labs = sorted({record["lab"] for record in graded.records})
    points = {(r["student"], r["lab"]): number(r["points"]) for r in graded.records}
    rows = [
        (printable(name), *(points.get((printable(name), lab), "-") for lab in labs))
        for name in graded.students
    ]
    return _table("Points", ("Student", *labs), rows)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = f"<caption>{_escaped(caption)}</caption>" if caption else ""
    lines = ["<tr>" + "".join(f"<th>{_escaped(cell)}</th>" for cell in head) + "</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>")
    return f"<table>{top}\n" + "\n".join(lines) + "\n</table>"


def _page(title: str, parts: Sequence[str]) -> str:
    return _PAGE.format(title=_escaped(title), style=_STYLE, body="\n".join(parts))


def _escaped(text: str) -> str:
    return html.escape(str(text))
