"""Which executor, and which builds, for how many requests of which lengths.

    services = {"encoder": executor_chooser.any_length(static, dynamic, held, held_dynamic)}
    executor_chooser.explorer(services, {"short": lengths})

The seconds come from the model of lesson 12: each candidate's compilation, loading and first run,
and N inferences, whose time at any length is on a curve through the lengths that are given.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import ipywidgets
import numpy as np

from helpers import cost, plots
from helpers.cost import Bill
from helpers.errors import WorkbookError, whole_number
from helpers.measure import human
from helpers.widgets.frame import Shown, View, explore

REQUESTS = (*(digit * 10**power for power in range(7) for digit in (1, 3)), 10**7)
"""The numbers of requests on the slider."""

PARTS = ("compile", "load", "first run", "inferences")
COLOURS = {
    "padded": plots.PURPLE,
    "buckets": plots.BLUE,
    "dynamic": plots.ORANGE,
    **plots.EXECUTOR_COLOURS,
}
"""A candidate's colour: of its line, and of its inferences in a bar."""

STARTUP = dict(zip(PARTS, ("#555555", "#999999", "#CCCCCC"), strict=False))


# --- what a candidate costs ----------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """One way to serve: its builds, the seconds of all of them, the bytes that they hold.

    ``edges`` are the lengths that are built for, none where there is one build for all inputs.
    ``first`` is what the first runs take more than later ones, ``infer`` the mean inference.
    """

    edges: tuple[int, ...]
    compile: float
    load: float
    first: float
    infer: float
    held: float

    @property
    def builds(self) -> int:
        """How many builds there are."""
        return max(1, len(self.edges))

    def parts(self, n: int) -> dict[str, float]:
        """Seconds of ``n`` requests, by what they are spent on."""
        seconds = (self.compile, self.load, self.first, n * self.infer)
        return dict(zip(PARTS, seconds, strict=True))

    def total(self, n: int) -> float:
        """Seconds of ``n`` requests with all that comes before."""
        return sum(self.parts(n).values())


class Service:
    """A model, and the candidates that can serve it."""

    lengths_matter = True

    def candidates(
        self, lengths: Sequence[int], n: int, edges: Sequence[int] | None = None
    ) -> dict[str, Candidate]:
        """The candidates by name, for ``n`` requests whose lengths are spread like these.

        ``edges``: those of the buckets; the best ones by default.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class _OneLength(Service):
    bills: Mapping[str, Bill]
    held: Mapping[str, float]
    lengths_matter = False

    def candidates(
        self, lengths: Sequence[int], n: int, edges: Sequence[int] | None = None
    ) -> dict[str, Candidate]:
        return {
            name: Candidate(
                (), bill.compile, bill.load, _surplus(bill), bill.infer, self.held[name]
            )
            for name, bill in self.bills.items()
        }


def one_length(bills: Mapping[str, Bill], held: Mapping[str, float]) -> Service:
    """A model whose inputs always have one shape: a bill and the bytes held by each executor."""
    if not bills or bills.keys() != held.keys():
        raise WorkbookError("The bills and the bytes must be of the same executors, one or more.")
    return _OneLength(dict(bills), dict(held))


@dataclass(frozen=True)
class _Build:
    """What a build costs as a function of the length that it is made for, or run with."""

    bills: Mapping[int, Bill]
    held: Mapping[int, float]

    @cached_property
    def infer(self) -> cost.Curve:
        """Seconds of an inference: the curve through the lengths that are known."""
        return cost.curve(list(self.bills), [bill.infer for bill in self.bills.values()])

    def before(self, length: int) -> dict[str, float]:
        """Compile, load, first and held of one build, on lines between the known lengths."""
        known = sorted(self.bills)
        values = {
            "compile": [self.bills[k].compile for k in known],
            "load": [self.bills[k].load for k in known],
            "first": [_surplus(self.bills[k]) for k in known],
            "held": [self.held[k] for k in known],
        }
        return {name: float(np.interp(length, known, row)) for name, row in values.items()}

    def candidate(self, edges: Sequence[int], infer: float) -> Candidate:
        """All builds for these lengths together."""
        rows = [self.before(edge) for edge in edges]
        total = {name: sum(row[name] for row in rows) for name in rows[0]}
        return Candidate(edges=tuple(edges), infer=infer, **total)


