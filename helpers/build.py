"""One call from a model to something that runs, whatever the executor; kept in a cache on disk.

    compiled = build.compile(model, executor="vm")
    outputs = compiled.run(x=...)

Also a cold compilation goes through the artifact that the cache stores and :meth:`Compiled.save`
writes: what is loaded back behaves as what was compiled.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import tempfile
import time
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers import modules, relax_build, targets
from helpers.artifact_cache import ArtifactCache, DamagedError
from helpers.compiled import (
    EXECUTORS,
    FORMAT,
    UNKNOWN,
    Artifact,
    Compiled,
    InputType,
    TensorType,
    Timing,
    UnloadableError,
    check_processor,
    compiler,
    device_of,
    load,
    load_artifact,
    nearest,
    to_json,
)
from helpers.errors import WorkbookError
from helpers.places import FOLDER, ROOT
from helpers.tvm_builds import chosen
from helpers.tvm_errors import explained, reason

__all__ = [
    "Compiled",
    "TensorType",
    "Timing",
    "checked_config",
    "checked_names",
    "clear_cache",
    "compile",
    "load",
    "pass_names",
]

_PREFIXES = ("tvmgen_default_", "vm_mod_")


def compile(
    model: Any,
    executor: str | None = None,
    opt_level: int = 3,
    target: Any = None,
    device: Any = None,
    passes: Any = None,
    disabled_pass: Sequence[str] = (),
    required_pass: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
    cache: bool = True,
    tvm: str | None = None,
) -> Compiled:
    """Compile ``model`` for an executor, or take the result of the same compilation from the cache.

    ``model``: a zoo model or its name, an ``IRModule``, a Relay function or expression, a pair
    (module, params), or the path of an ``.onnx`` file. ``executor``: ``"graph"`` (the default),
    ``"vm"`` or ``"aot"``. ``opt_level``: 0 to 4. ``target`` and ``device``: :mod:`helpers.targets`.
    ``passes``: a pass or a list of them, run first; they always run, ``opt_level`` and
    ``disabled_pass`` are for TVM's own pipeline that follows. ``config`` is for both. ``params``:
    values by name, bound to the function's parameters; parameters without one are the inputs.

    The caller's module stays as it is, and a ``PassContext`` around the call has no influence: this
    call makes its own. Where no C++ compiler is installed, LLVM bitcode is stored in place of
    machine code, and LLVM compiles it at each load; the AOT executor then also looks up its entry
    function anew in each run, which takes about 0.3 ms.

    The cache knows the program, its constants and parameters, all settings above, TVM and this
    package. It does not know of schedules, strategies or layouts that you have registered yourself
    in this process: pass ``cache=False`` then.

    ``tvm``: ``"relay"`` or ``"relax"``, by default the one that this process has chosen, which is
    the only one it can use. With Relax the call goes to :func:`helpers.relax_build.compile`, which
    has no cache, and knows neither ``disabled_pass``, ``required_pass`` nor ``params``.

    Raises :class:`WorkbookError` when a setting is wrong or TVM cannot compile the model; TVM's own
    error is its ``__cause__``.
    """
    if _kind(tvm) == "relax":
        if disabled_pass or required_pass or params:
            raise WorkbookError(
                "With Relax, give passes= and config=: disabled_pass, required_pass and params are "
                "for Relay."
            )
        return relax_build.compile(
            model, executor or "vm", opt_level, target, device, passes, config
        )
    executor = "graph" if executor is None else executor
    _check_settings(executor, opt_level, disabled_pass, required_pass, config)
    resolved = targets.resolve(target)
    place = device_of(device, resolved)
    check_processor(resolved)
    module, given = _source(model, params)

    start = time.perf_counter()
    module = _prepared(module, passes, config)
    inputs, bound = _inputs(module["main"], given, executor)
    prepared = time.perf_counter() - start

    job = _Job(
        executor, int(opt_level), resolved, tuple(disabled_pass), tuple(required_pass), config
    )
    key = _key(module, bound, job) if cache else None
    if key is not None:
        start = time.perf_counter()
        with contextlib.suppress(DamagedError, UnloadableError):
            if (data := _cache().get(key)) is not None:
                return load_artifact(*Artifact.unpack(data), place, start, from_cache=True)

    start = time.perf_counter()
    artifact, weights = _build(module, bound, job, inputs)
    artifact.header["compile_seconds"] = prepared + time.perf_counter() - start
    if key is not None and (data := artifact.pack(weights)) is not None:
        _cache().put(key, data)
    try:
        return load_artifact(artifact, weights, place, time.perf_counter())
    except UnloadableError as error:
        raise WorkbookError(f"The compiled model cannot be loaded: {error}.") from error


def _kind(wanted: str | None) -> str:
    """Which TVM compiles: the one chosen, which ``wanted`` must not contradict."""
    kind = chosen().kind
    if wanted is None or wanted == kind:
        return kind
    if wanted not in ("relay", "relax"):
        raise WorkbookError(f'tvm is "relay" or "relax", not {wanted!r}.')
    raise WorkbookError(
        f"This kernel uses {kind.capitalize()}, and one process can use only one TVM: ask "
        f"helpers.bridge, which has a process with {wanted.capitalize()}, or restart the kernel "
        f'and run use_tvm("{wanted}") first.'
    )


@dataclass(frozen=True)
class _Job:
    executor: str
    opt_level: int
    target: Any
    disabled: tuple[str, ...]
    required: tuple[str, ...]
    config: Mapping[str, Any] | None

    def context(self) -> Any:
        import tvm

        return tvm.transform.PassContext(
            opt_level=self.opt_level,
            disabled_pass=list(self.disabled),
            required_pass=list(self.required),
            config=dict(self.config or {}),
        )


# --- settings ------------------------------------------------------------------------------------


# Names of passes that TVM registers no constructor for, seen in builds at all levels.
_INNER_PASSES = frozenset(
    {
        "AnnotateMemoryScope",
        "CanonicalizeOps",
        "CombineParallelConv2d",
        "InlineGlobals",
        "LabelOps",
        "LowerTE",
        "LowerTensorExpr",
        "ManifestAlloc",
        "ManifestAllocImpl",
        "ManifestAllocImportStorage",
        "PartialEval",
        "PlanDevicesCheckConflicts",
        "PlanDevicesCore",
        "PlanDevicesRewrite",
        "QnnCanonicalize",
        "QnnLegalize",
        "RelayToTIRTargetHook",
        "qnn.Legalize",
        "tir.AssertSimplifier",
        "tir.BindParams",
        "tir.BufferBindUnwrapper",
        "tir.BufferShapeLegalize",
        "tir.BufferStrideLegalize",
        "tir.InsertHoistIfThenElse",
        "tir.StorageFlatten_impl",
        "tir.StorageFlattener",
        "tir.ThreadScopePropagate",
        "tir.calculate_allocated_bytes",
    }
)
# Constructors whose pass has another name.
_NOT_NAMES = frozenset({"CombineParallelConv2D", "Inline", "PartialEvaluate"})


@functools.lru_cache(maxsize=1)
def pass_names() -> frozenset[str]:
    """The names that ``disabled_pass`` and ``required_pass`` may hold."""
    from tvm._ffi.registry import list_global_func_names

    found = set(_INNER_PASSES)
    for function in map(str, list_global_func_names()):
        namespace, _, name = function.rpartition(".")
        if not name[:1].isupper():
            continue
        if namespace == "relay._transform" and name not in _NOT_NAMES:
            found.add(name)
        elif namespace == "tir.transform":
            found.add(f"tir.{name}")
    return frozenset(found)


def _check_settings(
    executor: str,
    opt_level: int,
    disabled: Sequence[str],
    required: Sequence[str],
    config: Mapping[str, Any] | None,
) -> None:
    if not isinstance(executor, str) or executor not in EXECUTORS:
        hint = nearest(str(executor), EXECUTORS)
        raise WorkbookError(f'executor is "graph", "vm" or "aot", not {executor!r}{hint}.')
    if isinstance(opt_level, bool) or opt_level not in range(5):
        raise WorkbookError(f"opt_level is 0, 1, 2, 3 or 4, not {opt_level!r}.")
    checked_names("disabled_pass", disabled)
    checked_names("required_pass", required)
    if "FuseOps" in disabled:
        raise WorkbookError(
            "Without FuseOps TVM cannot build anything, since the pass also makes a kernel of each "
            "single operator: to build without fusion use "
            'config={"relay.FuseOps.max_depth": 1}.'
        )
    checked_config(config)


def checked_names(setting: str, names: Any, own: Collection[str] = ()) -> tuple[str, ...]:
    """The names of passes that ``setting`` holds; ``own`` are known beside TVM's.

    Raises :class:`WorkbookError` when it is no list, or holds a name that no pass has.
    """
    if isinstance(names, str):
        raise WorkbookError(f'{setting} is a list of names: write {setting}=["{names}"].')
    if not isinstance(names, (list, tuple, set, frozenset)):
        raise WorkbookError(f"{setting} is a list of names of passes, not {names!r}.")
    known = pass_names() | set(own)
    for name in names:
        if not isinstance(name, str) or name not in known:
            hint = nearest(str(name), known)
            raise WorkbookError(f"{setting}: TVM has no pass called {name!r}{hint}.")
    return tuple(names)


def checked_config(config: Any) -> dict[str, Any]:
    """The settings of passes by name. Raises :class:`WorkbookError` for a wrong name or value."""
    import tvm

    if config is not None and not isinstance(config, Mapping):
        raise WorkbookError(f"config is a dictionary of settings by name, not {config!r}.")
    known = {str(name) for name in tvm.transform.PassContext.list_configs()}
    for name in config or {}:
        if name not in known:
            hint = nearest(str(name), known)
            raise WorkbookError(f"config: TVM has no setting called {name!r}{hint}.")
    try:
        tvm.transform.PassContext(config=dict(config or {}))
    except Exception as error:
        raise WorkbookError(f"config: {reason(error)}.") from error
    return dict(config or {})


# --- from what the caller has to a typed module and parameters -----------------------------------


def _source(model: Any, params: Mapping[str, Any] | None) -> tuple[Any, dict[str, Any]]:
    """(module, parameters) of anything :func:`compile` takes."""
    import tvm
    from tvm import relay

    own: Mapping[str, Any] = {}
    if isinstance(model, (str, Path)):
        model = _named(model)
    if isinstance(model, (tuple, list)) and len(model) == 2:
        model, own = model
    elif not isinstance(model, tvm.runtime.Object) and hasattr(model, "module"):
        model, own = model.module, getattr(model, "params", {})
    if not isinstance(model, tvm.IRModule | relay.Expr):
        raise WorkbookError(
            "A model is a zoo model or its name, an IRModule, a Relay function, a pair (module, "
            f"params) or the path of an .onnx file, not {type(model).__name__}."
        )
    model = modules.as_module(model)
    if "main" not in [variable.name_hint for variable in model.get_global_vars()]:
        raise WorkbookError("The module has no function @main, which is the one that is compiled.")
    for values in (own, params):
        if values is not None and not isinstance(values, (Mapping, tvm.ir.Map)):
            raise WorkbookError(f"Parameters are a dictionary of arrays by name, not {values!r}.")
    return modules.copy(model), {**(own or {}), **(params or {})}


def _named(model: str | Path) -> Any:
    path = Path(model)
    if path.suffix != ".onnx":
        if isinstance(model, Path):
            raise WorkbookError(f"{path} is not an .onnx file: nothing else can be read from disk.")
        from helpers import zoo

        return zoo.load(model)
    if not path.is_file():
        raise WorkbookError(f"There is no file {path}.")
    import onnx
    from tvm import relay

    try:
        proto = onnx.load(str(path))
        with warnings.catch_warnings():  # about how a file lists its weights
            warnings.simplefilter("ignore")
            return relay.frontend.from_onnx(proto, shape=_onnx_shapes(proto))
    except Exception as error:
        raise WorkbookError(f"{path} cannot be imported: {reason(error)}.") from error


def _onnx_shapes(proto: Any) -> dict[str, list[Any]]:
    """The inputs' shapes; a dimension that the file leaves open becomes ``relay.Any()``."""
    from tvm import relay

    weights = {tensor.name for tensor in proto.graph.initializer}
    return {
        value.name: [
            axis.dim_value if axis.dim_value > 0 else relay.Any()
            for axis in value.type.tensor_type.shape.dim
        ]
        for value in proto.graph.input
        if value.name not in weights
    }


