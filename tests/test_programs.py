"""Random Relay programs, their values by numpy, and the smallest program that a pass breaks."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings

from bench import random_programs
from helpers import WorkbookError, build, fusion, ir, programs

QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
EVERYTHING = {
    "lets": True,
    "branches": True,
    "references": True,
    "operators": (*programs.OPERATORS, *programs.MORE_OPERATORS),
}


@pytest.fixture(scope="module", autouse=True)
def _relay(relay):
    """All tests here need Relay."""


def drawn(count, **options):
    """Programs of a fixed seed: those that counterexample tries."""
    kept = []

    def keep(module):
        kept.append(module)
        return module

    assert programs.counterexample(keep, examples=count, **options) is None
    return kept


def together(relay, modules):
    """One function that computes the outputs of all programs, and its inputs."""
    parameters, bodies, inputs = [], [], {}
    for number, module in enumerate(modules):
        main, names = module["main"], {}
        for k, old in enumerate(main.params):
            name = f"{old.name_hint}{number}"
            names[old] = relay.var(name, old.checked_type)
            kind = old.checked_type
            value = programs.entries(tuple(int(n) for n in kind.shape), 3 * k)
            inputs[name] = value.astype(str(kind.dtype))
        parameters += names.values()
        bodies.append(relay.bind(main, names).body if names else main.body)
    bodies = [relay.Function(parameters, body).body for body in bodies]
    return relay.Function(parameters, relay.Tuple(bodies)), inputs


def agree(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("executor", "options"),
    [
        ("graph", {"shapes": [(2, 3), (1, 4, 3, 3), (1, 8, 2, 2)]}),
        ("vm", {"lets": True, "branches": True}),
    ],
)
def test_values_are_those_of_tvms_executors(relay, executor, options):
    # Not compiled by either: reshape of a scalar constant, and a field of a tuple of constants.
    names = [name for name in EVERYTHING["operators"] if name != "reshape"]
    modules = drawn(60, operators=names, tuples=False, **options)
    function, inputs = together(relay, modules)
    compiled = build.compile(function, executor=executor, opt_level=1)
    agree(programs.evaluate(function, inputs), compiled.run(**inputs))


def test_values_are_those_of_tvms_interpreter(relay):
    """With tuples and references, which it alone runs."""
    small = {"shapes": [(2,)], "operators": ["negative", "add", "reshape"]}
    modules = drawn(50, lets=True, branches=True, references=True, **small)
    assert sum("ref_write" in str(module) for module in modules) > 5
    function, inputs = together(relay, modules)
    interpreter = relay.create_executor("debug", tvm_module(function), target="llvm")
    result = interpreter.evaluate()(*inputs.values())
    agree(programs.evaluate(function, inputs), [array.numpy() for array in flat(result)])


def tvm_module(function):
    import tvm

    return tvm.IRModule.from_expr(function)


def flat(value):
    if hasattr(value, "numpy"):
        return [value]
    return [array for item in value for array in flat(item)]


def expressions(relay):
    """Calls of the operators that passes bring in, and of attributes that no program has."""
    x = relay.var("x", shape=(1, 4, 5, 5))
    positive = relay.abs(x) + relay.const(1.0)
    kernel = relay.const(programs.entries((8, 2, 3, 3), 1))
    each = relay.const(programs.entries((4, 1, 3, 3), 2))
    size = {"kernel_size": (3, 3)}
    nhwc = relay.layout_transform(x, "NCHW", "NHWC")
    blocked = relay.layout_transform(x, "NCHW", "NCHW4c")
    per_channel = [relay.const(np.abs(programs.entries((4,), k))) for k in range(4)]
    indices = relay.const(np.array([3, 0], "int32"))
    nn = relay.nn
    return x, [
        *(f(positive) for f in (relay.log, relay.sqrt, relay.rsqrt, relay.floor, relay.sigmoid)),
        *(relay.cos(x), relay.sin(x), relay.ceil(x), relay.sign(x)),
        *(relay.power(positive, relay.const(2.0)), relay.minimum(x, relay.const(1.0))),
        relay.where(relay.greater(x, relay.const(1.0)), x, relay.zeros_like(x)),
        relay.logical_not(relay.logical_and(relay.less(x, positive), relay.equal(x, x))),
        *(relay.op._make.fast_exp(x), relay.op._make.fast_tanh(x), nn.fast_softmax(x)),
        *(relay.clip(x, -1.0, 2.0), nn.leaky_relu(x, 0.1), relay.full_like(x, relay.const(3.0))),
        *(relay.full(relay.const(2.0), (2, 3)), relay.cast(x, "int32"), relay.shape_of(x)),
        *(relay.min(x, axis=(1, -1)), relay.prod(x, axis=2), relay.sum(x, axis=1, exclude=True)),
        *(relay.mean(x, axis=None), relay.max(x, axis=(0, 2), keepdims=True)),
        *(relay.broadcast_to(relay.max(x, axis=1, keepdims=True), (1, 4, 5, 5)), relay.squeeze(x)),
        *(relay.expand_dims(x, 2, 2), nn.batch_flatten(x), relay.reshape(x, (0, -1, 25))),
        *(relay.transpose(x), relay.stack([x, x], 1), relay.take(x, indices, axis=1)),
        relay.repeat(x, 2, axis=-2),
        *relay.split(x, 2, axis=1),
        relay.strided_slice(x, [3, 0], [-6, 5], [-1, 2], axes=[1, 3]),
        relay.strided_slice(x, [0, 1, 1, 0], [1, 2, -1, 3], slice_mode="size"),
        *(relay.cumsum(x), relay.cumprod(relay.tanh(x), axis=1), nn.log_softmax(x, axis=1)),
        *(nn.bias_add(x, per_channel[0]), nn.bias_add(nhwc, per_channel[0], axis=-1)),
        nn.batch_norm(x, *per_channel, center=False, epsilon=0.1)[0],
        nn.batch_norm(nhwc, *per_channel, axis=3, scale=False)[0],
        nn.batch_matmul(relay.squeeze(x), relay.squeeze(x), transpose_a=True),
        nn.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)), 3.0),
        nn.conv2d(x, kernel, (2, 1), (1, 0), (2, 1), groups=2, channels=8, **size),
        nn.conv2d(x, each, padding=(0, 1, 2, 1), groups=4, channels=4, **size),
        nn.conv2d(
            nhwc,
            relay.transpose(relay.const(programs.entries((3, 4, 3, 3))), (2, 3, 1, 0)),
            data_layout="NHWC",
            kernel_layout="HWIO",
            channels=3,
            **size,
        ),
        nn.contrib_conv2d_nchwc(
            blocked,
            relay.const(programs.entries((2, 1, 3, 3, 4, 4))),
            channels=8,
            **size,
            padding=(1, 1, 1, 1),
            data_layout="NCHW4c",
            kernel_layout="OIHW4i4o",
            out_layout="NCHW4c",
        ),
        nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1)),
        nn.max_pool2d(nhwc, (2, 3), (1, 2), layout="NHWC"),
        nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 0)),
        nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1), count_include_pad=True),
        *(nn.global_avg_pool2d(nhwc, "NHWC"), nn.global_max_pool2d(x)),
        *(relay.layout_transform(blocked, "NCHW4c", "NHWC"), blocked),
        relay.Let(relay.var("v"), x, relay.annotation.stop_fusion(relay.copy(x))),
    ]


def test_every_operator_means_what_tvm_computes(relay):
    x, bodies = expressions(relay)
    function = relay.Function([x], relay.Tuple(bodies))
    inputs = {"x": programs.entries((1, 4, 5, 5)) * np.float32(0.75)}
    compiled = build.compile(function, executor="vm", opt_level=1)
    agree(programs.evaluate(function, inputs), compiled.run(**inputs))


@QUIET
@given(programs.programs(**EVERYTHING))
def test_every_program_is_well_typed_and_tame(relay, program):
    assert relay.analysis.well_formed(program.module["main"])
    for value in programs.evaluate(program.function, program.inputs):
        assert np.all(np.abs(value) <= 1000)


def test_every_evaluated_operator_was_tried(relay):
    tried = set(programs.MORE_OPERATORS) | set(programs.OPERATORS)
    _, bodies = expressions(relay)
    for body in bodies:
        module = tvm_module(relay.Function(relay.analysis.free_vars(body), body))
        tried |= set(map(str, relay.analysis.list_op_freqs(module)))
    assert set(programs.operators()) - tried == {
        # which are made like others
        *("greater_equal", "less_equal", "not_equal", "logical_or", "ones_like"),
        # which only passes for several devices, and blocked depthwise layouts, bring in
        *("on_device", "nn.contrib_depthwise_conv2d_NCHWc"),
    }


def test_loops_branches_and_calls_of_functions(relay):
    """The sum 1 + 2 + ... + n by a recursive closure, which `while_loop` makes."""
    i, total = (relay.var(name, shape=(), dtype="int32") for name in ("i", "total"))
    n, one = relay.var("n", shape=(), dtype="int32"), relay.const(1)
    loop = relay.loops.while_loop(
        lambda i, total: relay.less_equal(i, n), [i, total], lambda i, total: [i + one, total + i]
    )
    function = relay.Function([n], relay.TupleGetItem(loop(one, relay.const(0)), 1))
    assert programs.evaluate(function, [10]) == [55]
    assert programs.evaluate(function, {"n": 0}) == [0]


@QUIET
@given(programs.programs())
def test_fused_programs_are_evaluated_too(relay, program):
    fused = fusion.fuse(relay.transform.SimplifyInference()(program.module))
    agree(
        programs.evaluate(fused, program.inputs),
        programs.evaluate(program.function, program.inputs),
    )


def test_what_cannot_be_evaluated_is_said(relay):
    x = relay.var("x", shape=(2,))
    with pytest.raises(WorkbookError, match="needs a value for its input x"):
        programs.evaluate(relay.Function([x], x), {"y": 1})
    with pytest.raises(WorkbookError, match=r"x has shape \(2,\), not \(3,\)"):
        programs.evaluate(relay.Function([x], x), [np.ones(3)])
    with pytest.raises(WorkbookError, match="1 inputs, and 2 are given"):
        programs.evaluate(relay.Function([x], x), [1, 2])
    with pytest.raises(WorkbookError, match="does not know the operator erf"):
        programs.evaluate(relay.Function([x], relay.erf(x)), [np.ones(2)])


# --- the programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*programs.OPERATORS, *programs.MORE_OPERATORS])
def test_hypothesis_finds_a_program_of_one_operator(relay, name):
    """Each operator can be drawn, and shrinking leaves little beside it."""
    names = [name, "negative", "add", "concatenate"]
    options = {"operators": names, "shapes": [(2,), (2, 3), (1, 4, 3, 3)]}

    def has(program):
        return name in map(str, relay.analysis.list_op_freqs(program.module))

    quick = settings(QUIET, max_examples=500, database=None)
    found = find(programs.programs(**options), has, settings=quick)
    allowed = {"shape_of": 2}  # and a cast
    assert sum(relay.analysis.list_op_freqs(found.module).values()) == allowed.get(name, 1)
    assert len(found.inputs) <= 2  # x, and a weight


def test_all_kinds_of_programs_are_drawn(relay):
    text = "".join(str(module) for module in drawn(300, **EVERYTHING))
    for part in ("let %", "if (%p", "if (True", "ref(", "ref_write(", "ref_read(", ".1", "), "):
        assert part in text, part
    text = "".join(str(module) for module in drawn(100, constants=False, tuples=False))
    assert "Constant" not in text


def test_a_program_is_shown_with_its_inputs(relay):
    x = relay.var("x", shape=(2, 2))
    program = programs.Program(relay.Function([x], relay.exp(x)), {"x": programs.entries((2, 2))})
    assert str(program).splitlines()[1:] == ["  exp(%x)", "}", "x = [[1, -2], [3, -4]]"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"operators": ["erf"]}, "Programs cannot be made of 'erf': choose from negative, "),
        ({"operators": []}, "at least one operator"),
        ({"shapes": []}, "at least one operator and one shape"),
        ({"references": True}, "set lets=True"),
        ({"most": -1}, "0 or more"),
    ],
)
def test_wrong_options_are_told(options, said):
    with pytest.raises(WorkbookError, match=said):
        programs.programs(**options)


# --- the smallest broken program ------------------------------------------------------------------


def rewriter(relay, name, replace):
    """A pass that replaces the calls of one operator."""

    class Rewriter(relay.ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return replace(call) if getattr(call.op, "name", "") == name else call

    return lambda module: Rewriter().visit(module["main"])


def test_the_smallest_program_and_the_values_that_differ(relay):
    found = programs.counterexample(rewriter(relay, "nn.relu", lambda call: call.args[0]))
    assert str(found) == (
        "It breaks this program:\n"
        "  fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        "    nn.relu(%x)\n"
        "  }\n"
        "  x = [1, -2]\n"
        "and makes this of it:\n"
        "  fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        "    %x\n"
        "  }\n"
        "The values differ: the output is\n"
        "  [1, -2]\n"
        "and was\n"
        "  [1, 0]"
    )


def merges_equal_names(relay):
    """A common subexpression pass that forgets that attributes matter."""

    class Merge(relay.ExprMutator):
        def __init__(self):
            super().__init__()
            self.seen = []

        def visit_call(self, call):
            call = super().visit_call(call)
            for other in self.seen:
                same = len(call.args) == len(other.args) and all(
                    a.same_as(b) for a, b in zip(call.args, other.args, strict=True)
                )
                if same and call.op.same_as(other.op):
                    return other
            self.seen.append(call)
            return call

    return lambda module: Merge().visit(module["main"])


def drops_lets_unless_the_body_uses_them(relay):
    """A dead code pass that looks at the innermost body only."""

    def clean(expr):
        if not isinstance(expr, relay.Let):
            return expr
        last = expr.body
        while isinstance(last, relay.Let):
            last = last.body
        used = {variable.name_hint for variable in relay.analysis.free_vars(last)}
        body = clean(expr.body)
        if expr.var.name_hint in used:
            return relay.Let(expr.var, expr.value, body)
        return body

    def run(module):
        main = module["main"]
        return relay.Function(main.params, clean(main.body))

    return run


def first_field(relay):
    class First(relay.ExprMutator):
        def visit_tuple_getitem(self, field):
            return relay.TupleGetItem(self.visit(field.tuple_value), 0)

    return lambda module: First().visit(module["main"])


@pytest.mark.parametrize(
    ("broken", "options", "lines"),
    [
        (
            lambda relay: rewriter(
                relay, "subtract", lambda call: relay.subtract(*reversed(call.args))
            ),
            {},
            ["fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {", "  subtract(%x, 2f)", "}"],
        ),
        (
            lambda relay: rewriter(relay, "transpose", lambda call: call.args[0]),
            {"shapes": [(2,), (2, 2), (1, 2)]},
            [
                "fn (%x: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] {",
                "  transpose(%x, axes=[1, 0])",
                "}",
            ],
        ),
        (
            first_field,
            {"operators": ["negative", "tanh"], "shapes": [(2,)]},
            [
                "fn (%x: Tensor[(2), float32]) -> float32 {",
                "  %0 = (%x, 2f);",
                "  %0.1",
                "}",
            ],
        ),
        (
            merges_equal_names,
            {"operators": ["negative", "add", "cumsum"], "shapes": [(2,), (2, 2)]},
            None,
        ),
        (drops_lets_unless_the_body_uses_them, {"lets": True, "shapes": [(2,)]}, None),
    ],
)
def test_what_is_found_is_small(relay, broken, options, lines):
    found = programs.counterexample(broken(relay), **options)
    if lines:
        assert ir.text(found.program.function).splitlines() == lines
    assert len(str(found).splitlines()) <= 20
    assert len(ir.graph(found.program.function).nodes) <= 5
    assert str(programs.counterexample(broken(relay), **options)) == str(found)


def test_another_process_finds_the_same(relay):
    """With other seeds for hashes, and other modules imported."""
    source = """
