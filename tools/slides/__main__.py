"""Make the slides: ``python -m tools.slides [03 ...]`` writes ``.state/slides/NN_topic.html``.

``--course three_hours`` writes one deck for each session of a teaching path.
"""

from __future__ import annotations

import argparse
import html
import shutil
import sys
from itertools import groupby
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader
from pygments.formatters import HtmlFormatter

from helpers import quiz, teaching_paths
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from tools import extras, figures
from tools.slides.deck import Slide, deck, question_slide

HERE = Path(__file__).parent
OUT = ROOT / ".state" / "slides"
WHEELS = ROOT / ".deps" / "slides"
ASSETS = {
    "reveal.css": "sphinx_revealjs/_static/revealjs/dist/reveal.css",
    "reveal.js": "sphinx_revealjs/_static/revealjs/dist/reveal.js",
    "notes.js": "sphinx_revealjs/_static/revealjs/plugin/notes/notes.js",
    "mathjax.js": "sphinx-mathjax-offline/static/mathjax/tex-svg.js",
}


def lessons(root: Path = ROOT) -> dict[str, Path]:
    """The notebook of each lesson by its number, ``"03"``."""
    return {path.stem[:2]: path for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))}


def read(path: Path) -> list[Slide]:
    """The slides of one lesson's notebook."""
    number = path.stem[:2]
    asked = teaching_paths.reveals().get(number, {})
    return deck(nbformat.read(path, 4), number, asked, figures.folder(path))


def sessions(name: str) -> list[tuple[str, list[Slide]]]:
    """The decks of a teaching path, one a session: its title and its slides.

    A slide of its own begins each part, the first with the aim of the session. Then come the
    slides of the part's steps, and the questions that it asks. Homework has no slides.
    """
    path = teaching_paths.load(name)
    known = lessons()
    made = []
    for session in path.sessions:
        slides: list[Slide] = []
        for minute, part in session.clock():
            if part.home:
                continue
            clock = f"{minute // 60}:{minute % 60:02}"
            title = f"{part.title} ({part.minutes} min)"
            notes = [part.say, f"**When late.** {part.cut}" if part.cut else ""]
            said = [_where(part)] if slides else [session.aim, _where(part)]
            lines = "".join(f"<p>{html.escape(line)}</p>" for line in said if line)
            body = f'<div class="text huge">{lines}</div>'
            slides.append(Slide(clock, "part", title, body, "", notes=notes))
            if part.lesson:
                taken = [s for s in read(known[part.lesson]) if s.kind != "question"]
                slides += [s for s in taken if not part.steps or s.step in part.steps]
            for question in part.questions if part.lesson else ():
                slides.append(question_slide(quiz.find(question), slides[-1].step))
        made.append((f"{path.title}: {session.title}", slides))
    return made


def _where(part: teaching_paths.Part) -> str:
    """What the room opens."""
    if part.lab:
        return f"Open lab {part.lab}."
    return f"Open lesson {part.lesson}." if part.lesson else ""


def page(title: str, slides: list[Slide]) -> str:
    """A deck as an HTML page, which needs the assets beside it. A step is a column of slides."""
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=False)
    steps = [list(group) for _, group in groupby(slides, key=lambda one: one.step)]
    first = {slides[0].step: slides[0] for slides in reversed(steps)}
    return environment.get_template("deck.html").render(
        title=html.escape(title), steps=steps, first=first
    )


def write_assets(folder: Path) -> None:
    """Put what all decks share into ``folder``: reveal.js, MathJax and the look."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in ASSETS.items():
        shutil.copyfile(WHEELS / source, folder / name)
    colours = HtmlFormatter(style="friendly").get_style_defs(".code")
    (folder / "look.css").write_text((HERE / "look.css").read_text() + colours + "\n")


def write(numbers: list[str], out: Path = OUT) -> None:
    """Write the decks of some lessons, or of all, and say how many slides each has."""
    known = lessons()
    for number in numbers:
        if number not in known:
            raise WorkbookError(f'There is no lesson "{number}", only {", ".join(known)}.')
    for number in numbers or known:
        slides = read(known[number])
        _write(out / f"{known[number].stem}.html", slides[0].title, slides)


def write_course(name: str, out: Path = OUT) -> None:
    """Write the decks of a teaching path."""
    made = sessions(name)
    for number, (title, slides) in enumerate(made, 1):
        _write(out / f"{name}{f'_{number:02}' if len(made) > 1 else ''}.html", title, slides)


def _write(target: Path, title: str, slides: list[Slide]) -> None:
    write_assets(target.parent / "assets")
    target.write_text(page(title, slides), encoding="utf-8")
    print(f"{len(slides):>3} slides  {target}")


def install() -> None:
    """Fetch reveal.js and MathJax on first use."""
    if extras.install("--slides"):
        raise SystemExit(1)


def main(arguments: list[str] | None = None) -> int:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.slides", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="a lesson, e.g. 03; all if none")
    parser.add_argument("--course", help="a teaching path, e.g. three_hours, in place of lessons")
    options = parser.parse_args(arguments)
    install()
    if options.course:
        write_course(options.course)
    else:
        write(options.lessons)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
