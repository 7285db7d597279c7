"""The VM stepper: recorded states against the VM and a run by hand, and the widgets driven."""

import html
import re
from itertools import pairwise

import ipywidgets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, build, bytecode
from helpers.instructions import If, InvokePacked
from helpers.widgets import vm_stepper

X = np.array([0.5, -1.0, 2.0, 0.0], "float32")


@pytest.fixture(scope="module", autouse=True)
def _use_relay(relay):
    return relay


@pytest.fixture(scope="module")
def cases():
    from tvm import relay

    def sums(rows):
        x = relay.var("x", shape=(rows, 4))
        return relay.Function([x], relay.sum(relay.tanh(relay.exp(x)), axis=[1]))

    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(4,))
    doubled, less = x * relay.const(2.0), x - relay.const(1.0)
    choice = relay.Function([c, x], relay.If(c, doubled, less))
    static = relay.Function([c, x], relay.where(c, doubled, less))
    values = {"true": {"c": np.array(True), "x": X}, "false": {"c": np.array(False), "x": X}}
    rows = {f"{n} rows": {"x": np.ones((n, 4), "float32")} for n in (2, 3)}
    return {
        "choice": vm_stepper.case(choice, values, static=static, variant="both"),
        "any rows": vm_stepper.case(sums(relay.Any()), rows, static=sums(3)),
        "static": vm_stepper.case(sums(3), {"ones": rows["3 rows"]}),
    }


def recorded(one, name):
    return vm_stepper.snapshots(one.program, **one.inputs[name])


# --- the states ----------------------------------------------------------------------------------


def test_the_last_state_has_the_vms_result(cases):
    for one in cases.values():
        for name, values in one.inputs.items():
            states = recorded(one, name)
            assert [state.result for state in states[:-1]] == [None] * (len(states) - 1)
            for got, wanted in zip(
                states[-1].result, one.program.compiled.run(**values), strict=True
            ):
                np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(recorded(cases["choice"], "true")[-1].result[0], X * 2)
    np.testing.assert_array_equal(recorded(cases["choice"], "false")[-1].result[0], X - 1)


def test_states_agree_with_a_run_of_the_stepper(cases):
    for one in cases.values():
        for name, values in one.inputs.items():
            states, run = recorded(one, name), one.program.start(**values)
            assert [state.step for state in states] == list(range(len(states)))
            called = []
            for before, after in pairwise(states):
                assert (before.at, before.registers) == (run.at, run.registers)
                event = run.step()
                called += [event.kernel] if event.kernel else []
                assert after.event == event
                assert after.live_bytes == event.live_bytes
                assert list(after.kernels) == called
            assert run.finished
            assert states[-1].at is None
            assert not states[-1].stack


def test_heap_of_a_straight_line_by_hand(cases):
    one = cases["static"]
    heaps = [
        [(block.number, block.bytes, block.tensors) for block in state.heap]
        for state in recorded(one, "ones")
    ]
    value = f"{4 * np.tanh(np.exp(1)):.4g}"
    filled = f"float32[3] [{', '.join([value] * 3)}]"
    wanted = [[]] * 2 + [[(1, 12, ())]] * 2 + [[(1, 12, ("float32[3], not filled yet",))]] * 2
    ops = [i.op for i in one.program.functions[0].instructions]
    assert ops[1] == "alloc_storage"
    assert ops[3] == "alloc_tensor"
    place = ops.index("invoke_packed")
    assert heaps[:2] == wanted[:2]
    assert heaps[2:4] == wanted[2:4]
    assert heaps[4:place] == [wanted[4]] * (place - 4)
    assert heaps[place + 1 :] == [[(1, 12, (filled,))]] * (len(heaps) - place - 1)


def test_heap_finds_what_tuples_and_waiting_frames_hold():
    from tvm import relay
    from tvm.relay.loops import while_loop

    i, a = relay.var("i", shape=(), dtype="int32"), relay.var("a", shape=(4,))
    n, x = relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(4,))
    loop = while_loop(
        lambda i, a: relay.less(i, n),
        [i, a],
        lambda i, a: [i + relay.const(1, "int32"), a * relay.const(2.0)],
    )
    made = relay.Function([n, x], loop(relay.const(0, "int32"), x))
    program = bytecode.decode(build.compile(made, "vm"))
    values = {"n": np.int32(3), "x": X}
    states, run = vm_stepper.snapshots(program, **values), program.start(**values)
    assert [state.live_bytes for state in states[1:]] == [event.live_bytes for event in run]
    assert max(len(state.stack) for state in states) == 5
    np.testing.assert_array_equal(states[-1].result[1], X * 8)


