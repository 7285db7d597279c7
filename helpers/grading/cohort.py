"""Grade a class: submissions side by side, and results that survive any interruption.

A result is a file, written whole or not at all as soon as its submission is graded. It names the
bytes that it stands for: of the submission, of the lab and the grader, and of the secret. Whoever
starts again with the same bytes grades only what has no result yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from helpers import artifact_cache
from helpers.errors import WorkbookError, whole_number
from helpers.grading import oracle, submission
from helpers.grading.course import Lab, find_labs
from helpers.grading.grade import Desk, as_record
from helpers.grading.oracle import Known, Oracle
from helpers.grading.sandbox import sandbox_problem
from helpers.variants import normalised

Record = dict[str, Any]
_UNFINISHED = ".part-*"  # what artifact_cache.write leaves when it is killed


@dataclass(frozen=True)
class Task:
    """One thing to do in a worker, in values that can go to another machine.

    Without ``data`` the oracle of the lab is made, else a submission is graded with it. ``root``
    is the course; a worker elsewhere finds it at the same path.
    """

    root: str
    lab: str
    digest: str
    secret: bytes
    unsafe: bool
    data: bytes | None = None
    known: Record | None = None
    variant: str = ""


class Pool(Protocol):
    """Something that does tasks, several at once."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Record]]:
        """(place of the task, what :func:`work` made of it), in the order in which they end."""


_local = threading.local()
_desks: list[Desk] = []
_labs: dict[tuple[str, str], Lab] = {}
"""The labs that this process grades, by root and name, as they were when it began."""


def work(task: Task) -> Record:
    """Do a task; this runs in a thread of a pool, here or on another machine.

    Raises :class:`WorkbookError` when the course at ``task.root`` is not the one that the task was
    made for, or when the lab cannot be graded.
    """
    lab = _labs.setdefault((task.root, task.lab), Lab(Path(task.root), task.lab))
    if lab.digest != task.digest:
        raise WorkbookError(
            f"A worker has another version of lab {task.lab} or of the grader: update it."
        )
    start = time.monotonic()
    if task.data is None:
        made = oracle.consult(lab, task.secret, unsafe=task.unsafe)
        return {q: [asdict(check) for check in checks] for q, checks in made.items()}
    assert task.known is not None
    known = _oracle(task.known)
    verdicts, notes = _desk(task.unsafe).grade(lab, task.data, known, task.variant)
    seconds = round(time.monotonic() - start, 3)
    return {"questions": as_record(verdicts), "notes": list(notes), "seconds": seconds}


def _desk(unsafe: bool) -> Desk:
    """This thread's desk. A worker of a cluster lives on after :func:`close_desks`: a grading that
    begins later gets a new desk, with a sandbox unless that grading itself gives it up."""
    kept = getattr(_local, "desk", None)
    if kept not in _desks or kept.unsafe != unsafe:
        _local.desk = kept = Desk(unsafe=unsafe)
        _desks.append(kept)
    return kept


def close_desks() -> None:
    """End all sandboxes that workers of this process have open."""
    while _desks:
        _desks.pop().close()


class Threads:
    """A pool on this machine: a thread each for ``jobs`` submissions, which run in sandboxes."""

    def __init__(self, jobs: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0))
        self.jobs = cores if jobs is None else whole_number(jobs, "JOBS", 1)

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Record]]:
        """See :class:`Pool`."""
        pool = ThreadPoolExecutor(self.jobs)
        try:
            futures = {pool.submit(work, task): place for place, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)
            close_desks()


