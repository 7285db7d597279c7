"""From a lesson's notebook to its slides.

The cells with ``slideshow: {slide_type: slide}`` make slides, in their order. What is not shown of
a Markdown cell, and all cells between two slides, are what the speaker says: the notes.
"""

from __future__ import annotations

import base64
import html
import math
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers import quiz
from helpers.errors import WorkbookError
from helpers.teaching_paths import Reveal
from tools import figures
from tools.slides.choose import MARKDOWN, Segment, length, segments, shown

WIDTH, HEIGHT = 1180, 540
"""Room for the content of a slide of 1280 x 720, in its pixels."""
CODE_SIZES = range(24, 15, -1)
CODE_LINE, CODE_WIDTH = 1.3, 0.605  # of the size: a line, a character of DejaVu Sans Mono
FEW_LINES = 7
TEXT_LINE = 37
WITH_BREAKS = 20
"""Where a line has to be broken, letters are not larger than this."""
LARGEST = 1.7  # a figure is not made larger than this
KEYS = {"slide_type", "show", "code", "text", "figure", "ask"}
LABELS = {
    "idea": "The idea",
    "predict": "Predict",
    "output": "What came out",
    "meaning": "What it shows",
    "belief": "A belief",
    "question": "Question",
    "take-away": "Take-away",
    "part": "Next",
}


@dataclass
class Slide:
    """``kind`` is a key of :data:`LABELS` or ``title``; ``body`` is HTML, ``notes`` Markdown."""

    step: str
    kind: str
    title: str
    body: str
    cell: str
    notes: list[str] = field(default_factory=list)
    question: str = ""
    reveals: str = ""
    """The cell that answers a prediction, where it is known what to ask before it."""
    room: float = 0
    """Pixels that are free below, where a sentence on what came out may stand."""
    smallest: float = math.inf
    """How many pixels high the text of its figure is, about."""

    @property
    def label(self) -> str:
        """What kind of slide it is, in words."""
        return LABELS.get(self.kind, "")

    @property
    def heading(self) -> str:
        """The title as HTML."""
        return MARKDOWN.renderInline(self.title)

    @property
    def notes_html(self) -> str:
        """What the speaker sees."""
        return without_links(MARKDOWN.render("\n\n".join(self.notes)))


def without_links(rendered: str) -> str:
    """HTML whose links are text: a slide has nowhere to go to."""
    return re.sub(r"</?a\b[^>]*>", "", rendered)


def deck(
    notebook: NotebookNode,
    number: str,
    asked: Mapping[str, Reveal],
    vectors: Path | None = None,
) -> list[Slide]:
    """The slides of lesson ``"03"``.

    ``asked`` has what to ask before a cell reveals something, by the cell's name: a cell whose
    question no prediction asks gets a slide with it. ``vectors`` is the folder of the SVGs.

    Raises :class:`WorkbookError` when what a cell wants to show is not there or does not fit.
    """
    return _Maker(number, asked, vectors).make(notebook)


