"""Fusion: TVM's patterns and groups as they are, and bytes counted by three routes."""

from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, fusion
from helpers.targets import TEACHING_CPU

SHAPE = (1, 8, 16, 16)


@pytest.fixture(scope="module", autouse=True)
def _use_relay(relay):
    return relay


def module_of(parameters, body):
    import tvm
    from tvm import relay

    return tvm.IRModule.from_expr(relay.Function(parameters, body))


def with_a_free_variable():
    from tvm import relay

    return relay.Function([], relay.var("v", shape=(4,)))


def compared(labels):
    counted = fusion.ledger(chain(2))
    return counted.against(counted, labels)


def build(mod, opt_level=3, params=None, **config):
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=opt_level, config=config):
        return relay.build(mod, TEACHING_CPU, params=params)


def chain(length, elements=1024, fresh=False):
    """``length`` additions: of one run-time scalar, or of a fresh tensor each."""
    from tvm import relay

    x = relay.var("x", shape=(elements,))
    scalar = relay.var("c", shape=())
    operands = [relay.var(f"t{i}", shape=(elements,)) if fresh else scalar for i in range(length)]
    y = x
    for operand in operands:
        y = relay.add(y, operand)
    return module_of([x, *dict.fromkeys(operands)], y)


def operators(mod):
    return ["+".join(group.operators) for group in fusion.groups(mod)]


def weight(*shape):
    from tvm import relay

    return relay.const(np.full(shape, 0.5, "float32"))


def unary(name):
    """One operator of each pattern, on a tensor of SHAPE that keeps its shape where it can."""
    from tvm import relay

    return {
        "exp": lambda x: relay.exp(x),
        "add": lambda x: relay.add(x, weight(1, 8, 1, 1)),
        "transpose": lambda x: relay.transpose(x, (0, 1, 3, 2)),
        "sum": lambda x: relay.sum(x, axis=[2], keepdims=True),
        "conv2d": lambda x: relay.nn.conv2d(x, weight(8, 8, 3, 3), padding=(1, 1)),
        "softmax": lambda x: relay.nn.softmax(x),
        "max_pool2d": lambda x: relay.nn.max_pool2d(x, (3, 3), (1, 1), padding=(1, 1)),
        "cumsum": lambda x: relay.cumsum(x, axis=3),
    }[name]


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("nn.relu", "ELEMWISE"),
        ("exp", "ELEMWISE"),
        ("add", "BROADCAST"),
        ("transpose", "INJECTIVE"),
        ("reshape", "INJECTIVE"),
        ("sum", "COMM_REDUCE"),
        ("nn.conv2d", "OUT_ELEMWISE_FUSABLE"),
        ("nn.softmax", "OUT_ELEMWISE_FUSABLE"),
        ("cumsum", "OPAQUE"),
    ],
)
def test_pattern_is_what_the_registry_holds(operator, expected):
    assert fusion.pattern(operator) == expected


@pytest.mark.parametrize(
    ("typed", "meant"), [("conv2d", "nn.conv2d"), ("nn.rellu", "nn.relu"), ("Softmax", "softmax")]
)
def test_an_unknown_operator_names_its_neighbours(typed, meant):
    with pytest.raises(WorkbookError) as caught:
        fusion.pattern(typed)
    assert repr(typed) in str(caught.value)
    assert meant in str(caught.value)


def test_an_unknown_operator_far_from_all_names_none():
    with pytest.raises(WorkbookError, match=r"no operator 'qqqqqqqqqq'\.$"):
        fusion.pattern("qqqqqqqqqq")


def test_an_operator_without_a_pattern_says_which_pass_removes_it():
    from tvm import relay

    with pytest.raises(WorkbookError, match=r"nn\.layer_norm.*SimplifyInference"):
        fusion.pattern("nn.layer_norm")
    x = relay.var("x", shape=(4, 8))
    mod = module_of([x], relay.nn.layer_norm(x, weight(8), weight(8)))
    with pytest.raises(WorkbookError, match=r"nn\.layer_norm.*SimplifyInference"):
        fusion.fuse(mod)


# --- what fuses with what -------------------------------------------------------------------------

