"""Where a loop's elements lie in memory, in a layout and for sizes that one chooses.

    layout_explorer.explorer()

Memory is a line of cells, cut into cache lines of 64 bytes, each with 16 elements of float32. The
elements that one inner loop visits are lit. In how many lines they lie is to be guessed first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import ipywidgets
import numpy as np

from helpers import layout, plots
from helpers.errors import WorkbookError
from helpers.widgets import frame, shapes

ELEMENT_BYTES = 4
"""Bytes of a float32."""

CELLS = layout.LINE_BYTES // ELEMENT_BYTES
"""Elements in a cache line."""

MOST_LINES = 24
"""The most cache lines drawn: of more, the first that the loop lies in, and the element's."""

LOOPS = {
    "C": "all channels",
    "W": "a row: all w",
    "H": "a column: all h",
    "block": "one block of channels",
}
"""What the innermost loop runs over, by the name of its axis."""

DIMS = {"N": 1, "C": 16, "H": 2, "W": 4}
ELEMENT = {"N": 0, "C": 5, "H": 1, "W": 2}
BLOCK = 4

_LIT, _UNLIT = plots.BLUE, plots.tint(plots.GREY, 0.16)


@dataclass(frozen=True)
class State:
    """What is chosen: sizes, layout, innermost loop, block, and the element that it passes through.

    ``layout`` is ``"NCHW"``, ``"NHWC"`` or one with a block such as ``"NCHW4c"``; ``loop`` is a key
    of :data:`LOOPS`; a block holds ``block`` neighbouring channels, whatever the layout.
    """

    dims: Mapping[str, int]
    layout: str
    loop: str
    block: int
    element: Mapping[str, int]

    @property
    def range(self) -> tuple[str, int, int]:
        """(axis, first, last) of the loop.

        Raises :class:`WorkbookError` for a block that does not fit into the tensor.
        """
        if self.loop != "block":
            return self.loop, 0, self.dims[self.loop] - 1
        first = self.element["C"] // self.block * self.block
        if first + self.block > self.dims["C"]:
            raise WorkbookError(
                f"The block of {self.block} channels from {first} on does not fit into "
                f"{self.dims['C']} channels: choose a C that {self.block} divides."
            )
        return "C", first, first + self.block - 1

    @cached_property
    def offsets(self) -> list[int]:
        """Where the loop's elements lie in memory, in the order in which it visits them."""
        axis, first, last = self.range
        start = {**self.element, axis: first}
        steps = {axis: last - first + 1}
        return [int(at) for at in layout.offsets(steps, self.dims, self.layout, start=start)]

    @cached_property
    def lines(self) -> list[int]:
        """The cache lines that the loop touches, counted from 0, in order."""
        return sorted({at // CELLS for at in self.offsets})

    @property
    def all_lines(self) -> int:
        """How many cache lines the tensor takes."""
        return (prod(self.dims.values()) - 1) // CELLS + 1

    @cached_property
    def offset(self) -> int:
        """Where the chosen element lies."""
        return layout.offset(self.element, self.dims, self.layout)


def put_in(name: str, dims: Mapping[str, int], element: Mapping[str, int]) -> str:
    """The index formula of a layout with its numbers put in: ``((0*8 + 5)*2 + 1)*4 + 2``."""
    numbers = {**dims, **{axis.lower(): place for axis, place in element.items()}}
    return "".join(str(numbers.get(letter, letter)) for letter in layout.formula(name))


def elements_at(offsets: Any, dims: Mapping[str, int], name: str) -> dict[str, np.ndarray]:
    """The indices of the elements at ``offsets``, for each axis: the reverse of ``layout.offset``.

    ``name`` is a layout with at most one block of each axis.
    """
    places = np.asarray(offsets, dtype=np.int64)
    found = {axis: np.zeros_like(places) for axis in dims}
    strides, extents = layout.strides(dims, name), layout.shape(dims, name)
    blocks = {label[-1].upper(): int(label[:-1]) for label in strides if label[:-1]}
    for (label, stride), extent in zip(strides.items(), extents, strict=True):
        axis = label[-1].upper()
        found[axis] += places // stride % extent * (1 if label[:-1] else blocks.get(axis, 1))
    return found


# --- words and picture ---------------------------------------------------------------------------


def words(state: State, *, hidden: bool = False, guess: int = 0) -> str:
    """Strides, the formula with numbers, and the cache lines that the loop touches.

    ``hidden`` asks for the number of lines in place of telling it; ``guess`` is what was guessed,
    or 0.
    """
    dims, name = state.dims, state.layout
    strides = ", ".join(f"{axis} {stride}" for axis, stride in layout.strides(dims, name).items())
    axis, first, last = state.range
    fixed = ", ".join(
        f"{other.lower()} = {at}" for other, at in state.element.items() if other != axis
    )
    said = [
        f"{name}: shape in memory {layout.shape(dims, name)}, strides {strides} elements.",
        f"Element (n, c, h, w) = {tuple(state.element.values())}: offset {layout.formula(name)} = "
        f"{put_in(name, dims, state.element)} = {state.offset}, in cache line "
        f"{state.offset // CELLS}.",
    ]
    count = "1 element" if len(state.offsets) == 1 else f"{len(state.offsets)} elements"
    loop = f"The loop {axis.lower()} = {first} to {last} at {fixed} visits {count}"
    if hidden:
        said.append(
            f"{loop}. In how many cache lines of {CELLS} elements do they lie? Enter a guess, and "
            "the loop is shown."
        )
        return "\n".join(said)
    said.append(
        f"{loop}, at the offsets {_some(state.offsets)}. They lie in {len(state.lines)} of "
        f"{state.all_lines} cache lines: {_some(state.lines)}."
    )
    if guess:
        verdict = "right" if guess == len(state.lines) else f"it is {len(state.lines)}"
        said.append(f"Your guess was {guess}: {verdict}.")
    return "\n".join(said)


def _some(numbers: list[int]) -> str:
    """The numbers, or the first few and the last of them."""
    listed = [str(number) for number in numbers]
    if len(listed) > 9:
        listed[7:-1] = ["..."]
    return ", ".join(listed)


_LEFT, _CELL, _ROW = 72, 46, 24  # pixels: the column of labels, the size of a cell


def drawing(state: State, *, hidden: bool = False) -> str:
    """Memory as an SVG picture: the whole line above, its cache lines as rows below.

    Cells of the loop are blue unless ``hidden``; the chosen element has a black frame. A cell shows
    the index of its element without axes of size 1, and tells its offset where the mouse rests.
    """
    visited = set() if hidden else set(state.offsets)
    touched = {at // CELLS for at in visited}
    size = prod(state.dims.values())
    every = state.all_lines <= MOST_LINES
    shown = list(range(state.all_lines))
    if not every:
        shown = sorted({*sorted(touched)[:MOST_LINES], state.offset // CELLS})
    drawn, y = [*_whole(state, visited), *_legend(state, len(shown), len(touched))], 82.0
    named = [axis for axis, extent in state.dims.items() if extent > 1] or list(state.dims)
    before = -1
    for number in shown:
        y += 6 if number > before + 1 else 0
        style: dict[str, Any] = {"font_weight": "bold", "fill": _LIT} if number in touched else {}
        drawn.append(shapes.text(4, y + _ROW / 2 + 4, f"line {number}", **style))
        places = range(number * CELLS, min((number + 1) * CELLS, size))
        found = elements_at(places, state.dims, state.layout)
        for cell, at in enumerate(places):
            index = {axis: int(each[cell]) for axis, each in found.items()}
            drawn += _cell(
                (_LEFT + cell * _CELL, y),
                ",".join(str(index[axis]) for axis in named),
                f"element {tuple(index.values())}: offset {at}, line {number}",
                at in visited,
                at == state.offset,
            )
        before, y = number, y + _ROW
    alt = "Memory as rows of cache lines. The text above the picture tells what it shows."
    return shapes.picture(_LEFT + CELLS * _CELL + 4, y + 6, drawn, alt)


def _whole(state: State, visited: Collection[int]) -> list[str]:
    """The whole memory as one line."""
    size, wide = prod(state.dims.values()), CELLS * _CELL
    step = wide / size
    drawn = [
        shapes.text(4, 20, "memory"),
        shapes.rect(_LEFT, 6, wide, 20, _UNLIT, title=f"{size:,} elements"),
    ]
    for at in sorted(visited):
        width = max(step * 0.94, 1)
        drawn.append(shapes.rect(_LEFT + at * step, 6, width, 20, _LIT, title=f"offset {at}"))
    mark: dict[str, Any] = {"stroke": plots.BLACK, "stroke_width": 2}
    drawn.append(shapes.rect(_LEFT + state.offset * step, 5, max(step, 2), 22, "none", **mark))
    if state.all_lines <= 64:
        ends = [_LEFT + at * step for at in range(0, size + 1, CELLS)]
        drawn += [shapes.line(x, 28, x, 33, plots.BLACK) for x in ends]
    return drawn


def _legend(state: State, shown: int, touched: int) -> list[str]:
    axes = [axis.lower() for axis, extent in state.dims.items() if extent > 1] or ["n, c, h, w"]
    which = "cache lines"
    if shown < state.all_lines:
        left_out = f"{shown} of the {touched}" if shown < touched else "the"
        which = f"{left_out} cache lines with the loop" if touched else "the element's cache line"
    rows = f"Below, {which}, {layout.LINE_BYTES} bytes each: a cell is the element at "
    return [
        shapes.text(4, 52, f"{rows}({', '.join(axes)})."),
        shapes.text(4, 69, "Blue: what the loop visits. Frame: the chosen element."),
    ]


def _cell(where: tuple[float, float], index: str, title: str, lit: bool, chosen: bool) -> list[str]:
    x, y = where
    edge: dict[str, Any] = {"stroke": plots.BLACK, "stroke_width": 2.5} if chosen else {}
    inset = 1.5 if chosen else 0.5
    wide, high = _CELL - 2 * inset, _ROW - 2 * inset
    size = min(11.5, 66 / len(index))
    style: dict[str, Any] = {"text_anchor": "middle", "pointer_events": "none"}
    style |= {"fill": "white", "font_weight": "bold"} if lit else {}
    return [
        shapes.rect(x + inset, y + inset, wide, high, _LIT if lit else _UNLIT, title=title, **edge),
        shapes.text(x + _CELL / 2, y + _ROW / 2 + 4, index, size=size, **style),
    ]


def view(state: State, *, hidden: bool = False, guess: int = 0) -> frame.View:
    """One state of the explorer."""
    said = words(state, hidden=hidden, guess=guess)
    picture = drawing(state, hidden=hidden)
    scroll = 'tabindex="0" role="group" style="max-height: 520px; overflow: auto"'
    return frame.View(f'<div {scroll} aria-label="Memory, row by row">{picture}</div>', said)


# --- the static form -----------------------------------------------------------------------------

_STATIC = [
    State(DIMS, name, loop, BLOCK, ELEMENT)
    for loop in ("C", "W", "block")
    for name in ("NCHW", "NHWC", f"NCHW{BLOCK}c")
]


def figure() -> Any:
    """Three loops in three layouts; a Matplotlib ``Figure``."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**plots.STYLE, "axes.grid": False}):
        made = Figure(figsize=(9, 6.6), layout="constrained")
        for axes, state in zip(made.subplots(3, 3).flat, _STATIC, strict=True):
            cells = np.zeros(state.all_lines * CELLS)
            cells[state.offsets] = 1
            colours = matplotlib.colors.ListedColormap([_UNLIT, _LIT])
            rows = cells.reshape(-1, CELLS)
            axes.pcolormesh(rows, cmap=colours, vmin=0, vmax=1, edgecolor="white", linewidth=1.2)
            y, x = divmod(state.offset, CELLS)
            axes.add_patch(
                matplotlib.patches.Rectangle(
                    (x, y), 1, 1, fill=False, edgecolor="black", linewidth=2
                )
            )
            axes.set(xticks=[], ylim=(len(rows), 0))
            axes.set_yticks([row + 0.5 for row in range(len(rows))], range(len(rows)), fontsize=10)
            axes.tick_params(length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
            count = len(state.lines)
            lines = "1 cache line" if count == 1 else f"{count} cache lines"
            axes.set_title(f"{state.layout}, {_over(state)}:\n{lines}", loc="left", fontsize=12)
        sizes = ", ".join(f"{axis} = {extent}" for axis, extent in DIMS.items())
        made.suptitle(
            f"Memory for {sizes}: a row is a cache line of {CELLS} float32. Blue: the loop.\n"
            "Frame: the element (n, c, h, w) = (0, 5, 1, 2), through which each loop runs.",
            x=0.01,
            ha="left",
            fontsize=12,
        )
    return made


def _over(state: State) -> str:
    return {"C": "all c", "W": "all w", "block": f"{state.block} channels"}[state.loop]


def alt_text() -> str:
    """The static figure in words."""
    counts = "; ".join(f"{s.layout}, {_over(s)}: {len(s.lines)}" for s in _STATIC)
    sizes = ", ".join(f"{axis} = {extent}" for axis, extent in DIMS.items())
    return f"Cache lines that an inner loop touches, for {sizes} and float32. {counts}."


# --- the widgets ---------------------------------------------------------------------------------


def explorer() -> frame.Shown:
    """Choose sizes, layout and innermost loop, guess the cache lines, and see them.

    Returns the box that is displayed.
    """

    def shape(width: str) -> dict[str, Any]:
        margin = "2px 16px 2px 2px"
        return {
            "style": {"description_width": "initial"},
            "layout": {"width": width, "margin": margin},
        }

    most = {"N": 4, "C": 64, "H": 64, "W": 64}
    names = {"N": "N, images", "C": "C, channels", "H": "H, rows", "W": "W, columns"}
    sizes = {
        axis: ipywidgets.IntSlider(
            DIMS[axis], 1, most[axis], description=names[axis], **shape("350px")
        )
        for axis in DIMS
    }
    places = {
        axis: ipywidgets.BoundedIntText(
            ELEMENT[axis],
            min=0,
            max=DIMS[axis] - 1,
            description=f"{axis.lower()} =",
            **shape("90px"),
        )
        for axis in DIMS
    }
    chosen = ipywidgets.Dropdown(
        options=[
            *(("NCHW", "NCHW"), ("NHWC", "NHWC")),
            ("NCHWbc: channels in blocks of b", "blocks"),
        ],
        description="Layout",
        **shape("auto"),
    )
    block = ipywidgets.Dropdown(
        options=[2, 4, 8, 16], value=BLOCK, description="Block b", **shape("auto")
    )
    loop = ipywidgets.Dropdown(
        options=[(label, key) for key, label in LOOPS.items()],
        description="Innermost loop over",
        **shape("auto"),
    )
    predict = ipywidgets.Checkbox(
        True, description="Guess before the loop is shown", indent=False, layout={"width": "270px"}
    )
    guess = ipywidgets.BoundedIntText(
        0,
        min=0,
        max=max(most.values()),
        description="Your guess of the cache lines (0: none yet)",
        **shape("340px"),
    )

    for axis, slider in sizes.items():

        def fit(change: Any, place: ipywidgets.BoundedIntText = places[axis]) -> None:
            place.max = change.new - 1  # a value above it becomes it

        slider.observe(fit, names="value")
    others = {"chosen": chosen, "block": block, "loop": loop}
    others |= {f"size_{axis}": slider for axis, slider in sizes.items()}
    others |= {f"place_{axis}": place for axis, place in places.items()}

    def forget(_: Any) -> None:
        guess.value = 0  # a guess belongs to one state

    for control in (*others.values(), predict):
        control.observe(forget, names="value")

    def made(**values: Any) -> frame.View:
        name = f"NCHW{values['block']}c" if values["chosen"] == "blocks" else values["chosen"]
        dims = {axis: values[f"size_{axis}"] for axis in DIMS}
        element = {axis: values[f"place_{axis}"] for axis in DIMS}
        state = State(dims, name, values["loop"], values["block"], element)
        hidden = values["predict"] and not values["guess"]
        return view(state, hidden=hidden, guess=values["guess"] if values["predict"] else 0)

    return frame.explore(
        {**others, "predict": predict, "guess": guess},
        made,
        static=figure(),
        alt=alt_text(),
        rows=[
            [chosen, block, loop],
            [sizes["N"], sizes["C"]],
            [sizes["H"], sizes["W"]],
            [ipywidgets.Label("Element:"), *places.values()],
            [predict, guess],
        ],
    )