@dataclass(frozen=True)
class _AnyLength(Service):
    static: _Build
    dynamic: _Build

    def candidates(
        self, lengths: Sequence[int], n: int, edges: Sequence[int] | None = None
    ) -> dict[str, Candidate]:
        n = whole_number(n, "n", 1)
        scale = len(lengths) / n  # as many requests as there are lengths, each build as much dearer

        def build(length: int) -> float:
            one = self.static.before(length)
            return (one["compile"] + one["load"] + one["first"]) * scale

        made = cost.policies(
            lengths, self.static.infer, self.dynamic.infer, build=build, edges=edges
        )
        infer = {name: policy.run_seconds / len(lengths) for name, policy in made.items()}
        found = {
            name: self.static.candidate(made[name].edges, infer[name])
            for name in ("padded", "buckets")
        }
        any_length = self.dynamic.candidate([max(self.dynamic.bills)], infer["dynamic"])
        return found | {"dynamic": replace(any_length, edges=())}


def any_length(
    static: Mapping[int, Bill],
    dynamic: Mapping[int, Bill],
    held: Mapping[int, float],
    held_dynamic: float,
) -> Service:
    """A model of any length: bills by length of static builds, and of one build for all of them.

    Candidates: ``padded`` (a static build for the longest request), ``buckets`` (the static builds
    that make the total smallest, see ``cost.best_edges``), ``dynamic``. ``held``: bytes of a static
    build by length. Raises :class:`WorkbookError` for fewer than three lengths.
    """
    if static.keys() != held.keys():
        raise WorkbookError("The bills and the bytes must be of the same lengths.")
    service = _AnyLength(
        _Build(dict(static), dict(held)),
        _Build(dict(dynamic), dict.fromkeys(dynamic, held_dynamic)),
    )
    _ = service.static.infer, service.dynamic.infer  # complains about too few lengths
    return service


def bills(names: Iterable[Any], compile: float, infer: Iterable[float]) -> dict[Any, Bill]:
    """Bills by name (a length, an executor) of round numbers.

    Loading takes 5 ms, and the first run as long as the others.
    """
    return {k: Bill(compile, 0.005, t, t) for k, t in zip(names, infer, strict=True)}


def bill(compiled: Any, infer: float) -> Bill:
    """The bill of a ``Compiled`` that has run once, with a measured inference."""
    times = compiled.times
    if "first_run" not in times:
        raise WorkbookError("This model has not run yet, so that its first run is not known.")
    return Bill(times["compile"], times["load"], max(times["first_run"], infer), infer)


def _surplus(bill: Bill) -> float:
    return max(0.0, bill.first - bill.infer)


# --- the choice ----------------------------------------------------------------------------------


def chosen(candidates: Mapping[str, Candidate], n: int, weight: float) -> list[cost.Choice]:
    """The candidates, E* first: T is the total of ``n`` requests, F the bytes held over the most.

    See ``cost.choose``.
    """
    most = max(one.held for one in candidates.values())
    return cost.choose(
        {name: one.total(n) for name, one in candidates.items()},
        {name: one.held / most for name, one in candidates.items()},
        weight,
    )


