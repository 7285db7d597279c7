"""Make the slides: ``python -m tools.slides [03 ...]`` writes ``.state/slides/NN_topic.html``."""

from __future__ import annotations

import argparse
import html
import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader
from pygments.formatters import HtmlFormatter

from helpers import teaching_paths
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from tools import figures
from tools.slides.deck import Slide, deck

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


def page(title: str, slides: list[Slide]) -> str:
    """A deck as an HTML page, which needs the assets beside it. A step is a column of slides."""
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=False)
    steps = [(step, list(group)) for step, group in groupby(slides, key=lambda one: one.step)]
    return environment.get_template("deck.html").render(title=html.escape(title), steps=steps)


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
    if not numbers:
        shutil.rmtree(out, ignore_errors=True)
    write_assets(out / "assets")
    for number in numbers or known:
        slides = read(known[number])
        target = out / f"{known[number].stem}.html"
        target.write_text(page(slides[0].title, slides), encoding="utf-8")
        print(f"{len(slides):>3} slides  {target.relative_to(ROOT)}")


def install() -> None:
    """Fetch reveal.js and MathJax on first use."""
    uv = shutil.which("uv")
    ready = [sys.executable, str(ROOT / "setup" / "install.py"), "--slides"]
    if subprocess.run([*ready, *(["--uv", uv] if uv else [])], check=False).returncode:
        raise SystemExit(1)


def main(arguments: list[str] | None = None) -> int:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.slides", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="a lesson, e.g. 03; all if none")
    options = parser.parse_args(arguments)
    install()
    write(options.lessons)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
