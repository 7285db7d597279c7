"""A sandbox: a process in bubblewrap that has run a lab and answers requests about it.

:mod:`helpers.grading.runner` is what runs inside; this module starts it and talks to it. Inside
there is no network, no file of the host but the interpreter, the packages, the two folders
``helpers`` and ``.deps`` of the course (all read-only), no other process, one small folder in
memory to write to, and a filter on system calls. Nothing that comes out is trusted.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from helpers import variants
from helpers.errors import WorkbookError
from helpers.grading import encoding, runner, seccomp

ROOT = Path(__file__).resolve().parent.parent.parent
START = 600.0  # seconds by the clock that a lab may take to run through
SCRATCH = "/scratch"  # in the sandbox; /tmp leads there, too
BANK = "/checks.py"  # in a sandbox without learners' code
ZOO = ROOT / ".state" / "zoo"  # models that the course has made, which take seconds to make
_LINE = 10_000  # bytes of the longest line of a reply's header
_GRACE = 30.0  # seconds beyond its own limits after which a sandbox counts as lost
_FIRST_UID, _UIDS = 1 << 30, 1 << 29
"""As root, each sandbox gets a user of its own, far from those of real users: the kernel counts
processes by user, and not at all for root."""

GIVEN_UP = (
    "Submissions run without a sandbox: each can read, change and delete every file that you can, "
    "the solutions, the grades and other submissions included, can use the network, and can leave "
    "processes behind. Grades are then only as honest as the code that you run."
)


@dataclass(frozen=True)
class Limits:
    """What one request may use in its processes together; only ``address_space`` is of each."""

    memory: int = 2_000_000_000
    address_space: int = 4_000_000_000
    processes: int = 24
    file_bytes: int = 30_000_000
    disk: int = 60_000_000


@dataclass(frozen=True)
class Reply:
    """What came of a request: how it ended, and the lines that the process wrote before."""

    status: str
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, Any]:
        """The line that counts: the last one of a request that is done, else nothing."""
        return self.lines[-1] if self.status == "done" and self.lines else {}

    @property
    def reached(self) -> str:
        """The question whose answer was being run last, or ``probe``, or ``""``."""
        places = [line["at"] for line in self.lines if isinstance(line.get("at"), str)]
        return places[-1] if places else ""


class LostError(Exception):
    """The process inside has gone or does not keep to the protocol."""


class Sandbox:
    """A lab that has run through, ready for requests; a context manager.

    ``cells`` are the [id, source] of the lab's code cells. ``bank`` is the lab's ``checks.py``, for
    a sandbox that no learner's code enters; :attr:`bank` is its place inside. With ``keep`` the
    models that the lab makes are kept for other sandboxes: for the course's own answers only. With
    ``unsafe`` the process runs as any other, see :data:`GIVEN_UP`.

    Raises :class:`WorkbookError` when bubblewrap cannot be used or a cell of the lab fails.
    """

    def __init__(
        self,
        cells: Sequence[tuple[str, str]],
        *,
        bank: Path | None = None,
        keep: bool = False,
        unsafe: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.clean = self.usable = True
        """Whether all requests so far have ended by themselves and left no process behind; and
        whether the next one starts from the same state as the first."""
        self._folder = tempfile.mkdtemp(prefix="grading-") if unsafe else None
        own_user = _is_root() and not unsafe and not keep
        uid = _FIRST_UID + secrets.randbelow(_UIDS) if own_user else None
        self.bank = str(bank) if unsafe else BANK
        ZOO.mkdir(parents=True, exist_ok=True)
        visible = ["--bind" if keep else "--ro-bind", str(ZOO), str(ZOO)]
        visible += ["--ro-bind", str(bank), BANK] if bank else []
        self._process = self._start(visible, uid)
        config = {
            "cells": [list(cell) for cell in cells],
            "uid": uid,
            "scratch": self._folder or SCRATCH,
            **asdict(self.limits),
        }
        text = json.dumps(config).encode()
        try:
            self._send(struct.pack("!Q", len(text)) + text)
            status = self._receive(START).status
        except LostError as error:
            self._process.kill()
            assert self._process.stderr is not None
            said = self._process.stderr.read(_LINE).decode(errors="replace").strip().splitlines()
            self.close()
            reason = said[-1] if said else str(error)
            raise WorkbookError(
                f"The sandbox for grading does not start ({reason}): allow bubblewrap to make "
                "namespaces here, or grade in a virtual machine."
            ) from error
        if status != "ready":
            self.close()
            raise WorkbookError(f"The lab cannot be graded: {status}.")

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: dict[str, Any], seconds: float) -> Reply:
        """Send a request, as :func:`helpers.grading.runner.answer` describes it; what came of it.

        ``seconds`` of processor time are what it may take. Raises :class:`LostError` when there is
        no sandbox any more; then :meth:`close` it.
        """
        text = json.dumps(request).encode()
        self._send(runner.HEADER.pack(seconds, len(text)) + text)
        return self._receive(runner.WALL * seconds + runner.SPARE + _GRACE)

    def close(self) -> None:
        """End every process of the sandbox."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, visible: list[str], uid: int | None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "helpers.grading.runner"]
        if self._folder:
            place, environment = self._folder, _environment(self._folder)
            return _popen(command, environment, place)
        filtering = os.memfd_create("seccomp")
        try:
            os.write(filtering, seccomp.program())
            os.lseek(filtering, 0, os.SEEK_SET)
            box = [
                "bwrap",
                *_arguments(visible, uid, self.limits),
                "--seccomp",
                str(filtering),
                "--",
            ]
            return _popen([*box, *command], None, "/", filtering)
        except FileNotFoundError:
            raise WorkbookError(sandbox_problem()) from None
        finally:
            os.close(filtering)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError as error:
            raise LostError("it takes no request") from error

    def _receive(self, seconds: float) -> Reply:
        assert self._process.stdout is not None
        source, end = self._process.stdout.fileno(), time.monotonic() + seconds
        buffer = b""
        while b"\n" not in buffer and len(buffer) < _LINE:
            buffer += _some(source, end)
        header, _, body = buffer.partition(b"\n")
        try:
            said = json.loads(header)
            status, size = str(said["status"]), int(said["size"])
            self.usable &= said["usable"] is True
            self.clean &= self.usable and said["clean"] is True
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LostError("it does not keep to the protocol") from error
        if not 0 <= size <= runner.MOST_BYTES:
            raise LostError("it does not keep to the protocol")
        parts, left = [body], size - len(body)
        while left > 0:
            parts.append(_some(source, end))
            left -= len(parts[-1])
        return Reply(status, list(_lines(b"".join(parts)[:size])))


