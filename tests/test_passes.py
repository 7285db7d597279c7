"""The pass microscope against hand-worked counts, TVM's own reports and other ways to count."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, fusion, ir, modules, passes, plots, zoo
from helpers.targets import TEACHING_CPU

pytestmark = pytest.mark.usefixtures("relay")

MODELS = ("mlp", "voice_activity", "file_type")
TO_ONE_KERNEL = ["SimplifyInference", "FoldConstant", "BackwardFoldScaleAxis", "FoldConstant"]


def weight(*shape):
    from tvm import relay

    return relay.const(np.random.default_rng(0).random(shape, dtype="float32"))


def conv_bn_relu(times=1):
    from tvm import relay

    x = relay.var("x", shape=(1, 3, 16, 16))
    y, channels = x, 3
    for _ in range(times):
        kernel = weight(8, channels, 3, 3)
        y = relay.nn.conv2d(y, kernel, channels=8, kernel_size=(3, 3), padding=(1, 1))
        y = relay.nn.relu(relay.nn.batch_norm(y, *(weight(8) for _ in range(4)))[0])
        channels = 8
    return relay.Function([x], y)


def chain(operators, shape=(4,)):
    from tvm import relay

    x = relay.var("x", shape=shape)
    y = x
    for operator in operators:
        y = getattr(relay, operator)(y)
    return relay.Function([x], y)


def rows(trace):
    return [step for step in trace.steps if step.name != "InferType"]


def reported(work, opt_level, is_wanted=lambda module: True):
    """The names that an instrument written here sees while ``work`` runs."""
    import tvm

    seen = []

    @tvm.ir.instrument.pass_instrument
    class Names:
        def run_before_pass(self, module, info):
            if is_wanted(module):
                seen.append(info.name)

    with tvm.transform.PassContext(opt_level=opt_level, instruments=[Names()]):
        work()
    return seen


def has_relay(module):
    from tvm import relay

    return any(isinstance(function, relay.Function) for function in module.functions.values())


# --- known answers --------------------------------------------------------------------------------


def test_conv_bn_relu_by_hand():
    trace = passes.trace(conv_bn_relu(), [*TO_ONE_KERNEL, "FuseOps"])
    assert [step.name for step in rows(trace)] == [*TO_ONE_KERNEL, "FuseOps"]
    states = [rows(trace)[0].before, *(step.after for step in rows(trace))]
    assert [state.operators for state in states] == [3, 13, 4, 6, 3, 3]
    # One fused function is called.
    assert [state.calls for state in states] == [3, 13, 4, 6, 3, 4]
    # Bytes: a weight of 8*3*3*3 and four of 8 numbers; at the end the weight and a shift of 8.
    assert states[0].constant_bytes == 4 * (216 + 4 * 8)
    assert states[-1].constant_bytes == 4 * (216 + 8)
    # The results of conv2d (8*16*16 numbers) and of batch_norm (that, a mean and a variance).
    assert states[0].intermediate_bytes == 4 * (2048 + 2048 + 8 + 8)
    assert states[-1].intermediate_bytes == 0
    assert all(step.changed for step in rows(trace))


@pytest.mark.parametrize(
    ("order", "kernels", "operators"),
    [
        (["SimplifyInference", "FoldConstant", "FuseOps"], 1, 4),
        (["SimplifyInference", "FuseOps", "FoldConstant"], 2, 13),
        (["FuseOps", "SimplifyInference"], 3, 3),
    ],
)
def test_the_order_decides(order, kernels, operators):
    result = passes.run(conv_bn_relu(), order)
    assert len(fusion.groups(result)) == kernels
    assert passes.counts(result).operators == operators


@pytest.mark.parametrize("level", range(5))
def test_what_each_level_adds(level):
    names = passes.trace(conv_bn_relu(), opt_level=level).names
    from_level = {
        "SimplifyInference": 0,
        "FuseOps": 0,
        "Legalize": 1,
        "FoldConstant": 2,
        "AlterOpLayout": 3,
        "EliminateCommonSubexpr": 3,
        "CombineParallelConv2d": 4,
    }
    assert {n for n in from_level if n in names} == {
        n for n, least in from_level.items() if least <= level
    }
    assert names.count("FoldConstant") == (3 if level >= 2 else 0)
    assert "DeadCodeElimination" not in names


def test_counts_by_hand():
    import tvm
    from tvm import relay

    x = relay.var("x", shape=(2, 3))
    y = relay.exp(x)
    two = relay.Tuple([relay.tanh(y), relay.reshape(relay.negative(y), (6,))])
    # exp is all that lies between: the reshaped negative is a result under another shape.
    assert passes.counts(relay.Function([x], two)) == passes.Counts(4, 4, 0, 0, 0, 24)
    value = relay.var("v")
    let = relay.Let(value, y + relay.const(1.0), relay.tanh(value))
    assert passes.counts(relay.Function([x], let)) == passes.Counts(3, 3, 1, 1, 4, 48)
    wide = relay.var("w", shape=(relay.Any(), 3))
    unknown = passes.counts(relay.Function([wide], relay.exp(relay.tanh(wide))))
    assert unknown.intermediate_bytes is None
    branches = relay.If(relay.const(True), relay.exp(y), relay.tanh(y))
    assert passes.counts(relay.Function([x], branches)) == passes.Counts(3, 3, 1, 0, 1, 24)
    helper = relay.GlobalVar("helper")
    a = relay.var("a", shape=(2, 3))
    kind = relay.TensorType((2, 3))
    functions = {
        relay.GlobalVar("main"): relay.Function(
            [x], relay.exp(relay.Call(helper, [relay.tanh(x)]))
        ),
        helper: relay.Function([a], relay.sqrt(relay.abs(a)), kind),
    }
    module = tvm.IRModule(functions)
    # Between: tanh, the call's own result, abs.
    assert passes.counts(module) == passes.Counts(4, 5, 0, 0, 0, 72)


@pytest.mark.parametrize(
    ("name", "level", "required", "kind"),
    [
        ("FoldConstant", 2, (), "function"),
        ("FuseOps", 0, ("InferType",), "function"),
        ("ToANormalForm", 1, (), "module"),
        ("FoldScaleAxis", 0, (), "sequential"),
        ("ConvertLayout", 3, ("InferType", "CanonicalizeOps"), "function"),
        ("CombineParallelConv2d", 4, ("InferType",), "function"),
    ],
)
def test_info(name, level, required, kind):
    assert passes.info(name) == passes.Info(name, level, required, kind)


# --- the names are TVM's --------------------------------------------------------------------------


@pytest.mark.parametrize("level", range(5))
def test_build_is_what_relay_build_runs_before_it_lowers(level):
    from tvm import relay

    module = modules.as_module(conv_bn_relu())
    seen = reported(lambda: relay.build(module, TEACHING_CPU), level)
    names = passes.trace(module, "build", opt_level=level).names
    assert seen[: len(names)] == names
    # What follows is lowering: a Sequential that makes TIR of the fused functions.
    rest = seen[len(names) :]
    assert rest[:4] == ["sequential", "RelayToTIRTargetHook", "InferType", "LowerTE"]
    assert "LowerTE" not in names


@pytest.mark.parametrize("level", [1, 3])
def test_vm_is_what_the_vm_compiler_runs_on_relay(level):
    from tvm import relay

    module = modules.as_module(conv_bn_relu())
    seen = reported(lambda: relay.vm.compile(modules.copy(module), TEACHING_CPU), level, has_relay)
    seen = [name for name in seen if not name.startswith("tir.")]
    trace = passes.trace(module, "vm", opt_level=level)
    assert trace.names == seen
    assert trace.names.count("DeadCodeElimination") > 0


def test_a_list_runs_as_one_sequential():
    import tvm
    from tvm import relay

    names = ["SimplifyInference", "EliminateCommonSubexpr", "FoldScaleAxis", "FuseOps"]
    sequence = tvm.transform.Sequential([getattr(relay.transform, name)() for name in names])
    module = modules.typed(conv_bn_relu())
    seen = reported(lambda: sequence(module), 4)
    trace = passes.trace(conv_bn_relu(), names)
    assert trace.names == seen[1:]  # but for the Sequential itself
    assert tvm.ir.structural_equal(trace.end, passes.run(conv_bn_relu(), names))
    objects = [getattr(relay.transform, name)() for name in names]
    assert passes.trace(conv_bn_relu(), objects).names == trace.names


def test_depth_follows_nesting():
    import tvm
    from tvm import relay

    fold, fuse = relay.transform.FoldConstant(), relay.transform.FuseOps()
    inner = tvm.transform.Sequential([fold], name="inner")
    outer = tvm.transform.Sequential([inner, fuse], name="outer")
    trace = passes.trace(conv_bn_relu(), outer)
    found = [(step.name, step.depth, step.is_group) for step in rows(trace)]
    assert found == [
        ("outer", 0, True),
        ("inner", 1, True),
        ("FoldConstant", 2, False),
        ("FuseOps", 1, False),
    ]
    assert [step.kind for step in rows(trace)][2:] == ["function", "function"]
    lines = trace.table().splitlines()[2:6]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4, 2]
    assert [line.split()[0] for line in trace.table(changed=True).splitlines()[2:]] == [
        "FuseOps",
        str(trace.names.count("InferType")),
    ]


# --- real models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_counts_agree_with_other_ways_to_count(name):
    model = zoo.load(name)
    fused = passes.run(model, ["SimplifyInference", "FoldConstant", "FuseOps"])
    for x in (model, fused):
        found, graph = passes.counts(x), ir.graph(x)
        constants = {node.expr for node in graph.nodes if node.kind == "constant"}
        assert found.operators == len(graph.calls)
        assert found.constants == len(constants)
        assert found.constant_bytes == sum(c.data.numpy().nbytes for c in constants)
    # Every tensor that a kernel writes lies between kernels, but for the results.
    outputs = sum(array.nbytes for array in model.reference)
    assert passes.counts(fused).intermediate_bytes == fusion.ledger(fused).written - outputs


@pytest.mark.parametrize("name", MODELS)
def test_a_trace_hangs_together(name):
    import tvm

    model = zoo.load(name)
    module = model.module
    before = tvm.ir.structural_hash(module)
    trace = passes.trace(module, [*TO_ONE_KERNEL, "EliminateCommonSubexpr", "FuseOps"])
    assert tvm.ir.structural_hash(module) == before
    top = [step for step in trace.steps if step.depth == 0]
    for one, other in pairwise(top):
        assert one.after == other.before
    for step in trace.steps:
        equal = tvm.ir.structural_equal(step.module_before, step.module_after)
        assert step.changed == (not equal)
        assert step.seconds >= 0
    assert passes.counts(trace.start) == top[0].before == passes.counts(model)
    assert passes.counts(trace.end) == top[-1].after


def test_weights_are_bound_for_a_build_and_left_for_a_list():
    model = zoo.load("mlp", bind=False)
    assert model.params
    assert passes.trace(model, "FoldConstant").start["main"].params[0].name_hint == "data"
    assert passes.counts(passes.trace(model, "FoldConstant").start).constants == 0
    start = passes.trace(model, "build").start
    assert passes.counts(start).constants == len(model.params)


def test_layouts_are_chosen_for_the_target():
    def layouts(target):
        graph = ir.graph(passes.run(conv_of(16), "AlterOpLayout", target=target))
        return {node.attrs["out_layout"] for node in graph.calls if "out_layout" in node.attrs}

    assert layouts(None) == {"NCHW8c"}
    assert layouts("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512") == {"NCHW16c"}


def conv_of(channels):
    from tvm import relay

    x = relay.var("x", shape=(1, 16, 8, 8))
    kernel = weight(channels, 16, 3, 3)
    return relay.Function([x], relay.nn.conv2d(x, kernel, channels=channels, kernel_size=(3, 3)))


# --- what a pass finds and leaves -----------------------------------------------------------------


def test_a_pass_that_works_in_place_gets_a_copy():
    import tvm

    module = modules.typed(chain(["exp", "tanh"]))
    step = passes.trace(module, "ToANormalForm").step("ToANormalForm")
    assert (step.before.lets, step.after.lets) == (0, 2)
    assert passes.counts(module).lets == 0
    passes.run(module, "ToANormalForm")
    passes.trace(module, "vm")
    assert tvm.ir.structural_equal(module, modules.typed(chain(["exp", "tanh"])))


def test_what_a_pass_requires_is_run_for_it():
    trace = passes.trace(chain(["exp", "tanh"]), "FuseOps")
    assert trace.names[:2] == ["InferType", "FuseOps"]
    assert trace.step("FuseOps").required == ("InferType",)
    assert len(fusion.groups(passes.run(chain(["exp", "tanh"]), "FuseOps"))) == 1


def test_no_level_is_skipped_unless_it_is_said():
    wanted = ["EliminateCommonSubexpr", "FastMath", "FuseOps"]
    assert {*wanted} <= {*passes.trace(chain(["exp"]), wanted).names}
    lower = passes.trace(chain(["exp"]), wanted, opt_level=3)
    assert "FastMath" not in lower.names
    assert lower.skipped == ("FastMath",)
    assert "FastMath" in lower.table()
    required = passes.trace(chain(["exp"]), wanted, opt_level=0, required_pass=["FastMath"])
    assert required.skipped == ("EliminateCommonSubexpr",)
    disabled = passes.trace(chain(["exp"]), wanted, disabled_pass=["FuseOps"])
    assert "FuseOps" not in disabled.names
    assert disabled.skipped == ("FuseOps",)


def test_config_reaches_the_pass():
    single = passes.run(chain(["exp", "tanh"]), "FuseOps", config={"relay.FuseOps.max_depth": 1})
    assert len(fusion.groups(single)) == 2


# --- text -----------------------------------------------------------------------------------------


def changed_lines(difference):
    return [line for line in difference.splitlines()[2:] if line[0] in "+-"]


def test_only_what_changed_is_in_the_difference():
    from tvm import relay

    x = relay.var("x", shape=(4,))
    y = x + (relay.const(1.0) + relay.const(2.0))
    for _ in range(20):
        y = relay.tanh(relay.exp(y))
    step = passes.trace(relay.Function([x], y), "FoldConstant").step("FoldConstant")
    assert changed_lines(step.diff()) == [
        "-  %0 = add(1f, 2f);",
        "-  %1 = add(%x, %0);",
        "+  %1 = add(%x, 3f);",
    ]
    assert step.diff(context=0).count("\n") < step.diff(context=5).count("\n")


def test_a_changed_operator_keeps_its_name():
    scaled = passes.trace(conv_bn_relu(3), TO_ONE_KERNEL).step("BackwardFoldScaleAxis").diff()
    # Three convolutions, %0, %4 and %8, stay where they are and get scaled weights.
    for name, source in (("%0", "%x"), ("%4", "%3"), ("%8", "%7")):
        assert re.search(rf"^-  {name} = nn.conv2d\({source}, const", scaled, flags=re.M)
        assert re.search(rf"^\+  {name} = nn.conv2d\({source}, %\d+, ", scaled, flags=re.M)


def test_nothing_to_show():
    step = passes.trace(chain(["exp"]), "FoldConstant").step("FoldConstant")
    assert not step.changed
    assert step.diff() == "FoldConstant changed nothing."
    labelled = passes.trace(chain(["exp"])).step("LabelOps")
    assert labelled.changed
    assert labelled.diff() == (
        "LabelOps changed the program, but not its text (types or attributes only)."
    )


def test_a_difference_does_not_tell_what_was_compiled_before():
    def text():
        return passes.trace(conv_bn_relu(), ["ToANormalForm", "FoldConstant"]).step(1).diff()

    assert text() == text()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["exp", "tanh", "fold", "twice"]), min_size=1, max_size=12),
    st.sampled_from(["FoldConstant", "EliminateCommonSubexpr", "ToANormalForm", "FuseOps"]),
)
def test_a_difference_with_all_lines_holds_both_programs(operators, name):
    from tvm import relay

    x = relay.var("x", shape=(4,))
    y = x
    for operator in operators:
        if operator == "fold":
            y = y * (relay.const(1.5) + relay.const(2.0))
        elif operator == "twice":
            y = relay.exp(y) + relay.exp(y)
        else:
            y = getattr(relay, operator)(y)
    step = passes.trace(relay.Function([x], y), name).step(name)
    if not step.changed:
        return
    lines = step.diff(context=1000).splitlines()[3:]
    before = [line[1:] for line in lines if line[0] in "- "]
    after = [line[1:] for line in lines if line[0] in "+ "]
    assert before == ir.text(step.module_before).splitlines()
    # The names differ, one to one, and nothing else does.
    told, real = "\n".join(after), ir.text(step.module_after)
    assert re.sub(r"%\w+", "%", told) == re.sub(r"%\w+", "%", real)
    pairs = set(zip(re.findall(r"%\w+", told), re.findall(r"%\w+", real), strict=True))
    if name != "FuseOps":  # each fused function has its own scope of names
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


# --- pictures -------------------------------------------------------------------------------------


def words(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_drawing_marks_what_changed():
    step = passes.trace(conv_bn_relu(), "SimplifyInference").step("SimplifyInference")
    figure = step.draw()
    texts = words(figure)
    assert [texts.count(word) for word in ("REMOVED", "NEW", "CHANGED")] == [1, 11, 0]
    assert {"before SimplifyInference", "after SimplifyInference"} <= {*texts}
    alt = step.alt_text()
    assert "removed: 1 nn.batch_norm" in alt
    assert "new: 3 add, 1 sqrt, 1 divide, 3 multiply, 2 expand_dims, 1 negative" in alt
    fused = passes.trace(chain(["exp", "tanh"]), "FuseOps").step("FuseOps")
    assert not {"NEW", "REMOVED", "CHANGED"} & {*words(fused.draw())}
    assert "1 fused group" in fused.alt_text()
    assert plots.png(figure) == plots.png(step.draw())


def test_the_drawing_of_a_large_model_shows_the_first_change():
    program = conv_bn_relu(12)
    step = passes.trace(program, "SimplifyInference").step("SimplifyInference")
    texts = words(step.draw(max_boxes=14))
    assert "before SimplifyInference, 3 of 36 operators" in texts
    assert "after SimplifyInference, 13 of 156 operators" in texts
    assert [texts.count(word) for word in ("REMOVED", "NEW", "CHANGED")] == [1, 11, 0]
    assert "Before, 3 of 36 operators: 1 nn.conv2d, 1 nn.batch_norm" in step.alt_text(max_boxes=14)
    figure = step.draw(max_boxes=14, whole=True)
    assert len(words(figure)) < 60
    assert "12 nn.batch_norm" in step.alt_text(max_boxes=14, whole=True)


def test_the_first_change_may_lie_anywhere():
    from tvm import relay

    long = chain(["exp"] * 30)
    late = relay.Function(long.params, relay.exp(long.body + (relay.const(1.0) * relay.const(2.0))))
    step = passes.trace(late, "FoldConstant").step("FoldConstant")
    texts = words(step.draw(max_boxes=5))
    assert "before FoldConstant, 4 of 33 operators" in texts
    assert texts.count("REMOVED") == 1
    unmarked = passes.trace(long, "FuseOps").step("FuseOps")
    texts = words(unmarked.draw(max_boxes=5))
    assert {"before FuseOps, 4 of 30 operators", "k1"} <= {*texts}


def test_the_figure_shows_the_counts():
    trace = passes.trace(conv_bn_relu(), [*TO_ONE_KERNEL, "EliminateCommonSubexpr", "FuseOps"])
    figure = trace.figure(show=["operators", "lets"])
    numbers, lets = ([text.get_text() for text in axes.texts] for axes in figure.axes)
    assert numbers == ["3", "13", "4", "6", "3"]  # nothing but these changes is shown
    assert lets == ["0"] * 5
    assert "operators: (start) 3, SimplifyInference 13" in trace.alt_text()
    everything = trace.figure(changed=False, show=["operators"])
    assert len(everything.axes[0].texts) == 7
    assert "FuseOps 0" in trace.alt_text(show=["intermediate_bytes"])


def test_small_multiples_check_their_sizes():
    with pytest.raises(WorkbookError, match="one value per row"):
        plots.multiples(["a", "b"], {"n": [1]})
    figure = plots.multiples(["a", "b"], {"n": [1, None]})
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "?"]


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: passes.run(chain(["exp"]), "FoldConstants"), 'perhaps "FoldConstant" is meant'),
        (lambda: passes.trace(chain(["exp"]), "biuld"), 'perhaps "build" is meant'),
        (lambda: passes.run(chain(["exp"]), ["ConvertLayout"]), "ConvertLayout.desired_layouts"),
        (lambda: passes.run(chain(["exp"]), "PlanDevicesCore"), "only inside TVM's own pipelines"),
        (lambda: passes.run(chain(["exp"]), [chain]), "not the function chain: call it"),
        (lambda: passes.run(chain(["exp"]), None), "not None"),
        (lambda: passes.run("mlp", "FuseOps"), "is needed here, not str"),
        (
            lambda: passes.run(chain(["exp"]), "FuseOps", opt_level=5),
            "opt_level is 0, 1, 2, 3 or 4",
        ),
        (
            lambda: passes.run(chain(["exp"]), "FuseOps", disabled_pass="X"),
            r'write disabled_pass=\["X"\]',
        ),
        (
            lambda: passes.run(chain(["exp"]), "FuseOps", required_pass=["Fuse"]),
            "required_pass: TVM has no pass called 'Fuse'",
        ),
        (lambda: passes.run(chain(["exp"]), "FuseOps", config={"relay.x": 1}), "no setting called"),
        (lambda: passes.run(chain(["exp"]), "FuseOps", config=3), "dictionary of settings"),
        (lambda: passes.trace(chain(["exp"]), "vm", opt_level=0), "set opt_level to 1 or more"),
        (lambda: passes.info("FoldConstantExpr"), "cannot be made from its name alone"),
        (lambda: passes.trace(chain(["exp"]), "FuseOps").step("FuseOp"), '"FuseOps" is meant'),
        (lambda: passes.trace(chain(["exp"]), "FuseOps").step(9), "numbered from 0"),
        (lambda: passes.trace(chain(["exp"]), "FuseOps").step("FuseOps", 1), "ran once"),
        (lambda: passes.trace(chain(["exp"]), "FuseOps").figure(show="lets"), "show lists what"),
        (lambda: passes.trace(chain(["exp"]), "FuseOps").step(1).diff(-1), "0 or more, not -1"),
    ],
)
def test_mistakes_get_one_sentence(call, sentence):
    with pytest.raises(WorkbookError, match=sentence) as caught:
        call()
    message = str(caught.value)
    assert re.fullmatch(r"[^\n]+\.", message)
    assert " 0x" not in message


def python_pass(name, work):
    import tvm

    return tvm.transform.module_pass(lambda module, context: work(module), 0, name=name)


def test_a_failing_pass_is_named_and_leaves_nothing_behind():
    import tvm
    from tvm import relay

    def fail(module):
        raise ValueError("this is mine")

    def ill_typed(module):
        x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(4,))
        return tvm.IRModule.from_expr(relay.Function([x, y], x + y))

    for run in (passes.run, passes.trace):
        with pytest.raises(WorkbookError, match=r"^Mine fails on this program: this is mine\.$"):
            run(chain(["exp"]), ["FoldConstant", python_pass("Mine", fail)])
        for rest in ([], ["FuseOps"]):
            with pytest.raises(WorkbookError, match=r"^After Bad the program has no valid types: "):
                run(chain(["exp"]), [python_pass("Bad", ill_typed), *rest])
    context = tvm.transform.PassContext.current()
    assert (context.opt_level, list(context.instruments or ())) == (2, [])
    assert tvm.target.Target.current(allow_none=True) is None
    assert passes.trace(chain(["exp"]), "FuseOps").names == ["InferType", "FuseOps", "InferType"]


def test_a_failure_that_a_pass_catches_does_not_confuse_the_nesting():
    def fail(module):
        raise ValueError("caught below")

    inner = python_pass("Inner", fail)

    def catch(module):
        with pytest.raises(Exception, match="caught below"):
            inner(module)
        return module

    trace = passes.trace(chain(["exp"]), [python_pass("Outer", catch), "FuseOps"])
    found = [(step.name, step.depth, step.changed) for step in rows(trace)]
    assert found == [("Outer", 0, False), ("Inner", 1, False), ("FuseOps", 0, True)]


def test_a_pass_of_ones_own_may_be_disabled():
    own = python_pass("Own", lambda module: module)
    trace = passes.trace(chain(["exp"]), [own, "FuseOps"], disabled_pass=["Own"])
    assert trace.skipped == ("Own",)


def test_times_are_a_column_of_their_own():
    trace = passes.trace(conv_bn_relu(), "build")
    assert "ms" not in trace.table().splitlines()[0]
    assert trace.table(times=True).splitlines()[0].endswith("ms")
    assert 0 < trace.overhead < sum(step.seconds for step in trace.steps if step.depth == 0)
    whole = trace.step("FoldScaleAxis")
    inside = [s for s in trace.steps[whole.index + 1 :] if s.depth == whole.depth + 1]
    parts = [s for s in inside if s.index < trace.step("SimplifyExpr").index]
    assert sum(step.seconds for step in parts) <= whole.seconds
