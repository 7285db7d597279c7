"""What the kernels of a model take by themselves: each one timed alone, on the buffers of a run.

    for call in kernel_times.measure(compiled, **inputs):
        print(call)

No executor takes part in the timing: TVM's ``time_evaluator`` calls the compiled function again and
again, on the arrays that it had in a run of the model. So it finds its data in the cache, where
there is room; in the model, other kernels have run in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers import bytecode
from helpers.compiled import Compiled
from helpers.errors import WorkbookError, whole_number

PREFIX = "tvmgen_default_"
"""What the graph executor's names of kernels begin with, in the library."""

SECONDS = 0.001
"""One timing lasts so long: short, so that other work on the machine often leaves it alone."""


@dataclass(frozen=True)
class KernelTime:
    """A kernel, called ``calls`` times in one inference on tensors of the same types.

    ``seconds`` is one call: the fastest of several timings.
    """

    kernel: str
    calls: int
    seconds: float

    @property
    def total(self) -> float:
        """Seconds of all its calls in one inference."""
        return self.calls * self.seconds

    def __str__(self) -> str:
        return f"{self.calls} x {1e6 * self.seconds:.3g} us  {self.kernel}"


@dataclass
class Call:
    """A compiled function, and the arrays that it had in the first of its ``count`` calls."""

    kernel: str
    library: Any
    symbol: str
    arrays: tuple[Any, ...]
    count: int = 1

    def seconds(self) -> float:
        """Mean seconds of one call, over :data:`SECONDS` or a bit more."""
        evaluate = self.library.time_evaluator(
            self.symbol, self.arrays[0].device, number=1, min_repeat_ms=round(1e3 * SECONDS)
        )
        return float(evaluate(*self.arrays).results[0])


def measure(compiled: Compiled, /, *, rounds: int = 7, **inputs: Any) -> list[KernelTime]:
    """Time every kernel of one inference on ``inputs``, in the order of the first calls.

    ``compiled`` is for the graph executor or the VM. All kernels are timed in turn, ``rounds``
    times, and the fastest timing of each is kept. Shape functions and the kernels that compute a
    storage's size are among them.

    Raises :class:`WorkbookError` as :func:`calls` does.
    """
    rounds = whole_number(rounds, "rounds", 1)
    found = calls(compiled, inputs)
    times = [[call.seconds() for call in found] for _ in range(rounds)]
    fastest = [min(own) for own in zip(*times, strict=True)]
    return [
        KernelTime(call.kernel, call.count, seconds)
        for call, seconds in zip(found, fastest, strict=True)
    ]


def calls(compiled: Compiled, inputs: Mapping[str, Any]) -> list[Call]:
    """What one inference calls; calls of a kernel on tensors of the same types are one entry.

    Raises :class:`WorkbookError` for wrong inputs, and for the AOT executor, which does not tell
    what its kernels are called with.
    """
    executor = getattr(compiled, "executor", None)
    if executor not in ("graph", "vm"):
        what = "of a model for 'aot'" if executor else f"of {type(compiled).__name__}"
        raise WorkbookError(
            f"The kernels {what} cannot be timed alone, since what they are called with is not "
            "known: time those of the same model for the graph executor, which are the same."
        )
    found: dict[Any, Call] = {}

    def keep(call: Call) -> None:
        kinds = tuple((tuple(array.shape), str(array.dtype)) for array in call.arrays)
        if found.setdefault((call.symbol, kinds), call) is not call:
            found[call.symbol, kinds].count += 1

    (_walk_graph if executor == "graph" else _walk_vm)(compiled, inputs, keep)
    return list(found.values())


def _walk_vm(compiled: Compiled, inputs: Mapping[str, Any], keep: Callable[[Call], None]) -> None:
    """Step through a run."""
    program = bytecode.decode(compiled)
    symbols = {kernel.name: kernel.symbol for kernel in program.kernels}

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any) -> None:
            keep(Call(name, compiled.kernel_library, symbols[name], arrays))
            function(*arrays)

        return call

    functions = program.kernel_functions  # this program's own dictionary, which the run looks in
    functions.update({name: recorded(name, function) for name, function in functions.items()})
    program.start(**inputs).to_end()


def _walk_graph(
    compiled: Compiled, inputs: Mapping[str, Any], keep: Callable[[Call], None]
) -> None:
    """Carry out the graph JSON's list, one kernel after the other."""
    import tvm

    graph = json.loads(compiled.library.get_graph_json())
    shapes, dtypes = (graph["attrs"][key][1] for key in ("shape", "dltype"))
    rows, library = graph["node_row_ptr"], compiled.kernel_library
    device = compiled._device
    given = dict(zip(compiled.input_types, compiled._checked(inputs), strict=True))
    given.update(compiled.library.get_params())
    entries: list[Any] = []
    for number, node in enumerate(graph["nodes"]):
        if node["op"] == "null":
            entries.append(tvm.nd.array(given[node["name"]], device))
            continue
        read = [entries[rows[source] + result] for source, result, _ in node["inputs"]]
        own = range(rows[number], rows[number + 1])
        if node["attrs"]["func_name"] == "__nop":  # a reshape: the same numbers
            entries.append(tvm.nd.array(read[0].numpy().reshape(shapes[own[0]]), device))
            continue
        dtype = ["bool" if dtypes[entry] == "uint1" else dtypes[entry] for entry in own]
        results = [
            tvm.nd.empty(tuple(shapes[entry]), kind, device)
            for entry, kind in zip(own, dtype, strict=True)
        ]
        symbol = node["attrs"]["func_name"]
        arrays = (*read, *results)
        library.get_function(symbol, query_imports=True)(*arrays)
        entries += results
        keep(Call(symbol.removeprefix(PREFIX), library, symbol, arrays))