def _some(source: int, end: float) -> bytes:
    """Bytes that have come, at least one; :class:`LostError` at the end of time or of the file."""
    ready, _, _ = select.select([source], [], [], max(0.0, end - time.monotonic()))
    data = os.read(source, 1 << 16) if ready else b""
    if not data:
        raise LostError("it has ended" if ready else "it does not reply")
    return data


def _lines(data: bytes) -> list[dict[str, Any]]:
    """The JSON objects in lines of a hostile process; other lines are dropped."""
    found = []
    for line in data.splitlines():
        try:
            tree = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(tree, dict) and len(line) <= 2 * encoding.LONGEST:
            found.append(tree)
    return found


def _is_root() -> bool:
    return os.getuid() == 0


def _popen(
    command: list[str], environment: dict[str, str] | None, place: str, *kept: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=place,
        pass_fds=kept,
    )


def _environment(scratch: str) -> dict[str, str]:
    """The variables that a process inside sees: nothing of the caller's."""
    threads = dict.fromkeys(("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    homes = ("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR", "TEST_DATA_ROOT_PATH")
    return {
        **threads,
        **dict.fromkeys(homes, scratch),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        variants.VARIABLE: "",
        "MPLBACKEND": "agg",
    }


def _arguments(visible: list[str], uid: int | None, limits: Limits) -> list[str]:
    """bubblewrap's options, but for the filter and the command; ``visible`` are further ones.

    With a ``uid`` there is no user namespace: root starts bubblewrap, and the process inside gives
    up root for a user of its own, because the kernel limits the number of processes of every user
    but root, and sees root behind each user of a namespace that root has made.
    """
    options = ["--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox"]
    if uid is None:  # root without privileges can still write what is root's: see `keep`
        options += ["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    else:
        for space in ("pid", "net", "ipc", "uts", "cgroup-try"):
            options.append(f"--unshare-{space}")
        options += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    readable = {Path("/usr/bin"), Path("/usr/lib"), Path("/usr/lib64"), Path("/etc/ld.so.cache")}
    readable |= {Path(sys.prefix), Path(sys.base_prefix), ROOT / "helpers", ROOT / ".deps"}
    readable.discard(Path("/usr"))
    for folder in sorted({parent for path in {*readable, ZOO} for parent in path.parents}):
        options += ["--perms", "0755", "--dir", str(folder)]
    for path in sorted(readable):  # a folder before what is in it
        options += ["--ro-bind-try", str(path), str(path)]
    for name in ("bin", "lib", "lib64"):
        options += ["--symlink", f"usr/{name}", f"/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    options += visible
    options += ["--perms", "1777", "--size", str(limits.disk), "--tmpfs", SCRATCH]
    if not any(path.is_relative_to("/tmp") for path in readable):
        options += ["--symlink", SCRATCH, "/tmp"]
    options += ["--remount-ro", "/", "--chdir", SCRATCH, "--clearenv"]
    for name, value in _environment(SCRATCH).items():
        options += ["--setenv", name, value]
    return options


@functools.cache
def sandbox_problem() -> str:
    """Why submissions cannot be sandboxed here, in one sentence; ``""`` when they can."""
    if not shutil.which("bwrap"):
        return (
            "Grading runs submissions in bubblewrap, and there is no `bwrap` here: install the "
            "package bubblewrap (Linux), or grade in a container or virtual machine that has it."
        )
    try:
        Sandbox(()).close()
    except WorkbookError as error:
        return str(error)
    return ""
