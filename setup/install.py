"""Install the workbook into its own folder: environment, Relay build, models.

Run by ``setup.sh`` with the Python it found; uses the standard library only. Idempotent: a stamp,
written last, says which locks and which Python the installation stands for. Without a matching
stamp everything is made anew, so an interruption half-way leaves nothing to mend by hand.
Nothing is written outside the checkout.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from helpers import wheelhouse  # noqa: E402
from helpers.errors import WorkbookError  # noqa: E402
from helpers.tvm_builds import OPENMP, check_machine  # noqa: E402

VENV = ROOT / ".venv"
DEPS = ROOT / ".deps"
STAMP = DEPS / "installed.json"
LOG = DEPS / "install.log"
LOCKS = wheelhouse.LOCKS
NEEDED_BYTES = 3_000_000_000
"""1.5 GB installed, and room for the downloads until they are in place."""


class Installer:
    """One installation: how packages are fetched, and where what is happening is written.

    With ``wheels``, a wheelhouse, from there alone: no package index, no setting of the user's.
    ``seconds`` is how long one step may take.
    """

    def __init__(
        self,
        uv: str | None,
        python: Path = VENV / "bin" / "python",
        wheels: Path | None = None,
        *,
        scratch: Path | None = None,
        seconds: float | None = None,
    ) -> None:
        self.uv = uv
        self.python = python
        self.wheels = wheels
        self.seconds = seconds
        self.log = scratch / LOG.name if scratch else LOG
        scratch = scratch or DEPS
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        if wheels:
            kept = {k: v for k, v in kept.items() if not k.startswith(("PIP_", "UV_"))}
            kept |= {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "UV_OFFLINE": "1"}
        self.env = {
            **kept,
            "UV_CACHE_DIR": str(scratch / "cache" / "uv"),
            "PIP_CACHE_DIR": str(scratch / "cache" / "pip"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
            "TMPDIR": str(scratch / "tmp"),
            "UV_PYTHON_DOWNLOADS": "never",
        }

    def environment(self, *, bare: bool = False) -> None:
        """Make the virtual environment that everything else goes into; ``bare``: without pip."""
        folder = str(self.python.parent.parent)
        if self.uv:
            self._run([self.uv, "venv", "--quiet", "--python", sys.executable, folder])
            return
        command = [sys.executable, "-m", "venv", folder]
        # Debian's Python without its venv package has pip but no ensurepip.
        if bare or not can_import("ensurepip"):
            command.append("--without-pip")
        self._run(command)

    def locked(self, lock: str, target: Path | None = None) -> None:
        """Install what ``lock`` pins, by hash: into the environment or, files only, ``target``."""
        options = [
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
            "-r",
            str(ROOT / lock),
        ]
        if target is not None:
            # The files do not depend on the Python that runs them; the wheels' tags would say so.
            options += ["--target", str(target), "--python-version", wheelhouse.FILES_FOR]
        if self.wheels:
            options += ["--no-index", "--find-links", str(self.wheels)]
        if self.uv:
            command = [self.uv, "pip", "install", "--python", str(self.python)]
            self._run(command + options)
            return
        self._run([*self._pip(), "install", "--no-compile", "--progress-bar", "off", *options])

    def _pip(self) -> list[str]:
        """The environment's own pip or, where it was made without one, as uv does, another's."""
        here = can_import("pip")
        if self.python.with_name("pip").exists() or (here and str(self.python) == sys.executable):
            return [str(self.python), "-m", "pip"]
        base = Path(sys.base_prefix) / "bin" / "python{}.{}".format(*sys.version_info)
        return [sys.executable if here else str(base), "-m", "pip", "--python", str(self.python)]

    def npm(self, npm: str, folder: Path) -> None:
        """Install what the ``package-lock.json`` in ``folder`` pins, by hash; no script is run."""
        options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"]
        cache = ["--cache", str(DEPS / "cache" / "npm")]
        self._run([npm, "ci", "--prefix", str(folder), *options, *cache])

    def _run(self, command: list[str]) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            start = log.tell()
            code = self._wait(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self.env,
                    cwd=ROOT,
                    start_new_session=self.seconds is not None,
                )
            )
        if code:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                log.seek(start)
                raise WorkbookError(explain(log.read(), code))

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Its status; where it takes too long it is ended, and what it started with it."""
        with process:
            try:
                return process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise


def asked_wheelhouse(locks: Iterable[str], *, hashes: bool = False) -> Path | None:
    """The folder that ``WHEELHOUSE`` names, if it does, checked to have all that ``locks`` need."""
    asked = os.environ.get("WHEELHOUSE")
    if not asked:
        return None
    folder = wheelhouse.find(asked)
    wheelhouse.check(folder, locks, "{}.{}".format(*sys.version_info), hashes=hashes)
    return folder


def explain(output: str, code: int) -> str:
    """Say in one sentence why an installer's run failed and what to do, from its ``output``."""
    causes = (
        (
            r"hash(es)? (mismatch|do not match)|do not match the hashes|hash mismatch",
            "A downloaded package does not have the checksum the workbook expects, so nothing was "
            "installed from it: run make again, and if it happens again ask who runs your package "
            "index or proxy.",
        ),
        (
            r"No space left on device|Disk quota exceeded|os error 28|os error 122",
            f"The disk is full: free about {NEEDED_BYTES / 1e9:.0f} GB where the workbook lies and "
            "run make again.",
        ),
        (
            r"Read-only file system|Permission denied|os error 13|os error 30",
            "The workbook's folder cannot be written: copy it to a folder of yours and run make "
            "there.",
        ),
        (
            r"name resolution|dns error|Network is unreachable|Connection refused|timed out|"
            r"ConnectTimeout|error sending request|Failed to fetch|ProxyError|NewConnectionError|"
            r"Max retries exceeded|Could not connect|No route to host|Connection aborted",
            "The package index cannot be reached: check the network (or the proxy, HTTPS_PROXY) "
            "and run make again, or install from a wheelhouse: add WHEELHOUSE=folder to the "
            "command.",
        ),
        (
            r"No module named '?pip\b",
            "Installing needs pip or uv, and neither is here: install one of them (Debian, Ubuntu: "
            "apt install python3-pip) and run make again.",
        ),
        (
            r"No matching distribution|no wheels? with a matching|has no wheels|not a supported "
            r"wheel|Could not find a version|no version of",
            "Your package index does not have a package the workbook needs, or not for this "
            "machine: see .deps/install.log.",
        ),
    )
    for pattern, sentence in causes:
        if re.search(pattern, output, flags=re.I):
            return sentence
    if code < 0:
        return f"The installation was stopped by signal {-code}: run make again."
    return "The installation failed: .deps/install.log says how; run make again."


def disk_problem() -> str | None:
    """What there is to say about the free disk space; ``None`` when it is enough."""
    free = shutil.disk_usage(ROOT).free
    if free >= NEEDED_BYTES:
        return None
    return (
        f"The workbook needs {NEEDED_BYTES / 1e9:.0f} GB of free disk space where it lies, "
        f"and {free / 1e9:.1f} GB are free: free some and run make again."
    )


def wanted_stamp() -> dict[str, str]:
    """What an installation that needs nothing done looks like."""
    digest = hashlib.sha256(b"".join((ROOT / lock).read_bytes() for lock in LOCKS)).hexdigest()
    return {"locks": digest, "root": str(ROOT)}


