"""Operator fusion: patterns, fused groups, and the ledger of bytes that every kernel moves.

A *kernel* here is one entry in the running program: a call of a primitive function that FuseOps
made. Groups that only rename a shape (``reshape``, ``squeeze``, ...) move nothing and get no kernel
(the graph executor calls them ``__nop``), so they are left out everywhere in this module.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

from helpers import modules
from helpers.errors import WorkbookError, whole_number

MEGABYTE = 10**6
_PREFIX = "tvmgen_default_"


def pattern(operator: str) -> str:
    """The fusion pattern that TVM's registry (``TOpPattern``) holds for an operator.

    One of ``ELEMWISE``, ``BROADCAST``, ``INJECTIVE``, ``COMM_REDUCE``, ``OUT_ELEMWISE_FUSABLE``,
    ``TUPLE``, ``OPAQUE``. Raises :class:`WorkbookError` for an unknown operator, and for one that
    has no pattern, such as ``nn.layer_norm``: SimplifyInference writes it as simpler operators.
    """
    if not isinstance(operator, str):
        raise WorkbookError(
            f'An operator is named by a string, such as "nn.conv2d", not {type(operator).__name__}.'
        )
    value = _pattern_value(operator)
    if value is None:
        raise WorkbookError(
            f"{operator} has no fusion pattern: other passes (SimplifyInference, or QNN's "
            "canonicalisation) must write it as simpler operators before FuseOps sees it."
        )
    return _pattern_names()[value]


def _pattern_value(operator: str) -> int | None:
    import tvm

    try:
        value = tvm.ir.Op.get(operator).get_attr("TOpPattern")
    except tvm.error.TVMError as error:
        known = [str(name) for name in tvm.ir.Op.list_op_names()]
        known = [name for name in known if not name.startswith(("tir.", "relax."))]
        near = difflib.get_close_matches(operator, known, n=3, cutoff=0.5)
        # `conv2d` is spelt far from `nn.conv2d` for difflib, and near for a reader.
        near = [name for name in known if name.split(".")[-1] == operator] + near
        hint = f"; near it: {', '.join(dict.fromkeys(near))}" if near else ""
        raise WorkbookError(f"Relay has no operator {operator!r}{hint}.") from error
    return None if value is None else int(value)


def _pattern_names() -> dict[int, str]:
    from tvm.relay.op.op import OpPattern

    return {value: name for name, value in vars(OpPattern).items() if name.isupper()}


def fuse(mod: Any, opt_level: int = 3, max_depth: int | None = None) -> Any:
    """A copy of ``mod`` with its operators grouped as a build at ``opt_level`` would group them.

    Runs InferType and FuseOps, which reads the level from the pass context: at level 0 every
    operator is a group of its own. ``max_depth`` is ``relay.FuseOps.max_depth``, the most operators
    in one group (256, if not said); ``1`` is how one builds without fusion. A build runs
    other passes first (SimplifyInference, FoldConstant, ...): run those before, if they matter.

    ``mod`` is an IRModule, a Relay function or anything with a ``module`` (a zoo model). Raises
    :class:`WorkbookError` when it has a type error or an operator without a pattern.
    """
    import tvm
    from tvm.relay import transform

    opt_level = whole_number(opt_level, "opt_level", 0)
    config = {}
    if max_depth is not None:
        most = whole_number(max_depth, "max_depth, the most operators in a group,", 1)
        config["relay.FuseOps.max_depth"] = most
    typed = modules.typed(mod)
    for name in sorted({name for group in _groups(typed, ()) for name in group.operators}):
        pattern(name)
    with tvm.transform.PassContext(opt_level=opt_level, config=config):
        return tvm.transform.Sequential([transform.FuseOps(), transform.InferType()])(typed)


# --- the groups of a module -----------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """A tensor that a kernel reads or writes. An axis of unknown size is ``"?"``."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    is_weight: bool = False

    @property
    def bytes(self) -> int:
        """Size in bytes; :class:`WorkbookError` when an axis is unknown."""
        import tvm

        sizes = [size for size in self.shape if isinstance(size, int)]
        if len(sizes) < len(self.shape):
            raise WorkbookError(
                f"The size of {self} is not known before it runs, so its bytes cannot be counted: "
                "give the model a fixed shape."
            )
        try:
            kind = tvm.DataType(self.dtype)
        except ValueError as error:
            raise WorkbookError(f"TVM has no dtype {self.dtype!r}.") from error
        lanes = kind.lanes or 1  # TVM leaves it at 0 for "uint1", as a graph JSON calls bool
        return prod(sizes) * ((kind.bits * lanes + 7) // 8)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Group:
    """Operators that become one kernel.

    ``operators`` are in execution order. ``anchor`` is the operator whose schedule the kernel gets:
    the last one of the highest pattern; ``pattern`` is its pattern. ``inputs`` are distinct.
    """

    name: str
    operators: tuple[str, ...]
    anchor: str
    pattern: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def __str__(self) -> str:
        return f"{self.name}: {' + '.join(self.operators)} ({self.pattern})"


def groups(mod: Any, params: Collection[str] = ()) -> list[Group]:
    """The kernels of a Relay module, named ``k1``, ``k2``, ... in execution order.

    After :func:`fuse` each call of a primitive function is a group. An operator call outside any
    primitive function counts as a group of its own, so that a module before fusion shows what one
    kernel per operator costs; nothing is fused silently. Constants are weights, and so are the
    variables named in ``params``. Raises :class:`WorkbookError` for what is not a Relay module.
    """
    _need_names(params)
    return _groups(modules.typed(mod), params)


def _need_names(params: Collection[str]) -> None:
    # A lone string is a collection of strings, too: its letters.
    if isinstance(params, str) or not isinstance(params, Collection):
        raise WorkbookError(
            f'params holds the names of the weights, such as ["weight", "bias"], not {params!r}.'
        )


def _groups(typed: Any, params: Collection[str]) -> list[Group]:
    from tvm import relay

    found: list[Group] = []
    for function in typed.functions.values():
        if isinstance(function, relay.Function) and not _is_primitive(function):
            found += _groups_of_function(function, frozenset(params), len(found))
    return found


def _groups_of_function(function: Any, params: frozenset[str], before: int) -> list[Group]:
    from tvm import relay

    calls: list[Any] = []
    inside: set[Any] = set()
    bound: dict[Any, Any] = {}

    def visit(node: Any) -> None:
        if isinstance(node, relay.Let):
            bound[node.var] = node.value
        elif isinstance(node, relay.Call):
            calls.append(node)
            if _is_primitive(node.op):
                inside.update(_operator_calls(node.op))

    relay.analysis.post_order_visit(function, visit)
    sources = _Sources(bound, params)
    found: list[Group] = []
    for call in calls:
        if call in inside or not _makes_kernel(call):
            continue
        operators = _operators(call.op) if _is_primitive(call.op) else (call.op.name,)
        anchor, kind = _anchor(operators)
        name = f"k{before + len(found) + 1}"
        distinct = dict(pair for argument in call.args for pair in sources.of(argument))
        outputs = tuple(tensor for _, tensor in sources.of(call))
        found.append(Group(name, operators, anchor, kind, tuple(distinct.values()), outputs))
        sources.name_outputs(call, name)
    return found


def _is_primitive(node: Any) -> bool:
    from tvm import relay

    return isinstance(node, relay.Function) and _flag(node, "Primitive")


def _flag(function: Any, name: str) -> bool:
    return bool(function.attrs and name in function.attrs and int(function.attrs[name]))


def _makes_kernel(call: Any) -> bool:
    import tvm

    if isinstance(call.op, tvm.ir.Op):
        # `on_device` only says where a value lives.
        return call.op.name != "on_device" and not call.op.get_attr("TReshapeOp")
    return _is_primitive(call.op) and not _flag(call.op, "relay.reshape_only")


def _operator_calls(function: Any) -> list[Any]:
    import tvm
    from tvm import relay

    calls: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op):
            calls.append(node)

    relay.analysis.post_order_visit(function.body, visit)
    return calls


