"""Read what learners have handed in: any file, from anybody.

A submission is a notebook of a student for a lab. Here it becomes the sources of its answer cells,
by ``grade_id``, and notes about what is odd. Nothing else of it is used: no kernel name, no
metadata, no output. No link is followed and no archive is unpacked to disk.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from helpers.errors import WorkbookError

MOST_BYTES = 50_000_000
"""Of a notebook. Larger ones are not read."""
MOST_FILES = 2_000  # of one student
MOST_CHARACTERS = 100_000  # of one answer
EMPTY = "The file is empty (0 bytes): probably the upload failed."
MOST_NAMED = 20  # in one sentence
_IGNORED = (".ipynb_checkpoints", "__MACOSX", ".git")
_ZIP_ERRORS = (
    OSError, ValueError, RuntimeError, NotImplementedError, EOFError,
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A notebook of a student for a lab: its bytes, or why they cannot be read."""

    student: str
    lab: str
    place: str
    data: bytes = b""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class HandedIn:
    """What a folder holds: the notebooks by student, and what belongs to no student or no lab."""

    notebooks: Mapping[str, list[Found]]
    loose: list[str]
    of_no_lab: list[str]


@dataclass(frozen=True)
class Answers:
    """What a notebook answers: a source for each question that it has, and what is odd."""

    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unreadable: str = ""


def find(folder: Path, labs: Sequence[str]) -> HandedIn:
    """What a class has handed in: for each student and lab at most one notebook, in order.

    A student is a folder, or a zip file, directly in ``folder``. A notebook belongs to the lab
    whose name its file name begins with. Of several for one lab the one with the shortest path
    counts, and a note says so. Of a student's notebooks of no lab the first is named, and how many
    more there are.

    Raises :class:`WorkbookError` when there is no such folder or nobody in it.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise WorkbookError(f"The folder {folder} cannot be graded: {error.strerror}.") from error
    notebooks: dict[str, list[Found]] = {}
    loose, of_no_lab = [], []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            student, found = entry.name, _in_folder(Path(entry.path))
        elif entry.name.endswith(".zip") and entry.is_file(follow_symlinks=False):
            student, found = entry.name.removesuffix(".zip"), _in_zip(Path(entry.path))
        else:
            loose.append(entry.name)
            continue
        if student in notebooks:
            raise WorkbookError(f"There are a folder and a zip file of {student!r}: remove one.")
        files = sorted(found, key=_by_length)
        notebooks[student] = list(_one_each(student, files, labs))
        others = [place for place, _ in files if not any(_is_of(place, lab) for lab in labs)]
        if others:
            more = f" and {len(others) - 1} more" if others[1:] else ""
            of_no_lab.append(f"{student}/{others[0]}{more}")
    if not notebooks:
        raise WorkbookError(f"Nobody is in {folder}: it holds one folder for each student.")
    return HandedIn(notebooks, loose, of_no_lab)


_File = tuple[str, Callable[[], tuple[bytes, str]]]
"""The place of a notebook, and how to read it: the bytes, or none and why there are none.

Only the notebook that counts is read. An archive can hold thousands that are large."""


def _by_length(file: _File) -> tuple[int, int, str]:
    place = file[0]
    return place.count("/"), len(place), place


def _one_each(student: str, files: Sequence[_File], labs: Sequence[str]) -> Iterator[Found]:
    """One notebook for each lab that the files have."""
    for lab in labs:
        mine = [file for file in files if _is_of(file[0], lab)]
        if mine:
            place, read = mine[0]
            data, problem = read()
            problem = problem or ("" if data else EMPTY)
            notes = [problem] if problem else []
            if len(mine) > 1:
                notes.append(f"{len(mine)} files are for this lab: {place} was graded.")
            yield Found(student, lab, place, data, tuple(notes))


def _is_of(place: str, lab: str) -> bool:
    name = place.rpartition("/")[2]
    return name.startswith(lab) and name.endswith(".ipynb") and not name[len(lab)].isalnum()


def _in_folder(folder: Path) -> Iterator[_File]:
    """Each notebook below a folder; links are named, not followed."""
    count = 0
    for here, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                return
            if name.endswith(".ipynb"):
                path = Path(here, name)
                yield path.relative_to(folder).as_posix(), partial(_read, path)


def _read(path: Path) -> tuple[bytes, str]:
    """The bytes of a regular file, or why it has none for us."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return b"", "The file is a link." if path.is_symlink() else f"{error.strerror}."
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return b"", "The file is not a regular file."
        if status.st_size > MOST_BYTES:
            return b"", _too_large()
        try:
            return file.read(MOST_BYTES), ""
        except OSError as error:
            return b"", f"{error.strerror}."


