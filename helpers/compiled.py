"""A compiled model: what it takes in, how it runs, how it is stored in a file and brought back."""

from __future__ import annotations

import difflib
import functools
import re
import statistics
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from helpers import artifact_cache, targets
from helpers.artifact_cache import DamagedError
from helpers.errors import WorkbookError
from helpers.tvm_builds import chosen, native_log_quiet, need_relay
from helpers.tvm_errors import explained, reason

UNKNOWN = "?"
"""How a dimension that is known only at run time (``relay.Any()``) is written."""

EXECUTORS = {"graph": "graph executor", "vm": "Relay VM", "aot": "AOT executor"}
"""What ``executor=`` takes, and how each is called in a sentence."""

FORMAT = 1
"""The version of an artifact's header and sections."""


# --- what a model takes in -----------------------------------------------------------------------


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype of one tensor; a dimension known only at run time is ``"?"``."""

    shape: tuple[int | str, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of ``shape`` may be given where this one is wanted."""
        return shape == self.shape or (
            len(shape) == len(self.shape)
            and all(want in (UNKNOWN, got) for want, got in zip(self.shape, shape, strict=True))
        )


InputType = Any
"""A :class:`TensorType`, or a tuple of them (of tuples, ...) for an input that is a tuple."""


def to_json(kind: InputType) -> Any:
    """``kind`` as JSON, for an artifact's header."""
    if isinstance(kind, tuple):
        return [to_json(item) for item in kind]
    return {"shape": list(kind.shape), "dtype": kind.dtype}


def _from_json(data: Any) -> InputType:
    if isinstance(data, list):
        return tuple(_from_json(item) for item in data)
    return TensorType(tuple(data["shape"]), data["dtype"])