def _prepared(module: Any, passes: Any, config: Mapping[str, Any] | None) -> Any:
    """``module`` after ``passes``, typed."""
    import tvm
    from tvm import relay

    infer = relay.transform.InferType()
    asked = [] if passes is None else [passes] if not isinstance(passes, (list, tuple)) else passes
    for item in asked:
        if not isinstance(item, tvm.transform.Pass):
            raise WorkbookError(f"passes holds {item!r}, which is no pass: call its constructor.")
    # A Sequential runs what a pass requires, too, and at the highest level it leaves nothing out.
    context = tvm.transform.PassContext(opt_level=4, config=dict(config or {}))
    with explained("TVM cannot type this program"):
        module = infer(module)
    with explained("A pass of yours fails on this program"), context:
        for item in asked:
            module = infer(tvm.transform.Sequential([item])(module))
    with explained("TVM cannot type this program"):
        if _bare_convolutions(module):
            module = infer(_with_convolution_sizes(module))
    return module


_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def _is_bare_convolution(node: Any) -> bool:
    import tvm
    from tvm import relay

    return (
        isinstance(node, relay.Call)
        and isinstance(node.op, tvm.ir.Op)
        and node.op.name in _CONVOLUTIONS
        and (node.attrs.channels is None or node.attrs.kernel_size is None)
    )


