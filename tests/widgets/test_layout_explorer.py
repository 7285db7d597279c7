"""The layout explorer: its numbers against NumPy's own arrays, and its widgets driven."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from helpers import plots
from helpers.widgets import layout_explorer
from helpers.widgets.layout_explorer import State

BLOCKS = (2, 4, 8, 16)


def stored(dims, layout, block):
    """The tensor whose elements are numbered in the order of NCHW, as it lies in memory."""
    n, c, h, w = dims.values()
    numbers = np.arange(n * c * h * w, dtype="float32").reshape(n, c, h, w)
    if layout == "NHWC":
        return numbers, np.ascontiguousarray(numbers.transpose(0, 2, 3, 1))
    if layout == "NCHW":
        return numbers, numbers
    blocks = numbers.reshape(n, c // block, block, h, w)
    return numbers, np.ascontiguousarray(blocks.transpose(0, 1, 3, 4, 2))


@st.composite
def states(draw):
    block = draw(st.sampled_from(BLOCKS))
    dims = {
        "N": draw(st.integers(1, 3)),
        "C": block * draw(st.integers(1, 4)),
        "H": draw(st.integers(1, 5)),
        "W": draw(st.integers(1, 9)),
    }
    element = {axis: draw(st.integers(0, extent - 1)) for axis, extent in dims.items()}
    layout = draw(st.sampled_from(["NCHW", "NHWC", f"NCHW{block}c"]))
    return State(dims, layout, draw(st.sampled_from(list(layout_explorer.LOOPS))), block, element)


@settings(max_examples=60, deadline=None)
@given(states())
def test_loop_lines_strides_and_formula_are_those_of_numpy(state):
    numbers, memory = stored(state.dims, state.layout, state.block)
    n, c, h, w = state.element.values()
    first = c - c % state.block
    wanted = {
        "C": numbers[n, :, h, w],
        "W": numbers[n, c, h, :],
        "H": numbers[n, c, :, w],
        "block": numbers[n, first : first + state.block, h, w],
    }[state.loop]
    places = [int(np.flatnonzero(memory.ravel() == number)[0]) for number in wanted]
    assert state.offsets == places
    assert state.lines == sorted({4 * place // 64 for place in places})
    assert state.all_lines == -(-memory.nbytes // 64)
    assert memory.ravel()[state.offset] == numbers[n, c, h, w]
    said = layout_explorer.words(state)
    strides = re.search(r"strides (.*) elements", said)[1]
    steps = np.empty(memory.shape, "float32").strides  # a view may keep others for axes of size 1
    assert [int(part.split()[1]) for part in strides.split(", ")] == [step // 4 for step in steps]
    put_in = layout_explorer.put_in(state.layout, state.dims, state.element)
    assert not re.search("[a-zA-Z]", put_in)
    assert eval(put_in) == state.offset
    assert f"{put_in} = {state.offset}," in said
    assert f"in {len(state.lines)} of {state.all_lines} cache lines" in said


@settings(max_examples=30, deadline=None)
@given(states())
def test_every_offset_is_that_of_the_element_it_names(state):
    numbers, memory = stored(state.dims, state.layout, state.block)
    found = layout_explorer.elements_at(range(numbers.size), state.dims, state.layout)
    assert (numbers[tuple(found[axis] for axis in "NCHW")] == memory.ravel()).all()


def lit(picture):
    """The offsets whose cells are blue in the rows of a picture, and the one with a frame."""
    cells = re.findall(
        r'fill="(#[0-9a-fA-F]{6})"([^>]*)><title>element [^:]*: offset (\d+), line', picture
    )
    blue = [int(at) for fill, _, at in cells if fill == plots.BLUE]
    return blue, [int(at) for _, style, at in cells if "stroke" in style]


LARGE = State(
    {"N": 1, "C": 32, "H": 3, "W": 5}, "NCHW", "C", 16, {"N": 0, "C": 0, "H": 0, "W": 0}
)  # more cache lines than are drawn


@settings(max_examples=30, deadline=None)
@given(states())
@example(LARGE)
def test_the_picture_lights_the_loop_and_frames_the_element(state):
    touched = sorted({offset // 16 for offset in state.offsets})
    drawn = {*touched[: layout_explorer.MOST_LINES], state.offset // 16}
    in_sight = [offset for offset in sorted(state.offsets) if offset // 16 in drawn]
    assert lit(layout_explorer.drawing(state)) == (in_sight, [state.offset])
    assert lit(layout_explorer.drawing(state, hidden=True)) == ([], [state.offset])


def test_a_large_tensor_shows_lines_of_its_loop_only():
    """The features of ResNet-18: 64 channels, 56 x 56 pixels, so a stride of 3136 elements."""
    dims = {"N": 1, "C": 64, "H": 56, "W": 56}
    state = State(dims, "NCHW", "C", 16, {"N": 0, "C": 60, "H": 0, "W": 0})
    assert state.lines == [196 * channel for channel in range(64)]
    picture = layout_explorer.drawing(state)
    drawn = [*range(24), 60]  # the first, and the line of the chosen element
    assert lit(picture) == ([3136 * channel for channel in drawn], [3136 * 60])
    assert re.findall(r">line (\d+)<", picture) == [str(196 * channel) for channel in drawn]
    assert "25 of the 64 cache lines with the loop" in picture
    row = State(dims, "NCHW", "W", 16, state.element)
    assert "Below, the cache lines with the loop" in layout_explorer.drawing(row)
    assert "the element&#x27;s cache line" in layout_explorer.drawing(row, hidden=True)


def test_the_static_figure_counts_what_it_draws():
    alt = layout_explorer.alt_text()
    for part in (
        *("NCHW, all c: 8;", "NHWC, all c: 1;", "NCHW4c, all c: 4;"),
        *("NCHW, all w: 1;", "NHWC, all w: 4;", "NCHW4c, all w: 1;"),
        *("NCHW, 4 channels: 2;", "NHWC, 4 channels: 1;", "NCHW4c, 4 channels: 1."),
    ):
        assert part in alt
    titles = [axes.get_title(loc="left") for axes in layout_explorer.figure().axes]
    assert titles[0] == "NCHW, all c:\n8 cache lines"
    assert titles[7] == "NHWC, 4 channels:\n1 cache line"


# --- the widgets ---------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """The explorer's controls by their labels, and what it says and draws."""
    monkeypatch.setattr(layout_explorer, "figure", Figure)  # the static form is tested above
    box = layout_explorer.explorer()
    *rows, words, picture, _ = box.children
    controls = {}
    for row in rows:
        controls |= {child.description: child for child in row.children if child.description}
    return controls, words, picture