def changes(
    service: Service, lengths: Sequence[int], most: int = REQUESTS[-1]
) -> list[tuple[int, str]]:
    """The candidate with the smallest total: (from which N on, its name), up to N = ``most``.

    Between the numbers of ``REQUESTS`` a change is found by bisection, so that of two changes
    between neighbours of them only one is seen.
    """

    @cache
    def cheapest(n: int) -> str:
        found = service.candidates(lengths, n)
        return min(found, key=lambda name: found[name].total(n))

    result = [(1, cheapest(1))]
    grid = [n for n in REQUESTS if n < most] + [most]
    for low, high in pairwise(grid):
        if cheapest(high) == result[-1][1]:
            continue
        wanted = cheapest(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if cheapest(middle) == wanted else (middle, high)
        result.append((high, wanted))
    return result


@dataclass(frozen=True)
class State:
    """What is shown: candidates and choice at ``n``, totals at all N, where the cheapest changes.

    ``measured`` are the candidates by measured seconds, where there are some.
    """

    n: int
    candidates: Mapping[str, Candidate]
    ranked: Sequence[cost.Choice]
    totals: Mapping[str, Sequence[float]]
    changes: Sequence[tuple[int, str]]
    measured: Mapping[str, Candidate]

    @property
    def best(self) -> str:
        """The name of E*."""
        return self.ranked[0].executor

    def ranges(self) -> str:
        """Which candidate is the cheapest for which N, in words."""
        said = []
        for place, (start, name) in enumerate(self.changes):
            end = self.changes[place + 1][0] - 1 if place + 1 < len(self.changes) else None
            reach = f"up to N = {end:,}" if end else f"from N = {start:,} on"
            if len(self.changes) == 1:
                reach = "for each N"
            elif place and end:
                reach = f"from {start:,} to {end:,}"
            said.append(f"{name} {reach}")
        return ", ".join(said)


class Chooser:
    """The states of an explorer; what does not depend on the weight is computed once."""

    def __init__(
        self,
        services: Mapping[str, Service],
        traffic: Mapping[str, Sequence[int]],
        measured: Mapping[str, Service],
    ) -> None:
        if not services or not traffic:
            raise WorkbookError("A chooser needs a service and a traffic at least.")
        self.services, self.measured = services, measured
        self.traffic = {name: [int(one) for one in lengths] for name, lengths in traffic.items()}
        for model, service in services.items():
            for kind in traffic if service.lengths_matter else list(traffic)[:1]:
                self._fixed(model, kind)

    @cache  # noqa: B019 (as long as the explorer)
    def _fixed(self, model: str, kind: str) -> tuple[Any, ...]:
        service, lengths = self.services[model], self.traffic[kind]
        by_n = {n: service.candidates(lengths, n) for n in REQUESTS}
        names = by_n[1]
        totals = {name: [by_n[n][name].total(n) for n in REQUESTS] for name in names}
        known = self.measured.get(model)
        points: dict[int, Mapping[str, Candidate]] = {n: {} for n in REQUESTS}
        if known:  # the same builds, so that prediction and measurement are of one thing
            for n, found in by_n.items():
                edges = found["buckets"].edges if service.lengths_matter else None
                points[n] = known.candidates(lengths, n, edges)
        return by_n, totals, changes(service, lengths), points

    def state(self, model: str, kind: str, n: int, weight: float) -> State:
        """The state of a model and a traffic, for ``n`` (one of ``REQUESTS``) and a weight."""
        if not self.services[model].lengths_matter:
            kind = next(iter(self.traffic))
        by_n, totals, found, points = self._fixed(model, kind)
        ranked = chosen(by_n[n], n, weight)
        return State(n, by_n[n], ranked, totals, found, points[n])


def words(model: str, kind: str, weight: float, state: State, lengths_matter: bool) -> str:
    """E*, the totals, and where the cheapest changes."""
    spread = f"lengths {kind}" if lengths_matter else "always one length"
    lines = [
        f"E* = {state.best} for {model}, {spread}, N = {state.n:,}, λ = {weight:g} "
        f"(score {state.ranked[0].score:.3g}; "
        + ", ".join(f"{one.executor} {one.score:.3g}" for one in state.ranked[1:])
        + ")."
    ]
    for name, one in state.candidates.items():
        parts = ", ".join(f"{part} {_seconds(value)}" for part, value in one.parts(state.n).items())
        text = f"{name}: {_seconds(one.total(state.n))} ({parts}), {_builds(one)}"
        if name in state.measured:
            text += f", measured {_seconds(state.measured[name].total(state.n))}"
        lines.append(f"{text}, {_megabytes(one.held)}.")
    lines.append(f"By time alone: {state.ranges()}.")
    return "\n".join(lines)


def _seconds(seconds: float) -> str:
    if not seconds:
        return "0 s"
    return f"{seconds:,.0f} s" if seconds >= 100 else human(seconds)


def _builds(one: Candidate) -> str:
    return f"{one.builds} build{'' if one.builds == 1 else 's'}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2g} MB"


# --- the explorer --------------------------------------------------------------------------------


def explorer(
    services: Mapping[str, Service],
    traffic: Mapping[str, Sequence[int]],
    measured: Mapping[str, Service] | None = None,
    *,
    n: int = 300,
    weight: float = 0.9,
) -> Shown:
    """Choose among the candidates of ``services``, for requests whose lengths are those given.

    ``measured`` has services of the same names with measured seconds: drawn as points, with a
    kernel only, since they differ from run to run. ``n`` (one of ``REQUESTS``) and ``weight`` are
    what is shown at first.
    """
    chooser = Chooser(services, traffic, measured or {})
    wide = {"description_width": "initial"}
    model = ipywidgets.Dropdown(options=list(services), description="Model", style=wide)
    kind = ipywidgets.Dropdown(options=list(traffic), description="Lengths", style=wide)
    requests = ipywidgets.SelectionSlider(
        options=[(f"{k:,}", k) for k in REQUESTS],
        value=n,
        description="N, requests",
        style=wide,
        layout={"width": "28em", "max_width": "100%"},
    )
    share = ipywidgets.FloatSlider(
        value=weight,
        min=0,
        max=1,
        step=0.05,
        description="λ, weight of the time",
        style=wide,
        layout={"width": "28em", "max_width": "100%"},
    )

    def view(model: str, kind: str, requests: int, share: float) -> View:
        state = chooser.state(model, kind, requests, share)
        matter = services[model].lengths_matter
        return View(picture(state), words(model, kind, share, state, matter))

    first = next(iter(services)), next(iter(traffic))
    return explore(
        {"model": model, "kind": kind, "requests": requests, "share": share},
        view,
        static=figure(chooser, *first),
        alt=alt_text(chooser, *first),
        rows=[[model, kind], [requests, share]],
    )


# --- the picture, as SVG -------------------------------------------------------------------------

_WIDTH, _HEIGHT = 900, 300
_BAR_LEFT, _BAR_RIGHT = 70, 400  # what is drawn of the bars
_LINE_LEFT, _LINE_RIGHT = 555, 880
_TOP, _BOTTOM = 34, 252


def picture(state: State) -> str:
    """Bars of the totals at N, and lines of the totals over N, as one SVG on white."""
    parts = [*_bars(state), *_lines(state), *_legend(state)]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Totals of the candidates: '
        'the text above has the numbers" font-family="sans-serif" font-size="12" fill="black" '
        f'style="width: 100%; max-width: {_WIDTH}px; background: white">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, **attributes: Any) -> str:
    given = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{given}>{html.escape(text)}</text>'


def _bars(state: State) -> list[str]:
    totals = {name: one.total(state.n) for name, one in state.candidates.items()}
    points = {name: state.measured[name].total(state.n) for name in state.measured}
    longest = max([*totals.values(), *points.values()])
    scale = (_BAR_RIGHT - _BAR_LEFT - 60) / longest
    step = (_BOTTOM - _TOP) / len(totals)
    drawn = [_text(8, 18, f"Seconds of {state.n:,} requests", font_weight="bold")]
    for place, (name, one) in enumerate(state.candidates.items()):
        y, thick, x = _TOP + (place + 0.2) * step, 0.5 * step, float(_BAR_LEFT)
        best = name == state.best
        drawn.append(
            _text(
                _BAR_LEFT - 6,
                y + thick / 2 + 4,
                name,
                text_anchor="end",
                font_weight="bold" if best else "normal",
            )
        )
        for part, seconds in one.parts(state.n).items():
            wide = seconds * scale
            colour = STARTUP.get(part, COLOURS[name])
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.2f}" height="{thick:.1f}" '
                f'fill="{colour}"><title>{name}, {part}: {_seconds(seconds)}</title></rect>'
            )
            x += wide
        label = _seconds(totals[name]) + ("  = E*" if best else "")
        weight = "bold" if best else "normal"
        # The bar's own number stands at its end, or behind a point that would lie on it.
        point = _BAR_LEFT + points.get(name, 0) * scale
        covered = x - 6 < point < x + 12 + 7 * len(label)
        end = point + 12 if covered else x + 6
        drawn.append(_text(end, y + thick / 2 + 4, label, font_weight=weight))
        if best:
            drawn.append(
                f'<rect x="{_BAR_LEFT}" y="{y:.1f}" width="{max(x - _BAR_LEFT, 1):.1f}" '
                f'height="{thick:.1f}" fill="none" stroke="black" stroke-width="2"/>'
            )
        if name in points:
            title = f"{name}, measured: {_seconds(points[name])}"
            drawn.append(_diamond(point, y + thick / 2, "white", title))
    return drawn