class Cluster:
    """A pool of many machines: the workers of a ``dask.distributed`` scheduler; a context manager.

    Each needs the same version of the workbook at the same path, and bubblewrap. Raises
    :class:`WorkbookError` when there is no such package or no scheduler at ``address``.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise WorkbookError(
                "Grading on a cluster needs the package `distributed`, which is not installed "
                "here: run `make setup`, or leave CLUSTER out to grade on this machine."
            ) from None
        try:
            self._client = distributed.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise WorkbookError(f"No dask scheduler answers at {address}: {error}.") from error
        self._completed = distributed.as_completed

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Record]]:
        """See :class:`Pool`."""
        futures = {
            self._client.submit(work, task, pure=False): place for place, task in enumerate(tasks)
        }
        try:
            for future in self._completed(futures):
                yield futures[future], future.result()
        finally:
            self._client.cancel(list(futures))
            self._client.run(close_desks)


@dataclass(frozen=True)
class Class:
    """Everything about a graded class that a report needs."""

    records: list[Record]  # one for each notebook, by student and lab
    students: list[str]
    loose: list[str] = field(default_factory=list)  # names beside the students' folders
    of_no_lab: list[str] = field(default_factory=list)  # notebooks: student/place


def grade_class(
    root: Path,
    submissions: Path,
    out: Path,
    *,
    secret: bytes | None = None,
    variants: Mapping[str, str] | None = None,
    pool: Pool | None = None,
    unsafe: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Class:
    """Grade what is in ``submissions`` and keep the results in ``out``.

    Without a ``secret`` one is made, and kept in ``out`` for the next time. ``variants`` says by
    folder which variant is whose, where it is not the folder's own name; without, everybody has the
    common variant. ``progress`` is told
    how many notebooks are graded, of how many. Raises :class:`WorkbookError` when there is nothing
    to grade, no sandbox, a folder that names no variant, or results in ``out`` that were made with
    variants where these are not, or the other way round.
    """
    labs = {lab.name: lab for lab in find_labs(root)}
    _labs.update({(str(root), name): lab for name, lab in labs.items()})
    handed_in = submission.find(submissions, list(labs))
    names = _variants(handed_in.notebooks, variants)
    if out.resolve().is_relative_to(submissions.resolve()):
        raise WorkbookError(f"The results cannot lie among the submissions: not in {out}.")
    if not unsafe and (problem := sandbox_problem()):
        raise WorkbookError(f"{problem} UNSAFE=1 grades without a sandbox; see docs/grading.md.")
    _make_folder(out)
    _keep_setting(out, "own" if variants is not None else "common")
    for path in out.rglob(_UNFINISHED):
        path.unlink()
    secret = secret or _own_secret(out)
    found = [notebook for notebooks in handed_in.notebooks.values() for notebook in notebooks]
    own = [names[one.student] if labs[one.lab].has_variants else "" for one in found]
    keys = [_key(labs[one.lab], secret, one, name) for one, name in zip(found, own, strict=True)]
    records = [_read_result(out, one, key) for one, key in zip(found, keys, strict=True)]
    left = [place for place, record in enumerate(records) if record is None]
    left.sort(key=lambda place: found[place].lab)  # so that a worker keeps its sandbox
    progress(len(found) - len(left), len(found))
    if left:
        pool = pool or Threads()
        needed = [labs[name] for name in dict.fromkeys(found[place].lab for place in left)]
        known = _oracles(needed, out, secret, pool, unsafe)
        tasks = [_task(labs[found[place].lab], secret, unsafe) for place in left]
        tasks = [
            replace(task, data=found[place].data, known=known[task.lab], variant=own[place])
            for task, place in zip(tasks, left, strict=True)
        ]
        for count, (index, made) in enumerate(pool.run(tasks), 1):
            place = left[index]
            made |= {"variant": own[place], "key": keys[place]}
            records[place] = _keep_result(out, found[place], made)
            progress(len(found) - len(left) + count, len(found))
    graded = [record for record in records if record is not None]
    return Class(graded, list(handed_in.notebooks), handed_in.loose, handed_in.of_no_lab)


def _variants(students: Iterable[str], variants: Mapping[str, str] | None) -> dict[str, str]:
    """The variant of each student, as its name counts."""
    if variants is None:
        return dict.fromkeys(students, "")
    names = {}
    for student in students:
        try:
            names[student] = normalised(variants.get(student, student))
        except WorkbookError as error:
            raise WorkbookError(
                f"{error} It is that of the folder {submission.printable(student)}: name another "
                "one in the column Variant of a roster."
            ) from error
    return names


def _keep_setting(out: Path, variant: str) -> None:
    """Remember whose variants ``out`` is about; a result of the other kind is not overwritten."""
    path = out / "variants"
    kept = path.read_text(encoding="utf-8").strip() if path.exists() else variant
    if kept != variant and any(out.glob("results/*/*.json")):
        how, do = ("with", "add it") if kept == "own" else ("without", "leave it out")
        raise WorkbookError(
            f"This class was graded {how} VARIANTS=1: {do}, or grade into another folder."
        )
    write(path, f"{variant}\n")


def _task(lab: Lab, secret: bytes, unsafe: bool) -> Task:
    return Task(str(lab.root), lab.name, lab.digest, secret, unsafe)


def _oracles(
    labs: Sequence[Lab], out: Path, secret: bytes, pool: Pool, unsafe: bool
) -> dict[str, Record]:
    """The oracle of each lab, from ``out`` or made now."""
    paths = {lab.name: out / "oracles" / f"{lab.name}-{_key(lab, secret)}.json" for lab in labs}
    known = {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
    missing = [lab for lab in labs if lab.name not in known]
    for index, made in pool.run([_task(lab, secret, unsafe) for lab in missing]):
        name = missing[index].name
        write(paths[name], json.dumps(made))
        known[name] = made
    return known


def _oracle(known: Record) -> Oracle:
    return {question: [Known(**check) for check in checks] for question, checks in known.items()}


def _own_secret(out: Path) -> bytes:
    path = out / "secret"
    if not path.exists():
        write(path, secrets.token_hex(32) + "\n")
    return path.read_bytes()


def _key(lab: Lab, secret: bytes, one: submission.Found | None = None, variant: str = "") -> str:
    """Of everything that a result depends on."""
    digest = hashlib.sha256(lab.digest.encode())
    parts = (one.data, one.place, one.notes, variant) if one else ()
    for part in (secret, repr(parts).encode()):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:32]


def _result_path(out: Path, one: submission.Found) -> Path:
    return out / "results" / submission.file_name(one.student) / f"{one.lab}.json"


def _read_result(out: Path, one: submission.Found, key: str) -> Record | None:
    """The result that is kept for these bytes, or ``None``."""
    try:
        record: Record = json.loads(_result_path(out, one).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if record.get("key") == key else None


def _keep_result(out: Path, one: submission.Found, made: Record) -> Record:
    record = {
        "student": submission.printable(one.student),
        "lab": one.lab,
        "place": submission.printable(one.place),
        "key": made["key"],
        "variant": made["variant"],
        "points": round(sum(verdict["points"] for verdict in made["questions"]), 3),
        "of": sum(verdict["of"] for verdict in made["questions"]),
        "notes": [*map(submission.printable, one.notes), *(made["notes"] if one.data else ())],
        "questions": made["questions"],
    }
    path = _result_path(out, one)
    write(path.with_suffix(".seconds"), f"{made['seconds']}\n")
    write(path, json.dumps(record, indent=1, sort_keys=True) + "\n")
    return record


def write(path: Path, text: str) -> None:
    """Write a file of the results whole or not at all; :class:`WorkbookError` if it cannot be."""
    _make_folder(path.parent)
    try:
        artifact_cache.write(path, text.encode())
    except OSError as error:
        raise _unwritten(path, error) from error


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> WorkbookError:
    return WorkbookError(
        f"{path} cannot be written: {error.strerror}. What is graded is kept; run the same command "
        "again to continue."
    )
