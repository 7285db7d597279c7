"""The graph executor's memory plan, and one made by hand beside it.

    memory_planner.explorer({"a block": plan, "SqueezeNet": other})

Each tensor is a box over the steps at which it is needed, in the band of its pool. For a program of
up to 8 tensors every tensor can be given another pool: two that are needed at one step must not
share one. Below are the bytes that the steps need; their peak is the bound for every plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import ipywidgets

from helpers import plots, storage
from helpers.errors import WorkbookError
from helpers.storage import Plan, Tensor
from helpers.widgets import frame, shapes

MOST_TENSORS = 8
"""The most tensors of a program that can be planned by hand."""

POOLS = "ABCDEFGH"
"""Names of the pools of a plan made by hand, one for each tensor at most."""


def clashes(tensors: Sequence[Tensor], pools: Sequence[int]) -> list[tuple[int, int, int]]:
    """Each pair of tensors that one pool cannot hold, as (tensor, later tensor, first common step).

    Tensors are numbered as they are written. There is none exactly if ``storage.conflicts`` finds
    none; that names only one pair for each tensor that is written too early.
    """
    found = []
    for later, second in enumerate(tensors):
        for earlier, first in enumerate(tensors[:later]):
            start = max(first.first, second.first)
            if pools[earlier] == pools[later] and start <= min(first.last, second.last):
                found.append((earlier, later, start))
    return found


def smallest(tensors: Sequence[Tensor]) -> list[int]:
    """The pools of a legal plan that takes the fewest bytes, found by trying all of them.

    Of equal plans the one with the fewest pools. Raises :class:`WorkbookError` for more than
    8 tensors: the number of plans grows faster than exponentially (4140 for 8).
    """
    if len(tensors) > MOST_TENSORS:
        raise WorkbookError(
            f"All plans of {len(tensors)} tensors are too many to try: at most {MOST_TENSORS}."
        )
    best: tuple[int, int, list[int]] | None = None

    def extend(pools: list[int]) -> None:
        nonlocal best
        if len(pools) == len(tensors):
            sizes = storage.pool_sizes(tensors, pools)
            if best is None or (sum(sizes), len(sizes)) < best[:2]:
                best = sum(sizes), len(sizes), pools
            return
        for pool in range(max(pools, default=-1) + 2):
            longer = [*pools, pool]
            if not any(
                later == len(pools) for _, later, _ in clashes(tensors[: len(longer)], longer)
            ):
                extend(longer)

    extend([])
    return best[2] if best else []


# --- words ---------------------------------------------------------------------------------------


def fact(plan: Plan, number: int, pools: Sequence[int] | None = None) -> str:
    """What there is to know about one tensor, in TVM's plan and in one made by hand."""
    tensor = plan.tensors[number]
    slack = plan.pools[tensor.pool] - tensor.bytes
    kind = f"{tensor.dtype}{list(tensor.shape)}"
    end = "the end, as a result of the model" if tensor.is_output else f"step {tensor.last}"
    said = (
        f"Tensor {number}, {tensor.name}, {kind}: {tensor.bytes:,} B, needed from step "
        f"{tensor.first} to {end}. TVM puts it into pool {tensor.pool} of "
        f"{plan.pools[tensor.pool]:,} B"
        + (f": {slack:,} B of it are unused then." if slack else ", which it fills.")
    )
    if pools is not None:
        said += f" You put it into pool {POOLS[pools[number]]}."
    return said


def verdict(plan: Plan, pools: Sequence[int]) -> str:
    """The bytes of a plan made by hand against TVM's and the bound, or the tensors that clash."""
    sizes = storage.pool_sizes(plan.tensors, pools)
    used, total = sum(size > 0 for size in sizes), sum(sizes)
    ours = f"Your plan: {total:,} B in {'1 pool' if used == 1 else f'{used} pools'}"
    known = (
        f"TVM's plan: {plan.planned_bytes:,} B. Bound, the peak of liveness: {plan.peak_bytes:,} B."
    )
    wrong = clashes(plan.tensors, pools)
    if wrong:
        pairs = ", ".join(
            f"{a} and {b} in pool {POOLS[pools[a]]}, at step {step}" for a, b, step in wrong
        )
        return f"{ours}, but it is not legal. Tensors needed at the same time: {pairs}. {known}"
    if total == plan.peak_bytes:
        return f"{ours}. It is legal, and no plan takes less. {known}"
    place = "less than" if total < plan.planned_bytes else "as much as"
    if total > plan.planned_bytes:
        place = "more than"
    return f"{ours}. It is legal, and takes {place} TVM's. {known}"


def about(plan: Plan) -> str:
    """TVM's plan in numbers."""
    return (
        f"{len(plan.tensors)} tensors of {plan.total_bytes:,} B in {len(plan.pools)} pools. TVM's "
        f"plan: {plan.planned_bytes:,} B. Bound, the peak of liveness: {plan.peak_bytes:,} B, at "
        f"step {plan.peak_step}."
    )


