"""The process inside a sandbox: it runs a lab once, then forks for each thing that is asked.

It runs the blank lab, which is the course's own code, and no line of a learner. For each request
it forks. The child reads the request, runs the answers and the probe, and writes what came out;
the parent watches its time and memory, then ends every process but itself and removes every file.
So each request starts from the same state, whatever the ones before did, and the parent never
keeps an answer or an input: the child reads the request, and the reply passes through a buffer
that is wiped.

Inside bubblewrap the parent is process 1 of its own PID namespace. The kernel then drops every
signal that a process in there sends to it, SIGKILL included, and ``kill(-1)`` reaches all others
at once. It is not dumpable, so that no other process can read or change its memory.

The protocol, on standard input and output, is in :func:`serve` and :func:`read_request`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import runpy
import select
import shutil
import signal
import struct
import time
import traceback
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from helpers import variants
from helpers.grading import encoding

HEADER = struct.Struct("!dQ")
"""Of a request: seconds of processor time, and the bytes that follow."""
WALL, SPARE = 5.0, 2.0
"""A request may take this many times its processor time, plus this many seconds, by the clock."""
TICK = 0.05  # seconds between two looks at time and memory
MOST_BYTES = encoding.LONGEST + 100_000
MOST_FILES = 5_000
_buffer = memoryview(bytearray(MOST_BYTES + 1))
_PR_SET_DUMPABLE = 4
_READ = b"r"  # the child has read its request


def serve(config: dict[str, Any], replies: int) -> None:
    """Run the lab's cells, say so, then answer requests until standard input ends.

    ``config`` has ``cells`` ([id, source] each), ``uid`` (to become, or ``None``), ``scratch`` (the
    folder that answers may write to), and the limits of :class:`helpers.grading.sandbox.Limits`.
    A reply is a line of JSON with ``status``, ``clean``, ``usable`` and ``size``, and ``size``
    bytes from the child. ``status`` is ``done``, or the limit that was reached (``time``,
    ``memory``, ``processes``, ``files``, ``size``), or the signal or ``exit`` that ended the child.
    ``clean`` says that it was done and has left nothing behind, ``usable`` that the next one starts
    as it did.
    """
    problem = _run_lab(config["cells"])
    _say(replies, status=problem or "ready", clean=not problem, usable=not problem, size=0)
    if problem:
        return
    kept = _snapshot(Path(config["scratch"]))
    while len(header := _read(0, HEADER.size)) == HEADER.size:
        seconds, size = HEADER.unpack(header)
        status, clean, used = _one_request(seconds, size, config, replies)
        usable = _restore(Path(config["scratch"]), kept)
        _say(replies, status=status, clean=clean, usable=usable, size=used - len(_READ))
        _write(replies, _buffer[len(_READ) : used])
        _buffer[:used] = bytes(used)


def _run_lab(cells: list[list[str]]) -> str:
    """Run the cells of the blank lab; what is wrong with it, or ``""``."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from helpers.grading import checks

    quiet = Config()
    quiet.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=quiet)
    checks.question = lambda *_, **__: None  # a public verdict printed in here counts for nothing
    for name, source in cells:
        result = shell.run_cell(source, store_history=False)
        if not result.success:
            return f"cell {name} of the blank lab fails: {result.error_in_exec!r}"
    return ""


