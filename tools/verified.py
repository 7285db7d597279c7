"""When each page last passed, and on which versions: ``docs/verified.json``.

``python -m tools.check_notebooks --record`` writes an entry for each page that passes; see
docs/authoring.md.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import nbformat

from helpers.kernels import ROOT
from helpers.tvm_builds import run_with
from tools.page_checks import code_cells
from tools.pages import Page, find_pages

FILE = Path("docs") / "verified.json"
_ASK = "from helpers.tvm_builds import chosen; print(chosen().version, chosen().package, sep='\\n')"


@dataclass(frozen=True)
class Entry:
    """One run of a page in which every cell passed; ``code`` stands for the code that ran."""

    date: str  # of the run, YYYY-MM-DD, in UTC
    python: str
    relay: str  # TVM's version, and the package where its version is another one
    relax: str
    code: str


def key(page: Page) -> str:
    """The name of a page in the file: ``notebooks/03_operator_fusion``, ``labs/...``."""
    return f"notebooks/{page}" if page.kind == "lesson" else str(page)


def read(root: Path = ROOT) -> dict[str, Entry]:
    """All entries by the names of the pages; none where nothing was recorded."""
    file = root / FILE
    if not file.exists():
        return {}
    found = json.loads(file.read_text(encoding="utf-8"))
    return {name: Entry(**entry) for name, entry in found.items()}


def record(passed: Iterable[Page], root: Path = ROOT) -> None:
    """Write today's entry for these pages. Others keep theirs, pages that are gone lose it."""
    entries = read(root)
    today, versions = datetime.now(timezone.utc).date().isoformat(), _versions()
    for page in passed:
        entries[key(page)] = Entry(today, platform.python_version(), *versions, code(page))
    known = [key(page) for page in find_pages(root)]
    kept = {name: asdict(entries[name]) for name in known if name in entries}
    file = root / FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def code(page: Page) -> str:
    """A short checksum of the page's code: another one means that the page has changed."""
    cells = code_cells(nbformat.read(page.target, 4))
    return hashlib.sha256("\0".join(cell.source for cell in cells).encode()).hexdigest()[:12]


def _versions() -> tuple[str, str]:
    """What the pages import as TVM: with Relay, with Relax."""
    found = []
    for kind in ("relay", "relax"):
        version, package = run_with(kind, _ASK).splitlines()
        found.append(version if version in package else f"{version} ({package})")
    return found[0], found[1]
