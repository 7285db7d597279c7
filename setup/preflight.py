"""Say in a few seconds whether the workbook will run here, before anything is installed.

Run by ``setup.sh --preflight`` (``make preflight``) with the Python it found; uses the standard
library only. What can be tried is tried in a folder that is removed again: an environment is made
as the installation makes it, and one small package is put into it.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import install

from helpers import check_env, tvm_builds, wheelhouse
from helpers.errors import WorkbookError

NEEDED_MEMORY = 3_500_000_000
"""Bytes; what a computer sold with 4 GB has."""
SECONDS = 8.0
"""For the trial, both steps together."""
TRIAL, TRIAL_SIZE = "widgetsnbextension", 2_200_000
"""A package of the lock that tells a slow network from a fast one: 2.2 MB, and few files."""
SLOW = 5.0
"""Seconds for that package from which the network decides how long an installation takes."""
DOWNLOAD = 485_000_000
"""Bytes that one installation fetches (what ``make wheelhouse`` says of one Python)."""
MINUTES = {"uv": "half a minute", "pip": "two minutes"}
MARKS = {"ok": "ok   ", "note": "note ", "bad": "NO   "}


@dataclass(frozen=True)
class Line:
    """What was found out about ``what``: "ok", "note" (it will run), or "bad" (it will not)."""

    what: str
    state: str
    text: str

    def __str__(self) -> str:
        return f"  {MARKS[self.state]}{self.what:<13}{self.text}"


def system() -> Line:
    """The system and its processor."""
    problem = tvm_builds.system_problem()
    libc = " ".join(platform.libc_ver())
    here = f"{platform.system()} {platform.machine()}, {libc}, {os.cpu_count()} processors"
    return Line("system", "bad", problem) if problem else Line("system", "ok", here)


def python(problem: str | None) -> Line:
    """The Python that setup.sh found, or its sentence when it found none that will do."""
    problem = problem or tvm_builds.python_problem()
    if problem:
        return Line("Python", "bad", problem)
    return Line("Python", "ok", f"{platform.python_version()}, {sys.executable}")


def memory() -> Line:
    """The memory of the machine or, in a container, what the container may use."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdigit():
        size = min(size, int(limit.read_text()))
    if size < NEEDED_MEMORY:
        return Line(
            "memory", "note", f"{size / 1e9:.1f} GB, and the lessons want 4: open one only."
        )
    return Line("memory", "ok", f"{size / 1e9:.0f} GB")


def disk() -> Line:
    """The room where the workbook lies."""
    problem = install.disk_problem()
    if problem:
        return Line("disk", "bad", problem)
    return Line("disk", "ok", f"{shutil.disk_usage(install.ROOT).free / 1e9:.0f} GB free")


def tools() -> Iterator[Line]:
    """The programs that some commands want and the lessons do not."""
    if shutil.which("git"):
        yield Line("git", "ok", "is here")
    else:
        yield Line("git", "note", "is missing: `make update` needs it.")
    there, text = check_env.compiler_line()
    yield Line("lesson 14", "ok" if there else "note", text)


