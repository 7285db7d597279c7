"""The pass microscope: what it shows of a trace, and its widgets driven."""

import re

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from helpers import WorkbookError, differences, ir, modules, passes, plots, programs
from helpers.widgets import pass_microscope

pytestmark = pytest.mark.usefixtures("relay")

PASSES = ["SimplifyInference", "FoldConstant", "EliminateCommonSubexpr", "FuseOps"]


def normalised(times=1):
    from tvm import relay

    x = y = relay.var("x", shape=(1, 2, 4, 4))
    for _ in range(times):
        y = relay.nn.relu(y)
        y = relay.nn.batch_norm(y, *(relay.const(np.ones(2, "float32")) for _ in range(4)))[0]
    return relay.Function([x], y)


@pytest.fixture(scope="module")
def trace(relay):
    return passes.trace(normalised(), PASSES)


@pytest.fixture
def driven(monkeypatch):
    shown = []
    monkeypatch.setattr("helpers.widgets.frame.display", lambda data, **kwargs: shown.append(data))

    def drive(programs, **options):
        rows = pass_microscope.explorer(programs, **options).children
        *controls, words, picture = [*rows[0].children, *rows[1].children, rows[2], rows[3]]
        return controls, words, picture, shown

    return drive


def plain(markup):
    return " ".join(re.sub(r"<[^>]*>", " ", markup).split())


def test_a_stop_for_each_pass_that_changed_the_program(trace):
    names = [step.name for step in pass_microscope.shown(trace, True)]
    assert names == ["SimplifyInference", "FoldConstant", "FuseOps"]
    assert [step.name for step in pass_microscope.shown(trace, False)] == PASSES


def test_words_counts_drawing_and_text_of_every_stop(driven, trace):
    (changed, step), words, picture, _ = driven({"one": trace})
    assert changed.value
    assert [label for label, _ in step.options] == ["1 of 3", "2 of 3", "3 of 3"]
    seen = []
    for k, name in enumerate(["SimplifyInference", "FoldConstant", "FuseOps"]):
        step.index = k
        found = trace.step(name)
        assert f"{name}, level {found.level}: " in words.value
        # the table is the counts of the trace
        rows = re.findall(r"(before|after)((?: [\d,]+){6})", plain(picture.value))
        wanted = [
            [f"{getattr(counts, field):,}" for field in passes.COUNTS]
            for counts in (found.before, found.after)
        ]
        assert [row.split() for _, row in rows] == wanted
        # the text is the difference of the trace, line by line
        pre = picture.value.split("<pre")[1].split(">", 1)[1].split("</pre>")[0]
        lines = re.findall(r'<span style="[^"]*">(.*?)</span>', pre)
        assert len(lines) == len(found.diff().splitlines())
        seen.append(picture.value)
    assert len(set(seen)) == 3
    step.index = 0
    assert "operators 2 to 12" in words.value
    assert "Marked as removed: 1 nn.batch_norm." in words.value
    assert seen[0].count(">NEW<") > 3
    assert seen[2].count(">k1<") == 1


def test_a_box_has_the_name_of_its_value_in_the_text(driven, trace):
    *_, picture, _ = driven({"one": trace})
    shown = re.findall(r">(%[0-9]+) ([a-z_]+)<", picture.value)
    text = trace.step("SimplifyInference").diff(context=99)
    bound = re.findall(r"^(.)\s*(%[0-9]+) = (?:nn\.)?([a-z_]+)\(", text, flags=re.MULTILINE)
    before = [(name, op) for sign, name, op in bound if sign != "+"]
    after = [(name, op) for sign, name, op in bound if sign != "-"]
    assert sorted(shown) == sorted(before + after)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_names_of_vertices_are_those_of_the_text(data):
    program = data.draw(programs.programs(most=6))
    before = modules.typed(program.function)
    after = passes.run(before, "FoldConstant")
    texts = [ir.text(before, width=10**6)]
    for module, names in zip((before, after), differences.named(before, after), strict=True):
        nodes = ir.graph(module).nodes
        assert len(set(names.values())) == len(names)
        called = {node.index for node in nodes if node.op} - {ir.graph(module).output}
        reached = networkx.ancestors(ir.graph(module).to_networkx(), ir.graph(module).output)
        assert called & reached <= names.keys()
        for index, name in names.items():
            if texts and nodes[index].op:
                assert re.search(rf"{name}\b.* = {nodes[index].op}\(", texts[0])
        texts = []  # the names of `after` are not those that Relay prints


def test_all_passes_and_those_that_changed_nothing(driven, trace):
    (changed, step), words, picture, _ = driven({"one": trace})
    step.index = 2
    changed.value = False
    assert len(step.options) == 4
    step.index = 2
    assert "EliminateCommonSubexpr, level 3: no count changed. It changed nothing." in words.value
    assert "<pre" not in picture.value


def test_a_large_program_is_traced_when_it_is_chosen_and_not_drawn(driven, trace):
    asked = []

    def large():
        asked.append("large")
        return passes.trace(normalised(30), PASSES)

    (program, _, _, step), words, picture, _ = driven({"one": trace, "large": large})
    assert asked == []
    step.index = 2
    program.value = "large"
    assert step.index == 0
    assert "operators 60 to 360" in words.value
    assert "too large to draw" in words.value
    assert "<svg" not in picture.value
    note = re.search(r"The first 60 of (\d+) lines; (\d+) are left out", picture.value)
    assert int(note[1]) - int(note[2]) == 60
    assert picture.value.count("display: block") == 60
    program.value = "one"
    program.value = "large"
    assert asked == ["large"]


def test_what_is_added_and_removed_differs_by_sign_and_colour(driven, trace):
    _, _, picture, _ = driven({"one": trace})
    styles = {}
    for style, line in re.findall(r'<span style="([^"]*)">(.*?)</span>', picture.value):
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            styles.setdefault(line[0], set()).add(style)
    assert len(styles["+"]) == len(styles["-"]) == 1
    assert styles["+"] != styles["-"]
    assert "color: #" not in "".join(*styles["+"])  # the text has JupyterLab's own colour


def test_static_form(driven, trace):
    *_, shown = driven({"one": trace}, static=[("SimplifyInference", 0), ("FoldConstant", 0)])
    text = shown[0]["text/plain"]
    assert text.startswith("The graph before and after SimplifyInference. Before: 1 nn.relu")
    steps = [trace.step("SimplifyInference"), trace.step("FoldConstant")]
    figure = pass_microscope.figure(steps)
    assert isinstance(figure, Figure)
    titles = [t.get_text() for t in figure.axes[0].texts if re.match("before|after", t.get_text())]
    assert titles == ["before SimplifyInference", "after SimplifyInference", "after FoldConstant"]
    assert plots.png(figure)


def test_what_is_not_a_trace():
    with pytest.raises(WorkbookError, match="takes names and traces"):
        pass_microscope.explorer({"one": normalised()})
    with pytest.raises(WorkbookError, match="takes names and traces"):
        pass_microscope.explorer({})
