"""Graphs against hand-worked ones and against what was recorded while building; text; drawings."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, ir, plots

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.usefixtures("relay")

UNARY = ("exp", "tanh", "sigmoid", "negative")
BINARY = ("add", "multiply", "maximum")


def build(steps):
    """A Relay function from (operator, sources), and the edges it must have.

    Source 0 is the input; source k + 1 is the result of step k.
    """
    from tvm import relay

    values = [relay.var("x", shape=(2, 3))]
    edges = []
    for k, (operator, sources) in enumerate(steps):
        values.append(getattr(relay, operator)(*(values[i] for i in sources)))
        edges += [(i, k + 1) for i in sources]
    return values, edges


@st.composite
def programs(draw):
    count = draw(st.integers(1, 14))
    steps = []
    for k in range(count):
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from(UNARY)), (draw(st.integers(0, k)),)))
        else:
            pair = (draw(st.integers(0, k)), draw(st.integers(0, k)))
            steps.append((draw(st.sampled_from(BINARY)), pair))
    return steps


def all_used(steps):
    """The function of all results that nothing else uses, and the recorded edges."""
    from tvm import relay

    values, edges = build(steps)
    used = {i for _, sources in steps for i in sources}
    ends = [k for k in range(len(values)) if k not in used]
    body = values[ends[0]] if len(ends) == 1 else relay.Tuple([values[k] for k in ends])
    return relay.Function([values[0]], body), edges


def conv_bn_relu():
    from tvm import relay

    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    extra = [relay.var(name, shape=(4,)) for name in ("gamma", "beta", "mean", "variance")]
    y = relay.nn.conv2d(x, w, padding=(1, 1), channels=4, kernel_size=(3, 3))
    y = relay.nn.relu(relay.nn.batch_norm(y, *extra)[0])
    return relay.Function([x, w, *extra], y)


def resnet(layers):
    from tvm.relay import testing

    return testing.resnet.get_workload(num_layers=layers)


@pytest.fixture(scope="module")
def resnet18(relay):
    return resnet(18)


@pytest.fixture(scope="module")
def fused18(resnet18):
    return fused(*resnet18)


def fused(module, params=None):
    import tvm
    from tvm import relay

    if isinstance(module, relay.Expr):
        module = tvm.IRModule.from_expr(module)
    if params:
        module["main"] = relay.build_module.bind_params_by_name(module["main"], params)
    passes = [relay.transform.InferType(), relay.transform.SimplifyInference()]
    passes += [relay.transform.FoldConstant()] if params else []
    passes.append(relay.transform.FuseOps(2))
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


# --- nodes and edges ---


def test_conv_bn_relu_by_hand():
    found = ir.graph(conv_bn_relu())
    assert [node.kind for node in found.nodes] == [
        *["input"] * 6,
        "call",
        "call",
        "tuple_get",
        "call",
    ]
    assert [node.op for node in found.calls] == ["nn.conv2d", "nn.batch_norm", "nn.relu"]
    assert found.edges == [
        *((0, 6), (1, 6)),
        *((6, 7), (2, 7), (3, 7), (4, 7), (5, 7)),
        *((7, 8), (8, 9)),
    ]
    x, w, gamma = found.nodes[:3]
    assert (x.name, x.shape, x.dtype, x.bytes) == ("x", (1, 3, 8, 8), "float32", 3 * 64 * 4)
    assert (w.bytes, gamma.bytes) == (4 * 3 * 9 * 4, 16)
    conv, norm = found.calls[:2]
    assert conv.bytes == 4 * 64 * 4
    assert norm.bytes == 4 * 64 * 4 + 16 + 16  # a tuple: the result, the new mean and variance
    assert norm.shape == ((1, 4, 8, 8), (4,), (4,))
    assert conv.attrs["kernel_size"] == (3, 3)
    assert conv.attrs["channels"] == 4
    assert conv.type == "float32[1, 4, 8, 8]"
    assert found.output == 9


def test_the_same_argument_twice_gives_two_edges():
    found = ir.graph(build([("multiply", (0, 0))])[0][1])
    assert found.edges == [(0, 1), (0, 1)]
    networkx_graph = found.to_networkx()
    assert networkx_graph.number_of_edges(0, 1) == 2
    assert sorted(d["position"] for _, _, d in networkx_graph.edges(data=True)) == [0, 1]


def test_attributes_without_a_python_class():
    from tvm import relay

    pool = relay.nn.adaptive_max_pool1d(relay.var("x", shape=(1, 2, 8)), 4)
    assert ir.graph(pool).calls[0].attrs == {
        "output_size": (4,),
        "layout": "NCW",
        "out_layout": "",
    }


def test_element_sizes():
    assert ir.tensor_bytes((3, 5), "int8") == 15
    assert ir.tensor_bytes((3, 5), "float16") == 30
    assert ir.tensor_bytes((3, 5), "bool") == 15  # TVM stores one byte an element
    assert ir.tensor_bytes((3, 5), "uint1") == 15
    assert ir.tensor_bytes((), "float64") == 8
    assert ir.tensor_bytes((3, "?"), "int8") is None
    assert ir.tensor_bytes((0, 7), "float32") == 0


@settings(max_examples=40, deadline=None)
@given(programs())
def test_random_programs_have_the_recorded_graph(steps):
    function, edges = all_used(steps)
    found = ir.graph(function)
    assert len(found.calls) == len(steps)
    assert found.operators == Counter(operator for operator, _ in steps)
    assert all(source < target for source, target in found.edges)
    assert [node.index for node in found.nodes] == list(range(len(found.nodes)))
    # Indices may differ from the order of building, so compare the edges up to a renaming that
    # follows the argument positions back from the results.
    names = {found.nodes[0].index: 0}
    recorded = {k + 1: (operator, sources) for k, (operator, sources) in enumerate(steps)}
    ends = [k for k in range(len(steps) + 1) if k not in {i for i, _ in edges}]
    last = found.nodes[found.output]
    waiting = list(zip(last.inputs if last.kind == "tuple" else [last.index], ends, strict=True))
    while waiting:
        here, there = waiting.pop()
        if here in names:
            assert names[here] == there
            continue
        names[here] = there
        operator, sources = recorded[there]
        assert found.nodes[here].op == operator
        waiting += zip(found.nodes[here].inputs, sources, strict=True)
    mine = Counter((names[a], names[b]) for a, b in found.edges if found.nodes[b].op)
    assert mine == Counter(edges)


def joins(found):
    """How often which operators feed which, in argument order."""
    return Counter((n.op, tuple(found.nodes[i].op for i in n.inputs)) for n in found.calls)


@settings(max_examples=15, deadline=None)
@given(programs())
def test_a_normal_form_and_fusion_keep_the_graph(steps):
    import tvm
    from tvm import relay

    function, _ = all_used(steps)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    plain = ir.graph(module)
    lets = ir.graph(relay.transform.ToANormalForm()(module))
    assert lets.operators == plain.operators
    assert len(lets.edges) == len(plain.edges)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    inside = ir.graph(relay.transform.FuseOps(2)(module))
    assert inside.operators == plain.operators
    assert joins(inside) == joins(plain) == joins(lets)


def test_a_dead_let_is_a_node_without_consumers():
    from tvm import relay

    x = relay.var("x", shape=(2,))
    a, b = relay.Var("a"), relay.Var("b")
    program = relay.Let(a, relay.exp(x), relay.Let(b, relay.tanh(x), b))
    found = ir.graph(relay.Function([x], program))
    assert [(node.op, node.name) for node in found.calls] == [("exp", "a"), ("tanh", "b")]
    assert found.edges == [(0, 1), (0, 2)]
    assert found.output == 2


def test_deep_programs():
    import tvm
    from tvm import relay

    chain = build([("tanh", (k,)) for k in range(3000)])[0][-1]
    found = ir.graph(chain)
    assert found.edges == [(k, k + 1) for k in range(3000)]
    assert len(ir.text(chain).splitlines()) == 3002
    lets = relay.transform.ToANormalForm()(
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], relay.const(1.0))))
    )
    assert ir.graph(lets).calls == []
    x = relay.var("x", shape=(2,))
    values = [relay.Var(f"v{k}") for k in range(1500)]
    body = values[-1]
    for k in reversed(range(1500)):
        body = relay.Let(values[k], relay.exp(values[k - 1] if k else x), body)
    assert ir.graph(relay.Function([x], body)).edges == [(k, k + 1) for k in range(1500)]


def test_resnet18_counts(resnet18):
    found = ir.graph(resnet18[0])
    # He and others (2016), figure 3 and table 1: 8 blocks of 2 convolutions, a first convolution,
    # 4 projections in TVM's variant (one a stage); one addition a block.
    assert found.operators["nn.conv2d"] == 1 + 8 * 2 + 4
    assert found.operators["add"] == 8
    weights = {name: array.numpy().nbytes for name, array in resnet18[1].items()}
    sizes = {node.name: node.bytes for node in found.nodes if node.kind == "input"}
    assert {name: sizes[name] for name in weights} == weights


def dense_relu_softmax():
    from tvm import relay

    x = relay.var("x", shape=(2, 8))
    w = relay.const(np.ones((4, 8), "float32"))
    return relay.Function([x], relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w))))


def test_fused_functions_inside_and_as_nodes():
    module = fused(dense_relu_softmax())
    inside = ir.graph(module)
    assert [(node.op, node.group) for node in inside.calls] == [
        ("nn.dense", 1),
        ("nn.relu", 1),
        ("nn.softmax", 2),
    ]
    outside = ir.graph(module, inside=False)
    kernels = [node for node in outside.nodes if node.kind == "fused"]
    assert [node.name for node in kernels] == ["fused_nn_dense_nn_relu", "fused_nn_softmax"]
    assert kernels[0].inputs == (0, 1)
    assert kernels[1].inputs == (kernels[0].index,)
    assert kernels[0].bytes == 2 * 4 * 4
    assert outside.calls == []


def test_fused_names_are_the_kernels_names():
    import tvm
    from tvm import relay

    nodes = ir.graph(fused(dense_relu_softmax()), inside=False).nodes
    with tvm.transform.PassContext(opt_level=1):
        built = relay.build(
            tvm.IRModule.from_expr(dense_relu_softmax()), "llvm -mtriple=x86_64-linux-gnu"
        )
    kernels = set(built.function_metadata) - {"__tvm_main__"}
    assert {f"tvmgen_default_{node.name}" for node in nodes if node.kind == "fused"} == kernels


def test_a_function_called_twice_has_its_nodes_twice():
    from tvm import relay

    x, p = relay.var("x", shape=(2,)), relay.var("p", shape=(2,))
    outer = relay.exp(x)
    function = relay.Function([p], relay.tanh(p) + outer)
    twice = relay.Call(function, [relay.Call(function, [outer])])
    found = ir.graph(relay.Function([x], twice))
    assert [(node.op, node.inputs) for node in found.nodes] == [
        ("", ()),
        ("exp", (0,)),
        ("tanh", (1,)),
        ("add", (2, 1)),
        ("tanh", (3,)),
        ("add", (4, 1)),
    ]


def test_functions_of_a_module():
    module = two_functions()
    assert ir.graph(module, function="f").operators == {"exp": 1}
    assert [n.kind for n in ir.graph(module).nodes] == ["input", "global", "call", "call"]
    with pytest.raises(WorkbookError, match=r"no function @g; it has: f, main"):
        ir.graph(module, function="g")


def test_what_is_no_program():
    from tvm import relay

    with pytest.raises(WorkbookError, match="not int"):
        ir.graph(3)
    wrong = relay.var("a", shape=(2, 3)) + relay.var("b", shape=(4, 5))
    with pytest.raises(WorkbookError, match="cannot infer the types"):
        ir.graph(wrong)
    assert "add(%a, %b)" in ir.text(wrong)
    with pytest.raises(WorkbookError, match="not Op"):
        ir.graph(relay.op.get("add"))
    x = relay.var("x", shape=(1,))
    for see in (ir.graph, ir.text, ir.is_dynamic, ir.draw, ir.alt_text):
        with pytest.raises(WorkbookError, match="uses x without taking it as a parameter"):
            see(relay.Function([], relay.exp(x)))
    with pytest.raises(WorkbookError, match="constants=True"):
        ir.draw(relay.const(1.0))


def test_a_type_error_says_which_dimensions_disagree(capfd):
    from tvm import relay

    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(4, 3))
    with pytest.raises(WorkbookError, match="dimension 0 conflicts: 3 does not match 4") as caught:
        ir.graph(relay.nn.dense(x, w, units=3))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_the_given_program_is_not_changed():
    import tvm

    function = conv_bn_relu()
    module = tvm.IRModule.from_expr(function)
    before = tvm.ir.structural_hash(module)
    ir.graph(module)
    ir.is_dynamic(module)
    ir.text(module)
    ir.picture(module)
    assert tvm.ir.structural_hash(module) == before


# --- static or dynamic ---


def two_functions(recursive=False):
    import tvm
    from tvm import relay

    module = tvm.IRModule()
    f = relay.GlobalVar("f")
    p, x = relay.var("p", shape=(2,)), relay.var("x", shape=(2,))
    body = relay.exp(p)
    if recursive:
        body = relay.If(relay.const(True), body, relay.Call(f, [body]))
    module[f] = relay.Function([p], body, relay.TensorType((2,)))
    module["main"] = relay.Function([x], relay.Call(f, [relay.tanh(x)]), relay.TensorType((2,)))
    return module


def loop():
    from tvm import relay

    i, s = relay.var("i", shape=(), dtype="int32"), relay.var("s", shape=(2,))
    loop = relay.loops.while_loop(
        lambda i, s: relay.less(i, relay.const(3)),
        [i, s],
        lambda i, s: (i + relay.const(1), relay.exp(s)),
    )
    x = relay.var("x", shape=(2,))
    return relay.Function([x], relay.TupleGetItem(relay.Call(loop, [relay.const(0), x]), 1))


def dynamic_cases():
    from tvm import relay

    x = relay.var("x", shape=(2, 4))
    c = relay.var("c", shape=(), dtype="bool")
    anyx = relay.var("x", shape=(relay.Any(), 4))
    pair = relay.var("pair", type_annotation=relay.TupleType([anyx.type_annotation] * 2))
    ref = relay.Var("r")
    y = relay.Var("f")
    p = relay.var("p", shape=(2, 4))
    return {
        "unknown input": (
            relay.Function([anyx], relay.exp(anyx)),
            ["%x: dimension 0 of (?, 4) is known only at run time"],
        ),
        "static if": (
            relay.Function([c, x], relay.If(c, relay.exp(x), x)),
            ["if: a value known only at run time chooses the branch"],
        ),
        "constant if": (
            relay.Function([x], relay.If(relay.const(True), relay.exp(x), x)),
            ["if: its condition is the constant True, but both branches are still there"],
        ),
        "loop": (
            loop(),
            [
                "%while_loop calls itself: how often is known only at run time",
                "if: a value known only at run time chooses the branch",
                "%while_loop is called: a local function (closure)",
            ],
        ),
        "argwhere": (
            relay.Function([x], relay.argwhere(x)),
            ["argwhere: dimension 0 of its result (?, 2) depends on values, not on shapes"],
        ),
        "declared by a parameter": (
            relay.Function([x], relay.Call(relay.Function([anyx], relay.exp(anyx)), [x])),
            ["exp: dimension 0 of its result (?, 4) is known only at run time"],
        ),
        "tuple with unknown": (
            relay.Function([pair], relay.TupleGetItem(pair, 0)),
            ["%pair: dimension 0 of (?, 4) is known only at run time"] * 1,
        ),
        "reference": (
            relay.Function([x], relay.Let(ref, relay.RefCreate(x), relay.RefRead(ref))),
            [
                "ref_create: a reference, whose content can change during the run",
                "ref_read: a reference, whose content can change during the run",
            ],
        ),
        "closure": (
            relay.Function(
                [x], relay.Let(y, relay.Function([p], relay.exp(p)), relay.Call(y, [x]))
            ),
            ["%f is called: a local function (closure)"],
        ),
        "global": (two_functions(), ["@f is called: a global function"]),
        "recursion": (
            two_functions(recursive=True),
            [
                "@f is called: a global function",
                "if: its condition is the constant True, but both branches are still there",
                "@f calls itself: how often is known only at run time",
            ],
        ),
    }


CASES = (
    "unknown input",
    "static if",
    "constant if",
    "loop",
    "argwhere",
    "tuple with unknown",
    "reference",
    "closure",
    "global",
    "recursion",
)


@pytest.mark.parametrize("name", CASES)
def test_dynamic_programs_and_why(name):
    program, reasons = dynamic_cases()[name]
    found = ir.is_dynamic(program)
    assert found
    assert found.reasons == reasons


def graph_executor_takes(program):
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    module = program if isinstance(program, tvm.IRModule) else tvm.IRModule.from_expr(program)
    try:
        with tvm.transform.PassContext(opt_level=0):
            built = relay.build(module, "llvm -mtriple=x86_64-linux-gnu")
        graph_executor.GraphModule(built["default"](tvm.cpu()))
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_the_graph_executor_takes_none_of_them(name):
    assert not graph_executor_takes(dynamic_cases()[name][0])


def test_static_programs(resnet18):
    for program in (conv_bn_relu(), all_used([("exp", (0,)), ("add", (0, 1))])[0]):
        assert not ir.is_dynamic(program)
        assert ir.is_dynamic(program).reasons == []
        assert graph_executor_takes(program)
    assert not ir.is_dynamic(resnet18[0])
    assert not ir.is_dynamic(fused(conv_bn_relu()))


def test_match_is_dynamic():
    import tvm
    from tvm import relay

    module = tvm.IRModule()
    box = relay.GlobalTypeVar("Box")
    full = relay.Constructor("Full", [relay.TensorType((2,))], box)
    empty = relay.Constructor("Empty", [], box)
    module[box] = relay.TypeData(box, [], [full, empty])
    x, head = relay.var("x", shape=(2,)), relay.Var("h")
    clauses = [
        relay.Clause(relay.PatternConstructor(full, [relay.PatternVar(head)]), relay.exp(head)),
        relay.Clause(relay.PatternConstructor(empty, []), x),
    ]
    module["main"] = relay.Function([x], relay.Match(full(x), clauses))
    assert ir.is_dynamic(module).reasons == [
        "Full: a constructor of an algebraic data type",
        "match: the constructor of a value, known only at run time, chooses the branch",
    ]
    found = ir.graph(module)
    exp = next(node for node in found.calls if node.op == "exp")
    assert found.nodes[exp.inputs[0]].name == "Full"  # the variable stands for the matched value


# --- text ---


def test_text_by_hand():
    from tvm import relay

    x = relay.var("x", shape=(1, 4))
    w = relay.const(np.ones((3, 4), "float32"))
    program = relay.Function([x], relay.nn.relu(relay.nn.dense(x, w)) * relay.const(2.0))
    assert ir.text(program) == "\n".join(
        [
            "fn (%x: Tensor[(1, 4), float32]) -> Tensor[(1, 3), float32] {",
            "  %0 = nn.dense(%x, const(float32[3, 4]), units=None);",
            "  %1 = nn.relu(%0);",
            "  multiply(%1, 2f)",
            "}",
        ]
    )
    assert ir.text(program, types=True).splitlines()[1:4] == [
        "  %0 = nn.dense(%x, const(float32[3, 4]), units=None) /* ty=Tensor[(1, 3), float32] */;",
        "  %1 = nn.relu(%0) /* ty=Tensor[(1, 3), float32] */;",
        "  multiply(%1, 2f) /* ty=Tensor[(1, 3), float32] */",
    ]


def test_text_of_normal_form_does_not_tell_what_was_compiled_before():
    import tvm
    from tvm import relay

    def normal_form():
        x, own = relay.var("x", shape=(4,)), relay.var("x_0", shape=(4,))
        program = relay.Function([x, own], relay.exp(relay.tanh(x + own)))
        return ir.text(relay.transform.ToANormalForm()(tvm.IRModule.from_expr(program)))

    first, second = normal_form(), normal_form()
    assert first == second
    # The caller's own x_0 keeps its name.
    assert re.findall(r"let %(\w+).*= (\w+)\((.*)\);", first) == [
        ("x_1", "add", "%x, %x_0"),
        ("x_2", "tanh", "%x_1"),
        ("x_3", "exp", "%x_2"),
    ]


def test_text_of_a_planned_program_names_its_device_and_no_address():
    import tvm
    from tvm import relay

    from helpers.targets import TEACHING_CPU

    x = relay.var("x", shape=(4,))
    program = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    with tvm.transform.PassContext(opt_level=0):
        optimized, _ = relay.optimize(program, tvm.target.Target(TEACHING_CPU, host=TEACHING_CPU))
    lines = ir.text(optimized).splitlines()
    assert lines[0].startswith("def @main(%x {virtual_device=cpu(0)}: Tensor[(4), float32]")
    assert "Target" not in "".join(lines)
    assert lines[-1] == "}"


def test_text_of_a_module_starts_with_main():
    heads = [line for line in ir.text(two_functions()).splitlines() if line.startswith("def")]
    assert [head.split("(")[0] for head in heads] == ["def @main", "def @f"]


@pytest.mark.parametrize("types", [False, True])
def test_text_keeps_to_its_width_and_has_no_metadata(fused18, types):
    text = ir.text(fused18, types=types)
    assert "meta[" not in text
    assert "hash=" not in text
    assert "0x" not in text
    assert "span" not in text
    assert max(map(len, text.splitlines())) <= 96
    assert text.count("const(float32[") > 20
    assert ("/* ty=" in text) == types


def test_text_and_drawing_are_the_same_in_every_process():
    code = """
