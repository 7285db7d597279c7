"""Start a student's server: bring their copy of the pages up to date, then become JupyterLab.

``python setup/hub/server.py`` takes the arguments of ``jupyterhub-singleuser`` and passes them on;
JupyterHub runs it as the student (``c.Spawner.cmd``). The pages are copied into ``~/workbook``, or
into the folder that ``RELAY_WORKBOOK_FOLDER`` names, and are the student's own. Packages, helpers
and models are the installation's: the folder has links to them, so that ``make verify`` and the
other commands work in it.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from helpers.errors import WorkbookError, exit_with_sentence  # noqa: E402
from helpers.kernels import server_environment  # noqa: E402
from helpers.places import VARIABLE  # noqa: E402
from helpers.update import fresh_copy, only_run  # noqa: E402

LINKS = (
    *(".deps", ".venv", "Makefile", "helpers", "setup"),
    *("LICENSE", "bench", "notebooks/quiz", "notebooks/src"),  # what lessons read
)
PAGES = ("notebooks/*.ipynb", "labs/*/*.ipynb")
ONE_THREAD = ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def prepare(folder: Path, root: Path = ROOT) -> list[str]:
    """Make ``folder`` a working copy of the installation ``root``; the sentences to log.

    What a student wrote stays: a page of theirs that the installation has anew is put beside it as
    ``NN_topic.fresh.ipynb``. A page that they removed, or only ran, is the newest one afterwards.
    """
    said = []
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in LINKS:
        shared, link = root / name, folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink() and link.readlink() != shared:
            link.unlink()
        if not os.path.lexists(link):
            link.symlink_to(shared)
    fonts = folder / ".state" / "matplotlib"  # finding all fonts anew would take seconds
    fonts.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in (root / ".state" / "matplotlib").glob("fontlist-*.json"):
        shutil.copyfile(file, fonts / file.name)
    given = folder / ".state" / "given"  # the pages as they came, to tell what was changed since
    for page in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        place = page.relative_to(root)
        mine, came = folder / place, given / place
        new = page.read_bytes()
        old = came.read_bytes() if came.is_file() else b""
        if mine.is_file() and new == old:
            continue
        target = mine
        if mine.is_file() and mine.read_bytes() != new and not only_run(old, mine.read_bytes()):
            target = fresh_copy(mine)
            said.append(f"{place} is changed, and stays; the new one is {target.name} beside it.")
        for path in (target, came):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, path)
    return said


def environment(folder: Path) -> dict[str, str]:
    """What the server and its kernels need to know, as the Makefile says it to ``make lab``."""
    state = folder / ".state"
    return {
        **server_environment(folder),
        VARIABLE: str(folder),
        "JUPYTERHUB_ROOT_DIR": str(folder),
        "IPYTHONDIR": str(state / "ipython"),
        "MPLCONFIGDIR": str(state / "matplotlib"),
        "ORT_DISABLE_TELEMETRY": "1",
        "TEST_DATA_ROOT_PATH": str(state / "tvm_test_data"),
        "PYTHONNOUSERSITE": "1",
        # So that students share the cores evenly; times in the lessons are of one thread anyway.
        **dict.fromkeys(ONE_THREAD, "1"),
    }


def main(arguments: list[str]) -> None:
    """Prepare, and become the server."""
    os.umask(0o077)
    folder = Path(os.environ.get(VARIABLE) or Path.home() / "workbook").absolute()
    server = Path(sys.executable).with_name("jupyterhub-singleuser")
    if not server.exists():
        raise WorkbookError("JupyterHub is not installed in this environment: run make hub there.")
    try:
        for sentence in prepare(folder):
            print(sentence, flush=True)
        os.chdir(folder)
    except OSError as error:
        raise WorkbookError(
            f"{error.filename or folder} cannot be made ({error.strerror}): the student needs a "
            "home directory that can be written, with room in it."
        ) from error
    os.environ.update(environment(folder))
    os.execv(server, [str(server), *arguments])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except WorkbookError as error:
        exit_with_sentence(error)