def _operators(function: Any) -> tuple[str, ...]:
    return tuple(call.op.name for call in _operator_calls(function))


def _anchor(operators: Sequence[str]) -> tuple[str, str]:
    from tvm.relay.op.op import OpPattern

    values = [_pattern_value(name) for name in operators]
    ranks = [OpPattern.OPAQUE if value is None else value for value in values]
    last = max(range(len(ranks)), key=lambda index: (ranks[index], index))
    return operators[last], _pattern_names()[ranks[last]]


class _Sources:
    """Follows an expression to the tensors behind it: through tuples, fields and let bindings."""

    def __init__(self, bound: dict[Any, Any], params: frozenset[str]) -> None:
        self._bound = bound
        self._params = params
        self._names: dict[Any, str] = {}

    def name_outputs(self, call: Any, name: str) -> None:
        self._names[call] = name

    def of(self, node: Any) -> list[tuple[tuple[Any, int], Tensor]]:
        from tvm import relay

        if node in self._bound:
            return self.of(self._bound[node])
        if isinstance(node, relay.Tuple):
            return [pair for field in node.fields for pair in self.of(field)]
        if isinstance(node, relay.TupleGetItem):
            fields = node.tuple_value.checked_type.fields
            start = sum(len(_tensor_types(field)) for field in islice(fields, node.index))
            stop = start + len(_tensor_types(fields[node.index]))
            return self.of(node.tuple_value)[start:stop]
        name, weight = self._describe(node)
        return [
            ((node, index), Tensor(name, _shape(kind), str(kind.dtype), weight))
            for index, kind in enumerate(_tensor_types(node.checked_type))
        ]

    def _describe(self, node: Any) -> tuple[str, bool]:
        from tvm import relay

        if isinstance(node, relay.Var):
            return node.name_hint, node.name_hint in self._params
        if isinstance(node, relay.Constant):
            return "constant", True
        return self._names.get(node, type(node).__name__.lower()), False