import hashlib
from helpers import use_tvm
use_tvm("relay", quiet=True)
from tvm.relay import testing
from helpers import ir, plots
from tests.test_ir import fused, two_functions
module = fused(testing.resnet.get_workload(num_layers=18)[0])
parts = [ir.text(module), ir.text(two_functions(True)), str(ir.graph(module)), ir.alt_text(module)]
print([hashlib.sha256(p.encode()).hexdigest() for p in parts])
print(hashlib.sha256(plots.png(ir.draw(module))).hexdigest())
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "4711")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 300


# --- drawing ---


def calls_drawn(found):
    nodes = found.graph.nodes
    return [i for box in found.boxes for copy in box.copies for i in copy if nodes[i].op]


def labels(figure):
    return [text.get_text() for text in figure.axes[0].texts]


@settings(max_examples=25, deadline=None)
@given(programs(), st.sampled_from([3, 6, 40]), st.booleans())
def test_every_call_is_drawn_once(steps, max_boxes, do_fuse):
    import tvm
    from tvm import relay

    function, _ = all_used(steps)
    program = fused(function) if do_fuse else function
    if do_fuse:
        assert isinstance(program, tvm.IRModule)
    found = ir.picture(program, max_boxes=max_boxes)
    assert Counter(calls_drawn(found)) == Counter(node.index for node in found.graph.calls)
    assert all(a < b for a, b in found.arrows)
    assert isinstance(function, relay.Function)
    whole = ir.picture(program, fold=False)
    assert whole.level == "operators"
    assert all(len(box.nodes) == 1 for box in whole.boxes)


