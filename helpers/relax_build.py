"""The same call for today's TVM: an ONNX model or a Relax module compiled for the one Relax VM.

Reached through :func:`helpers.build.compile` in a process that has chosen Relax.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers import targets
from helpers.compiled import UNKNOWN, Compiled, InputType, TensorType, Timing, device_of, nearest
from helpers.errors import WorkbookError
from helpers.tvm_builds import chosen, native_log_quiet
from helpers.tvm_errors import reason

EXECUTORS = {"vm": "Relax VM, bytecode", "compiled": "Relax VM, compiled"}
"""What ``executor=`` takes: instructions that are interpreted, or machine code in their place."""

_NOT_KERNELS = ("vm.builtin.", "builtin.")


def compile(
    model: Any,
    executor: str = "vm",
    opt_level: int = 3,
    target: Any = None,
    device: Any = None,
    passes: Any = None,
    config: Mapping[str, Any] | None = None,
    pipeline: Any = None,
) -> RelaxCompiled:
    """Compile ``model`` with Relax.

    ``model``: a zoo model that has an ONNX file, its name, the path of an ``.onnx`` file, an
    ``onnx.ModelProto``, or a Relax ``IRModule`` with a function ``main``. ``executor``: ``"vm"`` or
    ``"compiled"``. ``passes``: a Relax pass or a list of them, run first. ``pipeline``: what
    ``relax.build`` takes; by default TVM's own pipeline for the target, which legalizes, folds
    constants and fuses (``"default"``, which ``tvm.compile`` takes, does not fuse for a CPU).

    Raises :class:`WorkbookError` when a setting is wrong, and when TVM cannot import or compile it.
    """
    import tvm
    from tvm import relax

    if chosen().kind != "relax":
        raise WorkbookError(
            "This needs Relax, and the kernel uses Relay: restart the kernel and run "
            'use_tvm("relax") first, or ask helpers.bridge.'
        )
    if executor not in EXECUTORS:
        hint = nearest(str(executor), EXECUTORS)
        raise WorkbookError(
            f'Relax has one executor, its VM: executor is "vm" or "compiled", not {executor!r}'
            f"{hint}."
        )
    resolved = targets.resolve(target)
    place = device_of(device, resolved)
    start = time.perf_counter()
    module, names = module_of(model)
    if passes is not None:
        listed = passes if isinstance(passes, (list, tuple)) else [passes]
        module = tvm.transform.Sequential(list(listed))(module)
        if isinstance(model, tvm.IRModule):  # BindParams leaves fewer inputs
            names = [str(parameter.name) for parameter in module["main"].params]
    types = _types(module, names)
    chosen_pipeline = relax.get_default_pipeline(resolved) if pipeline is None else pipeline
    mode = "bytecode" if executor == "vm" else "compiled"
    written = _written_counter()
    context = tvm.transform.PassContext(
        opt_level=opt_level, config=dict(config or {}), instruments=[written]
    )
    try:
        with native_log_quiet(), context:
            built = relax.build(module, resolved, relax_pipeline=chosen_pipeline, exec_mode=mode)
    except Exception as error:
        raise WorkbookError(f"Relax cannot compile this model: {reason(error)}.") from error
    compiled_at = time.perf_counter()
    runtime = relax.VirtualMachine(built, place)
    loaded_at = time.perf_counter()
    return RelaxCompiled(
        executor=executor,
        target=str(resolved),
        opt_level=opt_level,
        input_types=types,
        kernels=_kernels(built),
        sizes={"parameters": _constant_bytes(module), **written.sizes},
        times={"compile": compiled_at - start, "load": loaded_at - compiled_at},
        from_cache=False,
        runtime=runtime,
        library=built,
        _artifact=None,
        _params={},
        _device=place,
    )


@dataclass(eq=False)
class RelaxCompiled(Compiled):
    """A model compiled by Relax; all that :class:`Compiled` says holds, with these differences.

    ``kernels`` are those that the bytecode calls, in its order; the compiled executor keeps none
    of their names. ``sizes``: bytes of the ``parameters`` (the constants) and of the ``tensors``,
    all that kernels write, each once (missing where a shape is known at run time only).
    ``runtime`` is TVM's ``relax.VirtualMachine``, ``library`` its executable.
    """

    def __str__(self) -> str:
        return (
            f"{EXECUTORS[self.executor]}, opt_level {self.opt_level}, {len(self.kernels)} kernels"
        )

    __repr__ = __str__

    def benchmark(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        repeat: int = 10,
        min_seconds: float = 0.02,
    ) -> Timing:
        """Time the inference alone, as :meth:`Compiled.benchmark` does."""
        if inputs is not None:
            self._set(self._checked(inputs))
        elif self.input_types and not self._has_inputs:
            raise WorkbookError("There is nothing to time yet: call run(...) once, or pass inputs.")
        evaluate = self.runtime.time_evaluator(
            "invoke_stateful",
            self._device,
            number=1,
            repeat=repeat,
            min_repeat_ms=round(1e3 * min_seconds),
        )
        return Timing(tuple(evaluate("main").results))

    def save(self, path: str | Path) -> None:
        """Write the executable as a shared library, which ``tvm.runtime.load_module`` loads."""
        try:
            self.library.export_library(str(path))
        except Exception as error:
            raise WorkbookError(f"{path} cannot be written: {reason(error)}.") from error

    def _set(self, arrays: list[Any]) -> None:
        import tvm

        self._has_inputs = True
        tensors = [tvm.runtime.tensor(array, self._device) for array in arrays]
        self.runtime.set_input("main", *tensors)

    def _invoke(self) -> list[Any]:
        self.runtime.invoke_stateful("main")
        return list(_flat(self.runtime.get_outputs("main")))


def _flat(value: Any) -> Iterator[Any]:
    if hasattr(value, "numpy"):
        yield value
    else:
        for item in value:
            yield from _flat(item)


# --- from a model to a module --------------------------------------------------------------------


def module_of(model: Any) -> tuple[Any, list[str]]:
    """The Relax module of a model, and the names of the inputs of its ``main`` in order."""
    import onnx
    import tvm

    shapes: Mapping[str, Sequence[int | str]] = {}
    if isinstance(model, str) and not model.endswith(".onnx"):
        from helpers import zoo

        model = zoo.load(model)
    if hasattr(model, "onnx") and hasattr(model, "input_shapes"):
        if model.onnx is None:
            raise WorkbookError(
                f"{model.name} has no ONNX form, which is what Relax reads here: take another "
                "model, or write it as a Relax module."
            )
        model, shapes = model.onnx, model.input_shapes
    if isinstance(model, (str, Path)):
        if not Path(model).is_file():
            raise WorkbookError(f"There is no file {model}.")
        try:
            model = onnx.load(str(model))
        except Exception as error:
            raise WorkbookError(f"{model} cannot be read: {reason(error)}.") from error
    if isinstance(model, onnx.ModelProto):
        return _from_onnx(model, shapes)
    if isinstance(model, tvm.IRModule):
        if "main" not in [variable.name_hint for variable in model.get_global_vars()]:
            raise WorkbookError("The module has no function main, which is the one compiled.")
        return model, [str(parameter.name) for parameter in model["main"].params]
    raise WorkbookError(
        "A model for Relax is a zoo model or its name, the path of an .onnx file, an "
        f"onnx.ModelProto or a Relax IRModule, not {type(model).__name__}."
    )


def _from_onnx(model: Any, shapes: Mapping[str, Sequence[int | str]]) -> tuple[Any, list[str]]:
    from tvm.relax.frontend.onnx import from_onnx

    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in weights]

    def imported(proto: Any) -> Any:
        return from_onnx(proto, shape_dict={n: list(shapes[n]) for n in names if n in shapes})

    with native_log_quiet(), warnings.catch_warnings(), _silent():
        warnings.simplefilter("ignore")
        try:
            return imported(model), names
        except Exception as error:
            why = reason(error)
        with contextlib.suppress(Exception):
            return imported(folded(model, shapes)), names
    raise WorkbookError(f"Relax cannot import this model: {why}.")


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Drop what the importer prints before it raises: the error says it again."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def folded(model: Any, shapes: Mapping[str, Sequence[int | str]]) -> Any:
    """The ONNX model with input shapes fixed and its constant parts computed by ONNX Runtime.

    Exporters leave a reshape's sizes as a computation on shapes; with known input shapes they are
    constants, and Relax's importer wants to see them as such.
    """
    import onnx
    import onnxruntime

    fixed = with_shapes(model, shapes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(prefix="relay-workbook-") as folder:
        options.optimized_model_filepath = str(Path(folder) / "folded.onnx")
        onnxruntime.InferenceSession(
            fixed.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["ConstantSharing"],
        )
        return onnx.load(options.optimized_model_filepath)


def with_shapes(model: Any, shapes: Mapping[str, Sequence[int | str]]) -> Any:
    """A copy of an ``onnx.ModelProto`` whose inputs have these shapes; an axis may be a name."""
    import onnx

    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        if value.name not in shapes:
            continue
        axes = value.type.tensor_type.shape
        del axes.dim[:]
        for length in shapes[value.name]:
            axis = axes.dim.add()
            if isinstance(length, str):
                axis.dim_param = length
            else:
                axis.dim_value = length
    return made


def _types(module: Any, names: Sequence[str]) -> dict[str, InputType]:
    parameters = module["main"].params
    return {name: _type(value.ty) for name, value in zip(names, parameters, strict=True)}


def _type(kind: Any) -> InputType:
    if hasattr(kind, "fields"):
        return tuple(_type(field) for field in kind.fields)
    lengths = kind.shape.values if kind.shape is not None else ()
    shape = tuple(int(n) if hasattr(n, "value") else UNKNOWN for n in lengths)
    return TensorType(shape, str(kind.dtype))


# --- what was compiled ---------------------------------------------------------------------------


def _kernels(built: Any) -> list[str]:
    lines = [line.split() for line in built.as_text().splitlines()]
    called = [words[1] for words in lines if words[:1] == ["call"]]
    return [name for name in called if not name.startswith(_NOT_KERNELS)]


def _constant_bytes(module: Any) -> int:
    import tvm
    from tvm import relax

    found: dict[int, int] = {}

    def note(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst):
            found[hash(node)] = node.value.numpy().nbytes

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, note)
    return sum(found.values())


def _written_counter() -> Any:
    """An instrument that adds up the tensors that kernels write, before memory is planned."""
    from tvm import relax
    from tvm.ir.instrument import pass_instrument

    class Written:
        def __init__(self) -> None:
            self.sizes: dict[str, int] = {}

        def run_before_pass(self, module: Any, info: Any) -> None:
            if str(info.name) != "ToNonDataflow":  # the last pass before calls are lowered
                return
            found: list[Any] = []

            def note(node: Any) -> None:
                name = getattr(getattr(node, "op", None), "name", "")
                if isinstance(node, relax.Call) and str(name) == "relax.call_tir":
                    found.append(_type(node.ty))

            for function in module.functions.values():
                if isinstance(function, relax.Function):
                    relax.analysis.post_order_visit(function, note)
            with contextlib.suppress(TypeError):  # an axis that is known at run time only
                self.sizes["tensors"] = sum(map(_bytes, found))

    return pass_instrument(Written)()


def _bytes(kind: InputType) -> int:
    if isinstance(kind, tuple):
        return sum(map(_bytes, kind))
    return math.prod(kind.shape) * np.dtype(kind.dtype).itemsize
