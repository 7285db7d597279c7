"""The VM, one instruction at a time, beside the graph executor's fixed line of kernels.

    cases = {"early_exit": vm_stepper.case(model, {"sure": inputs}, static=other_model)}
    vm_stepper.explorer(cases)

All states of a run are recorded first, with the real kernels: then each one is shown at once, in
both directions.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets
import numpy as np

from helpers import bytecode, plots
from helpers.bytecode import Program
from helpers.errors import WorkbookError, whole_number
from helpers.instructions import If, Instruction, InvokePacked
from helpers.stepper import Block, Event
from helpers.widgets.frame import Shown, View, explore

MOST = 3000
"""More instructions are not recorded."""

LINES = 16
"""So many lines of the listing are shown at a time."""


# --- what is shown ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    """The VM between two instructions.

    ``step`` instructions were carried out, ``event`` is the last of them. ``at`` is (function, pc)
    of the next one, ``stack`` that of every frame. ``registers`` are those of the function that
    runs; ``kernels`` are the names of all that was called so far. ``result`` is there at the end.
    """

    step: int
    event: Event | None
    at: tuple[str, int] | None
    stack: tuple[tuple[str, int], ...]
    registers: dict[int, str]
    heap: tuple[Block, ...]
    kernels: tuple[str, ...]
    result: list[np.ndarray] | None = field(default=None, repr=False, compare=False)

    @property
    def live_bytes(self) -> int:
        """Bytes of the storages that are alive."""
        return sum(block.bytes for block in self.heap)


def snapshots(program: Program, /, limit: int = MOST, **inputs: Any) -> list[Snapshot]:
    """All states of a run: before the first instruction, after each one.

    Raises :class:`WorkbookError` for wrong inputs, and when ``limit`` instructions are not enough.
    """
    limit = whole_number(limit, "limit", 1)
    run = program.start(**inputs)
    event: Event | None = None
    kernels: tuple[str, ...] = ()
    states: list[Snapshot] = []
    while True:
        states.append(
            Snapshot(
                step=len(states),
                event=event,
                at=run.at,
                stack=tuple(run.stack),
                registers=run.registers,
                heap=tuple(run.heap),
                kernels=kernels,
                result=run.result if run.finished else None,
            )
        )
        if run.finished:
            return states
        if len(states) > limit:
            raise WorkbookError(
                f"This run has more than {limit} instructions: take a shorter input."
            )
        event = run.step()
        if event.kernel is not None:
            kernels += (event.kernel,)


def next_before(
    program: Program, states: Sequence[Snapshot], now: int, kind: type[Instruction]
) -> int:
    """The first state after ``now`` whose next instruction is of this ``kind``; else the last."""
    for state in states[now + 1 :]:
        if state.at and isinstance(_instruction(program, state.at), kind):
            return state.step
    return len(states) - 1


def _instruction(program: Program, at: tuple[str, int]) -> Instruction:
    return program.by_name[at[0]].instructions[at[1]]


def window(pc: int, count: int, lines: int = LINES) -> range:
    """Which of ``count`` lines are shown: ``pc`` moves in its middle half, then they scroll."""
    half = lines // 2
    start = max(0, min(pc // half * half - half // 2, count - lines))
    return range(start, min(count, start + lines))


def done(event: Event) -> str:
    """What an instruction did, in words."""
    said = [f"{event.function} {event.pc}: {event.instruction}"]
    said += [f"${register} is now {text}" for register, text in event.wrote.items()]
    if event.branch is not None and event.next:
        said.append(f"{'equal' if event.branch else 'not equal'}, goes to {event.next[1]}")
    if event.allocated:
        said.append(f"{_count(event.allocated, 'byte')} allocated")
    if event.freed:
        said.append(f"{_count(event.freed, 'byte')} freed")
    return "; ".join(said)


def words(program: Program, states: Sequence[Snapshot], now: int) -> str:
    """Three lines: what was done, what is next, what is alive."""
    state = states[now]
    last = done(state.event) if state.event else "nothing yet"
    if state.at is None:
        following = "nothing: main has returned"
    else:
        following = f"{state.at[0]} {state.at[1]}: {_instruction(program, state.at)}"
        if len(state.stack) > 1:
            following += f" (frame {len(state.stack)} of the stack)"
    return (
        f"Step {now} of {len(states) - 1}. Done: {last}.\n"
        f"Next: {following}.\n"
        f"Registers in use: {len(state.registers)}. Alive: {_count(len(state.heap), 'storage')}, "
        f"{_count(state.live_bytes, 'byte')}. Kernels called so far: {len(state.kernels)}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- a case: a model, its inputs, and what the graph executor makes of it -----------------------


@dataclass(frozen=True)
class Case:
    """A program with inputs by name, and the graph executor's kernels beside it.

    ``refused`` says why the graph executor does not take the model as it is, "" where it does;
    ``variant`` which static form of it has the kernels of ``line``.
    """

    program: Program
    inputs: Mapping[str, Mapping[str, Any]]
    line: tuple[str, ...]
    refused: str = ""
    variant: str = ""

    def graph_words(self) -> str:
        """What the graph executor does, in a sentence or two."""
        calls = f"calls {len(self.line)} kernels, always these, in this order"
        if len(self.line) == 1:
            calls = "calls 1 kernel, always this one"
        if not self.refused:
            return f"The graph executor {calls}."
        variant = f" ({self.variant})" if self.variant else ""
        return (
            f"The graph executor refuses this model ({self.refused}). Of its static "
            f"variant{variant} it {calls}."
        )


def case(
    model: Any,
    inputs: Mapping[str, Mapping[str, Any]],
    *,
    static: Any = None,
    variant: str = "",
) -> Case:
    """Compile ``model`` for the VM, and it or its ``static`` variant for the graph executor.

    Raises :class:`WorkbookError` when there are no inputs, or the graph executor takes neither.
    """
    from helpers import build, ir

    if not inputs:
        raise WorkbookError('A case needs inputs by name: {"3 rows": {"x": array}}.')
    reasons = ir.is_dynamic(model).reasons
    if reasons and static is None:
        raise WorkbookError(
            f"The graph executor refuses this model ({reasons[0]}): give a static variant of it."
        )
    return Case(
        bytecode.decode(build.compile(model, "vm")),
        inputs,
        tuple(build.compile(model if static is None else static).kernels),
        "; ".join(reasons),
        variant,
    )


# --- the explorer -------------------------------------------------------------------------------


def explorer(cases: Mapping[str, Case]) -> Shown:
    """Step through the runs of ``cases`` with a slider, buttons and a player."""
    if not cases:
        raise WorkbookError("There is no case to step through: case(...) makes one.")
    recorded = {
        (name, chosen): snapshots(one.program, **values)
        for name, one in cases.items()
        for chosen, values in one.inputs.items()
    }
    first = next(iter(cases))
    wide = {"description_width": "initial"}
    model = ipywidgets.Dropdown(options=list(cases), description="Model", style=wide)
    chosen = ipywidgets.Dropdown(options=list(cases[first].inputs), description="Input", style=wide)
    step = ipywidgets.IntSlider(
        description="Instructions done",
        style=wide,
        layout={"width": "34em", "max_width": "100%"},
    )
    player = ipywidgets.Play(interval=600, show_repeat=False, description="Play")
    ipywidgets.link((player, "value"), (step, "value"))

    def states() -> list[Snapshot]:
        return recorded[model.value, chosen.value]

    def renew(_: Any = None) -> None:
        step.value = 0
        step.max = player.max = len(states()) - 1

    def other_model(_: Any) -> None:
        chosen.options = list(cases[model.value].inputs)
        renew()

    # Before the frame's own observers: the input and the slider then fit the model.
    model.observe(other_model, names="value")
    chosen.observe(renew, names="value")
    renew()

    def view(model: str, chosen: str, step: int) -> View:
        one, run = cases[model], recorded[model, chosen]
        now = min(step, len(run) - 1)
        return View(picture(one, run, now), words(one.program, run, now))

    def button(label: str, goal: Any) -> ipywidgets.Button:
        made = ipywidgets.Button(description=label, layout={"width": "auto"})
        made.on_click(lambda _: setattr(step, "value", goal()))
        return made

    def before(kind: type[Instruction]) -> int:
        return next_before(cases[model.value].program, states(), step.value, kind)

    buttons = [
        button("Step back", lambda: max(0, step.value - 1)),
        button("Step", lambda: min(step.max, step.value + 1)),
        button("To the branch", lambda: before(If)),
        button("To the next kernel", lambda: before(InvokePacked)),
        button("Reset", lambda: 0),
    ]
    runs = {name: recorded[first, name] for name in cases[first].inputs}
    return explore(
        {"model": model, "chosen": chosen, "step": step},
        view,
        static=figure(first, cases[first], runs),
        alt=alt_text(first, cases[first], runs),
        rows=[[model, chosen], [player, step], buttons],
    )


# --- the picture, as HTML ---------------------------------------------------------------------

# The text has JupyterLab's colour, light or dark; the bands behind it are mixed with its page.
_BAND = "background: color-mix(in srgb, {} 30%, transparent); border-left: 4px solid {};"
_PLAIN = "border-left: 4px solid transparent;"
_CODE = "font-family: var(--jp-code-font-family, monospace); font-size: 12px; line-height: 1.45;"


def picture(one: Case, states: Sequence[Snapshot], now: int) -> str:
    """Listing, registers, heap and kernels of a state as HTML."""
    state = states[now]
    columns = [
        _panel(_listing_title(one.program, state), _listing(one.program, state), 36),
        _panel("Heap: storages alive", _heap(states, now), 24),
        _panel(_registers_title(state), _registers(states, now), 60),
        _panel("VM: kernels of this run so far", _kernels(state.kernels, "vm"), 24),
        _panel("Graph executor", _graph(one), 24),
    ]
    return (
        '<div style="display: flex; flex-wrap: wrap; gap: 8px 20px; line-height: 1.4">'
        f"{''.join(columns)}</div>"
    )


def _panel(title: str, body: str, width: int) -> str:
    return f'<div style="flex: 1 1 {width}em; min-width: 0"><b>{html.escape(title)}</b>{body}</div>'


def _row(text: str, colour: str = "", title: str = "", *, bold: bool = False) -> str:
    style = _BAND.format(colour, colour) if colour else _PLAIN
    if bold:
        style += " font-weight: bold;"
    hover = f' title="{html.escape(title, quote=True)}"' if title else ""
    return (
        f'<div style="{style} padding-left: 4px; white-space: pre; overflow: hidden; '
        f'text-overflow: ellipsis"{hover}>{html.escape(text)}</div>'
    )


def _rows(rows: Sequence[str], space: int = 1) -> str:
    """Rows of code, with room for ``space`` of them: what stands below does not jump."""
    room = f"min-height: {1.45 * 12 * space:.0f}px"
    return f'<div style="{_CODE} {room}">{"".join(rows) or _row("none")}</div>'


def _where(state: Snapshot) -> tuple[str, int | None]:
    """The function that is shown, and its line that is marked."""
    return state.at if state.at else ("main", None)


def _listing_title(program: Program, state: Snapshot) -> str:
    name, _ = _where(state)
    function = program.by_name[name]
    waiting = len(state.stack) - 1
    frames = f", {_count(waiting, 'frame')} waiting below" if waiting > 0 else ""
    return f"Bytecode: {name}({', '.join(function.params)}){frames}"


def _listing(program: Program, state: Snapshot) -> str:
    name, pc = _where(state)
    # The notes stand far to the right in a listing, where there is no room here.
    lines = [re.sub(" {2,}#", "  #", line) for line in program.text(name, pc).splitlines()[1:]]
    last = len(lines) - 1
    return _rows(
        [
            _row(
                lines[place],
                plots.ORANGE if place == pc else "",
                lines[place].strip(),
                bold=place == pc,
            )
            for place in window(last if pc is None else pc, len(lines))
        ],
        LINES,
    )


def _registers_title(state: Snapshot) -> str:
    return f"Registers of {state.at[0]}" if state.at else "Registers: main has returned"


def _registers(states: Sequence[Snapshot], now: int) -> str:
    state = states[now]
    event = state.event
    # After the last ret, there is no function whose register could have been written.
    new = set(event.wrote) if event and state.at else set()
    rows = _rows(
        [
            _row(
                _marked(f"${register} {text}", register in new),
                plots.GREEN if register in new else "",
                text,
                bold=register in new,
            )
            for register, text in state.registers.items()
        ],
        max(len(one.registers) for one in states),
    )
    return f'<div style="columns: 24em 3">{rows}</div>'


def _heap(states: Sequence[Snapshot], now: int) -> str:
    state = states[now]
    before = {block.number for block in states[now - 1].heap} if now else set()
    most = max(one.live_bytes for one in states)
    biggest = max((block.bytes for one in states for block in one.heap), default=1)
    rows = []
    for block in state.heap:
        new = block.number not in before
        inside = ", ".join(block.tensors) or "no tensor in it"
        label = _marked(f"#{block.number} {block.bytes:,} B: {inside}", new)
        rows.append(_row(label, plots.GREEN if new else "", label, bold=new))
        rows.append(_bar(block.bytes / biggest, plots.GREEN, 5))
    return (
        f"<div>{state.live_bytes:,} bytes, at most {most:,} in this run</div>"
        f"{_bar(state.live_bytes / most if most else 0, plots.BLUE, 9)}{_rows(rows)}"
    )


def _marked(text: str, new: bool) -> str:
    """A line with a word before it where it is new: colour alone does not say it to everyone."""
    return f"{'new' if new else '':<4}{text}"


def _bar(share: float, colour: str, height: int) -> str:
    if not share:
        return ""
    return (
        f'<div style="width: {100 * share:.1f}%; min-width: 1px; height: {height}px; '
        f'background: {colour}; margin: 1px 0 3px 8px"></div>'
    )


def _kernels(names: Sequence[str], executor: str) -> str:
    colour = plots.EXECUTOR_COLOURS[executor]
    return _rows([_row(f"{k:>2} {name}", colour, name) for k, name in enumerate(names, 1)])


def _graph(one: Case) -> str:
    return f"<div>{html.escape(one.graph_words())}</div>{_kernels(one.line, 'graph')}"


# --- the static form ----------------------------------------------------------------------------


def branches(states: Sequence[Snapshot]) -> list[Event]:
    """The events of a run that made a choice."""
    return [s.event for s in states if s.event is not None and s.event.branch is not None]


def alt_text(name: str, one: Case, runs: Mapping[str, Sequence[Snapshot]]) -> str:
    """What :func:`figure` shows, made of the same data."""
    said = [f"{name} on the VM."]
    for chosen, states in runs.items():
        most = max(state.live_bytes for state in states)
        choices = [
            f"in {event.function} {event.pc} the integers are "
            f"{'equal' if event.branch else 'not equal'}"
            for event in branches(states)
        ]
        said.append(
            f"Input {chosen}: {len(states) - 1} instructions, "
            f"{_count(len(states[-1].kernels), 'kernel')}"
            + (f", {', '.join(choices)}" if choices else "")
            + f"; at most {_count(most, 'byte')} alive."
        )
    return " ".join([*said, one.graph_words()])


def figure(name: str, one: Case, runs: Mapping[str, Sequence[Snapshot]]) -> Any:
    """The kernels of each run beside the graph executor's line, and the bytes alive over time."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = [(f"VM, input: {chosen}", _calls(states)) for chosen, states in runs.items()]
    title = "Graph executor" + (f": {one.variant}" if one.variant else "")
    columns.append((title, [(kernel, False) for kernel in one.line]))
    tall = max(len(rows) for _, rows in columns)
    with matplotlib.rc_context(plots.STYLE):
        made: Any = Figure(figsize=(2.9 * len(columns), 0.36 * tall + 3.0), layout="constrained")
        top, bottom = made.subfigures(2, 1, height_ratios=[0.36 * tall + 0.7, 2.3])
        for axes, (heading, rows) in zip(top.subplots(1, len(columns)), columns, strict=True):
            executor = "vm" if heading.startswith("VM") else "graph"
            _draw_column(axes, rows, plots.EXECUTOR_COLOURS[executor], tall)
            axes.set_title(heading, loc="left", weight="bold")
        top.suptitle(f"{name}: the kernels in the order of their calls", x=0.01, ha="left")
        axes = bottom.subplots()
        for (chosen, states), style in zip(runs.items(), ("-", "--", ":", "-.") * 9, strict=False):
            alive = [state.live_bytes for state in states]
            axes.step(
                range(len(states)), alive, style, where="post", color=plots.GREEN, label=chosen
            )
            for event in branches(states):
                axes.plot(event.step, alive[event.step], "D", color=plots.VERMILION)
        axes.plot([], [], "D", color=plots.VERMILION, label="if")
        axes.set(xlabel="instructions done", ylabel="bytes alive on the VM")
        bottom.legend(loc="outside right upper")
    return made


def _calls(states: Sequence[Snapshot]) -> list[tuple[str, bool]]:
    """Kernels and choices in order; True marks a choice."""
    rows = []
    for event in (state.event for state in states if state.event is not None):
        if event.kernel is not None:
            rows.append((event.kernel, False))
        elif event.branch is not None and event.next:
            answer = "equal" if event.branch else "not equal"
            rows.append((f"if: {answer}, goes to {event.next[1]}", True))
    return rows


def _draw_column(axes: Any, rows: Sequence[tuple[str, bool]], colour: str, tall: int) -> None:
    axes.set(xlim=(0, 1), ylim=(tall, 0))
    axes.axis("off")
    for place, (text, choice) in enumerate(rows):
        shade = "white" if choice else plots.tint(colour, 0.38)
        edge = plots.VERMILION if choice else colour
        axes.barh(place + 0.5, 1, 0.8, color=shade, edgecolor=edge, linewidth=1.3)
        short = text.removeprefix("fused_").replace("nn_", "").replace("contrib_", "")
        axes.text(0.03, place + 0.5, short, va="center", fontsize=plots.DETAIL_SIZE)
