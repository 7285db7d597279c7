"""The forms in which the models come: how each is imported, and what gives its reference."""

from __future__ import annotations

import contextlib
import hashlib
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from helpers.errors import WorkbookError
from helpers.places import FOLDER, ROOT
from helpers.tvm_builds import chosen, native_log_quiet, need_relay
from helpers.zoo import weights
from helpers.zoo.dynamic import Network

MODELS_DIR = ROOT / ".deps" / "models"
CACHE_DIR = FOLDER / ".state" / "zoo"
SHARED_DIR = ROOT / ".state" / "zoo"  # only read where a server's learners share the installation

Shapes = Mapping[str, tuple[int | str, ...]]
Arrays = Mapping[str, np.ndarray]
Options = Mapping[str, Any]
Runner = Callable[[Arrays], list[np.ndarray]]


class Form(Protocol):
    """What the zoo asks of every form of model."""

    def check(self) -> None:
        """Raise :class:`WorkbookError` when the model's file is not installed."""

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:
        """The Relay module, and the parameters still to be bound."""

    def runner(self, shapes: Shapes, options: Options) -> Runner:
        """A function that computes the outputs without TVM."""

    def onnx_path(self, shapes: Shapes, options: Options) -> Path | None:
        """The model as an ``.onnx`` file, where it has one."""


def _installed(relative: str) -> Path:
    path = MODELS_DIR / relative
    if not path.is_file():
        raise WorkbookError(f"The model file {path.name} is not installed: run `make lab` once.")
    return path


def _onnxruntime(model: Path | bytes) -> Runner:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    source = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return lambda inputs: list(session.run(None, dict(inputs)))


def _from_onnx(file: Path, model: Callable[[], Any], shapes: Shapes, freeze: bool) -> Any:
    """The module of the ONNX model that ``model()`` makes of ``file``; kept in ``.state/zoo``.

    Importing takes seconds (it compiles and runs every operator of constants), reading the kept
    module a few hundredths of one. ``freeze`` makes constants of the weights: some models need it.
    """
    import tvm
    from tvm import relay

    key = hashlib.sha256(repr((str(chosen()), sorted(shapes.items()), freeze)).encode())
    for part in (file, Path(__file__), Path(weights.__file__)):
        key.update(part.read_bytes())
    kept = _kept(f"{key.hexdigest()[:16]}.json")
    if kept.is_file():
        return tvm.ir.load_json(kept.read_text())
    with native_log_quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = relay.frontend.from_onnx(model(), shape=dict(shapes), freeze_params=freeze)[0]
        module = relay.transform.InferType()(module)
    with contextlib.suppress(OSError):  # a folder that cannot be written costs only time
        _write(kept, tvm.ir.save_json(module).encode())
    return module


def _kept(name: str) -> Path:
    """Where the file of that name is, or where it is to be written."""
    shared = SHARED_DIR / name
    return shared if shared.is_file() else CACHE_DIR / name


