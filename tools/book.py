"""Build the book from what is stored: ``python -m tools.book`` (``make book``).

The pages are put together in ``.state/book/src``, and jupyter-book makes the site
``.state/book/_build/html`` of them. Nothing is executed, and a warning ends the build.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from helpers import lesson_steps, teaching_paths
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from helpers.teaching_paths import Part, TeachingPath
from tools import book_pages, extras, figures, verified
from tools.pages import Page, as_text, find_pages, headings

BOOK = ROOT / ".state" / "book"
SITE = BOOK / "_build" / "html"
ENVIRONMENT = ROOT / ".deps" / "book"
MATHJAX = "lib/python*/site-packages/mathjax/static/mathjax/es5"
MATHJAX_PARTS = ("tex-chtml-full.js", "output/chtml/fonts/woff-v2/*.woff")


# --- the pages -----------------------------------------------------------------------------------


def stage(folder: Path, root: Path = ROOT) -> None:
    """Make the source of the book in ``folder``, anew.

    The pages keep their places in the workbook, so that the links between them hold.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "book" / "assets", folder / "assets")
    shutil.copy(root / "book" / "_config.yml", folder)
    pages = [p for p in find_pages(root) if p.kind != "solution" and p.target.exists()]
    read = {page: nbformat.read(page.target, 4) for page in pages}
    entries = verified.read(root)
    for page, notebook in read.items():
        lab = next((p for p in pages if p.kind == "lab" and p.name == page.name), None)
        need, minutes = _need(notebook)
        facts = [f"{minutes} minutes"]
        if page.kind == "lesson":
            facts.append(_before(need))
            facts += [f"[the lab]({_path(lab, root, up=1)})"] if lab else ["no lab"]
        entry = entries.get(verified.key(page))
        if entry and entry.code == verified.code(page):
            facts.append(_checked(entry))
        place = page.target.relative_to(root)
        up = "../" * (len(place.parts) - 1)
        _add_facts(notebook, facts)
        _use_vectors(notebook, page, f"{up}_static/figures/{page.name}/")
        _write(folder / place, as_text(notebook))
        if figures.folder(page.target).is_dir() and page.kind == "lesson":
            shutil.copytree(figures.folder(page.target), folder / "assets" / "figures" / page.name)
    files = {f"{p.kind} {p.name[:2]}": _path(p, root) for p in pages}
    ways = map(teaching_paths.load, teaching_paths.names())
    written = {f"paths/{way.name}.md": _way(way, files) for way in ways} | book_pages.pages(root)
    for name, text in written.items():
        _write(folder / name, text)
    start = (root / "book" / "index.md").read_text(encoding="utf-8")
    _write(folder / "index.md", f"{start}\n{_contents(read, root)}")
    _write(folder / "_toc.yml", yaml.safe_dump(_toc(pages, [*written], root), sort_keys=False))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _path(page: Page, root: Path, up: int = 0) -> str:
    return "../" * up + page.target.relative_to(root).as_posix()


def _ship_mathjax(folder: Path) -> None:
    for source in ENVIRONMENT.glob(MATHJAX):
        for part in MATHJAX_PARTS:
            for file in source.glob(part):
                target = folder / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)


def _title(notebook: NotebookNode) -> str:
    """The heading of level 1."""
    return next(
        text for cell in notebook.cells for level, text in headings(cell.source) if level == 1
    )


def _need(notebook: NotebookNode) -> tuple[str, str]:
    """What the page needs, and its minutes, from *You need* in its first cell.

    Raises :class:`WorkbookError` when they do not stand there.
    """
    text = notebook.cells[0].source
    found = re.search(r"\*\*You need\.\*\*\s+(.*?)About (\d+)\s+minutes", text, re.DOTALL)
    if not found:
        raise WorkbookError(
            f"{_title(notebook)}: the first cell does not say how long the page takes: write "
            "'About 60 minutes.' at the end of what it needs."
        )
    return found[1], found[2]


def _before(need: str) -> str:
    """The lessons that a lesson's need links to, or what it says first."""
    links = re.findall(r"\]\((\d\d)(_\w+\.ipynb)\)", need)
    if links:
        named = ", ".join(f"[{number}]({number}{rest})" for number, rest in links)
        return f"after lesson{'s' if len(links) > 1 else ''} {named}"
    said = " ".join(need.split(". ")[0].split())
    return f"after l{said[1:]}" if said.startswith("Lesson") else f"needs {said}"


def _checked(entry: verified.Entry) -> str:
    day = date.fromisoformat(entry.date)
    return (
        f"last verified on {day.day} {day:%B %Y}, Python {entry.python}, Relay {entry.relay}, "
        f"Relax {entry.relax}"
    )


def _add_facts(notebook: NotebookNode, facts: list[str]) -> None:
    first = notebook.cells[0]
    heading, _, rest = first.source.partition("\n")
    lines = "\n".join(f"- {fact}" for fact in facts)
    first.source = f"{heading}\n\n:::{{div}} page-facts\n{lines}\n:::\n{rest}"


