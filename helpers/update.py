"""Bring the workbook up to date without touching what a learner wrote.

``make update`` is ``git pull`` for people who work in the notebooks. A notebook that they changed
and that the update changes, too, stays as it is; the new one is put beside it as
``NN_topic.fresh.ipynb``. One that was only run is replaced by the new one. Killed at any moment,
it goes on where it stopped the next time. It says from which version to which, and what
``CHANGELOG.md`` has on the way.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from helpers.errors import WorkbookError, exit_with_sentence
from helpers.kernels import ROOT
from helpers.version import news, number

_FOLDERS = ("labs", "notebooks")
_MINE, _FRESH = ".mine.ipynb", ".fresh.ipynb"
_STATES = ("HEAD", "@{upstream}")


def update(root: Path = ROOT) -> list[str]:
    """Fast-forward the checkout at ``root``; the sentences to print.

    Raises :class:`WorkbookError` when it is no checkout, has commits of its own, or when both sides
    changed a file that is no notebook; nothing is changed then.
    """
    if _git(root, "rev-parse", "--show-toplevel", check=False).strip() != str(root.resolve()):
        raise WorkbookError(
            f"{root}{_of(number())} is not a git checkout: where your course has a newer version, "
            "unpack it in a folder of its own, and copy your notebooks and progress.json into it."
        )
    said = list(_put_back(root))
    if not _git(root, "rev-parse", "--abbrev-ref", "@{upstream}", check=False):
        raise WorkbookError(
            "This branch follows no other one, so there is nothing to update from: run "
            "`git branch --set-upstream-to=origin/main`, with your branch's name."
        )
    _git(root, "fetch", "--quiet")
    if _git(root, "rev-list", "@{upstream}..HEAD"):
        raise WorkbookError(
            "You have commits of your own, and this command only follows the workbook: use "
            "`git pull --rebase`."
        )
    incoming = _names(root, "HEAD", "@{upstream}")
    old, new = (number(_text(root, state, "pyproject.toml")) for state in _STATES)
    if not incoming:
        return [*said, f"The workbook is up to date{_of(old)}."]
    way = f" from version {old} to {new}" if old and new != old else ""
    known, changelog = (_text(root, state, "CHANGELOG.md") for state in _STATES)
    both = sorted(incoming & _names(root, "HEAD"))
    others = [name for name in both if not _is_page(name)]
    if others:
        raise WorkbookError(
            f"The update{way} changes {', '.join(others)}, and so did you: put your change aside "
            "with `git stash`, run make update again, then `git stash pop`."
        )
    for name in both:
        path = root / name
        if path.exists() and not _only_run_here(root, name):
            shutil.copy2(path, _beside(path, _MINE + ".part"))
            _beside(path, _MINE + ".part").replace(_beside(path, _MINE))
        _git(root, "checkout", "HEAD", "--", name)
    try:
        _git(root, "merge", "--ff-only", "--quiet", "@{upstream}")
    finally:
        said += _put_back(root)
    told = f"The workbook is updated{way or _of(new)}: {len(incoming)} files changed."
    return [*said, told, *news(changelog, old, known)]


def _only_run_here(root: Path, name: str) -> bool:
    try:
        given = _git(root, "show", f"HEAD:{name}").encode()
        return only_run(given, (root / name).read_bytes())
    except (OSError, WorkbookError):
        return False


def only_run(given: bytes, mine: bytes) -> bool:
    """Whether nothing but outputs differs between a notebook as it was given out and a learner's.

    What cannot be read counts as changed, so that it is kept.
    """
    import nbformat  # a second, and rarely needed

    try:
        before, after = (nbformat.reads(text.decode("utf-8"), 4).cells for text in (given, mine))
    except Exception:  # nbformat lets through whatever the text's parts raise
        return False
    return [(cell.cell_type, cell.source) for cell in before] == [
        (cell.cell_type, cell.source) for cell in after
    ]


def _put_back(root: Path) -> Iterator[str]:
    """Give each notebook that was put aside its place back, and the new one a place beside it."""
    for mine in sorted(p for folder in _FOLDERS for p in (root / folder).rglob(f"*{_MINE}")):
        path = mine.with_name(mine.name.removesuffix(_MINE) + ".ipynb")
        name = path.relative_to(root).as_posix()
        if path.exists() and path.read_bytes() != mine.read_bytes():
            fresh = _beside(path, _FRESH)
            path.replace(fresh)
            yield f"{name} is yours and stays as it is; the new one is {fresh.name} beside it."
        elif not path.exists():
            yield f"{name} is yours and stays; the workbook no longer has it."
        mine.replace(path)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name.removesuffix(".ipynb") + ending)


def fresh_copy(path: Path) -> Path:
    """Where a new version of the notebook ``path`` goes when a learner's own lies there."""
    return _beside(path, _FRESH)


def _is_page(name: str) -> bool:
    return name.endswith(".ipynb") and name.split("/")[0] in _FOLDERS


def _names(root: Path, *revisions: str) -> set[str]:
    """The files that differ between two revisions, or between one and what is on the disk."""
    return set(filter(None, _git(root, "diff", "--name-only", "-z", *revisions).split("\0")))


def _text(root: Path, state: str, name: str) -> str:
    return _git(root, "show", f"{state}:{name}", check=False)


def _of(version: str) -> str:
    return f" (version {version})" if version else ""


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise WorkbookError("git is not installed, and the update comes through it.") from error
    if done.returncode != 0:
        if not check:
            return ""
        reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise WorkbookError(f"git {arguments[0]} failed, and nothing of yours is lost: {reason}")
    return done.stdout


def main() -> None:
    """Entry of the command line."""
    print("\n".join(update()))


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