def _diamond(x: float, y: float, fill: str, title: str) -> str:
    return (
        f'<path d="M{x - 6:.1f} {y:.1f}l6 -6l6 6l-6 6z" fill="{fill}" stroke="black" '
        f'stroke-width="2"><title>{html.escape(title)}</title></path>'
    )


def _lines(state: State) -> list[str]:
    values = [value for row in state.totals.values() for value in row]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    last = math.log10(REQUESTS[-1])

    def at(n: float, seconds: float) -> tuple[float, float]:
        return (
            _LINE_LEFT + math.log10(n) / last * (_LINE_RIGHT - _LINE_LEFT),
            _BOTTOM - (math.log10(seconds) - low) / (high - low) * (_BOTTOM - _TOP),
        )

    drawn = [_text(_LINE_LEFT - 80, 18, "Seconds against N, both logarithmic", font_weight="bold")]
    for power in range(low, high + 1):
        _, y = at(1, 10.0**power)
        drawn.append(f'<path d="M{_LINE_LEFT} {y:.1f}H{_LINE_RIGHT}" stroke="#DDDDDD"/>')
        drawn.append(_text(_LINE_LEFT - 6, y + 4, _seconds(10.0**power), text_anchor="end"))
    for power in range(0, round(last) + 1):
        x, _ = at(10**power, 10.0**low)
        drawn.append(_text(x, _BOTTOM + 16, _short(10**power), text_anchor="middle"))
    x, _ = at(state.n, 10.0**low)
    drawn.append(
        f'<path d="M{x:.1f} {_TOP}V{_BOTTOM}" stroke="black" stroke-dasharray="4 3">'
        f"<title>N = {state.n:,}</title></path>"
    )
    for name, row in state.totals.items():
        path = "L".join("{:.1f} {:.1f}".format(*at(*p)) for p in zip(REQUESTS, row, strict=True))
        drawn.append(
            f'<path d="M{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2.5">'
            f"<title>{name}</title></path>"
        )
    for start, name in state.changes[1:]:
        seconds = _between(state.totals[name], start)
        x, y = at(start, seconds)
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"><title>from N = {start:,} on {name} is the '
            "cheapest</title></circle>"
        )
        drawn.append(_text(x + 8, y + 14, f"N = {start:,}"))
    for name, one in state.measured.items():
        title = f"{name}, measured: {_seconds(one.total(state.n))}"
        drawn.append(_diamond(*at(state.n, one.total(state.n)), COLOURS[name], title))
    return drawn


