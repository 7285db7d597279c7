"""What the kernels of a model take by themselves: each one timed alone, on the buffers of a run.

    for call in kernel_times.measure(compiled, **inputs):
        print(call)

No executor takes part in the timing: TVM's ``time_evaluator`` calls the compiled function again and
again, on the arrays that it had in a run of the model. So it finds its data in the cache, where
there is room. In the model, all other kernels run before a weight is read again. What that costs is
measured apart, roughly: see :meth:`Call.cold`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from helpers import bytecode, counters
from helpers.compiled import Compiled
from helpers.errors import WorkbookError, whole_number

PREFIX = "tvmgen_default_"
"""What the graph executor's names of kernels begin with, in the library."""

SECONDS = 0.001
"""One timing lasts so long: short, so that other work on the machine often leaves it alone."""


@dataclass(frozen=True)
class KernelTime:
    """A kernel, called ``calls`` times in one inference on tensors of the same types.

    ``seconds`` is one call: the fastest of several timings, with its data in the cache. ``cold``:
    what it takes more where weights and code are as far away as they are in the model.
    """

    kernel: str
    calls: int
    seconds: float
    cold: float

    @property
    def total(self) -> float:
        """Seconds of all its calls in one inference."""
        return self.calls * (self.seconds + self.cold)

    def __str__(self) -> str:
        return f"{self.calls} x {1e6 * self.seconds:.3g} us  {self.kernel}"


@dataclass
class Repeated:
    """A function of a TVM module, timed by TVM's ``time_evaluator`` on the same arguments.

    ``best`` is the fewest seconds of a call so far. A machine that is busy interrupts a timing, or
    some part of a long one always: so where the processor's time of this process is less than what
    the clock says, that counts.
    """

    module: Any
    name: str
    device: Any
    arguments: Sequence[Any]
    best: float = math.inf

    def time(self) -> None:
        """Time it once more, for :data:`SECONDS` or for one call that lasts longer."""
        if math.isinf(self.best):
            milliseconds = round(1e3 * SECONDS)
            self.best = self._evaluate(number=1, min_repeat_ms=milliseconds)
        number = max(1, round(SECONDS / self.best))
        start = time.process_time()
        by_clock = self._evaluate(number=number)
        of_processor = (time.process_time() - start) / (number + 1)  # one call is for warming up
        self.best = min(self.best, by_clock, of_processor)

    def _evaluate(self, **options: int) -> float:
        evaluate = self.module.time_evaluator(self.name, self.device, repeat=1, **options)
        return float(evaluate(*self.arguments).results[0])


@dataclass
class Call:
    """A compiled function, and the arrays that it had in the first of its ``count`` calls.

    ``weights`` says of each array whether it is a weight, which every inference reads anew.
    """

    kernel: str
    library: Any
    symbol: str
    arrays: tuple[Any, ...]
    weights: tuple[bool, ...]
    count: int = 1

    @cached_property
    def repeated(self) -> Repeated:
        """The function on its arrays, again and again."""
        return Repeated(self.library, self.symbol, self.arrays[0].device, self.arrays)

    def cold(self, other: int, rounds: int = 14) -> float:
        """Seconds that a call takes more when an inference of ``other`` bytes lies in between.

        As many bytes are read, divided by ``count``, which pushes the weights and the code out of
        the cache as far as they go in the model. A call that follows is compared with a second one,
        and both with two calls of TVM's empty function, since Python's way to a function is longer
        after that, too. Of each the fastest in ``rounds`` counts. Inputs and outputs are touched
        before: the kernel in front has just written them.
        """
        import tvm

        function = self.library.get_function(self.symbol, query_imports=True)
        functions = (function, tvm.get_global_func("testing.nop"))
        scratch = np.zeros(max(1, other // self.count // 8))
        times = np.empty((rounds, 2, 2))
        for own in times:
            for place, call in enumerate(functions):
                scratch.sum()
                for array, weight in zip(self.arrays, self.weights, strict=True):
                    if not weight:
                        array.copyfrom(array.numpy())
                for repeat in range(2):
                    start = time.process_time_ns()
                    call(*self.arrays)
                    own[place, repeat] = 1e-9 * (time.process_time_ns() - start)
        halves = [part.min(axis=0) for part in (times[::2], times[1::2])]
        found = [float(cold - warm - (empty - again)) for (cold, warm), (empty, again) in halves]
        return max(0.0, min(found))  # what only one half of the rounds has seen is noise


def footprint(compiled: Compiled, inputs: Mapping[str, Any]) -> int:
    """Bytes that one inference goes through: weights, and the pools of all other tensors."""
    pools = counters.count(compiled, **inputs).pool_bytes or 0
    return compiled.sizes["parameters"] + pools


def measure(compiled: Compiled, /, *, rounds: int = 7, **inputs: Any) -> list[KernelTime]:
    """Time every kernel of one inference on ``inputs``, in the order of the first calls.

    ``compiled`` is for the graph executor or the VM. All kernels are timed in turn, ``rounds``
    times, and the fastest timing of each is kept. Shape functions and the kernels that compute a
    storage's size are among them.

    Raises :class:`WorkbookError` as :func:`calls` does.
    """
    rounds = whole_number(rounds, "rounds", 1)
    found = calls(compiled, inputs)
    for _ in range(rounds):
        for call in found:
            call.repeated.time()
    return finished(found, footprint(compiled, inputs))


def finished(found: Sequence[Call], other: int) -> list[KernelTime]:
    """The times of calls whose ``repeated`` has been timed; ``other`` as in :meth:`Call.cold`."""
    return [
        KernelTime(call.kernel, call.count, call.repeated.best, call.cold(other)) for call in found
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
    constants = {id(constant.data) for constant in program.constants}

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any) -> None:
            weights = tuple(id(array) in constants for array in arrays)
            keep(Call(name, compiled.kernel_library, symbols[name], arrays, weights))
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
    params = compiled.library.get_params()
    given.update(params)
    entries: list[Any] = []
    constants: set[int] = set()
    for number, node in enumerate(graph["nodes"]):
        if node["op"] == "null":
            entries.append(tvm.nd.array(given[node["name"]], device))
            if node["name"] in params:
                constants.add(id(entries[-1]))
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
        weights = tuple(id(array) in constants for array in arrays)
        keep(Call(symbol.removeprefix(PREFIX), library, symbol, arrays, weights))
