"""What a tool needs beside the installed workbook, fetched when it is first used."""

from __future__ import annotations

import shutil
import subprocess
import sys

from helpers.kernels import ROOT


def install(option: str) -> int:
    """Run ``setup/install.py`` with ``option``, by uv where there is one; the exit status."""
    uv = shutil.which("uv")
    command = [sys.executable, str(ROOT / "setup" / "install.py"), option]
    return subprocess.run([*command, *(["--uv", uv] if uv else [])], check=False).returncode