@pytest.mark.parametrize(
    ("name", "most"), [("resnet50", 40), ("mobilenet", 40), ("densenet", 40), ("inception", 40)]
)
def test_large_models_fold(name, most):
    from tvm.relay import testing

    module = {
        "resnet50": lambda: resnet(50),
        "mobilenet": testing.mobilenet.get_workload,
        "densenet": testing.densenet.get_workload,
        "inception": testing.inception_v3.get_workload,
    }[name]()[0]
    found = ir.picture(module)
    assert len(found.boxes) <= most
    assert sum(box.times * len(box.nodes) for box in found.boxes) == len(found.graph.calls) + 1
    assert Counter(calls_drawn(found)) == Counter(node.index for node in found.graph.calls)


def test_resnet50_repeats_its_blocks():
    found = ir.picture(resnet(50)[0])
    # 3, 4, 6 and 3 blocks a stage (He and others, table 1); the first of each has a projection.
    assert [times for _, times in found.repeats] == [2, 3, 5, 2]
    for positions, _ in found.repeats:
        operators = [
            found.graph.nodes[i].op for position in positions for i in found.boxes[position].nodes
        ]
        assert Counter(operators) == {"nn.conv2d": 3, "nn.batch_norm": 3, "nn.relu": 3, "add": 1}


