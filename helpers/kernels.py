"""The kernel that runs a page, the same for the build and for nbval.

Stored outputs can be the same on the next machine only when both start the same interpreter
with the same surroundings, so both take them from here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.places import FOLDER, ROOT

if TYPE_CHECKING:
    from nbclient import NotebookClient
    from nbformat import NotebookNode

__all__ = ["ROOT", "cause_of_death", "kernel_client", "prepare_environment", "server_environment"]

# One thread each: no result then depends on how many cores there are or on who else uses them.
_THREADS = ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# A terminal's width and a figure backend of the caller's would show in the outputs.
_UNSET = ("COLUMNS", "LINES", "MPLBACKEND", "PYTHONWARNINGS", "PYTHONSTARTUP")


def prepare_environment() -> None:
    """Set in ``os.environ`` what every kernel started from this process shall see."""
    state = FOLDER / ".state"
    path = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path))
    # The user's own start-up files and styles must not reach a page.
    os.environ["PYTHONNOUSERSITE"] = "1"
    os.environ["IPYTHONDIR"] = str(state / "ipython")
    os.environ["MPLCONFIGDIR"] = str(state / "matplotlib")
    for name in _UNSET:
        os.environ.pop(name, None)
    (state / "ipython" / "profile_default").mkdir(parents=True, exist_ok=True)
    (state / "matplotlib").mkdir(parents=True, exist_ok=True)
    if not any((state / "matplotlib").glob("fontlist-*.json")):
        # Matplotlib says on standard error, once per machine, that it builds its font cache.
        command = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(command, check=False, capture_output=True)


def server_environment(folder: Path) -> dict[str, str]:
    """What a JupyterLab that is started for ``folder`` needs to know, as in the Makefile."""
    jupyter = folder / ".state" / "jupyter"
    return {
        "JUPYTER_CONFIG_DIR": str(jupyter / "config"),
        "JUPYTER_CONFIG_PATH": str(ROOT / "setup" / "jupyter"),
        "JUPYTER_DATA_DIR": str(jupyter / "data"),
        "JUPYTER_RUNTIME_DIR": str(jupyter / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(jupyter / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(jupyter / "workspaces"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def kernel_client(
    notebook: NotebookNode, folder: Path, *, timeout: int, variant: str = "", **options: Any
) -> tuple[NotebookClient, dict[str, str]]:
    """What runs ``notebook`` in ``folder`` with this interpreter, and the environment to do so in.

    ``timeout``: seconds for one cell. ``variant``: the learner's (see :mod:`helpers.variants`);
    pages are built and checked with the common one, whatever is set or kept here.
    Use it as ``with client.setup_kernel(env=environment, ...)``.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

    prepare_environment()
    # ipykernel captures what native code writes unless this variable is set, as it is under nbval.
    environment = {**os.environ, "PYTEST_CURRENT_TEST": "build", "VARIANT": variant}
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(
            kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager()
        ),
        timeout=timeout,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
        **options,
    )
    client.owns_km = True  # so that it ends the kernel
    return client, environment


def cause_of_death(manager: Any) -> str:
    """How the kernel of a ``jupyter_client`` manager ended, in words: its signal or exit status."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    status = process.poll() if process is not None else None
    if status is None:
        return "the kernel died"
    if status >= 0:
        return f"the kernel ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    meaning = {"SIGSEGV": ", a segmentation fault", "SIGKILL": ", often for lack of memory"}
    return f"the kernel was killed by {name}{meaning.get(name, '')}"