def is_installed(wanted: dict[str, str]) -> bool:
    """Whether the stamp matches and the environment's Python still starts."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    if {key: stamp.get(key) for key in wanted} != wanted:
        return False
    return starts(VENV / "bin" / "python")


def starts(python: Path) -> bool:
    """Whether there is a Python and it runs: the one that made an environment may be gone."""
    if not python.exists():
        return False
    started = subprocess.run([str(python), "-c", ""], capture_output=True, check=False)
    return started.returncode == 0


def install(uv: str | None) -> None:
    """Bring the folder to the state the locks describe; does nothing when it is there already."""
    check_machine()
    if is_installed(wanted_stamp()):  # also by somebody else, for many who cannot write here
        return
    try:
        DEPS.mkdir(exist_ok=True)
        lock = (DEPS / "lock").open("w")
    except OSError as error:
        raise WorkbookError(explain(str(error), 1)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = wanted_stamp()
        if is_installed(wanted):
            return
        installer = Installer(uv, wheels=asked_wheelhouse(LOCKS))
        STAMP.unlink(missing_ok=True)
        _remove(VENV)
        problem = disk_problem()
        if problem:
            raise WorkbookError(problem)
        LOG.unlink(missing_ok=True)
        (DEPS / "tmp").mkdir(exist_ok=True)
        _install_all(installer)
        STAMP.write_text(json.dumps(wanted, indent=1) + "\n")
        _remove(DEPS / "cache")
        _remove(DEPS / "tmp")


def _install_all(installer: Installer) -> None:
    how = "uv" if installer.uv else "pip: two minutes, uv would take twenty seconds"
    how += f", from {installer.wheels} alone" if installer.wheels else ""
    steps = (
        (f"Python {platform.python_version()} environment", installer.environment),
        (f"packages ({how})", lambda: installer.locked("requirements.lock")),
        ("the TVM that has Relay", lambda: _relay(installer)),
        ("models with real weights", lambda: _into(installer, "models.lock", DEPS / "models")),
    )
    print("Setting up the workbook in this folder (first use only).", flush=True)
    for number, (what, step) in enumerate(steps, 1):
        print(f"  {number}/{len(steps)} {what}", flush=True)
        step()
    _make_helpers_importable(installer.python)


def install_builds(uv: str | None) -> None:
    """Add the Relay build and the models for the Python that runs this (conda users)."""
    check_machine()
    installer = Installer(uv, Path(sys.executable), asked_wheelhouse(LOCKS[1:]))
    DEPS.mkdir(exist_ok=True)
    (DEPS / "tmp").mkdir(exist_ok=True)
    _relay(installer)
    _into(installer, "models.lock", DEPS / "models")
    _make_helpers_importable(installer.python)
    _remove(DEPS / "cache")
    _remove(DEPS / "tmp")
    print("The Relay build and the models are in place.")


def install_browser_tests(uv: str | None) -> None:
    """Add what drives a browser to the environment, if it is not there yet."""
    lock, stamp = ROOT / "browser.lock", VENV / "browser.lock"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    installer = Installer(uv, wheels=asked_wheelhouse([lock.name]))
    (DEPS / "tmp").mkdir(parents=True, exist_ok=True)
    print("Installing what drives a browser.", flush=True)
    installer.locked(lock.name)
    stamp.write_bytes(lock.read_bytes())
    _remove(DEPS / "cache")
    _remove(DEPS / "tmp")


def install_hub(uv: str | None) -> None:
    """Add JupyterHub and its proxy to the installation, if they are not there yet."""
    hub = ROOT / "setup" / "hub"
    locks = [hub / "hub.lock", hub / "package-lock.json"]
    wanted = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    proxy, stamp = DEPS / "hub", VENV / "hub.lock"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if os.environ.get("WHEELHOUSE"):
        raise WorkbookError(
            "JupyterHub is installed over a network only, since no wheelhouse has its proxy: run "
            "make hub without WHEELHOUSE."
        )
    npm = shutil.which("npm")
    if npm is None:
        raise WorkbookError(
            "JupyterHub's proxy needs Node.js 18 or newer with npm, and there is none: install it "
            "(Debian, Ubuntu: apt install nodejs npm) and run make hub again."
        )
    installer = Installer(uv)
    (DEPS / "tmp").mkdir(parents=True, exist_ok=True)
    print("Installing JupyterHub.", flush=True)
    installer.locked(locks[0].relative_to(ROOT).as_posix())
    _remove(proxy)
    proxy.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(hub / file, proxy / file)
    installer.npm(npm, proxy)
    stamp.write_text(wanted)
    _remove(DEPS / "cache")
    _remove(DEPS / "tmp")


def install_slides(uv: str | None) -> None:
    """Fetch the files that slides need: reveal.js and MathJax."""
    lock, target = ROOT / "slides.lock", DEPS / "slides"
    stamp = target / lock.name
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    installer = Installer(uv, wheels=asked_wheelhouse([lock.name]))
    (DEPS / "tmp").mkdir(parents=True, exist_ok=True)
    print("Fetching reveal.js and MathJax.", flush=True)
    _into(installer, lock.name, target)
    stamp.write_bytes(lock.read_bytes())
    _remove(DEPS / "cache")
    _remove(DEPS / "tmp")


def install_book(uv: str | None) -> None:
    """Make the environment that builds the book, if it is not there yet."""
    lock, folder = ROOT / "book.lock", DEPS / "book"
    stamp, python = folder / lock.name, folder / "bin" / "python"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes() and starts(python):
        return
    installer = Installer(uv, python, asked_wheelhouse([lock.name]))
    (DEPS / "tmp").mkdir(parents=True, exist_ok=True)
    print("Installing what builds the book.", flush=True)
    _remove(folder)
    installer.environment(bare=True)
    installer.locked(lock.name)
    stamp.write_bytes(lock.read_bytes())
    _remove(DEPS / "cache")
    _remove(DEPS / "tmp")


def _relay(installer: Installer) -> None:
    """The Relay build and, where the system has none, the OpenMP library that it needs."""
    _into(installer, "relay.lock", DEPS / "relay")
    _remove(DEPS / "openmp")
    if lacks_openmp():
        _into(installer, "openmp.lock", DEPS / "openmp")
        found = next((DEPS / "openmp").glob("*.libs/libgomp-*"))
        OPENMP.write_bytes(with_soname(found.read_bytes(), found.name, OPENMP.name))


def lacks_openmp() -> bool:
    """Whether the system has no ``libgomp.so.1``, as a machine without a compiler often has not."""
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        return True
    return False


def with_soname(library: bytes, old: str, new: str) -> bytes:
    """The shared library under another name of its own (ELF ``DT_SONAME``), no longer than ``old``.

    Wheels carry libraries renamed; the loader takes one for ``libgomp.so.1`` if it says it is.
    """
    before, after = old.encode() + b"\0", new.encode() + b"\0"
    return library.replace(before, after.ljust(len(before), b"\0"))


def _into(installer: Installer, lock: str, target: Path) -> None:
    _remove(target)
    installer.locked(lock, target)


def _make_helpers_importable(python: Path) -> None:
    """Let ``import helpers`` work in every kernel, whatever folder it starts in."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    (Path(answer.stdout.strip()) / "relay_workbook.pth").write_text(f"{ROOT}\n")


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def can_import(name: str) -> bool:
    """Whether the Python that runs this has the module."""
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def main() -> int:
    """Install; on trouble print one sentence and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", help="the uv to install with; pip where it is not given")
    parser.add_argument(
        "--builds-only",
        action="store_true",
        help="only the Relay build and the models, for the Python that runs this",
    )
    parser.add_argument(
        "--browser-tests",
        action="store_true",
        help="only what the browser tests need beside an installed workbook",
    )
    parser.add_argument(
        "--hub", action="store_true", help="only JupyterHub, beside an installed workbook"
    )
    parser.add_argument(
        "--slides", action="store_true", help="only what slides need beside an installed workbook"
    )
    parser.add_argument(
        "--book", action="store_true", help="only the environment that builds the book"
    )
    arguments = parser.parse_args()
    wanted = install
    if arguments.builds_only:
        wanted = install_builds
    elif arguments.browser_tests:
        wanted = install_browser_tests
    elif arguments.book:
        wanted = install_book
    elif arguments.hub:
        wanted = install_hub
    elif arguments.slides:
        wanted = install_slides
    try:
        wanted(arguments.uv)
    except WorkbookError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(explain(str(error), 1), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; run make again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