# Rows produce, columns consume; F: one kernel. Written down from the rules of fuse_ops.cc: nothing
# joins after a reduction or an opaque operator, elementwise and broadcast operators join after
# everything else, injective ones after injective or simpler ones, a reduction after elementwise
# or broadcast ones.
CONSUMERS = ["exp", "add", "transpose", "sum", "conv2d", "softmax", "max_pool2d", "cumsum"]
FUSES = {
    "exp": "FFFF....",
    "add": "FFFF....",
    "transpose": "FFF.....",
    "sum": "........",
    "conv2d": "FF......",
    "softmax": "FF......",
    "max_pool2d": "FF......",
    "cumsum": "........",
}


@pytest.mark.parametrize("producer", FUSES)
def test_which_pairs_fuse(producer):
    from tvm import relay

    seen = ""
    for consumer in CONSUMERS:
        x = relay.var("x", shape=SHAPE)
        mod = module_of([x], unary(consumer)(unary(producer)(x)))
        seen += "F" if len(fusion.groups(fusion.fuse(mod))) == 1 else "."
    assert seen == FUSES[producer]


def test_fusion_goes_by_post_dominance_not_by_consumers():
    from tvm import relay

    def case(make):
        x = relay.var("x", shape=SHAPE)
        return operators(fusion.fuse(module_of([x], make(x, relay.exp(x)))))

    def joined(x, a):
        return relay.add(relay.tanh(a), relay.sigmoid(a))

    def both(x, a):
        return relay.Tuple([relay.tanh(a), relay.sigmoid(a)])

    def skip(x, a):
        return relay.add(unary("conv2d")(a), a)

    assert case(joined) == ["exp+tanh+sigmoid+add"]
    assert case(both) == ["exp", "tanh", "sigmoid"]
    assert case(skip) == ["exp", "nn.conv2d+add"]


def test_the_anchor_is_the_operator_that_gives_the_schedule():
    from tvm import relay

    x = relay.var("x", shape=SHAPE)
    body = relay.nn.relu(relay.add(unary("conv2d")(x), weight(1, 8, 1, 1)))
    (group,) = fusion.groups(fusion.fuse(module_of([x], body)))
    assert (group.anchor, group.pattern) == ("nn.conv2d", "OUT_ELEMWISE_FUSABLE")
    assert str(group) == "k1: nn.conv2d + add + nn.relu (OUT_ELEMWISE_FUSABLE)"
    (group,) = fusion.groups(fusion.fuse(module_of([x], relay.sum(relay.exp(x)))))
    assert (group.anchor, group.pattern) == ("sum", "COMM_REDUCE")


@pytest.mark.parametrize(("length", "kernels"), [(256, 1), (257, 2), (513, 3)])
def test_a_group_holds_at_most_256_operators(length, kernels):
    assert len(fusion.groups(fusion.fuse(chain(length, elements=4)))) == kernels


@pytest.mark.parametrize(("depth", "kernels"), [(1, 10), (2, 5), (3, 4), (4, 3), (5, 2), (10, 1)])
def test_max_depth_limits_the_group(depth, kernels):
    assert len(fusion.groups(fusion.fuse(chain(10), max_depth=depth))) == kernels


@pytest.mark.parametrize(("level", "kernels"), [(0, 10), (1, 1), (2, 1), (3, 1)])
def test_level_zero_groups_nothing(level, kernels):
    assert len(fusion.groups(fusion.fuse(chain(10), opt_level=level))) == kernels


def test_fuse_leaves_its_argument_alone():
    import tvm

    mod, twin = chain(3), chain(3)
    fused = fusion.fuse(mod)
    assert tvm.ir.structural_equal(mod, twin)
    assert not tvm.ir.structural_equal(mod, fused)


