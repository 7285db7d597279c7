"""The pass microscope: a slider over the passes of a pipeline, and what each did to the program."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ipywidgets

from helpers import differences, passes, plots
from helpers.errors import WorkbookError
from helpers.widgets import drawings
from helpers.widgets.frame import STATIC_BREADTH, Shown, View, explore

MOST_BOXES = 20  # a graph of more boxes is not drawn
MOST_LINES = 60  # of a difference


@dataclass(frozen=True)
class Stop:
    """One stop of the slider: a step of a trace, and what is to be seen there."""

    picture: str
    words: str


def explorer(
    programs: Mapping[str, Any], *, static: Sequence[tuple[str, int]] | None = None
) -> Shown:
    """Display the passes of a pipeline, one at a time: counts, graph and text before and after.

    ``programs`` maps a name to a :class:`helpers.passes.Trace`, or to a function without arguments
    that gives one and is called when its name is chosen. ``static`` names the steps, as (pass, its
    run from 0), whose graphs the static form shows beside each other: the graph before the first of
    them, and after each; without it, the passes that changed the operators. They belong to the
    first of the programs, which is a trace.
    """
    if not programs or not all(
        isinstance(given, passes.Trace) or inspect.isfunction(given) for given in programs.values()
    ):
        raise WorkbookError(
            "The pass microscope takes names and traces, such as "
            '{"the layer": passes.trace(layer)}.'
        )
    known: dict[tuple[str, bool], list[Stop]] = {}

    def stops_of(program: str, changed: bool) -> list[Stop]:
        if (program, changed) not in known:
            trace = _trace(programs[program])
            known[program, True] = made = [_stop(step) for step in shown(trace, True)]
            at = {step.index: stop for step, stop in zip(shown(trace, True), made, strict=True)}
            known[program, False] = [
                at.get(step.index) or _stop(step) for step in shown(trace, False)
            ]
        return known[program, changed]

    names = list(programs)
    wide = {"description_width": "initial"}
    program = ipywidgets.Dropdown(options=names, description="Program:", style=wide)
    changed = ipywidgets.Checkbox(
        value=True, description="only passes that changed the program", indent=False
    )
    step = ipywidgets.SelectionSlider(
        options=_options(stops_of(names[0], True)),
        description="Pass:",
        style=wide,
        layout=ipywidgets.Layout(width="560px"),
    )
    sign = ipywidgets.HTML()

    def choose(_: Any) -> None:
        sign.value = '<span role="status">Working ...</span>'
        try:
            step.options = _options(stops_of(program.value, changed.value))
            step.index = 0
        finally:
            sign.value = ""

    program.observe(choose, names="value")
    changed.observe(choose, names="value")

    def view(program: str, changed: bool, step: int) -> View:
        stops = stops_of(program, changed)
        stop = stops[min(step, len(stops) - 1)]
        return View(stop.picture, stop.words)

    first = _trace(programs[names[0]])
    chosen = _chosen(first, static)
    rows = [[program, changed, sign], [step]] if len(names) > 1 else [[changed], [step]]
    return explore(
        {"program": program, "changed": changed, "step": step},
        view,
        static=figure(chosen),
        alt=alt_text(chosen),
        rows=rows,
    )


def _trace(given: passes.Trace | Callable[[], passes.Trace]) -> passes.Trace:
    return given if isinstance(given, passes.Trace) else given()


def _options(stops: Sequence[Stop]) -> list[tuple[str, int]]:
    return [(f"{k} of {len(stops)}", k - 1) for k in range(1, len(stops) + 1)]


def shown(trace: passes.Trace, changed: bool) -> list[passes.Step]:
    """The steps that the slider stops at: no InferType, and no groups of other passes."""
    steps = [step for step in trace.steps if step.name != "InferType" and not step.is_group]
    return [step for step in steps if step.changed] if changed else steps


def counted(step: passes.Step) -> list[tuple[str, int | None, int | None]]:
    """What is counted, before and after a step; ``None`` where it is not known before a run."""
    return [
        (heading, getattr(step.before, name), getattr(step.after, name))
        for name, heading in passes.COUNTS.items()
    ]


def cut(text: str, most: int = MOST_LINES) -> tuple[list[str], str]:
    """The first lines of a difference, and a sentence on those left out (or ``""``)."""
    lines = text.splitlines()
    if len(lines) <= most:
        return lines, ""
    return lines[
        :most
    ], f"The first {most} of {len(lines)} lines; {len(lines) - most} are left out."


def _stop(step: passes.Step) -> Stop:
    picture = _table(step)
    drawn = ""
    if not step.changed:
        drawn = "It changed nothing."
    else:
        found = step.pictures(MOST_BOXES)
        if found.is_part:
            most = max(len(found.before.graph.calls), len(found.after.graph.calls))
            drawn = f"A graph of {most} operators is too large to draw here: see the text."
        else:
            panels = _named(step)
            picture += drawings.framed(drawings.graphs(panels, step.alt_text()))
            drawn = _marked(step.alt_text())
        picture += _difference(step.diff())
    changes = [
        f"{heading} {_number(a)} to {_number(b)}" for heading, a, b in counted(step) if a != b
    ]
    counts = "; ".join(changes) if changes else "no count changed"
    words = f"{step.name}, level {step.level}: {counts}. {drawn}"
    return Stop(picture, words.strip())


def _named(step: passes.Step) -> list[plots.Panel]:
    """The panels of a step, where a box has the name that its value has in the text below."""
    found = step.pictures(MOST_BOXES)
    panels = []
    for panel, picture, names in zip(
        step.panels(max_boxes=MOST_BOXES),
        (found.before, found.after),
        differences.named(step.module_before, step.module_after),
        strict=True,
    ):
        boxes = []
        for box, drawn in zip(panel.boxes, picture.boxes, strict=True):
            name = names.get(drawn.nodes[0])
            title = (f"{name} {box.title[0]}", *box.title[1:]) if name else box.title
            boxes.append(replace(box, title=title))
        panels.append(replace(panel, boxes=boxes))
    return panels


def _marked(alt: str) -> str:
    """What a drawing marks, from its alt text."""
    parts = [part for part in alt.split(". ") if part.startswith("Marked as")]
    return ". ".join(part.rstrip(".") for part in parts) + "." if parts else ""


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _table(step: passes.Step) -> str:
    found = counted(step)
    head = "".join(
        f'<th scope="col" style="{_CELL}">{html.escape(heading)}</th>' for heading, _, _ in found
    )
    before = "".join(f'<td style="{_CELL}">{_number(old)}</td>' for _, old, _ in found)
    after = "".join(
        f'<td style="{_CELL}">{_number(new) if new == old else f"<b>{_number(new)}</b>"}</td>'
        for _, old, new in found
    )
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{name}</th>{cells}</tr>'
        for name, cells in (("before", before), ("after", after))
    )
    style = "margin: 6px 0; border-collapse: collapse"
    return f'<table style="{style}"><tr><td></td>{head}</tr>{rows}</table>'


_CELL = "padding: 2px 10px; text-align: right; font-weight: inherit"


def _difference(text: str) -> str:
    """A unified difference as HTML; what was removed and added has a tint on either theme."""
    lines, rest = cut(text)
    tints = {"-": plots.VERMILION, "+": plots.BLUE}
    shown = []
    for line in lines:
        is_head = line.startswith(("---", "+++", "@@"))
        colour = "" if is_head else tints.get(line[:1], "")
        style = f"background: {colour}40; " if colour else "font-style: italic; " if is_head else ""
        shown.append(f'<span style="{style}display: block">{html.escape(line) or " "}</span>')
    note = f"<div>{html.escape(rest)}</div>" if rest else ""
    style = (
        "margin: 8px 0 0; line-height: 1.35; overflow: auto; max-height: 420px; "
        "width: fit-content; max-width: 100%; color: inherit"
    )
    # It may scroll, so the keyboard has to reach it.
    name = 'tabindex="0" role="region" aria-label="The difference as text"'
    return f'<pre {name} style="{style}">{"".join(shown)}</pre>{note}'


# --- the static form ------------------------------------------------------------------------------


def _chosen(trace: passes.Trace, static: Sequence[tuple[str, int]] | None) -> list[passes.Step]:
    if static is not None:
        found = [trace.step(name, nth) for name, nth in static]
    else:
        found = [s for s in shown(trace, True) if s.before.operators != s.after.operators]
    if not found:
        raise WorkbookError("No pass of this trace changed the operators: name the steps to show.")
    return found


def figure(steps: Sequence[passes.Step]) -> Any:
    """The graph before the first of the steps and after each, as a matplotlib ``Figure``."""
    panels = [
        steps[0].panels(max_boxes=MOST_BOXES)[0],
        *(s.panels(max_boxes=MOST_BOXES)[1] for s in steps),
    ]
    return plots.side_by_side(panels, breadth=STATIC_BREADTH)


def alt_text(steps: Sequence[passes.Step]) -> str:
    """What :func:`figure` shows, in words made from the same data."""
    return " ".join(step.alt_text() for step in steps)
