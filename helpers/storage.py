"""The graph executor's memory plan, read from what was built.

Every result of a kernel gets a pool before the model runs; two results may share a pool when no
kernel needs both. The plan stands in the graph JSON (``storage_id``), with the shapes of all
results; lifetimes follow from the order of the kernels.

    plan = storage.plan(build.compile("squeezenet", executor="graph"))
    plan.total_bytes, plan.planned_bytes, plan.peak_bytes
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from helpers import plots
from helpers.compiled import TensorType
from helpers.errors import WorkbookError
from helpers.ir import tensor_bytes

_PREFIX = "tvmgen_default_"


@dataclass(frozen=True)
class Tensor:
    """One intermediate or output: what it takes, its pool, and the steps at which it is needed.

    It is written at step ``first`` and last read at step ``last``, counted in kernels from 0; a
    result of the model is needed until the last step. A reshape makes no tensor of its own: it is
    another name for the one it reshapes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    pool: int
    first: int
    last: int
    is_output: bool

    def __str__(self) -> str:
        kind = TensorType(self.shape, self.dtype)
        return f"{self.name} {kind}: {self.bytes:,} B in pool {self.pool}, {self.first}-{self.last}"


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of one model. ``kernels`` are the steps; pools are numbered as they are first used.

    ``parameter_bytes`` and ``input_bytes`` are held beside it: weights and inputs have memory of
    their own, which no intermediate shares.
    """

    kernels: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    parameter_bytes: int
    input_bytes: int

    @cached_property
    def pools(self) -> tuple[int, ...]:
        """Bytes of each pool: those of its largest tensor."""
        return pool_sizes(self.tensors, [tensor.pool for tensor in self.tensors])

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors: what it would take if each had memory of its own."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def planned_bytes(self) -> int:
        """Bytes of all pools: what the executor allocates when it is loaded."""
        return sum(self.pools)

    @cached_property
    def alive(self) -> tuple[int, ...]:
        """Bytes of the tensors that are needed at each step."""
        changes = [0] * (len(self.kernels) + 1)
        for tensor in self.tensors:
            changes[tensor.first] += tensor.bytes
            changes[tensor.last + 1] -= tensor.bytes
        return tuple(accumulate(changes))[:-1]

    @property
    def peak_bytes(self) -> int:
        """The most bytes needed at one step: no plan for this order of kernels takes less."""
        return max(self.alive, default=0)

    @property
    def peak_step(self) -> int:
        """The first step that needs ``peak_bytes``; 0 when there is none."""
        return self.alive.index(self.peak_bytes) if self.alive else 0

    def __str__(self) -> str:
        counts = f"{len(self.tensors)} tensors of {len(self.kernels)} kernels"
        if not self.tensors:
            return f"{counts}: nothing is planned"
        numbers = (self.total_bytes, self.planned_bytes, self.peak_bytes)
        wide = max(len(f"{number:,}") for number in numbers)
        total, planned, peak = (f"{number:>{wide},} B" for number in numbers)
        ratio = self.planned_bytes / self.peak_bytes if self.peak_bytes else 1.0
        return (
            f"{counts} in {len(self.pools)} pools\n"
            f"all tensors       {total}\n"
            f"planned           {planned}  {ratio:.3f} x the peak\n"
            f"peak of liveness  {peak}  at step {self.peak_step}, {self.kernels[self.peak_step]}"
        )

    def figure(self, title: str = "") -> Any:
        """Steps from left to right, bytes upwards; a matplotlib ``Figure``.

        Above, every pool is a band as high as the pool, and every tensor a box in it; below, the
        bytes needed at each step, under what is planned.
        """
        return _figure(self, title)

    def alt_text(self, title: str = "") -> str:
        """What the figure shows, in a sentence."""
        return (
            f"{title + ': ' if title else ''}"
            f"memory plan of {len(self.kernels)} kernels. {len(self.tensors)} tensors "
            f"({self.total_bytes:,} bytes) lie in {len(self.pools)} pools of together "
            f"{self.planned_bytes:,} bytes; at most {self.peak_bytes:,} bytes are needed at once, "
            f"at step {self.peak_step}."
        )


def plan(x: Any) -> Plan:
    """The plan of a model built for the graph executor: ``x`` is a ``Compiled``, or what
    ``relay.build`` gives.

    Takes time linear in the size of the graph. Raises :class:`WorkbookError` for anything else.
    """
    library = x.library if hasattr(x, "library") else x
    if not hasattr(library, "get_graph_json"):
        executor = getattr(x, "executor", None)
        what = f"a model for {executor!r}" if executor else f"{type(x).__name__}"
        raise WorkbookError(
            f"A memory plan is made for the graph executor alone, and this is {what}: "
            'pass what build.compile(model, executor="graph") gives.'
        )
    return _read(json.loads(library.get_graph_json()), set(library.get_params()))


def _read(graph: dict[str, Any], params: set[str]) -> Plan:
    nodes, rows = graph["nodes"], graph["node_row_ptr"]
    shapes, dtypes, ids = (graph["attrs"][key][1] for key in ("shape", "dltype", "storage_id"))
    dtypes = ["bool" if dtype == "uint1" else dtype for dtype in dtypes]
    sizes = [
        tensor_bytes(tuple(shape), dtype) or 0 for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    root = list(range(len(sizes)))  # of a reshape's result the entry that holds the numbers
    kernels: list[str] = []
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    parameter_bytes = input_bytes = 0
    for index, node in enumerate(nodes):
        written = range(rows[index], rows[index + 1])
        if node["op"] == "null":
            if node["name"] in params:
                parameter_bytes += sizes[written[0]]
            else:
                input_bytes += sizes[written[0]]
            continue
        read = [root[rows[source] + output] for source, output, *_ in node["inputs"]]
        if node["attrs"]["func_name"] == "__nop":
            root[written[0]] = read[0]
            continue
        step = len(kernels)
        kernels.append(node["attrs"]["func_name"].removeprefix(_PREFIX))
        last.update((entry, step) for entry in (*read, *written))
        first.update((entry, step) for entry in written)
    outputs = {root[rows[source] + output] for source, output, *_ in graph["heads"]}
    last.update((entry, len(kernels) - 1) for entry in outputs)

    numbers: dict[int, int] = {}
    tensors = tuple(
        Tensor(
            name=kernels[step],
            shape=tuple(shapes[entry]),
            dtype=dtypes[entry],
            bytes=sizes[entry],
            pool=numbers.setdefault(ids[entry], len(numbers)),
            first=step,
            last=last[entry],
            is_output=entry in outputs,
        )
        for entry, step in first.items()
    )
    return Plan(tuple(kernels), tensors, parameter_bytes, input_bytes)


# --- plans of one's own --------------------------------------------------------------------------


def pool_sizes(tensors: Sequence[Tensor], pools: Sequence[int]) -> tuple[int, ...]:
    """Bytes of each pool when tensor ``i`` lies in pool ``pools[i]``: those of its largest tensor.

    Pools are numbered from 0; raises :class:`WorkbookError` unless each tensor has one.
    """
    _need_a_pool_each(tensors, pools)
    sizes = [0] * (max(pools, default=-1) + 1)
    for tensor, pool in zip(tensors, pools, strict=True):
        sizes[pool] = max(sizes[pool], tensor.bytes)
    return tuple(sizes)


def conflicts(tensors: Sequence[Tensor], pools: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Tensors that are written while their pool is still needed: a plan must have none.

    Each comes as a pair: the tensor that is still needed, and the one that would destroy it. At the
    step that reads one tensor for the last time and writes another, both are needed. Raises
    :class:`WorkbookError` unless each tensor has a pool.
    """
    _need_a_pool_each(tensors, pools)
    holders: dict[int, Tensor] = {}
    found = []
    for tensor, pool in sorted(zip(tensors, pools, strict=True), key=lambda pair: pair[0].first):
        holder = holders.get(pool)
        if holder is not None and tensor.first <= holder.last:
            found.append((holder, tensor))
        if holder is None or tensor.last > holder.last:
            holders[pool] = tensor
    return found