def _bare_convolutions(module: Any) -> bool:
    from tvm import relay

    found = []
    for function in module.functions.values():
        if isinstance(function, relay.Function):
            relay.analysis.post_order_visit(
                function, lambda node: found.append(node) if _is_bare_convolution(node) else None
            )
    return bool(found)


def _with_convolution_sizes(module: Any) -> Any:
    """Write ``channels`` and ``kernel_size`` into convolutions that leave them to their weight.

    They follow from the types, but AlterOpLayout fails where they are not written down.
    """
    from tvm import relay

    class Fill(relay.ExprMutator):
        def visit_call(self, call: Any) -> Any:
            new = super().visit_call(call)
            if not _is_bare_convolution(call):
                return new
            attrs = {name: call.attrs[name] for name in call.attrs.keys()}  # noqa: SIM118
            layout = attrs["out_layout"] or attrs["data_layout"]
            weight = call.args[1].checked_type.shape
            attrs["channels"] = call.checked_type.shape[layout.index("C")]
            attrs["kernel_size"] = [
                weight[attrs["kernel_layout"].index(axis)] for axis in layout if axis in "DHW"
            ]
            return getattr(relay.nn, call.op.name.removeprefix("nn."))(*new.args, **attrs)

    module = modules.copy(module)
    for name, function in list(module.functions.items()):
        if isinstance(function, relay.Function):
            module.update_func(name, Fill().visit(function))
    return module