from helpers import use_tvm
use_tvm("relay", quiet=True)
import tests.test_programs as t
from tvm import relay
print(t.programs.counterexample(t.first_field(relay), lets=True))
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = programs.counterexample(first_field(relay), lets=True)
    assert done.stdout.strip() == str(found)


def changes_its_module(module):
    """An identity that leaves its own module in pieces."""
    answer = type(module)(dict(module.functions.items()))
    module["main"] = module["main"].with_attr("Broken", 1)
    return answer


def with_another_parameter(relay):
    def run(module):
        main = module["main"]
        return relay.Function([*main.params, relay.var("extra", shape=(1,))], main.body)

    return run


def without_main(relay):
    import tvm

    return lambda module: tvm.IRModule({relay.GlobalVar("other"): module["main"]})


def body(relay, change):
    """A pass that changes the body of every program."""
    return lambda module: relay.Function(module["main"].params, change(module["main"].body))


def twice(relay, value):
    variable = relay.var("t")
    return relay.Let(variable, value, relay.Let(variable, variable, variable))


def endless(module):
    return endless(module)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (lambda relay: lambda module: None, "It returned NoneType, not a module (is a `return`"),
        (lambda relay: lambda module: str(module), "It returned str, not a module."),
        (lambda relay: lambda module: 1 / 0, "It raised ZeroDivisionError: division by zero"),
        (lambda relay: lambda module: sys.exit(3), "It raised SystemExit: 3"),
        (lambda relay: endless, "It raised RecursionError: maximum recursion depth exceeded"),
        (
            lambda relay: lambda module: tvm_module(relay.Function([], module["main"].body)),
            "It raised InternalError: a function contains free variables: [Var(x, ",
        ),
        (
            lambda relay: (
                lambda module: relay.transform.InferType()(
                    tvm_module(relay.negative(module["main"].body) + relay.const([1.0] * 5))
                )
            ),
            "It raised DiagnosticError: Incompatible broadcast type TensorType([2], float32) and ",
        ),
        (without_main, "The module that it returned has no function main."),
        (with_another_parameter, "Its inputs are Tensor[(2), float32], Tensor[(1), float32], and"),
        (
            lambda relay: body(relay, lambda value: relay.Tuple([value])),
            "Its result is (Tensor[(2), float32],), and it was Tensor[(2), float32].",
        ),
        (
            lambda relay: body(relay, lambda value: relay.add(value, relay.const([1.0] * 5))),
            "Relay cannot infer the types of this program: ",
        ),
        (lambda relay: body(relay, lambda _: relay.var("q")), "It uses q where nothing gives q a"),
        (lambda relay: body(relay, lambda v: twice(relay, v)), "It binds the same variable twice."),
        (lambda relay: body(relay, relay.erf), "The evaluator does not know the operator erf."),
        (
            lambda relay: body(relay, lambda v: relay.multiply(v, relay.const(float("nan")))),
            "The values differ: the output is\n  [nan, nan]\nand was\n  [1, -2]",
        ),
    ],
)
def test_every_way_to_be_wrong_is_told(relay, broken, problem):
    found = programs.counterexample(broken(relay), tuples=False)
    assert found.problem.startswith(problem)
    assert found.problem in str(found)
    assert ir.text(found.program.function).splitlines()[1] == "  %x"