def test_a_run_that_is_too_long_is_refused(cases):
    one = cases["static"]
    count = len(recorded(one, "ones")) - 1
    assert len(vm_stepper.snapshots(one.program, limit=count, **one.inputs["ones"])) == count + 1
    with pytest.raises(WorkbookError, match=f"more than {count - 1} instructions: take a shorter"):
        vm_stepper.snapshots(one.program, limit=count - 1, **one.inputs["ones"])


def test_to_the_branch_and_to_the_next_kernel(cases):
    one = cases["choice"]
    states, code = recorded(one, "true"), one.program.functions[0].instructions
    (branch,) = (pc for pc, i in enumerate(code) if isinstance(i, If))
    found = vm_stepper.next_before(one.program, states, 0, If)
    assert states[found].at == ("main", branch)
    assert states[found + 1].event.branch is True
    assert vm_stepper.next_before(one.program, states, found, If) == len(states) - 1
    kernel = vm_stepper.next_before(one.program, states, found, InvokePacked)
    assert states[kernel + 1].kernels == (states[kernel + 1].event.kernel,)
    assert not states[kernel].kernels


@settings(deadline=None)
@given(st.integers(1, 200), st.data(), st.integers(4, 30))
def test_window_shows_the_line_and_no_fewer_than_it_can(count, data, lines):
    pc = data.draw(st.integers(0, count - 1))
    shown = vm_stepper.window(pc, count, lines)
    assert pc in shown
    assert len(shown) == min(count, lines)
    assert 0 <= shown.start <= shown.stop <= count


# --- a case --------------------------------------------------------------------------------------


def test_graph_executor_beside_it(cases):
    assert cases["static"].graph_words() == "The graph executor calls 1 kernel, always this one."
    said = cases["choice"].graph_words()
    assert said.startswith("The graph executor refuses this model (if: a value known only at run")
    assert "Of its static variant (both) it calls 1 kernel, always this one." in said
    assert "dimension 0 of (?, 4)" in cases["any rows"].refused
    assert cases["any rows"].line == cases["static"].line


def test_what_cannot_be_a_case(cases):
    from tvm import relay

    x = relay.var("x", shape=(relay.Any(), 4))
    dynamic = relay.Function([x], relay.exp(x))
    with pytest.raises(WorkbookError, match=r"refuses this model .* give a static variant"):
        vm_stepper.case(dynamic, {"ones": {"x": np.ones((2, 4), "float32")}})
    with pytest.raises(WorkbookError, match="needs inputs by name"):
        vm_stepper.case(dynamic, {})
    with pytest.raises(WorkbookError, match="no case to step through"):
        vm_stepper.explorer({})


# --- the widgets ---------------------------------------------------------------------------------


class Driven:
    """An explorer whose controls are found by what is written on them."""

    def __init__(self, cases):
        self.box = vm_stepper.explorer(cases)
        rows = [row for row in self.box.children if isinstance(row, ipywidgets.HBox)]
        self.controls = {one.description: one for row in rows for one in row.children}
        self.said, self.drawn = [x for x in self.box.children if isinstance(x, ipywidgets.HTML)][:2]

    @property
    def words(self):
        return html.unescape(re.sub("<[^>]*>", "\n", self.said.value)).strip()

    @property
    def picture(self):
        return self.drawn.value

    @property
    def marked(self):
        """The listing's lines that carry the arrow, and their style."""
        rows = re.findall(r'<div style="([^"]*)"[^>]*>([^<]*)', self.picture)
        lines = [(style, html.unescape(text)) for style, text in rows]
        return [(style, text) for style, text in lines if text.startswith(">")]


@pytest.fixture(scope="module")
def one_explorer(cases):
    return Driven(cases)


@pytest.fixture
def driven(one_explorer):
    one_explorer.controls["Model"].value = "choice"
    one_explorer.controls["Input"].value = "true"
    one_explorer.controls["Reset"].click()
    return one_explorer