def control(controls, start):
    return next(each for label, each in controls.items() if label.startswith(start))


def test_the_number_is_guessed_before_it_is_shown(shown):
    controls, words, picture = shown
    assert "In how many cache lines" in words.value
    assert "They lie in" not in words.value
    assert lit(picture.value)[0] == []
    control(controls, "Your guess").value = 5
    assert "They lie in 8 of 8 cache lines" in words.value
    assert "Your guess was 5: it is 8." in words.value
    assert len(lit(picture.value)[0]) == 16
    control(controls, "Your guess").value = 8
    assert "Your guess was 8: right." in words.value


def test_another_state_asks_again(shown):
    controls, words, picture = shown
    for start, value in (("Layout", "NHWC"), ("Innermost", "W"), ("H, rows", 3), ("w =", 1)):
        control(controls, "Your guess").value = 1
        assert "They lie in" in words.value
        control(controls, start).value = value
        assert control(controls, "Your guess").value == 0
        assert "They lie in" not in words.value
        assert lit(picture.value)[0] == []


def test_without_guessing_every_control_changes_words_and_picture(shown):
    controls, words, picture = shown
    control(controls, "Guess before").value = False
    assert "They lie in 8 of 8" in words.value
    for start, value, said in (
        ("Layout", "blocks", "They lie in 4 of 8 cache lines: 1, 3, 5, 7."),
        ("Block", 8, "strides N 128, C 64, H 32, W 8, 8c 1"),
        ("Innermost", "block", "The loop c = 0 to 7 at n = 0, h = 1, w = 2"),
        ("W, columns", 6, "shape in memory (1, 2, 2, 6, 8)"),
        ("c =", 9, "The loop c = 8 to 15"),
        ("Innermost", "W", "The loop w = 0 to 5"),
        ("N, images", 2, "shape in memory (2, 2, 2, 6, 8)"),
    ):
        before = picture.value
        control(controls, start).value = value
        assert said in words.value
        assert picture.value != before


def test_an_element_stays_inside_a_smaller_tensor(shown):
    controls, words, _ = shown
    control(controls, "C, channels").value = 4
    assert control(controls, "c =").value == 3
    assert "(n, c, h, w) = (0, 3, 1, 2)" in words.value


def test_a_block_that_does_not_fit_is_said_in_a_sentence(shown):
    controls, words, picture = shown
    control(controls, "C, channels").value = 6
    control(controls, "Layout").value = "blocks"
    assert "cannot be cut into such blocks" in words.value
    assert picture.value == ""
    control(controls, "Layout").value = "NHWC"
    control(controls, "Innermost").value = "block"
    assert "The block of 4 channels from 4 on does not fit into 6 channels" in words.value
    control(controls, "c =").value = 3
    assert "In how many cache lines" in words.value
    assert picture.value != ""