def _between(row: Sequence[float], n: int) -> float:
    """The total at ``n`` on the line that is drawn, which is straight between the numbers."""
    return float(np.exp(np.interp(np.log(n), np.log(REQUESTS), np.log(row))))


def _short(n: int) -> str:
    return {10**6: "1M", 10**7: "10M"}.get(n, f"{n // 1000}k" if n >= 1000 else str(n))


def _legend(state: State) -> list[str]:
    drawn, x, y = [], 8.0, _HEIGHT - 10
    keys = [(part, STARTUP[part]) for part in PARTS[:-1]]
    keys += [(f"{name}: inferences, line", COLOURS[name]) for name in state.candidates]
    for label, colour in keys:
        drawn.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        drawn.append(_text(x + 16, y, label))
        x += 34 + 6.2 * len(label)
    if state.measured:
        drawn += [_diamond(x + 6, y - 4, "white", "measured"), _text(x + 18, y, "measured")]
    return drawn


# --- the static form -----------------------------------------------------------------------------

_SHOWN = (300, 3_000, 300_000)
WEIGHTS = tuple(k / 20 for k in range(21))
"""The weights on the slider."""


def bands(chooser: Chooser, model: str, kind: str, n: int) -> list[tuple[str, float, float]]:
    """E* over the weights, as (name, from this weight, to that one)."""
    found: list[tuple[str, float, float]] = []
    for weight in WEIGHTS:
        best = chooser.state(model, kind, n, weight).best
        low = found.pop()[1] if found and found[-1][0] == best else weight
        found.append((best, low, weight))
    return found