def _one_request(
    seconds: float, size: int, config: dict[str, Any], replies: int
) -> tuple[str, bool, int]:
    """Fork, let the child work, watch it, and end all that it started."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    before = _own_bytes(os.getpid())
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.close(replies)
            _limit(seconds, config)
            answer(read_request(size), writer)
        finally:
            os._exit(1)
    os.close(writer)
    try:
        status, used = _watch(child, reader, seconds, config, before)
    finally:
        others = _end_all(child)
        os.close(reader)
    if bytes(_buffer[: len(_READ)]) != _READ:  # the rest of the request is still in the pipe
        raise SystemExit(3)
    return status, status == "done" and not others, used


def _watch(
    child: int, reader: int, seconds: float, config: dict[str, Any], before: int
) -> tuple[str, int]:
    """Wait for the child, and take what it writes; why it ended, and how many bytes came."""
    end = time.monotonic() + WALL * seconds + SPARE
    used = 0
    while True:
        ready, _, _ = select.select([reader], [], [], TICK)
        used, more = _drain(reader, used)
        ended, code, spent = os.wait4(child, os.WNOHANG)
        if ended:
            used, _ = _drain(reader, used)
            return _ending(code, spent.ru_utime + spent.ru_stime, seconds), used
        if used > MOST_BYTES:
            _buffer[len(_READ) : used] = bytes(used - len(_READ))
            return "size", len(_READ)
        if time.monotonic() > end:
            return "time", used
        if reached := _limit_reached(before, config):
            return reached, used
        if ready and not more:  # closed, and not ended yet
            time.sleep(TICK)


def _ending(code: int, spent: float, seconds: float) -> str:
    status = os.waitstatus_to_exitcode(code)
    if status == 0:
        return "done"
    if spent >= seconds - 0.5:
        return "time"
    return signal.Signals(-status).name if status < 0 else "exit"


def _drain(reader: int, used: int) -> tuple[int, bool]:
    """Take all that there is, up to the limit; whether somebody still holds the other end."""
    while used <= MOST_BYTES:
        try:
            size = os.readv(reader, [_buffer[used:]])
        except BlockingIOError:
            return used, True
        if not size:
            return used, False
        used += size
    return used, True


def _end_all(child: int) -> int:
    """Kill and reap every process but this one; how many the child had left."""
    if os.getpid() != 1:  # without a sandbox: only the child's own session can be told apart
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(child, 0)
        return 0
    others = 0
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, 0)
            others += pid != child
    return others


def _own_bytes(pid: int) -> int:
    """Bytes of a process that are in memory and of no file."""
    with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        parts = [line.split() for line in file if line.startswith(("RssAnon", "RssShmem"))]
    return sum(int(kilobytes) * 1024 for _, kilobytes, _ in parts)


def _limit_reached(before: int, config: dict[str, Any]) -> str:
    """Which limit the other processes have reached together, or ``""``.

    What each of them got from this process by the fork, ``before`` bytes, does not count.
    """
    mine = os.getpid()
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    if mine != 1:
        pids = _descendants(mine, pids)
    if len(pids) > 2 * config["processes"]:
        return "processes"
    taken = 0
    for pid in pids:
        if pid != mine:
            with contextlib.suppress(OSError, ValueError):
                taken += max(0, _own_bytes(pid) - before)
    if taken > config["memory"]:
        return "memory"
    disk = os.statvfs(config["scratch"])
    return "files" if mine == 1 and disk.f_files - disk.f_ffree > MOST_FILES else ""


def _descendants(root: int, pids: list[int]) -> list[int]:
    """The processes that ``root`` started, and those that they started."""
    parents = {}
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/stat").read_text()
            parents[pid] = int(text.rpartition(")")[2].split()[1])
    found, size = {root}, 0
    while len(found) != size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return sorted(found)


def _snapshot(scratch: Path) -> dict[Path, bytes | None]:
    """The files (with their bytes) and folders that the lab itself has made."""
    found = sorted(path for path in scratch.rglob("*") if not path.is_symlink())
    return {path: path.read_bytes() if path.is_file() else None for path in found}


def _restore(scratch: Path, kept: dict[Path, bytes | None]) -> bool:
    """Make the folder what it was after the lab; whether that worked."""
    try:
        for path in scratch.iterdir():
            if path.is_dir() and not path.is_symlink():
                _unlock(path)
                shutil.rmtree(path)
            else:
                path.unlink()
        for path, data in kept.items():
            if data is None:
                path.mkdir()
            else:
                path.write_bytes(data)
    except (OSError, RecursionError):
        return False
    return True


def _unlock(folder: Path) -> None:
    """Make all folders in a folder ones that can be read and removed."""
    folder.chmod(0o700)
    for here, folders, _ in os.walk(folder):  # each folder is listed after it is unlocked
        for name in folders:
            path = Path(here, name)
            if not path.is_symlink():
                path.chmod(0o700)


def _limit(seconds: float, config: dict[str, Any]) -> None:
    """What a child may use: processor time, memory, processes, the size of a file."""
    os.setsid()
    _set_dumpable(1)  # as any other process; the flag comes from the parent
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    limits = {
        resource.RLIMIT_CPU: math.ceil(seconds),
        resource.RLIMIT_AS: config["address_space"],
        resource.RLIMIT_FSIZE: config["file_bytes"],
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    if os.getppid() == 1:  # elsewhere it would count all that this user runs
        limits[resource.RLIMIT_NPROC] = config["processes"]
    for what, value in limits.items():
        hard = resource.getrlimit(what)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))


def read_request(size: int) -> dict[str, Any]:
    """The request that follows on standard input, which is then the child's no more."""
    request: dict[str, Any] = json.loads(_read(0, size))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return request


# --- in the child: from here on a learner's code may run ----------------------------------------