# --- the picture ---------------------------------------------------------------------------------

_HIGH, _BELOW = 250, 90  # pixels: the bytes of the tallest plan, and of the bytes that are needed


def _colour(pool: int) -> str:
    return storage.POOL_COLOURS[pool % len(storage.POOL_COLOURS)]


def _stack(
    plan: Plan,
    pools: Sequence[int],
    name: Callable[[int], str],
    box: tuple[float, float, float, float],
    scale: float,
    chosen: int,
) -> tuple[list[str], list[str]]:
    """A plan: bands of pools from the bottom of ``box`` (x, y, width, height) up, and numbers."""
    x, y, width, height = box
    sizes = storage.pool_sizes(plan.tensors, pools)
    bases = [0, *accumulate(sizes)]
    step = width / len(plan.kernels)
    drawn: list[str] = []
    numbers: list[str] = []
    for pool, size in enumerate(sizes):
        if not size:
            continue
        top = y + height - bases[pool + 1] * scale
        colour = _colour(pool)
        title = f"pool {name(pool)}: {size:,} B"
        pale = plots.tint(colour, 0.14)
        drawn.append(shapes.rect(x, top, width, size * scale, pale, title=title, stroke="white"))
        if size * scale > 11:
            middle = top + size * scale / 2 + 4
            drawn.append(shapes.text(x + width + 6, middle, f"pool {name(pool)}"))
    wrong = clashes(plan.tensors, pools)
    for number, tensor in enumerate(plan.tensors):
        pool = pools[number]
        title = (
            f"tensor {number}, {tensor.name}: {tensor.bytes:,} B, steps {tensor.first} to "
            f"{tensor.last}, in pool {name(pool)} of {sizes[pool]:,} B"
        )
        left, wide = x + tensor.first * step, (tensor.last - tensor.first + 1) * step
        high = tensor.bytes * scale
        top = y + height - bases[pool] * scale - high
        bad = any(number in pair[:2] for pair in wrong)
        edge: dict[str, Any] = {"stroke": "white", "stroke_width": 1}
        if bad:
            edge = {"stroke": plots.VERMILION, "stroke_width": 3, "stroke_dasharray": "5 3"}
        if number == chosen:
            edge |= {"stroke": plots.BLACK, "stroke_width": 3}
        fill = _colour(pool)
        see_through = {"fill_opacity": 0.55} if bad else {}
        drawn.append(shapes.rect(left, top, wide, high, fill, title=title, **edge, **see_through))
        if len(plan.tensors) <= MOST_TENSORS and high > 11:
            style: dict[str, Any] = {"font_weight": "bold", "pointer_events": "none"}
            style["fill"] = plots.BLACK if bad else shapes.ink(fill)
            numbers.append(shapes.text(left + 6, top + high - 5, str(number), **style))
    return drawn, numbers


def _bound(plan: Plan, box: tuple[float, float, float, float], scale: float) -> list[str]:
    x, y, width, height = box
    at = y + height - plan.peak_bytes * scale
    return [
        shapes.line(x, at, x + width, at, plots.BLACK, stroke_dasharray="6 4", stroke_width=1.5)
    ]


