"""The memory planner: clashes by all steps, smallest plans by all plans, and its widgets."""

import itertools
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from helpers import WorkbookError, storage
from helpers.storage import Plan, Tensor
from helpers.widgets import memory_planner


def plan_of(lives, pools, steps=None):
    """A plan of float32 vectors: ``lives`` gives (elements, first step, last step) of each."""
    steps = steps or max(last for _, _, last in lives) + 1
    tensors = tuple(
        Tensor(f"k{first}", (elements,), "float32", 4 * elements, pool, first, last, False)
        for (elements, first, last), pool in zip(lives, pools, strict=True)
    )
    return Plan(tuple(f"k{step}" for step in range(steps)), tensors, 0, 0)


# Two layers of copy (1), wide tensor (4) and result (1), then all results joined (2): the plan is
# TVM's, and was worked out on paper. A plan of 6 exists: 4 for the wide ones, and two of 1.
LIVES = [(1, 0, 1), (4, 1, 2), (1, 2, 6), (1, 3, 4), (4, 4, 5), (1, 5, 6), (2, 6, 6)]
BLOCK = plan_of(LIVES, [0, 1, 0, 1, 2, 1, 2])
LONG = plan_of([(10 + step, step, step + 1) for step in range(9)], [0, 1] * 4 + [0], 10)


@st.composite
def small_plans(draw):
    lives = []
    for first in range(draw(st.integers(1, 6))):
        lives.append((draw(st.integers(1, 9)), first, first + draw(st.integers(0, 4))))
    return plan_of(lives, range(len(lives)))


def steps_of(tensor):
    return set(range(tensor.first, tensor.last + 1))


@settings(max_examples=80, deadline=None)
@given(small_plans(), st.data())
def test_clashes_are_the_pairs_in_one_pool_with_a_common_step(plan, data):
    count = len(plan.tensors)
    pools = data.draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    wanted = [
        (a, b, min(steps_of(plan.tensors[a]) & steps_of(plan.tensors[b])))
        for b in range(count)
        for a in range(b)
        if pools[a] == pools[b] and steps_of(plan.tensors[a]) & steps_of(plan.tensors[b])
    ]
    assert memory_planner.clashes(plan.tensors, pools) == wanted
    assert bool(wanted) == bool(storage.conflicts(plan.tensors, pools))


@settings(max_examples=25, deadline=None)
@given(small_plans())
def test_the_smallest_plan_is_that_of_all_plans(plan):
    assume(len(plan.tensors) <= 5)
    count = len(plan.tensors)
    every = [
        sum(
            max(t.bytes for t, p in zip(plan.tensors, pools, strict=True) if p == pool)
            for pool in set(pools)
        )
        for pools in itertools.product(range(count), repeat=count)
        if not any(
            pools[a] == pools[b] and steps_of(plan.tensors[a]) & steps_of(plan.tensors[b])
            for a, b in itertools.combinations(range(count), 2)
        )
    ]
    found = memory_planner.smallest(plan.tensors)
    assert memory_planner.clashes(plan.tensors, found) == []
    assert sum(storage.pool_sizes(plan.tensors, found)) == min(every)


def test_the_block_has_a_plan_at_the_bound():
    assert (BLOCK.total_bytes, BLOCK.planned_bytes, BLOCK.peak_bytes) == (4 * 14, 4 * 9, 4 * 6)
    assert memory_planner.smallest(BLOCK.tensors) == [0, 1, 0, 2, 1, 2, 1]
    with pytest.raises(WorkbookError, match="at most 8"):
        memory_planner.smallest(LONG.tensors)


def test_a_verdict_names_bytes_and_clashes():
    legal = memory_planner.verdict(BLOCK, [0, 1, 0, 2, 1, 2, 1])
    assert "Your plan: 24 B in 3 pools. It is legal, and no plan takes less." in legal
    assert "TVM's plan: 36 B" in legal
    assert "as much as TVM's" in memory_planner.verdict(BLOCK, [0, 1, 0, 1, 2, 1, 2])
    assert "more than TVM's" in memory_planner.verdict(BLOCK, range(7))
    assert "less than TVM's" in memory_planner.verdict(BLOCK, [0, 1, 0, 2, 1, 2, 3])
    wrong = memory_planner.verdict(BLOCK, [0, 1, 0, 0, 1, 2, 2])
    assert "not legal" in wrong
    assert "2 and 3 in pool A, at step 3, 5 and 6 in pool C, at step 6." in wrong


def test_the_facts_of_a_tensor():
    said = memory_planner.fact(BLOCK, 3, list(range(7)))
    assert "Tensor 3, k3, float32[1]: 4 B, needed from step 3 to step 4." in said
    assert "TVM puts it into pool 1 of 16 B: 12 B of it are unused then." in said
    assert said.endswith("You put it into pool D.")
    assert "which it fills." in memory_planner.fact(BLOCK, 4)


