"""Run the lessons once where the workbook is installed, so that no student has to compile them.

``python setup/hub/warm.py [NN ...]`` fills the installation's ``.state`` with the compiled and
imported models of all lessons, or of those named. Students' kernels read them from there.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import nbformat  # noqa: E402

from helpers.errors import WorkbookError, exit_with_sentence  # noqa: E402
from helpers.kernels import kernel_client  # noqa: E402

CELL_TIMEOUT = 600  # seconds


def warm(lesson: Path) -> float:
    """Run all cells of ``lesson``, and throw the outputs away; the seconds it took."""
    from nbclient.exceptions import CellExecutionError

    began = time.monotonic()
    client, environment = kernel_client(
        nbformat.read(lesson, 4), lesson.parent, timeout=CELL_TIMEOUT
    )
    with client.setup_kernel(env=environment, stderr=subprocess.DEVNULL):
        for index, cell in enumerate(client.nb.cells):
            if cell.cell_type == "code":
                try:
                    client.execute_cell(cell, index, store_history=False)
                except CellExecutionError as error:
                    raise WorkbookError(f"{lesson.name}, cell {cell.id}: {error.evalue}") from error
    return time.monotonic() - began


def main(numbers: list[str]) -> None:
    """Run them one after another."""
    for lesson in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if not numbers or lesson.name[:2] in numbers:
            print(f"{lesson.stem}: {warm(lesson):.0f} s", flush=True)
    # Students are others than who installed it: they need to read what is there now.
    for path in (ROOT / ".state").rglob("*"):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WorkbookError as error:
        exit_with_sentence(error)