def _tensor_types(kind: Any) -> list[Any]:
    from tvm import relay

    if isinstance(kind, relay.TupleType):
        return [tensor for field in kind.fields for tensor in _tensor_types(field)]
    return [kind] if isinstance(kind, relay.TensorType) else []


def _shape(kind: Any) -> tuple[int | str, ...]:
    import tvm

    return tuple(int(size) if isinstance(size, tvm.tir.IntImm) else "?" for size in kind.shape)


# --- the ledger -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Bytes that one kernel moves between memory and processor, each distinct tensor once."""

    kernel: str
    operators: tuple[str, ...]
    activations: int
    weights: int
    written: int

    @property
    def total(self) -> int:
        """Bytes read and written."""
        return self.activations + self.weights + self.written


@dataclass(frozen=True)
class Ledger:
    """One :class:`Row` per kernel, and their sums. All counts are in bytes (1 MB is 10^6 bytes)."""

    rows: tuple[Row, ...]

    @property
    def kernels(self) -> int:
        """How many kernels run."""
        return len(self.rows)

    @property
    def activations(self) -> int:
        """Bytes of activations (inputs of the model included) that all kernels read."""
        return sum(row.activations for row in self.rows)

    @property
    def weights(self) -> int:
        """Bytes of weights that all kernels read."""
        return sum(row.weights for row in self.rows)

    @property
    def written(self) -> int:
        """Bytes that all kernels write."""
        return sum(row.written for row in self.rows)

    @property
    def total(self) -> int:
        """Bytes read and written by all kernels."""
        return self.activations + self.weights + self.written

    def as_text(self, limit: int | None = None) -> str:
        """A table of the first ``limit`` kernels (``None``: all) and the sums of all of them.

        The unit is chosen once for the table: MB when the total is a megabyte or more, else B.
        """
        if limit is not None:
            limit = whole_number(limit, "limit, the most kernels to list,", 0)
        show = _unit([self])
        shown = self.rows[:limit]
        table: list[tuple[str, ...]] = [("", "operators", *_COLUMNS)]
        table += [
            (f"k{index}", _joined(row.operators), *_cells(row, show))
            for index, row in enumerate(shown, 1)
        ]
        if len(shown) < self.kernels:
            table.append(("...", f"{self.kernels - len(shown)} more", "", "", "", ""))
        noun = "kernel" if self.kernels == 1 else "kernels"
        table.append(("", f"{self.kernels} {noun}, {show.name}", *_cells(self, show)))
        return _align(table, left=2)

    def against(self, other: Ledger, labels: tuple[str, str] = ("before", "after")) -> str:
        """A table that compares the sums of this ledger (before) with ``other`` (after).

        Raises :class:`WorkbookError` unless ``other`` is a ledger and there are two labels.
        """
        if not isinstance(other, Ledger):
            raise WorkbookError(
                f"A ledger is compared with another ledger, not {type(other).__name__}: "
                "fusion.ledger(...) makes one."
            )
        if not isinstance(labels, tuple | list) or [*map(type, labels)] != [str, str]:
            raise WorkbookError(f'labels are two strings, as ("before", "after"), not {labels!r}.')
        show = _unit([self, other])
        table: list[tuple[str, ...]] = [(show.name, "kernels", *_COLUMNS)]
        for label, sums in zip(labels, (self, other), strict=True):
            table.append((label, str(sums.kernels), *_cells(sums, show)))
        pairs = zip(_sums(self), _sums(other), strict=True)
        ratios = [f"{before / after:.2f}x" if after else "-" for before, after in pairs]
        table.append((f"{labels[0]} / {labels[1]}", *ratios))
        return _align(table, left=1)

    def __str__(self) -> str:
        return self.as_text()


