"""The steps of a lesson, and the way back into one: ``checkpoint("03.4")``.

A step is a section of a lesson: 03.0 is the title with the setup cell, 03.1 the first ``##``
section. They are read from ``notebooks/src``, never from the learner's notebook, which may be half
edited.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import re
import symtable
import sys
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.errors import WorkbookError
from helpers.kernels import ROOT
from helpers.tvm_builds import use_tvm

SOURCES = ROOT / "notebooks" / "src"
# IPython puts these into every notebook under the name of a builtin.
_IPYTHON = ("open", "exit", "quit")


@dataclass(frozen=True)
class Cell:
    """A code cell: its source, its name if it has one, and its tags."""

    source: str
    name: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A section: ``name`` is ``"03.4"``, ``title`` its heading."""

    name: str
    title: str
    cells: tuple[Cell, ...] = ()

    @property
    def code(self) -> tuple[str, ...]:
        """The sources of its code cells."""
        return tuple(cell.source for cell in self.cells)


def lessons(folder: Path = SOURCES) -> dict[str, Path]:
    """The source of each lesson by its number, ``"03"``."""
    return {path.stem[:2]: path for path in sorted(folder.glob("[0-9][0-9]_*.md"))}


def steps(lesson: str, folder: Path = SOURCES) -> list[Step]:
    """The steps of lesson ``"03"``. Raises :class:`WorkbookError` when there is no such lesson."""
    from markdown_it import MarkdownIt  # only here: `import helpers` needs no package

    known = lessons(folder)
    if lesson not in known:
        raise WorkbookError(
            f'There is no lesson "{lesson}"; there are {", ".join(known)}: write, for example, '
            'checkpoint("03.4").'
        )
    found: list[tuple[str, list[Cell]]] = []
    tokens = MarkdownIt("commonmark").parse(known[lesson].read_text(encoding="utf-8"))
    for token, inline in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and token.tag in ("h1", "h2") and inline is not None:
            found.append((inline.content, []))
        elif token.type == "fence" and token.info.strip() == "{code-cell}":
            found[-1][1].append(_cell(token.content))
    return [
        Step(f"{lesson}.{number}", title, tuple(cells))
        for number, (title, cells) in enumerate(found)
    ]


def _cell(text: str) -> Cell:
    """A ``{code-cell}`` block: options, one blank line, the source."""
    options = {}
    while found := re.match(r":(\w+): *(.*)\n", text):
        options[found[1]] = found[2].strip()
        text = text[found.end() :]
    tags = re.findall(r"[\w-]+", options.get("tags", ""))
    return Cell(text.strip("\n"), options.get("name", ""), tuple(tags))


def find(name: str, folder: Path = SOURCES) -> tuple[list[Step], Step]:
    """The steps before ``"03.4"``, and that step; :class:`WorkbookError` names the nearest."""
    number, _, place_text = name.partition(".")
    lesson, place = number.zfill(2), int(place_text)
    there = steps(lesson, folder)
    if place >= len(there):
        raise WorkbookError(
            f'There is no step "{lesson}.{place}": the nearest is "{there[-1].name}" '
            f'({there[-1].title}); checkpoint("{lesson}") lists all of lesson {lesson}.'
        )
    return there[:place], there[place]


def table(which: str = "", folder: Path = SOURCES) -> str:
    """The steps of one lesson, or of all, one a line."""
    chosen = [which.zfill(2)] if which else list(lessons(folder))
    lines = [[f"{s.name:<6} {s.title}" for s in steps(lesson, folder)] for lesson in chosen]
    return "\n\n".join("\n".join(block) for block in lines)


