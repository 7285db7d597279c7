"""Which packages have newer versions, and what to do about each: ``make update-check``.

For every package that a ``.in`` file or one of the small locks names, pip is asked for the newest
version on the index that it is configured for. Each newer one is resolved together with the other
packages as they are locked; nothing is installed. Why a package is kept back although it resolves
stands behind its line, as a comment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT

# What is resolved together. Those of browser and hub are installed on top of the workbook's.
GROUPS = {
    "requirements.in": ("requirements",),
    "browser.in": ("browser", "requirements"),
    "book.in": ("book",),
    "setup/hub/hub.in": ("setup/hub/hub", "requirements"),
}
# Installed without dependencies, so there is nothing to resolve.
ALONE = ("relay.lock", "models.lock", "openmp.lock", "slides.lock")
_OFFLINE = re.compile(r"connection|timed out|resolve host|name resolution|proxy", re.I)
_NO_ANSWER = (
    "The package index does not answer, so nothing can be compared: run make update-check where "
    "pip reaches an index."
)


@dataclass(frozen=True)
class Pin:
    """A package that the workbook asks for by name, as it is locked for this Python.

    ``held``: its ``file`` says which versions may be taken.
    """

    name: str
    version: str
    file: str
    held: bool = False
    reason: str = ""

    def advice(self, conflict: str | None) -> str:
        """What to do where there is a newer one."""
        if self.reason or conflict:
            return f"stays: {'; '.join(filter(None, (self.reason, conflict)))}"
        if self.file in ALONE:
            return f"may be taken: write it and its checksum into {self.file}"
        if self.held:
            return f"may be taken: write it into {self.file}, then make lock"
        return f"may be taken: make lock UPGRADE={self.name}"


def pins(file: str, root: Path = ROOT) -> list[Pin]:
    """The packages that ``file`` names, a ``.in`` file or a lock, with their locked versions."""
    path = root / file
    locked = _locked(path.with_suffix(".lock"))
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text, _, reason = line.partition("#")
        text = re.split(r"\s--|\\$", text)[0].strip()
        if not text or text.startswith("-"):
            continue
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in locked and (requirement.marker is None or requirement.marker.evaluate()):
            held = bool(requirement.specifier)
            found.append(Pin(name, locked[name], file, held, reason.strip()))
    return found


def _locked(path: Path) -> dict[str, str]:
    """The versions in a lock that count for this Python."""
    versions: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            requirement = Requirement(re.split(r"\s--|\\$", line)[0].strip())
            if requirement.marker is None or requirement.marker.evaluate():
                (pinned,) = requirement.specifier
                versions[canonicalize_name(requirement.name)] = pinned.version
    return versions


class Index:
    """The package index, asked through ``pip``: a command, found where it is not given."""

    def __init__(self, pip: Sequence[str] | None = None) -> None:
        self.pip = list(pip or _find_pip())

    def newest(self, name: str) -> str | None:
        """The newest version of ``name`` that installs on this Python; ``None``: there is none.

        Raises :class:`WorkbookError` when the index does not answer.
        """
        # The Relay build is a wheel for Python 3.10, which is installed for every Python.
        for target in ((), ("--python-version", "3.10", "--only-binary", ":all:")):
            done = self._run("index", "versions", name, *target)
            if found := re.search(r"^\S+ \((\S+)\)$", done.stdout, re.M):
                return found[1]
            if _OFFLINE.search(done.stderr):
                raise WorkbookError(_NO_ANSWER)
        return None

    def conflicts(self, wanted: Sequence[tuple[str, str]]) -> str | None:
        """Why these names and versions cannot be installed together; ``None`` when they can.

        Raises :class:`WorkbookError` when the index does not answer.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("".join(f"{name}=={version}\n" for name, version in wanted))
            file.flush()
            options = ("--dry-run", "--ignore-installed", "--only-binary", ":all:")
            done = self._run("install", *options, "-r", file.name)
        if done.returncode == 0:
            return None
        _, _, told = done.stdout.partition("The conflict is caused by:\n")
        if causes := _causes(told.partition("\n\n")[0], dict(wanted)):
            return causes
        if _OFFLINE.search(done.stderr):
            raise WorkbookError(_NO_ANSWER)
        return (re.findall(r"^ERROR: (.*)$", done.stderr, re.M) or ["pip fails"])[0]

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.pip, *arguments, "--disable-pip-version-check", "--no-input"]
        return subprocess.run(
            [*command, "--retries", "1"], capture_output=True, text=True, check=False
        )


