"""Run a lab from a fresh kernel and say what its public checks say.

    make verify LAB=03

or, in a notebook, ``from helpers import verify`` and ``verify.lab("03")``. It runs the file that is
on the disk, so save the lab first. A lab that works cell by cell can still fail here: a name that
was deleted, or cells that were run in another order, are left behind in the old kernel.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import difflib
import re
import subprocess
from itertools import takewhile
from pathlib import Path

import nbformat

from helpers import attempts, progress, variants
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import cause_of_death, kernel_client
from helpers.places import FOLDER

CELL_TIMEOUT = 120
"""Seconds after which a cell is given up."""


def find(number: str | int, root: Path = FOLDER) -> Path:
    """The learner's file of a lab, by number or name: ``3``, ``"03"``, ``"03_operator_fusion"``.

    Raises :class:`WorkbookError` when there is no such lab.
    """
    names = sorted(path.parent.name for path in (root / "labs").glob("*/*.ipynb"))
    names = [
        name for name in dict.fromkeys(names) if (root / "labs" / name / f"{name}.ipynb").exists()
    ]
    wanted = Path(str(number).strip()).stem
    for name in names:
        if wanted in (name, name[:2]) or (wanted.isdecimal() and int(wanted) == int(name[:2])):
            return root / "labs" / name / f"{name}.ipynb"
    near = difflib.get_close_matches(wanted, names, 1)
    hint = f" Perhaps {near[0]} is meant." if near else ""
    listed = ", ".join(name[:2] for name in names)
    raise WorkbookError(f"There is no lab {str(number)!r}; there are {listed}.{hint}")


def verdicts(path: Path, *, cell_timeout: int = CELL_TIMEOUT) -> dict[str, str]:
    """Run the lab in ``path`` from a fresh kernel: what the check of each question says.

    A cell that runs longer than ``cell_timeout`` seconds, or that ends the kernel, is left out, and
    the lab is run again from its start without it: it then costs its own question only.
    """
    notebook = attempts.read(path)
    left_out: dict[str, str] = {}
    while True:
        trouble = _run(notebook, path.parent, left_out, cell_timeout)
        if trouble is None:
            break
        left_out.update([trouble])
    attempt = attempts.examine(notebook)
    cells = {cell.id: cell for cell in notebook.cells}
    found = {}
    for question in attempt.answers:
        check = f"{question}-check"
        reason = left_out.get(question) or left_out.get(check)
        if not reason and (error := _stopped(cells[question])):
            reason = f"its answer cell {error}"
        if reason:
            found[question] = f"Question {question}: {reason}"
        elif question in attempt.verdicts:
            found[question] = attempt.verdicts[question].rstrip()
        elif check in cells:
            error = _stopped(cells[check]) or "printed no verdict"
            found[question] = f"Question {question}: its check {error}"
        else:
            found[question] = f"Question {question}: its check is missing; a grader has its own"
        found[question] += _why_undefined(notebook, found[question])
        if check in attempt.changed:
            found[question] += "\n  (this check is not as it was given out; a grader has its own)"
        if attempt.answers[question] and _computes_values(cells[question].source):
            found[question] += (
                "\n  (write values, not code: a grader runs this cell where others are drawn)"
            )
    return found


def _computes_values(answer: str) -> bool:
    """Whether an answer is nothing but values with names, and uses a name of another cell."""
    try:
        tree = ast.parse(answer)
    except SyntaxError:
        return False
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.Lambda) for node in nodes):
        return False
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    read = {node.id for node in names} - stored - vars(builtins).keys()
    return bool(read) and all(isinstance(statement, ast.Assign) for statement in tree.body)


def _run(
    notebook: nbformat.NotebookNode, folder: Path, left_out: dict[str, str], timeout: int
) -> tuple[str, str] | None:
    """Run all cells but those left out; the cell that could not end, and why."""
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client, environment = kernel_client(notebook, folder, timeout=timeout, variant=variants.name())
    with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            cell.outputs = []
            if cell.id in left_out:
                continue
            try:
                client.execute_cell(cell, index, store_history=False)
            except CellExecutionError:
                continue  # kept in the cell's outputs
            except CellTimeoutError:
                return cell.id, f"stopped after {timeout} s: does a loop in it never end?"
            except DeadKernelError:
                return cell.id, f"{cause_of_death(client.km)} while it ran"
    return None


def _stopped(cell: nbformat.NotebookNode) -> str:
    """The error that ended a cell, with its line; ``""`` for a cell that ran to its end."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said = re.sub(r" \(\d+\.py, line \d+\)$", "", output.evalue)
            said = f"{output.ename}: {said}"[:200]
            trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
            if not (place := re.search(r"^ *Cell In\[\d+\], line (\d+)", trace, re.M)):
                return f"stopped: {said}"
            lines = cell.source.splitlines()
            dropped = sum(1 for _ in takewhile(lambda line: not line.strip(), lines))
            number = int(place[1]) + dropped  # IPython drops the empty lines at the top
            source = lines[number - 1].strip() if number <= len(lines) else ""
            return f"stopped in line {number} (`{source}`): {said}"
    return ""


def _why_undefined(notebook: nbformat.NotebookNode, verdict: str) -> str:
    """A line on the cell that should have defined the name that a verdict misses, if it stopped."""
    missed = re.search(r"NameError: name '(\w+)' is not defined", verdict)
    if not missed:
        return ""
    defines = re.compile(rf"^((def|class) {missed[1]}\b|{missed[1]} *=)", re.M)
    for cell in filter(lambda cell: defines.search(cell.source), notebook.cells):
        if error := _stopped(cell):
            graded = cell.metadata.get("nbgrader", {}).get("solution")
            which = f"answer cell of {cell.id}" if graded else "cell"
            return f"\n  (the {which} that defines {missed[1]} {error})"
    return ""


def report(path: Path, found: dict[str, str]) -> str:
    """The text for the learner: each verdict, and what they come to."""
    passed = [question for question, text in found.items() if attempts.passes(text)]
    end = f"Lab {path.stem[:2]}: public checks passed for {len(passed)} of {len(found)} questions."
    if len(passed) == len(found):
        end += " A grader tries more cases than these."
    if own := variants.name():
        end += f" What is drawn was drawn for {own}."
    return "\n".join([*found.values(), "", end])


def lab(number: str | int, *, cell_timeout: int = CELL_TIMEOUT) -> None:
    """Run a lab's file from a fresh kernel, print what its checks say and note it as progress."""
    _verify(find(number), cell_timeout)


def _verify(path: Path, cell_timeout: int = CELL_TIMEOUT) -> None:
    found = verdicts(path, cell_timeout=cell_timeout)
    progress.note_lab(path.stem, found)
    print(report(path, found))


def main(arguments: list[str] | None = None) -> None:
    """Entry of the command line. Checks that do not pass are a result, not an error."""
    parser = argparse.ArgumentParser(prog="python -m helpers.verify", description=lab.__doc__)
    parser.add_argument("lab", nargs="?", default="", help="its number, e.g. 03")
    options = parser.parse_args(arguments)
    if not options.lab:
        raise WorkbookError("Which lab? Write, for example, make verify LAB=03.")
    path = find(options.lab)
    print(f"Running {attempts.named(path)} from a fresh kernel ...", flush=True)
    _verify(path)


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