def _need_a_pool_each(tensors: Sequence[Tensor], pools: Sequence[int]) -> None:
    numbers = all(isinstance(pool, int) and pool >= 0 for pool in pools)
    if len(tensors) != len(pools) or not numbers:
        raise WorkbookError(
            f"A plan gives each of the {len(tensors)} tensors the number of its pool, from 0; "
            f"{len(pools)} were given{'' if numbers else ', and not all are such numbers'}."
        )


# --- the figure ----------------------------------------------------------------------------------

POOL_COLOURS = plots.SERIES
"""The colours of pools in the order of their numbers, again from the first when they run out."""


def _label_pools(axes: Any, middles: Sequence[float], top: float, steps: int) -> None:
    """The number of each pool right of the drawing, tied to its pool where it must stand apart."""
    least = min(0.05, 0.97 / max(1, len(middles))) * top  # from line to line
    places = list(middles)
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + least)
    for k in reversed(range(len(places))):
        above = places[k + 1] - least if k + 1 < len(places) else top - least / 2
        places[k] = min(places[k], above)
    for pool, (middle, place) in enumerate(zip(middles, places, strict=True)):
        axes.annotate(
            f"pool {pool}",
            (steps, middle),
            (steps * 1.04, place),
            va="center",
            fontsize=9,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": plots.GREY,
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )


def _figure(plan: Plan, title: str) -> Any:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    sizes = ((1e6, "MB"), (1e4, "kB"), (0, "B"))
    name = next(unit for least, unit in sizes if plan.planned_bytes >= least)
    unit = {"MB": 1e6, "kB": 1e3, "B": 1}[name]
    top = max(plan.planned_bytes, 1) / unit
    bases = [0, *accumulate(plan.pools)]
    steps = len(plan.kernels)
    with matplotlib.rc_context({**plots.STYLE, "axes.grid": False}):
        figure = Figure(figsize=(9, 6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for pool, (low, high) in enumerate(pairwise(bases)):
            shade = plots.tint(POOL_COLOURS[pool % len(POOL_COLOURS)], 0.12)
            above.axhspan(low / unit, high / unit, color=shade, linewidth=0)
        _label_pools(above, [(low + high) / 2 / unit for low, high in pairwise(bases)], top, steps)
        for tensor in plan.tensors:
            above.add_patch(
                Rectangle(
                    (tensor.first, bases[tensor.pool] / unit),
                    tensor.last - tensor.first + 1,
                    tensor.bytes / unit,
                    facecolor=POOL_COLOURS[tensor.pool % len(POOL_COLOURS)],
                    edgecolor="white",
                    linewidth=0.7,
                )
            )
        above.set_ylim(0, top)
        above.set_ylabel(f"pools, {name}")
        above.set_title(title or "Each tensor in its pool", loc="left")
        edges = range(steps + 1)
        alive = [count / unit for count in plan.alive]
        below.stairs(alive, edges, fill=True, color=plots.tint(plots.BLACK, 0.35))
        lines = (
            (plan.planned_bytes, plots.VERMILION, "-", "planned"),
            (plan.peak_bytes, plots.BLACK, "--", "peak of liveness"),
        )
        for height, colour, style, label in lines:
            text = f"{label}: {height / unit:,.4g} {name}"
            below.axhline(height / unit, color=colour, linestyle=style, linewidth=1.3, label=text)
        below.set_xlim(0, max(steps, 1))
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        below.set_ylim(0, 1.1 * top)
        below.set_ylabel(f"needed, {name}")
        below.set_xlabel("step (kernel)")
        figure.legend(loc="outside lower center", ncols=2)
    return figure