def answer(request: dict[str, Any], writer: int) -> None:
    """Run a request and write what came out: lines of JSON, the last of which counts.

    ``answers`` are [question, source] pairs, run in order; ``inputs`` are values by name;
    ``variant``, if it is there, is the name from which cells among them draw. Then a
    ``probe`` is evaluated, and the line has its ``value``, as :mod:`encoding` writes it, or what is
    wrong; or a ``judge`` decides about a value that came out elsewhere, and the line has ``says``;
    or the sources of an ``own`` question are each tried, and the line has ``values``.
    """
    _write(writer, _READ)
    os.environ[variants.VARIABLE] = request.get("variant", "")
    space = _user_names()
    failed = {}
    for question, source in request["answers"]:
        _write_line(writer, {"at": question})
        if wrong := _run_answer(question, source, space):
            failed[question] = wrong
    _write_line(writer, {"at": "probe"})
    line: dict[str, Any]
    if judge := request.get("judge"):
        line = {"says": _judge(judge, request["inputs"], space)}
    elif own := request.get("own"):
        line = {"values": [_values(source, own["probes"], space) for source in own["sources"]]}
    elif request["question"] in failed:
        line = failed[request["question"]]
    else:
        line = _probe(request, space)
    _write_line(writer, line)
    os._exit(0)


def _user_names() -> dict[str, Any]:
    from IPython.core.getipython import get_ipython

    return get_ipython().user_ns


def _run_answer(question: str, source: str, space: dict[str, Any]) -> dict[str, Any] | None:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    try:
        with shell.builtin_trap:
            # IPython drops the empty lines at the top, and so would change the numbers of lines.
            lines = takewhile(lambda line: not line.strip(), source.splitlines())
            text = "\n" * sum(1 for _ in lines) + shell.transform_cell(source)
            exec(compile(text, _file_of(question), "exec"), space)
    except BaseException as error:
        return _told(error, {question: source})
    return None


def _probe(request: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    try:
        value = eval(compile(request["probe"], "<probe>", "eval"), {**space, **request["inputs"]})
        return {"value": encoding.dumps(value)}
    except encoding.NotAValueError as error:
        return {"no_value": str(error)}
    except BaseException as error:
        return _told(error, dict(request["answers"]))


def _values(source: str, probes: list[str], space: dict[str, Any]) -> list[str] | None:
    """What each probe gives after one of several answers to a question, ``None`` if one fails."""
    names = dict(space)
    if _run_answer("", source, names):
        return None
    try:
        return [encoding.dumps(eval(probe, names)) for probe in probes]
    except Exception:  # a known wrong answer may give what cannot be graded
        return None


def _file_of(question: str) -> str:
    return f"<answer {question}>"


def _told(error: BaseException, sources: dict[str, str]) -> dict[str, Any]:
    """An exception: its class, its message, and the last line of an answer that it came through."""
    said: dict[str, Any] = {"error": type(error).__name__, "message": str(error)[:2000]}
    files = {_file_of(question): question for question in sources}
    if isinstance(error, SyntaxError) and error.filename in files:
        said |= {"in": files[error.filename], "line": error.lineno}
    for frame, line in traceback.walk_tb(error.__traceback__):
        if question := files.get(frame.f_code.co_filename):
            said |= {"in": question, "line": line}
    return said


def _judge(judge: dict[str, Any], inputs: dict[str, Any], space: dict[str, Any]) -> str:
    """``""`` when a value is right, else a sentence. No learner's code has run in this process."""
    from helpers.grading import checks

    hidden = runpy.run_path(judge["bank"])["HIDDEN"][judge["question"]][judge["number"]]
    value = encoding.loads(judge["value"])
    if hidden.verify is None:
        expected = encoding.loads(judge["expected"])
        right = checks.agrees(value, expected, rtol=hidden.rtol, atol=hidden.atol)
        return "" if right else "the value is another one"
    if "lab" in hidden.verify.__code__.co_varnames[: hidden.verify.__code__.co_argcount]:
        inputs = {**inputs, "lab": SimpleNamespace(**space)}
    try:
        return str(hidden.verify(encoding.with_programs(value), **inputs))
    except Exception:  # the value is of no kind that the check expects
        return "what came out is not what the statement asks for"


# --- small things --------------------------------------------------------------------------------


def _read(descriptor: int, size: int) -> bytes:
    """``size`` bytes, fewer only at the end of the file."""
    parts, left = [], size
    while left and (piece := os.read(descriptor, left)):
        parts.append(piece)
        left -= len(piece)
    return b"".join(parts)


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _write_line(descriptor: int, line: dict[str, Any]) -> None:
    _write(descriptor, json.dumps(line).encode() + b"\n")


def _say(replies: int, **line: Any) -> None:
    _write_line(replies, line)


def _set_dumpable(value: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


def main() -> None:
    """Take the configuration, give up every privilege, then :func:`serve`."""
    (size,) = struct.unpack("!Q", _read(0, 8))
    config = json.loads(_read(0, size))
    if config["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[config["uid"]] * 3)
        os.setresuid(*[config["uid"]] * 3)
    _set_dumpable(0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 gets only signals it has asked for
    replies = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    serve(config, replies)


if __name__ == "__main__":
    main()