def _too_large() -> str:
    return f"The file is larger than {MOST_BYTES // 1_000_000} MB."


def _in_zip(path: Path) -> Iterator[_File]:
    """The same for an archive, read in memory: a name in it is only a text."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()[:MOST_FILES]
    except _ZIP_ERRORS:
        return
    for member in members:
        parts = member.filename.split("/")
        if member.filename.endswith(".ipynb") and not set(parts) & {*_IGNORED, ".."}:
            yield member.filename, partial(_read_member, path, member)


def _read_member(path: Path, member: zipfile.ZipInfo) -> tuple[bytes, str]:
    if member.file_size > MOST_BYTES:
        return b"", _too_large()
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            data = file.read(MOST_BYTES + 1)  # the size in the archive may be a lie
    except _ZIP_ERRORS:
        return b"", "The file is damaged in the archive, or encrypted."
    return (data, "") if len(data) <= MOST_BYTES else (b"", _too_large())


def read_answers(data: bytes, questions: Sequence[str]) -> Answers:
    """The answer cells of a notebook. Never raises: what cannot be read is ``unreadable``.

    A cell answers the question of its nbgrader ``grade_id``, or of its own id where the metadata
    are lost. Of several cells for one question the last counts, as after running all of them.
    """
    try:
        tree = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Answers(unreadable="The file is not UTF-8 text.")
    except (ValueError, RecursionError):
        return Answers(unreadable="The file is not a notebook: it is not JSON.")
    if not isinstance(tree, dict) or tree.get("nbformat") != 4:
        return Answers(unreadable="The file is not a notebook of format 4.")
    cells = tree.get("cells")
    if not isinstance(cells, list):
        return Answers(unreadable="The notebook has no list of cells.")
    sources: dict[str, str] = {}
    notes = []
    for cell in cells:
        question = _question_of(cell)
        if question not in questions:
            continue
        source = _source_of(cell)
        if source is None:
            notes.append(f"The answer to {question} has no source that is text.")
            continue
        if len(source) > MOST_CHARACTERS:
            notes.append(f"The answer to {question} is longer than {MOST_CHARACTERS} characters.")
            continue
        if question in sources:
            notes.append(f"There are several answer cells for {question}: the last one counts.")
        sources[question] = source
    return Answers(sources, tuple(dict.fromkeys(notes)))


def _question_of(cell: Any) -> str:
    """The question that a cell answers, ``""`` for none."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("code", "markdown"):
        return ""
    metadata = cell.get("metadata")
    grading = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    if isinstance(grading, dict):
        name = grading.get("grade_id") if grading.get("solution") is True else None
    else:
        name = cell.get("id")
    return name if isinstance(name, str) else ""


def _source_of(cell: dict[str, Any]) -> str | None:
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source if isinstance(source, str) else None


def file_name(student: str) -> str:
    """A name for files of this student: plain, short, and of nobody else.

    A name of letters, digits and hyphens stays as it is; another loses what is none of these and
    gets a part of its hash.
    """
    plain = re.sub(r"[^A-Za-z0-9_.@-]+", "-", student)[:60].strip(".-")
    if plain == student:
        return plain
    raw = student.encode("utf-8", "surrogateescape")
    return f"{plain or 'student'}-{hashlib.sha256(raw).hexdigest()[:8]}"


def printable(text: str) -> str:
    """A text that UTF-8 can hold, on one line: odd characters as escapes."""
    safe = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in safe)


def named(names: Sequence[str]) -> str:
    """The first of some names as a list to print, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(printable, names[:MOST_NAMED])) + more