def _use_vectors(notebook: NotebookNode, page: Page, folder: str) -> None:
    """Show figures as SVG with alt text, each a link to itself alone; PNG where there is none."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if figures.PNG not in output.get("data", {}):
                continue
            png = output.data.pop(figures.PNG)
            file = figures.folder(page.target) / figures.name(cell, png)
            alt = html.escape(output.data["text/plain"], quote=True)
            if file.exists():
                wide, high = figures.size(file.read_text(encoding="utf-8"))
                picture = (
                    f'<img alt="{alt}" src="{folder}{file.name}" width="{wide}" height="{high}">'
                )
                picture = f'<a class="figure" href="{folder}{file.name}">{picture}</a>'
            else:
                picture = f'<img alt="{alt}" src="data:image/png;base64,{png}">'
            output.data["text/html"] = picture
            output.metadata = {}


def _way(path: TeachingPath, files: Mapping[str, str]) -> str:
    """A path as a learner reads it: in which order, how long, which sections; no answers."""
    lines = [f"# {path.title}", "", path.summary, ""]
    for session in path.sessions:
        if len(path.sessions) > 1:
            lines += [f"## {session.title}", ""]
        lines += [f"{session.minutes} minutes. {session.aim}".rstrip(), ""]
        lines += ["| begins after | minutes | part | sections |", "| --: | --: | --- | --- |"]
        for now, part in session.clock():
            begins = "at home" if part.home else f"{now // 60}:{now % 60:02}"
            lines.append(f"| {begins} | {part.minutes} | {part.title} | {_sections(part, files)} |")
        lines.append("")
    return "\n".join(lines)


def _sections(part: Part, files: Mapping[str, str]) -> str:
    """Links to the sections of a lesson, or to the lab, that a part is about."""
    if part.lab:
        return f"[lab {part.lab}](../{files['lab ' + part.lab]})"
    if not part.lesson:
        return ""
    file = files[f"lesson {part.lesson}"]
    if not part.steps:
        return f"[lesson {part.lesson}](../{file})"
    titles = {step.name: step.title for step in lesson_steps.steps(part.lesson)}
    links = []
    for name in part.steps:
        place = "" if name.endswith(".0") else f"#{book_pages.slug(titles[name])}"
        links.append(f"{name} [{titles[name]}](../{file}{place})")
    return "<br>".join(links)


def _contents(read: Mapping[Page, NotebookNode], root: Path) -> str:
    labs = {page.name: page for page in read if page.kind == "lab"}
    lines = [
        "## Lessons and labs",
        "",
        "| lesson | minutes | lab | minutes |",
        "| --- | --: | --- | --: |",
    ]
    for page, notebook in read.items():
        if page.kind == "lesson":
            lab = labs.get(page.name)
            cells = [f"[{_title(notebook)}]({_path(page, root)})", _need(notebook)[1]]
            if lab:
                name = _title(read[lab]).partition("· ")[2]
                cells += [f"[{name}]({_path(lab, root)})", _need(read[lab])[1]]
            else:
                cells += ["", ""]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _toc(pages: list[Page], written: list[str], root: Path) -> dict[str, Any]:
    labs = {page.name: page for page in pages if page.kind == "lab"}
    lessons: list[dict[str, Any]] = []
    for page in pages:
        if page.kind == "lesson":
            entry: dict[str, Any] = {"file": _path(page, root)}
            if page.name in labs:
                entry["sections"] = [{"file": _path(labs[page.name], root)}]
            lessons.append(entry)
    parts = [{"caption": "Lessons and labs", "chapters": lessons}]
    ways = [name for name in written if name.startswith("paths/")]
    for caption, names in (
        ("Ways through the workbook", ways),
        ("To look up", [name for name in written if name not in ways]),
    ):
        if names:
            parts.append({"caption": caption, "chapters": [{"file": name} for name in names]})
    return {"format": "jb-book", "root": "index", "parts": parts}


# --- the site ------------------------------------------------------------------------------------


def build(folder: Path = BOOK, root: Path = ROOT) -> None:
    """Make the site in ``folder/_build/html``. Raises :class:`WorkbookError` on a warning."""
    stage(folder / "src", root)
    _ship_mathjax(folder / "src" / "assets" / "mathjax")
    shutil.rmtree(
        folder / "_build", ignore_errors=True
    )  # a page left as it is would not warn again
    program = str(ENVIRONMENT / "bin" / "jupyter-book")
    command = [program, "build", str(folder / "src"), "--path-output", str(folder)]
    options = ["-W", "-n", "--keep-going", "-q"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stderr.strip() or done.stdout.strip())
        said = said.replace(f"{folder / 'src'}/", "")
        raise WorkbookError(f"{said}\nThe book is not built: mend what the lines above name.")


def main() -> int:
    """Entry of the command line; returns the exit status."""
    if code := extras.install("--book"):
        return code
    build()
    pages = len([file for file in SITE.rglob("*.html") if "_static" not in file.parts])
    size = sum(file.stat().st_size for file in SITE.rglob("*") if file.is_file())
    print(f"{pages} pages, {size / 1e6:.0f} MB: {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
