"""The other TVM: a worker process that compiles and runs the same ONNX model there.

    here = build.compile("squeezenet")
    there = bridge.compile("squeezenet")      # with the TVM that this process has not chosen
    there.kernels, there.run(**inputs)

Only arrays and the bytes of the model cross, in both directions; nothing is pickled.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from helpers.compiled import Timing
from helpers.errors import WorkbookError
from helpers.tvm_builds import ROOT, chosen, use_tvm

_HEAD = struct.Struct("<QQ")


class DiedError(WorkbookError):
    """The worker ended in the middle of a request; the next request gets a new one."""


@dataclass(eq=False)
class Remote:
    """A model compiled by the other TVM; its fields mean what those of ``Compiled`` do.

    Beside them ``sizes`` has the bytes of the ``tensors``: all that kernels write, each once; of
    Relay's executors for the graph executor only.
    """

    tvm: str
    executor: str
    kernels: list[str]
    sizes: dict[str, int]
    times: dict[str, float]
    _worker: _Worker = field(repr=False)
    _request: dict[str, Any] = field(repr=False)
    _model: bytes = field(repr=False)
    _number: int = field(repr=False)

    def run(self, **inputs: Any) -> list[np.ndarray]:
        """The outputs for these inputs, by name."""
        arrays = {f"in:{name}": np.asarray(value) for name, value in inputs.items()}
        _, outputs = self._ask({"do": "run"}, arrays)
        return [outputs[f"out:{i}"] for i in range(len(outputs))]

    def benchmark(self, inputs: Mapping[str, Any], *, repeat: int = 10) -> Timing:
        """Seconds of one inference, timed inside the worker."""
        arrays = {f"in:{name}": np.asarray(value) for name, value in inputs.items()}
        reply, _ = self._ask({"do": "benchmark", "repeat": repeat}, arrays)
        return Timing(tuple(reply["seconds"]))

    def _ask(
        self, request: dict[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if self._worker.ended:  # a new worker knows nothing of this model yet
            again = _compile(self.tvm, self._request, self._model)
            self._worker, self._number = again._worker, again._number
        return self._worker.ask({**request, "number": self._number}, arrays)


def compile(
    model: Any, executor: str | None = None, *, opt_level: int = 3, target: Any = None
) -> Remote:
    """Compile an ONNX model with the TVM that this process has not chosen.

    ``model``: a zoo model that has an ONNX file, its name, or the path of an ``.onnx`` file; the
    settings are those of :func:`helpers.build.compile`, ``target`` as text.

    Raises :class:`WorkbookError` when the model is none of these, when the other TVM refuses it, or
    when the worker dies.
    """
    other = "relax" if chosen().kind == "relay" else "relay"
    request = {
        "do": "compile",
        "executor": executor,
        "opt_level": opt_level,
        "target": None if target is None else str(target),
    }
    return _compile(other, request, _bytes_of(model))


def _compile(kind: str, request: dict[str, Any], model: bytes) -> Remote:
    worker = _worker(kind)
    reply, _ = worker.ask(request, {"model": np.frombuffer(model, np.uint8)})
    return Remote(
        tvm=kind,
        executor=reply["executor"],
        kernels=reply["kernels"],
        sizes=reply["sizes"],
        times=reply["times"],
        _worker=worker,
        _request=request,
        _model=model,
        _number=reply["number"],
    )


def _bytes_of(model: Any) -> bytes:
    """The model as ONNX, its inputs' shapes fixed to those of the zoo."""
    import onnx

    from helpers.relax_build import with_shapes

    shapes: Mapping[str, Any] = {}
    if isinstance(model, str) and not model.endswith(".onnx"):
        from helpers import zoo

        model = zoo.load(model)
    if hasattr(model, "onnx") and hasattr(model, "input_shapes"):
        if model.onnx is None:
            raise WorkbookError(f"{model.name} has no ONNX form, and only ONNX can cross.")
        model, shapes = model.onnx, model.input_shapes
    if not isinstance(model, (str, Path)):
        raise WorkbookError(
            "A zoo model, its name or the path of an .onnx file can cross, not a "
            f"{type(model).__name__}."
        )
    if not Path(model).is_file():
        raise WorkbookError(f"There is no file {model}.")
    data: bytes = with_shapes(onnx.load(str(model)), shapes).SerializeToString()
    return data


