"""Run the browser tests: ``python -m tools.browser [options of pytest]``.

Installs what drives a browser (``browser.lock``) into the environment, finds a Chromium, and runs
``tests/browser`` with it. Where there is no Chromium every test is skipped and says so. With
``INSTALL_CHROMIUM=1`` in the environment root installs Debian's first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT

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
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def main(arguments: list[str]) -> int:
    """Make ready and run the tests; returns pytest's exit status."""
    if find_chromium() is None and os.environ.get("INSTALL_CHROMIUM") == "1":
        install_chromium()
    if find_chromium() is not None:
        uv = shutil.which("uv")
        ready = [sys.executable, str(ROOT / "setup" / "install.py"), "--browser-tests"]
        if code := subprocess.run([*ready, *(["--uv", uv] if uv else [])], check=False).returncode:
            return code
    command = ["-q", "-n", "2", "--dist", "worksteal", "tests/browser", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WorkbookError as error:
        exit_with_sentence(error)