def test_fuse_makes_the_groups_that_a_build_makes():
    """The build's own kernels, for a module that its other passes leave as it is."""
    from tvm import relay

    x = relay.var("x", shape=SHAPE)
    a = relay.nn.max_pool2d(relay.exp(x), (3, 3), (1, 1), padding=(1, 1))
    body = relay.Tuple([relay.nn.relu(relay.tanh(a)), relay.sum(relay.sigmoid(x))])
    mod = module_of([x], body)
    for level in (0, 3):
        planned = [group.operators for group in fusion.groups(fusion.fuse(mod, level))]
        built = [row.operators for row in fusion.ledger(build(mod, level)).rows]
        assert planned == built


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (lambda: fusion.fuse("resnet"), "zoo model is needed here, not str"),
        (lambda: fusion.groups(None), "not NoneType \\(is a `return` missing"),
        (lambda: fusion.ledger(3), "zoo model is needed here, not int"),
        (lambda: fusion.fuse(chain(2), max_depth=0), "max_depth.* 1 or more, not 0"),
        (lambda: fusion.fuse(chain(2), max_depth=2.5), "max_depth.* not 2.5"),
        (lambda: fusion.fuse(chain(2), opt_level="3"), "opt_level is a whole number.* not '3'"),
        (lambda: fusion.fuse(chain(2), opt_level=-1), "opt_level .* 0 or more, not -1"),
        (lambda: fusion.fuse(with_a_free_variable()), "uses v without taking it"),
        (lambda: fusion.pattern(None), "named by a string"),
        (lambda: fusion.groups(chain(2), "weight"), "not 'weight'"),
        (lambda: fusion.ledger(chain(2), 3), "names of the weights.* not 3"),
        (lambda: fusion.ledger(chain(2)).as_text(-1), "limit.* 0 or more, not -1"),
        (lambda: fusion.ledger(chain(2)).against(None), "another ledger, not NoneType"),
        (lambda: compared("before"), "two strings"),
        (lambda: compared(("a", "b", "c")), "two strings"),
        (lambda: compared((1, 2)), "two strings"),
        (lambda: fusion.Tensor("t", (1,), "nonsense").bytes, "no dtype 'nonsense'"),
        (lambda: fusion.kernel_tir(chain(2)), "kept by relay.build"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(argument, sentence):
    with pytest.raises(WorkbookError, match=sentence) as caught:
        argument()
    assert "\n" not in str(caught.value)


def test_a_type_error_is_one_sentence(capfd):
    from tvm import relay

    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(4,))
    with pytest.raises(WorkbookError, match="cannot infer the types"):
        fusion.fuse(module_of([x, y], relay.add(x, y)))
    capfd.readouterr()


# --- groups ---------------------------------------------------------------------------------------


def test_groups_name_their_tensors():
    from tvm import relay

    x, bias = relay.var("x", shape=SHAPE), relay.var("bias", shape=(8, 1, 1))
    body = relay.nn.softmax(relay.add(unary("conv2d")(x), bias))
    first, second = fusion.groups(fusion.fuse(module_of([x, bias], body)), params=["bias"])
    assert [str(tensor) for tensor in first.inputs] == [
        "x: float32[1, 8, 16, 16]",
        "constant: float32[8, 8, 3, 3]",
        "bias: float32[8, 1, 1]",
    ]
    assert [tensor.is_weight for tensor in first.inputs] == [False, True, True]
    assert [tensor.name for tensor in second.inputs] == [first.name] == ["k1"]
    assert [tensor.shape for tensor in second.outputs] == [SHAPE]


def test_a_tensor_that_is_read_twice_counts_once():
    from tvm import relay

    x = relay.var("x", shape=(256,))
    (row,) = fusion.ledger(module_of([x], relay.add(x, x))).rows
    assert (row.activations, row.written) == (1024, 1024)


def test_only_the_used_part_of_a_tuple_is_read():
    from tvm import relay

    x = relay.var("x", shape=(4, 256))
    parts = relay.split(x, 4)
    body = relay.Tuple([relay.nn.softmax(parts[0]), relay.nn.softmax(parts[2])])
    mod = fusion.fuse(module_of([x], body))
    assert operators(mod) == ["split", "nn.softmax", "nn.softmax"]
    split, *rest = fusion.groups(mod)
    assert [tensor.shape for tensor in split.outputs] == [(1, 256)] * 4
    assert [[(t.name, t.bytes) for t in group.inputs] for group in rest] == [[("k1", 1024)]] * 2
    built = fusion.ledger(build(module_of([x], body))).rows
    assert built[0].written == 4096
    assert [row.activations for row in built] == [4096, 1024, 1024]


