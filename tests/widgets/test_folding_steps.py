"""The walks over a graph against TVM's own passes, and the widgets that step through them."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, ir, modules, passes, plots, programs
from helpers.programs import MORE_OPERATORS, OPERATORS
from helpers.widgets import folding_steps
from helpers.widgets.folding_steps import constants, liveness

pytestmark = pytest.mark.usefixtures("relay")

EVERYTHING = (*OPERATORS, *MORE_OPERATORS)
# where the rule has its exceptions, which are rare among all operators
EXCEPTIONS = ("negative", "add", "sum", "concatenate", "split", "zeros", "shape_of", "nn.dropout")


def operators(x):
    return Counter(node.op for node in ir.graph(x).calls)


def small(program, limit):
    return len(ir.graph(program.function).nodes) <= limit


def const(value):
    from tvm import relay

    return relay.const(np.array(value, "float32"))


def smallest():
    from tvm import relay

    x = relay.var("x", shape=(4,))
    return x * relay.sqrt((const(1) + const(2)) * const(3))


def let(body, kind="Tensor[(4), float32]"):
    from tvm import relay

    text = f'#[version = "0.0.5"] def @main(%x: {kind}) -> {kind} {{ {body} }}'
    return modules.typed(relay.parse(text))


# --- the walks ------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_what_is_left_is_what_fold_constant_leaves(data):
    names = data.draw(st.sampled_from([EVERYTHING, EXCEPTIONS]))
    program = data.draw(programs.programs(operators=names, most=6))
    if small(program, folding_steps.MOST):
        walk = constants(program.function)
        assert walk.operators == operators(passes.run(program.function, "FoldConstant"))
        assert sorted(visit.vertex for visit in walk.visits) == list(range(len(walk.graph.nodes)))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_what_is_live_is_what_dead_code_elimination_leaves(data):
    references = data.draw(st.booleans())
    options = {"lets": True, "references": references, "operators": EVERYTHING, "most": 6}
    program = data.draw(programs.programs(**options))
    if small(program, folding_steps.MOST):
        walk = liveness(program.function)
        after = passes.run(program.function, "DeadCodeElimination")
        assert walk.operators == operators(after)
        assert {visit.vertex for visit in walk.visits} == walk.kept


def test_a_reference_that_nobody_reads_takes_a_stateful_operator_with_it(relay):
    """For TVM making a reference is pure, whatever is computed for its first value."""
    x = relay.var("x", shape=(2,))
    for value, left in ((relay.RefCreate(relay.nn.dropout(x)), 1), (relay.nn.dropout(x), 2)):
        function = relay.Function([x], relay.Let(relay.var("v"), value, relay.negative(x)))
        after = passes.run(function, "DeadCodeElimination")
        assert liveness(function).operators == operators(after)
        assert operators(after).total() == left


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_live_is_what_a_path_to_a_root_starts_from(data):
    import networkx

    program = data.draw(programs.programs(lets=True, most=6))
    if small(program, folding_steps.MOST):
        walk = liveness(program.function)
        graph = walk.graph.to_networkx()
        assert walk.roots == {walk.graph.output}
        assert walk.kept == networkx.ancestors(graph, walk.graph.output) | {walk.graph.output}


def test_smallest_program_by_hand():
    walk = constants(smallest())
    assert [visit.state for visit in walk.visits] == [
        *("left", "constant", "constant", "folded", "constant", "folded", "folded", "left")
    ]
    assert {walk.name(k) for k in walk.kept} == {"v0 x", "v6 sqrt", "v7 multiply"}
    assert walk.states(4) == {0: "left", 1: "constant", 2: "constant", 3: "folded"}


def test_a_write_is_kept_with_what_it_needs():
    body = "let %a = exp(%x); let %r = ref(%x); let %u = ref_write(%r, %a); ref_read(%r)"
    walk = liveness(let(body, "float32"))
    assert len(walk.kept) == 5
    assert {walk.name(k).split()[1] for k in walk.roots} == {"ref_write", "ref_read"}


def test_programs_that_a_walk_does_not_take():
    from tvm import relay

    x = relay.var("x", shape=(4,))
    branch = relay.If(relay.less(const(1), const(2)), relay.exp(x), relay.tanh(x))
    long = x
    for _ in range(folding_steps.MOST):
        long = relay.exp(long)
    with pytest.raises(WorkbookError, match="has a if too"):
        constants(branch)
    with pytest.raises(WorkbookError, match="at most 40 vertices"):
        constants(long)
    with pytest.raises(WorkbookError, match="has lets"):
        constants(let("let %a = exp(%x); %a"))
    with pytest.raises(WorkbookError, match="not 'forwards'"):
        folding_steps.explorer({"x": smallest()}, "forwards")


# --- the widgets ----------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """What is displayed: bundles of data by MIME type."""
    found = []
    monkeypatch.setattr("helpers.widgets.frame.display", lambda data, **kwargs: found.append(data))
    return found


def parts(box):
    (program, step), words, picture = box.children[0].children, box.children[1], box.children[2]
    return program, step, words, picture


def test_stepping_changes_words_and_picture(shown):
    dead = "let %a = exp(%x); let %b = tanh(%a); nn.relu(%x)"
    box = folding_steps.explorer({"dead": let(dead), "none": let("exp(%x)")}, "liveness")
    program, step, words, picture = parts(box)
    seen = []
    for value in range(step.max + 1):
        step.value = value
        seen.append((words.value, picture.value))
    assert len(set(seen)) == len(seen) == 4
    assert "v3 relu is live: it is the output" in seen[1][0]
    assert "Not reached: v1 exp, v2 tanh." in seen[2][0]
    assert "Gone: v1 exp, v2 tanh" in seen[-1][0]
    assert seen[-1][0].count("1 operator (1 nn.relu)") == 2  # ours, and TVM's
    assert picture.value.count(">gone<") == 2
    program.value = "none"
    assert (step.value, step.max) == (0, 3)
    assert "2 vertices will be visited" in words.value


def test_the_boxes_stay_where_they_are(shown):
    row, words, picture, *_ = folding_steps.explorer({"one": smallest()}).children
    (step,) = row.children
    places = set()
    for value in range(step.max + 1):
        step.value = value
        places.add(tuple(re.findall(r"<g><title>.*?</title><rect x=\S+ y=\S+", picture.value)))
    places = {re.sub(r"<title>.*?</title>", "", "".join(found)) for found in places}
    assert len(places) == 1
    assert "TVM&#x27;s FoldConstant leaves 1 operator (1 multiply)" in words.value


def test_static_form_says_what_it_shows(shown):
    folding_steps.explorer({"one": smallest()})
    bundle, folded = shown
    words = folding_steps.alt_text({"one": constants(smallest())})
    assert bundle["text/plain"] == folded["text/plain"] == words
    assert folded["text/html"].startswith("<details>")
    assert len(folded) == 2
    assert "What is left: 1 operator (1 multiply)" in bundle["text/plain"]
    figure = folding_steps.figure({"one": constants(smallest())})
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("gone") == 5
    assert "all visited" in texts
    assert plots.png(figure) == plots.png(folding_steps.figure({"one": constants(smallest())}))


def test_static_form_of_several_programs(shown):
    programs = {"one": smallest(), "other": smallest(), "third": smallest()}
    folding_steps.explorer(programs, static=["one", "third"])
    words = shown[0]["text/plain"]
    assert words.startswith("one: Step 8 of 8: v7 multiply is not constant")
    assert words.count("third: Step 8 of 8") == 1
    assert "other" not in words
    with pytest.raises(WorkbookError, match="'fourth', which is no program here"):
        folding_steps.explorer(programs, static=["fourth"])


def test_the_box_as_a_result_of_a_cell_displays_nothing_more(shown):
    from IPython.core.formatters import DisplayFormatter

    box = folding_steps.explorer({"one": smallest()})
    assert DisplayFormatter().format(box) == ({}, {})