def alt_text(chooser: Chooser, model: str, kind: str) -> str:
    """What :func:`figure` shows, made of the same data."""
    said = [f"{model}, lengths {kind}."]
    for n in _SHOWN:
        state = chooser.state(model, kind, n, 1)
        totals = [
            f"{name} {_seconds(one.total(n))} with {_builds(one)}"
            for name, one in state.candidates.items()
        ]
        choice = [
            f"{name} for λ = {low:g}" + (f" to {high:g}" if high > low else "")
            for name, low, high in bands(chooser, model, kind, n)
        ]
        said.append(f"{n:,} requests take: {', '.join(totals)}; E* is {', '.join(choice)}.")
    said.append(f"By time alone the cheapest is {state.ranges()}.")
    return " ".join(said)


def figure(chooser: Chooser, model: str, kind: str) -> Any:
    """Bars at three N, the totals over N with the break-even points, and E* over N and λ."""
    import matplotlib
    from matplotlib.figure import Figure

    states = [chooser.state(model, kind, n, 1) for n in _SHOWN]
    with matplotlib.rc_context(plots.STYLE):
        made: Any = Figure(figsize=(9, 6), layout="constrained")
        left, right = made.subfigures(1, 2, width_ratios=[1, 1.15])
        for axes, state in zip(left.subplots(len(states), 1), states, strict=True):
            _draw_bars(axes, state)
        axes.set_xlabel("seconds")
        above, below = right.subplots(2, 1)
        _draw_lines(above, state)
        _draw_map(below, chooser, model, kind)
        seen = {part for state in states for part in _visible(state)}
        keys = {part: STARTUP[part] for part in PARTS if part in STARTUP and part in seen}
        keys |= {name: COLOURS[name] for name in state.candidates}
        handles = [
            matplotlib.patches.Patch(color=colour, label=label) for label, colour in keys.items()
        ]
        made.legend(handles=handles, loc="outside lower center", ncols=6)
        made.suptitle(f"{model}, lengths: {kind}", x=0.01, ha="left", weight="bold")
    return made


def _visible(state: State) -> set[str]:
    """The parts that are broad enough to be seen in a bar."""
    longest = max(one.total(state.n) for one in state.candidates.values())
    return {
        part
        for one in state.candidates.values()
        for part, seconds in one.parts(state.n).items()
        if seconds > 0.005 * longest
    }


def _draw_bars(axes: Any, state: State) -> None:
    from matplotlib.ticker import MaxNLocator

    for place, (name, one) in enumerate(state.candidates.items()):
        left = 0.0
        for part, seconds in one.parts(state.n).items():
            axes.barh(place, seconds, 0.6, left=left, color=STARTUP.get(part, COLOURS[name]))
            left += seconds
        axes.annotate(
            f"{_seconds(left)}, {_builds(one)}",
            (left, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=plots.DETAIL_SIZE,
        )
    longest = max(one.total(state.n) for one in state.candidates.values())
    axes.set_xlim(0, 1.75 * longest)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_yticks(range(len(state.candidates)), list(state.candidates))
    axes.invert_yaxis()
    axes.set_title(f"{state.n:,} requests", loc="left")


def _draw_lines(axes: Any, state: State) -> None:
    for name, row in state.totals.items():
        axes.loglog(REQUESTS, row, color=COLOURS[name])
    for start, name in state.changes[1:]:
        seconds = _between(state.totals[name], start)
        axes.plot(start, seconds, "o", color=plots.BLACK)
        axes.annotate(
            f"N = {start:,}", (start, seconds), xytext=(6, -12), textcoords="offset points"
        )
    axes.set_xticks([10**power for power in range(8)], [_short(10**p) for p in range(8)])
    axes.set(xlabel="N, requests", ylabel="seconds")
    axes.set_title("Total, and break-even", loc="left")


def _draw_map(axes: Any, chooser: Chooser, model: str, kind: str) -> None:
    from matplotlib.colors import ListedColormap

    names = list(chooser.state(model, kind, 1, 1).candidates)
    best = [
        [names.index(chooser.state(model, kind, n, weight).best) for n in REQUESTS]
        for weight in WEIGHTS
    ]
    axes.pcolormesh(
        np.log10(REQUESTS),
        WEIGHTS,
        best,
        cmap=ListedColormap([COLOURS[name] for name in names]),
        vmin=-0.5,
        vmax=len(names) - 0.5,
        shading="nearest",
    )
    axes.grid(False)
    axes.set_xticks(range(8), [_short(10**power) for power in range(8)])
    axes.set(xlabel="N, requests", ylabel="λ, weight of the time")
    axes.set_title("E*, the choice", loc="left")