def trial(uv: str | None) -> Iterator[Line]:
    """Make an environment here, and fetch one package into it."""
    os.environ.update(
        PIP_DEFAULT_TIMEOUT="4", PIP_RETRIES="1", UV_HTTP_TIMEOUT="4", UV_HTTP_RETRIES="1"
    )
    what, how, began = "environment", "uv" if uv else "pip", time.monotonic()
    try:
        install.DEPS.mkdir(exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="preflight-", dir=install.DEPS))
    except OSError as error:
        yield Line("folder", "bad", install.explain(str(error), 1))
        return
    yield Line("folder", "ok", f"{install.ROOT} can be written")
    wheels = None
    try:
        wheels = install.asked_wheelhouse([])
        (scratch / "tmp").mkdir()
        lock = scratch / "trial.lock"
        text = (install.ROOT / "requirements.lock").read_text(encoding="utf-8")
        found = [pin.group() for pin in wheelhouse.PIN.finditer(text) if pin.group(1) == TRIAL]
        lock.write_text("\n".join(found) + "\n", encoding="utf-8")
        place = scratch / "environment" / "bin" / "python"
        installer = install.Installer(uv, place, wheels, scratch=scratch, seconds=SECONDS)
        # Putting pip into it takes longest by far; this Python's own will do where there is one.
        installer.environment(bare=install.can_import("pip"))
        subprocess.run([str(place), "-c", ""], check=True, timeout=SECONDS)
        yield Line(what, "ok", f"made and removed again, with {how}")
        what, made = "packages", time.monotonic()
        installer.seconds = max(1.0, SECONDS - (made - began))
        installer.locked(str(lock))
        yield _fetched(time.monotonic() - made, how, wheels)
    except WorkbookError as error:
        yield Line(what, "bad", str(error).replace(".deps/install.log", "its message"))
    except subprocess.TimeoutExpired:
        if what == "environment":
            late = f"was not made within {SECONDS:.0f} s: the machine is busy or slow, try again."
            yield Line(what, "note", late)
        elif wheels:
            yield Line(
                what, "note", "not tried to the end: the machine is busy or slow, try again."
            )
        else:
            late = f"{TRIAL} (2 MB) did not come within {SECONDS:.0f} s: take a faster network, "
            yield Line(what, "bad", f"{late}or a wheelhouse (make preflight WHEELHOUSE=folder).")
    except (OSError, subprocess.SubprocessError) as error:
        yield Line(what, "bad", f"{error}: put the workbook on another disk.")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fetched(seconds: float, how: str, wheels: Path | None) -> Line:
    if wheels:
        return Line("packages", "ok", f"the wheelhouse is used; `make lab` takes {MINUTES[how]}")
    megabytes = f"{DOWNLOAD / 1e6:.0f} MB to fetch"
    if seconds < SLOW:
        text = f"the index answers; `make lab` takes about {MINUTES[how]} with {how} ({megabytes})"
        return Line("packages", "ok", text)
    minutes = DOWNLOAD / (TRIAL_SIZE / seconds) / 60
    text = (
        f"{TRIAL_SIZE / 1e6:.0f} MB took {seconds:.0f} s, so the network or the machine is slow: "
    )
    text += f"{megabytes} could take {minutes:.0f} minutes; better take a wheelhouse."
    return Line("packages", "note", text)


def whole_wheelhouse() -> Line:
    """Whether the wheelhouse that ``WHEELHOUSE`` names has all that this Python needs, intact."""
    try:
        folder = install.asked_wheelhouse(install.LOCKS, hashes=True)
    except WorkbookError as error:
        return Line("wheelhouse", "bad", str(error))
    return Line("wheelhouse", "ok", f"{folder} has every package, each with its checksum")


def report(uv: str | None, problem: str | None) -> list[Line]:
    """All lines; what takes longest is done at the same time."""
    steps: list[Callable[[], list[Line]]] = [lambda: [disk()]]
    lines = [system(), python(problem), memory()]
    fit = not any(line.state == "bad" for line in lines)
    if fit and install.is_installed(install.wanted_stamp()):
        there = "is in place already: `make check-env` looks closer"
        return [*lines, *tools(), Line("installation", "ok", there)]
    if fit:
        steps.append(lambda: list(trial(uv)))
    if fit and os.environ.get("WHEELHOUSE"):
        steps.append(lambda: [whole_wheelhouse()])
    with ThreadPoolExecutor() as pool:
        done = [line for part in pool.map(lambda step: step(), steps) for line in part]
    return [*lines, *done, *tools()]


def main() -> int:
    """Print the lines; 0 when the workbook will run here, 1 otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", help="the uv that the installation would use")
    parser.add_argument("--python-problem", help="why no Python that was found will do")
    arguments = parser.parse_args()
    lines = report(arguments.uv, arguments.python_problem)
    print(*lines, sep="\n")
    bad = [line.what for line in lines if line.state == "bad"]
    if bad:
        print(f"The workbook will not run here yet, because of: {', '.join(bad)}.")
        return 1
    print("The workbook will run here.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