def _causes(told: str, wanted: dict[str, str]) -> str:
    """Who needs what, of the dependencies that pip names as the cause of a conflict.

    One that the ``wanted`` versions do not satisfy explains it alone; pip names the others, too.
    """
    needs = re.findall(r"^ *(\S+ \S+) depends on (.*)$", told, re.M)
    read = [(who, Requirement(what.replace(" and ", ","))) for who, what in needs]
    unmet = [
        (who, need)
        for who, need in read
        if (version := wanted.get(canonicalize_name(need.name)))
        and not need.specifier.contains(version, prereleases=True)
    ]
    return "; ".join(f"{who} needs {need.name}{need.specifier}" for who, need in unmet or read)


def _find_pip() -> list[str]:
    """This environment's pip, or that of the Python it was made from, for this environment."""
    base = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}")
    for command in ([sys.executable, "-m", "pip"], [base, "-m", "pip", "--python", sys.executable]):
        try:
            done = subprocess.run([*command, "--version"], capture_output=True, check=False)
        except FileNotFoundError:
            continue
        if done.returncode == 0:
            return command
    raise WorkbookError("There is no pip here, and the index is asked through it: install pip.")


def asked(root: Path = ROOT) -> list[Pin]:
    """Every package that is asked for by name."""
    return [pin for file in (*GROUPS, *ALONE) if (root / file).exists() for pin in pins(file, root)]


def check(index: Index, root: Path = ROOT) -> list[tuple[Pin, str, str]]:
    """Each package that is not the newest: the pin, the newest version, what to do about it."""
    every = asked(root)
    with ThreadPoolExecutor(4) as pool:
        newest = dict(zip(every, pool.map(lambda pin: index.newest(pin.name), every), strict=True))
    behind = {
        pin: version
        for pin, version in newest.items()
        if version is not None and Version(version) > Version(pin.version)
    }
    gone = "gone from this index: see whether make clean lab still finds it"
    found = [(pin, "", gone) for pin in every if newest[pin] is None]
    for file in dict.fromkeys(pin.file for pin in every if pin.file in GROUPS):
        whole = [p for part in GROUPS[file] for p in pins(f"{part}.in", root)]
        mine = {pin: version for pin, version in behind.items() if pin.file == file}
        # Most often all that nothing speaks against go together: one question instead of many.
        free = {pin: version for pin, version in mine.items() if not pin.reason}
        together = bool(free) and index.conflicts(_updated(whole, free)) is None
        for pin, version in mine.items():
            fits = together and pin in free
            conflict = None if fits else index.conflicts(_updated(whole, {pin: version}))
            found.append((pin, version, pin.advice(conflict)))
    found += [
        (pin, version, pin.advice(None)) for pin, version in behind.items() if pin.file in ALONE
    ]
    return found


def _updated(group: Iterable[Pin], updates: dict[Pin, str]) -> list[tuple[str, str]]:
    return [(pin.name, updates.get(pin, pin.version)) for pin in group]


def report(found: Sequence[tuple[Pin, str, str]]) -> str:
    """A table, by file."""
    rows = [("package", "locked", "newest", "")]
    rows += [(pin.name, pin.version, version or "-", said) for pin, version, said in found]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    files = ["", *(pin.file for pin, _, _ in found)]
    lines = []
    for file, before, row in zip(files, ["", *files], rows, strict=False):
        if file != before:
            lines += ["", file]
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append(f"{cells}  {row[3]}".rstrip())
    return "\n".join(lines)


def main(index: Index | None = None, root: Path = ROOT) -> None:
    """Entry of the command line."""
    index = index or Index()
    every = len(asked(root))
    print(f"Asking for {every} packages, and what goes together: some minutes.\n", flush=True)
    found = check(index, root)
    if found:
        print(f"{report(found)}\n")
    here = ".".join(map(str, sys.version_info[:2]))
    print(f"{every - len(found)} of the {every} packages are the newest ones for Python {here}.")
    if any("may be taken" in said for _, _, said in found):
        print("After each one that is taken: make test.")
    if any("stays" in said for _, _, said in found):
        print("What stays needs nothing, as long as the reason behind it holds.")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
