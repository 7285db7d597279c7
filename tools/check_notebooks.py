"""Prove that the committed notebooks are built from their sources, well made and reproducible.

``python -m tools.check_notebooks [NAME ...]`` compares every notebook with its source, checks the
form of the page, and runs it under nbval, which compares each output with the stored one.
``--static`` leaves nbval out (a second a page). ``--record`` keeps in ``docs/verified.json`` which
pages passed, when and on which versions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from tools import page_checks, verified
from tools.build_notebooks import CELL_TIMEOUT, differences, is_learners
from tools.pages import Page, find_pages

PROCESSES = 2


def run_nbval(
    notebooks: Sequence[Path], root: Path, *, processes: int = PROCESSES, quiet: bool = False
) -> dict[tuple[str, int], str]:
    """Run notebooks below ``root`` under nbval, each in a kernel of its own.

    Returns by notebook (its path below ``root``) and number of the code cell ``"passed"``,
    ``"skipped"`` or the failure's message. Every code cell of every notebook is in it: one that
    nbval has not run has failed.
    """
    if not notebooks:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"),
            # Outside of pytest's root all notebooks have the same ids, and xdist would run one.
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(root)),
            # Every other way of xdist to share the work would split a notebook over two kernels.
            *("-n", str(processes), "--dist", "loadfile", "-p", "tools.nbval_plugin"),
            *("--nbval", "--nbval-current-env", "--nbval-cell-timeout", str(CELL_TIMEOUT)),
            *("--nbval-kernel-startup-timeout", "120", f"--junitxml={report}"),
            *map(str, notebooks),
        ]
        subprocess.run(command, cwd=ROOT, check=False, capture_output=quiet)
        ran = _outcomes(report) if report.exists() else {}
    outcomes = {}
    for path in notebooks:
        name = path.relative_to(root).as_posix()
        for number in range(len(page_checks.code_cells(nbformat.read(path, 4)))):
            outcomes[name, number] = ran.get(
                (name.replace("/", "."), number), "nbval did not run it"
            )
    return outcomes


def _outcomes(report: Path) -> dict[tuple[str, int], str]:
    found = {}
    for case in ET.parse(report).iter("testcase"):
        bad = next(
            (case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None
        )
        outcome = "passed" if case.find("skipped") is None else "skipped"
        if bad is not None:
            outcome = (bad.text or bad.get("message") or "failed").strip()
        found[case.get("classname", ""), int(case.get("name", "").split()[-1])] = outcome
    return found


def changed_copy(notebook: NotebookNode) -> tuple[NotebookNode, set[int]]:
    """A copy with a changed output in every strictly compared cell, and the numbers of those."""
    copy = nbformat.from_dict(notebook)
    changed = set()
    for number, cell in enumerate(page_checks.code_cells(copy)):
        if page_checks.classify(cell) == "strict":
            _, cell.outputs = next(page_checks.changed_outputs(cell))
            changed.add(number)
    return copy, changed


def _passed(
    page: Page, problems: Sequence[str], ran: Mapping[tuple[str, int], str], root: Path
) -> bool:
    name = page.target.relative_to(root).as_posix()
    cells = [outcome for (notebook, _), outcome in ran.items() if notebook == name]
    well_made = not any(problem.startswith(f"{page}: ") for problem in problems)
    return well_made and bool(cells) and all(outcome == "passed" for outcome in cells)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Entry of the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_notebooks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a topic, e.g. 03_operator_fusion")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--static", action="store_true", help="run nothing")
    how.add_argument("--record", action="store_true", help="write down which pages passed")
    parser.add_argument("-n", "--processes", type=int, default=PROCESSES, help="default: 2")
    options = parser.parse_args(arguments)
    pages = [
        page
        for page in find_pages(root, [Path(name).stem for name in options.names])
        if page.target.exists()
    ]
    mine = [page for page in pages if is_learners(page)]
    for page in mine:
        print(f"{page} has your answers in it: it is left out.")
    pages = [page for page in pages if page not in mine]
    found = differences(root) if pages else ["There is no notebook to check."]
    strict = outputs = 0
    for page in pages:
        notebook = nbformat.read(page.target, 4)
        here = page_checks.strict_share(notebook)
        strict, outputs = strict + here[0], outputs + here[1]
        found += [
            f"{page}: {problem}"
            for problem in page_checks.problems(notebook, page.target, page.kind)
        ]
    print("\n".join(found) or f"{len(pages)} notebooks are well made and what their sources build.")
    print(f"nbval compares {strict} of {outputs} outputs strictly.", flush=True)
    if options.static:
        return int(bool(found))
    ran = run_nbval([page.target for page in pages], root, processes=options.processes)
    not_passed = sum(outcome != "passed" for outcome in ran.values())
    print(f"nbval ran {len(ran)} cells of {len(pages)} notebooks: {not_passed} did not pass.")
    if options.record:
        passed = [page for page in pages if _passed(page, found, ran, root)]
        verified.record(passed, root)
        print(f"{len(passed)} of {len(pages)} passed and are in {verified.FILE}.")
    return int(bool(found) or not_passed > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