def _inputs(
    main: Any, given: Mapping[str, Any], executor: str
) -> tuple[dict[str, InputType], dict[str, Any]]:
    """(types of the inputs, values of the bound parameters) of ``main``, both by name."""
    import tvm

    inputs: dict[str, InputType] = {}
    bound: dict[str, Any] = {}
    for variable in main.params:
        name = str(variable.name_hint)
        kind = _input_type(name, variable.checked_type)
        if name in inputs or name in bound:
            raise WorkbookError(f'Two inputs are called "{name}": give each its own name.')
        if name not in given:
            if isinstance(kind, tuple) and executor != "vm":
                raise WorkbookError(
                    f'The input "{name}" is a tuple, which only the VM takes: '
                    'compile it with executor="vm", or make each of its fields an input.'
                )
            inputs[name] = kind
            continue
        value = given[name]
        value = value if isinstance(value, tvm.nd.NDArray) else tvm.nd.array(np.asarray(value))
        if not kind.accepts(value.shape) or value.dtype != kind.dtype:
            raise WorkbookError(
                f'The parameter "{name}" does not fit: {kind} is wanted, '
                f"{TensorType(value.shape, value.dtype)} was given."
            )
        bound[name] = value
    return inputs, bound


def _input_type(name: str, kind: Any) -> InputType:
    import tvm
    from tvm import relay

    if isinstance(kind, relay.TupleType):
        return tuple(_input_type(name, item) for item in kind.fields)
    if not isinstance(kind, relay.TensorType):
        raise WorkbookError(
            f'The input "{name}" is neither a tensor nor a tuple of tensors: '
            "give it a type with relay.var(name, shape=..., dtype=...)."
        )
    if any(axis is None for axis in kind.shape):
        raise WorkbookError(
            f'The shape of the input "{name}" has None in it: '
            "write relay.Any() for a dimension that is known only at run time."
        )
    shape = (int(axis) if isinstance(axis, tvm.tir.IntImm) else UNKNOWN for axis in kind.shape)
    return TensorType(tuple(shape), str(kind.dtype))


