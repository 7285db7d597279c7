"""Say what is installed, which TVMs and devices there are, what is wrong: ``make check-env``."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from helpers.tvm_builds import ROOT, machine_problem
from helpers.version import number

SHOWN = ("apache-tvm", "numpy", "onnx", "onnxruntime", "jupyterlab", "ipywidgets", "matplotlib")
SECONDS = 120  # for a TVM to load: a driver that does not answer could keep it for ever
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: *; *(.*?))? *\\?$", re.M)


def locked_versions() -> dict[str, str]:
    """What ``requirements.lock`` pins for this Python: package name → version."""
    from packaging.markers import Marker

    return {
        name: version
        for name, version, marker in PIN.findall((ROOT / "requirements.lock").read_text())
        if not marker or Marker(marker).evaluate()
    }


def package_problems() -> Iterator[str]:
    """A sentence for each package that is missing or has not the version of the lock."""
    for name, wanted in locked_versions().items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{name} {wanted} is missing."
            continue
        if found != wanted:
            yield f"{name} is {found}; the workbook was checked with {wanted}."


def tvm_line(kind: str) -> tuple[bool, str]:
    """Whether the TVM of this kind loads, and its line or what is wrong; asks another process."""
    code = f"from helpers import use_tvm; use_tvm({kind!r})"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False, f"{kind.capitalize()}: does not load within {SECONDS} s."
    if done.returncode == 0:
        return True, done.stdout.strip()
    last = (done.stderr.strip().splitlines() or [f"stopped with status {done.returncode}"])[-1]
    return False, f"{kind.capitalize()}: {last.removeprefix('helpers.errors.WorkbookError: ')}"


def driver_line() -> str:
    """NVIDIA's driver and the GPUs that it sees, or that there is none."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "NVIDIA driver: none found, kernels run on the CPU"
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        why = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
        return f"NVIDIA driver: does not answer ({why[0]}), kernels run on the CPU"
    return f"NVIDIA driver: {'; '.join(lines)}"


def where_line(lines: Mapping[str, str]) -> str:
    """What would run where, from the lines of the two TVMs."""
    on_gpu = [kind.capitalize() for kind, line in lines.items() if "cuda" in line]
    if not on_gpu:
        return 'All lessons run on the CPU: target="cuda" is refused here'
    return f'{" and ".join(on_gpu)} can use target="cuda", all else runs on the CPU'


def compiler_line() -> tuple[bool, str]:
    """Whether there is a C++ compiler, and the line that says which or who needs it."""
    compiler = os.environ.get("CXX") or "g++"
    there = shutil.which(compiler) is not None
    need = "" if there else " is missing: lesson and lab 14 need it"
    return there, f"C++ compiler {compiler}{need}"


def main() -> int:
    """Print the report; 0 when nothing is wrong, 1 otherwise."""
    problems = [machine_problem()] if machine_problem() else []
    cores = len(os.sched_getaffinity(0))
    print(f"The Relay Workbook {number() or '(version unknown)'}")
    print(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, ", end=""
    )
    print(f"{cores} cores, {shutil.disk_usage(ROOT).free / 1e9:.0f} GB of disk free")
    for name in SHOWN:
        try:
            print(f"  {name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"  {name} -")
    wrong_packages = list(package_problems())
    lines = {}
    for kind in ("relay", "relax"):
        works, lines[kind] = tvm_line(kind)
        print(f"  {lines[kind]}")
        if not works:
            problems.append(lines[kind])
    print(f"  {driver_line()}")
    print(f"  {where_line(lines)}")
    print(f"  {compiler_line()[1]}")
    if not (ROOT / ".deps" / "models").is_dir():
        problems.append("The models with real weights are missing.")
    problems += wrong_packages
    if not problems:
        print("Everything is in place.")
        return 0
    print("Wrong here:")
    for problem in problems:
        print(f"  - {problem}")
    print("`make clean lab` installs the workbook again (in a conda environment: `make builds`).")
    return 1


if __name__ == "__main__":
    sys.exit(main())