def _write(path: Path, content: bytes) -> None:
    """Write in one step, so that no other process reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _initializers(proto: Any) -> dict[str, Any]:
    import tvm
    from onnx import numpy_helper

    return {t.name: tvm.nd.array(numpy_helper.to_array(t)) for t in proto.graph.initializer}


@dataclass(frozen=True)
class OnnxFile:
    """An ``.onnx`` file of an installed package, with its trained weights."""

    file: str

    def check(self) -> None:  # noqa: D102
        _installed(self.file)

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        import onnx

        file = _installed(self.file)
        return _from_onnx(file, lambda: onnx.load(file), shapes, freeze=True), {}

    def runner(self, shapes: Shapes, options: Options) -> Runner:  # noqa: D102
        return _onnxruntime(_installed(self.file))

    def onnx_path(self, shapes: Shapes, options: Options) -> Path:  # noqa: D102
        return _installed(self.file)


@dataclass(frozen=True)
class _Generated:
    """A model that is put together as an ``onnx.ModelProto`` when it is asked for."""

    def proto(self, shapes: Shapes, options: Options) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        """Nothing can be missing: the package is one the workbook cannot run without."""

    def runner(self, shapes: Shapes, options: Options) -> Runner:
        return _onnxruntime(self.proto(shapes, options).SerializeToString())

    def onnx_path(self, shapes: Shapes, options: Options) -> Path:
        content = self.proto(shapes, options).SerializeToString(deterministic=True)
        path = _kept(f"{hashlib.sha256(content).hexdigest()[:16]}.onnx")
        if not path.is_file():
            _write(path, content)
        return path


@dataclass(frozen=True)
class LightOnnx(_Generated):
    """An architecture of the ONNX model zoo as the onnx package ships it, with random weights."""

    name: str
    logit_scale: float

    @property
    def _file(self) -> Path:
        import onnx

        folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        return folder / f"light_{self.name}.onnx"

    def proto(self, shapes: Shapes, options: Options) -> Any:  # noqa: D102
        return weights.randomised(self._file, self.logit_scale)

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        proto = self.proto(shapes, options)
        module = _from_onnx(self._file, lambda: proto, shapes, freeze=False)
        return module, _initializers(proto)


@dataclass(frozen=True)
class RelayTesting(_Generated):
    """A network of ``tvm.relay.testing``; the same network as an ONNX graph is its reference.

    ``function(data_shape, options)`` gives the Relay function, ``graph(shape, options)`` the ONNX
    model whose weights both use.
    """

    function: Callable[[tuple[Any, ...], Options], Any]
    graph: Callable[[tuple[int | str, ...], Options], Any]

    def proto(self, shapes: Shapes, options: Options) -> Any:  # noqa: D102
        return self.graph(shapes["data"], options)

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        import tvm
        from tvm import relay

        shape = tuple(relay.Any() if isinstance(n, str) else n for n in shapes["data"])
        module = tvm.IRModule.from_expr(self.function(shape, options))
        return module, _initializers(self.proto(shapes, options))


@dataclass(frozen=True)
class TfliteFile:
    """A ``.tflite`` file of an installed package, with its trained weights."""

    file: str

    def check(self) -> None:  # noqa: D102
        _installed(self.file)

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        import tflite
        from tvm import relay

        model = tflite.Model.GetRootAsModel(_installed(self.file).read_bytes(), 0)
        types = dict.fromkeys(shapes, "float32")
        with native_log_quiet():
            return relay.frontend.from_tflite(model, shape_dict=dict(shapes), dtype_dict=types)

    def runner(self, shapes: Shapes, options: Options) -> Runner:  # noqa: D102
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        # Without the XNNPACK delegate: it logs to standard error, and the plain kernels suffice.
        interpreter = Interpreter(
            str(_installed(self.file)),
            num_threads=1,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        interpreter.allocate_tensors()
        places = {detail["name"]: detail["index"] for detail in interpreter.get_input_details()}
        outputs = [detail["index"] for detail in interpreter.get_output_details()]

        def run(inputs: Arrays) -> list[np.ndarray]:
            for name, value in inputs.items():
                interpreter.set_tensor(places[name], value)
            interpreter.invoke()
            return [interpreter.get_tensor(index).copy() for index in outputs]

        return run

    def onnx_path(self, shapes: Shapes, options: Options) -> None:
        """A TFLite model has no ONNX file."""


@dataclass(frozen=True)
class Written:
    """A network that is written here, in Relay and again in numpy."""

    network: Network

    def check(self) -> None:
        """Nothing can be missing."""

    def relay(self, shapes: Shapes, options: Options) -> tuple[Any, dict[str, Any]]:  # noqa: D102
        import tvm
        from tvm import relay

        drawn = self.network.weights(options)
        variables = {name: relay.var(name, shape=value.shape) for name, value in drawn.items()}
        module = tvm.IRModule.from_expr(self.network.function(shapes, options, variables))
        return module, {name: tvm.nd.array(value) for name, value in drawn.items()}

    def runner(self, shapes: Shapes, options: Options) -> Runner:  # noqa: D102
        drawn = self.network.weights(options)

        def run(inputs: Arrays) -> list[np.ndarray]:
            return self.network.reference(self.network.checked(inputs, shapes), options, drawn)

        return run

    def onnx_path(self, shapes: Shapes, options: Options) -> None:
        """There is no ONNX file."""


def import_module(
    form: Form, shapes: Shapes, options: Options, bind: bool
) -> tuple[Any, dict[str, Any]]:
    """The typed module and its parameters; with ``bind`` these are constants of the module."""
    need_relay()
    import tvm
    from tvm import relay

    module, params = form.relay(shapes, options)
    if bind:
        main = relay.build_module.bind_params_by_name(module["main"], params)
        module, params = tvm.IRModule.from_expr(main), {}
    module = relay.transform.InferType()(module)
    taken = {parameter.name_hint for parameter in module["main"].params}
    return module, {name: value for name, value in params.items() if name in taken}