# --- the cache's key -----------------------------------------------------------------------------


def _cache() -> ArtifactCache:
    place = os.environ.get("RELAY_WORKBOOK_CACHE")
    shared = ROOT / ".state" / "cache"
    own = Path(place) if place else FOLDER / ".state" / "cache"
    return ArtifactCache(own, shared=None if own == shared else shared)


def clear_cache() -> int:
    """Empty the cache of compiled models; the bytes that this freed."""
    return _cache().clear()


@functools.lru_cache(maxsize=1)
def _own_sources() -> str:
    """A digest of our code that decides what a compilation gives, repairs of TVM included."""
    names = ("artifact_cache", "build", "compiled", "targets", "tvm_builds")
    digest = hashlib.sha256()
    for name in names:
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return digest.hexdigest()


def _key(module: Any, params: Mapping[str, Any], job: _Job) -> str | None:
    """What decides the result of a compilation, as one SHA-256; ``None`` where that is unknown."""
    if _tuning_records_in_use():
        return None
    values = {name: _digest_array(value) for name, value in params.items()}
    settings = {
        "format": FORMAT,
        "sources": _own_sources(),
        "compiler": compiler(),
        "program": _digest_program(module),
        "params": values,
        "target": [str(job.target), str(job.target.host)],
        "executor": job.executor,
        "opt_level": job.opt_level,
        "disabled": sorted(job.disabled),
        "required": sorted(job.required),
        "config": dict(job.config or {}),
    }
    try:
        text = json.dumps(settings, sort_keys=True)
    except TypeError:  # a setting that holds a function, say a pass of the caller's own
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _digest_program(module: Any) -> list[str]:
    """The program as three digests that together miss nothing and are the same in any process.

    The text has the structure and all names, but rounds numbers and leaves large constants out; the
    structural hash has all attributes, but no variable names, and 64 bits; so the constants' bytes
    are taken by themselves. (``save_json`` would do alone, but it costs 2 s per 60 MB of constants,
    and depends on what was compiled before.)
    """
    import tvm
    from tvm import relay

    constants = hashlib.sha256()

    def visit(node: Any) -> None:
        if isinstance(node, relay.Constant):
            constants.update(_digest_array(node.data).encode())

    functions = {variable.name_hint: module[variable] for variable in module.get_global_vars()}
    for _, function in sorted(functions.items()):
        if isinstance(function, relay.Function):
            relay.analysis.post_order_visit(function, visit)
    text = module.astext(show_meta_data=False)
    return [
        hashlib.sha256(text.encode()).hexdigest(),
        str(tvm.ir.structural_hash(module)),
        constants.hexdigest(),
    ]


def _digest_array(value: Any) -> str:
    array = np.ascontiguousarray(value.numpy())
    head = f"{value.dtype}{tuple(value.shape)}".encode()
    return (
        hashlib.sha256(head + b":").hexdigest()
        + hashlib.sha256(array.data.cast("B") if array.size else b"").hexdigest()
    )


