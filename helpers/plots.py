"""One look for every figure: fixed colours, layered graphs, bars, matrices, and alt text."""

from __future__ import annotations

import base64
import html
import io
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from helpers.errors import WorkbookError

# Okabe and Ito's palette: told apart with any kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#888888"

PATTERN_COLOURS = {
    "ELEMWISE": SKY,
    "BROADCAST": BLUE,
    "INJECTIVE": GREEN,
    "COMM_REDUCE": PURPLE,
    "OUT_ELEMWISE_FUSABLE": ORANGE,
    "TUPLE": GREY,
    "OPAQUE": GREY,
    "CONTROL": VERMILION,
    "INPUT": "#FFFFFF",
    "CONSTANT": YELLOW,
    "VARIES": GREY,
    "LIVE": SKY,
    "UNSEEN": "#FFFFFF",
}
"""One colour per operator pattern of ``fusion.pattern``, for what is not an operator, and for what
a walk over a graph finds a vertex to be."""

PATTERN_NAMES = {
    "ELEMWISE": "elementwise",
    "BROADCAST": "broadcast",
    "INJECTIVE": "injective",
    "COMM_REDUCE": "reduction",
    "OUT_ELEMWISE_FUSABLE": "output fusable (conv, dense)",
    "TUPLE": "tuple",
    "OPAQUE": "opaque",
    "CONTROL": "control flow, function",
    "INPUT": "input",
    "CONSTANT": "constant",
    "VARIES": "not constant",
    "LIVE": "live",
    "UNSEEN": "not reached, or gone",
}

EXECUTOR_COLOURS = {"graph": BLUE, "vm": ORANGE, "aot": GREEN}
BEFORE, AFTER = GREY, BLUE
READ, WRITE, WEIGHTS = SKY, VERMILION, YELLOW
SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Colours for series that have no role of their own, in this order."""

DPI = 110
VECTOR = "WORKBOOK_VECTOR_FIGURES"  # set to 1 by the build of a page
FONT = "DejaVu Sans"  # comes with matplotlib: the same on every machine
STYLE = {
    "font.family": FONT,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": "#DDDDDD",
    "legend.frameon": False,
    # White on purpose: a transparent figure cannot be read on JupyterLab's dark theme.
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
}


def png(figure: Any) -> bytes:
    """``figure`` as PNG; equal figures give equal bytes (no date, no software version)."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Any) -> str:
    """``figure`` as SVG, letters as outlines; equal figures give equal text."""
    import matplotlib

    buffer = io.StringIO()
    dull = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "relay-workbook"}):
        figure.savefig(buffer, format="svg", facecolor="white", metadata=dull)
    return buffer.getvalue()


def pictures(figure: Any) -> dict[str, str]:
    """``figure`` by MIME type, for a notebook's output: PNG, and SVG where the build asks for it.

    The build of a page takes the SVG out of the output and keeps it in a file for the book.
    """
    found = {"image/png": base64.b64encode(png(figure)).decode("ascii")}
    if os.environ.get(VECTOR) == "1":
        found["image/svg+xml"] = svg(figure)
    return found


def image(data: bytes, alt: str) -> str:
    """A PNG as an ``<img>`` with alt text, no wider than the page."""
    return (
        f'<img alt="{html.escape(alt, quote=True)}" style="max-width: 100%; height: auto" '
        f'src="data:image/png;base64,{base64.b64encode(data).decode("ascii")}">'
    )


def folded(summary: str, text: str) -> str:
    """A text as HTML that opens when its summary is pressed."""
    return f"<details><summary>{html.escape(summary)}</summary>{html.escape(text)}</details>"


def show(figure: Any, alt: str) -> None:
    """Show ``figure`` in the notebook with ``alt``, the sentence that says what is to be seen.

    The alt text is the output's plain text (which a test run compares: images are not compared)
    and the image's ``alt`` metadata. JupyterLab gives a PNG no alt text: to it the figure goes as
    HTML, too, which the build does not store. The sentence also follows as a folded description
    that everyone can open. Outside a notebook it is printed. Raises :class:`WorkbookError` when
    ``alt`` is empty.
    """
    if not hasattr(figure, "savefig"):
        raise WorkbookError(f"A matplotlib figure is needed here, not {type(figure).__name__}.")
    alt = " ".join(alt.split()) if isinstance(alt, str) else ""
    if not alt:
        raise WorkbookError("A figure needs its alt text: say in one sentence what is to be seen.")
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        print(alt)
    else:
        made = pictures(figure)
        shown = image(base64.b64decode(made["image/png"]), alt)
        display(
            {**made, "text/html": shown, "text/plain": alt},
            metadata={"image/png": {"alt": alt}},
            raw=True,
        )
        description = folded("The figure in words", alt)
        display({"text/html": description, "text/plain": alt}, raw=True)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)


# --- bars ---