def checkpoint(step: str = "") -> None:
    """Put this notebook into the state in which a step of a lesson begins: ``checkpoint("03.4")``.

    Runs the code of all steps before it, as it was given out, and shows none of it; cells that only
    measure a time are left out. Names of your own stay, unless the lesson defines them or they hide
    one of Python's own, as ``sum = 3`` does. No prediction and no answer counts as yours, and no
    notebook is changed.
    ``checkpoint("03")`` lists the steps of a lesson, ``checkpoint()`` those of all.

    Raises :class:`WorkbookError` when there is no such step, or when this kernel uses the other TVM
    or something else that no cell can take back: restart it then.
    """
    if not isinstance(step, str):
        raise WorkbookError(f'Write the step in quotes: checkpoint("03.4"), not {step!r}.')
    step = step.strip()
    if not re.fullmatch(r"(\d{1,2}(\.\d+)?)?", step):
        raise WorkbookError(
            f'"{step}" names no step, which is a lesson, a dot and a number: write, for example, '
            'checkpoint("03.4"), or checkpoint("03") for a list.'
        )
    if "." not in step:
        print(table(step))
        return
    before, wanted = find(step)
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    start = time.monotonic()
    lesson = steps(wanted.name[:2])
    _choose_tvm(lesson, wanted)
    _run(before, frame.f_back.f_globals, skipped=_measuring(lesson))
    print(f"{wanted.name} {wanted.title}: ready, in {time.monotonic() - start:.0f} s")


def _choose_tvm(lesson: Iterable[Step], wanted: Step) -> None:
    """Choose the TVM that the lesson's own first call of ``use_tvm`` chooses."""
    code = "\n".join(source for step in lesson for source in step.code)
    found = re.search(r"^use_tvm\(\"(\w+)\"\)", code, re.M)
    if found is None:
        return
    try:
        use_tvm(found[1], quiet=True)
    except WorkbookError as error:
        if "tvm" not in sys.modules:
            raise
        raise WorkbookError(
            f"Lesson {wanted.name[:2]} uses the TVM with {found[1].capitalize()}, and this kernel "
            f'has imported the other one: restart it, then run checkpoint("{wanted.name}") first.'
        ) from error


def _measuring(lesson: Iterable[Step]) -> set[Cell]:
    """The cells that only measure a time: their output differs from run to run, as their tag says,
    they change nothing that is there, and no later cell uses a name of theirs.
    """
    found: set[Cell] = set()
    later: set[str] = set()
    for cell in reversed([cell for step in lesson for cell in step.cells]):
        nodes = list(ast.walk(ast.parse(cell.source)))
        parts = [node for node in nodes if isinstance(node, (ast.Subscript, ast.Attribute))]
        changes = any(not isinstance(part.ctx, ast.Load) for part in parts)
        symbols = symtable.symtable(cell.source, cell.name, "exec").get_symbols()
        given = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
        if "nbval-ignore-output" in cell.tags and not changes and not given & later:
            found.add(cell)
        later |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return found


def _run(before: Iterable[Step], namespace: dict[str, Any], skipped: Container[Cell]) -> None:
    """Run steps in ``namespace`` and in the lessons' folder, and drop all that they show."""
    from IPython.utils.capture import capture_output  # a terminal has no need of it

    for name in vars(builtins).keys() & namespace.keys() - {*_IPYTHON}:
        if not name.startswith("_"):
            del namespace[name]
    here = Path.cwd()
    os.chdir(SOURCES.parent)
    try:
        with capture_output():
            for step in before:
                for place, cell in enumerate(step.cells, 1):
                    if cell not in skipped:
                        _run_cell(step, place, cell, namespace)
    finally:
        os.chdir(here)


def _run_cell(step: Step, place: int, cell: Cell, namespace: dict[str, Any]) -> None:
    file = f"<{step.name}, {cell.name or f'code cell {place}'}>"
    # So that a traceback shows its lines, and inspect.getsource finds its functions.
    linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(True), file)
    tree = _Unshown().visit(ast.parse(cell.source, file))
    try:
        exec(compile(tree, file, "exec", dont_inherit=True), namespace)
    except Exception as error:
        if "raises-exception" not in cell.tags:
            raise WorkbookError(
                f"Step {step.name} does not run in this kernel ({type(error).__name__}: {error}): "
                "restart the kernel, and run the checkpoint as its first cell."
            ) from error


class _Unshown(ast.NodeTransformer):
    """Takes out the calls that only show something, which is slow and would not be seen.

    These are figures, explorers, questions, and what a process of its own prints. They leave
    nothing behind that a later cell could use, unless a name is given in their arguments.
    """

    _CALLS = re.compile(r"plots\.show|quiz\.ask|\w+\.explorer|print\(run_with")

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A call as a statement of its own."""
        names_something = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
        if not names_something and self._CALLS.match(ast.unparse(node)):
            return ast.copy_location(ast.Pass(), node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A function stays whole: a later cell may call it to see what it shows."""
        return node