def test_slider_shows_each_state_in_words_and_picture(driven, cases):
    one = cases["choice"]
    states, listing = recorded(one, "true"), one.program.text("main").splitlines()[1:]
    slider, seen = driven.controls["Instructions done"], set()
    assert slider.max == len(states) - 1
    for state in states:
        slider.value = state.step
        assert f"Step {state.step} of {len(states) - 1}." in driven.words
        assert f"{state.live_bytes:,} byte" in driven.words
        seen.add(driven.picture)
        if state.at is None:
            assert not driven.marked
            assert "Next: nothing: main has returned" in driven.words
            continue
        ((style, text),) = driven.marked
        assert text[1:].split()[0] == str(state.at[1])
        assert "background" in style
        assert listing[state.at[1]].split()[1] in text
        assert f"Next: main {state.at[1]}:" in driven.words
        for register, value in state.registers.items():
            assert html.escape(f"${register} {value}") in driven.picture
    assert len(seen) == len(states)


def test_going_back_shows_the_same_again(driven):
    slider = driven.controls["Instructions done"]
    pictures = {}
    for step in [*range(slider.max + 1), *reversed(range(slider.max + 1))]:
        slider.value = step
        assert pictures.setdefault(step, (driven.words, driven.picture)) == (
            driven.words,
            driven.picture,
        )


def test_buttons(driven):
    slider = driven.controls["Instructions done"]
    steps = []
    for label in ("Step", "Step", "Step back", "Step back", "To the branch"):
        driven.controls[label].click()
        steps.append(slider.value)
    assert steps[:4] == [1, 2, 1, 0]
    assert re.search(r"Next: main \d+: if ", driven.words)
    driven.controls["Step"].click()
    assert slider.value == steps[4] + 1
    driven.controls["To the next kernel"].click()
    assert slider.value > steps[4] + 1
    assert re.search(r"Next: main \d+: invoke_packed ", driven.words)
    driven.controls["Reset"].click()
    assert slider.value == 0
    driven.controls["Step back"].click()
    assert slider.value == 0
    slider.value = slider.max
    driven.controls["Step"].click()
    assert slider.value == slider.max


def test_player_moves_the_slider_to_the_end(driven):
    player, slider = driven.controls["Play"], driven.controls["Instructions done"]
    assert (player.min, player.max) == (slider.min, slider.max)
    player.value = 3
    assert slider.value == 3
    assert driven.words.startswith("Step 3 of")
    slider.value = 1
    assert player.value == 1


def test_another_input_takes_the_other_branch(driven):
    branch = {}
    for name in ("true", "false"):
        driven.controls["Input"].value = name
        assert driven.controls["Instructions done"].value == 0
        driven.controls["To the branch"].click()
        driven.controls["Step"].click()
        branch[name] = driven.words
    assert "; equal, goes to" in branch["true"]
    assert "; not equal, goes to" in branch["false"]


def test_another_model_brings_its_inputs_and_its_line(driven, cases):
    driven.controls["Instructions done"].value = 5
    driven.controls["Model"].value = "any rows"
    assert driven.controls["Input"].options == ("2 rows", "3 rows")
    assert driven.words.startswith(f"Step 0 of {len(recorded(cases['any rows'], '2 rows')) - 1}.")
    assert html.escape(cases["any rows"].graph_words()) in driven.picture
    driven.controls["Model"].value = "static"
    assert html.escape(cases["static"].line[0]) in driven.picture


def test_static_form_is_made_of_the_same_runs(cases):
    one = cases["choice"]
    runs = {name: recorded(one, name) for name in one.inputs}
    text = vm_stepper.alt_text("choice", one, runs)
    for name, states in runs.items():
        assert f"Input {name}: {len(states) - 1} instructions, 1 kernel, in main" in text
        assert f"at most {max(state.live_bytes for state in states)} bytes alive" in text
    assert text.endswith(one.graph_words())
    drawn = vm_stepper.figure("choice", one, runs)
    drawn.canvas.draw()
    texts = [t.get_text() for f in drawn.subfigs for a in f.axes for t in a.texts]
    assert sum(text.startswith("if: ") for text in texts) == 2
