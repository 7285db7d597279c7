"""Make the copy of the workbook that a class receives: no solutions, no hidden checks, no history.

``python -m tools.release FOLDER`` (``make release OUT=folder``) writes the copy into a new folder
and, beside it, the same as ``.tar.gz``. It takes committed files only, by a list of what belongs
into it: what is added to the workbook later stays out until it is named here.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

import nbformat

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from helpers.version import number
from tools.pages import find_pages, read_page

GIVEN = (
    ".dockerignore",
    "CHANGELOG.md",
    "Dockerfile",
    "LICENSE",
    "Makefile",
    "bench/*.json",  # what lessons show as recorded
    "bench/pass_ablation.py",  # what lesson 07 measures with
    "docs/instructor/paths/*.yaml",
    "environment.yml",
    "helpers/**/*",
    "labs/*/*.ipynb",
    "notebooks/*.ipynb",
    "notebooks/quiz/*.yaml",
    "notebooks/src/*.md",
    "pyproject.toml",
    "requirements.lock",
    *(f"{name}.lock" for name in ("relay", "models", "openmp")),
    "setup/**/*",
)
README = "docs/class/README.md"
# Of these files a class gets what stands before this.
ENDS = {"Makefile": "# --- for those who write", "pyproject.toml": "[tool."}
SHORTEST = 24  # characters of a line that is looked for; shorter ones are in any program


def contents(root: Path = ROOT) -> dict[str, bytes]:
    """The files of the copy, by their paths in it, from the last commit at ``root``.

    Raises :class:`WorkbookError` when one of them has changed since that commit.
    """
    names = _git(root, "ls-files", "-z").split("\0")
    given = sorted(name for name in names if any(_matches(name, pattern) for pattern in GIVEN))
    changed = set(_git(root, "diff", "--name-only", "-z", "HEAD").split("\0"))
    if mine := sorted(changed & {*given, README}):
        raise WorkbookError(
            f"{', '.join(mine[:3])}{' ...' if mine[3:] else ''} changed since the last commit: "
            "commit it or take it back, so that a class gets what was tested."
        )
    files = {name: (root / name).read_bytes() for name in given}
    files["README.md"] = (root / README).read_bytes()
    for name, end in ENDS.items():
        files[name] = files[name].partition(end.encode())[0].rstrip() + b"\n"
    return files


def _matches(name: str, pattern: str) -> bool:
    folder, deep, rest = pattern.partition("/**/")
    if deep:
        return name.startswith(f"{folder}/") and PurePosixPath(name).match(rest)
    return PurePosixPath(name).match(pattern) and name.count("/") == pattern.count("/")


def secrets(root: Path = ROOT) -> dict[str, set[str]]:
    """For each lab the lines that must not reach a class.

    They are the lines of answers that the lab does not show, and all of its ``checks.py``.
    """
    found = {}
    for page in find_pages(root):
        if page.kind == "lab":
            public = "\n".join(cell.source for cell in read_page(page).cells)
            texts = [page.source, page.source.parent / "checks.py"]
            lines = "\n".join(path.read_text(encoding="utf-8") for path in texts).splitlines()
            found[page.name] = {
                line
                for line in map(str.strip, lines)
                if len(line) >= SHORTEST and line not in public and not line.startswith("#")
            }
    return found


def leaks(files: dict[str, bytes], hidden: dict[str, set[str]]) -> list[str]:
    """Which files hold lines that :func:`secrets` names; empty when none does.

    In the lab itself one is a leak. Elsewhere three neighbouring ones are: a lesson or a helper may
    have a line in common with an answer, since it teaches or does the same thing.
    """
    problems = []
    for name, data in files.items():
        text = data.decode("utf-8", "replace")
        if name.endswith(".ipynb"):
            cells = nbformat.reads(text, 4).cells
            text = "\n".join(f"{cell.source}\n{cell.get('outputs', '')}" for cell in cells)
        lines = [line for line in map(str.strip, text.splitlines()) if len(line) >= SHORTEST]
        for lab, secret in hidden.items():
            allowed = 0 if name.startswith(f"labs/{lab}/") else 2
            run = 0
            for line in lines:
                run = run + 1 if line in secret else 0
                if run > allowed:
                    problems.append(f"{name} holds a part of the solution of {lab}: {line}")
                    break
    return problems


def release(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write the copy into ``folder``, which must not exist, and ``folder.tar.gz``; both paths.

    Raises :class:`WorkbookError` when there is something in the way, or a solution in the copy.
    """
    folder = folder.absolute()
    archive = folder.with_name(f"{folder.name}.tar.gz")
    if folder.resolve().is_relative_to(root.resolve()):
        raise WorkbookError(
            f"{folder} lies in the workbook itself, with its solutions one folder away: name one "
            "outside."
        )
    for path in (folder, archive):
        if path.exists():
            raise WorkbookError(f"{path} exists already: name a new folder, or remove it.")
    files = contents(root)
    if problems := leaks(files, secrets(root)):
        raise WorkbookError(f"Nothing was written: {problems[0]}.")
    executable = set(_git(root, "ls-files", "-s").splitlines())
    modes = {line.split("\t")[1]: 0o755 for line in executable if line.startswith("100755")}
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(modes.get(name, 0o644))
    # The same files give the same bytes: no times, no names of people.
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder.name}/{name}")
            entry.size, entry.mode = len(data), modes.get(name, 0o644)
            tar.addfile(entry, io.BytesIO(data))
    archive.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return [folder, archive]


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise WorkbookError(
            f"A release is made from a git checkout, and git says: {done.stderr.strip()}"
        )
    return done.stdout


def main(arguments: list[str]) -> None:
    """Entry of the command line."""
    if len(arguments) != 1 or not arguments[0]:
        raise WorkbookError("Where to? Write, for example, make release OUT=../for-the-class.")
    folder, archive = release(Path(arguments[0]))
    labs = sorted(path.parent.name[:2] for path in folder.glob("labs/*/*.ipynb"))
    print(
        f"Version {number()} is written to {folder} and {archive}: labs {', '.join(labs)}, no "
        "solutions."
    )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WorkbookError as error:
        exit_with_sentence(error)
