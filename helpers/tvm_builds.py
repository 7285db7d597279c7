"""Which TVM: find it, check it, choose it, repair what this build does differently.

Relay left Apache TVM in version 0.20. The workbook therefore installs two packages that are
both called ``tvm``: today's ``apache-tvm`` (Relax) in the environment itself, and a build of
TVM 0.16 that still has Relay in a directory beside it. One process can import only one of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import importlib.util
import logging
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from helpers.errors import WorkbookError

ROOT = Path(__file__).resolve().parent.parent
RELAY_DIR = ROOT / ".deps" / "relay"
OPENMP = ROOT / ".deps" / "openmp" / "libgomp.so.1"
SUPPORTED_PYTHON = ((3, 10), (3, 12))
# The oldest C library that the packages in the locks are built for (manylinux_2_28).
REQUIRED_GLIBC = (2, 28)
# What `-mcpu=x86-64-v3`, the processor all teaching cells compile for, asks of the machine
# (System V ABI for x86-64, micro-architecture levels).
REQUIRED_CPU_FLAGS = ("avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")


@dataclass(frozen=True)
class TvmBuild:
    """The TVM this process has chosen."""

    kind: str
    version: str
    package: str
    devices: tuple[str, ...]

    def __str__(self) -> str:
        name = self.kind.capitalize()
        return f"{name}: TVM {self.version} ({self.package}), devices: {', '.join(self.devices)}"


_chosen: TvmBuild | None = None


def use_tvm(kind: str = "relay", *, quiet: bool = False) -> None:
    """Choose the TVM that this process imports, and say in one line which one it is.

    ``kind`` is ``"relay"`` (TVM 0.16, with Relay) or ``"relax"`` (today's TVM). Call it before
    the first ``import tvm``; calling it again with the same kind changes nothing. A TVM of your
    own that has Relay is used when it is the ``tvm`` on ``sys.path`` (through ``PYTHONPATH``, say).
    :func:`chosen` gives what was chosen as an object. Kernels run on one thread, unless the
    environment variable ``TVM_NUM_THREADS`` says otherwise.

    Raises :class:`WorkbookError` with one sentence when the machine cannot run it, when the build
    is not installed, or when the other TVM is already imported.
    """
    global _chosen
    if kind not in ("relay", "relax"):
        raise WorkbookError(f'use_tvm() takes "relay" or "relax", not {kind!r}.')
    if _chosen is None or _chosen.kind != kind:
        _check_not_imported(kind)
        if "tvm" not in sys.modules:
            check_machine(kind)
            _put_on_path(kind)
        _chosen = _describe(kind)
    if not quiet:
        print(_chosen)


def chosen() -> TvmBuild:
    """The TVM chosen in this process; :class:`WorkbookError` when ``use_tvm`` was not called."""
    if _chosen is None:
        raise WorkbookError('No TVM is chosen yet: run use_tvm("relay") first.')
    return _chosen


def need_relay() -> None:
    """Raise :class:`WorkbookError` unless this process has chosen the TVM with Relay."""
    if chosen().kind != "relay":
        raise WorkbookError(
            "This needs Relay, and the kernel uses Relax: restart the kernel and "
            'run use_tvm("relay") first.'
        )


def run_with(kind: str, source: str) -> str:
    """Run Python ``source`` in a process of its own that has chosen this TVM; what it printed.

    This is how a notebook that uses one TVM looks at the other. Raises :class:`WorkbookError` with
    the last line of the error when ``source`` fails.
    """
    if kind not in ("relay", "relax"):
        raise WorkbookError(f'run_with() takes "relay" or "relax", not {kind!r}.')
    code = f"from helpers import use_tvm\nuse_tvm({kind!r}, quiet=True)\n{source}"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise WorkbookError(f"The process with {kind.capitalize()} failed: {last}")
    return done.stdout


def machine_problem(kind: str = "relay") -> str | None:
    """Why this machine cannot run this TVM, in one sentence; ``None`` when it can.

    Today's TVM ("relax") also exists for other systems than the one that the Relay build is for.
    """
    return python_problem() or system_problem(kind)


def python_problem() -> str | None:
    """Why the workbook does not run on this Python; ``None`` when it does."""
    low, high = SUPPORTED_PYTHON
    if not low <= sys.version_info[:2] <= high:
        here = ".".join(map(str, sys.version_info[:2]))
        return (
            f"The workbook runs on Python 3.10, 3.11 or 3.12, and this is Python {here}: "
            "install one of the three and run `make lab` again."
        )
    return None


def system_problem(kind: str = "relay") -> str | None:
    """What the system or its processor lacks for this TVM; ``None`` when it lacks nothing."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        if kind == "relax":
            return None
        return (
            "The Relay build of TVM exists for Linux on x86-64 processors only, and this is "
            f"{platform.system()} on {platform.machine()}: use such a machine, a virtual machine "
            "or a container (on Windows, WSL 2)."
        )
    libc, version = platform.libc_ver()
    if libc != "glibc" or tuple(map(int, version.split(".")[:2])) < REQUIRED_GLIBC:
        found = f"{libc} {version}" if libc else "another C library"
        return (
            f"The workbook needs Linux with glibc 2.28 or newer, and this system has {found}: "
            "use Debian 10, Ubuntu 20.04, RHEL 8 or newer."
        )
    flags = cpu_flags()
    missing = [flag for flag in REQUIRED_CPU_FLAGS if flag not in flags]
    if flags and missing:
        return (
            f"This processor lacks {', '.join(missing)}, which the compiled lessons use "
            "(x86-64-v3: Intel Haswell, AMD Excavator or newer): use a newer machine."
        )
    return None


def check_machine(kind: str = "relay") -> None:
    """Raise :class:`WorkbookError` when :func:`machine_problem` finds one."""
    problem = machine_problem(kind)
    if problem:
        raise WorkbookError(problem)


def cpu_flags() -> frozenset[str]:
    """The processor's feature flags as Linux names them; empty where they cannot be read."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", text, flags=re.M)
    return frozenset(found.group(1).split()) if found else frozenset()


def _has_relay(package: Path) -> bool:
    return (package / "relay" / "__init__.py").is_file()


def _tvm_on_path() -> Path | None:
    spec = importlib.util.find_spec("tvm")
    return Path(spec.origin).parent if spec and spec.origin else None


def _check_not_imported(kind: str) -> None:
    module = sys.modules.get("tvm")
    if module is None:
        return
    imported = "relay" if _has_relay(Path(str(module.__file__)).parent) else "relax"
    if imported != kind:
        raise WorkbookError(
            f"This kernel already uses the TVM with {imported.capitalize()}, and one process can "
            f'import only one TVM: restart the kernel and run use_tvm("{kind}") first.'
        )


def _put_on_path(kind: str) -> None:
    found = _tvm_on_path()
    if kind == "relax":
        if found is None:
            raise WorkbookError("apache-tvm is not installed here: run `make lab` once.")
        if _has_relay(found):
            raise WorkbookError(
                f"The tvm on the path ({found}) has Relay, not Relax: take it off PYTHONPATH."
            )
        return
    if OPENMP.exists():  # installed where the system has none: libtvm.so finds what is loaded
        ctypes.CDLL(str(OPENMP), mode=ctypes.RTLD_GLOBAL)
    if found is not None and _has_relay(found):
        return
    if not _has_relay(RELAY_DIR / "tvm"):
        raise WorkbookError("The Relay build is not installed here: run `make lab` once.")
    sys.path.insert(0, str(RELAY_DIR))


def _describe(kind: str) -> TvmBuild:
    # One thread, so that a kernel's time is its own work: with more, starting and joining them is
    # most of a small kernel's time. Whoever wants more sets the variable.
    os.environ.setdefault("TVM_NUM_THREADS", "1")
    # TVM makes this folder when it is imported, by default in the home directory.
    os.environ.setdefault("TEST_DATA_ROOT_PATH", str(ROOT / ".state" / "tvm_test_data"))
    try:
        import tvm
    except (ImportError, OSError) as error:
        raise WorkbookError(
            f"The TVM with {kind.capitalize()} does not load ({error}): run `make clean lab` to "
            "install it again."
        ) from error
    if kind == "relay":
        _import_relay()
        _repair_relay()
    devices = ["cpu"]
    with contextlib.suppress(Exception):
        if _may_have_cuda() and tvm.cuda(0).exist:
            devices.append("cuda")
    return TvmBuild(kind, tvm.__version__, _package_of(Path(tvm.__file__).parent), tuple(devices))


def _may_have_cuda() -> bool:
    """Whether a driver is loaded: without one, asking it for a device can only fail or wait."""
    return any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/dxg"))


def _package_of(package: Path) -> str:
    """``name version`` of the distribution that holds the imported ``tvm``."""
    for distribution in importlib.metadata.distributions(path=[str(package.parent)]):
        name = distribution.metadata["Name"]
        if name in ("hhb-tvm", "apache-tvm"):
            return f"{name} {distribution.version}"
    return "your own build"


def _import_relay() -> None:
    try:
        with native_log_quiet():
            _memoize_in_memory_only()
            import tvm.relay
            import tvm.relay.testing  # noqa: F401
    except ImportError as error:
        raise WorkbookError(
            f"tvm.relay does not import ({error}): run `make clean lab` to install it again."
        ) from error


# --- what the vendor's build of TVM 0.16 does differently, and upstream's behaviour restored -----


def _repair_relay() -> None:
    _restore_injective_schedules()
    _ask_for_the_build_options_once()
    _make_plain_llvm_mean_the_host()
    _silence_logs()


def _memoize_in_memory_only() -> None:
    """Keep ``import tvm.relay`` from making ``.pkl_memoize_py3`` in the current folder.

    TVM would also unpickle what lies there. One function uses it, and its few results are small.
    """
    from tvm.contrib import pickle_memoize

    def memoize(key: str, save_at_exit: bool = False) -> Callable[..., Any]:
        return functools.cache

    pickle_memoize.memoize = memoize


def _restore_injective_schedules() -> None:
    """Give five operators upstream's CPU schedule back.

    This build schedules add, subtract, multiply, divide and reshape with a default schedule on
    every target. A fused kernel then keeps a full buffer for each intermediate tensor, which is
    the very thing fusion removes. Strategies look the schedule up when called, so replacing the
    attribute is enough, if it is done before the first build.
    """
    from tvm import topi

    for operator in ("add", "subtract", "multiply", "divide", "reshape"):
        if hasattr(topi.generic, f"schedule_{operator}"):
            setattr(topi.generic, f"schedule_{operator}", topi.x86.schedule_injective)


def _ask_for_the_build_options_once() -> None:
    """TVM reads its build options anew for every dimension it lowers: 7 % of a compilation."""
    from tvm.relay.backend import te_compiler

    te_compiler.libinfo = functools.cache(te_compiler.libinfo)


def host_triple() -> str:
    """The LLVM target triple of this machine."""
    return f"{platform.machine()}-linux-gnu"


def _make_plain_llvm_mean_the_host() -> None:
    """Without ``-mtriple`` this build compiles for riscv64; upstream's compiles for the host."""
    import tvm
    from tvm.target import Target

    default = tvm.get_global_func("tvm.codegen.llvm.GetDefaultTargetTriple", allow_missing=True)
    if default is None or str(default()).startswith(platform.machine()):
        return
    original = Target.__init__

    def with_triple(target: Any) -> Any:
        if isinstance(target, str) and re.match(r"\s*llvm(?!.*-mtriple)(\s|$)", target):
            return f"{target.strip()} -mtriple={host_triple()}"
        if isinstance(target, dict):
            target = {key: with_triple(v) if key == "host" else v for key, v in target.items()}
            if target.get("kind") == "llvm":
                return {"mtriple": host_triple(), **target}
        return target

    @functools.wraps(original)
    def patched(self: Any, target: Any, host: Any = None) -> None:
        original(self, with_triple(target), with_triple(host))

    Target.__init__ = patched


def _silence_logs() -> None:
    """Keep remarks about untuned schedules, which no lesson is about, out of the outputs."""
    import tvm
    from tvm import autotvm, relay
    from tvm.ir import transform

    autotvm.GLOBAL_SCOPE.silent = True
    for name in ("autotvm", "te_compiler", "strategy", "topi", "Frontend"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for owner, name in (
        (relay, "build"),
        (relay, "optimize"),
        (relay.vm, "compile"),
        (relay.backend.vm, "compile"),
        (transform.Pass, "__call__"),
        (relay.frontend, "from_onnx"),
        (relay.frontend, "from_tflite"),
        (relay.backend.interpreter.Executor, "evaluate"),
    ):
        setattr(owner, name, _quietly(getattr(owner, name)))
    tvm.relay.build_module.build = relay.build


def _quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with native_log_quiet():
            return function(*args, **kwargs)

    return quiet


_NATIVE_LOG = re.compile(r"^\[\d\d:\d\d:\d\d\] \S+:\d+: (Warning|Info|Debug)?:?.*$")
_depth = 0


@contextlib.contextmanager
def native_log_quiet() -> Iterator[None]:
    """Drop TVM's native log lines that reach standard error inside the block; keep all else.

    TVM's C++ code has no level below which it is silent: it writes to file descriptor 2. For the
    block the descriptor is a temporary file; afterwards all but the log lines is passed on.
    """
    global _depth
    if _depth:
        yield
        return
    with tempfile.TemporaryFile() as caught:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(caught.fileno(), 2)
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            _pass_on(caught)


def _pass_on(caught: IO[bytes]) -> None:
    caught.seek(0)
    text = caught.read().decode(errors="replace")
    rest = "".join(
        line for line in text.splitlines(True) if not _NATIVE_LOG.match(line.rstrip("\n"))
    )
    if rest.strip():
        sys.stderr.write(rest)