_COLUMNS = ("activations read", "weights read", "written", "total")


@dataclass(frozen=True)
class _Unit:
    name: str
    divisor: int
    digits: int

    def __call__(self, count: int) -> str:
        return f"{count / self.divisor:,.{self.digits}f}"


def _unit(ledgers: Sequence[Ledger]) -> _Unit:
    large = max(entry.total for entry in ledgers) >= MEGABYTE
    return _Unit("MB", MEGABYTE, 3) if large else _Unit("B", 1, 0)


def _cells(row: Row | Ledger, show: _Unit) -> tuple[str, ...]:
    return tuple(map(show, (row.activations, row.weights, row.written, row.total)))


def _sums(sums: Ledger) -> tuple[int, ...]:
    return (sums.kernels, sums.activations, sums.weights, sums.written, sums.total)


def _joined(operators: Sequence[str], most: int = 4) -> str:
    rest = len(operators) - most
    return " + ".join(operators[:most]) + (f" + {rest} more" if rest > 0 else "")


def _align(table: Sequence[Sequence[str]], left: int) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def ledger(x: Any, params: Collection[str] = ()) -> Ledger:
    """Count the bytes that every kernel reads and writes.

    ``x`` is a Relay module or function, counted from its types as :func:`groups` sees it, or
    something built for the graph executor (``relay.build``'s result, or a ``Compiled``), counted
    from the graph JSON that the executor runs. ``params`` names the variables of a module that are
    weights; a built library knows its own. Each distinct input tensor counts once per kernel, each
    output once: the traffic of a kernel whose tensors do not stay in a cache.

    Raises :class:`WorkbookError` for a dynamic shape, or for a build without graph JSON.
    """
    library = _library(x)
    if library is None:
        return Ledger(tuple(map(_row_of_group, groups(x, params))))
    if not hasattr(library, "get_graph_json"):
        raise WorkbookError(
            "The ledger reads the graph JSON, which only a graph executor build has: compile with "
            'executor="graph", or pass the Relay module itself.'
        )
    return _ledger_of_library(library)