def test_which_output_differs(relay):
    def last_doubled(module):
        main = module["main"]
        if not isinstance(main.body, relay.Tuple):
            return module
        *others, last = main.body.fields
        return relay.Function(main.params, relay.Tuple([*others, last + last]))

    found = programs.counterexample(last_doubled)
    assert "The values differ: output 1 of 2 is\n  [2, -4]\nand was\n  [1, -2]" in str(found)


def test_right_passes_break_nothing(relay):
    assert programs.counterexample(lambda module: module) is None
    assert programs.counterexample(changes_its_module, examples=20) is None


def test_what_else_is_wanted(relay):
    def fewer(before, after):
        calls = [sum(relay.analysis.list_op_freqs(m).values()) for m in (before, after)]
        return f"{calls[1]} operators are left" if calls[1] > 1 else ""

    found = programs.counterexample(lambda module: module, wanted=fewer)
    assert found.problem == "2 operators are left"
    assert len(ir.graph(found.program.function).calls) == 2


def test_a_blank_answer_is_not_judged(relay):
    def blank(module):
        raise NotImplementedError("your code here")

    with pytest.raises(NotImplementedError):
        programs.counterexample(blank)


def test_the_search_is_bounded(relay):
    """Also for a pass that is wrong now and then, without a reason."""
    calls = []

    def moody(module):
        calls.append(module)
        if len(calls) % 3 == 0:
            raise ValueError(len(calls))
        return module

    assert programs.counterexample(moody, examples=50, lets=True) is not None
    assert len(calls) <= 50 + 601


