"""Two walks over a graph, one vertex at a time: forwards for constants, backwards for what is live.

The first is how FoldConstant goes over a program, the second how one finds what
DeadCodeElimination leaves. Both end where TVM's own pass ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ipywidgets

from helpers import ir, modules, passes, plots
from helpers.errors import WorkbookError
from helpers.widgets import drawings
from helpers.widgets.frame import STATIC_BREADTH, Shown, View, explore

WALKS = {"constants": "FoldConstant", "liveness": "DeadCodeElimination"}
"""The walks, and the pass that each leads to."""

MOST = 40  # vertices
_PLAIN = ("input", "constant", "tuple", "tuple_get")


@dataclass(frozen=True)
class Visit:
    """One vertex is visited: what it is found to be, and why.

    ``state`` is ``"constant"``, ``"folded"`` or ``"left"`` on the walk of constants, ``"live"`` on
    the other.
    """

    vertex: int
    state: str
    why: str


@dataclass(frozen=True)
class Walk:
    """A walk over the vertices of ``graph``; ``kept`` are those that are there after the pass.

    ``roots`` are where the walk of liveness begins: the output, and what has side effects.
    """

    kind: str
    graph: ir.Graph
    visits: tuple[Visit, ...]
    kept: frozenset[int]
    roots: frozenset[int] = frozenset()

    def states(self, step: int) -> dict[int, str]:
        """The states of the vertices that the first ``step`` visits reached."""
        return {visit.vertex: visit.state for visit in self.visits[:step]}

    @cached_property
    def operators(self) -> Counter[str]:
        """How often each operator is called in the program that is left."""
        final = self.states(len(self.visits))
        return Counter(
            node.op
            for node in self.graph.calls
            if node.index in self.kept and final.get(node.index) in ("left", "live")
        )

    def name(self, vertex: int) -> str:
        """``v3 multiply``: the vertex by its number and its operator, or its name."""
        node = self.graph.nodes[vertex]
        what = f"field {node.attrs['index']}" if node.kind == "tuple_get" else node.kind
        own = node.name if node.kind == "input" else node.op or node.name or what
        return f"v{vertex} {own.rsplit('.', 1)[-1]}"


# --- the walks ------------------------------------------------------------------------------------


def constants(x: Any) -> Walk:
    """Which vertices of a program are constant, and which FoldConstant computes; arguments first.

    ``x`` is a function, module or expression of operators and tuples in graph form, whose shapes
    are known. An operator is folded if it has arguments, all of them are constant, and it is
    neither stateful nor without a kernel; or if it asks for a shape. Raises
    :class:`WorkbookError` for another program.
    """
    module = modules.typed(x)
    graph = _small(module, _PLAIN)
    if passes.counts(module).lets:
        raise WorkbookError("Constants are followed in graph form: this program has lets.")
    known: set[int] = set()
    visits = []
    for node in graph.nodes:
        state, why = _folds(graph, node, known)
        visits.append(Visit(node.index, state, why))
        if state != "left":
            known.add(node.index)
    kept: set[int] = set()
    waiting = [graph.output]
    while waiting:
        vertex = waiting.pop()
        if vertex in kept:
            continue
        node = graph.nodes[vertex]
        field = _field(graph, node)
        if field is not None:
            waiting.append(field)
            continue
        kept.add(vertex)
        if vertex not in known:
            waiting += node.inputs
    return Walk("constants", graph, tuple(visits), frozenset(kept))


def _folds(graph: ir.Graph, node: ir.Node, known: set[int]) -> tuple[str, str]:
    """What a vertex is when the vertices in ``known`` are constant, and why."""
    if node.kind == "input":
        return "left", "an input, whose value comes with the run"
    if node.kind == "constant":
        return "constant", "a constant of the program"
    field = _field(graph, node)
    if field is not None:
        state = "constant" if field in known else "left"
        return state, f"the field itself, v{field}, which takes its place"
    varying = [f"v{k}" for k in node.inputs if k not in known]
    if node.kind in ("tuple", "tuple_get"):
        whole = "a tuple of constants" if node.kind == "tuple" else "a field of a constant"
        return ("left", f"made of {_and(varying)}") if varying else ("constant", whole)
    if node.op in ("shape_of", "ndarray_size"):
        return "folded", "it asks for a shape, and all shapes are known"
    if not node.inputs:
        return "left", "an operator without arguments is not folded"
    if varying:
        return "left", f"its argument {_and(varying)} is not constant"
    if node.expr.op.get_attr("TOpIsStateful"):
        return "left", "TVM's registry calls the operator stateful"
    if node.expr.op.get_attr("TNonComputational"):
        return "left", "the operator has no kernel"
    return "folded", "all its arguments are constant"


def _field(graph: ir.Graph, node: ir.Node) -> int | None:
    """The vertex that a field of a tuple stands for, where the tuple is written out."""
    if node.kind != "tuple_get":
        return None
    whole = graph.nodes[node.inputs[0]]
    return whole.inputs[node.attrs["index"]] if whole.kind == "tuple" else None


def liveness(x: Any) -> Walk:
    """What a program's output and its side effects need, found backwards from these.

    ``x`` is a function, module or expression of operators, tuples, references and ``let``. The
    bindings whose value has a side effect for TVM (it reads or writes a reference, or calls a
    stateful operator) are needed like the output. Raises :class:`WorkbookError` for another
    program.
    """
    module = modules.typed(x)
    graph = _small(module, (*_PLAIN, "ref"))
    effects = [k for k in _effects(graph) if k != graph.output]
    found: dict[int, str] = {graph.output: "it is the output"}
    found |= dict.fromkeys(effects, "its binding has a side effect")
    waiting, visits = [*effects[::-1], graph.output], []
    while waiting:
        vertex = waiting.pop()
        visits.append(Visit(vertex, "live", found[vertex]))
        for source in graph.nodes[vertex].inputs:
            if source not in found:
                found[source] = f"v{vertex} is computed from it"
                waiting.append(source)
    roots = frozenset([graph.output, *effects])
    return Walk("liveness", graph, tuple(visits), frozenset(found), roots)


def _effects(graph: ir.Graph) -> list[int]:
    """The vertices of the bound values that have a side effect, in order."""
    from tvm import relay

    bound: dict[Any, Any] = {}
    acts: list[Any] = []

    def visit(node: Any) -> None:
        if isinstance(node, relay.Let):
            bound[node.var] = node.value
            if _acts(node.value):
                acts.append(node.value)

    relay.analysis.post_order_visit(graph.function, visit)
    place = {node.expr: node.index for node in graph.nodes}

    def vertex(value: Any) -> int:
        while isinstance(value, relay.Let) or value in bound:
            value = value.body if isinstance(value, relay.Let) else bound[value]
        return place[value]

    return sorted({vertex(value) for value in acts})


def _acts(value: Any) -> bool:
    """Whether computing a value has a side effect, as TVM sees it.

    TVM takes the creation of a reference for pure, whatever is computed for its first value.
    """
    from tvm import relay

    found = []

    class Visitor(relay.ExprVisitor):
        def visit(self, expr: Any) -> Any:
            stateful = isinstance(expr, relay.Call) and expr.op.get_attr("TOpIsStateful")
            if stateful or isinstance(expr, relay.RefRead | relay.RefWrite):
                found.append(expr)
            return None if isinstance(expr, relay.RefCreate) else super().visit(expr)

    Visitor().visit(value)
    return bool(found)


def _small(module: Any, kinds: Sequence[str]) -> ir.Graph:
    graph = ir.graph(module)
    if len(module.functions) > 1 or len(graph.nodes) > MOST:
        raise WorkbookError(
            f"Give one function of at most {MOST} vertices: this program has {len(graph.nodes)}, "
            f"in {len(module.functions)} functions."
        )
    for node in graph.nodes:
        if not node.op and node.kind not in kinds:
            raise WorkbookError(
                f"The walk is for operators and tuples: this program has a {node.kind} too."
            )
    return graph


def _and(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))


# --- what is shown --------------------------------------------------------------------------------


def explorer(
    programs: Mapping[str, Any], walk: str = "constants", *, static: Sequence[str] = ()
) -> Shown:
    """Display small programs, to step over their vertices forwards (``constants``) or backwards.

    ``programs`` maps a name to what :func:`constants` or :func:`liveness` takes; ``walk`` names one
    of these. The last step shows what is left, and what TVM's pass leaves. The static form shows
    the programs named in ``static``, without it the first.
    """
    if walk not in WALKS:
        raise WorkbookError(f"The walk is one of {', '.join(WALKS)}, not {walk!r}.")
    if not programs:
        raise WorkbookError("Give at least one program, by a name.")
    if unknown := [name for name in static if name not in programs]:
        raise WorkbookError(f"The static form is to show {unknown[0]!r}, which is no program here.")
    make = constants if walk == "constants" else liveness
    walks = {name: make(x) for name, x in programs.items()}
    tvms = {name: tuple(ir.graph(passes.run(x, WALKS[walk])).calls) for name, x in programs.items()}
    wide = {"description_width": "initial"}
    first = next(iter(walks))
    program = ipywidgets.Dropdown(options=list(walks), description="Program:", style=wide)
    step = ipywidgets.IntSlider(
        min=0,
        max=len(walks[first].visits) + 1,
        description="Step:",
        style=wide,
        layout=ipywidgets.Layout(width="480px"),
    )

    def choose(_: Any) -> None:
        step.value = 0
        step.max = len(walks[program.value].visits) + 1

    program.observe(choose, names="value")

    def view(program: str, step: int) -> View:
        chosen = walks[program]
        shown = panel(chosen, step)
        words = said(chosen, step)
        if step > len(chosen.visits):
            left = Counter(node.op for node in tvms[program])
            words += f" TVM's {WALKS[walk]} leaves {_counted(left)}."
        picture = drawings.graphs([shown], words, layouts=[layout(chosen)])
        return View(drawings.framed(picture), words)

    return explore(
        {"program": program, "step": step},
        view,
        static=figure({name: walks[name] for name in static or [first]}),
        alt=alt_text({name: walks[name] for name in static or [first]}),
        rows=[[program, step]] if len(walks) > 1 else [[step]],
    )


_WORDS = {"left": "not constant"}
_KINDS = {"constant": "CONSTANT", "folded": "CONSTANT", "left": "VARIES", "live": "LIVE"}


def panel(walk: Walk, step: int, title: str = "") -> plots.Panel:
    """The graph after ``step`` visits; after one more than there are, with what is left.

    The vertex that was visited last is marked.
    """
    last = step > len(walk.visits)
    states = walk.states(step)
    now = walk.visits[step - 1].vertex if 0 < step <= len(walk.visits) else None
    boxes = []
    for node in walk.graph.nodes:
        state = states.get(node.index, "")
        if last and node.index not in walk.kept:
            state = "gone"
        boxes.append(
            plots.Box(
                (walk.name(node.index),),
                (_value(node), _WORDS.get(state, state) or "-"),
                _KINDS.get(state, "UNSEEN"),
                mark="now" if node.index == now else "",
            )
        )
    return plots.Panel(boxes, list(dict.fromkeys(walk.graph.edges)), title=title)


def _value(node: ir.Node) -> str:
    """The value of a scalar constant, else the shape of what the vertex gives."""
    if node.kind == "constant" and node.shape == ():
        return f"= {node.expr.data.numpy().item():g}"
    if node.shape is None or isinstance(node.dtype, tuple):
        return node.kind if node.shape is None else f"{len(node.dtype)} values"
    return f"[{', '.join(map(str, node.shape))}]" if node.shape else "scalar"


def layout(walk: Walk) -> plots.Layout:
    """Where the boxes are at every step: as if each held its longest lines."""
    drawn = panel(walk, 0)
    boxes = [
        replace(box, details=(box.details[0], "not constant"), mark="now") for box in drawn.boxes
    ]
    return drawings.layout(plots.Panel(boxes, drawn.arrows))


def said(walk: Walk, step: int) -> str:
    """A step in words."""
    count = len(walk.visits)
    if step > count:
        gone = [node.index for node in walk.graph.nodes if node.index not in walk.kept]
        return f"What is left: {_counted(walk.operators)}. Gone: {_names(walk, gone)}."
    states = walk.states(step)
    if step == 0:
        where = "the arguments first" if walk.kind == "constants" else "backwards from the output"
        lines = [f"{count} vertices will be visited, {where}."]
    else:
        visit = walk.visits[step - 1]
        word = _WORDS.get(visit.state, visit.state)
        lines = [f"Step {step} of {count}: {walk.name(visit.vertex)} is {word}: {visit.why}."]
    if walk.kind == "constants":
        known = [k for k, state in states.items() if state != "left"]
        lines.append(f"Constant so far: {_names(walk, known)}.")
        lines.append(f"Not constant: {_names(walk, [k for k in states if k not in known])}.")
    else:
        lines.append(f"Live so far: {_names(walk, list(states))}.")
        rest = [node.index for node in walk.graph.nodes if node.index not in states]
        lines.append(f"Not reached: {_names(walk, rest)}.")
    return "\n".join(lines)


def _names(walk: Walk, vertices: Sequence[int]) -> str:
    return ", ".join(map(walk.name, sorted(vertices))) or "none"


def _counted(operators: Mapping[str, int]) -> str:
    if not operators:
        return "no operators"
    listed = ", ".join(f"{n} {op}" for op, n in sorted(operators.items()))
    total = sum(operators.values())
    return f"{total} {'operator' if total == 1 else 'operators'} ({listed})"


# --- the static form ------------------------------------------------------------------------------


def _main_states(walks: Mapping[str, Walk]) -> list[tuple[Walk, int, str]]:
    """(walk, step, title): of one walk its main steps, of several the end of each."""
    if len(walks) > 1:
        return [(walk, len(walk.visits), name) for name, walk in walks.items()]
    (walk,) = walks.values()
    count = len(walk.visits)
    half = (count + 1) // 2
    steps = {half: f"after {half} steps", count: "all visited", count + 1: "what is left"}
    return [(walk, step, title) for step, title in steps.items()]


def figure(walks: Mapping[str, Walk]) -> Any:
    """One walk half way, at its end, and what is left; or several walks at their ends.

    The result is a matplotlib ``Figure``.
    """
    panels = [panel(walk, step, title) for walk, step, title in _main_states(walks)]
    if len(walks) > 1:
        panels = [replace(p, boxes=[replace(b, mark="") for b in p.boxes]) for p in panels]
    return plots.side_by_side(panels, breadth=STATIC_BREADTH)


def alt_text(walks: Mapping[str, Walk]) -> str:
    """What :func:`figure` shows, in words made from the same data."""
    return " ".join(
        f"{title}: {said(walk, step)}".replace("\n", " ")
        for walk, step, title in _main_states(walks)
    )