def _row_of_group(group: Group) -> Row:
    weights = sum(tensor.bytes for tensor in group.inputs if tensor.is_weight)
    everything = sum(tensor.bytes for tensor in group.inputs)
    written = sum(tensor.bytes for tensor in group.outputs)
    return Row(group.name, group.operators, everything - weights, weights, written)


def _library(x: Any) -> Any:
    """What holds the kernels of a build, or ``None`` when ``x`` is no build."""
    if hasattr(x, "library"):
        return x.library
    return x if hasattr(x, "get_graph_json") or hasattr(x, "function_metadata") else None


def _ledger_of_library(library: Any) -> Ledger:
    graph = json.loads(library.get_graph_json())
    nodes, first = graph["nodes"], graph["node_row_ptr"]
    entries = zip(graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1], strict=True)
    sizes = [Tensor("", tuple(shape), dtype).bytes for shape, dtype in entries]
    weights = {
        first[index] for index, node in enumerate(nodes) if node["name"] in library.get_params()
    }
    operators = kernel_operators(library)
    rows = []
    for index, node in enumerate(nodes):
        if node["op"] != "tvm_op" or node["attrs"]["func_name"] == "__nop":
            continue
        read = {first[source] + output for source, output, *_ in node["inputs"]}
        name = node["attrs"]["func_name"].removeprefix(_PREFIX)
        rows.append(
            Row(
                name,
                operators.get(name, (name,)),
                sum(sizes[entry] for entry in read - weights),
                sum(sizes[entry] for entry in read & weights),
                sum(sizes[first[index] : first[index + 1]]),
            )
        )
    return Ledger(tuple(rows))


# --- inside the kernels of a build ----------------------------------------------------------------


def kernel_operators(x: Any) -> dict[str, tuple[str, ...]]:
    """The operators of every kernel of a build, by the kernel's name (no ``tvmgen_default_``)."""
    return {
        name.removeprefix(_PREFIX): _operators(function)
        for name, function in _kernel_functions(x, "relay_primfuncs")
        if name != "__tvm_main__"
    }


def kernel_tir(x: Any) -> dict[str, Any]:
    """The lowered TIR (``tvm.tir.PrimFunc``) of every distinct kernel of a build, by its name."""
    functions = _kernel_functions(x, "tir_primfuncs")
    return {name.removeprefix(_PREFIX): function for name, function in functions}


def _kernel_functions(x: Any, table: str) -> list[tuple[str, Any]]:
    library = _library(x)
    if not hasattr(library, "function_metadata"):
        raise WorkbookError(
            "The kernels' TIR is kept by relay.build for the graph and AOT executors: "
            "pass what it returned, and not a module, a loaded file or a VM executable."
        )
    return [
        (str(name), function)
        for name, info in library.function_metadata.items()
        for function in getattr(info, table).values()
    ]


def intermediate_buffers(x: Any) -> dict[str, int]:
    """Bytes of buffers that each kernel of a build allocates inside itself, by kernel name.

    Zero is what fusion promises: a fused value lives in a register, never in memory. Some schedules
    do allocate: a padded copy of a convolution's input, the parts of a ``concatenate``. Counted as
    the ``Allocate`` nodes of the lowered TIR, as :func:`kernel_tir` gives it; a buffer inside a
    parallel loop counts once.
    """
    return {name: _allocated(function) for name, function in kernel_tir(x).items()}


def _allocated(function: Any) -> int:
    import tvm

    total = 0

    def visit(node: Any) -> None:
        nonlocal total
        if isinstance(node, tvm.tir.Allocate):
            shape = tuple(int(extent) for extent in node.extents)
            total += Tensor("", shape, str(node.dtype)).bytes

    tvm.tir.stmt_functor.post_order_visit(function.body, visit)
    return total
