"""A Relay program as a graph G = (V, E): nodes and types, what makes it dynamic, text, drawing."""

from __future__ import annotations

import re
import textwrap
from collections import ChainMap, Counter
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from helpers import modules, plots
from helpers.errors import WorkbookError

UNKNOWN = "?"
"""How a dimension that is not known before the run (``relay.Any()``) is written in a shape."""

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Node:
    """One vertex: a value that the program computes, takes in, or holds.

    ``kind`` is ``"input"``, ``"constant"``, ``"call"``, ``"fused"`` (a fused function seen as one
    node), ``"tuple"``, ``"tuple_get"``, ``"if"``, ``"match"``, ``"function"``, ``"global"``,
    ``"constructor"``, ``"recursion"`` (a function's name used inside itself) or ``"ref"``.
    ``op`` is TVM's operator name, ``""`` where no operator is called. ``shape`` is a tuple of
    ``int`` and ``"?"``; of a tuple value, a tuple of shapes; ``None`` where there is no tensor
    (``dtype`` likewise). ``bytes`` is the size of the tensor, of a tuple the sum over its fields,
    ``None`` when a dimension is unknown. ``inputs`` are the producers' indices in argument order
    (of a call that is not an operator's, the function comes first). ``group`` numbers the fused
    function that the node lies in, from 1.
    """

    index: int
    kind: str
    op: str
    name: str
    shape: Shape | None
    dtype: Any
    bytes: int | None
    inputs: tuple[int, ...]
    attrs: dict[str, Any] = field(default_factory=dict, hash=False)
    group: int | None = None
    scope: int = 0
    expr: Any = field(default=None, repr=False, compare=False)

    @property
    def type(self) -> str:
        """The type in short, such as ``float32[1, 64, 56, 56]``; of a tuple ``(…, …)``."""
        return _type_text(self.shape, self.dtype)


@dataclass(frozen=True)
class Graph:
    """G = (V, E). ``nodes`` are in topological order: a node's index is its place in the list.

    ``function`` is the typed Relay function whose graph it is.
    """

    nodes: list[Node]
    output: int
    function: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """(producer, consumer) for each argument; ``x * x`` gives the same edge twice."""
        return [(source, node.index) for node in self.nodes for source in node.inputs]

    @cached_property
    def calls(self) -> list[Node]:
        """The operator calls."""
        return [node for node in self.nodes if node.op]

    @cached_property
    def operators(self) -> Counter[str]:
        """How often each operator is called."""
        return Counter(node.op for node in self.calls)

    def to_networkx(self) -> Any:
        """The same graph as a ``networkx.MultiDiGraph``; edges carry the argument ``position``."""
        import networkx

        result = networkx.MultiDiGraph()
        for node in self.nodes:
            kept = ("kind", "op", "name", "shape", "dtype", "bytes", "attrs", "group")
            result.add_node(node.index, **{key: getattr(node, key) for key in kept})
        for node in self.nodes:
            for position, source in enumerate(node.inputs):
                result.add_edge(source, node.index, position=position)
        return result


def _entry(module: Any, function: str) -> Any:
    for variable in module.get_global_vars():
        if variable.name_hint == function:
            return module[variable]
    names = ", ".join(sorted(v.name_hint for v in module.get_global_vars())) or "none"
    raise WorkbookError(f"The module has no function @{function}; it has: {names}.")


# --- types ---


def _describe_type(expr: Any) -> tuple[Shape | None, Any, int | None]:
    """(shape, dtype, bytes) of a typed expression."""
    from tvm import relay

    def describe(kind: Any) -> tuple[Shape | None, Any, int | None]:
        if isinstance(kind, relay.TupleType):
            parts = [describe(item) for item in kind.fields]
            sizes = [size for _, _, size in parts]
            total = None if None in sizes else sum(size for size in sizes if size is not None)
            return tuple(p[0] for p in parts), tuple(p[1] for p in parts), total
        if not isinstance(kind, relay.TensorType):
            return None, None, None
        shape = tuple(_dimension(axis) for axis in kind.shape)
        return shape, str(kind.dtype), tensor_bytes(shape, str(kind.dtype))

    try:
        return describe(expr.checked_type)
    except ValueError:  # an operator or constructor: it has no type of its own
        return None, None, None


def _dimension(axis: Any) -> int | str:
    try:
        return int(axis)
    except TypeError:
        return UNKNOWN


def tensor_bytes(shape: Shape, dtype: str) -> int | None:
    """Bytes of a tensor as TVM stores it: each element takes whole bytes; ``None`` if unknown."""
    import tvm

    kind = tvm.DataType(dtype)
    lanes = kind.lanes or 1  # TVM leaves it at 0 for "uint1", as a graph JSON calls bool
    size = (kind.bits * lanes + 7) // 8
    for axis in shape:
        if isinstance(axis, str):
            return None
        size *= axis
    return size


