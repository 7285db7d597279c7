"""Does the grader give every submission of a large class the points that it deserves?

Makes a class with three labs each (right, wrong, half-done, broken and hostile submissions), works
out what each deserves, grades all of it with ``make grade``, and compares every question. What is
deserved comes from running the answers in forks of this program: without sandbox, grader or report,
and without any hostile line. Ends with 1 when a grade differs.

    .venv/bin/python -m bench.deadline_night
    .venv/bin/python -m bench.deadline_night --students 20 --kill 5
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random

import psutil

from bench.night.deserved import deserved
from bench.night.submissions import Submission, hand_in, make_class
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.grading.course import Lab
from helpers.grading.sandbox import ROOT
from helpers.grading.submission import file_name

LABS = ("01_relay_ir", "09_graph_executor", "10_vm_executor")
TICK = 0.5  # seconds between two looks at the memory
Grades = dict[tuple[str, str, str], float]  # student, lab, question


@dataclass
class Run:
    """One grading of a class: how long, most memory of all its processes, kills, what was lost."""

    seconds: float = 0.0
    memory: int = 0
    kills: int = 0
    lost: list[str] = field(default_factory=list)


def grade(submissions: Path, out: Path, secret: Path, jobs: int, kill_at: Sequence[float]) -> Run:
    """``make grade``, killed when so many results are there, and started again.

    Memory is the proportional set size: what processes share counts once.
    """
    options = {"SUBMISSIONS": submissions, "OUT": out, "SECRET": secret, "JOBS": jobs}
    command = ["make", "grade", *(f"{name}={value}" for name, value in options.items())]
    run, start, kept = Run(), time.monotonic(), dict[Path, tuple[bytes, int]]()
    moments = sorted(kill_at)
    while True:
        process = psutil.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            below = process.children(recursive=True)
            run.memory = max(run.memory, sum(map(bytes_of, below)))
            grader = [one for one in below if "helpers.grading" in arguments_of(one)]
            if moments and grader and len(results(out)) >= moments[0]:
                time.sleep(moments.pop(0) % 1)  # not only right after a result
                grader[0].kill()
                run.kills += 1
                process.wait()
                break
            time.sleep(TICK)
        run.lost += [
            path.relative_to(out).as_posix()
            for path, state in kept.items()
            if not path.exists() or (path.read_bytes(), path.stat().st_mtime_ns) != state
        ]
        kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in results(out)}
        if process.returncode == 0:
            run.seconds = time.monotonic() - start
            return run
        if not run.kills:
            raise WorkbookError("Grading ended with an error: see above.")


def results(out: Path) -> list[Path]:
    """The results that are there."""
    return list(out.glob("results/*/*.json"))


def bytes_of(process: psutil.Process) -> int:
    """The memory of a process, its part of what it shares with others; 0 when it has gone."""
    with contextlib.suppress(psutil.Error, OSError):
        return int(process.memory_full_info().pss)
    return 0


def arguments_of(process: psutil.Process) -> list[str]:
    """The command line of a process, nothing when it has gone."""
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []


def written(out: Path) -> dict[str, bytes]:
    """All that grading wrote, but the times."""
    files = [path for path in out.rglob("*") if path.is_file() and path.suffix != ".seconds"]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def expect(class_: Sequence[Submission], secret: bytes, jobs: int) -> Grades:
    """What each question of each submission deserves; a process for each lab."""
    asked: dict[str, list[Submission]] = {name: [] for name in LABS}
    for one in class_:
        if one.answers is not None:
            asked[one.lab].append(one)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        made = {
            name: pool.submit(deserved, name, secret, [one.answers or {} for one in own])
            for name, own in asked.items()
        }
    return {
        (one.student, one.lab, question): points
        for name, own in asked.items()
        for one, found in zip(own, made[name].result(), strict=True)
        for question, points in found.items()
    }


def sure(class_: Sequence[Submission], expected: Grades) -> None:
    """Raise :class:`WorkbookError` where what is expected cannot be: wrong answers deserve less."""
    full = {(name, q.name): q.points for name in LABS for q in Lab(ROOT, name).questions}
    for one in class_:
        points = {q: expected[one.student, one.lab, q] for q in one.answers or ()}
        short = [q for q in points if points[q] < full[one.lab, q]]
        question = one.what.partition(":")[0]
        if (one.kind == "right" and short) or (one.kind == "wrong" and question not in short):
            raise WorkbookError(f"{one.kind} answers to {one.lab} ({one.what}) deserve {points}.")


def differences(
    class_: Sequence[Submission], expected: Grades, out: Path
) -> dict[tuple[str, str], list[str]]:
    """What is wrong with the grades, by student and lab: other points, or none, or too many."""
    rows = csv.DictReader((out / "grades.csv").read_text(encoding="utf-8").splitlines())
    graded = {(r["student"], r["lab"], r["question"]): float(r["points"]) for r in rows}
    what = {(one.student, one.lab): f"{one.kind}, {one.what}" for one in class_}
    found: dict[tuple[str, str], list[str]] = {}
    for place in sorted(expected.keys() | graded.keys()):
        right, got, one = expected.get(place), graded.get(place), place[:2]
        if right is None or got is None or abs(right - got) > 6e-4:
            line = f"{' '.join(place)} ({what.get(one)}): {got} instead of {right}"
            found.setdefault(one, []).append(line)
    return found


def show_times(class_: Sequence[Submission], run: Run, out: Path) -> None:
    """Print how long it took, in all and for each kind of submission, and the memory."""
    print(
        f"{run.seconds:.0f} s in all, {run.seconds / len(class_):.2f} s a submission, "
        f"at most {run.memory / 1e9:.2f} GB, load {os.getloadavg()[0]:.1f}"
    )
    for kind in dict.fromkeys(one.kind for one in class_):
        paths = [
            out / "results" / file_name(one.student) / f"{one.lab}.seconds"
            for one in class_
            if one.kind == kind and one.answers is not None
        ]
        seconds = [float(path.read_text()) for path in paths]
        if seconds:
            print(
                f"  {kind:<10} median {statistics.median(seconds):6.2f} s{max(seconds):8.1f} s most"
            )


def main() -> int:
    """Grade a class of which every grade is known; the exit status."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--students", type=int, default=200, help="each hands in three labs")
    parser.add_argument("--jobs", type=int, default=2, help="submissions at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", type=int, default=0, help="grade once more, killed so often")
    parser.add_argument("--folder", type=Path, help="a new one: keep submissions and grades there")
    given = parser.parse_args()
    if given.folder and given.folder.exists():
        raise WorkbookError(f"The folder {given.folder} is there already: name a new one.")
    with tempfile.TemporaryDirectory(prefix="deadline-night-") as temporary:
        return night(given.folder or Path(temporary), given)