def bars(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    ranges: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    unit: str = "",
    title: str = "",
    form: str = "{:,.4g}",
    colours: Mapping[str, str] | None = None,
    reference: float | None = None,
    log: bool = False,
) -> Any:
    """Grouped horizontal bars, each with its value written at its end; a matplotlib ``Figure``.

    ``series`` maps a name to one number per label; ``ranges`` maps it to (low, high) whiskers.
    ``unit`` names the axis, ``form`` formats a value, ``reference`` draws a line (1 for ratios); on
    a ``log`` axis the bars start there, so a length shows how far a ratio is from 1 on either side.
    """
    import matplotlib
    from matplotlib.figure import Figure

    for name, values in series.items():
        if len(values) != len(labels):
            raise WorkbookError(
                f"The series {name!r} has {len(values)} values for {len(labels)} labels: "
                "give one value per label."
            )
    thick = 0.8 / max(1, len(series))
    rows = len(labels) * max(1.5, len(series))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8, 1.1 + 0.3 * rows + 0.3 * bool(title)), layout="constrained")
        axes = figure.add_subplot()
        ends: list[float] = []
        for k, (name, values) in enumerate(series.items()):
            where = [i + (k - (len(series) - 1) / 2) * thick for i in range(len(labels))]
            colour = (colours or {}).get(name, SERIES[k % len(SERIES)])
            start = reference if log and reference else 0
            lengths = [value - start for value in values]
            axes.barh(where, lengths, thick * 0.92, left=start, color=colour, label=name)
            spans = (ranges or {}).get(name) or [(value, value) for value in values]
            for y, value, (low, high) in zip(where, values, spans, strict=True):
                if low != high:
                    axes.plot([low, high], [y, y], color=BLACK, linewidth=1.5, marker="|")
                leftward = value < start
                end = min(value, low) if leftward else max(value, high)
                ends.append(end)
                axes.annotate(
                    form.format(value),
                    (end, y),
                    xytext=(-5 if leftward else 5, 0),
                    textcoords="offset points",
                    ha="right" if leftward else "left",
                    va="center",
                    fontsize=10,
                )
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)  # the first label on top
        axes.tick_params(axis="y", length=0)
        if log:
            numbers = [form.format(value) for values in series.values() for value in values]
            room = max(_text_size(number, 10)[0] for number in numbers) + 0.25
            names = max(_text_size(label, 11)[0] for label in labels)
            _log_axis(axes, ends, reference, room / max(1.0, 7.6 - names))
        else:
            axes.set_xlim(0, max([*ends, 0.0]) * 1.15 or 1)
        if reference is not None:
            axes.axvline(reference, color=BLACK, linewidth=1, linestyle="--")
        axes.set_xlabel(unit)
        axes.set_title(title, loc="left")
        if len(series) > 1:
            figure.legend(loc="outside lower center", ncols=min(4, len(series)))
    return figure


def _log_axis(axes: Any, ends: Sequence[float], reference: float | None, room: float) -> None:
    """A logarithmic axis for bars with these ends; ``room`` is a number's share of its length.

    It begins at the reference where no bar goes to the left of that. All ticks are written the
    same way, and there are ticks between the powers of ten where these are few.
    """
    from matplotlib.ticker import LogFormatterMathtext, LogLocator, NullFormatter

    low, high = math.log10(min(ends)), math.log10(max(ends))
    if reference is None:
        low -= 0.5  # the shortest bar is a bar, too
        left, right = 0.0, room
    else:
        start = math.log10(reference)
        left, right = (room if beyond else 0.01 for beyond in (low < start, high > start))
        low, high = min(low, start), max(high, start)
    span = max(high - low, 0.1) / (1 - min(left + right, 0.8))
    low, high = low - left * span, high + right * span
    axes.set_xscale("log")
    axes.set_xlim(10**low, 10**high)
    plain = high < 5 and low > -4
    fine = high - low < 2
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if fine else (1,), numticks=20))
    axes.xaxis.set_major_formatter("{x:g}" if plain else LogFormatterMathtext())
    axes.xaxis.set_minor_formatter(NullFormatter())


