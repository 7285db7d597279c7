"""A wheelhouse: one folder with every package that the workbook installs.

``make wheelhouse OUT=folder`` fills it where there is a network, for each supported Python;
``make lab WHEELHOUSE=folder`` installs from it alone. ``wheelhouse.json``, written last, says for
which locks the folder is whole and which wheels each Python needs. Installing reads it with the
standard library only; filling needs the installed workbook (``packaging``) and pip.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.tvm_builds import REQUIRED_GLIBC, ROOT, SUPPORTED_PYTHON

if TYPE_CHECKING:
    from packaging.tags import Tag

INDEX = "wheelhouse.json"
LOCKS = ("requirements.lock", "relay.lock", "models.lock", "openmp.lock")
PYTHONS = tuple(f"3.{minor}" for minor in range(SUPPORTED_PYTHON[0][1], SUPPORTED_PYTHON[1][1] + 1))
FILES_FOR = "3.10"
"""Of the Relay build, the models and OpenMP only the files are used, whatever Python runs them;
their wheels are those for this one."""
BATCH = 20  # packages to a run of pip, which keeps nothing of a run that is interrupted
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;]+)(?: *;([^\n\\]*?))?((?:\s*\\?\s*--hash=\S+)+)", re.M
)


def find(asked: str) -> Path:
    """The wheelhouse that a user calls ``asked``.

    A relative path is one from the current folder or, with ``make -C``, from the shell's. Raises
    :class:`WorkbookError` when there is no wheelhouse.
    """
    bases = (Path.cwd(), Path(os.environ.get("PWD", ".")))
    folder = next((b / asked for b in bases if (b / asked).is_dir()), bases[0] / asked)
    if not folder.is_dir():
        raise WorkbookError(f"WHEELHOUSE={asked}: there is no folder {folder}.")
    if not (folder / INDEX).is_file():
        raise WorkbookError(
            f"{folder} is no wheelhouse, or was not filled to the end (it has no {INDEX}): "
            f"{_remedy(folder)}."
        )
    return folder.resolve()


def check(
    folder: Path, locks: Iterable[str], python: str, *, hashes: bool = False, root: Path = ROOT
) -> int:
    """Check that ``folder`` has what ``locks`` need for this ``python`` ("3.11"); bytes of it.

    Compares sizes, and with ``hashes`` also SHA-256. Raises :class:`WorkbookError` that names the
    first file that is missing or damaged.
    """
    try:
        index = json.loads((folder / INDEX).read_text())
        names = sorted({n for lock in locks for n in _wanted(index, folder, lock, python, root)})
        wheels = {name: index["wheels"][name] for name in names}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise WorkbookError(f"{folder / INDEX} is damaged: {_remedy(folder)}.") from error
    for name, wheel in wheels.items():
        if not (folder / name).is_file():
            raise WorkbookError(f"The wheelhouse {folder} lacks {name}: {_remedy(folder)}.")
        if (folder / name).stat().st_size != wheel["size"]:
            raise WorkbookError(f"{name} in {folder} is not whole: {_remedy(folder)}.")
    if hashes:
        for name, digest in zip(names, _digests(folder / name for name in names), strict=True):
            if digest != wheels[name]["sha256"]:
                raise WorkbookError(f"{name} in {folder} is damaged: {_remedy(folder)}.")
    return sum(wheel["size"] for wheel in wheels.values())


def _wanted(index: Any, folder: Path, lock: str, python: str, root: Path) -> list[str]:
    if lock not in index["locks"]:
        raise WorkbookError(
            f"The wheelhouse {folder} was filled without what {lock} needs: "
            f"{_remedy(folder, ' EXTRAS=1')}."
        )
    if index["locks"][lock]["sha256"] != _digest(root / lock):
        raise WorkbookError(
            f"The wheelhouse {folder} was filled for another version of the workbook "
            f"({lock} differs): {_remedy(folder)}."
        )
    return list(index["locks"][lock]["wheels"][python])


def _remedy(folder: Path, more: str = "") -> str:
    """What to do; :func:`fill` fetches only what is missing."""
    return f"run `make wheelhouse OUT={folder}{more}` where there is a network, and copy it again"


# --- filling --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pin:
    """One package of a lock, with the checksums of all its wheels."""

    name: str
    version: str
    marker: str
    hashes: frozenset[str]

    def applies(self, python: str) -> bool:
        """Whether the lock asks for it on Linux, x86-64, with this Python."""
        from packaging.markers import Marker

        environment = {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_name": "cpython",
            "platform_machine": "x86_64",
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "sys_platform": "linux",
            "os_name": "posix",
        }
        return not self.marker or Marker(self.marker).evaluate(environment)

    def __str__(self) -> str:
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in sorted(self.hashes))
        return f"{self.name}=={self.version} {hashes}"


def pins(text: str) -> list[Pin]:
    """The packages of a lock's ``text``."""
    return [
        Pin(name, version, marker.strip(), frozenset(re.findall(r"sha256:(\w+)", hashes)))
        for name, version, marker, hashes in PIN.findall(text)
    ]