def _tuning_records_in_use() -> bool:
    """Whether a tuner's records are active, which choose other schedules."""
    from tvm import auto_scheduler, autotvm, meta_schedule

    return (
        not isinstance(autotvm.task.DispatchContext.current, autotvm.FallbackContext)
        or not isinstance(
            auto_scheduler.dispatcher.DispatchContext.current,
            auto_scheduler.dispatcher.FallbackContext,
        )
        or meta_schedule.Database.current() is not None
    )


# --- from a typed module to an artifact ----------------------------------------------------------


def _build(
    module: Any, params: dict[str, Any], job: _Job, inputs: dict[str, InputType]
) -> tuple[Artifact, dict[str, Any]]:
    """The artifact of a compilation, and the weights that go with it."""
    try:
        with explained(f"TVM cannot compile this model for the {EXECUTORS[job.executor]}"):
            make = {"graph": _build_graph, "vm": _build_vm, "aot": _build_aot}[job.executor]
            with job.context():
                result = make(modules.copy(module), params, job.target)
            stored = _stored_library(result.library)
    except WorkbookError as error:
        raise _known_limit(error, module, job) from error.__cause__
    header = {
        "format": FORMAT,
        "compiler": compiler(),
        "executor": job.executor,
        "target": str(job.target),
        "opt_level": job.opt_level,
        "inputs": [[name, to_json(kind)] for name, kind in inputs.items()],
        "library": stored.kind,
        "kernels": [_bare(name) for name in result.kernels],
        "sizes": {
            "library": stored.object_bytes,
            "parameters": result.parameter_bytes,
            "program": len(result.sections.get("program", b"")),
        },
    }
    in_memory = result.library if stored.kind == "memory" else None
    return Artifact(header, {**result.sections, **stored.sections}, in_memory), result.weights


@dataclass(frozen=True)
class _Result:
    """What TVM's build gave: ``weights`` are arrays that the executor loads beside the program."""

    kernels: list[str]
    sections: dict[str, bytes]
    weights: dict[str, Any]
    library: Any
    parameter_bytes: int


def _build_graph(module: Any, params: dict[str, Any], target: Any) -> _Result:
    import tvm
    from tvm import relay

    factory = relay.build(module, target=target, params=params)
    graph = factory.get_graph_json()
    weights = dict(factory.get_params())
    kernels = [
        node["attrs"]["func_name"]
        for node in json.loads(graph)["nodes"]
        if node["op"] == "tvm_op" and node["attrs"]["func_name"] != "__nop"
    ]
    functions = {
        name: info for name, info in factory.function_metadata.items() if name != "__tvm_main__"
    }
    sections = {
        "program": graph.encode(),
        "functions": zlib.compress(tvm.ir.save_json(tvm.runtime.convert(functions)).encode(), 1),
    }
    return _Result(kernels, sections, weights, factory.lib, _bytes_of(weights.values()))


def _build_vm(module: Any, params: dict[str, Any], target: Any) -> _Result:
    import tvm
    from tvm import relay

    executable = relay.vm.compile(module, target=target, params=params)
    names = executable.primitive_ops
    kernels = [
        names[int(index)]
        for index in re.findall(r"invoke_packed PackedFunc\[(\d+)\]", executable.bytecode)
    ]
    code, library = executable.save()
    # A copy, since taking the constants out of an executable leaves it without them.
    copy = tvm.runtime.vm.Executable.load_exec(code, library)
    constants = dict(copy.get_late_bound_consts(0).items())
    sections = {"program": bytes(copy.save()[0])}
    library = library if names else None
    return _Result(kernels, sections, constants, library, _bytes_of(constants.values()))