def matrix(
    rows: Sequence[str],
    columns: Sequence[str],
    filled: Sequence[Sequence[bool]],
    *,
    mark: str = "",
    row_title: str = "",
    column_title: str = "",
    title: str = "",
) -> Any:
    """A yes-or-no table as a matplotlib ``Figure``: dark fields, with ``mark`` in them, mean yes.

    ``filled`` holds one row of truth values per entry of ``rows``, one value per column. Names of
    columns are broken at underscores. Raises :class:`WorkbookError` when the sizes do not match.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if not rows or not columns:
        raise WorkbookError("A matrix needs a row and a column at least.")
    if len(filled) != len(rows) or any(len(row) != len(columns) for row in filled):
        raise WorkbookError(
            f"A matrix of {len(rows)} rows and {len(columns)} columns needs one list per row, "
            "with one value per column."
        )
    left = max(_text_size(name, DETAIL_SIZE)[0] for name in rows) + 0.7
    names = [name.replace("_", "_\n") for name in columns]
    deep = max(name.count("\n") for name in names)
    longest = max(_text_size(line, DETAIL_SIZE)[0] for name in names for line in name.split("\n"))
    wide = max(0.5, longest + 0.15)
    height = 0.4 * len(rows) + 0.8 + 0.17 * deep + 0.3 * bool(title)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(left + wide * len(columns), height), layout="constrained")
        axes = figure.add_subplot(xlabel=column_title, ylabel=row_title)
        axes.grid(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        shades = [[float(bool(value)) for value in row] for row in filled]
        colours = matplotlib.colors.ListedColormap([tint(GREY, 0.2), BLUE])
        axes.pcolormesh(shades, cmap=colours, vmin=0, vmax=1, edgecolors="white", linewidth=2)
        for i, row in enumerate(filled):
            for j, value in enumerate(row):
                if value and mark:
                    place = {"ha": "center", "va": "center"}
                    axes.text(j + 0.5, i + 0.5, mark, place, color="white", weight="bold")
        axes.set_xticks([j + 0.5 for j in range(len(columns))], names, fontsize=DETAIL_SIZE)
        axes.set_yticks([i + 0.5 for i in range(len(rows))], rows, fontsize=DETAIL_SIZE)
        axes.tick_params(length=0)
        axes.invert_yaxis()  # the first row on top
        axes.set_title(title, loc="left")
    return figure


def multiples(
    rows: Sequence[str],
    columns: Mapping[str, Sequence[float | None]],
    *,
    title: str = "",
    form: str = "{:,.4g}",
) -> Any:
    """Small multiples of bars over time, as a matplotlib ``Figure``: states down, measures across.

    ``columns`` maps a measure to one value per row, ``None`` where it is not known. A bar is strong
    where the value differs from that of the row above, and pale where it is the same. Raises
    :class:`WorkbookError` when the sizes do not match.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if not rows or not columns or any(len(column) != len(rows) for column in columns.values()):
        raise WorkbookError("Small multiples need rows, columns, and one value per row in each.")
    left = max(_text_size(row, DETAIL_SIZE)[0] for row in rows) + 0.2
    wide, height = 1.75, 0.27 * len(rows) + 0.75 + 0.35 * bool(title)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(left + wide * len(columns), height), layout="constrained")
        many = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, (name, values) in zip(many, columns.items(), strict=True):
            most = max([value for value in values if value is not None], default=0) or 1
            for k, value in enumerate(values):
                new = k == 0 or value != values[k - 1]
                shade = BEFORE if k == 0 else AFTER if new else tint(AFTER, 0.3)
                axes.barh(k, value or 0, 0.74, color=shade)
                axes.annotate(
                    "?" if value is None else form.format(value),
                    (value or 0, k),
                    xytext=(3, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=DETAIL_SIZE,
                    color=BLACK if new else GREY,
                )
            axes.set_xlim(0, most * 1.65)
            axes.set_title(name, fontsize=LABEL_SIZE, loc="left")
            axes.set_xticks([])
            axes.tick_params(axis="y", length=0, labelsize=DETAIL_SIZE)
            axes.spines["bottom"].set_visible(False)
        many[0].set_yticks(range(len(rows)), rows)
        many[0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=12, weight="bold")
    return figure


# --- layered graphs ---

LAYER_GAP, SIDE_GAP, WIRE = 0.34, 0.3, 0.16  # inches
LABEL_SIZE, DETAIL_SIZE = 11, 10  # points
PAD = 0.09
COLUMN_GAP = 0.7
FRAME_LABEL = 0.45  # kept free beside a frame, where no wire passes


@dataclass(frozen=True)
class Box:
    """A node to draw: title lines, detail lines, a key of ``PATTERN_COLOURS``, a group.

    A ``mark`` is a word in front of the details, and gives the box a thick outline.
    """

    title: tuple[str, ...]
    details: tuple[str, ...] = ()
    kind: str = "OPAQUE"
    group: int | None = None
    mark: str = ""

    @property
    def lines(self) -> list[tuple[str, float, bool]]:
        """(text, size in points, bold) of each line."""
        lines = [(line, LABEL_SIZE, True) for line in self.title]
        lines += [(self.mark.upper(), DETAIL_SIZE, True)] * bool(self.mark)
        return [*lines, *((line, DETAIL_SIZE, False) for line in self.details)]


@dataclass(frozen=True)
class Frame:
    """A dashed frame around boxes (their positions in the list), with a label such as ``× 3``."""

    members: tuple[int, ...]
    label: str


@dataclass(frozen=True)
class Layout:
    """Where things are, in inches, y downwards: box centres and sizes, wires as point lists.

    A wire runs straight up or down beside boxes; sideways only in the space between layers.
    ``bends`` are the wires that go on in a next column.
    """

    boxes: list[tuple[float, float, float, float]]
    wires: dict[tuple[int, int], list[tuple[float, float]]]
    frames: list[tuple[float, float, float, float]]
    width: float
    height: float
    bends: frozenset[tuple[int, int]] = field(default_factory=frozenset)


def _text_size(line: str, size: float, bold: bool = False) -> tuple[float, float]:
    """(width, height) of a line of text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(line, font, ismath=False)
    return width / 72, size * 1.25 / 72


def _box_size(box: Box) -> tuple[float, float]:
    sizes = [_text_size(*line) for line in box.lines]
    return max(w for w, _ in sizes) + 2.4 * PAD, sum(h for _, h in sizes) + 2 * PAD


def _layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[list[tuple[int, ...]]]:
    """The layers, top to bottom, each from left to right.

    An entry ``(box,)`` is a box, ``(source, target, layer)`` a point of an arrow that passes
    through. Layers and few crossings come from grandalf's Sugiyama layout.
    """
    from grandalf.graphs import Edge, Graph, Vertex
    from grandalf.layouts import SugiyamaLayout, VertexViewer

    # grandalf iterates over sets of both, and addresses, the default hash, differ from run to run.
    class NumberedVertex(Vertex):
        def __hash__(self) -> int:
            return hash(self.data)

    class NumberedEdge(Edge):
        def __hash__(self) -> int:
            return hash(self.data)

    vertices = [NumberedVertex(k) for k in range(count)]
    for vertex in vertices:
        vertex.view = VertexViewer(1, 1)
    pairs = dict.fromkeys(arrows)
    edges = [NumberedEdge(vertices[a], vertices[b], data=k) for k, (a, b) in enumerate(pairs)]
    layers: list[list[tuple[int, ...]]] = []
    for component in Graph(vertices, edges).C:
        layout = SugiyamaLayout(component)
        roots = [v for v in component.sV if not v.e_in()]
        layout.init_all(roots=roots, inverted_edges=[], optimize=True)
        for _ in range(8):
            for _ in layout.ordering_step():
                pass
        names = {
            dummy: (edge.v[0].data, edge.v[1].data, rank)
            for edge, points in layout.ctrls.items()
            for rank, dummy in points.items()
            if getattr(dummy, "dummy", 0)
        }
        for rank, layer in enumerate(layout.layers):
            if rank == len(layers):
                layers.append([])
            layers[rank].extend(names.get(v) or (v.data,) for v in layer)
    return [layer for layer in layers if layer]


def _across(
    layers: Sequence[Sequence[tuple[int, ...]]],
    sizes: Mapping[tuple[int, ...], float],
    segments: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
) -> dict[tuple[int, ...], float]:
    """The position of each entry across its layer: the straightest wires without any overlap.

    The linear program of Gansner and others, "A Technique for Drawing Directed Graphs" (1993),
    section 4: minimise the sum of weight * |difference| over wire segments, where neighbours in a
    layer keep their order and distance. A weaker term centres a box over its branches.
    """
    import numpy as np
    from scipy.optimize import linprog  # type: ignore[import-untyped]
    from scipy.sparse import coo_matrix  # type: ignore[import-untyped]

    entries = [entry for layer in layers for entry in layer]
    where = {entry: k for k, entry in enumerate(entries)}
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    terms: list[tuple[dict[int, float], float]] = []
    for a, b in segments:
        weight = (2.0, 1.0, 8.0)[(len(a) == 3) + (len(b) == 3)]  # box-box, box-point, point-point
        terms.append(({where[a]: 1.0, where[b]: -1.0}, weight))
        after.setdefault(where[a], []).append(where[b])
        before.setdefault(where[b], []).append(where[a])
    for table in (after, before):
        for k, others in table.items():
            if len(others) > 1:
                mean = {other: -1.0 / len(others) for other in others}
                terms.append(({k: 1.0, **mean}, 0.4))
    rows: list[tuple[dict[int, float], float]] = []
    n = len(entries)
    for k, (term, _) in enumerate(terms):  # difference <= slack, and -difference <= slack
        rows.append(({**term, n + k: -1.0}, 0.0))
        rows.append(({**{i: -v for i, v in term.items()}, n + k: -1.0}, 0.0))
    for layer in layers:
        for left, right in pairwise(layer):
            gap = (sizes[left] + sizes[right]) / 2 + SIDE_GAP
            rows.append(({where[left]: 1.0, where[right]: -1.0}, -gap))
    if not rows:
        return {entry: sizes[entry] / 2 for entry in entries}
    data = [(r, c, v) for r, (row, _) in enumerate(rows) for c, v in row.items()]
    matrix = coo_matrix(
        ([v for _, _, v in data], ([r for r, _, _ in data], [c for _, c, _ in data])),
        shape=(len(rows), n + len(terms)),
    )
    cost = np.concatenate([np.full(n, 1e-6), [weight for _, weight in terms]])
    low = [sizes[entry] / 2 for entry in entries] + [0.0] * len(terms)
    answer = linprog(
        cost,
        A_ub=matrix.tocsr(),
        b_ub=[bound for _, bound in rows],
        bounds=[(value, None) for value in low],
        method="highs",
    )
    return {entry: float(answer.x[k]) for entry, k in where.items()}


def _columns(
    layers: Sequence[Sequence[tuple[int, ...]]],
    lengths: Sequence[float],
    arrows: Sequence[tuple[int, int]],
    together: Sequence[Sequence[int]],
    limit: float,
    most: int,
) -> list[tuple[int, int]]:
    """Ranges of layers, one a column, at most ``most``, each about ``limit`` long.

    A column ends only behind a box whose result is all that goes on, and no frame is cut.
    """
    rank = {entry[0]: k for k, layer in enumerate(layers) for entry in layer if len(entry) == 1}
    sources: list[set[int]] = [set() for _ in layers]
    for a, b in arrows:
        for k in range(rank[a], rank[b]):
            sources[k].add(a)
    whole = [False] * len(layers)
    for members in together:
        ranks = [rank[m] for m in members]
        for k in range(min(ranks), max(ranks)):
            whole[k] = True
    breaks = [
        k
        for k in range(len(layers) - 1)
        if not whole[k] and len(sources[k]) == 1 and rank[next(iter(sources[k]))] == k
    ]
    total = sum(lengths)
    wanted = 1 if total <= 1.25 * limit else min(most, math.ceil(total / limit))
    chosen: list[int] = []
    done = [sum(lengths[: k + 1]) for k in range(len(layers))]
    for part in range(1, wanted):
        free = [k for k in breaks if not chosen or k > chosen[-1]]
        if free:
            chosen.append(min(free, key=lambda k: abs(done[k] - total * part / wanted)))
    starts = [0, *(k + 1 for k in chosen)]
    return list(zip(starts, [*starts[1:], len(layers)], strict=True))


def place(
    sizes: Sequence[tuple[float, float]],
    arrows: Sequence[tuple[int, int]],
    frames: Sequence[Sequence[int]] = (),
    together: Sequence[Sequence[int]] = (),
    *,
    limit: float = 9.5,
    breadth: float = 13.5,
    margins: Sequence[float] | None = None,
) -> Layout:
    """Place boxes of the given (width, height), in inches, in layers from top to bottom.

    ``arrows`` go from earlier to later boxes. No two boxes overlap and no wire runs through a box.
    A drawing much longer than ``limit`` inches goes on in a next column, where that is possible
    and the columns together stay within about ``breadth`` inches.
    ``together`` names boxes that one column must hold; ``margins`` keeps space left of a box.
    """
    margin = list(margins or [0.0] * len(sizes))
    layers = _layers(len(sizes), arrows)
    rank = {entry[0]: k for k, layer in enumerate(layers) for entry in layer if len(entry) == 1}
    first = [min(rank[m] for m in members) for members in frames]
    last = [max(rank[m] for m in members) for members in frames]
    depth = [max(sizes[e[0]][1] for e in layer if len(e) == 1) for layer in layers]
    lead = [LAYER_GAP + 0.1 * first.count(k) + 0.1 * last.count(k - 1) for k in range(len(layers))]
    lengths = [gap + size for gap, size in zip(lead, depth, strict=True)]
    broad = {
        entry: (sizes[entry[0]][0] + 2 * margin[entry[0]] if len(entry) == 1 else WIRE)
        for layer in layers
        for entry in layer
    }
    widest = max(sum(broad[e] + SIDE_GAP for e in layer) for layer in layers)
    most = max(1, int((breadth + COLUMN_GAP) / (widest + COLUMN_GAP)))
    columns = _columns(layers, lengths, arrows, [*frames, *together], limit, most)
    column_of = [c for c, (start, stop) in enumerate(columns) for _ in range(start, stop)]

    path: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for a, b in dict.fromkeys(arrows):
        between = [(a, b, k) for k in range(rank[a] + 1, rank[b])]
        path[a, b] = [(a,), *between, (b,)]
    level = {entry: k for k, layer in enumerate(layers) for entry in layer}
    x: dict[tuple[int, ...], float] = {}
    top = [0.0] * len(layers)
    shift = height = 0.0
    spans: list[tuple[float, float]] = []
    for start, stop in columns:
        segments = [
            (p, q)
            for entries in path.values()
            for p, q in pairwise(entries)
            if start <= level[p] and level[q] < stop
        ]
        part = _across(layers[start:stop], broad, segments)
        left = min(part[e] - broad[e] / 2 for e in part)
        right = max(part[e] + broad[e] / 2 for e in part)
        framed = any(start <= f < stop for f in first)
        inset = 0.15 if framed else 0.0
        beside = FRAME_LABEL if framed else 0.0
        for entry, value in part.items():
            x[entry] = value - left + shift + inset
        y = 0.0
        for k in range(start, stop):
            reach = [abs(part[p] - part[q]) for p, q in segments if level[q] == k]
            extra = min(0.5, 0.05 * max(reach, default=0.0))
            y += (lead[k] if k > start else 0.1 * first.count(k)) + extra
            top[k] = y
            y += depth[k]
        height = max(height, y + 0.1 * last.count(stop - 1))
        spans.append((shift, shift + right - left + 2 * inset + beside))
        shift = spans[-1][1] + COLUMN_GAP

    def middle(entry: tuple[int, ...]) -> float:
        return top[level[entry]] + depth[level[entry]] / 2

    boxes = [(x[(k,)], middle((k,)), *sizes[k]) for k in range(len(sizes))]
    wires: dict[tuple[int, int], list[tuple[float, float]]] = {}
    bends = set()
    rise = 0.2
    for (a, b), entries in path.items():
        points = [(x[(a,)], boxes[a][1] + sizes[a][1] / 2)]
        for p, q in pairwise(entries):
            low, high = level[p], level[q]
            points.append((x[p], top[low] + depth[low]))
            if column_of[low] != column_of[high]:
                bends.add((a, b))
                gutter = spans[column_of[low]][1] + COLUMN_GAP / 2
                under = top[low] + depth[low] + rise + 0.1 * last.count(low)
                over = top[high] - rise - 0.1 * first.count(high)
                points += [(x[p], under), (gutter, under), (gutter, over), (x[q], over)]
                height = max(height, under)
            points.append((x[q], top[high]))
        points.append((x[(b,)], boxes[b][1] - sizes[b][1] / 2))
        wires[a, b] = [
            p
            for k, p in enumerate(points)
            if k == 0 or max(abs(p[0] - points[k - 1][0]), abs(p[1] - points[k - 1][1])) > 1e-6
        ]
    outlines = []
    for members, begin, end in zip(frames, first, last, strict=True):
        held = set(members)
        inner = [
            (x[e], broad[e])
            for k in range(begin, end + 1)
            for e in layers[k]
            if (e[0] in held if len(e) == 1 else e[1] in held)
        ]
        outlines.append(
            (
                min(c - w / 2 for c, w in inner) - 0.1,
                top[begin] - 0.12,
                max(c + w / 2 for c, w in inner) + 0.1,
                top[end] + depth[end] + 0.1,
            )
        )
    low_x = min([0.0, *(o[0] for o in outlines)])
    over_y = -rise - 0.1 if bends else 0.0
    return _moved(
        Layout(boxes, wires, outlines, shift - COLUMN_GAP, height, frozenset(bends)),
        -low_x,
        -over_y,
    )


def _moved(layout: Layout, dx: float, dy: float) -> Layout:
    return Layout(
        [(x + dx, y + dy, w, h) for x, y, w, h in layout.boxes],
        {key: [(x + dx, y + dy) for x, y in points] for key, points in layout.wires.items()},
        [(a + dx, b + dy, c + dx, d + dy) for a, b, c, d in layout.frames],
        layout.width + 2 * dx,
        layout.height + dy,
        layout.bends,
    )


def _turned(layout: Layout) -> Layout:
    """The layout from left to right instead of from top to bottom."""
    return Layout(
        [(y, x, h, w) for x, y, w, h in layout.boxes],
        {key: [(y, x) for x, y in points] for key, points in layout.wires.items()},
        [(b, a, d, c) for a, b, c, d in layout.frames],
        layout.height,
        layout.width,
        layout.bends,
    )


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """``colour`` mixed with white: 1 is the colour, 0 is white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue


@dataclass(frozen=True)
class Panel:
    """One of the drawings in a figure: boxes, arrows between their positions, frames, a heading."""

    boxes: Sequence[Box]
    arrows: Sequence[tuple[int, int]]
    frames: Sequence[Frame] = ()
    title: str = ""

    @property
    def grouped(self) -> dict[int, list[int]]:
        """The positions of the boxes of each group."""
        found: dict[int, list[int]] = {}
        for k, box in enumerate(self.boxes):
            if box.group is not None:
                found.setdefault(box.group, []).append(k)
        return found

    def place(self, down: bool, breadth: float) -> Layout:
        """Where things are; ``breadth`` in inches is how broad it should be at most."""
        sizes = [_box_size(box) for box in self.boxes]
        margins = [0.0] * len(self.boxes)
        for group, members in self.grouped.items():
            for k in members:
                margins[k] = 0.12
            room = _text_size(f"k{group}", DETAIL_SIZE, bold=True)[0] + 0.16
            margins[members[0]] = room if down else 0.3
        layout = place(
            [size if down else size[::-1] for size in sizes],
            self.arrows,
            [frame.members for frame in self.frames],
            list(self.grouped.values()),
            margins=margins,
            limit=9.5 if down else 10.0,
            breadth=breadth if down else 30.0,
        )
        return layout if down else _turned(layout)


def layered(
    boxes: Sequence[Box],
    arrows: Sequence[tuple[int, int]],
    frames: Sequence[Frame] = (),
    *,
    direction: str = "down",
    title: str = "",
) -> Any:
    """A layered drawing as a matplotlib ``Figure``, with a legend of the kinds that occur.

    Boxes of one ``group`` share a grey background, labelled k1, k2, ...
    """
    return side_by_side([Panel(boxes, arrows, frames)], direction=direction, title=title)


def side_by_side(
    panels: Sequence[Panel],
    *,
    direction: str = "down",
    title: str = "",
    breadth: float = math.inf,
) -> Any:
    """Layered drawings beside each other, with one legend, as a matplotlib ``Figure``.

    A drawing that would make the figure broader than ``breadth`` inches begins a new row. Raises
    :class:`WorkbookError` when there is nothing to draw.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if direction not in ("down", "right"):
        raise WorkbookError(f'direction is "down" or "right", not {direction!r}.')
    if not panels or not all(panel.boxes for panel in panels):
        raise WorkbookError("A drawing needs a box at least.")
    down = direction == "down"
    edge, gap = 0.2, 0.9
    layouts = [panel.place(down, 13.5 / len(panels)) for panel in panels]
    widths = [
        max(layout.width, _text_size(panel.title, 12, True)[0])
        for panel, layout in zip(panels, layouts, strict=True)
    ]
    lines: list[list[int]] = [[]]
    for k, wide in enumerate(widths):
        before = sum(widths[j] + gap for j in lines[-1])
        if lines[-1] and before + wide + 2 * edge > breadth:
            lines.append([])
        lines[-1].append(k)
    totals = [sum(widths[k] for k in line) + gap * (len(line) - 1) for line in lines]
    total = max(totals)
    head = 0.35 if title else 0.0
    heading = 0.4 if any(panel.title for panel in panels) else 0.0
    used = {box.kind for panel in panels for box in panel.boxes}
    rows, legend_width = _legend_rows([k for k in PATTERN_COLOURS if k in used], max(total, 4.0))
    width = max(total, legend_width, _text_size(title, 12, True)[0]) + 2 * edge
    talls = [max(layouts[k].height for k in line) + heading for line in lines]
    height = sum(talls) + 0.4 * (len(lines) - 1) + head + 0.28 * len(rows) + 0.15 + 2 * edge
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.axis("off")
        top = edge + head
        for line, across, tall in zip(lines, totals, talls, strict=True):
            left = (width - across) / 2
            for k in line:
                panel, wide = panels[k], widths[k]
                moved = _moved(layouts[k], left + (wide - layouts[k].width) / 2, top + heading)
                _draw_panel(axes, panel, moved, down)
                if panel.title:
                    style: dict[str, Any] = {
                        "fontsize": 12,
                        "weight": "bold",
                        "va": "center",
                        "ha": "center",
                    }
                    axes.text(left + wide / 2, top + 0.1, panel.title, **style)
                left += wide + gap
                if k != line[-1]:
                    axes.plot([left - gap / 2] * 2, [top, top + tall], "#DDDDDD")
            top += tall + 0.4
        _draw_legend(axes, rows, height - edge - 0.28 * len(rows), width)
        if title:
            axes.text(edge, edge + 0.1, title, fontsize=12, weight="bold", va="center")
    return figure


def _draw_panel(axes: Any, panel: Panel, layout: Layout, down: bool) -> None:
    _draw_groups(axes, layout, panel.grouped, down)
    _draw_frames(axes, layout, panel.frames, down)
    _draw_wires(axes, layout, down)
    for box, where in zip(panel.boxes, layout.boxes, strict=True):
        _draw_box(axes, box, where)


def _draw_box(axes: Any, box: Box, where: tuple[float, float, float, float]) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y, w, h = where
    colour = PATTERN_COLOURS[box.kind]
    round_ = min(w, h) / 2.2 if box.kind == "INPUT" else 0.08
    axes.add_patch(
        FancyBboxPatch(
            (x - w / 2, y - h / 2),
            w,
            h,
            boxstyle=f"round,pad=0,rounding_size={round_}",
            facecolor=tint(colour, 0.38),
            edgecolor=BLACK if box.mark else GREY if colour == "#FFFFFF" else colour,
            linewidth=3.0 if box.mark else 1.4,
            zorder=4,
        )
    )
    heights = [_text_size(*line)[1] for line in box.lines]
    top = y - sum(heights) / 2
    for (line, size, bold), tall in zip(box.lines, heights, strict=True):
        axes.text(
            x,
            top + tall / 2,
            line,
            ha="center",
            va="center_baseline",
            fontsize=size,
            weight="bold" if bold else "normal",
            color=BLACK if bold else "#333333",
            zorder=5,
        )
        top += tall


def _wire_path(points: Sequence[tuple[float, float]], down: bool) -> Any:
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(x0 - x1) < 1e-6 or abs(y0 - y1) < 1e-6:
            vertices.append((x1, y1))
            codes.append(Path.LINETO)
        else:  # leaves and arrives along the drawing's direction, so it stays between the layers
            half = ((y0 + y1) / 2) if down else ((x0 + x1) / 2)
            vertices += [(x0, half), (x1, half)] if down else [(half, y0), (half, y1)]
            vertices.append((x1, y1))
            codes += [Path.CURVE4] * 3
    return Path(vertices, codes)


def _draw_wires(axes: Any, layout: Layout, down: bool) -> None:
    from matplotlib.patches import FancyArrowPatch

    for points in layout.wires.values():
        axes.add_patch(
            FancyArrowPatch(
                path=_wire_path(points, down),
                arrowstyle="-|>,head_length=5,head_width=2.5",
                mutation_scale=1,
                linewidth=1.2,
                color="#444444",
                zorder=3,
                joinstyle="round",
            )
        )


def _draw_groups(
    axes: Any, layout: Layout, grouped: Mapping[int, Sequence[int]], down: bool
) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch

    colour = "#E2E2E2"
    for group, members in grouped.items():
        for k in members:
            x, y, w, h = layout.boxes[k]
            axes.add_patch(
                FancyBboxPatch(
                    (x - w / 2 - 0.09, y - h / 2 - 0.09),
                    w + 0.18,
                    h + 0.18,
                    boxstyle="round,pad=0,rounding_size=0.12",
                    facecolor=colour,
                    edgecolor="none",
                    zorder=1,
                )
            )
        for (a, b), points in layout.wires.items():
            if a in members and b in members:
                path = _wire_path(points, down)
                axes.add_patch(
                    PathPatch(path, fill=False, edgecolor=colour, linewidth=18, zorder=1)
                )
        x, y, w, h = layout.boxes[members[0]]
        spot = (x - w / 2 - 0.14, y) if down else (x, y - h / 2 - 0.18)
        axes.text(
            *spot,
            f"k{group}",
            ha="right" if down else "center",
            va="center",
            fontsize=DETAIL_SIZE,
            weight="bold",
            color="#333333",
            zorder=5,
        )


def _draw_frames(axes: Any, layout: Layout, frames: Sequence[Frame], down: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    for frame, (left, top, right, bottom) in zip(frames, layout.frames, strict=True):
        axes.add_patch(
            FancyBboxPatch(
                (left, top),
                right - left,
                bottom - top,
                boxstyle="round,pad=0,rounding_size=0.1",
                facecolor="none",
                edgecolor="#333333",
                linestyle="--",
                linewidth=1.2,
                zorder=2,
            )
        )
        axes.text(
            *((right + 0.08, (top + bottom) / 2) if down else ((left + right) / 2, bottom + 0.08)),
            frame.label,
            fontsize=LABEL_SIZE,
            weight="bold",
            ha="left" if down else "center",
            va="center" if down else "top",
        )


def _legend_rows(kinds: Sequence[str], width: float) -> tuple[list[list[tuple[float, str]]], float]:
    """Rows of (offset, kind) that fit ``width`` inches, and the widest row."""
    rows: list[list[tuple[float, str]]] = []
    used = widest = 0.0
    for kind in kinds:
        need = _text_size(PATTERN_NAMES[kind], DETAIL_SIZE)[0] + 0.5
        if not rows or used + need > width:
            rows.append([])
            used = 0.0
        rows[-1].append((used, kind))
        used += need
        widest = max(widest, used)
    return rows, widest


def _draw_legend(
    axes: Any, rows: Sequence[Sequence[tuple[float, str]]], top: float, width: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    for number, row in enumerate(rows):
        y = top + 0.28 * number + 0.14
        last_offset, last_kind = row[-1]
        used = last_offset + _text_size(PATTERN_NAMES[last_kind], DETAIL_SIZE)[0] + 0.3
        start = (width - used) / 2
        for offset, kind in row:
            colour = PATTERN_COLOURS[kind]
            axes.add_patch(
                FancyBboxPatch(
                    (start + offset, y - 0.07),
                    0.2,
                    0.14,
                    boxstyle="round,pad=0,rounding_size=0.04",
                    facecolor=tint(colour, 0.38),
                    edgecolor=GREY if colour == "#FFFFFF" else colour,
                )
            )
            axes.text(
                start + offset + 0.27,
                y,
                PATTERN_NAMES[kind],
                fontsize=DETAIL_SIZE,
                va="center_baseline",
            )
