"""Build every ``.ipynb`` from its source, run it and store its outputs.

``python -m tools.build_notebooks [NAME ...]`` builds all pages or those of the topics named;
``--check`` builds nothing and says which committed notebook is not what its source builds.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from helpers import attempts, plots, update
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT, cause_of_death, kernel_client
from tools import figures, page_checks
from tools.pages import Page, as_text, find_notebooks, find_pages, read_page, without_outputs

CELL_TIMEOUT = 300  # seconds
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def execute(notebook: NotebookNode, page: str, folder: Path) -> None:
    """Run all cells in place in ``folder``, with the kernel and surroundings nbval uses.

    Raises :class:`WorkbookError` naming page, cell and line when a cell fails.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client, environment = kernel_client(notebook, folder, timeout=CELL_TIMEOUT)
    environment[plots.VECTOR] = "1"
    count = 0
    with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            count += 1
            where = f"{page}, cell {cell.id!r} (code cell {count})"
            try:
                # Without history, as nbval runs it: `_` and a trailing `;` then mean the same.
                client.execute_cell(cell, index, execution_count=count, store_history=False)
            except CellTimeoutError as error:
                raise WorkbookError(f"{where} ran longer than {CELL_TIMEOUT} s.") from error
            except DeadKernelError as error:
                raise WorkbookError(f"{where}: {cause_of_death(client.km)}.") from error
            except CellExecutionError as error:
                said = f"{error.ename}: {error.evalue}".strip()
                raise WorkbookError(f"{where}: {_failing_line(error.traceback)}{said}") from error
    normalise(notebook)


def _failing_line(traceback: str) -> str:
    """The cell's own line in IPython's traceback, as ``line 3: `x / 0`: ``."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", traceback)
    found = re.search(r"^-+> (\d+) (.*)$", plain, flags=re.MULTILINE)
    return f"line {found[1]}: `{found[2].strip()}`: " if found else ""


def keep_stored(data: MutableMapping[str, Any]) -> None:
    """Remove from an output's ``data`` the forms that only a reader with a kernel is to see."""
    data.pop(WIDGET_VIEW, None)  # a random id that nobody else can resolve
    if "image/png" in data:
        data.pop("text/html", None)  # the same picture again, made for JupyterLab


def normalise(notebook: NotebookNode) -> None:
    """Remove from the outputs what differs from run to run or names this machine."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        merged: list[NotebookNode] = []
        for output in cell.outputs:
            if output.output_type == "stream":
                before = merged[-1] if merged else None
                if before and before.output_type == "stream" and before.name == output.name:
                    before.text += output.text
                    continue
            elif output.output_type == "error":
                # Frames carry paths; nbval compares the name and the message only.
                output.traceback = [f"{output.ename}: {output.evalue}"]
            else:
                keep_stored(output.data)
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
            merged.append(output)
        cell.outputs = merged


def keep_outputs(built: NotebookNode, target: Path) -> None:
    """Give the cells of ``built`` the outputs stored in ``target`` as far as the code is the same.

    From the first cell on whose code differs nothing is kept: its state reaches all that follow.
    """
    if not target.exists():
        return
    old = [cell for cell in nbformat.read(target, 4).cells if cell.cell_type == "code"]
    new = [cell for cell in built.cells if cell.cell_type == "code"]
    for before, after in zip(old, new, strict=False):
        if before.source != after.source:
            return
        after.outputs, after.execution_count = before.outputs, before.execution_count


def build(page: Page, *, run: bool = True) -> NotebookNode:
    """Build one page, write its notebook and return it."""
    notebook = read_page(page)
    page.target.parent.mkdir(parents=True, exist_ok=True)
    if run:
        execute(notebook, str(page), page.target.parent)
        vectors = figures.take(notebook)
    else:
        keep_outputs(notebook, page.target)
    target = update.fresh_copy(page.target) if is_learners(page) else page.target
    target.write_text(as_text(notebook), encoding="utf-8")
    if run and page.kind == "lesson" and target == page.target:
        figures.keep(page.target, vectors)
    if target != page.target:
        print(f"{page} has answers in it and stays as it is; the new one is {target.name}.")
    return notebook


def is_learners(page: Page) -> bool:
    """Whether a learner has worked in the page's notebook: then it is theirs, not the build's.

    One that was committed with answers in it is a mistake, and nobody's work.
    """
    if page.kind == "solution" or not page.target.exists():
        return False
    try:
        edited = attempts.examine(attempts.read(page.target)).edited
    except WorkbookError:
        return False
    command = ["git", "status", "--porcelain", "--", page.target.name]
    done = subprocess.run(
        command, cwd=page.target.parent, capture_output=True, text=True, check=False
    )
    return edited and done.returncode == 0 and bool(done.stdout)


def differences(root: Path) -> list[str]:
    """Why the notebooks at ``root`` are not what their sources build; empty when they are."""
    problems = []
    pages = find_pages(root)
    for page in pages:
        if not page.target.exists():
            problems.append(f"{page}: {page.target.relative_to(root)} is not built.")
            continue
        if is_learners(page):
            continue
        text = page.target.read_text(encoding="utf-8")
        try:
            stored = nbformat.reads(text, 4)
            nbformat.validate(stored)
            built = read_page(page)
        except (ValueError, nbformat.ValidationError) as error:
            problems.append(f"{page}: not a valid notebook: {str(error).splitlines()[0]}")
            continue
        except WorkbookError as error:
            problems.append(str(error))
            continue
        if as_text(without_outputs(stored)) != as_text(built):
            problems.append(f"{page}: {_first_difference(stored, built)}.")
        elif as_text(stored) != text:
            problems.append(f"{page}: the file was written by another program than the build.")
        if page.kind == "lesson":
            problems += [f"{page}: {text}" for text in figures.problems(stored, page.target)]
    sources = {page.target for page in pages}
    for path in find_notebooks(root):
        if path not in sources:
            problems.append(f"{path.relative_to(root)}: no source builds this notebook.")
    return problems


def _first_difference(stored: NotebookNode, built: NotebookNode) -> str:
    stored = without_outputs(stored)
    for number, (old, new) in enumerate(zip(stored.cells, built.cells, strict=False), 1):
        if old != new:
            key = next(k for k in {**new, **old} if old.get(k) != new.get(k))
            return f"the {key} of cell {number} ({new.id}) is not what the source builds"
    if len(stored.cells) != len(built.cells):
        return f"it has {len(stored.cells)} cells, its source has {len(built.cells)}"
    return "its metadata are not what the source builds"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Entry of the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a topic, e.g. 03_operator_fusion")
    parser.add_argument("--check", action="store_true", help="compare, build nothing")
    parser.add_argument(
        "--no-execute", action="store_true", help="run nothing, keep stored outputs where they hold"
    )
    options = parser.parse_args(arguments)
    if options.check:
        problems = differences(root)
        print("\n".join(problems) or "Every notebook is what its source builds.")
        return 1 if problems else 0
    failed = False
    for page in find_pages(root, [Path(name).stem for name in options.names]):
        start = time.monotonic()
        try:
            notebook = build(page, run=not options.no_execute)
        except WorkbookError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        print(f"{page}: {time.monotonic() - start:.1f} s, {page_checks.summary(notebook)}")
        for problem in page_checks.problems(notebook, page.target, page.kind):
            print(f"  {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