# --- TVM's own passes -----------------------------------------------------------------------------

RIGHT = (
    *("SimplifyInference", "CanonicalizeOps", "FastMath", "EliminateCommonSubexpr", "FuseOps"),
    *("DefuseOps", "DeadCodeElimination", "DeadCodeElimination (inline_once)", "ToANormalForm"),
    *("ToGraphNormalForm", "ToBasicBlockNormalForm", "CombineParallelConv2D", "AlterOpLayout"),
    *("CombineParallelDense", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis", "ConvertLayout"),
)


@pytest.mark.parametrize("name", RIGHT)
def test_tvms_pass_is_right(relay, name):
    steps, options = random_programs.passes()[name]
    found = programs.counterexample(random_programs.transform(steps), examples=25, **options)
    assert found is None, str(found)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "DeadCodeElimination (ignore_impurity, references)",
            [
                "  let %v0: ref(Tensor[(2), float32]) = ref(%y);",
                "  let %v1: () = ref_write(%v0, %x);",
                "  let %v2: Tensor[(2), float32] = ref_read(%v0);",
                "  %v2",
            ],
        ),
        ("SimplifyExpr", ["  %0 = nn.dense(%x, %y, units=None);", "  add(%0, %0)"]),
    ],
)
def test_what_breaks_tvms_pass(relay, name, shown):
    """Two known mistakes, found by themselves."""
    steps, options = random_programs.passes()[name]
    options = {**options, "operators": ["negative", "add", "nn.dense"]}
    options["shapes"] = [(2, 3)] if name == "SimplifyExpr" else [(2,)]
    found = programs.counterexample(random_programs.transform(steps), **options)
    assert ir.text(found.program.function).splitlines()[1:-1] == shown