def _build_aot(module: Any, params: dict[str, Any], target: Any) -> _Result:
    import tvm
    from tvm import relay
    from tvm.relay.backend import Executor, Runtime

    executor = Executor("aot", {"interface-api": "packed"})
    factory = relay.build(
        module, target=target, params=params, executor=executor, runtime=Runtime("cpp")
    )
    kernels: list[str] = []
    constants: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.tir.AllocateConst):
            constants.append(node.data)
        elif isinstance(node, tvm.tir.Call) and node.args:
            name = node.args[0]
            if isinstance(name, tvm.tir.StringImm) and name.value.startswith(_PREFIXES):
                kernels.append(name.value)

    for lowered in factory.lowered_ir_mods.values():
        for function in lowered.functions.values():
            tvm.tir.stmt_functor.post_order_visit(function.body, visit)
    weights = dict(factory.get_params())
    in_bytes = _bytes_of([*constants, *weights.values()])
    return _Result(kernels, {}, weights, factory.lib, in_bytes)


def _bytes_of(arrays: Any) -> int:
    return sum(array.numpy().nbytes for array in arrays)


def _bare(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


@dataclass(frozen=True)
class _StoredLibrary:
    """``kind``: ``"so"``, ``"bitcode"``, ``"none"`` (no kernel at all) or ``"memory"``."""

    kind: str
    sections: dict[str, bytes]
    object_bytes: int


def _stored_library(library: Any) -> _StoredLibrary:
    if library is None:
        return _StoredLibrary("none", {}, 0)
    from tvm.contrib import cc

    parts = _llvm_parts(library)
    with tempfile.TemporaryDirectory(prefix="relay-workbook-") as name:
        folder = Path(name)
        if cc.get_cc() is not None:
            # A compiler that does not work is none.
            with contextlib.suppress(RuntimeError, OSError):
                library.export_library(str(folder / "library.so"), workspace_dir=name)
                size = sum(path.stat().st_size for path in folder.glob("lib[0-9]*.o"))
                return _StoredLibrary("so", {"library": (folder / "library.so").read_bytes()}, size)
        if parts is None:
            return _StoredLibrary("memory", {}, 0)
        sections, size = {}, 0
        for number, part in enumerate(parts):
            for kind in ("bc", "o"):
                part.save(str(folder / f"part.{kind}"), kind)
            sections[f"library{number}"] = (folder / "part.bc").read_bytes()
            size += (folder / "part.o").stat().st_size
        return _StoredLibrary("bitcode", sections, size)


def _llvm_parts(library: Any) -> list[Any] | None:
    """The LLVM modules that ``library`` is made of; ``None`` when other things are in it."""
    parts = library.imported_modules
    if library.type_key != "metadata_module":
        parts = [library, *parts]
    plain = all(part.type_key == "llvm" and not part.imported_modules for part in parts[1:])
    return parts if plain and parts and parts[0].type_key == "llvm" else None


def _known_limit(error: WorkbookError, module: Any, job: _Job) -> WorkbookError:
    """A better sentence for ``error`` where the cause is one of the executors' known limits."""
    name = EXECUTORS[job.executor]
    if _has_references(module):
        return WorkbookError(
            "No executor that compiles takes references (ref, ref_read, ref_write): only TVM's "
            'interpreter runs them, relay.create_executor("debug", mod=...).'
        )
    if job.executor == "vm" and job.opt_level == 0:
        return WorkbookError(
            "The Relay VM cannot be compiled for at opt_level 0: a pass that it needs "
            "(ToANormalForm) runs from level 1 on, so set opt_level to 1 or more."
        )
    if job.executor != "vm" and (reasons := _dynamic_reasons(module)):
        more = f"; and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        return WorkbookError(
            f"The {name} runs one fixed list of kernels on tensors of fixed shapes, and this model "
            f'is dynamic ({"; ".join(reasons[:2])}{more}): compile it with executor="vm".'
        )
    if job.disabled:
        return WorkbookError(
            f"{str(error).rstrip('.')}; the reason may be disabled_pass={list(job.disabled)}."
        )
    return error


def _has_references(module: Any) -> bool:
    from tvm import relay

    kinds = relay.RefCreate | relay.RefRead | relay.RefWrite
    found: list[Any] = []
    for function in module.functions.values():
        relay.analysis.post_order_visit(
            function, lambda node: found.append(node) if isinstance(node, kinds) else None
        )
    return bool(found)


def _dynamic_reasons(module: Any) -> list[str]:
    from helpers import ir

    try:
        return ir.is_dynamic(module).reasons
    except WorkbookError:
        return []