def night(folder: Path, given: argparse.Namespace) -> int:
    """Make the class in a folder, grade it there, print what came of it; the exit status."""
    submissions, secret, out = folder / "submissions", folder / "secret", folder / "out"
    class_ = list(make_class([Lab(ROOT, name) for name in LABS], given.students, given.seed))
    hand_in(class_, submissions)
    secret.write_text(hashlib.sha256(b"deadline night %d" % given.seed).hexdigest())
    kinds = Counter(one.kind for one in class_)
    print(f"{len(class_)} submissions: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}")
    wrong_answers = {(one.lab, one.what) for one in class_ if one.kind == "wrong"}
    attacks = {one.what.partition(",")[0] for one in class_ if one.kind == "hostile"}
    print(f"{len(wrong_answers)} different wrong answers, {len(attacks)} different attacks")
    start = time.monotonic()
    expected = expect(class_, secret.read_bytes(), given.jobs)
    sure(class_, expected)
    print(f"What they deserve is known after {time.monotonic() - start:.0f} s", flush=True)
    run = grade(submissions, out, secret, given.jobs, [])
    wrong = differences(class_, expected, out)
    show_times(class_, run, out)
    problems = [line for lines in wrong.values() for line in lines]
    right = len(class_) - len(wrong)
    print(
        f"{right} of {len(class_)} submissions as expected ({len(expected)} questions)", flush=True
    )
    if given.kill:
        random = Random(given.seed)
        again, moments = (
            folder / "again",
            [random.uniform(0, len(class_)) for _ in range(given.kill)],
        )
        run = grade(submissions, again, secret, given.jobs, moments)
        before, after = written(out), written(again)
        other = [
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        ]
        problems += [f"lost or graded again: {name}" for name in run.lost]
        problems += [f"other bytes after kills: {name}" for name in sorted(other)]
        print(f"Killed {run.kills} times: {len(run.lost)} results lost, {len(other)} files differ")
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
