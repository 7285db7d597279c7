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
from helpers.grading.submission import file_name, named, printable

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
_ODD = ("unreadable", "missing", "ended", "limit", "time")
_ELSEWHERE = ("It raised NameError", "It raised ModuleNotFoundError")
"""Errors that an answer has too when what it needs stands in another cell."""

Cell = str | tuple[str, str]
"""What stands in a table: a text, or a text and the file that it links to."""


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
    """Figures of a class: by lab and question the points, the failures by kind, the mistakes.

    Beside them what an instructor should look at, and what was not graded.
    """
    labs: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in graded.records:
        for verdict in record["questions"]:
            name = verdict["question"]
            row = labs[record["lab"]].setdefault(name, _empty_row(verdict["of"]))
            _count(row, verdict)
    for row in (row for questions in labs.values() for row in questions.values()):
        most = row["of"] * (row["handed in"] - row["kinds"].get("by hand", 0))
        row["per cent"] = round(100 * row["points"] / most, 1) if most else None
    return {
        "students": len(graded.students),
        "notebooks": len(graded.records),
        "without a notebook": _without(graded),
        "loose": [printable(name) for name in graded.loose],
        "of no lab": [printable(name) for name in graded.of_no_lab],
        "look at these": [row for record in graded.records for row in _odd(record)],
        "labs": {lab: dict(questions) for lab, questions in sorted(labs.items())},
    }


def _without(graded: Class) -> list[str]:
    students = {record["student"] for record in graded.records}
    return [printable(name) for name in graded.students if printable(name) not in students]


def left_out(graded: Class) -> list[str]:
    """Sentences about what lies among the submissions and was not graded."""
    said = {
        "Not graded, its name begins with no lab's name": graded.of_no_lab,
        "Loose in SUBMISSIONS, belongs to nobody": graded.loose,
    }
    return [f"{what}: {named(names)}." for what, names in said.items() if names]


def _odd(record: Record) -> Iterable[Record]:
    """What ended strangely in a notebook, the questions with the same end together."""
    questions: dict[tuple[str, str], list[str]] = defaultdict(list)
    for verdict in record["questions"]:
        state = verdict["state"]
        says = " ".join(record["notes"]) if state == "unreadable" else STATES.get(state, "")
        ends = [(state, says), *((check["kind"], check["feedback"]) for check in verdict["checks"])]
        odd = (end for end in ends if end[0] in _ODD or end[1].startswith(_ELSEWHERE))
        for end in list(odd)[:1]:
            questions[end].append(verdict["question"])
    who = {"student": record["student"], "lab": record["lab"]}
    for (kind, says), names in questions.items():
        yield {**who, "questions": names, "kind": kind, "what": says}


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
    if names := figures["without a notebook"]:
        parts.append(f"<p>Without a notebook: {', '.join(map(_escaped, names))}.</p>")
    parts += [f"<p>{_escaped(line)}</p>" for line in left_out(graded)]
    links = {printable(name): _link(name) for name in graded.students}
    odd = [
        (links[r["student"]], r["lab"], ", ".join(r["questions"]), r["kind"], r["what"])
        for r in figures["look at these"]
    ]
    if odd:
        titles = ("Student", "Lab", "Question", "Kind", "What happened")
        parts.append(_table("Look at these yourself", titles, odd))
    for lab, questions in figures["labs"].items():
        rows = [
            (
                name,
                f"{row['attempted']} of {row['handed in']}",
                *_mean(row),
                number(row["of"]),
                ", ".join(f"{kind} {count}" for kind, count in row["kinds"].items()),
                "; ".join(f"{tried} ({count})" for tried, count in row["failed"].items()),
            )
            for name, row in questions.items()
        ]
        head = ("Question", "Attempted", "Mean", "%", "Of", "Checks by kind", "Failed (times)")
        parts.append(_table(lab, head, rows))
    parts.append(_points_of_all(graded))
    return _page("Summary", parts)


def _mean(row: Record) -> tuple[str, str]:
    """The mean in points and in per cent of the points."""
    if row["per cent"] is None:
        return "-", "-"
    return number(row["points"] / row["handed in"]), f"{row['per cent']:.0f}"


def _points_of_all(graded: Class) -> str:
    labs = sorted({record["lab"] for record in graded.records})
    points = {(r["student"], r["lab"]): _points(r) for r in graded.records}
    rows: list[list[Cell]] = [
        [_link(name), *(points.get((printable(name), lab), "-") for lab in labs)]
        for name in graded.students
    ]
    return _table("Points", ("Student", *labs), rows)


def _points(record: Record) -> str:
    """The points of a notebook, and why there are none where no answer was run."""
    states = {verdict["state"] for verdict in record["questions"]} - {"by hand"}
    why = "" if "graded" in states or not states else f" ({', '.join(sorted(states))})"
    return number(record["points"]) + why


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    top = f"<caption>{_escaped(caption)}</caption>" if caption else ""
    lines = ["<tr>" + "".join(f"<th>{_escaped(cell)}</th>" for cell in head) + "</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>")
    return f"<table>{top}\n" + "\n".join(lines) + "\n</table>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _escaped(cell)
    text, page = cell
    return f'<a href="{_escaped(page)}">{_escaped(text)}</a>'


def _link(student: str) -> Cell:
    """The name of a student, with the page of the feedback."""
    return printable(student), f"feedback/{file_name(student)}.html"


def _page(title: str, parts: Sequence[str]) -> str:
    return _PAGE.format(title=_escaped(title), style=_STYLE, body="\n".join(parts))


def _escaped(text: str) -> str:
    return html.escape(str(text))
