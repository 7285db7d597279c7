"""Layouts: where an element of a tensor lies in memory, which cache lines a loop touches, and the
layout transforms that passes leave in a program.

A layout is a string as TVM writes it, outermost axis first: ``"NCHW"``, ``"NHWC"``, ``"OIHW"``. A
small letter with a number in front is a block: ``"NCHW4c"`` cuts the axis C into groups of 4
neighbours and stores a group innermost. Offsets and strides count elements, not bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from helpers import ir, plots
from helpers.errors import WorkbookError, whole_number

LINE_BYTES = 64
"""Bytes of a cache line: the unit in which x86-64 processors load memory into a cache."""

MOST_CELLS = 256
"""The most elements of a tensor that :func:`memory` draws."""

MOST_IN_LINE = 64
"""The most elements of a cache line that :func:`memory` draws."""

MOST_VISITED = 2**26
"""The most elements that a loop of :func:`offsets` visits: 512 MiB of offsets."""


@dataclass(frozen=True)
class _Part:
    """One axis in memory: all of a tensor's axis, its outer part, or a block of it.

    Its index is ``index of the axis // below % extent``.
    """

    label: str
    axis: str
    block: int | None
    below: int


def _parts(layout: Any) -> list[_Part]:
    """The axes in memory, outermost first."""
    if not isinstance(layout, str) or not re.fullmatch(r"([A-Z]|[1-9][0-9]*[a-z])+", layout):
        raise WorkbookError(
            "A layout is a string of capital letters and of blocks such as 4c, "
            f'as in "NCHW" or "NCHW4c", not {layout!r}.'
        )
    labels = re.findall(r"[A-Z]|[0-9]+[a-z]", layout)
    if twice := [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        raise WorkbookError(f"The layout {layout} names {twice[0]} twice.")
    if missing := [label for label in labels if label[-1].upper() not in labels]:
        axis = missing[0][-1].upper()
        raise WorkbookError(
            f"The layout {layout} has the block {missing[0]} of an axis {axis} that it lacks: "
            f"put {axis} in, too."
        )
    parts = []
    for place, label in enumerate(labels):
        # Of several blocks of an axis, one further right holds nearer neighbours.
        inner = labels[place + 1 :] if label[:-1] else labels
        below = prod(int(other[:-1]) for other in inner if other[:-1] and _same(other, label))
        parts.append(_Part(label, label[-1].upper(), int(label[:-1] or 0) or None, below))
    return parts


def _same(label: str, other: str) -> bool:
    return label[-1].upper() == other[-1].upper()


def _sized(dims: Any, layout: Any) -> list[tuple[_Part, int]]:
    """The axes in memory with their extents, outermost first."""
    parts = _parts(layout)
    axes = list(dict.fromkeys(part.axis for part in parts))
    if not isinstance(dims, Mapping) or set(dims) != set(axes):
        raise WorkbookError(
            f"dims gives the size of each axis of {layout}, "
            f"as {{{', '.join(f'{axis!r}: 4' for axis in axes)}}}, not {dims!r}."
        )
    sizes = {axis: whole_number(dims[axis], f"The size of {axis}", 1) for axis in axes}
    for part in parts:
        if part.block is None and sizes[part.axis] % part.below:
            raise WorkbookError(
                f"The blocks of {layout} hold {part.below} elements of {part.axis}, and "
                f"{sizes[part.axis]} elements cannot be cut into such blocks."
            )
    return [(part, part.block or sizes[part.axis] // part.below) for part in parts]


def shape(dims: Mapping[str, int], layout: str) -> tuple[int, ...]:
    """The extents of a tensor's axes in memory, outermost first.

    ``dims`` holds the number of elements along each axis: ``{"N": 1, "C": 8, "H": 4, "W": 4}`` is
    stored in ``"NCHW4c"`` as ``(1, 2, 4, 4, 4)``. Raises :class:`WorkbookError` for a layout that
    cannot be read, for axes that do not match, and for a block that does not divide its axis.
    """
    return tuple(extent for _, extent in _sized(dims, layout))


def strides(dims: Mapping[str, int], layout: str) -> dict[str, int]:
    """How many elements further the next element along each axis in memory lies.

    The innermost axis has stride 1; each other one has the product of the extents inside of it. A
    block has a key of its own: ``{"N": 128, "C": 64, "H": 16, "W": 4, "4c": 1}`` for ``"NCHW4c"``,
    where C counts groups of 4. Raises :class:`WorkbookError` as :func:`shape` does.
    """
    extents = [extent for _, extent in _sized(dims, layout)]
    labels = [part.label for part in _parts(layout)]
    return {label: prod(extents[place + 1 :]) for place, label in enumerate(labels)}


def offset(index: Mapping[str, int], dims: Mapping[str, int], layout: str) -> int:
    """How many elements lie in memory before the one at ``index``: the sum of index times stride.

    ``index`` counts from 0 along each axis of the tensor, whatever its layout:
    ``{"N": 0, "C": 5, "H": 1, "W": 2}``. Raises :class:`WorkbookError` as :func:`shape` does, and
    for an index that is missing or outside of the tensor.
    """
    places = _checked_index(index, dims, layout, "index")
    return sum(_step(axis, place, dims, layout) for axis, place in places.items())


def _checked_index(index: Any, dims: Mapping[str, int], layout: str, name: str) -> dict[str, int]:
    _sized(dims, layout)
    if not isinstance(index, Mapping) or set(index) != set(dims):
        raise WorkbookError(
            f"{name} gives a place along each of the axes {', '.join(dims)}, not {index!r}."
        )
    places = {axis: whole_number(index[axis], f"The index of {axis}", 0) for axis in dims}
    for axis, place in places.items():
        if place >= dims[axis]:
            raise WorkbookError(
                f"The index of {axis} is {place}, and {axis} has {dims[axis]} elements, "
                f"0 to {dims[axis] - 1}."
            )
    return places


def _step(axis: str, place: Any, dims: Mapping[str, int], layout: str) -> Any:
    """What ``place`` along ``axis``, an ``int`` or an array of them, adds to the offset.

    All axes add up, blocks or not.
    """
    stride = strides(dims, layout)
    parts = [(part, extent) for part, extent in _sized(dims, layout) if part.axis == axis]
    return sum(place // part.below % extent * stride[part.label] for part, extent in parts)


def formula(layout: str) -> str:
    """:func:`offset` as a formula in Python, by Horner's rule.

    Capital letters are sizes, small letters the index: ``((n*C + c)*H + h)*W + w`` for ``"NCHW"``.
    Raises :class:`WorkbookError` for a layout that cannot be read.
    """
    text = ""
    for part in _parts(layout):
        size, place = part.axis, part.axis.lower()
        if part.below > 1:
            size, place = f"({size}//{part.below})", f"{place}//{part.below}"
        if part.block:
            size, place = str(part.block), f"{place}%{part.block}"
        outer = f"({text})" if " " in text else text
        text = f"{outer}*{size} + {place}" if outer else place
    return text


# --- what a loop touches --------------------------------------------------------------------------


def offsets(
    loop: str | Mapping[str, int],
    dims: Mapping[str, int],
    layout: str,
    *,
    start: Mapping[str, int] | None = None,
) -> np.ndarray:
    """The offsets (int64, one dimension) of the elements that a loop visits, in its order.

    ``loop`` names the axes, the outermost first: ``"C"`` runs over all channels, ``"HW"`` over a
    plane, and ``{"H": 3, "W": 3}`` makes 3 steps along each. ``start`` is the index of the first
    element: 0 along each axis that it leaves out. Raises :class:`WorkbookError` as :func:`offset`
    does, for a loop that runs out of the tensor, and for more than 2**26 elements.
    """
    origin = _origin(start, dims, layout)
    counts = _counts(loop, dims, origin)
    if prod(counts.values()) > MOST_VISITED or prod(dims.values()) > np.iinfo(np.int64).max:
        raise WorkbookError(
            f"A loop over {prod(counts.values()):,} elements of a tensor of "
            f"{prod(dims.values()):,} is too large to count: make it smaller."
        )
    result = np.zeros(1, dtype=np.int64)
    for axis in [*(axis for axis in dims if axis not in counts), *counts]:
        first = origin[axis]
        places = np.arange(first, first + counts.get(axis, 1), dtype=np.int64)
        result = (result[:, None] + _step(axis, places, dims, layout)).ravel()
    return result


def _origin(start: Any, dims: Mapping[str, int], layout: str) -> dict[str, int]:
    _sized(dims, layout)
    if start is not None and not isinstance(start, Mapping):
        raise WorkbookError(f'start is an index, such as {{"H": 1, "W": 2}}, not {start!r}.')
    return _checked_index({**dict.fromkeys(dims, 0), **(start or {})}, dims, layout, "start")


def _counts(loop: Any, dims: Mapping[str, int], origin: Mapping[str, int]) -> dict[str, int]:
    if not isinstance(loop, str | Mapping) or not loop or any(axis not in dims for axis in loop):
        raise WorkbookError(
            f"loop names axes among {', '.join(dims)}, "
            f'as "{next(iter(dims))}", or with the number of steps, not {loop!r}.'
        )
    if isinstance(loop, str):
        if len(set(loop)) < len(loop):
            raise WorkbookError(f"The loop {loop!r} runs over an axis twice.")
        return {axis: dims[axis] - origin[axis] for axis in loop}
    counts = {
        axis: whole_number(loop[axis], f"The number of steps along {axis}", 1) for axis in loop
    }
    for axis, count in counts.items():
        if origin[axis] + count > dims[axis]:
            raise WorkbookError(
                f"{count} steps from {origin[axis]} along {axis} leave the tensor, which has "
                f"{dims[axis]} there."
            )
    return counts


def lines_touched(
    loop: str | Mapping[str, int],
    dims: Mapping[str, int],
    layout: str,
    *,
    start: Mapping[str, int] | None = None,
    element_bytes: int = 4,
    line_bytes: int = LINE_BYTES,
    base: int = 0,
) -> int:
    """How many different cache lines the elements of a loop lie in: counted, not estimated.

    ``loop`` and ``start`` as in :func:`offsets`. ``base`` is the number of bytes between the last
    line boundary and the first element of the tensor: 0 where memory is aligned, as TVM allocates
    it. Raises :class:`WorkbookError` as :func:`offsets` does, and for sizes where an element could
    lie in two lines.
    """
    cells, first = _cells(element_bytes, line_bytes, base)
    found = offsets(loop, dims, layout, start=start)
    return len(np.unique((found + first) // cells))


def _cells(element_bytes: Any, line_bytes: Any, base: Any) -> tuple[int, int]:
    """(elements in a line, elements between a line boundary and the tensor)."""
    element = whole_number(element_bytes, "element_bytes", 1)
    line = whole_number(line_bytes, "line_bytes", 1)
    before = whole_number(base, "base", 0)
    if line % element or before % element:
        raise WorkbookError(
            f"line_bytes and base are multiples of element_bytes ({element}), "
            f"not {line} and {before}."
        )
    return line // element, before // element % (line // element)


def memory(
    loop: str | Mapping[str, int],
    dims: Mapping[str, int],
    layouts: str | Sequence[str],
    *,
    start: Mapping[str, int] | None = None,
    element_bytes: int = 4,
    line_bytes: int = LINE_BYTES,
    base: int = 0,
) -> Any:
    """Memory as a matplotlib ``Figure``: one row a cache line, the elements of a loop filled.

    One panel for each layout. A cell shows the index of its element (axes of size 1 are left out).
    Arguments as in :func:`lines_touched`. Raises :class:`WorkbookError` as that does, for a tensor
    of more than 256 elements, and for a line of more than 64.
    """
    import matplotlib
    from matplotlib.figure import Figure

    chosen = [layouts] if isinstance(layouts, str) else layouts
    if not isinstance(chosen, Sequence) or not chosen:
        raise WorkbookError('layouts is one layout or several, such as ["NCHW", "NHWC"].')
    size = prod(shape(dims, chosen[0]))
    if size > MOST_CELLS:
        raise WorkbookError(
            f"This tensor has {size:,} elements, and {MOST_CELLS} can be drawn: make it smaller."
        )
    cells, first = _cells(element_bytes, line_bytes, base)
    if cells > MOST_IN_LINE:
        raise WorkbookError(
            f"A line of {line_bytes} bytes holds {cells:,} elements of {element_bytes}, and "
            f"{MOST_IN_LINE} can be drawn: make it shorter."
        )
    rows = (first + size - 1) // cells + 1
    named = [axis for axis in dims if dims[axis] > 1] or list(dims)
    origin = _origin(start, dims, chosen[0])
    with matplotlib.rc_context(plots.STYLE):
        height = len(chosen) * (0.3 * rows + 0.45) + 0.7
        figure = Figure(figsize=(0.9 + 0.5 * cells, height), layout="constrained")
        panels = figure.subplots(len(chosen), squeeze=False)[:, 0]
        for axes, layout in zip(panels, chosen, strict=True):
            visited = set((offsets(loop, dims, layout, start=start) + first).tolist())
            touched = {place // cells for place in visited}
            for index in product(*(range(dims[axis]) for axis in dims)):
                at = dict(zip(dims, index, strict=True))
                place = offset(at, dims, layout) + first
                y, x = divmod(place, cells)
                face = plots.BLUE if place in visited else plots.tint(plots.GREY, 0.16)
                axes.add_patch(
                    matplotlib.patches.Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white")
                )
                style = {"color": "white", "weight": "bold"} if place in visited else {}
                text = ",".join(str(at[axis]) for axis in named)
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=10, **style)
            axes.set(xlim=(0, cells), ylim=(rows, 0), xticks=[])
            axes.set_yticks([y + 0.5 for y in range(rows)], [f"line {y}" for y in range(rows)])
            for y, label in enumerate(axes.get_yticklabels()):
                if y in touched:
                    label.set(weight="bold", color=plots.BLUE)
            axes.tick_params(length=0)
            axes.grid(False)
            for spine in axes.spines.values():
                spine.set_visible(False)
            lines = f"{len(touched)} of {rows} cache lines"
            axes.set_title(f"{layout}: {len(visited)} elements in {lines}", loc="left")
        counts = _counts(loop, dims, origin)
        ends = {axis: origin[axis] + counts.get(axis, 1) - 1 for axis in named}
        ranges = [
            f"{axis.lower()} = {origin[axis]}" + (f" to {end}" if end > origin[axis] else "")
            for axis, end in ends.items()
        ]
        figure.suptitle(
            f"Memory, row by row: a row is a cache line of {line_bytes} bytes, "
            f"a cell the element at ({', '.join(axis.lower() for axis in named)}).\n"
            f"Blue: the loop {', '.join(ranges)}, and the lines that it touches.",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure


# --- layout transforms in a program ---------------------------------------------------------------


@dataclass(frozen=True)
class Transform:
    """One call of ``layout_transform``.

    ``source`` and ``target`` are layouts; ``type`` is what is read, as ``float32[1, 8, 4, 4]``.
    ``constant``: it depends on constants only, so FoldConstant can compute it. ``kernel`` holds
    the operators of the fused kernel that it lies in, itself included; before FuseOps none.
    """

    source: str
    target: str
    type: str
    constant: bool
    kernel: tuple[str, ...]

    @property
    def alone(self) -> bool:
        """Whether the transform is a kernel of its own."""
        return self.kernel == ("layout_transform",)

    def __str__(self) -> str:
        constant = " (constant)" if self.constant else ""
        return f"{self.source} -> {self.target} of {self.type}{constant}"


def transforms(x: Any) -> list[Transform]:
    """The ``layout_transform`` calls of a program in execution order, inside kernels or not.

    ``x`` is an IRModule, a Relay function or expression, or a zoo model; its ``main`` is read.
    Raises :class:`WorkbookError` for anything else, and for a program with a type error.
    """
    nodes = ir.graph(x).nodes
    constant: list[bool] = []
    kernels: dict[int | None, tuple[str, ...]] = {}
    for node in nodes:
        sources = [constant[source] for source in node.inputs]
        constant.append(node.kind == "constant" or (bool(sources) and all(sources)))
        if node.op and node.group is not None:
            kernels[node.group] = (*kernels.get(node.group, ()), node.op)
    return [
        Transform(
            node.attrs["src_layout"],
            node.attrs["dst_layout"],
            nodes[node.inputs[0]].type,
            constant[node.index],
            kernels.get(node.group, ()),
        )
        for node in nodes
        if node.op == "layout_transform"
    ]
