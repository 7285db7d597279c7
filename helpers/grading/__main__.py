"""Entry of the command line: ``python -m helpers.grading SUBMISSIONS OUT``; see ``make grade``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.grading import lms, report
from helpers.grading.cohort import Cluster, Pool, Threads, grade_class
from helpers.grading.sandbox import GIVEN_UP, ROOT
from helpers.grading.submission import named


def show_progress(done: int, total: int) -> None:
    """One line in a terminal that tells how far it is; nothing in a file."""
    if sys.stderr.isatty():
        bar = "#" * (30 * done // max(total, 1))
        print(f"\r[{bar:<30}] {done} of {total} notebooks", end="", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder of submissions; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers.grading", description=main.__doc__)
    parser.add_argument("submissions", type=Path, help="one folder or zip file for each student")
    parser.add_argument("out", type=Path, help="where the results go; start again to continue")
    parser.add_argument("--secret", type=Path, help="a file: the hidden inputs are drawn from it")
    parser.add_argument("--roster", type=Path, help="a CSV file: who the folders belong to")
    parser.add_argument(
        "--variants", action="store_true", help="each student has the variant of the folder's name"
    )
    parser.add_argument("--jobs", type=int, help="submissions at once (default: processor cores)")
    parser.add_argument("--cluster", help="address of a dask scheduler, as tcp://host:8786")
    parser.add_argument("--unsafe", action="store_true", help=GIVEN_UP)
    options = parser.parse_args(arguments)
    if options.unsafe:
        print(GIVEN_UP, file=sys.stderr)
    roster = lms.read_roster(options.roster) if options.roster else {}
    names = {folder: who[lms.VARIANT] for folder, who in roster.items() if lms.VARIANT in who}
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        pool: Pool = Threads(options.jobs)
        if options.cluster:
            pool = stack.enter_context(Cluster(options.cluster))
        graded = grade_class(
            ROOT,
            options.submissions,
            options.out,
            secret=_secret(options.secret),
            variants=names if options.variants else None,
            pool=pool,
            unsafe=options.unsafe,
            progress=show_progress,
        )
    report.write(graded, options.out, roster)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    seconds = time.monotonic() - start
    print(f"{len(graded.records)} notebooks of {len(graded.students)} students, {seconds:.0f} s.")
    for line in report.left_out(graded):
        print(line)
    if options.roster:
        if unknown := [name for name in graded.students if name not in roster]:
            print(f"Not in {options.roster}: {named(unknown)}.")
        if absent := lms.absent(options.roster, graded.students):
            print(f"In {options.roster}, without a folder: {named(absent)}.")
    print(f"Points: {options.out / 'grades.csv'}. Overview: {options.out / 'summary.html'}.")
    return 0


def _secret(path: Path | None) -> bytes | None:
    """The bytes of the instructor's secret. Raises :class:`WorkbookError` when there are few."""
    if path is None:
        return None
    try:
        secret = path.read_bytes()
    except OSError as error:
        raise WorkbookError(f"The secret {path} cannot be read: {error.strerror}.") from error
    if len(secret.strip()) < 16:
        raise WorkbookError(f"The secret in {path} is shorter than 16 bytes: it could be guessed.")
    return secret


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
    except KeyboardInterrupt:
        sys.exit("\nStopped; what is graded is kept. Run the same command again to continue.")