def _needed(plan: Plan, box: tuple[float, float, float, float]) -> list[str]:
    """The bytes that are needed at each step, below the planned ones and up to their peak."""
    x, y, width, height = box
    scale, step = height / plan.peak_bytes, width / len(plan.kernels)
    grey = plots.tint(plots.BLACK, 0.35)
    drawn = []
    for number, alive in enumerate(plan.alive):
        title = f"step {number}, {plan.kernels[number]}: {alive:,} B needed"
        high = alive * scale
        drawn.append(
            shapes.rect(x + number * step, y + height - high, step, high, grey, title=title)
        )
    every = -(-len(plan.kernels) // 12)
    for number in range(0, len(plan.kernels), every):
        at = x + (number + 0.5) * step
        drawn.append(shapes.text(at, y + height + 15, str(number), text_anchor="middle"))
    drawn.append(shapes.text(x + width + 6, y + height + 15, "step"))
    return [*drawn, *_bound(plan, box, scale)]


def drawing(plan: Plan, chosen: int, pools: Sequence[int] | None = None) -> str:
    """TVM's plan, beside it one made by hand if ``pools`` has one, and the bytes needed below.

    Steps go from left to right, bytes upwards, at one scale. ``chosen`` is the tensor with a black
    frame. Pools, tensors and steps say what they are where the mouse rests.
    """
    made: list[tuple[str, list[int], Callable[[int], str], int]] = [
        ("TVM's plan", [tensor.pool for tensor in plan.tensors], str, plan.planned_bytes)
    ]
    if pools is not None:
        total = sum(storage.pool_sizes(plan.tensors, pools))
        made.append(("Your plan", list(pools), lambda pool: POOLS[pool], total))
    scale = _HIGH / max(max(total for *_, total in made), 1)
    width = 370 if len(made) > 1 else 830
    drawn = []
    for place, (title, which, name, total) in enumerate(made):
        x = 4 + place * 470
        drawn.append(shapes.text(x, 16, f"{title}: {total:,} B", size=14, font_weight="bold"))
        box = (x, 26.0, float(width), float(_HIGH))
        boxes, numbers = _stack(plan, which, name, box, scale, chosen)
        drawn += [*boxes, *_bound(plan, box, scale), *numbers]
        top = 26 + _HIGH + 30
        drawn.append(shapes.text(x, top, "Needed at each step (grey)"))
        drawn += _needed(plan, (x, top + 8.0, float(width), float(_BELOW)))
    end = 26 + _HIGH + 30 + 8 + _BELOW + 40
    legend = f"Dashed line: the bound, {plan.peak_bytes:,} B. Black frame: the chosen tensor."
    if pools is not None and clashes(plan.tensors, pools):
        legend += " Dashed frames: tensors that clash."
    drawn.append(shapes.text(4, end, legend))
    alt = "Memory plans, steps from left to right and bytes upwards. " + about(plan)
    return shapes.picture(920, end + 10, drawn, alt)


def view(plan: Plan, chosen: int, pools: Sequence[int] | None = None) -> frame.View:
    """One state of the explorer; ``pools`` is the plan made by hand, if there is one."""
    first = about(plan) if pools is None else verdict(plan, pools)
    return frame.View(drawing(plan, chosen, pools), f"{first}\n{fact(plan, chosen, pools)}")


# --- the static form -----------------------------------------------------------------------------


def _own(plan: Plan) -> list[int]:
    return list(range(len(plan.tensors)))


def _states(plan: Plan) -> list[tuple[str, list[int]]]:
    """The plans that the static form shows, each with a title."""
    planned = "TVM's plan", [tensor.pool for tensor in plan.tensors]
    if len(plan.tensors) > MOST_TENSORS:
        return [planned]
    return [("A pool for each", _own(plan)), planned, ("The smallest", smallest(plan.tensors))]


def figure(plan: Plan, title: str = "") -> Any:
    """A pool for each tensor, TVM's plan, and a smallest one; a Matplotlib ``Figure``."""
    import matplotlib
    from matplotlib.figure import Figure

    states, steps = _states(plan), len(plan.kernels)
    top = max(sum(storage.pool_sizes(plan.tensors, pools)) for _, pools in states)
    with matplotlib.rc_context({**plots.STYLE, "axes.grid": False}):
        made = Figure(figsize=(9, 5.4), layout="constrained")
        rows = made.subplots(
            2, len(states), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 1)
        )
        for (name, pools), above, below in zip(states, *rows, strict=True):
            sizes = storage.pool_sizes(plan.tensors, pools)
            bases = [0, *accumulate(sizes)]
            for pool, size in enumerate(sizes):
                pale = plots.tint(_colour(pool), 0.14)
                above.axhspan(bases[pool], bases[pool] + size, color=pale, linewidth=0)
            for number, (tensor, pool) in enumerate(zip(plan.tensors, pools, strict=True)):
                wide = tensor.last - tensor.first + 1
                above.add_patch(
                    matplotlib.patches.Rectangle(
                        (tensor.first, bases[pool]),
                        wide,
                        tensor.bytes,
                        facecolor=_colour(pool),
                        edgecolor="white",
                    )
                )
                if len(plan.tensors) <= MOST_TENSORS:
                    corner = tensor.first + 0.15, bases[pool] + 0.012 * top
                    colour = shapes.ink(_colour(pool))
                    above.text(*corner, str(number), color=colour, fontsize=11, weight="bold")
            above.axhline(plan.peak_bytes, color=plots.BLACK, linestyle="--", linewidth=1.3)
            above.set_title(f"{name}:\n{sum(sizes):,} B", loc="left")
            above.set_ylim(0, top * 1.02)
            below.stairs(
                plan.alive, range(steps + 1), fill=True, color=plots.tint(plots.BLACK, 0.35)
            )
            below.axhline(plan.peak_bytes, color=plots.BLACK, linestyle="--", linewidth=1.3)
            below.set(xlim=(0, steps), ylim=(0, plan.peak_bytes * 1.15), xlabel="step (kernel)")
        for axes, label in zip(rows[:, 0], ("pools, B", "needed, B"), strict=True):
            axes.set_ylabel(label)
            axes.yaxis.set_major_formatter("{x:,.0f}")
        made.suptitle(
            f"{title + ': ' if title else ''}tensors 0 to {len(plan.tensors) - 1} in pools of one "
            f"colour each. Dashed: the bound, {plan.peak_bytes:,} B.",
            x=0.01,
            ha="left",
            fontsize=12,
        )
    return made


