"""The fusion explorer: kinds of operators chosen, kernels and bytes predicted, then shown.

The programs are small enough for the head: a tensor of 1x10x10x10 numbers is 4 kB (1 kB is 1000
bytes), and most operators read one and write one. The kernels are those of TVM's own FuseOps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ipywidgets

from helpers import fusion, ir, modules, plots
from helpers.errors import WorkbookError, whole_number
from helpers.widgets import drawings
from helpers.widgets.frame import STATIC_BREADTH, Shown, View, explore

KINDS = {
    "elementwise": "tanh",
    "broadcast": "add, a number for each channel",
    "injective": "transpose",
    "reduction": "sum over an axis",
    "conv": "conv2d",
}
"""The kinds of operators to choose from, and the operator that stands for each."""

FORMS = ("chain", "diamond")
PLACES = ("first", "second", "third")
_SHAPE = (1, 10, 10, 10)
DEPTHS = (1, 2, 3, 4, 256)  # of max_depth; 256 is what TVM takes if nothing is said
_COLOURS = {"read": plots.READ, "weights": plots.WEIGHTS, "written": plots.WRITE}


def program(form: str, kinds: Sequence[str]) -> Any:
    """A typed module: ``chain`` is one operator of each kind in a row, on 1x10x10x10 numbers.

    ``diamond`` has the first before a branch, the second and the third side by side behind it, and
    an ``add`` that joins the two.
    """
    from tvm import relay

    if form not in FORMS:
        raise WorkbookError(f"The form is {' or '.join(FORMS)}, not {form!r}.")
    if len(kinds) != len(PLACES) or not set(kinds) <= KINDS.keys():
        raise WorkbookError(f"There are three kinds of operators, each one of {', '.join(KINDS)}.")
    x = relay.var("x", shape=_SHAPE)
    first = _operator(kinds[0])(x)
    if form == "chain":
        end = _operator(kinds[2])(_operator(kinds[1])(first))
    else:
        end = _operator(kinds[1])(first) + _operator(kinds[2])(first)
    return modules.typed(relay.Function([x], end))


def _operator(kind: str) -> Callable[[Any], Any]:
    import numpy as np
    from tvm import relay

    def ones(*shape: int) -> Any:
        return relay.const(np.ones(shape, "float32"))

    def conv(x: Any) -> Any:
        return relay.nn.conv2d(x, ones(10, 10, 3, 3), padding=(1, 1))

    made: dict[str, Callable[[Any], Any]] = {
        "elementwise": relay.tanh,
        "broadcast": lambda x: x + ones(1, 10, 1, 1),
        "injective": lambda x: relay.transpose(x, (0, 1, 3, 2)),
        "reduction": lambda x: relay.sum(x, axis=2, keepdims=True),
        "conv": conv,
    }
    return made[kind]


@dataclass(frozen=True)
class State:
    """A program before and after FuseOps, with what its kernels move."""

    alone: Any
    fused: Any
    before: fusion.Ledger
    after: fusion.Ledger
    max_depth: int

    @classmethod
    def of(cls, module: Any, max_depth: int) -> State:
        """Of a module whose operators are not in kernels yet."""
        fused = fusion.fuse(module, max_depth=whole_number(max_depth, "max_depth", 1))
        return cls(module, fused, fusion.ledger(module), fusion.ledger(fused), max_depth)

    @cached_property
    def question(self) -> str:
        """The picture without kernels."""
        panel = ir.drawing(ir.picture(self.alone, fold=False))
        return drawings.framed(drawings.graphs([panel], f"Graph of {_operators(self)}"))

    @cached_property
    def answer(self) -> str:
        """The picture with the kernels as groups, and their bytes as bars."""
        panel = ir.drawing(ir.picture(self.fused, fold=False))
        graph = drawings.graphs([panel], f"The kernels. {_listed(self)}")
        rows = [
            *(_bar(f"k{k}", row) for k, row in enumerate(self.after.rows, 1)),
            _bar("all kernels", self.after),
            _bar("without fusion", self.before),
        ]
        alt = f"Bytes of each kernel. {_listed(self)}. {_summary(self)}"
        bars = drawings.bars(rows, _COLOURS, alt, form="{:,.2f}", unit="kB")
        return drawings.framed(
            '<div style="display: flex; flex-wrap: wrap; gap: 24px; align-items: center">'
            f'<div style="max-width: 440px">{graph}</div>'
            f'<div style="width: 480px; max-width: 100%">{bars}</div></div>'
        )


def explorer(blocks: Mapping[str, Any] | None = None) -> Shown:
    """Display a chain, a diamond or one of ``blocks``; what FuseOps makes of it is to be guessed.

    ``blocks`` maps names to functions, modules or zoo models of at most 20 operators, whose
    operators are as they are. Kernels and bytes stay hidden until both are guessed, for each
    program anew, unless the learner asks for them.
    """
    own = {name: modules.typed(block) for name, block in (blocks or {}).items()}
    for name, module in own.items():
        if len(ir.graph(module).calls) > 20:
            raise WorkbookError(f"{name} has more than 20 operators: give a part of the program.")
    states: dict[tuple[Any, ...], State] = {}

    def state_of(form: str, kinds: tuple[str, ...], depth: int) -> State:
        key = (form, kinds if form in FORMS else (), depth)
        if key not in states:
            module = program(form, kinds) if form in FORMS else own[form]
            states[key] = State.of(module, depth)
        return states[key]

    style = {"description_width": "initial"}
    form = ipywidgets.Dropdown(options=[*FORMS, *own], description="Program:", style=style)
    kinds = {
        place: ipywidgets.Dropdown(
            options=list(KINDS), description=f"{place.capitalize()} operator:", style=style
        )
        for place in PLACES
    }
    depth = ipywidgets.SelectionSlider(
        options=DEPTHS, value=DEPTHS[-1], description="max_depth:", style=style
    )
    kernels = ipywidgets.BoundedIntText(
        min=0, max=99, description="Your guess, kernels:", style=style
    )
    moved = ipywidgets.BoundedFloatText(
        min=0, max=1e6, description="kB read and written:", style=style
    )
    shown = ipywidgets.Checkbox(value=False, description="show without a guess", indent=False)

    def again(_: Any) -> None:
        for place in kinds.values():
            place.disabled = form.value not in FORMS
        kernels.value, moved.value = 0, 0

    for control in (form, depth, *kinds.values()):
        control.observe(again, names="value")

    def view(form: str, depth: int, kernels: int, moved: float, shown: bool, **places: str) -> View:
        state = state_of(form, tuple(places.values()), depth)
        if shown:
            return answer(state)
        if kernels and moved:
            return answer(state, kernels, moved)
        return question(state)

    for control in (form, shown, *kinds.values()):
        control.layout = ipywidgets.Layout(width="auto")
    for control in (depth, kernels, moved):
        control.layout = ipywidgets.Layout(width="240px")
    statics = main_states()
    return explore(
        {"form": form, **kinds, "depth": depth, "kernels": kernels, "moved": moved, "shown": shown},
        view,
        static=figure(statics),
        alt=alt_text(statics),
        rows=[[form, *kinds.values()], [depth, kernels, moved, shown]],
    )


# --- what is shown --------------------------------------------------------------------------------


def question(state: State) -> View:
    """The program without its kernels."""
    weights = [f"{row.operators[0]} {_kb(row.weights)}" for row in state.before.rows if row.weights]
    reads = f", and weights are read by {', '.join(weights)}" if weights else ""
    words = (
        f"{_operators(state)}. A number takes 4 bytes, 1 kB is 1000 bytes{reads}.\n"
        "How many kernels does FuseOps make, and how many kB do they read and write together? "
        "Enter both guesses."
    )
    return View(state.question, words)


def answer(state: State, kernels: int | None = None, moved: float | None = None) -> View:
    """The kernels as groups, and the bytes of each as a bar; ``moved`` is in kB."""
    verdict = ""
    if kernels is not None and moved is not None:
        total = state.after.total / 1000
        verdict = (
            f"Kernels: {_judged(kernels, state.after.kernels)}. "
            f"kB: {_judged(moved, total, 0.05)}.\n"
        )
    return View(state.answer, f"{verdict}{_summary(state)}\n{_listed(state)}")


def _judged(guess: float, right: float, share: float = 0.0) -> str:
    """A verdict on a guess, which may be off by a share of what is right."""
    if abs(guess - right) <= share * right:
        return f"right, {right:,.4g}" + (f" (you said {guess:,.4g})" if guess != right else "")
    return f"{right:,.4g}, and you said {guess:,.4g}"


def _kb(count: int) -> str:
    return f"{count / 1000:,.4g} kB"


def _operators(state: State) -> str:
    names = [row.operators[0] for row in state.before.rows]
    noun = "operator" if len(names) == 1 else "operators"
    return f"{len(names)} {noun}: {', '.join(names)}"


def _summary(state: State) -> str:
    before, after = state.before, state.after
    noun = "kernel" if after.kernels == 1 else "kernels"
    return (
        f"{after.kernels} {noun}, {_kb(after.total)} read and written; without fusion "
        f"{before.kernels}, {_kb(before.total)}."
    )


def _listed(state: State) -> str:
    return "; ".join(
        f"k{k}: {' + '.join(row.operators)}, {_kb(row.total)}"
        for k, row in enumerate(state.after.rows, 1)
    )


def _bar(label: str, row: fusion.Row | fusion.Ledger) -> tuple[str, list[tuple[float, str]]]:
    parts = zip((row.activations, row.weights, row.written), _COLOURS, strict=True)
    return label, [(value / 1000, key) for value, key in parts]


# --- the static form ------------------------------------------------------------------------------


def main_states() -> dict[str, State]:
    """Five programs, each of which shows one thing."""
    return {
        f"{form}: {', '.join(kinds)}" + (f"; max_depth {depth}" if depth < 256 else ""): State.of(
            program(form, kinds), depth
        )
        for form, kinds, depth in (
            ("chain", ("elementwise",) * 3, 256),
            ("chain", ("elementwise",) * 3, 2),
            ("chain", ("conv", "elementwise", "injective"), 256),
            ("diamond", ("elementwise", "broadcast", "elementwise"), 256),
            ("diamond", ("elementwise", "conv", "elementwise"), 256),
        )
    }


def figure(states: Mapping[str, State]) -> Any:
    """The kernels of each state, in two rows, as a matplotlib ``Figure``."""
    panels = []
    for state in states.values():
        drawn = ir.drawing(ir.picture(state.fused, fold=False))
        noun = "kernel" if state.after.kernels == 1 else "kernels"
        limit = f"max_depth {state.max_depth}: " if state.max_depth < DEPTHS[-1] else ""
        title = f"{limit}{state.after.kernels} {noun}, {_kb(state.after.total)}"
        panels.append(plots.Panel(drawn.boxes, drawn.arrows, drawn.frames, title))
    return plots.side_by_side(panels, breadth=STATIC_BREADTH)


def alt_text(states: Mapping[str, State]) -> str:
    """What :func:`figure` shows, in words made from the same data."""
    return " ".join(f"{name}. {_summary(state)}" for name, state in states.items())