def _type_text(shape: Shape | None, dtype: Any) -> str:
    if isinstance(dtype, tuple) and shape is not None:
        return f"({', '.join(_type_text(s, d) for s, d in zip(shape, dtype, strict=True))})"
    if shape is None:
        return ""
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _plain(value: Any) -> Any:
    """An attribute's value as plain Python: numbers, strings, tuples."""
    import tvm

    if isinstance(value, tvm.tir.IntImm | tvm.tir.FloatImm):
        return value.value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tvm.ir.Array):
        return tuple(_plain(item) for item in value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return type(value).__name__


def _attributes(attrs: Any) -> dict[str, Any]:
    """An operator's attributes; some have no Python class in TVM, so TVM lists their fields."""
    import tvm

    if attrs is None:
        return {}
    names = [str(item.name) for item in tvm.ir._ffi_api.AttrsListFieldInfo(attrs)]
    return {name: _plain(getattr(attrs, name)) for name in names}


# --- the graph ---


def graph(x: Any, *, inside: bool = True, function: str = "main") -> Graph:
    """The graph of a Relay function, an ``IRModule`` (its ``function``) or a zoo model.

    Types are inferred on a copy. A ``let`` makes no node: its variable stands for its value, so a
    program has the same graph in graph form and in A-normal form (a ``let`` whose variable is
    never used leaves a node without consumers). A function that is called where it is written is
    its body. The parameters come first, used or not. With
    ``inside`` the operators of fused (primitive) functions are nodes, marked with their
    ``group``; without it each call of a fused function is one node of kind ``"fused"``, named as
    its kernel will be (of long names TVM replaces the end by a hash). Other nested functions show
    their parameters and body, then a node ``"function"`` that takes the body's result; ``scope``
    says how deep in functions a node lies.

    Raises :class:`WorkbookError` for anything else, and for a program that has no valid types.
    """
    return _Walk(inside).run(_entry(modules.typed(x), function))


class _Walk:
    """Depth-first, arguments before calls, with a stack of its own: programs are deep."""

    def __init__(self, inside: bool) -> None:
        self.inside = inside
        self.nodes: list[Node] = []
        self.tasks: list[Callable[[], None]] = []
        self.fused: dict[Any, Any] = {}  # let variable -> the primitive function it is bound to
        self.groups = 0

    def run(self, function: Any) -> Graph:
        seen: MutableMapping[Any, int] = {}
        for parameter in function.params:
            self.add(seen, parameter, "input", name=parameter.name_hint)
        self.visit(function.body, seen, None, 0)
        while self.tasks:
            self.tasks.pop()()
        return Graph(self.nodes, seen[function.body], function)

    def then(self, *tasks: Callable[[], None]) -> None:
        """Do ``tasks`` next, the first one first."""
        self.tasks.extend(reversed(tasks))

    def add(
        self,
        seen: MutableMapping[Any, int],
        expr: Any,
        kind: str,
        op: str = "",
        name: str = "",
        inputs: Iterable[int] = (),
        attrs: dict[str, Any] | None = None,
        group: int | None = None,
        scope: int = 0,
    ) -> None:
        shape, dtype, size = _describe_type(expr)
        index = len(self.nodes)
        self.nodes.append(
            Node(
                index,
                kind,
                op,
                name,
                shape,
                dtype,
                size,
                tuple(inputs),
                attrs or {},
                group,
                scope,
                expr,
            )
        )
        seen[expr] = index

    def visit(
        self, expr: Any, seen: MutableMapping[Any, int], group: int | None, scope: int
    ) -> None:
        self.tasks.append(lambda: self.enter(expr, seen, group, scope))

    def enter(
        self, expr: Any, seen: MutableMapping[Any, int], group: int | None, scope: int
    ) -> None:
        from tvm import relay

        if expr in seen:
            return

        def emit(kind: str, parts: Sequence[Any], **more: Any) -> None:
            def finish() -> None:
                if expr not in seen:
                    inputs = [seen[part] for part in parts]
                    self.add(seen, expr, kind, inputs=inputs, group=group, scope=scope, **more)

            self.then(*(self.later(part, seen, group, scope) for part in parts), finish)

        if isinstance(expr, relay.Let):
            self.let(expr, seen, group, scope)
        elif isinstance(expr, relay.Call):
            callee = self.primitive(expr.op)
            if callee is not None:
                self.fused_call(expr, callee, seen, scope)
            elif isinstance(expr.op, relay.Function):
                self.open_call(expr, expr.op, seen, group, scope)
            elif type(expr.op).__name__ == "Op":
                emit("call", list(expr.args), op=expr.op.name, attrs=_attributes(expr.attrs))
            else:
                emit("call", [expr.op, *expr.args], name=_callee_name(expr.op))
        elif isinstance(expr, relay.Function):
            for parameter in expr.params:
                self.add(seen, parameter, "input", name=parameter.name_hint, scope=scope + 1)

            def finish() -> None:
                body = [seen[expr.body]]
                self.add(seen, expr, "function", inputs=body, group=group, scope=scope)

            self.then(self.later(expr.body, seen, group, scope + 1), finish)
        elif isinstance(expr, relay.Constant):
            self.add(seen, expr, "constant", group=group, scope=scope)
        elif isinstance(expr, relay.Var):  # not bound yet: inside the function it is bound to
            self.add(seen, expr, "recursion", name=expr.name_hint, group=group, scope=scope)
        elif isinstance(expr, relay.Tuple):
            emit("tuple", list(expr.fields))
        elif isinstance(expr, relay.TupleGetItem):
            emit("tuple_get", [expr.tuple_value], attrs={"index": int(expr.index)})
        elif isinstance(expr, relay.If):
            emit("if", [expr.cond, expr.true_branch, expr.false_branch])
        elif isinstance(expr, relay.Match):
            self.match(expr, seen, group, scope, emit)
        elif isinstance(expr, relay.RefCreate):
            emit("ref", [expr.value], name="ref_create")
        elif isinstance(expr, relay.RefRead):
            emit("ref", [expr.ref], name="ref_read")
        elif isinstance(expr, relay.RefWrite):
            emit("ref", [expr.ref, expr.value], name="ref_write")
        elif isinstance(expr, relay.GlobalVar):
            self.add(seen, expr, "global", name=expr.name_hint, scope=scope)
        elif type(expr).__name__ == "Constructor":
            self.add(seen, expr, "constructor", name=str(expr.name_hint), scope=scope)
        else:
            emit("call", [], name=getattr(expr, "name", type(expr).__name__))

    def later(
        self, expr: Any, seen: MutableMapping[Any, int], group: int | None, scope: int
    ) -> Callable[[], None]:
        return lambda: self.enter(expr, seen, group, scope)

    def let(self, expr: Any, seen: MutableMapping[Any, int], group: int | None, scope: int) -> None:
        from tvm import relay

        if isinstance(expr.value, relay.Function) and self.primitive(expr.value) is not None:
            self.fused[expr.var] = expr.value
            bind: list[Callable[[], None]] = []
        else:

            def name_it() -> None:
                index = seen[expr.var] = seen[expr.value]
                node = self.nodes[index]
                if not node.name:
                    self.nodes[index] = replace(node, name=expr.var.name_hint)

            bind = [self.later(expr.value, seen, group, scope), name_it]

        def finish() -> None:
            seen[expr] = seen[expr.body]

        self.then(*bind, self.later(expr.body, seen, group, scope), finish)

    def match(
        self,
        expr: Any,
        seen: MutableMapping[Any, int],
        group: int | None,
        scope: int,
        emit: Callable[[str, Sequence[Any]], None],
    ) -> None:
        def open_clauses() -> None:
            for clause in expr.clauses:
                for variable in _pattern_variables(clause.lhs):
                    seen[variable] = seen[expr.data]
            emit("match", [expr.data, *(clause.rhs for clause in expr.clauses)])

        self.then(self.later(expr.data, seen, group, scope), open_clauses)

    def primitive(self, callee: Any) -> Any:
        """The primitive function that ``callee`` is or is bound to, else ``None``."""
        from tvm import relay

        function = self.fused.get(callee, callee)
        if isinstance(function, relay.Function) and function.attrs:
            return function if "Primitive" in function.attrs.keys() else None  # noqa: SIM118
        return None

    def fused_call(
        self, expr: Any, callee: Any, seen: MutableMapping[Any, int], scope: int
    ) -> None:
        def open_body() -> None:
            if expr in seen:
                return
            self.groups += 1
            group = self.groups
            if not self.inside:
                inputs = [seen[argument] for argument in expr.args]
                operators = [node.op for node in _Walk(True).run(callee).calls]
                name = "_".join(["fused", *operators]).replace(".", "_")
                attrs = {"operators": tuple(operators)}
                self.add(seen, expr, "fused", "", name, inputs, attrs, group, scope)
                return
            self.open_call(expr, callee, seen, group, scope)

        self.then(*(self.later(item, seen, None, scope) for item in expr.args), open_body)

    def open_call(self, expr: Any, callee: Any, seen: Any, group: int | None, scope: int) -> None:
        """The call of a function written out in its place: its body, on the call's arguments."""

        def open_body() -> None:
            # A function that is called twice has its nodes twice; it sees outer variables too.
            inner = ChainMap(
                {p: seen[a] for p, a in zip(callee.params, expr.args, strict=True)}, seen
            )

            def finish() -> None:
                seen[expr] = inner[callee.body]

            self.then(self.later(callee.body, inner, group, scope), finish)

        self.then(*(self.later(item, seen, None, scope) for item in expr.args), open_body)


def _callee_name(callee: Any) -> str:
    from tvm import relay

    while isinstance(callee, relay.Let):  # what relay.loops.while_loop returns
        callee = callee.body
    if isinstance(callee, relay.GlobalVar):
        return f"@{callee.name_hint}"
    if isinstance(callee, relay.Var):
        return f"%{callee.name_hint}"
    return str(getattr(callee, "name_hint", "fn"))


def _pattern_variables(pattern: Any) -> Iterator[Any]:
    from tvm import relay

    waiting = [pattern]
    while waiting:
        item = waiting.pop()
        if isinstance(item, relay.PatternVar):
            yield item.var
        elif isinstance(item, relay.PatternConstructor | relay.PatternTuple):
            waiting.extend(item.patterns)


# --- static or dynamic ---


@dataclass(frozen=True)
class Dynamic:
    """True when a program is dynamic; ``reasons`` says why, one sentence a cause."""

    reasons: list[str]

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def __str__(self) -> str:
        return "\n".join(["dynamic:", *(f"- {r}" for r in self.reasons)]) if self else "static"


def is_dynamic(x: Any) -> Dynamic:
    """Whether ``x`` is dynamic, that is: not one fixed list of kernels on tensors of fixed shapes.

    The causes looked for, after type inference: an unknown dimension (at the expression that
    brings it in, not at those it spreads to), ``if``, ``match`` and constructors, references,
    recursion, and the call of a global or of a local function (a closure): the graph executor
    runs one function. The call of a function where it is written is no cause, and neither is the
    call of a fused function.
    """
    module = modules.typed(x)
    reasons: dict[str, None] = {}
    waiting, done = ["main"], set()
    callees: dict[str, set[str]] = {}
    while waiting:
        name = waiting.pop(0)
        if name in done:
            continue
        done.add(name)
        found = graph(module, function=name)
        for node in found.nodes:
            reasons.update(dict.fromkeys(_causes(node, found)))
        callees[name] = {node.name for node in found.nodes if node.kind == "global"}
        waiting.extend(node.name for node in found.nodes if node.kind == "global")
    for name in callees:
        if name in _reachable(callees, name):
            reasons[f"@{name} calls itself: how often is known only at run time"] = None
    return Dynamic(list(reasons))


def _reachable(callees: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(callees[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(callees.get(name, ()))
    return found


def _causes(node: Node, found: Graph) -> Iterator[str]:
    producers = [found.nodes[i] for i in node.inputs]
    if node.kind == "if":
        if producers[0].kind == "constant":
            value = bool(producers[0].expr.data.numpy())
            yield f"if: its condition is the constant {value}, but both branches are still there"
        else:
            yield "if: a value known only at run time chooses the branch"
    elif node.kind == "match":
        yield "match: the constructor of a value, known only at run time, chooses the branch"
    elif node.kind == "ref":
        yield f"{node.name}: a reference, whose content can change during the run"
    elif node.kind == "constructor":
        yield f"{node.name}: a constructor of an algebraic data type"
    elif node.kind == "call" and not node.op:
        if producers and producers[0].kind == "recursion":
            yield f"{node.name} calls itself: how often is known only at run time"
        elif producers and producers[0].kind != "constructor":
            what = "global" if producers[0].kind == "global" else "local"
            yield f"{node.name} is called: a {what} function{' (closure)' * (what == 'local')}"
    if node.kind not in ("input", "if") and not node.op:
        return  # it hands on what it is given
    if any(list(_unknown_axes(producer.shape)) for producer in producers):
        return  # the dimension was unknown before
    for shape, axis in _unknown_axes(node.shape):
        text = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        if node.kind == "input":
            yield f"%{node.name}: dimension {axis} of {text} is known only at run time"
        else:
            what = node.op or node.name or node.kind
            # Else a function is called whose parameter is declared with the unknown dimension.
            by_values = node.op and any(node.expr.op.get_attr("TShapeDataDependent") or ())
            why = "depends on values, not on shapes" if by_values else "is known only at run time"
            yield f"{what}: dimension {axis} of its result {text} {why}"


def _unknown_axes(shape: Shape | None) -> Iterator[tuple[Shape, int]]:
    """(tensor shape, axis) of each unknown dimension, also inside tuples."""
    waiting = [shape]
    while waiting:
        item = waiting.pop(0)
        for axis, size in enumerate(item or ()):
            if size == UNKNOWN:
                yield item or (), axis
            elif isinstance(size, tuple):
                waiting.append(size)


# --- text ---

_CONSTANT = re.compile(r"meta\[relay\.Constant\]\[\d+\](?: /\* ty=(.*?)(?: span=.*?)? \*/)?")
_TENSOR = re.compile(r"Tensor\[\((.*?),?\), ([^\]]+)\]")
_DEVICE = re.compile(
    r"VirtualDevice\(device_type=(\d+), virtual_device_id=(\d+)"
    r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"  # its target, and that one's host
)
_COMMENT = re.compile(r" ?/\* (?:ty=(.*?))?(?: ?span=.*?)? ?\*/(;?$)?", flags=re.M)
_UNBROKEN = re.compile(r"\[[^\[\]]*\]|%\w+: |-> |/\* | \*/")


def text(x: Any, *, types: bool = False, width: int = 96) -> str:
    """The Relay program as text that is the same in every process.

    It is Relay's own text format without the version line, metadata, spans and hashes: a constant
    tensor is ``const(float32[64, 3, 7, 7])``, a scalar constant its value, and a device ``cpu(0)``
    without its target. ``types`` keeps the type behind each expression. Lines are broken at
    ``width`` characters. ``@main`` comes first, then the other functions by name.
    """
    from tvm import relay

    module = modules.as_module(x)
    try:
        module = modules.typed(module)
    except WorkbookError:  # an ill-typed program can still be read
        types = False
    if isinstance(x, relay.Expr):
        return _clean(module["main"].astext(show_meta_data=False), types, width)
    parts = []
    for variable in sorted(
        module.get_global_vars(), key=lambda v: (v.name_hint != "main", v.name_hint)
    ):
        head = f"def @{variable.name_hint}"
        function = module[variable]
        if not isinstance(function, relay.Function):
            parts.append(f"{head}: a {type(function).__name__}, not Relay")
            continue
        body = _clean(function.astext(show_meta_data=False), types, width - len(head) + 3)
        parts.append(head + re.sub(r"\Afn ?", "", body))
    return "\n\n".join(parts)


def _clean(raw: str, types: bool, width: int) -> str:
    raw = raw.split("/* For debugging purposes the metadata section")[0]
    raw = re.sub(r"\A#\[version.*?\]\n", "", raw).strip()
    raw = re.sub(r', hash="[0-9a-f]*"', "", raw)
    raw = _CONSTANT.sub(lambda m: f"const({_short_tensor(m.group(1) or '?')})", raw)
    raw = re.sub(r"meta\[([\w.]+)\]\[\d+\]", r"\1", raw)
    raw = _DEVICE.sub(_device, raw)
    raw = _numbered(raw)
    lines = []
    for line in raw.splitlines():
        keep = types and not line.lstrip().startswith("}")
        line = _COMMENT.sub(partial(_comment, keep), line)
        lines.extend(wrap(line.rstrip(), width))
    return "\n".join(lines)


def _numbered(raw: str) -> str:
    """The values that ToANormalForm named ``x_7``, ``x_8``, ... as ``x_0``, ``x_1``, ...

    It counts on through the whole process, so its numbers tell of what else was compiled.
    """
    bound = dict.fromkeys(re.findall(r"let %(x_\d+)\b", raw))
    others = set(re.findall(r"%(x_\d+)\b", raw)) - bound.keys()
    numbers = range(len(bound) + len(others))
    free = [name for name in map("x_{}".format, numbers) if name not in others]
    names = dict(zip(bound, free, strict=False))
    return re.sub(r"%(x_\d+)\b", lambda m: f"%{names.get(m.group(1), m.group(1))}", raw)


def _device(match: re.Match[str]) -> str:
    """``cpu(0)``: PlanDevices writes a whole target behind it, with its address in memory."""
    from tvm.runtime import Device

    return f"{Device.MASK2STR[int(match.group(1))]}({match.group(2)})"


def _comment(keep: bool, match: re.Match[str]) -> str:
    """A type comment: kept where it ends a line, so a line says the type of what it computes."""
    kind, end = match.group(1), match.group(2)
    return f" /* ty={kind} */{end}" if keep and kind and end is not None else end or ""


def wrap(line: str, width: int) -> list[str]:
    """``line`` broken at spaces, never inside a tensor type or between a name and its type."""
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    whole = _UNBROKEN.sub(lambda m: m.group().replace(" ", "\0"), line)
    broken = textwrap.wrap(
        whole,
        width,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace("\0", " ") for part in broken]


def _short_tensor(kind: str) -> str:
    """``Tensor[(1, 3), float32]`` as ``float32[1, 3]``; a scalar type stays as it is."""
    return _TENSOR.sub(lambda m: f"{m.group(2)}[{m.group(1)}]", kind)


# --- the drawing: what is drawn ---

_WEIGHT_OPERATORS = re.compile(
    r"nn\.(conv|dense|contrib_|bias_add|batch_norm|layer_norm|group_norm|instance_norm|prelu)"
)
_HEAVY = ("OUT_ELEMWISE_FUSABLE", "OPAQUE", "CONTROL", "COMM_REDUCE", "INJECTIVE", "BROADCAST")
_SIZES = ("channels", "units", "newshape", "groups")
_LINE = 32  # characters
_MAX_WIDE = 5  # boxes side by side


@dataclass(frozen=True)
class PictureBox:
    """What one box stands for: ``nodes`` of the graph, and in a repeated block its copies.

    ``copies`` holds the nodes of every copy, ``nodes`` (the first copy) included. ``block`` numbers
    the repeated block that the box belongs to.
    """

    nodes: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]
    block: int | None = None

    @property
    def times(self) -> int:
        """How often the box's nodes occur in the graph."""
        return len(self.copies)


@dataclass(frozen=True)
class Picture:
    """What :func:`draw` draws: boxes in topological order, arrows between their positions.

    ``groups`` gives the group of a box (by position), ``level`` says how much was folded.
    """

    graph: Graph
    boxes: list[PictureBox]
    arrows: list[tuple[int, int]]
    groups: dict[int, int]
    level: str

    @property
    def repeats(self) -> list[tuple[tuple[int, ...], int]]:
        """(positions of its boxes, how many times) of each repeated block."""
        blocks: dict[int, list[int]] = {}
        for position, box in enumerate(self.boxes):
            if box.block is not None:
                blocks.setdefault(box.block, []).append(position)
        return [(tuple(held), self.boxes[held[0]].times) for held in blocks.values()]


def picture(
    x: Any,
    *,
    groups: Sequence[Collection[int]] | None = None,
    fold: bool = True,
    constants: bool = False,
    inside: bool = True,
    max_boxes: int = 40,
) -> Picture:
    """What :func:`draw` draws, as data.

    Tuples are left out, and so are constants and weights unless ``constants``. When more than
    ``max_boxes`` boxes are left, the first of these that suffices is done:

    1. blocks that are repeated in a row become one block;
    2. in what is left, an operator joins the one before it where the values go nowhere else, as
       long as it is no convolution or other heavy operator (in a program with groups each group
       becomes a box);
    3. and up to four such boxes in a row become one;
    4. the same, where repeats may differ in their sizes;
    5. what lies between two bottlenecks (values that every path goes through) becomes one box;
    6. neighbouring boxes are merged until few enough are left.

    ``groups`` lists the node indices of each group; without it the fused functions are the groups.
    """
    found = graph(x, inside=inside)
    member = {node.index: node.group for node in found.nodes if node.group}
    if groups is not None:
        member = {index: k for k, group in enumerate(groups, 1) for index in group}
    known = frozenset(getattr(x, "params", None) or ()) if hasattr(x, "module") else frozenset()
    shown, links = _shown(found, constants, known)
    flat = _Folded([PictureBox((k,), ((k,),)) for k in shown], links)
    chosen, level = flat, "operators"
    if fold and len(flat.boxes) > max_boxes:
        for name, folded in _levels(found, flat, member, max_boxes):
            chosen, level = folded, name
            if len(folded.boxes) <= max_boxes and _widest(folded) <= _MAX_WIDE:
                break
    in_group = {}
    for k, box in enumerate(chosen.boxes):
        inside_of = {member.get(index) for index in box.nodes}
        if len(inside_of) == 1 and (group := inside_of.pop()):
            in_group[k] = group
    return Picture(found, chosen.boxes, chosen.links, in_group, level)


@dataclass(frozen=True)
class _Folded:
    """Boxes in topological order, and links between their positions."""

    boxes: list[PictureBox]
    links: list[tuple[int, int]]


def _levels(
    found: Graph, flat: _Folded, member: Mapping[int, int | None], max_boxes: int
) -> Iterator[tuple[str, _Folded]]:
    if member:
        units = _grouped(flat, member)
        yield "groups", units
        yield "groups, repeats", _repeats(found, units, True)
        yield "groups, similar repeats", _repeats(found, units, False)
    else:
        for exact in (True, False):
            repeats = _repeats(found, flat, exact)
            name = "repeats" if exact else "similar repeats"
            yield name, repeats
            yield f"units, {name}", (units := _units(found, repeats))
            yield f"chains, {name}", _chains(found, units)
        units = _units(found, flat)
    stages = _stages(found, units)
    yield "stages, repeats", _repeats(found, stages, True)
    yield "stages, similar repeats", _repeats(found, stages, False)
    yield "merged", _chunks(found, stages, max_boxes)


def _shown(
    found: Graph, constants: bool, known: frozenset[str]
) -> tuple[list[int], list[tuple[int, int]]]:
    """The nodes to draw, and links between their positions, with tuples looked through."""
    consumers: dict[int, list[tuple[Node, int]]] = {}
    for node in found.nodes:
        for position, source in enumerate(node.inputs):
            consumers.setdefault(source, []).append((node, position))

    def is_weight(node: Node) -> bool:
        uses = consumers.get(node.index, [])
        return node.name in known or (
            bool(uses)
            and all(p > 0 and _WEIGHT_OPERATORS.match(user.op) is not None for user, p in uses)
        )

    through: dict[int, list[int]] = {}  # node -> the drawn nodes its value comes from
    shown: list[int] = []
    links: list[tuple[int, int]] = []
    for node in found.nodes:
        sources = [through[i] for i in node.inputs]
        if node.kind == "tuple_get" and found.nodes[node.inputs[0]].kind == "tuple":
            through[node.index] = through[found.nodes[node.inputs[0]].inputs[node.attrs["index"]]]
        elif node.kind in ("tuple", "tuple_get"):
            through[node.index] = [i for part in sources for i in part]
        elif not constants and (
            node.kind in ("constant", "global", "constructor")
            or (node.kind == "input" and is_weight(node))
        ):
            through[node.index] = []
        else:
            links += [(i, len(shown)) for part in sources for i in part]
            through[node.index] = [len(shown)]
            shown.append(node.index)
    return shown, list(dict.fromkeys(links))


def _merge(folded: _Folded, label: Sequence[int]) -> _Folded:
    """Boxes with equal labels become one; :class:`WorkbookError` when that makes a cycle."""
    members: dict[int, list[int]] = {}
    for position, name in enumerate(label):
        members.setdefault(name, []).append(position)
    order = sorted(members, key=lambda name: members[name][-1])
    place = {name: k for k, name in enumerate(order)}
    links = dict.fromkeys(
        (place[label[a]], place[label[b]]) for a, b in folded.links if label[a] != label[b]
    )
    if any(a > b for a, b in links):
        raise WorkbookError(
            "These groups cannot be drawn as one box each, since two of them need each other's "
            "results: give groups that lie in a row in the program."
        )
    boxes = []
    for name in order:
        parts = [folded.boxes[p] for p in members[name]]
        copies = tuple(
            tuple(index for nodes in copy for index in nodes)
            for copy in zip(*(part.copies for part in parts), strict=True)
        )
        boxes.append(PictureBox(copies[0], copies, parts[0].block))
    return _Folded(boxes, list(links))


def _grouped(folded: _Folded, member: Mapping[int, int | None]) -> _Folded:
    first: dict[int, int] = {}
    label = list(range(len(folded.boxes)))
    for position, box in enumerate(folded.boxes):
        if group := member.get(box.nodes[0]):
            label[position] = first.setdefault(group, position)
    return _merge(folded, label)


def _neighbours(folded: _Folded) -> tuple[list[list[int]], list[list[int]]]:
    """(producers, consumers) of each box."""
    ins: list[list[int]] = [[] for _ in folded.boxes]
    outs: list[list[int]] = [[] for _ in folded.boxes]
    for a, b in folded.links:
        ins[b].append(a)
        outs[a].append(b)
    return ins, outs


def _joined(
    found: Graph, folded: _Folded, may_join: Callable[[PictureBox], bool], most: int
) -> _Folded:
    """Merge a box into its only producer when it is that producer's only consumer.

    This never makes a cycle, and a merged box takes in values at its first operator only.
    """
    ins, outs = _neighbours(folded)
    label = list(range(len(folded.boxes)))
    size = [1] * len(folded.boxes)
    for b, box in enumerate(folded.boxes):
        if len(ins[b]) != 1 or not may_join(box):
            continue
        a = ins[b][0]
        before = folded.boxes[a]
        if (
            outs[a] == [b]
            and before.block == box.block
            and found.nodes[before.nodes[0]].op
            and size[label[a]] < most
        ):
            label[b] = label[a]
            size[label[a]] += 1
    return _merge(folded, label)


def _widest(folded: _Folded) -> int:
    """The largest number of boxes side by side, each as early or as late as its arrows allow."""
    ins, outs = _neighbours(folded)
    early: list[int] = []
    for producers in ins:
        early.append(max((early[a] + 1 for a in producers), default=0))
    late = [0] * len(outs)
    for position in reversed(range(len(outs))):
        late[position] = max((late[b] + 1 for b in outs[position]), default=0)
    return max([*Counter(early).values(), *Counter(late).values()], default=0)


def _units(found: Graph, folded: _Folded) -> _Folded:
    def light(box: PictureBox) -> bool:
        node = found.nodes[box.nodes[0]]
        return bool(node.op) and not _is_heavy(node)

    return _joined(found, folded, light, len(folded.boxes))


def _chains(found: Graph, folded: _Folded) -> _Folded:
    return _joined(found, folded, lambda box: bool(found.nodes[box.nodes[0]].op), 4)


def _is_heavy(node: Node) -> bool:
    kinds = ("OUT_ELEMWISE_FUSABLE", "OPAQUE", "COMM_REDUCE", "CONTROL")
    return _pattern(node) in kinds and not node.op.endswith("_norm")


def _is_input(found: Graph, box: PictureBox) -> bool:
    return found.nodes[box.nodes[0]].kind == "input"


def _runs(found: Graph, folded: _Folded) -> list[range]:
    """The boxes in a row, split behind each bottleneck; inputs are runs of their own.

    A bottleneck is a box that no link passes over: every path goes through it.
    """
    _, outs = _neighbours(folded)
    runs, start, reach = [], 0, 0
    for position, box in enumerate(folded.boxes):
        alone = _is_input(found, box)
        if alone and start < position:
            runs.append(range(start, position))
            start = position
        if alone or reach <= position:
            runs.append(range(start, position + 1))
            start = position + 1
        reach = max([reach, *outs[position]])
    if start < len(folded.boxes):
        runs.append(range(start, len(folded.boxes)))
    return runs


def _stages(found: Graph, folded: _Folded) -> _Folded:
    return _merge(folded, [k for k, run in enumerate(_runs(found, folded)) for _ in run])


def _chunks(found: Graph, folded: _Folded, wanted: int) -> _Folded:
    """Neighbours merged until ``wanted`` boxes are left, so that each holds about as many calls."""
    inputs = sum(_is_input(found, box) for box in folded.boxes)
    share = sum(len(box.nodes) for box in folded.boxes) / max(1, wanted - 2 * inputs)
    label: list[int] = []
    filled = share
    for box in folded.boxes:
        alone = _is_input(found, box)
        new = alone or filled + len(box.nodes) / 2 > share
        label.append((label[-1] if label else -1) + new)
        filled = share if alone else len(box.nodes) + (0 if new else filled)
    return _merge(folded, label)


def _repeats(found: Graph, folded: _Folded, exact: bool) -> _Folded:
    """Blocks that follow each other and are equal become one block."""
    ins, _ = _neighbours(folded)
    runs = _runs(found, folded)
    numbers: dict[Any, int] = {}
    signatures = [
        numbers.setdefault(_signature(found, folded, run, ins, exact), len(numbers)) for run in runs
    ]
    owner = list(range(len(folded.boxes)))
    blocks: list[tuple[range, int]] = []
    for k, size, times in _fewest(signatures, [len(run) for run in runs]):
        first = range(runs[k].start, runs[k + size - 1].stop)
        if times > 1 and not _is_input(found, folded.boxes[first.start]):
            for offset in range(len(first), times * len(first)):
                owner[first.start + offset] = first.start + offset % len(first)
            blocks.append((first, times))
    boxes = list(folded.boxes)
    for number, (first, times) in enumerate(blocks):
        for p in first:
            copies = tuple(folded.boxes[p + len(first) * t].nodes for t in range(times))
            boxes[p] = PictureBox(copies[0], copies, number)
    kept = [p for p, q in enumerate(owner) if p == q]
    place = {position: index for index, position in enumerate(kept)}
    links = dict.fromkeys(
        (place[owner[a]], place[b])
        for a, b in folded.links
        if owner[b] == b and owner[a] < b  # into a block: into its first copy
    )
    return _Folded([boxes[p] for p in kept], list(links))


def _fewest(signatures: Sequence[Any], weights: Sequence[int]) -> list[tuple[int, int, int]]:
    """The split of a row into (start, size, times) blocks with the fewest boxes, and parts."""
    count = len(signatures)
    total = [0, *accumulate(weights)]
    best: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)] * (
        count + 1
    )  # boxes, parts, size, times
    for k in reversed(range(count)):
        options = [(weights[k] + best[k + 1][0], best[k + 1][1] + 1, 1, 1)]
        for size in range(1, (count - k) // 2 + 1):
            block, times = signatures[k : k + size], 1
            while signatures[k + times * size : k + (times + 1) * size] == block:
                times += 1
                rest = best[k + times * size]
                held = total[k + size] - total[k]
                options.append((held + rest[0], rest[1] + 1, size, times))
        best[k] = min(options)
    split, k = [], 0
    while k < count:
        _, _, size, times = best[k]
        split.append((k, size, times))
        k += size * times
    return split


def _signature(
    found: Graph, folded: _Folded, run: range, ins: Sequence[Sequence[int]], exact: bool
) -> tuple[Any, ...]:
    """Equal for runs with the same operators in the same relative structure."""
    return tuple(
        (
            tuple(_call_signature(found.nodes[index], exact) for index in folded.boxes[b].nodes),
            tuple(a - run.start if a in run else -1 for a in ins[b]),
        )
        for b in run
    )


def _call_signature(node: Node, exact: bool) -> tuple[Any, ...]:
    attrs = node.attrs if exact else {k: v for k, v in node.attrs.items() if k not in _SIZES}
    depthwise = node.attrs.get("groups", 1) != 1
    return (
        node.kind,
        node.op,
        node.type if exact else None,
        depthwise,
        repr(sorted(attrs.items(), key=lambda item: item[0])),
    )


# --- the drawing: how it is labelled ---


def draw(
    x: Any,
    *,
    direction: str = "down",
    groups: Sequence[Collection[int]] | None = None,
    fold: bool = True,
    constants: bool = False,
    inside: bool = True,
    max_boxes: int = 40,
    title: str = "",
) -> Any:
    """A layered drawing of the graph of ``x`` as a matplotlib ``Figure``.

    A box shows the operator and the shape of its result, in the colour of its fusion pattern;
    fused groups have a common background, labelled k1, k2, ... What is folded, see
    :func:`picture`. ``direction`` is ``"down"`` or ``"right"``. Show it with
    ``plots.show(figure, ir.alt_text(x))``. Raises :class:`WorkbookError` for a drawing of more than
    400 boxes.
    """
    options: dict[str, Any] = {"groups": groups, "fold": fold, "constants": constants}
    found = picture(x, **options, inside=inside, max_boxes=max_boxes)
    panel = drawing(found)
    return plots.layered(panel.boxes, panel.arrows, panel.frames, direction=direction, title=title)


def drawing(found: Picture, marks: Mapping[int, str] | None = None, title: str = "") -> plots.Panel:
    """A picture as what :mod:`helpers.plots` draws.

    ``marks`` gives a word for some of the graph's nodes; a box of several nodes that do not share
    one word is marked "changed". Raises :class:`WorkbookError` for a drawing without boxes and for
    one of more than 400.
    """
    if not found.boxes:
        raise WorkbookError("There is nothing to draw but constants: pass constants=True.")
    if len(found.boxes) > 400:
        raise WorkbookError(
            f"A drawing of {len(found.boxes)} boxes cannot be read: leave fold=True, or draw a "
            "part of the program."
        )

    def mark(box: PictureBox) -> str:
        words = {(marks or {}).get(index, "") for copy in box.copies for index in copy}
        return words.pop() if len(words) == 1 else "changed"

    boxes = [
        plots.Box(
            tuple(_title(box, found.graph)),
            tuple(_details(box, found.graph)),
            _box_kind(box, found.graph),
            found.groups.get(k),
            mark(box),
        )
        for k, box in enumerate(found.boxes)
    ]
    frames = [plots.Frame(positions, f"× {times}") for positions, times in found.repeats]
    return plots.Panel(boxes, found.arrows, frames, title)


def alt_text(x: Any, **options: Any) -> str:
    """What :func:`draw` shows, in words made from the same data; takes the same options."""
    options = {key: value for key, value in options.items() if key not in ("direction", "title")}
    found = picture(x, **options)
    nodes = found.graph.nodes
    drawn = [nodes[index] for box in found.boxes for index in box.nodes]
    inputs = [f"{node.name} {node.type}" for node in drawn if node.kind == "input"]
    kernels = [node.name for node in drawn if node.kind == "fused"]
    calls = len(found.graph.calls)
    parts = [f"Dataflow graph of {calls} operator {'call' if calls == 1 else 'calls'}"]
    if calls:
        parts[0] += f": {_count(found.graph.operators.items())}"
    if kernels:
        parts[0] = f"Dataflow graph of {len(kernels)} fused functions: {', '.join(kernels)}"
    if inputs:
        parts.append(f"Inputs: {', '.join(inputs)}")
    by_group: dict[int, list[str]] = {}
    for position, group in found.groups.items():
        names = [_operator(nodes[index]) for index in found.boxes[position].nodes]
        by_group.setdefault(group, []).extend(name for name in names if name)
    if by_group and not kernels:
        listed = "; ".join(f"k{k} {' + '.join(names)}" for k, names in sorted(by_group.items()))
        parts.append(f"Groups: {listed}" if len(by_group) <= 8 else f"{len(by_group)} groups")
    for positions, times in found.repeats:
        inner = [i for position in positions for i in found.boxes[position].nodes]
        parts.append(f"A block of {len(inner)} operators is repeated {times} times")
    output = nodes[found.graph.output]
    if output.type:
        parts.append(f"Result: {output.type}")
    return ". ".join(parts) + "."


def _count(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{times} {name}" for name, times in items)


def _wrapped(line: str, width: int) -> list[str]:
    """Lines of about ``width`` characters; a number is kept beside what it counts."""
    glued = re.sub(r"(\d) (?=\w)|(?<=\w) (× \d)", r"\1\0\2", line)
    broken = textwrap.wrap(glued, width, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\0", " ") for part in broken]


def _pattern(node: Node) -> str:
    """The fusion pattern of the operator, or what kind of box the node is otherwise."""
    if node.kind == "input":
        return "INPUT"
    if node.kind == "constant":
        return "CONSTANT"
    if not node.op:
        return "OPAQUE" if node.kind == "fused" else "CONTROL"
    from tvm.relay.op import OpPattern
    from tvm.relay.op import get as get_operator

    value = get_operator(node.op).get_attr("TOpPattern")
    names = {number: name for name, number in vars(OpPattern).items() if name.isupper()}
    return str(names.get(value, "OPAQUE"))


def _box_kind(box: PictureBox, found: Graph) -> str:
    nodes = [found.nodes[index] for index in box.nodes]
    kinds = {_pattern(node) for node in nodes if len(nodes) == 1 or not node.op.endswith("_norm")}
    for node in nodes:
        if node.kind == "fused":
            kinds |= {_operator_pattern(op) for op in node.attrs["operators"]}
            kinds.discard("OPAQUE")
    return next((kind for kind in _HEAVY if kind in kinds), min(kinds, default="OPAQUE"))


def _operator_pattern(op: str) -> str:
    return _pattern(Node(0, "call", op, "", None, None, None, ()))


def _operator(node: Node) -> str:
    """The operator's short name: ``conv2d 3×3`` for ``nn.conv2d`` with such a kernel."""
    if node.kind == "fused":
        return " + ".join(_bare(op) for op in node.attrs["operators"])
    if not node.op:
        form = {"call": "call {}", "function": "function {}", "recursion": "{} itself"}
        return form.get(node.kind, "{}").format(node.name or node.kind).removesuffix(" function")
    name = _bare(node.op)
    kernel = node.attrs.get("kernel_size")
    if name.startswith("conv") and isinstance(kernel, tuple):
        name = f"{name} {'×'.join(map(str, kernel))}"
        channels = found if isinstance(found := node.attrs.get("channels"), int) else None
        if node.attrs.get("groups", 1) != 1 and node.attrs["groups"] == channels:
            name = f"depthwise {name}"
    return name


def _bare(op: str) -> str:
    return op.rsplit(".", 1)[-1].removeprefix("contrib_")


def _title(box: PictureBox, found: Graph) -> list[str]:
    """The operators, each heavy one on a line of its own with what follows it; or their number."""
    rows: list[list[list[Any]]] = []
    nodes = [found.nodes[index] for index in box.nodes]
    for node in nodes:
        name = _operator(node)
        if not rows or _is_heavy(node):
            rows.append([[name, 1]])
        elif rows[-1][-1][0] == name:
            rows[-1][-1][1] += 1
        else:
            rows[-1].append([name, 1])
    if len(rows) > 4 or sum(map(len, rows)) > 12:
        return [f"{len(nodes)} operators"]
    lines = []
    for row in rows:
        line = " + ".join(name if times == 1 else f"{name} × {times}" for name, times in row)
        lines += _wrapped(line, _LINE)
    return lines


def _details(box: PictureBox, found: Graph) -> list[str]:
    nodes = [found.nodes[index] for index in box.nodes]
    result = _result(nodes[-1], found.nodes[box.copies[-1][-1]])
    if _title(box, found) != [f"{len(nodes)} operators"]:
        return result
    most = Counter(_bare(node.op) or node.kind for node in nodes).most_common()
    listed = _count(most[:5]) + (", and others" if len(most) > 5 else "")
    return [*_wrapped(listed, _LINE), *result]


def _result(first: Node, last: Node) -> list[str]:
    """The shape of a result; of a repeated block whose sizes differ, from the first to the last."""
    shape, dtype = first.shape, first.dtype
    if isinstance(dtype, tuple) and not first.op.endswith("_norm"):
        return [f"{len(dtype)} values"]
    if isinstance(dtype, tuple):  # what is used of a normalisation is its first result
        shape, dtype = (shape or ((),))[0], dtype[0] if dtype else ""
        final = (last.shape or ((),))[0]
    else:
        final = last.shape
    if shape is None or isinstance(dtype, tuple):
        return []
    if final is not None and len(final) == len(shape):
        sizes = [f"{a}" if a == b else f"{a}…{b}" for a, b in zip(shape, final, strict=True)]
    else:
        sizes = [str(axis) for axis in shape]
    return [" ".join(([] if dtype == "float32" else [dtype]) + ["×".join(sizes) or "scalar"])]