class _Maker:
    def __init__(self, number: str, asked: Mapping[str, Reveal], vectors: Path | None) -> None:
        self.number, self.asked, self.vectors = number, asked, vectors
        self.place = 0
        self.section = ""
        self.slides: list[Slide] = []

    def make(self, notebook: NotebookNode) -> list[Slide]:
        for index, cell in enumerate(notebook.cells):
            wants = cell.metadata.get("slideshow", {})
            if unknown := set(wants) - KEYS:
                raise WorkbookError(
                    f"Lesson {self.number}, cell {cell.id!r}: slideshow has the unknown key "
                    f"{sorted(unknown)[0]!r}; there are {', '.join(sorted(KEYS))}."
                )
            chosen = wants.get("slide_type") == "slide"
            if index == 0:
                self._title(cell)
            elif cell.cell_type == "markdown":
                self._text(cell, wants if chosen else None)
            elif chosen:
                self._code(cell, wants)
        return self.slides

    @property
    def step(self) -> str:
        return f"{self.number}.{self.place}"

    def _add(self, kind: str, title: str, body: str, cell: str, **more: Any) -> Slide:
        self.slides.append(Slide(self.step, kind, title, body, cell, **more))
        return self.slides[-1]

    def _title(self, cell: NotebookNode) -> None:
        (segment,) = segments(cell.source)
        leads = [b.text for b in segment.blocks if re.match(r"\*\*You will", b.text)]
        self.section = segment.heading
        body = without_links(MARKDOWN.render("\n\n".join(leads)))
        self._add("title", segment.heading, body, cell.id, notes=[segment.text])

    def _text(self, cell: NotebookNode, wants: Mapping[str, Any] | None) -> None:
        used: set[str] = set()
        beginnings = None if wants is None else wants.get("show")
        for segment in segments(cell.source):
            if segment.level == 2 and segment.heading != self.section:
                self.place += 1
                self.section = segment.heading
            text = "" if wants is None else shown(segment, beginnings, used)
            if text:
                kind = "belief" if re.search("^> ", text, re.M) else self._kind(segment)
                last = self.slides[-1]
                needs = TEXT_LINE * (length(text) + 0.5)
                if (kind, last.kind) == ("meaning", "output") and needs <= last.room:
                    last.body += _text(text, later=True)
                    last.room = 0
                else:
                    self._add(kind, self.section, _text(text, huge=kind == "predict"), cell.id)
            self.slides[-1].notes.append(segment.text)
        if missing := set(beginnings or ()) - used:
            raise WorkbookError(
                f"Lesson {self.number}, cell {cell.id!r}: nothing there begins with "
                f"{sorted(missing)[0]!r}, which its slide is to show."
            )

    def _kind(self, segment: Segment) -> str:
        if segment.predicts:
            return "predict"
        if not segment.heading:
            return "meaning"
        if self.section == "Take-away":
            return "take-away"
        return "belief" if "belief" in self.section.lower() else "idea"

    def _code(self, cell: NotebookNode, wants: Mapping[str, Any]) -> None:
        if asked := re.match(r'quiz\.ask\("(\d\d)"\)', cell.source):
            self._questions(cell, asked[1], wants.get("ask"))
            return
        if cell.execution_count is None:
            raise WorkbookError(
                f"Lesson {self.number}, cell {cell.id!r} has not been run: build the page with its "
                "outputs, python -m tools.build_notebooks."
            )
        if reveal := self.asked.get(cell.id):
            self._ask(cell, reveal)
        drawn = list(_figures(cell, self.vectors))
        text = _printed(cell)
        explicit = {"code", "text", "figure"} & set(wants)
        show_code: Any = wants.get("code", False)
        show_text: Any = wants.get("text", not explicit and not drawn)
        show_figure: Any = wants.get("figure", not explicit and bool(drawn))
        panes = []
        if show_code:
            panes.append(("code", _lines(cell.source, show_code)))
        if show_text and text:
            panes.append(("printed", _lines(text, show_text)))
        for group in _fitting(panes):
            size = _size(group)
            if size is None:
                raise WorkbookError(
                    f"Lesson {self.number}, cell {cell.id!r}: what it shows does not fit on a "
                    'slide: choose lines, as in "text": "1-20".'
                )
            room = HEIGHT - _height(group, size)
            self._add("output", self.section, _panes(group, size), cell.id, room=room)
        for place, figure in enumerate(drawn, 1):
            if show_figure is True or show_figure == place or place in _list(show_figure):
                body, scale = figure.body()
                slide = self._add("output", self.section, body, cell.id, smallest=16.8 * scale)
                slide.notes.append(figure.alt)
        if not panes and not (show_figure and drawn):
            raise WorkbookError(
                f"Lesson {self.number}, cell {cell.id!r} has nothing to show on its slide."
            )

    def _ask(self, cell: NotebookNode, reveal: Reveal) -> None:
        last = self.slides[-1]
        if last.kind != "predict" or last.step != self.step:
            last = self._add("predict", self.section, _text(reveal.question, huge=True), cell.id)
        wrong = "\n".join(f"- {answer}: {means}" for answer, means in reveal.expect.items())
        last.notes.append(
            f"**Ask.** {reveal.question}\n\n**It will be** {reveal.right}. {reveal.why}\n\n"
            f"**Other answers**\n\n{wrong}"
        )
        last.reveals = cell.id

    def _questions(self, cell: NotebookNode, number: str, ask: list[str] | None) -> None:
        bank = {question.id: question for question in quiz.lesson(number)}
        for name in ask if ask is not None else _handy(bank):
            if name not in bank:
                raise WorkbookError(f"Lesson {self.number} has no question {name!r} to ask.")
            self.slides.append(question_slide(bank[name], self.step, cell.id))


def question_slide(question: quiz.Question, step: str, cell: str = "") -> Slide:
    """A question of a quiz, whose answer comes at the next key."""
    answer = quiz.explain(question)
    notes = [answer.said, *(f"{letter} {why}".strip() for letter, why in answer.reasons)]
    return Slide(
        step,
        "question",
        f"Question {question.id}",
        _question(question),
        cell,
        notes=notes,
        question=question.id,
    )


def _text(markdown: str, *, later: bool = False, huge: bool = False) -> str:
    """A few sentences as HTML: in larger letters where there is room, ``later`` at the next key."""
    lines = length(markdown)
    if later:
        more = " fragment"
    else:
        more = " huge" if huge and lines <= 4 else " large" if lines <= FEW_LINES else ""
    return f'<div class="text{more}">{without_links(MARKDOWN.render(markdown))}</div>'


# --- outputs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A figure of an output: its data by MIME type, and what it shows in words."""

    png: bytes
    svg: str
    alt: str

    def body(self) -> tuple[str, float]:
        """An ``<img>`` that fits on a slide, and how much larger than in the notebook it is."""
        width, height = struct.unpack(">II", self.png[16:24])
        scale = min(WIDTH / width, HEIGHT / height, LARGEST)
        kind, data = ("svg+xml", self.svg.encode()) if self.svg else ("png", self.png)
        source = f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
        size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
        alt = html.escape(self.alt, quote=True)
        return f'<div class="figure"><img {size} alt="{alt}" src="{source}"></div>', scale