def alt_text(plan: Plan, title: str = "") -> str:
    """The static figure in words."""
    said = "; ".join(
        f"{name}: {sum(storage.pool_sizes(plan.tensors, pools)):,} B in {len(set(pools))} pools"
        + (f" ({' '.join(POOLS[pool] for pool in pools)})" if len(pools) <= MOST_TENSORS else "")
        for name, pools in _states(plan)
    )
    return (
        f"{title + ': ' if title else ''}memory plans of {len(plan.tensors)} tensors. {said}. "
        f"Bound, the peak of liveness: {plan.peak_bytes:,} B."
    )


# --- the widgets ---------------------------------------------------------------------------------


def explorer(plans: Mapping[str, Plan]) -> frame.Shown:
    """Look at plans of ``storage.plan`` by name, and plan the small ones by hand.

    The first is shown at first, and is the one of the static form. Returns the box that is
    displayed. Raises :class:`WorkbookError` for anything else and for a plan without tensors.
    """
    if not isinstance(plans, Mapping) or not plans:
        raise WorkbookError('plans gives each plan a name, as {"a block": storage.plan(compiled)}.')
    for name, plan in plans.items():
        if not isinstance(plan, Plan) or not plan.tensors:
            raise WorkbookError(
                f"{name!r} is not a plan of tensors: give what storage.plan returns, for a "
                "program with at least one kernel."
            )
    first, initial = next(iter(plans.items()))
    whole = {"style": {"description_width": "initial"}}
    program = ipywidgets.Dropdown(options=list(plans), description="Program", **whole)
    tensor = ipywidgets.SelectionSlider(
        options=_numbered(initial),
        description="Tensor",
        layout={"width": "95%"},
        **whole,
    )
    picked = ipywidgets.Text()  # the plan made by hand, a letter for each tensor; not displayed
    pickers = [
        ipywidgets.Dropdown(options=[""], layout={"width": "210px"}, **whole)
        for _ in range(MOST_TENSORS)
    ]
    buttons = [ipywidgets.Button(description=text, layout={"width": "auto"}) for text in _BUTTONS]
    hand = ipywidgets.VBox(
        [
            ipywidgets.Label("Your plan: a pool for each tensor"),
            ipywidgets.HBox(pickers, layout={"flex_flow": "row wrap"}),
            ipywidgets.HBox(buttons),
        ]
    )
    setting = False  # whether several pickers are being set, of which each would draw a picture

    def pick(_: Any = None) -> None:
        if not setting:
            count = len(plans[program.value].tensors)
            picked.value = "".join(picker.value for picker in pickers[:count])

    def put(pools: Sequence[int]) -> None:
        nonlocal setting
        setting = True
        for picker, pool in zip(pickers, pools, strict=False):
            picker.value = POOLS[pool]
        setting = False
        pick()

    def enter(_: Any = None) -> None:
        nonlocal setting
        plan = plans[program.value]
        count = len(plan.tensors)
        hand.layout.display = "none" if count > MOST_TENSORS else ""
        if count <= MOST_TENSORS:
            setting = True
            for number, picker in enumerate(pickers):
                picker.layout.display = "" if number < count else "none"
                picker.options = list(POOLS[:count])
                if number < count:
                    picker.description = f"{number} ({plan.tensors[number].bytes:,} B)"
            setting = False
            put(_own(plan))
        tensor.options = _numbered(plan)

    def preset(button: ipywidgets.Button) -> None:
        put(_BUTTONS[button.description](plans[program.value]))

    program.observe(enter, names="value")
    for picker in pickers:
        picker.observe(pick, names="value")
    for button in buttons:
        button.on_click(preset)
    enter()

    def made(program: str, tensor: int, picked: str) -> frame.View:
        plan = plans[program]
        by_hand = len(plan.tensors) <= MOST_TENSORS
        pools = [POOLS.index(letter) for letter in picked] if by_hand else None
        # When the program changes, the slider has the other's tensors for one more moment.
        return view(plan, min(tensor, len(plan.tensors) - 1), pools)

    return frame.explore(
        {"program": program, "tensor": tensor, "picked": picked},
        made,
        static=figure(initial, first),
        alt=alt_text(initial, first),
        rows=[[program], [tensor], [hand]],
    )


_BUTTONS: dict[str, Callable[[Plan], list[int]]] = {
    "A pool for each": _own,
    "As TVM plans": lambda plan: [tensor.pool for tensor in plan.tensors],
    "Show a smallest plan": lambda plan: smallest(plan.tensors),
}


def _numbered(plan: Plan) -> list[tuple[str, int]]:
    return [(str(number), number) for number in range(len(plan.tensors))]