def platforms() -> list[str]:
    """The platform tags of the oldest system that the workbook runs on, the newest first."""
    major, minor = REQUIRED_GLIBC
    newer = [f"manylinux_{major}_{m}_x86_64" for m in range(minor, 4, -1)]
    return [*newer, "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]


def _tags(python: str) -> dict[Tag, int]:
    """The tags of wheels that this Python can use there, and their rank, the best first."""
    from packaging.tags import compatible_tags, cpython_tags

    version = tuple(map(int, python.split(".")))
    interpreter = f"cp{python.replace('.', '')}"
    fit = [
        *cpython_tags(version, abis=[interpreter], platforms=platforms()),
        *compatible_tags(version, interpreter=interpreter, platforms=platforms()),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(fit)))}


class Shelf:
    """The wheels that lie in a folder, by their checksums."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels: dict[str, Path] = {}
        self.seen: set[tuple[Path, int]] = set()
        self.look()

    def look(self) -> None:
        """Take in the wheels that have come, or were replaced, since the last look."""
        there = {(path, path.stat().st_mtime_ns) for path in self.folder.glob("*.whl")}
        new = sorted(path for path, _ in there - self.seen)
        self.wheels.update(zip(_digests(new), new, strict=True))
        self.seen |= there

    def best(self, pin: Pin, tags: dict[Tag, int]) -> Path | None:
        """The wheel that an installer takes for ``pin``; ``None`` where there is none."""
        from packaging.utils import parse_wheel_filename

        ranked = []
        for digest in pin.hashes & self.wheels.keys():
            path = self.wheels[digest]
            ranks = [tags[tag] for tag in parse_wheel_filename(path.name)[3] if tag in tags]
            ranked += [(min(ranks), path)] if ranks else []
        return min(ranked)[1] if ranked else None


def fill(folder: Path, locks: Sequence[str], root: Path = ROOT) -> dict[str, Any]:
    """Fetch what ``locks`` need and ``folder`` lacks, for each Python; the index, as written.

    What was fetched before an interruption is kept. Raises :class:`WorkbookError` when pip cannot
    fetch a package.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shelf, scratch = Shelf(folder), folder / ".part"
    index: dict[str, Any] = {"locks": {}, "wheels": {}}
    try:
        for lock in locks:
            pinned = pins((root / lock).read_text())
            pythons = PYTHONS if lock not in LOCKS[1:] else (FILES_FOR,)
            found = {}
            for python in pythons:
                asked = [pin for pin in pinned if pin.applies(python)]
                tags = _tags(python)
                lacking = [pin for pin in asked if not shelf.best(pin, tags)]
                if lacking:
                    print(f"{lock}, Python {python}: {len(lacking)} packages", flush=True)
                for start in range(0, len(lacking), BATCH):
                    _fetch(lacking[start : start + BATCH], python, folder, scratch)
                    shelf.look()
                paths = [shelf.best(pin, tags) for pin in asked]
                found[python] = sorted(path.name for path in paths if path)
                if None in paths:
                    name = asked[paths.index(None)].name
                    raise WorkbookError(
                        f"pip fetched a wheel of {name} that {lock} does not name for Python "
                        f"{python}: ask who runs your package index or proxy."
                    )
            wheels = {python: found.get(python, found[FILES_FOR]) for python in PYTHONS}
            index["locks"][lock] = {"sha256": _digest(root / lock), "wheels": wheels}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    needed = {
        n for lock in index["locks"].values() for names in lock["wheels"].values() for n in names
    }
    for digest, path in sorted(shelf.wheels.items(), key=lambda item: item[1]):
        if path.name in needed:
            index["wheels"][path.name] = {"size": path.stat().st_size, "sha256": digest}
    part = folder / f"{INDEX}.part"
    part.write_text(json.dumps(index, indent=1) + "\n")
    part.replace(folder / INDEX)
    return index