def boxes(picture, plan):
    """(left, top, width, height) of the tensors' boxes by number, for each plan that is drawn."""
    place = " ".join(rf'{name}="([\d.]+)"' for name in ("x", "y", "width", "height"))
    found = re.findall(rf"<rect {place}[^>]*><title>tensor (\d+),", picture)
    numbers = [(int(number), *map(float, place)) for *place, number in found]
    count = len(plan.tensors)
    return [numbers[start : start + count] for start in range(0, len(numbers), count)]


def test_the_picture_draws_time_and_bytes_to_scale():
    pools = [0, 1, 0, 2, 1, 2, 1]
    theirs, ours = boxes(memory_planner.drawing(BLOCK, 0, pools), BLOCK)
    for drawn, taken in ((theirs, [t.pool for t in BLOCK.tensors]), (ours, pools)):
        _, x0, _, wide, high = drawn[0]
        step, scale = wide / 2, high / 4  # tensor 0: 4 bytes, two steps
        sizes = storage.pool_sizes(BLOCK.tensors, taken)
        bottom = drawn[0][2] + high
        for tensor, pool, (_, x, y, width, height) in zip(BLOCK.tensors, taken, drawn, strict=True):
            assert width == pytest.approx(step * (tensor.last - tensor.first + 1), rel=2e-3)
            assert x - x0 == pytest.approx(step * tensor.first, abs=0.6)
            assert height == pytest.approx(scale * tensor.bytes, rel=2e-3)
            assert bottom - (y + height) == pytest.approx(scale * sum(sizes[:pool]), abs=0.6)


def test_the_static_figure_says_what_it_draws():
    figure = memory_planner.figure(BLOCK, "A block")
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles == ["A pool for each:\n56 B", "TVM's plan:\n36 B", "The smallest:\n24 B"]
    alt = memory_planner.alt_text(BLOCK, "A block")
    assert "TVM's plan: 36 B in 3 pools (A B A B C B C)" in alt
    assert "The smallest: 24 B in 3 pools (A B A C B C B)" in alt
    assert [axes.get_title(loc="left") for axes in memory_planner.figure(LONG).axes[:1]] == [
        f"TVM's plan:\n{LONG.planned_bytes} B"
    ]


# --- the widgets ---------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """Program, tensor, pickers, buttons, and what the explorer says and draws."""
    monkeypatch.setattr(memory_planner, "figure", lambda *_: Figure())  # tested above
    box = memory_planner.explorer({"a block": BLOCK, "a long chain": LONG})
    (program,), (tensor,), (hand,) = (row.children for row in box.children[:3])
    words, picture = box.children[3:5]
    _, pickers, buttons = hand.children
    return program, tensor, hand, pickers.children, buttons.children, words, picture


def test_moving_a_tensor_is_checked_at_once(shown):
    _, _, _, pickers, _, words, picture = shown
    assert "Your plan: 56 B in 7 pools." in words.value
    for number, pool, said in (
        (2, "A", "Your plan: 52 B in 6 pools. It is legal"),
        (3, "A", "not legal. Tensors needed at the same time: 2 and 3 in pool A, at step 3."),
        (3, "D", "It is legal"),
        (5, "D", "Your plan: 48 B in 5 pools."),
        (4, "B", "Your plan: 32 B in 4 pools. It is legal, and takes less than TVM&#x27;s."),
        (6, "B", "Your plan: 24 B in 3 pools. It is legal, and no plan takes less."),
    ):
        before = picture.value
        pickers[number].value = pool
        assert said in words.value
        assert picture.value != before


def test_buttons_set_a_whole_plan(shown):
    _, _, _, pickers, buttons, words, _ = shown
    by_name = {button.description: button for button in buttons}
    by_name["As TVM plans"].click()
    assert "".join(picker.value for picker in pickers[:7]) == "ABABCBC"
    assert "as much as TVM" in words.value
    by_name["Show a smallest plan"].click()
    assert "no plan takes less" in words.value
    by_name["A pool for each"].click()
    assert "Your plan: 56 B in 7 pools" in words.value


def test_the_tensor_that_is_chosen_is_framed_and_told(shown):
    _, tensor, _, _, _, words, picture = shown
    seen = {picture.value}
    for number in range(1, 7):
        tensor.value = number
        assert f"Tensor {number}, k{number}" in words.value
        seen.add(picture.value)
    assert len(seen) == 7


def test_a_long_program_is_for_looking_only(shown):
    program, tensor, hand, pickers, _, words, picture = shown
    pickers[2].value = "A"
    program.value = "a long chain"
    assert hand.layout.display == "none"
    assert "Your plan" not in words.value
    assert "9 tensors" in words.value
    assert len(boxes(picture.value, LONG)) == 1
    tensor.value = 8
    assert "Tensor 8" in words.value
    program.value = "a block"
    assert hand.layout.display == ""
    assert "Your plan: 56 B in 7 pools." in words.value
    assert [picker.layout.display for picker in pickers] == [""] * 7 + ["none"]


def test_what_is_not_a_plan_is_refused():
    for wrong in ({}, BLOCK, {"x": 3}, {"x": Plan((), (), 0, 0)}):
        with pytest.raises(WorkbookError, match="plan"):
            memory_planner.explorer(wrong)
