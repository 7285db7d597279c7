"""Run the browser tests: ``python -m tools.browser [options of pytest]``.

Installs what drives a browser (``browser.lock``) into the environment, finds a Chromium, and runs
``tests/browser`` with it. Where there is no Chromium every test is skipped and says so. With
``INSTALL_CHROMIUM=1`` in the environment root installs Debian's first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys

import pytest

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from tools import extras

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = (
    "no Chromium here: install one, or name one with CHROMIUM=/path/to/it, or let root run this "
    "with INSTALL_CHROMIUM=1"
)


def find_chromium() -> str | None:
    """The Chromium to test with: ``CHROMIUM``, or the first one on the path.

    Raises :class:`WorkbookError` when ``CHROMIUM`` names no program.
    """
    if named := os.environ.get("CHROMIUM"):
        if found := shutil.which(named):
            return found
        raise WorkbookError(f"CHROMIUM={named} is not a program: name a Chromium, or leave it out.")
    return next(filter(None, map(shutil.which, NAMES)), None)


def install_chromium() -> None:
    """Install Debian's Chromium, as root on a system that has ``apt-get``; else do nothing."""
    if os.geteuid() or not shutil.which("apt-get"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"]
    for command in (["apt-get", "update", "--quiet"], install):
        print(" ".join(command), flush=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=300
            )


def main(arguments: list[str]) -> int:
    """Make ready and run the tests; returns pytest's exit status."""
    if find_chromium() is None and os.environ.get("INSTALL_CHROMIUM") == "1":
        install_chromium()
    if find_chromium() is not None and (code := extras.install("--browser-tests")):
        return code
    code = _pytest("-n", "2", "--dist", "worksteal", *arguments)
    if code == pytest.ExitCode.TESTS_FAILED:
        # Two pages at once on a machine that does other things can be too slow for a browser. A
        # fault of a page is there when it runs alone, too.
        print("Once more what failed, one page at a time:", flush=True)
        code = _pytest("--last-failed", "--last-failed-no-failures", "none", *arguments)
    return code


def _pytest(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *arguments, "tests/browser"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WorkbookError as error:
        exit_with_sentence(error)
