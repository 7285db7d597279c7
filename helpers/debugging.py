"""Find what is wrong with a build: faults to plant, results kernel by kernel, profiles as rows.

for kernel, value in debugging.kernel_results(library, model.inputs):
    print(kernel, debugging.partner(value, debugging.onnx_tensors(model)))
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from helpers.errors import WorkbookError
from helpers.tvm_builds import native_log_quiet, need_relay

_PREFIXES = ("tvmgen_default_", "vm_mod_")


@contextlib.contextmanager
def planted(operator: str, attribute: str, function: Callable[..., Any]) -> Iterator[None]:
    """Inside the block, passes that ask for this attribute of the operator get ``function``.

    ``attribute`` is for example ``"FTVMLegalize"``, which the pass Legalize asks for (the function
    takes attributes, arguments and types), or ``"FTVMAlterOpLayout"``, which AlterOpLayout asks
    for (it also takes the type of the result). Afterwards the operator is as it was. A build inside
    the block needs ``cache=False``: the cache does not know of the function.

    Raises :class:`WorkbookError` when TVM has no such operator or attribute.
    """
    need_relay()
    import tvm

    try:
        op = tvm.ir.Op.get(operator)
    except Exception as error:
        raise WorkbookError(f"TVM has no operator called {operator!r}.") from error
    try:
        own = op.get_attr(attribute)
    except Exception as error:
        raise WorkbookError(f"TVM has no operator attribute called {attribute!r}.") from error
    op.reset_attr(attribute)
    op.set_attr(attribute, function)
    try:
        yield
    finally:
        op.reset_attr(attribute)
        if own is not None:
            op.set_attr(attribute, own)


def only_first(limit: int) -> Any:
    """An instrument for a ``PassContext``: the first ``limit`` optional passes run, the rest not.

    Optional is a pass of level 1 or more that does not work on TIR: TVM builds without it. Its
    ``met`` is the list of the names of all optional passes that wanted to run, in order.
    """
    need_relay()
    import tvm

    @tvm.ir.instrument.pass_instrument
    class OnlyFirst:
        def __init__(self) -> None:
            self.met: list[str] = []

        def should_run(self, module: Any, info: Any) -> bool:
            if info.opt_level == 0 or info.name.startswith("tir."):
                return True
            self.met.append(str(info.name))
            return len(self.met) <= limit

    return OnlyFirst()


def kernel_results(library: Any, inputs: Mapping[str, Any]) -> list[tuple[str, np.ndarray]]:
    """(kernel, what it computed) of each call of a graph executor's list, in the order of the run.

    ``library`` is what ``relay.build`` gives for the graph executor. TVM's debug executor runs the
    list call by call; ``__nop`` (a reshape) is among them. A kernel with several results has
    several entries. Raises :class:`WorkbookError` for another kind of library, and when an input is
    missing, unknown, or of another shape or data type: TVM would compute something all the same.
    """
    need_relay()
    import tvm

    if not hasattr(library, "get_graph_json"):
        raise WorkbookError("Give what relay.build makes for the graph executor: it has a graph.")
    nodes = json.loads(library.get_graph_json())["nodes"]
    debug = library["debug_create"]("default", tvm.cpu())
    wanted = {node["name"] for node in nodes if node["op"] == "null"} - set(library.get_params())
    if wanted != set(inputs):
        raise WorkbookError(
            f"This build wants the inputs {sorted(wanted)}, and {sorted(inputs)} were given."
        )
    found = []
    with native_log_quiet():
        for name, value in inputs.items():
            array, place = np.asarray(value), debug["get_input"](name)
            if (array.shape, array.dtype.name) != (tuple(place.shape), place.dtype):
                raise WorkbookError(
                    f'The input "{name}" must be {place.dtype}{list(place.shape)}, and '
                    f"{array.dtype.name}{list(array.shape)} was given."
                )
            debug["set_input"](name, tvm.nd.array(array))
        for index, node in enumerate(nodes):
            debug["execute_node"](index)
            if node["op"] == "null":
                continue
            for output in range(int(node["attrs"]["num_outputs"])):
                value = debug["get_node_output"](index, output).numpy()
                found.append((_short(node["attrs"]["func_name"]), value))
    return found


def rows(report: Any) -> list[tuple[str, float]]:
    """(name, microseconds) of each row of a profiler's report, in the order of the run.

    ``report`` comes from ``GraphModuleDebug.profile`` or ``VirtualMachineProfiler.profile``. The
    prefix of a kernel's name, which says what compiled it, is left out.
    """
    calls = json.loads(report.json())["calls"]
    return [
        (_short(call["Name"]["string"]), call["Duration (us)"]["microseconds"]) for call in calls
    ]


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def onnx_tensors(model: Any) -> dict[str, np.ndarray]:
    """All intermediate tensors of a zoo model that is an ONNX file, computed by ONNX Runtime.

    The model runs on its sample inputs, on one thread. Raises :class:`WorkbookError` when it is no
    ONNX file.
    """
    if getattr(model, "onnx", None) is None:
        raise WorkbookError("This model has no .onnx file, so ONNX Runtime cannot run it.")
    import onnx
    import onnxruntime

    proto = onnx.load(str(model.onnx))
    names = [name for node in proto.graph.node for name in node.output if name]
    known = {value.name for value in proto.graph.output}
    wanted = (onnx.ValueInfoProto(name=name) for name in names if name not in known)
    proto.graph.output.extend(wanted)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    values = session.run(names, dict(model.inputs))
    return {
        name: value
        for name, value in zip(names, values, strict=True)
        if isinstance(value, np.ndarray)
    }


def partner(
    value: np.ndarray, tensors: Mapping[str, np.ndarray], tolerance: float = 1e-4
) -> str | None:
    """The name of the first tensor with the numbers of ``value`` in any order, or ``None``.

    Sorted, no two numbers may differ by more than ``tolerance`` times the tensor's largest one: a
    kernel may store the numbers in another layout, and rounds them in another way.
    """
    mine = np.sort(np.asarray(value, "float64").ravel())
    for name, tensor in tensors.items():
        if tensor.size != mine.size or tensor.dtype.kind not in "biuf":
            continue
        theirs = np.sort(np.asarray(tensor, "float64").ravel())
        if mine.size and np.abs(theirs - mine).max() <= tolerance * np.abs(theirs).max():
            return name
    return None