def _figures(cell: NotebookNode, vectors: Path | None) -> Iterator[Figure]:
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            png = data["image/png"]
            file = vectors / figures.name(cell, png) if vectors else None
            svg = file.read_text(encoding="utf-8") if file and file.exists() else ""
            yield Figure(base64.b64decode(png), svg, str(data["text/plain"]))


def _printed(cell: NotebookNode) -> str:
    """What the cell printed or raised, without the figures and their folded descriptions."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            texts.append(output.text.rstrip("\n"))
        elif output.output_type == "error":
            texts.append(f"{output.ename}: {output.evalue}")
        elif set(output.data) == {"text/plain"}:
            texts.append(output.data["text/plain"])
    # A stored page has no predictions: the column for them stays, without a remark in each line.
    return "\n".join(
        re.sub(" +no prediction yet$", "", line) for text in texts for line in text.splitlines()
    )


def _list(value: Any) -> list[int]:
    return value if isinstance(value, list) else []


def _lines(text: str, which: Any) -> str:
    """All lines, or those of ``"1-4,9"``; three dots stand for what is left out between."""
    lines = text.splitlines()
    if which is True:
        return "\n".join(lines)
    out: list[str] = []
    last = 0
    for part in str(which).split(","):
        first, _, end = part.strip().partition("-")
        begin, stop = int(first), int(end or first)
        if begin < 1 or stop > len(lines):
            raise WorkbookError(f"There are {len(lines)} lines, not {part.strip()}: {lines[0]!r}")
        if begin > last + 1 and out:
            out.append("...")
        out += lines[begin - 1 : stop]
        last = stop
    return "\n".join(out)


def _rows(text: str, size: int) -> int:
    across = int((WIDTH - 40) / (CODE_WIDTH * size))
    return sum(max(1, math.ceil(len(line) / across)) for line in text.splitlines())


def _size(group: list[tuple[str, str]]) -> int | None:
    """The largest size of letters at which the panes fit; no line is broken if that can be."""
    fits = [size for size in CODE_SIZES if _height(group, size) <= HEIGHT]
    lines = [line for _, text in group for line in text.splitlines()]
    whole = [size for size in fits if sum(_rows(line, size) for line in lines) == len(lines)]
    broken = [size for size in fits if size <= WITH_BREAKS]
    return next((size for size in whole if size > CODE_SIZES[-1]), next(iter(broken), None))


def _height(group: list[tuple[str, str]], size: int) -> float:
    rows = sum(_rows(text, size) for _, text in group)
    return 46 * len(group) + rows * CODE_LINE * size


def _fitting(panes: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Code and what it printed on one slide if that is readable, else on two."""
    together = _size(panes) if panes else None
    return [panes] if together is not None and together >= 18 else [[pane] for pane in panes]


def _panes(group: list[tuple[str, str]], size: int) -> str:
    made: list[str] = []
    for kind, text in group:
        if kind == "code":
            inner = highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
        else:
            inner = html.escape(text)
        later = " fragment" if made else ""
        made.append(f'<pre class="{kind}{later}" style="font-size: {size}px">{inner}</pre>')
    return "".join(made)


# --- questions -----------------------------------------------------------------------------------


def _letters(question: quiz.Question) -> int:
    return len(question.question) + sum(len(option.text) + 30 for option in question.options)


def _handy(bank: Mapping[str, quiz.Question]) -> list[str]:
    """Two questions that fit on a slide, those about a belief first."""
    short = [q for q in bank.values() if _letters(q) < 560 and q.code.count("\n") < 6]
    ranked = sorted(short, key=lambda q: (not q.belief, q.kind == "number"))
    return sorted(question.id for question in ranked[:2])


def _inline(text: str) -> str:
    return without_links(MARKDOWN.renderInline(" ".join(text.split())))


def _question(question: quiz.Question) -> str:
    parts = [f"<p>{_inline(question.question)}</p>"]
    if question.code:
        code = highlight(question.code, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
        parts.append(f'<pre class="code" style="font-size: 18px">{code}</pre>')
    if question.options:
        items = "".join(f"<li>{_inline(option.text)}</li>" for option in question.options)
        parts.append(f'<ol class="options">{items}</ol>')
    answer = quiz.explain(question)
    options = zip(question.letters, question.options, strict=True)
    right = [f"{letter}: {option.why}" for letter, option in options if option.right]
    why = " ".join(right).removeprefix("" if len(right) > 1 else answer.said[-2] + ": ")
    why = why or question.why
    parts.append(
        f'<p class="answer fragment"><strong>{_inline(answer.said)}</strong> {_inline(why)}</p>'
    )
    return f'<div class="text question">{"".join(parts)}</div>'
