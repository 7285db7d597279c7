"""Write the page of each teaching path: ``docs/instructor/NAME.md`` from ``paths/NAME.yaml``.

``python -m tools.instructor_pages`` writes all of them, after a look at whether the steps, cells
and questions that a path names are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from helpers import lesson_steps, teaching_paths
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from helpers.teaching_paths import FOLDER, Part, Session, TeachingPath

_reveals = cache(teaching_paths.reveals)


def clock(minutes: int) -> str:
    """``0:05``: hours and minutes from the start of a session."""
    return f"{minutes // 60}:{minutes % 60:02}"


def points(lab: str) -> int:
    """The points of lab ``"03"``."""
    (path,) = (ROOT / "labs").glob(f"{lab}_*/*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    graded = (cell["metadata"].get("nbgrader", {}) for cell in cells)
    return sum(entry.get("points", 0) for entry in graded if entry.get("grade"))


def page(path: TeachingPath) -> str:
    """The page of a path, as Markdown. Raises :class:`WorkbookError` for names of nothing."""
    if problems := list(teaching_paths.faults(path)):
        raise WorkbookError(problems[0])
    lines = [
        f"<!-- Made from paths/{path.name}.yaml by python -m tools.instructor_pages -->",
        f"# {path.title}",
        path.summary,
        "How to read this page, and what to do before the day: [README.md](README.md). Whoever is "
        'late or stuck runs `checkpoint("03.4")` in the lesson, with the number of the section.',
    ]
    if len(path.sessions) > 1:
        lines.append(_overview(path))
    for session in path.sessions:
        lines += _session(session, single=len(path.sessions) == 1)
    return "\n\n".join(lines) + "\n"


def _overview(path: TeachingPath) -> str:
    """A line for each session: lessons, and what is for home."""
    rows = [
        "| session | lessons | labs, marked | labs, for practice | minutes at home |",
        "| --- | --- | --- | --- | --- |",
    ]
    for session in path.sessions:
        home = [part for part in session.parts if part.home]
        taught = dict.fromkeys(
            part.lesson for part in session.parts if not part.home and part.lesson
        )
        labs: dict[bool, list[str]] = {True: [], False: []}
        for part in home:
            if part.lab:
                labs[part.mark.startswith("Marked")].append(part.lab)
        columns = (", ".join(names) for names in (taught, labs[True], labs[False]))
        total = sum(part.minutes for part in home)
        rows.append(f"| {session.title} | {' | '.join(columns)} | {total} |")
    return "\n".join(rows)


def _session(session: Session, *, single: bool) -> Iterator[str]:
    yield "## Minute plan" if single else f"## {session.title}"
    if session.aim:
        yield f"**In the end.** {session.aim}"
    taught = [(now, part) for now, part in session.clock() if not part.home]
    rows = ["| clock | minutes | part | page | ask before |", "| --- | --- | --- | --- | --- |"]
    for now, part in taught:
        asked = ", ".join(f"`{cell}`" for cell in part.ask)
        rows.append(f"| {clock(now)} | {part.minutes} | {part.title} | {_link(part)} | {asked} |")
    rows.append(f"| {clock(session.minutes)} | | end | | |")
    yield "\n".join(rows)
    for now, part in taught:
        yield f"### {clock(now)} {part.title} ({part.minutes} min)"
        yield from _part(part)
    if home := [part for part in session.parts if part.home]:
        yield "### For home"
        yield "\n".join(_home(part) for part in home)


def _link(part: Part) -> str:
    if part.lesson:
        name = lesson_steps.lessons()[part.lesson].stem
        return f"[lesson {part.lesson}](../../notebooks/{name}.ipynb)"
    if part.lab:
        (lab,) = (ROOT / "labs").glob(f"{part.lab}_*/*.ipynb")
        return f"[lab {part.lab}](../../{lab.relative_to(ROOT).as_posix()})"
    return ""


def _part(part: Part) -> Iterator[str]:
    if part.say:
        yield part.say
    if part.lesson:
        steps = {step.name: step for step in teaching_paths.sections(part.lesson)}
        taken = [steps[name] for name in part.steps or steps]
        titles = ", ".join(
            "the setup" if step.name[3:] == "0" else f"{step.name} *{step.title}*" for step in taken
        )
        whole = "All of" if len(taken) == len(steps) else "Of"
        yield f"{whole} {_link(part)}: {titles}. Run all of their cells, and stop at these:"
        asked = _reveals().get(part.lesson, {})
        items = []
        for cell in (cell for step in taken for cell in step.cells if cell.name in part.run):
            line = cell.source.splitlines()[0].strip()
            items.append(f"- `{cell.name}`, which begins with `{line}`")
            if cell.name in part.ask:
                reveal = asked[cell.name]
                items.append(f"    - **Ask first:** {reveal.question}")
                items.append(f"    - **What comes out:** {_sentence(reveal.right)} {reveal.why}")
                items += [f"    - *{wrong}*: {means}" for wrong, means in reveal.expect.items()]
        yield "\n".join(items)
        if part.questions:
            calls = ", ".join(f'`quiz.ask("{question}")`' for question in part.questions)
            yield f"**Quiz.** {calls}"
    elif part.lab:
        numbers = " and ".join(question[1:] for question in part.questions)
        yield f"Of {_link(part)}: question{'s' * (len(part.questions) > 1)} {numbers}."
    if part.mark:
        yield f"**Marking.** {part.mark}"
    if part.cut:
        yield f"**When late.** {part.cut}"


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _home(part: Part) -> str:
    note = f" {part.mark}" if part.mark else ""
    if part.lab:
        note = f", {points(part.lab)} points.{note}"
    elif part.steps:
        note = f": {', '.join(part.steps)}.{note}"
    return f"- {part.title} ({_link(part)}), {part.minutes} minutes{note}"


def main() -> None:
    """Entry of the command line."""
    for name in teaching_paths.names():
        target = FOLDER.parent / f"{name}.md"
        target.write_text(page(teaching_paths.load(name)), encoding="utf-8")
        print(f"{target.relative_to(ROOT)} written")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