# --- the worker, seen from here ------------------------------------------------------------------


class _Worker:
    """A process with the TVM of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "helpers.bridge", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        atexit.register(self.close)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(
        self, request: dict[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send(self._process.stdin, request, arrays)
            reply, outputs = _receive(self._process.stdout)
        except (OSError, EOFError):
            self.close()
            raise DiedError(
                f"The process with {self.kind.capitalize()} ended while it was to "
                f"{request['do']} (status {self._process.returncode}): the next request starts a "
                "new one."
            ) from None
        except BaseException:  # an interrupt: what is still to come answers the old request
            self.close()
            raise
        if "error" in reply:
            raise WorkbookError(reply["error"])
        return reply, outputs

    def close(self) -> None:
        """End the process."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


_workers: dict[str, _Worker] = {}


def _worker(kind: str) -> _Worker:
    if kind not in _workers or _workers[kind].ended:
        _workers[kind] = _Worker(kind)
    return _workers[kind]


# --- messages: a JSON object and arrays by name --------------------------------------------------


def _send(pipe: IO[bytes], message: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    text = json.dumps(message).encode()
    pipe.write(_HEAD.pack(len(text), packed.getbuffer().nbytes) + text)
    pipe.write(packed.getbuffer())
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    text_size, arrays_size = _HEAD.unpack(head)
    text, packed = pipe.read(text_size), pipe.read(arrays_size)
    if len(packed) < arrays_size:
        raise EOFError
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        return json.loads(text), dict(arrays)


# --- the worker itself ---------------------------------------------------------------------------


def _serve(kind: str) -> None:
    use_tvm(kind, quiet=True)
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what TVM prints must not get between the replies
    models: list[Any] = []
    while True:
        try:
            request, arrays = _receive(requests)
        except EOFError:
            return
        try:
            reply, outputs = _answer(request, arrays, models)
        except WorkbookError as error:
            reply, outputs = {"error": str(error)}, {}
        except Exception as error:  # whatever it is, the other side must hear of it
            reply, outputs = {"error": f"{type(error).__name__}: {error}"}, {}
        _send(replies, reply, outputs)


def _answer(
    request: dict[str, Any], arrays: dict[str, np.ndarray], models: list[Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if request["do"] == "compile":
        return _compiled(request, arrays["model"].tobytes(), models), {}
    model = models[request["number"]]
    inputs = {name.removeprefix("in:"): value for name, value in arrays.items()}
    if request["do"] == "benchmark":
        return {"seconds": model.benchmark(inputs, repeat=request["repeat"]).seconds}, {}
    outputs = model.run(**inputs)
    return {}, {f"out:{i}": value for i, value in enumerate(outputs)}


def _compiled(request: dict[str, Any], model: bytes, models: list[Any]) -> dict[str, Any]:
    from helpers import build

    compile_here = functools.partial(
        build.compile,
        executor=request["executor"],
        opt_level=request["opt_level"],
        target=request["target"],
    )
    with tempfile.TemporaryDirectory(prefix="relay-workbook-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model)
        made = compile_here(str(path))
    models.append(made)
    sizes = dict(made.sizes)
    if made.executor == "graph":
        from helpers import storage

        sizes["tensors"] = storage.plan(made).total_bytes
    return {
        "number": len(models) - 1,
        "executor": made.executor,
        "kernels": made.kernels,
        "sizes": sizes,
        "times": made.times,
    }


if __name__ == "__main__":
    _serve(sys.argv[1])
