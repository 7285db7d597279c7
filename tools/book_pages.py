"""The pages of the book that are no notebooks: glossary, observations, porting, times, verified.

Each is made from one source (``book/*.yaml``, the stored notebooks, ``bench/README.md``,
``docs/verified.json``), so that it says what the lessons say.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
import yaml
from markdown_it.token import Token
from nbformat import NotebookNode

from helpers import quiz
from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from tools import verified
from tools.page_checks import as_string, comparable
from tools.pages import MARKDOWN, Page, find_pages, headings

NOT_COMPARED = "nbval-ignore-output"
# A time, or the machine on which times were taken.
_CLOCK = re.compile(r"\d ?(ns|µs|ms|s)\b|(two|shared) cores")
# What every lesson sets in bold or italics: these words are no terms.
_TITLES = (
    "You will do.",
    "You will learn.",
    "You need.",
    "Predict",
    "Next:",
    "Next.",
    "Lab.",
    "Try it.",
    "Check",
)


def pages(root: Path = ROOT) -> dict[str, str]:
    """MyST Markdown by file name, for the root of the book; links lead to ``notebooks/*.ipynb``."""
    known = {lesson.number: lesson for lesson in lessons(root)}
    return {
        "glossary.md": _glossary(root, known),
        "observations.md": _observations(root, known),
        "porting.md": _porting(known),
        "measured.md": _measured(root, known),
        "verified.md": _verified(root),
    }


# --- lessons -------------------------------------------------------------------------------------


@dataclass
class Section:
    """A ``##`` section of a lesson, or what stands before the first one (no title)."""

    title: str
    cells: list[NotebookNode] = field(default_factory=list)

    @cached_property
    def prose(self) -> str:
        """Its text in one line, without code blocks and targets of links."""
        return _plain("\n\n".join(c.source for c in self.cells if c.cell_type == "markdown"))

    @cached_property
    def emphasised(self) -> list[str]:
        """What stands in ``*`` or ``**``, in order, without formulas."""
        found: list[str] = []
        for cell in self.cells:
            if cell.cell_type == "markdown":
                text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", "", cell.source, flags=re.DOTALL)
                for block in MARKDOWN.parse(text):
                    found += _emphasised(block.children or [])
        return [words for words in found if words not in _TITLES]


@dataclass(frozen=True)
class Lesson:
    """A lesson as it is stored: its sections with their cells."""

    page: Page
    sections: tuple[Section, ...]

    @property
    def number(self) -> str:
        """``"03"``."""
        return self.page.name[:2]

    @cached_property
    def title(self) -> str:
        """What follows the number in its heading."""
        return _title(self.page).partition("· ")[2]

    @cached_property
    def prose(self) -> str:
        """The text of the whole lesson in one line."""
        return " ".join(section.prose for section in self.sections)

    @cached_property
    def cells(self) -> dict[str, NotebookNode]:
        """The code cells by their names."""
        found = (cell for section in self.sections for cell in section.cells)
        return {cell.id: cell for cell in found if cell.cell_type == "code"}

    def section(self, cell: str) -> Section:
        """The section that holds the cell of this name."""
        for section in self.sections:
            if any(found.id == cell for found in section.cells):
                return section
        raise WorkbookError(f"Lesson {self.number} has no cell {cell}: name one that it has.")

    def link(self, text: str, section: Section | None = None) -> str:
        """A link of the book to this lesson, or to one of its sections."""
        anchor = f"#{slug(section.title)}" if section and section.title else ""
        return f"[{text}](notebooks/{self.page.name}.ipynb{anchor})"

    def cell_link(self, cell: str) -> str:
        """A link with the cell's name to the section that it stands in."""
        return self.link(f"`{cell}`", self.section(cell))


def lessons(root: Path = ROOT) -> list[Lesson]:
    """All lessons, in order."""
    return [_lesson(page) for page in find_pages(root) if page.kind == "lesson"]


def _lesson(page: Page) -> Lesson:
    sections = [Section("")]
    for cell in nbformat.read(page.target, 4).cells:
        if cell.cell_type != "markdown":
            sections[-1].cells.append(cell)
            continue
        # A cell may hold the end of one section and the beginning of the next.
        for part in re.split(r"^(?=## )", cell.source, flags=re.MULTILINE):
            if part.startswith("## "):
                sections.append(Section(part.partition("\n")[0][3:].strip()))
            sections[-1].cells.append(nbformat.from_dict({**cell, "source": part}))
    return Lesson(page, tuple(sections))


def _emphasised(tokens: list[Token]) -> Iterator[str]:
    inside, said = 0, ""
    for token in tokens:
        if token.type.startswith(("em_", "strong_")):
            inside += token.nesting
        if inside:
            said += " " if token.type == "softbreak" else token.content
        elif said:
            yield said
            said = ""


def _plain(markdown: str) -> str:
    without = re.sub(r"^```.*?^```|^> ?", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"\]\([^)\s]*\)", "]", without).split())


def slug(title: str) -> str:
    """The anchor that MyST gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower().replace(" ", "-"))


def _printed(cell: NotebookNode) -> str:
    """What a cell printed, without its figures."""
    texts = [text for output in cell.outputs if not _is_figure(output) for text in _texts(output)]
    return "\n".join(dict.fromkeys(texts))


def _figures(cell: NotebookNode) -> list[str]:
    """What a cell's figures show, in words."""
    texts = [text for output in cell.outputs if _is_figure(output) for text in _texts(output)]
    return [*dict.fromkeys(texts)]


def _is_figure(output: NotebookNode) -> bool:
    return any(kind.startswith("image/") for kind in output.get("data", {}))


def _texts(output: NotebookNode) -> Iterator[str]:
    for place, key in comparable(output):
        if key in ("text", "text/plain", "evalue"):
            yield as_string(place[key]).rstrip()


# --- the glossary --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A word of the workbook; ``book/glossary.yaml`` says what the fields are."""

    term: str
    lesson: str
    definition: str
    aka: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    section: str = ""

    @property
    def forms(self) -> tuple[str, ...]:
        """The term and its other forms."""
        return (self.term, *self.aka)

    def occurs(self, prose: str) -> bool:
        """Whether any of its forms is a word, or the words, of ``prose``."""
        return any(_has_word(prose, form) for form in self.forms)


def terms(root: Path = ROOT) -> list[Term]:
    """The glossary, in the order of the alphabet."""
    found = [
        Term(**{**entry, **{key: tuple(entry[key]) for key in ("aka", "earlier") if key in entry}})
        for entry in _yaml(root, "glossary.yaml")["terms"]
    ]
    return sorted(found, key=lambda term: term.term.lower().lstrip("_"))


def stressed(root: Path = ROOT) -> dict[str, list[str]]:
    """By lesson the words that it emphasises without introducing a term."""
    found: dict[str, list[str]] = _yaml(root, "glossary.yaml")["stressed"]
    return found


def introduced(term: Term, lesson: Lesson) -> Section:
    """The section that introduces a term: the first that emphasises it, else that has it."""
    if term.section:
        found = [section for section in lesson.sections if section.title == term.section]
    else:
        marked = [s for s in lesson.sections if any(map(term.occurs, s.emphasised))]
        found = marked or [s for s in lesson.sections[1:] if term.occurs(s.prose)]
    if not found:
        raise WorkbookError(
            f"book/glossary.yaml: no section of lesson {lesson.number} introduces {term.term}."
        )
    return found[0]


def _has_word(prose: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(e?s)?(?!\w)", prose, re.IGNORECASE) is not None


def _glossary(root: Path, known: Mapping[str, Lesson]) -> str:
    text = "# Glossary\n\nEvery term, with the lesson that introduces it.\n"
    letter = ""
    for term in terms(root):
        first = term.term.lstrip("_")[0].upper()
        if first != letter:
            text += ("```\n" if letter else "") + f"\n## {first}\n\n```{{glossary}}\n"
            letter = first
        lesson = known[term.lesson]
        where = lesson.link(f"Lesson {lesson.number}", introduced(term, lesson))
        text += "\n".join(term.forms) + f"\n  {term.definition} {where}\n\n"
    return f"{text}```\n"


# --- observations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observation:
    """A belief of a lesson's text, the cells that settle it, and what the text says then."""

    lesson: str
    belief: str
    cells: tuple[str, ...]
    result: tuple[str, ...]  # word for word, from the text behind the first cell


def observations(root: Path = ROOT) -> list[Observation]:
    """``book/observations.yaml``, in the order of the lessons."""
    return [
        Observation(entry["lesson"], entry["belief"], tuple(entry["cells"]), tuple(entry["result"]))
        for entry in _yaml(root, "observations.yaml")
    ]


def _observations(root: Path, known: Mapping[str, Lesson]) -> str:
    text = (
        "# Beliefs, experiments, results\n\n"
        "What one often hears, the cell that tries it, and what came out, in the words of the "
        "lesson. A name leads to the section with the cell.\n\n"
        "Folded below them are the beliefs that the questions of the lesson test. They give "
        "the answers away.\n"
    )
    found = observations(root)
    for number, lesson in known.items():
        rows = [
            (
                observation.belief,
                ", ".join(map(lesson.cell_link, observation.cells)),
                " … ".join(observation.result)
                + ("" if observation.result[-1][-1] in ".?!" else " …"),
            )
            for observation in found
            if observation.lesson == number
        ]
        text += f"\n## {number} · {lesson.title}\n\n{_beliefs(rows)}"
        bank = quiz.load(root / "notebooks" / "quiz" / f"{lesson.page.name}.yaml")
        if asked := [_asked(question, lesson) for question in bank if question.belief]:
            text += (
                f"\n:::{{dropdown}} From the questions of lesson {number}\n{_beliefs(asked)}:::\n"
            )
    return text


def _asked(question: quiz.Question, lesson: Lesson) -> tuple[str, str, str]:
    """The row of a question: its belief, the cell that it rests on, the reasons of its answer."""
    cell = question.rests_on
    where = lesson.cell_link(cell) if cell in lesson.cells else f"`{cell}`"
    right = [option for option in question.options if option.right]
    if question.kind == "number" or question.code:
        said = [question.why, *(option.why for option in right)]
    else:
        said = [f"{_sentence(option.text)} {option.why}" for option in right]
    result = " ".join(_code(" ".join(text.split())) for text in said if text)
    asked = lesson.link(f"question {question.id}", lesson.section("quiz"))
    return _code(question.belief), f"{where}, {asked}", result


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text[-1] in ".?!" else ".")


def _code(text: str) -> str:
    """Texts of the quiz are plain: what looks like code or markup is set as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        p if p.startswith("`") else re.sub(r"([\\*_$<>\[\]{}])", r"\\\1", p) for p in parts
    )


def _beliefs(rows: Sequence[tuple[str, str, str]]) -> str:
    """A list: a table of three columns of sentences is hard to read on a phone."""
    return "".join(
        f"- **{belief}**<br>\n  Experiment: {cells}<br>\n  Result: {result}\n"
        for belief, cells, result in rows
    )


# --- porting, times, verified --------------------------------------------------------------------


def _porting(known: Mapping[str, Lesson]) -> str:
    lesson = known["15"]
    found = re.findall(
        r"^(\S.*?) +(\S+) +(\S+)\n +(\S+) +(\S+)$", _printed(lesson.cells["porting-table"]), re.M
    )
    calls = [
        (what, f"Relay `{old}`<br>Relax `{new}`", f"`{a}`<br>`{b}`")
        for what, old, a, new, b in found
    ]
    seen = re.findall(
        r"^(\d\d) +(\S.*?)  +(\S.*?)  +(\S.*?)  (\S.*)$",
        _printed(lesson.cells["then-and-now"]),
        re.M,
    )
    marks = [(known[number].link(number), *map(_code, rest)) for number, *rest in seen]
    return (
        "# From Relay to Relax\n\n"
        f"What {lesson.cell_link('porting-table')} of lesson 15 printed: each name was looked up, "
        "or the call was made, in the TVM that it belongs to. Beside a name is what it gives: "
        "the type of an object, or the name of a function or class. That both sides exist does not "
        "say that they do the same: compare outputs after porting.\n\n"
        f"{_table(('', 'in Relay, and in Relax', 'what it gives'), calls)}\n"
        "## Observations, then and now\n\n"
        f"What {lesson.cell_link('then-and-now')} printed: one observation of a lesson, tried on "
        "both.\n\n"
        f"{_table(('lesson', 'what is observed', 'Relay', 'Relax', ''), marks)}"
    )


def _measured(root: Path, known: Mapping[str, Lesson]) -> str:
    text = (
        "# What was measured where\n\n"
        "Every time that the workbook stores, with its source. A time belongs to the machine on "
        "which it was taken, so expect other numbers from yours, and compare ratios.\n\n"
        f"{_machine(root)}\n\n{_gpu(root)}\n\n"
        "## In the lessons\n\n"
        "The outputs that no test compares, because a clock or the machine decides them. What must "
        "hold on every machine is asserted in the cell, or in the one after it. The day is that on "
        "which the output was stored.\n"
    )
    for lesson in known.values():
        days, heading = _days(lesson.page.target), f"\n### {lesson.number} · {lesson.title}\n"
        for name, cell in lesson.cells.items():
            if NOT_COMPARED not in cell.metadata.get("tags", ()) or not cell.outputs:
                continue
            printed, figures = _printed(cell), _figures(cell)
            stored = _day(days, "\n".join([printed, *figures]))
            text += f"{heading}\n{lesson.cell_link(name)}, {stored}\n"
            text += f"\n{_block(_without_guesses(printed))}" if printed else ""
            text += "".join(f"\nFigure: {_code(figure)}\n" for figure in figures)
            heading = ""
    text += (
        "\n## With the scripts in `bench`\n\n"
        "From `bench/README.md`, which also says how to run each.\n"
    )
    days = _days(root / "bench" / "README.md")
    for title, body in _bench(root):
        if _CLOCK.search(body):
            text += f"\n### {title}\n\n*Written {_day(days, body)}.*\n\n{body}\n"
    return text


def _bench(root: Path) -> list[tuple[str, str]]:
    """Heading and text of each script's section in ``bench/README.md``."""
    parts = (root / "bench" / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2].strip()) for part in parts]


def _machine(root: Path) -> str:
    """What ``bench/README.md`` says, before its sections, of the machine."""
    start = (root / "bench" / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    found = [part for part in start.split("\n\n") if "cores" in part]
    if not found:
        raise WorkbookError("bench/README.md does not say at its start on which machine times are.")
    return found[0]


def _gpu(root: Path) -> str:
    file = root / "bench" / "gpu_record.json"
    if not file.exists():
        return "No run on a GPU has been recorded."
    record = json.loads(file.read_text(encoding="utf-8"))
    return f"On a GPU: `bench/gpu_record.json`, {record['device']}, {_said(record['date'])}."


def _without_guesses(text: str) -> str:
    """A comparison with predictions, of which only the measured column is left."""
    text = re.sub(r"^ +predicted +measured\n", "", text, flags=re.MULTILINE)
    return re.sub(r" +- +(\S+) +no prediction yet", r"  \1", text)


def _days(file: Path) -> dict[str, str]:
    """Each line of a file, of a notebook each line of text, with the day of its last commit."""
    command = ["git", "blame", "--line-porcelain", "--", file.name]
    try:
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return {}
    days: dict[str, str] = {}
    day = ""
    for line in done.stdout.splitlines():
        if line.startswith("author-time "):
            day = datetime.fromtimestamp(int(line.split()[1]), timezone.utc).date().isoformat()
        elif line == "boundary":  # of a shallow clone: the line is older
            day = ""
        elif line.startswith("\t"):
            said = line[1:]
            if file.suffix == ".ipynb":
                said = _unquoted(said)
            days[said] = max(day, days.get(said, ""))
    return days


def _unquoted(line: str) -> str:
    try:
        return str(json.loads(line.strip().removesuffix(","))).rstrip("\n")
    except ValueError:
        return ""


def _day(days: Mapping[str, str], text: str) -> str:
    """The last day on which one of these lines was written, in words."""
    last = max((days.get(line, "") for line in text.splitlines() if line), default="")
    return _said(last) if last else "day not known"


def _said(day: str) -> str:
    found = date.fromisoformat(day)
    return f"{found.day} {found:%B %Y}"


def _verified(root: Path) -> str:
    entries = verified.read(root)
    text = (
        "# When each page was last verified\n\n"
        "On this day the page ran from its first cell to its last, and every output that does not "
        "depend on the machine was the stored one.\n"
    )
    pages = [page for page in find_pages(root) if page.target.exists()]
    for kind, heading in (
        ("lesson", "Lessons"),
        ("lab", "Labs"),
        ("solution", "Solutions of labs"),
    ):
        rows = []
        for page in pages:
            if page.kind == kind:
                title = _title(page)
                link = f"[{title}]({page.target.relative_to(root).as_posix()})"
                rows.append((title if kind == "solution" else link, *_said_of(page, entries)))
        text += f"\n## {heading}\n\n{_table(('page', 'day', 'on'), rows)}" if rows else ""
    return text


def _said_of(page: Page, entries: Mapping[str, verified.Entry]) -> tuple[str, str]:
    """The day of a page's entry, and the versions."""
    entry = entries.get(verified.key(page))
    if entry is None:
        return "not yet", ""
    changed = "" if entry.code == verified.code(page) else ", its code has changed since"
    versions = f"Python {entry.python}<br>Relay {entry.relay}<br>Relax {entry.relax}"
    return f"{_said(entry.date)}{changed}", versions


def _title(page: Page) -> str:
    """The heading of a page."""
    cells = nbformat.read(page.target, 4).cells
    return next(text for cell in cells for level, text in headings(cell.source) if level == 1)


# --- Markdown ------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(
        f"| {' | '.join(c.replace('|', chr(92) + '|') for c in line)} |\n" for line in lines
    )


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


def _yaml(root: Path, name: str) -> Any:
    return yaml.safe_load((root / "book" / name).read_text(encoding="utf-8"))
