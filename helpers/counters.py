"""What one inference costs without a clock: kernels called, instructions, bytes.

    counted = counters.count(compiled, **inputs)

Each executor's numbers come from what it really runs: the graph executor's JSON, the AOT executor's
list of kernels, and the VM's bytecode, stepped through with :mod:`helpers.stepper`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helpers.errors import WorkbookError

LABELS = {
    "kernels": "operator kernels called",
    "shape_functions": "shape functions called",
    "size_kernels": "kernels called for the size of a storage",
    "instructions": "bytecode instructions",
    "allocations": "storages allocated",
    "allocated_bytes": "bytes allocated",
    "peak_bytes": "most bytes alive at once",
    "pool_bytes": "bytes of the memory pools",
    "moved_bytes": "bytes that kernels read and write",
}
"""What each number is, in the order in which they are printed."""


@dataclass
class Counters:
    """The numbers of one inference; ``None`` is what the executor does not let one know.

    ``kernels``, ``shape_functions`` and ``size_kernels`` are calls of compiled functions. The
    latter two are the VM's alone: a shape function computes the shape of a result before its
    kernel runs, and where that is known only then, ``prod`` and ``multiply`` compute the bytes of
    its storage.

    The bytes are those of intermediates and outputs. ``allocations`` and ``allocated_bytes`` are
    what is allocated during the inference: nothing by the graph executor, which does it once, when
    it is loaded. ``peak_bytes`` is the most that is alive at once. ``pool_bytes`` is the memory
    that this takes: the graph executor's plan, and of the VM what its allocator, empty at first,
    takes from the system (whole pages of 4096 bytes, used again for requests of as many pages).
    Buffers inside of kernels, weights, inputs and the VM's registers are in none of these.

    ``moved_bytes`` counts what kernels read and write, each distinct tensor once per call and
    whole, even where a kernel reads one row of it; weights and inputs too.
    """

    executor: str
    kernels: int = 0
    shape_functions: int = 0
    size_kernels: int = 0
    instructions: int = 0
    allocations: int | None = 0
    allocated_bytes: int | None = 0
    peak_bytes: int | None = 0
    pool_bytes: int | None = 0
    moved_bytes: int | None = 0

    @property
    def dispatches(self) -> int:
        """All calls of compiled functions."""
        return self.kernels + self.shape_functions + self.size_kernels

    def __str__(self) -> str:
        return table({self.executor: self})


def count(compiled: Any, /, **inputs: Any) -> Counters:
    """The counters of one inference of a ``Compiled`` on ``inputs``.

    The VM's program is run for it; what the other executors do does not depend on the inputs,
    which may then be left out. Raises :class:`WorkbookError` for anything but a ``Compiled``, and
    for wrong inputs.
    """
    executor = getattr(compiled, "executor", None)
    if executor == "vm":
        from helpers import bytecode

        run = bytecode.decode(compiled).start(**inputs)
        run.to_end()
        return run.counters
    if executor == "graph":
        from helpers import fusion, storage

        plan = storage.plan(compiled)
        return Counters(
            "graph",
            kernels=len(compiled.kernels),
            peak_bytes=plan.peak_bytes,
            pool_bytes=plan.planned_bytes,
            moved_bytes=fusion.ledger(compiled).total,
        )
    if executor == "aot":
        return Counters(
            "aot",
            kernels=len(compiled.kernels),
            allocations=None,
            allocated_bytes=None,
            peak_bytes=None,
            pool_bytes=None,
            moved_bytes=None,
        )
    raise WorkbookError(
        f"Counters are those of a compiled model, not of {type(compiled).__name__}: "
        "build.compile(...) makes one."
    )


def table(columns: Mapping[str, Counters]) -> str:
    """The counters side by side, one column per name; ``?`` is what an executor hides."""
    rows = [["", *columns]]
    for name, label in LABELS.items():
        values = [getattr(counted, name) for counted in columns.values()]
        rows.append([label, *("?" if value is None else f"{value:,}" for value in values)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
