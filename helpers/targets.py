"""Targets and devices: the fixed teaching CPU, this machine's CPU, CUDA."""

from __future__ import annotations

from typing import Any

from helpers.errors import WorkbookError
from helpers.tvm_builds import chosen, host_triple

TEACHING_CPU = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"
"""What lessons compile for: the same instructions, layouts and kernel names on every machine."""


def host_cpu() -> str:
    """A target with all that this machine's processor can do: for cells that measure time."""
    import tvm

    chosen()
    cpu = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName", allow_missing=True)
    name = str(cpu()) if cpu is not None else "x86-64-v3"
    return f"llvm -mtriple={host_triple()} -mcpu={name}"


def resolve(target: Any = None) -> Any:
    """A ``tvm.target.Target`` from a name, a target string, a dictionary, a Target, or ``None``.

    Names: ``"teaching"`` (the default), ``"host"``, ``"cuda"``; any other string or a dictionary is
    TVM's own syntax. Raises :class:`WorkbookError` for what TVM does not understand, and for
    ``"cuda"`` where this TVM or this machine has none.
    """
    import tvm

    if isinstance(target, tvm.target.Target):
        return target
    wanted = TEACHING_CPU if target is None or target == "teaching" else target
    if wanted == "host":
        wanted = host_cpu()
    kind = wanted.get("kind") if isinstance(wanted, dict) else str(wanted)
    if str(kind).split()[:1] == ["cuda"] and "cuda" not in chosen().devices:
        raise WorkbookError(
            f"CUDA was asked for, and {chosen().package} finds no CUDA device here: "
            'use target="teaching" or "host", or a TVM built with CUDA on a machine with a GPU.'
        )
    try:
        return tvm.target.Target(wanted)
    except Exception as error:
        reason = str(error).rsplit("Error: ", 1)[-1].split(". Target creation from")[0]
        reason = " ".join(reason.split()).rstrip(".")
        raise WorkbookError(f"TVM does not understand the target {target!r}: {reason}.") from error


def device_for(target: Any) -> Any:
    """The ``tvm.runtime.Device`` that code compiled for ``target`` runs on."""
    import tvm

    return tvm.device(resolve(target).kind.name.replace("llvm", "cpu"), 0)