def _array(name: str, wanted: InputType, value: Any) -> Any:
    """``value`` as an array (a tuple of arrays) of the type that is wanted, or a WorkbookError."""
    if isinstance(wanted, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(wanted):
            raise WorkbookError(f'The input "{name}" is a tuple of {len(wanted)}: give as many.')
        pairs = enumerate(zip(wanted, value, strict=True))
        return tuple(_array(f"{name}[{i}]", want, item) for i, (want, item) in pairs)
    if not isinstance(value, np.ndarray):
        try:
            value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        except ValueError as error:
            raise WorkbookError(
                f'The input "{name}" must be an array, {wanted}, and what was given is none '
                f"({error})."
            ) from error
        if value.dtype.kind not in "biufc":
            raise WorkbookError(f'The input "{name}" must be an array of numbers, {wanted}.')
    if not wanted.accepts(value.shape):
        given = TensorType(value.shape, str(value.dtype))
        raise WorkbookError(
            f'The input "{name}" has the wrong shape: {wanted} is wanted, {given} was given.'
        )
    if value.dtype.name == wanted.dtype:
        return value
    return _cast(name, value, wanted)


def _cast(name: str, value: np.ndarray, wanted: TensorType) -> np.ndarray:
    """``value`` in the dtype that is wanted, where only rounding a real number can be lost."""
    dtype = np.dtype(wanted.dtype)
    if np.can_cast(value.dtype, dtype, "safe"):
        return value.astype(dtype)
    kinds = (value.dtype.kind.replace("u", "i"), dtype.kind.replace("u", "i"))
    if kinds in (("f", "f"), ("i", "i"), ("i", "f")):
        with np.errstate(all="ignore"):
            result = value.astype(dtype)
            if kinds == ("f", "f"):
                kept = bool((np.isfinite(result) == np.isfinite(value)).all())
            else:
                same = result.astype(value.dtype) == value
                kept = bool((same & ((result < 0) == (value < 0))).all())
        if kept:
            return result
    raise WorkbookError(
        f'The input "{name}" has the wrong dtype: {wanted} is wanted, '
        f"{TensorType(value.shape, str(value.dtype))} was given: convert it yourself with "
        f'.astype("{wanted.dtype}"), if its values may change.'
    )


def nearest(name: str, names: Iterable[str]) -> str:
    """The part of a sentence that names what was probably meant; empty when nothing is near."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f', perhaps "{near[0]}" is meant' if near else ""


# --- what runs -----------------------------------------------------------------------------------


_UNITS = (("µs", 1e6), ("ms", 1e3), ("s", 1.0))


@dataclass(frozen=True)
class Timing:
    """Seconds that one inference takes, without setting inputs or fetching outputs.

    ``seconds`` has one entry per repeat: the mean over the runs of that repeat.
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median repeat."""
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The fastest repeat."""
        return min(self.seconds)

    @property
    def high(self) -> float:
        """The slowest repeat."""
        return max(self.seconds)

    def __str__(self) -> str:
        unit, scale = next((u for u in _UNITS if self.median * u[1] < 1000), _UNITS[-1])
        low, middle, high = (f"{scale * t:.3g}" for t in (self.low, self.median, self.high))
        return f"{middle} {unit} ({low} to {high} over {len(self.seconds)} repeats)"


@dataclass(eq=False)
class Compiled:
    """A compiled model, ready to run. Made by :func:`compile` or :func:`load`.

    ``kernels``: names of the kernels, without TVM's prefix. For the graph and AOT executors in the
    order in which they run, ``__nop`` left out; for the VM in the order of the bytecode's
    ``invoke_packed`` instructions, so a kernel inside a branch or a loop stands there once, and
    shape functions are among them. ``sizes``: bytes of the ``library`` (object code, before
    linking), of the ``parameters`` (with the AOT executor they lie inside the library) and of the
    ``program`` (graph JSON or VM bytecode; the AOT executor has none). ``times``: seconds of
    ``compile`` (that of the original compilation, when ``from_cache``), of ``load`` (from the
    artifact to a model that can run) and, after it, of ``first_run``. ``runtime`` is TVM's own
    ``GraphModule``, ``VirtualMachine`` or ``AotModule``; ``library`` gives a graph build's JSON,
    parameters and kernels, else it is the VM's ``Executable`` or the AOT module.
    """

    executor: str
    target: str
    opt_level: int
    input_types: dict[str, InputType]
    kernels: list[str]
    sizes: dict[str, int]
    times: dict[str, float]
    from_cache: bool
    runtime: Any = field(repr=False)
    library: Any = field(repr=False)
    _artifact: Artifact | None = field(repr=False)
    _params: Mapping[str, Any] = field(repr=False)
    _device: Any = field(repr=False)
    _has_inputs: bool = field(default=False, repr=False)

    def __str__(self) -> str:
        return (
            f"{EXECUTORS[self.executor]}, opt_level {self.opt_level}, {len(self.kernels)} kernels"
        )

    __repr__ = __str__

    def run(self, /, *nameless: Any, **inputs: Any) -> list[np.ndarray]:
        """Run once: an array per input by name, an own copy of each output back, tuples flattened.

        Names that are no Python identifiers go as ``run(**{"gpu_0/data_0": x})``. A number or an
        array of another dtype is converted where it keeps its values; only rounding real numbers
        to fewer digits is done silently.

        Raises :class:`WorkbookError` for a missing or unknown name, a wrong shape or dtype: the
        compiled kernels do not check, and would read beyond the array.
        """
        if nameless:
            call = ", ".join(f"{name}=..." for name in self.input_types)
            raise WorkbookError(f"Inputs go by name: write run({call}).")
        arrays = self._checked(inputs)
        start = time.perf_counter()
        self._set(arrays)
        outputs = [array.numpy() for array in self._invoke()]
        self.times.setdefault("first_run", time.perf_counter() - start)
        return outputs

    def benchmark(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        repeat: int = 10,
        min_seconds: float = 0.02,
    ) -> Timing:
        """Time the inference alone with TVM's ``time_evaluator``.

        ``repeat`` measurements, each of as many runs as last ``min_seconds``, on ``inputs`` or
        else on those of the last run.
        """
        if inputs is not None:
            self._set(self._checked(inputs))
        elif self.input_types and not self._has_inputs:
            raise WorkbookError("There is nothing to time yet: call run(...) once, or pass inputs.")
        name, arguments = ("invoke", ["main"]) if self.executor == "vm" else ("run", [])
        evaluate = self.runtime.module.time_evaluator(
            name, self._device, number=1, repeat=repeat, min_repeat_ms=round(1e3 * min_seconds)
        )
        return Timing(tuple(evaluate(*arguments).results))

    def save(self, path: str | Path) -> None:
        """Write the compiled model to one file, from which :func:`load` brings it back."""
        assert self._artifact is not None
        data = self._artifact.pack(self._params)
        if data is None:
            raise WorkbookError(
                f"A library for {self.target} can be stored only where a C++ compiler is "
                "installed: install g++ and compile again."
            )
        try:
            artifact_cache.write(Path(path), data)
        except OSError as error:
            raise WorkbookError(f"{path} cannot be written: {error.strerror}.") from error

    def _checked(self, inputs: Mapping[str, Any]) -> list[Any]:
        if inputs.keys() != self.input_types.keys():
            self._complain(inputs)
        return [_array(name, kind, inputs[name]) for name, kind in self.input_types.items()]

    def _complain(self, inputs: Mapping[str, Any]) -> None:
        wanted = ", ".join(f"{name}: {_short(kind)}" for name, kind in self.input_types.items())
        for name in inputs:
            if name not in self.input_types:
                hint = nearest(name, self.input_types)
                raise WorkbookError(
                    f'The model has no input "{name}"{hint}: it takes {wanted or "no input"}.'
                )
        missing = ", ".join(name for name in self.input_types if name not in inputs)
        raise WorkbookError(f"These inputs are missing: {missing}; the model takes {wanted}.")

    def _set(self, arrays: list[Any]) -> None:
        self._has_inputs = True
        if self.executor == "vm":
            if arrays:
                self.runtime.set_input("main", *(_to_device(item, self._device) for item in arrays))
            return
        for place, array in zip(self._places, arrays, strict=True):
            place.copyfrom(array)

    @functools.cached_property
    def kernel_library(self) -> Any:
        """TVM's module with the kernels' functions, by their full names in the library."""
        if self.executor == "vm":
            return self.library.lib
        assert self._artifact is not None
        return _loaded_library(self._artifact)

    @functools.cached_property
    def _places(self) -> list[Any]:
        """The executor's own input buffers. AOT renames inputs, but keeps their order."""
        if self.executor == "aot":
            return [self.runtime.get_input(i) for i in range(len(self.input_types))]
        index = self.runtime.get_input_index
        return [self.runtime.get_input(index(name)) for name in self.input_types]

    def _invoke(self) -> list[Any]:
        if self.executor == "vm":
            return list(_flat(self.runtime.invoke("main")))
        self.runtime.run()
        return [self.runtime.get_output(i) for i in range(self.runtime.get_num_outputs())]


def _short(kind: InputType) -> str:
    return f"({', '.join(map(_short, kind))})" if isinstance(kind, tuple) else str(kind)


def _to_device(value: Any, device: Any) -> Any:
    import tvm

    if isinstance(value, tuple):
        return tvm.runtime.container.tuple_object([_to_device(item, device) for item in value])
    return tvm.nd.array(value, device)


def _flat(value: Any) -> Iterator[Any]:
    from tvm.runtime.container import ADT

    if isinstance(value, ADT):
        for item in value:
            yield from _flat(item)
    else:
        yield value


# --- from an artifact to something that runs -----------------------------------------------------


@dataclass
class Artifact:
    """All that running needs, but the weights. ``in_memory``: a library that cannot be stored."""

    header: dict[str, Any]
    sections: dict[str, bytes]
    in_memory: Any = None

    def pack(self, params: Mapping[str, Any]) -> bytes | None:
        """The artifact and the weights ``params`` as bytes; ``None`` when they cannot be stored."""
        from tvm import relay

        if self.in_memory is not None:
            return None
        weights = bytes(relay.save_param_dict(dict(params)))
        return artifact_cache.pack(self.header, {**self.sections, "params": weights})

    @staticmethod
    def unpack(data: bytes) -> tuple[Artifact, dict[str, Any]]:
        """The artifact and the weights; :class:`DamagedError` when ``data`` is not whole."""
        from tvm import relay

        header, sections = artifact_cache.unpack(data)
        weights = relay.load_param_dict(bytearray(sections.pop("params")))
        return Artifact(header, sections), dict(weights)


class UnloadableError(Exception):
    """The artifact is whole, but cannot be loaded by this TVM or on this machine."""


class _GraphLibrary:
    """What a graph build gave, with the accessors of TVM's ``GraphExecutorFactoryModule``."""

    def __init__(self, sections: Mapping[str, bytes], params: Mapping[str, Any]):
        self._sections, self._params = sections, params

    def get_graph_json(self) -> str:
        """The graph JSON that the executor runs."""
        return self._sections["program"].decode()

    def get_params(self) -> dict[str, Any]:
        """The parameters by their names in the graph JSON."""
        return dict(self._params)

    @functools.cached_property
    def function_metadata(self) -> Mapping[str, Any]:
        """TVM's ``FunctionInfo`` of every kernel: its Relay function and its lowered TIR."""
        import tvm

        return tvm.ir.load_json(zlib.decompress(self._sections["functions"]).decode())


def load(path: str | Path, device: Any = None) -> Compiled:
    """Bring back what :meth:`Compiled.save` wrote. It is machine code: load what you would run.

    Raises :class:`WorkbookError` when there is no such file, when it is damaged, and when another
    TVM, or one for another processor, has written it.
    """
    need_relay()
    start = time.perf_counter()
    try:
        artifact, params = Artifact.unpack(Path(path).read_bytes())
    except OSError as error:
        raise WorkbookError(f"{path} cannot be read: {error.strerror}.") from error
    except DamagedError as error:
        raise WorkbookError(
            f"{path} is damaged or was not written by save(): compile the model again."
        ) from error
    made_by = artifact.header["compiler"]
    if artifact.header["format"] != FORMAT or made_by != compiler():
        raise WorkbookError(
            f"{path} was compiled by TVM {made_by['tvm']} ({made_by['package']}, commit "
            f"{made_by['commit'][:9]}), which is not the TVM in use: compile the model again."
        )
    target = targets.resolve(artifact.header["target"])
    check_processor(target)
    try:
        return load_artifact(artifact, params, device_of(device, target), start)
    except UnloadableError as error:
        raise WorkbookError(f"{path} cannot be loaded: {error}.") from error


def load_artifact(
    artifact: Artifact,
    params: Mapping[str, Any],
    device: Any,
    start: float,
    *,
    from_cache: bool = False,
) -> Compiled:
    """Make a model that runs; ``start`` is the ``perf_counter`` at which loading began.

    Raises :class:`UnloadableError` when TVM refuses.
    """
    header = artifact.header
    executor = header["executor"]
    make = {"graph": _load_graph, "vm": _load_vm, "aot": _load_aot}[executor]
    try:
        with native_log_quiet():
            runtime, library, kept = make(artifact, params, device)
    except Exception as error:
        raise UnloadableError(reason(error)) from error
    return Compiled(
        executor=executor,
        target=header["target"],
        opt_level=header["opt_level"],
        input_types={name: _from_json(kind) for name, kind in header["inputs"]},
        kernels=list(header["kernels"]),
        sizes=dict(header["sizes"]),
        times={"compile": header["compile_seconds"], "load": time.perf_counter() - start},
        from_cache=from_cache,
        runtime=runtime,
        library=library,
        _artifact=artifact,
        _params=kept,
        _device=device,
    )


_Loaded = tuple[Any, Any, Mapping[str, Any]]
"""(runtime, library, the weights that the runtime holds): weights are never held twice."""


def _load_graph(artifact: Artifact, params: Mapping[str, Any], device: Any) -> _Loaded:
    from tvm.contrib import graph_executor

    graph = artifact.sections["program"].decode()
    runtime = graph_executor.create(graph, _loaded_library(artifact), device)
    held = {name: runtime.get_input(runtime.get_input_index(name)) for name in params}
    for name, value in params.items():
        held[name].copyfrom(value)
    return runtime, _GraphLibrary(artifact.sections, held), held


def _load_vm(artifact: Artifact, params: Mapping[str, Any], device: Any) -> _Loaded:
    import tvm

    executable = tvm.runtime.vm.Executable.load_exec(
        artifact.sections["program"], _loaded_library(artifact)
    )
    executable.load_late_bound_consts_from_map(dict(params))
    return tvm.runtime.vm.VirtualMachine(executable, device), executable, params


def _load_aot(artifact: Artifact, params: Mapping[str, Any], device: Any) -> _Loaded:
    import tvm
    from tvm.runtime.executor import AotModule

    library = _loaded_library(artifact)
    library.get_function("tvmgen_default___tvm_main__", query_imports=True)  # LLVM is lazy here
    create = tvm.get_global_func("tvm.aot_executor_factory.create")
    factory = create(library, "default", *(item for pair in params.items() for item in pair))
    return AotModule(factory["default"](device)), factory, params


def _loaded_library(artifact: Artifact) -> Any:
    import tvm

    kind, sections = artifact.header["library"], artifact.sections
    if kind == "memory":
        return artifact.in_memory
    if kind == "none":
        return None
    with tempfile.TemporaryDirectory(prefix="relay-workbook-") as folder:

        def loaded(name: str, form: str) -> Any:
            path = Path(folder) / f"{name}.{form}"
            path.write_bytes(sections[name])
            return tvm.runtime.load_module(str(path), fmt="so" if form == "so" else "ll")

        if kind == "so":
            return loaded("library", "so")
        parts = [loaded(name, "bc") for name in sections if re.fullmatch(r"library\d+", name)]
    if artifact.header["executor"] != "aot":
        return parts[0]
    root = tvm.get_global_func("runtime.module.loadbinary_metadata_module")()
    for part in parts:
        root.import_module(part)
    return root


# --- which TVM, which processor ------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def compiler() -> dict[str, Any]:
    """Which TVM compiles here: its version, commit, package and the size of its library."""
    import tvm

    library = Path(tvm._ffi.libinfo.find_lib_path()[0]).stat()
    identity = {
        "tvm": tvm.__version__,
        "commit": str(tvm.support.libinfo().get("GIT_COMMIT_HASH")),
        "package": chosen().package,
        "library_bytes": library.st_size,
    }
    if chosen().package == "your own build":  # the same commit may be built again, changed
        identity["library_time"] = library.st_mtime_ns
    return identity


def check_processor(target: Any) -> None:
    """Refuse code that would end this process with an illegal instruction."""
    if str(target) == str(targets.resolve()):
        return
    with explained("TVM does not understand this target"):
        missing = targets.missing_features(target)
    if missing:
        raise WorkbookError(
            f"Code for -mcpu={target.mcpu} cannot run on this processor, which lacks "
            f'{", ".join(missing)}: compile for target="teaching" or "host".'
        )


def device_of(device: Any, target: Any) -> Any:
    """``device``, or else the one that ``target``'s code runs on; an error when they do not fit."""
    import tvm

    fitting = targets.device_for(target)
    if device is None:
        return fitting
    try:
        found = tvm.device(device, 0) if isinstance(device, str) else device
        kind = found.device_type
    except (ValueError, AttributeError) as error:
        raise WorkbookError(f'device is "cpu" or "cuda", not {device!r}.') from error
    if kind != fitting.device_type:
        raise WorkbookError(
            f"Code for the target {target.kind.name} runs on {fitting}, not on {found}: "
            "leave device out, or give another target."
        )
    return found