def test_let_bound_values_are_followed():
    from tvm import relay

    x, v = relay.var("x", shape=(256,)), relay.var("v", shape=(256,))
    mod = module_of([x], relay.Let(v, relay.exp(x), relay.add(v, v)))
    first, second = fusion.groups(mod)
    assert [tensor.name for tensor in second.inputs] == [first.name]


def test_a_reshape_alone_is_no_kernel():
    from tvm import relay

    x = relay.var("x", shape=(16, 16))
    body = relay.nn.softmax(relay.reshape(relay.nn.softmax(x), (256,)))
    mod = module_of([x], body)
    assert operators(mod) == operators(fusion.fuse(mod)) == ["nn.softmax", "nn.softmax"]
    assert fusion.ledger(build(mod)).kernels == 2


def test_an_unknown_axis_has_groups_but_no_bytes():
    from tvm import relay

    x = relay.var("x", shape=(relay.Any(), 4))
    mod = fusion.fuse(module_of([x], relay.exp(relay.tanh(x))))
    (group,) = fusion.groups(mod)
    assert group.outputs[0].shape == ("?", 4)
    with pytest.raises(WorkbookError, match=r"float32\[\?, 4\].*fixed shape"):
        fusion.ledger(mod)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("float32", 400),
        ("float16", 200),
        ("int64", 800),
        ("bool", 100),
        ("uint1", 100),
        ("uint8", 100),
    ],
)
def test_bytes_of_a_tensor(dtype, size):
    assert fusion.Tensor("x", (10, 10), dtype).bytes == size


# --- the ledger -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_a_chain_of_one_input_goes_from_2n_tensors_to_2(length):
    tensor, scalar = 4096, 4
    for mod, kernels in ((chain(length), length), (fusion.fuse(chain(length)), 1)):
        count = fusion.ledger(mod)
        assert count.kernels == kernels
        assert (count.activations, count.written) == (
            kernels * (tensor + scalar),
            kernels * tensor,
        )


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_a_chain_with_fresh_operands_goes_from_3n_tensors_to_n_plus_2(length):
    mod = chain(length, fresh=True)
    assert fusion.ledger(mod).total == 3 * length * 4096
    assert fusion.ledger(fusion.fuse(mod)).total == (length + 2) * 4096
    assert fusion.ledger(build(mod)).total == (length + 2) * 4096


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12))
def test_fusing_loses_no_operator_and_moves_no_more_bytes(picks):
    """On random graphs of elementwise operators, each of which ends up in one kernel."""
    from tvm import relay

    x, y = relay.var("x", shape=(64,)), relay.var("y", shape=(64,))
    values = [x, y]
    for left, right in picks:
        values.append(relay.add(values[left % len(values)], values[right % len(values)]))
    mod = module_of([x, y], values[-1])
    before, after = fusion.groups(mod), fusion.groups(fusion.fuse(mod))
    assert Counter(op for group in before for op in group.operators) == Counter(
        op for group in after for op in group.operators
    )
    plain, fused = fusion.ledger(mod), fusion.ledger(fusion.fuse(mod))
    assert fused.total <= plain.total
    unfused = fusion.ledger(fusion.fuse(mod, max_depth=1))
    assert [row.total for row in unfused.rows] == [row.total for row in plain.rows]


def bytes_of_arguments(function):
    """The third route: the buffers that the lowered kernel takes as arguments."""
    return sum(
        prod(int(size) for size in buffer.shape) * np.dtype(str(buffer.dtype)).itemsize
        for buffer in function.buffer_map.values()
    )


def residual_block():
    """Two convolutions with batch normalisation, and a shortcut around them."""
    from tvm import relay

    def convolved(y):
        y = relay.nn.conv2d(
            y, weight(16, 16, 3, 3), padding=(1, 1), channels=16, kernel_size=(3, 3)
        )
        return relay.nn.batch_norm(y, *[weight(16)] * 4)[0]

    x = relay.var("x", shape=(1, 16, 8, 8))
    body = relay.nn.relu(relay.add(convolved(relay.nn.relu(convolved(x))), x))
    return module_of([x], relay.nn.softmax(relay.nn.batch_flatten(body))), None


def resnet_18():
    from tvm.relay import testing

    return testing.resnet.get_workload(num_layers=18, num_classes=10, image_shape=(3, 32, 32))