def _fetch(pinned: Sequence[Pin], python: str, folder: Path, scratch: Path) -> None:
    scratch.mkdir(exist_ok=True)
    asked = scratch / "asked.txt"
    asked.write_text("".join(f"{pin}\n" for pin in pinned))
    command = [*_pip(scratch), "download", "--quiet", "--no-cache-dir", "--progress-bar", "off"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", python, "--implementation", "cp"]
    command += ["--abi", f"cp{python.replace('.', '')}"]
    command += [word for name in platforms() for word in ("--platform", name)]
    environment = {**os.environ, "TMPDIR": str(scratch), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [*command, "-r", str(asked), "-d", str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        raise WorkbookError(
            f"pip could not fetch all packages for Python {python} ({said[-1]}): check the network "
            "and run the command again, it goes on where it stopped."
        )


def _pip(scratch: Path) -> list[str]:
    """This environment's pip, or one in an environment of its own where uv made this one."""
    here = [sys.executable, "-m", "pip"]
    if subprocess.run([*here, "--version"], capture_output=True, check=False).returncode == 0:
        return here
    own = scratch / "pip"
    if not own.exists():
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(own)], capture_output=True, check=False
        )
        if made.returncode:
            shutil.rmtree(own, ignore_errors=True)
            raise WorkbookError(
                "Filling a wheelhouse needs pip, and this Python cannot make an environment that "
                "has it: install Python's venv package (Debian, Ubuntu: apt install python3-venv)."
            )
    return [str(own / "bin" / "python"), "-m", "pip"]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _digests(paths: Iterable[Path]) -> Iterator[str]:
    with ThreadPoolExecutor() as pool:  # hashing leaves Python's lock free
        yield from pool.map(_digest, paths)


def main() -> None:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(description="Fill a wheelhouse.")
    parser.add_argument("folder")
    parser.add_argument("--extras", action="store_true", help="the other locks' packages, too")
    arguments = parser.parse_args()
    if not arguments.folder:
        raise WorkbookError("Where to? Write, for example, make wheelhouse OUT=../wheels.")
    folder = Path(arguments.folder).absolute()
    extras = sorted(path.name for path in ROOT.glob("*.lock") if path.name not in LOCKS)
    try:
        index = fill(folder, [*LOCKS, *(extras if arguments.extras else ())])
    except OSError as error:
        raise WorkbookError(f"{folder} cannot be filled: {error}.") from error
    except KeyboardInterrupt:
        raise WorkbookError("Stopped; run the command again to go on.") from None
    size = sum(wheel["size"] for wheel in index["wheels"].values())
    print(f"{folder}: {len(index['wheels'])} wheels, {size / 1e6:.0f} MB.")
    for python in PYTHONS:
        print(f"  Python {python} needs {check(folder, index['locks'], python) / 1e6:.0f} MB of it")
    print(f"Where there is no network: make lab WHEELHOUSE={folder}")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
