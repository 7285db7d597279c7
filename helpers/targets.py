"""Targets and devices: the fixed teaching CPU, this machine's CPU, CUDA."""

from __future__ import annotations

from typing import Any

from helpers.errors import WorkbookError
from helpers.tvm_builds import chosen, host_triple

TEACHING_CPU = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"
"""What lessons compile for: the same instructions, layouts and kernel names on every machine."""


def host_cpu() -> str:
    """A target with all that this machine's processor can do: for cells that measure time.

    A virtual machine may hide features that LLVM counts to the processor's name: these are
    switched off, so that code for this target always runs here.
    """
    import tvm

    chosen()
    cpu = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName", allow_missing=True)
    name = str(cpu()) if cpu is not None else "x86-64-v3"
    target = f"llvm -mtriple={host_triple()} -mcpu={name}"
    hidden = missing_features(tvm.target.Target(target)) if chosen().kind == "relay" else []
    return f"{target} -mattr={','.join('-' + feature for feature in hidden)}" if hidden else target


def missing_features(target: Any) -> list[str]:
    """Processor features that code for ``target`` may use and this machine does not have."""
    import tvm

    wanted = tvm.get_global_func("target.llvm_get_cpu_features", allow_missing=True)
    host = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures", allow_missing=True)
    if target.kind.name != "llvm" or not (wanted and host):
        return []
    present = {str(name): bool(value) for name, value in host().items()}
    return sorted(str(name) for name in wanted(target) if not present.get(str(name), True))


def resolve(target: Any = None) -> Any:
    """A ``tvm.target.Target`` from a name, a target string, a dictionary, a Target, or ``None``.

    Names: ``"teaching"`` (the default), ``"host"``, ``"cuda"``; any other string or a dictionary is
    TVM's own syntax. Raises :class:`WorkbookError` for what TVM does not understand, and for
    ``"cuda"`` where this TVM or this machine has none.
    """
    chosen()
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
    if chosen().kind == "relax":
        wanted = _as_dictionary(wanted)
    try:
        return tvm.target.Target(wanted)
    except Exception as error:
        reason = str(error).rsplit("Error: ", 1)[-1].split(". Target creation from")[0]
        reason = " ".join(reason.split()).rstrip(".")
        raise WorkbookError(f"TVM does not understand the target {target!r}: {reason}.") from error


def _as_dictionary(target: Any) -> Any:
    """``"llvm -mcpu=x86-64-v3"`` as the dictionary that today's TVM takes in its place."""
    if not isinstance(target, str):
        return target
    kind, *options = target.split()
    pairs = (option.lstrip("-").partition("=") for option in options)
    made = {name: value.split(",") if name == "mattr" else value for name, _, value in pairs}
    return {"kind": kind, **made}


def device_for(target: Any) -> Any:
    """The ``tvm.runtime.Device`` that code compiled for ``target`` runs on."""
    import tvm

    return tvm.device(resolve(target).kind.name.replace("llvm", "cpu"), 0)