def mobilenet():
    from tvm.relay import testing

    return testing.mobilenet.get_workload(image_shape=(3, 32, 32))


# Level 3 packs the weights (AlterOpLayout) and takes long: the small network shows it as well.
# By hand for the small one: at level 0 a batch_norm is 9 kernels besides its two reshapes, so
# 2 x (convolution + 9) + relu + add + relu + softmax; at level 3 two fused convolutions, a layout
# transform before and after them, and softmax.
@pytest.mark.parametrize(
    ("network", "level", "kernels"),
    [(resnet_18, 1, 42), (mobilenet, 1, 57), (residual_block, 0, 24), (residual_block, 3, 5)],
)
def test_three_routes_count_the_same_bytes(network, level, kernels):
    import tvm

    mod, params = network()
    library = build(mod, level, params)
    by_graph = fusion.ledger(library)
    # The module as the build lowered it, with the primitive calls that FuseOps made.
    (main,) = library.function_metadata["__tvm_main__"].relay_primfuncs.values()
    by_types = fusion.ledger(tvm.IRModule.from_expr(main), params=library.get_params())
    assert by_graph.kernels == kernels

    def moved(count):
        return [(row.operators, row.activations, row.weights, row.written) for row in count.rows]

    assert moved(by_types) == moved(by_graph)
    tir = fusion.kernel_tir(library)
    for row in by_graph.rows:
        assert bytes_of_arguments(tir[row.kernel]) == row.total, row.kernel
    # Every weight is read by some kernel.
    assert by_graph.weights >= sum(array.numpy().nbytes for array in library.get_params().values())


@pytest.mark.parametrize("executor", ["graph", "aot", "vm"])
def test_a_compiled_model_is_counted_where_it_has_a_graph(executor):
    from helpers import build as builds

    compiled = builds.compile(chain(2), executor=executor, cache=False)
    if executor == "graph":
        assert fusion.ledger(compiled).rows == fusion.ledger(build(chain(2))).rows
        assert fusion.intermediate_buffers(compiled) == {"fused_add_add": 0}
    else:
        with pytest.raises(WorkbookError, match="only a graph executor build has"):
            fusion.ledger(compiled)
        with pytest.raises(WorkbookError, match="not a module, a loaded file or a VM executable"):
            fusion.intermediate_buffers(compiled)


# --- tables ---------------------------------------------------------------------------------------


def test_the_table_in_bytes():
    assert fusion.ledger(chain(2)).as_text() == "\n".join(
        [
            "    operators     activations read  weights read  written   total",
            "k1  add                      4,100             0    4,096   8,196",
            "k2  add                      4,100             0    4,096   8,196",
            "    2 kernels, B             8,200             0    8,192  16,392",
        ]
    )


def test_the_table_in_megabytes_cut_short():
    text = fusion.ledger(chain(8, 250_000)).as_text(limit=1)
    assert text.splitlines() == [
        "     operators      activations read  weights read  written   total",
        "k1   add                       1.000         0.000    1.000   2.000",
        "...  7 more",
        "     8 kernels, MB             8.000         0.000    8.000  16.000",
    ]


def test_before_against_after():
    mod = chain(8, fresh=True)
    text = fusion.ledger(mod).against(fusion.ledger(fusion.fuse(mod)), ("unfused", "fused"))
    assert text.splitlines() == [
        "B                kernels  activations read  weights read  written   total",
        "unfused                8            65,536             0   32,768  98,304",
        "fused                  1            36,864             0    4,096  40,960",
        "unfused / fused    8.00x             1.78x             -    8.00x   2.40x",
    ]


# --- inside a kernel ------------------------------------------------------------------------------


def test_a_fused_chain_keeps_nothing_in_memory_and_concatenate_does():
    from tvm import relay

    assert set(fusion.intermediate_buffers(build(chain(8))).values()) == {0}
    x = relay.var("x", shape=(16, 16))
    body = relay.concatenate([relay.exp(x), relay.tanh(x)], 0)
    # Its schedule copies from finished parts: exp and tanh, 16 x 16 float32 each.
    held = fusion.intermediate_buffers(build(module_of([x], body)))
    assert held == {"fused_exp_tanh_concatenate": 2 * 1024}