def test_blocks_that_differ_in_size_fold_only_when_they_must():
    from tvm import relay

    value = relay.var("x", shape=(1, 4, 8, 8))
    for k in range(12):
        w = relay.var(f"w{k}", shape=(4 * (k + 2), 4 * (k + 1), 1, 1))
        value = relay.nn.relu(relay.nn.conv2d(value, w, channels=4 * (k + 2), kernel_size=(1, 1)))
    assert ir.picture(value).repeats == []
    folded = ir.picture(value, max_boxes=3)
    assert folded.repeats == [((1, 2), 12)]
    assert "1×8…52×8×8" in labels(ir.draw(value, max_boxes=3))


def test_densenet_repeats_its_layers():
    # 6, 12, 24 and 16 layers a block (Huang and others, 2017, table 1, DenseNet-121). Layers differ
    # in size, since each adds channels; the last layer of a block meets no further layer.
    from tvm import relay

    value = relay.var("x", shape=(1, 8, 8, 8))
    channels = 8
    for block, layers in enumerate((6, 12, 24, 16)):
        for k in range(layers):
            w = relay.var(f"w{block}_{k}", shape=(4, channels, 1, 1))
            new = relay.nn.conv2d(relay.nn.relu(value), w, channels=4, kernel_size=(1, 1))
            value = relay.concatenate([value, new], axis=1)
            channels += 4
        value = relay.tanh(value)
    assert [times for _, times in ir.picture(value).repeats] == [6, 12, 24, 16]


