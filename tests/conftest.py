"""Fixtures shared by all tests. One process works with one TVM: here the one with Relay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("TVM_NUM_THREADS", "1")
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)  # under ``make test`` a make that a test starts is one of its own
os.environ["VARIANT"] = ""  # whatever is set or kept here: the labs' common variant


@pytest.fixture(scope="session")
def relay():
    """``tvm.relay``, with the repairs of ``use_tvm`` in place."""
    from helpers import use_tvm

    use_tvm("relay", quiet=True)
    from tvm import relay as module

    return module


@pytest.fixture(scope="session")
def pip():
    """A pip that installs into this environment: its own, or its base interpreter's."""
    here = sys.executable
    base = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}")
    for command in ([here, "-m", "pip"], [base, "-m", "pip", "--python", here]):
        if (
            subprocess.run([*command, "--version"], capture_output=True, check=False).returncode
            == 0
        ):
            return command
    pytest.skip("no pip here: uv made this environment from a Python without pip")