def test_a_fused_program_is_drawn_by_group(fused18):
    module = fused18
    found = ir.picture(module)
    kernels = sum(node.kind == "fused" for node in ir.graph(module, inside=False).nodes)
    assert len(found.groups) == kernels == len(found.boxes) - 1
    assert {f"k{k}" for k in range(1, kernels + 1)} <= set(labels(ir.draw(module)))


def test_groups_can_be_given():
    values, _ = build([("exp", (0,)), ("tanh", (1,)), ("sigmoid", (2,))])
    found = ir.picture(values[-1], groups=[[1, 2], [3]])
    assert found.groups == {1: 1, 2: 1, 3: 2}
    crossed = [[1, 3], [2]]
    with pytest.raises(WorkbookError, match="need each other's results"):
        ir.picture(values[-1], groups=crossed, max_boxes=2)


def test_what_a_drawing_says():
    figure = ir.draw(conv_bn_relu(), title="One block")
    said = labels(figure)
    for label in ("x", "conv2d 3×3", "batch_norm", "relu", "1×4×8×8", "One block", "elementwise"):
        assert label in said
    assert not {"w", "gamma"} & set(said)
    assert {"w", "gamma"} <= set(labels(ir.draw(conv_bn_relu(), constants=True)))


def test_alt_text():
    assert ir.alt_text(conv_bn_relu()) == (
        "Dataflow graph of 3 operator calls: 1 nn.conv2d, 1 nn.batch_norm, 1 nn.relu. "
        "Inputs: x float32[1, 3, 8, 8]. Result: float32[1, 4, 8, 8]."
    )
    values, _ = build([("exp", (0,)), ("tanh", (1,))])
    assert "Groups: k1 exp + tanh." in ir.alt_text(fused(values[-1]))


def test_too_large_to_read():
    chain = build([("tanh", (k,)) for k in range(500)])[0][-1]
    assert len(ir.picture(chain).boxes) <= 40
    with pytest.raises(WorkbookError, match="501 boxes cannot be read"):
        ir.draw(chain, fold=False)


@pytest.mark.parametrize("make", [loop, two_functions, lambda: dynamic_cases()["static if"][0]])
def test_control_flow_can_be_drawn(make):
    figure = ir.draw(make())
    assert plots.png(figure).startswith(b"\x89PNG")


def test_a_loop_says_what_calls_what():
    said = labels(ir.draw(loop()))
    assert said.count("call %while_loop") == 2
    assert {"while_loop itself", "function while_loop", "if", "2 values"} <= set(said)
