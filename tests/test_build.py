"""build.compile: one call for three executors, checked inputs, a cache that is never wrong."""

import contextlib
import os
import pickle
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import artifact_cache, build
from helpers.errors import WorkbookError
from helpers.tvm_builds import ROOT

EXECUTORS = ("graph", "vm", "aot")
X = np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8)
W = np.linspace(-2, 3, 64, dtype="float32").reshape(8, 8)


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(relay, session_cache, monkeypatch):
    monkeypatch.setenv("RELAY_WORKBOOK_CACHE", str(session_cache))


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAY_WORKBOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def layer(relay, name="x", offset=1.0, slope=0.1):
    """leaky_relu(x Wᵀ) + offset, and x itself inside a nested tuple."""
    x, w = relay.var(name, shape=(4, 8)), relay.var("w", shape=(8, 8))
    y = relay.nn.leaky_relu(relay.nn.dense(x, w), slope) + relay.const(offset)
    return relay.Function([x, w], relay.Tuple([relay.Tuple([y, x]), relay.sum(y)]))


def layer_by_numpy(x=X, w=W):
    z = x @ w.T
    y = np.where(z > 0, z, 0.1 * z) + 1
    return [y, x, y.sum()]


def dynamic_programs(relay):
    """(program, inputs, the right answer) of three kinds of dynamic program."""
    x = relay.var("x", shape=(relay.Any(), 4))
    yield "Any", relay.Function([x], relay.exp(x)), {"x": X[:3, :4]}, np.exp(X[:3, :4])
    c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(4,))
    branch = relay.Function([c, x], relay.If(c, x + x, x * x))
    yield "If", branch, {"c": False, "x": X[0, :4]}, X[0, :4] ** 2
    i, a, x = relay.var("i", shape=(), dtype="int32"), *(relay.var(n, shape=(4,)) for n in "ax")
    loop = relay.loops.while_loop(
        lambda i, a: relay.less(i, relay.const(10)),
        [i, a],
        lambda i, a: [i + relay.const(1), a * relay.const(2.0)],
    )
    program = relay.Function([x], relay.TupleGetItem(loop(relay.const(0), x), 1))
    yield "loop", program, {"x": X[0, :4]}, X[0, :4] * 1024


@contextlib.contextmanager
def no_compiler():
    """Hide every C and C++ compiler of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "")
        patch.delenv("CXX", raising=False)
        patch.delenv("CC", raising=False)
        yield


# --- what comes out ------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_runs_the_same_program_to_the_same_result(relay, executor):
    compiled = build.compile((layer(relay), {"w": W}), executor)
    results = compiled.run(x=X)
    assert len(results) == 3
    for got, want in zip(results, layer_by_numpy(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert compiled.kernels == ["fused_nn_contrib_dense_pack_nn_leaky_relu_add", "fused_sum"]
    assert {name: str(kind) for name, kind in compiled.input_types.items()} == {
        "x": "float32[4, 8]"
    }


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_parameter_without_a_value_is_an_input(relay, executor):
    compiled = build.compile(layer(relay), executor)
    assert list(compiled.input_types) == ["x", "w"]
    np.testing.assert_allclose(compiled.run(w=W, x=X)[0], layer_by_numpy()[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_any_name_will_do_for_an_input(relay, executor):
    a, b = relay.var("gpu_0/data_0", shape=(2,)), relay.var("gpu_0_data_0", shape=(2,))
    own, self = relay.var("inputs", shape=(2,)), relay.var("self", shape=(2,))
    program = relay.Function([a, b, own, self], a - b * own + self)
    values = {"gpu_0_data_0": [1, 2], "self": [5, 7], "gpu_0/data_0": [3, 3], "inputs": [10, 100]}
    assert build.compile(program, executor).run(**values)[0].tolist() == [-2, -190]


def test_random_elementwise_programs_agree_with_numpy_everywhere(relay):
    operations = {
        "add": (relay.add, np.add),
        "subtract": (relay.subtract, np.subtract),
        "multiply": (relay.multiply, np.multiply),
        "maximum": (relay.maximum, np.maximum),
        "tanh": (relay.tanh, np.tanh),
        "negative": (relay.negative, np.negative),
        "sqrt_abs": (lambda v: relay.sqrt(relay.abs(v)), lambda v: np.sqrt(np.abs(v))),
    }
    two = st.sampled_from(["add", "subtract", "multiply", "maximum"])
    one = st.sampled_from(["tanh", "negative", "sqrt_abs"])
    programs = st.recursive(
        st.sampled_from(["x", "y", 0.5, -2.0]),
        lambda inner: st.tuples(two, inner, inner) | st.tuples(one, inner),
        max_leaves=6,
    )
    x, y = relay.var("x", shape=(3, 1)), relay.var("y", shape=(4,))
    rng = np.random.default_rng(0)
    values = {
        "x": rng.normal(size=(3, 1)).astype("float32"),
        "y": rng.normal(size=4).astype("float32"),
    }

    def as_relay(term):
        if isinstance(term, tuple):
            return operations[term[0]][0](*map(as_relay, term[1:]))
        return {"x": x, "y": y}[term] if isinstance(term, str) else relay.const(term)

    def by_numpy(term):
        if isinstance(term, tuple):
            return operations[term[0]][1](*map(by_numpy, term[1:]))
        return values[term] if isinstance(term, str) else np.float32(term)

    @settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=HealthCheck)
    @given(programs, st.integers(1, 3))
    def check(term, level):
        program = relay.Function([x, y], as_relay(term) + relay.zeros((3, 4), "float32"))
        want = by_numpy(term) + np.zeros((3, 4), "float32")
        for executor in EXECUTORS:
            compiled = build.compile(program, executor, opt_level=level, cache=False)
            np.testing.assert_allclose(compiled.run(**values)[0], want, rtol=1e-4, atol=1e-5)

    check()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_are_the_callers_own(relay, executor):
    compiled = build.compile((layer(relay), {"w": W}), executor)
    given_input = X.copy()
    first = compiled.run(x=given_input)
    kept = [array.copy() for array in first]
    given_input[:] = 99
    second = compiled.run(x=2 * X)
    for array in second:
        array[...] = 7
    third = compiled.run(x=X)
    for a, b, c in zip(first, kept, third, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_kernels_are_named_in_the_order_of_execution_without_nop(relay):
    x = relay.var("x", shape=(2, 6))
    program = relay.Function([x], relay.reshape(relay.nn.softmax(relay.reshape(x, (3, 4))), (12,)))
    assert build.compile(program, "graph").kernels == ["fused_nn_softmax"]
    assert build.compile(program, "vm").kernels == ["fused_nn_softmax"]
    # AOT has no __nop: an input that is reshaped is copied.
    assert build.compile(program, "aot").kernels == ["fused_reshape", "fused_nn_softmax"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sizes_are_the_bytes_of_the_parts(relay, executor):
    compiled = build.compile((layer(relay), {"w": W}), executor)
    assert set(compiled.sizes) == {"library", "parameters", "program"}
    assert compiled.sizes["library"] > 1000
    if executor == "graph":
        assert compiled.sizes["parameters"] == W.nbytes
        assert compiled.sizes["program"] == len(compiled.library.get_graph_json())
    elif executor == "aot":
        assert (compiled.sizes["parameters"], compiled.sizes["program"]) == (W.nbytes, 0)
    else:  # besides the weight: shapes and sizes, a few integers each
        assert W.nbytes < compiled.sizes["parameters"] < W.nbytes + 200


@pytest.mark.parametrize("executor", EXECUTORS)
def test_times_and_benchmark(relay, executor):
    compiled = build.compile((layer(relay), {"w": W}), executor, cache=False)
    assert set(compiled.times) == {"compile", "load"}
    with pytest.raises(WorkbookError, match="call run"):
        compiled.benchmark()
    timing = compiled.benchmark({"x": X}, repeat=3, min_seconds=0.001)
    compiled.run(x=X)
    first = compiled.times["first_run"]
    compiled.run(x=X)
    assert compiled.times["first_run"] == first > 0
    assert len(timing.seconds) == 3
    assert 0 < timing.low <= timing.median <= timing.high
    assert len(compiled.benchmark(repeat=2, min_seconds=0.001).seconds) == 2


def test_a_timing_is_printed_in_a_readable_unit():
    assert str(build.Timing((2e-6, 1e-6, 4e-6))) == "2 µs (1 to 4 over 3 repeats)"
    assert str(build.Timing((0.0123,))) == "12.3 ms (12.3 to 12.3 over 1 repeats)"
    assert str(build.Timing((1234.5,))).startswith("1.23e+03 s")


# --- what goes in --------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_wrong_inputs_are_refused_by_every_executor(relay, executor):
    compiled = build.compile((layer(relay, "image"), {"w": W}), executor)
    for wrong, words in (
        ({"image": X[:2]}, '"image" has the wrong shape: float32[4, 8] is wanted, float32[2, 8]'),
        ({"image": X.T}, "float32[8, 4] was given"),
        ({"image": X[0]}, "float32[8] was given"),
        ({"image": X[None]}, "float32[1, 4, 8] was given"),
        ({"image": 1.0}, "[] was given"),
        ({"imgae": X}, 'no input "imgae", perhaps "image" is meant: it takes image: float32[4, 8]'),
        ({"image": X, "w": W}, 'no input "w"'),
        ({}, "These inputs are missing: image"),
        ({"image": [[1.0, 2.0], [3.0]]}, "must be an array"),
        ({"image": "abc"}, '"image" must be an array of numbers, float32[4, 8]'),
        ({"image": None}, '"image" must be an array of numbers, float32[4, 8]'),
        ({"image": X.astype("complex64")}, "complex64[4, 8] was given"),
    ):
        with pytest.raises(WorkbookError) as caught:
            compiled.run(**wrong)
        assert words in str(caught.value)
    with pytest.raises(WorkbookError, match=r"by name: write run\(image=\.\.\.\)"):
        compiled.run(X)
    np.testing.assert_allclose(compiled.run(image=X)[0], layer_by_numpy()[0], rtol=1e-5, atol=1e-5)


ACCEPTED = [
    ("float32", [1, 2.5], [1, 2.5]),
    ("float32", np.array([0.1, np.inf]), np.array([0.1, np.inf], "float32")),  # rounded
    ("float32", np.array([1, 2**24]), [1, 2**24]),
    ("float32", np.array([True, False]), [1, 0]),
    ("float64", np.array([0.1, 0.2], "float32"), np.array([0.1, 0.2], "float32")),
    ("int32", [1, -(2**31)], [1, -(2**31)]),
    ("int64", np.array([1, 2**31], "uint32"), [1, 2**31]),
    ("bool", [True, False], [True, False]),
]
REFUSED = [
    ("float32", np.array([1, 1e300])),
    ("float32", np.array([1, 2**24 + 1])),
    ("int32", np.array([1.0, 2.0])),
    ("int32", np.array([1, 2**31])),
    ("uint8", np.array([1, -1])),
    ("uint64", np.array([1, -1])),
    ("int64", np.array([1, 2**63], "uint64")),
    ("bool", np.array([1, 0])),
    ("float32", np.array(["1", "2"])),
    ("float32", np.array([None, 1.0])),
]


@pytest.mark.parametrize(("dtype", "value", "want"), ACCEPTED)
def test_a_value_that_fits_is_converted(relay, dtype, value, want):
    x = relay.var("x", shape=(2,), dtype=dtype)
    (got,) = build.compile(relay.Function([x], x), "vm").run(x=value)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("dtype", "value"), REFUSED)
def test_a_value_that_would_change_is_refused(relay, dtype, value):
    x = relay.var("x", shape=(2,), dtype=dtype)
    with pytest.raises(WorkbookError, match=f'"x" has the wrong dtype: {dtype}'):
        build.compile(relay.Function([x], x), "vm").run(x=value)


def test_an_unknown_dimension_takes_any_size_and_the_others_only_theirs(relay):
    x = relay.var("x", shape=(relay.Any(), 4))
    compiled = build.compile(relay.Function([x], relay.nn.relu(x)), "vm")
    assert str(compiled.input_types["x"]) == "float32[?, 4]"
    for rows in (1, 5, 0):
        assert compiled.run(x=np.ones((rows, 4), "float32"))[0].shape == (rows, 4)
    for shape in ((4,), (2, 5), (1, 2, 4)):
        with pytest.raises(WorkbookError, match="wrong shape"):
            compiled.run(x=np.ones(shape, "float32"))


def test_the_vm_takes_tuples_and_the_others_say_so(relay):
    pair = relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))])
    p = relay.var("p", type_annotation=pair)
    program = relay.Function([p], relay.TupleGetItem(p, 0) - relay.TupleGetItem(p, 1))
    compiled = build.compile(program, "vm")
    assert compiled.run(p=([5, 6], [1, 2]))[0].tolist() == [4, 4]
    with pytest.raises(WorkbookError, match=r'"p\[1\]" has the wrong shape'):
        compiled.run(p=([5, 6], [1, 2, 3]))
    with pytest.raises(WorkbookError, match="tuple of 2"):
        compiled.run(p=[5, 6, 7])
    for executor in ("graph", "aot"):
        with pytest.raises(WorkbookError, match='"p" is a tuple, which only the VM takes'):
            build.compile(program, executor)


# --- models --------------------------------------------------------------------------------------


def test_an_onnx_file_is_a_model(relay, tmp_path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def write(rows):
        node = helper.make_node("Gemm", ["in.1", "w"], ["out"], transB=1)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("in.1", TensorProto.FLOAT, [rows, 8])],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, [rows, 8])],
            [numpy_helper.from_array(W, "w")],
        )
        path = tmp_path / f"{rows}.onnx"
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.save(model, path)
        return path

    compiled = build.compile(str(write(4)), "graph")
    np.testing.assert_allclose(compiled.run(**{"in.1": X})[0], X @ W.T, rtol=1e-5, atol=1e-5)
    dynamic = write("rows")
    with pytest.raises(WorkbookError, match='executor="vm"'):
        build.compile(dynamic, "graph")
    (tmp_path / "bad.onnx").write_text("no model")
    with pytest.raises(WorkbookError, match=r"bad\.onnx cannot be imported"):
        build.compile(tmp_path / "bad.onnx")
    with pytest.raises(WorkbookError, match="There is no file"):
        build.compile(tmp_path / "none.onnx")


def test_a_pass_of_the_caller_brings_the_passes_that_it_requires(relay):
    """ConvertLayout requires CanonicalizeOps: without it bias_add keeps its layout, and blocks."""
    x = relay.var("x", shape=(1, 8, 8, 8))
    weight = relay.const(np.ones((8, 8, 3, 3), "float32"))
    y = relay.nn.conv2d(x, weight, padding=(1, 1), channels=8, kernel_size=(3, 3))
    y = relay.nn.relu(relay.nn.bias_add(y, relay.const(np.ones(8, "float32"))))
    convert = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
    kernels = build.compile(y, opt_level=2, passes=convert).kernels
    assert (
        len(kernels) == 3
    )  # one transform, the convolution with bias and relu, one transform back


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_references_are_for_the_interpreter_alone(relay, executor):
    place = relay.Var("place")
    read = relay.Let(place, relay.RefCreate(relay.const(1.0)), relay.RefRead(place))
    with pytest.raises(WorkbookError, match=r"only TVM's interpreter runs them"):
        build.compile(relay.Function([], read), executor=executor)


def test_a_zoo_model_is_a_model(relay):
    zoo = pytest.importorskip("helpers.zoo")
    model = zoo.load("mlp")
    for given_model in (model, "mlp"):
        results = build.compile(given_model, "graph").run(**model.inputs)
        for got, want in zip(results, model.reference, strict=True):
            np.testing.assert_allclose(got, want, rtol=model.rtol, atol=model.atol)


def test_what_is_no_model_is_refused_in_one_sentence(relay):
    x, y = relay.var("x", shape=(1, 3)), relay.var("x", shape=(4, 5))
    z = relay.var("z", shape=(4, 5))
    none = relay.var("x", shape=(None, 4))
    untyped = relay.var("u")
    for model, words in (
        (3, "not int"),
        (relay.Function([x], x + relay.var("b", shape=(1, 3))), "uses b without taking it"),
        (relay.Function([x, y], relay.Tuple([x, y])), 'Two inputs are called "x"'),
        (relay.Function([x, z], x + z), "Incompatible broadcast type"),
        (relay.Function([none], relay.exp(none)), "relay.Any()"),
        (relay.Function([untyped], untyped), "unable to infer a type"),
        ((layer(relay), {"w": W[:4]}), '"w" does not fit: float32[8, 8] is wanted, float32[4, 8]'),
        ((layer(relay), {"w": W.astype("float64")}), "float64[8, 8] was given"),
    ):
        with pytest.raises(WorkbookError) as caught:
            build.compile(model)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_callers_module_stays_as_it_is(relay, executor):
    import tvm

    module = tvm.IRModule.from_expr(layer(relay))
    before, text = tvm.ir.load_json(tvm.ir.save_json(module)), module.astext()
    params = {"w": W}
    build.compile((module, params), executor, passes=relay.transform.SimplifyExpr(), cache=False)
    assert tvm.ir.structural_equal(module, before)
    assert module.astext() == text
    assert list(params) == ["w"]
    assert params["w"] is W


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_convolution_that_leaves_its_sizes_to_its_weight_is_built(relay, layout):
    shapes = {
        "NCHW": ((1, 3, 5, 6), (4, 3, 2, 3), "OIHW"),
        "NHWC": ((1, 5, 6, 3), (2, 3, 3, 4), "HWIO"),
    }
    shape, weight_shape, kernel_layout = shapes[layout]
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight_shape)
    conv = relay.nn.conv2d(x, w, data_layout=layout, kernel_layout=kernel_layout)
    rng = np.random.default_rng(1)
    image, weight = rng.normal(size=shape), rng.normal(size=weight_shape)
    (got,) = build.compile(relay.Function([x, w], conv)).run(x=image, w=weight)
    if layout == "NHWC":
        image, weight, got = (
            image.transpose(0, 3, 1, 2),
            weight.transpose(3, 2, 0, 1),
            got.transpose(0, 3, 1, 2),
        )
    windows = np.lib.stride_tricks.sliding_window_view(image[0], (3, 2, 3))[0]
    np.testing.assert_allclose(
        got[0], np.tensordot(weight, windows, ([1, 2, 3], [2, 3, 4])), rtol=1e-4, atol=1e-5
    )


# --- limits of the executors, and settings -------------------------------------------------------


def test_dynamic_programs_run_on_the_vm_and_the_others_say_why_not(relay):
    import tvm

    for kind, program, inputs, want in dynamic_programs(relay):
        (got,) = build.compile(program, "vm").run(**inputs)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        for executor in ("graph", "aot"):
            with pytest.raises(WorkbookError) as caught:
                build.compile(program, executor)
            reason = {"Any": "dimension 0", "If": "branch", "loop": "while_loop"}[kind]
            assert reason in str(caught.value)
            assert 'executor="vm"' in str(caught.value)
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value.__cause__, tvm.error.TVMError)


def test_the_vm_at_level_0_is_explained(relay):
    with pytest.raises(WorkbookError, match="set opt_level to 1 or more") as caught:
        build.compile(layer(relay), "vm", opt_level=0)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"executor": "grph"}, 'perhaps "graph" is meant'),
        ({"executor": "debug"}, '"graph", "vm" or "aot"'),
        ({"opt_level": 5}, "0, 1, 2, 3 or 4, not 5"),
        ({"opt_level": -1}, "not -1"),
        ({"opt_level": True}, "not True"),
        ({"opt_level": "3"}, "not '3'"),
        ({"disabled_pass": ["FoldConstants"]}, 'perhaps "FoldConstant" is meant'),
        ({"disabled_pass": "FoldConstant"}, 'disabled_pass=["FoldConstant"]'),
        ({"disabled_pass": ["FuseOps"]}, '{"relay.FuseOps.max_depth": 1}'),
        ({"disabled_pass": ["CombineParallelConv2D"]}, '"CombineParallelConv2d" is meant'),
        ({"required_pass": ["Vectorize"]}, "required_pass: TVM has no pass called 'Vectorize'"),
        ({"config": {"relay.FuseOps.maxdepth": 1}}, 'perhaps "relay.FuseOps.max_depth" is meant'),
        ({"config": {"relay.FuseOps.max_depth": "deep"}}, "IntImm"),
        ({"disabled_pass": ["LowerTE"]}, "the reason may be disabled_pass=['LowerTE']"),
        ({"target": "lvm"}, "lvm"),
        ({"target": "llvm -mtriple=x86_64-linux-gnu -mcpu=knl"}, "avx512er"),
        ({"device": "gpu0"}, "not 'gpu0'"),
        ({"device": "cuda"}, "cuda"),
        ({"passes": [3]}, "3, which is no pass"),
        ({"params": {"w": W[0]}}, '"w" does not fit'),
        ({"params": 3}, "Parameters are a dictionary of arrays by name, not 3"),
        ({"executor": ["graph"]}, "not ['graph']"),
        ({"disabled_pass": None}, "disabled_pass is a list of names of passes, not None"),
        ({"disabled_pass": [3]}, "no pass called 3"),
        ({"config": 3}, "config is a dictionary of settings by name, not 3"),
        ({"config": {3: 1}}, "no setting called 3"),
        ({"device": 3}, "not 3"),
        ({"target": "llvm -mtriple=x86_64-linux-gnu -mcpu=none"}, "`-mcpu=none` is not valid"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(relay, wrong, words):
    with pytest.raises(WorkbookError) as caught:
        build.compile(layer(relay), **wrong)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_pass_of_a_real_build_may_be_named(relay):
    import tvm
    from tvm.relay.backend import Executor, Runtime

    seen = set()

    @tvm.instrument.pass_instrument
    class Names:
        def run_before_pass(self, module, info):
            seen.add(info.name)

    x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
    conv = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3))
    target = tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
    aot = {"executor": Executor("aot", {"interface-api": "packed"}), "runtime": Runtime("cpp")}
    for compile_it in (
        lambda m: relay.build(m, target),
        lambda m: relay.build(m, target, **aot),
        lambda m: relay.vm.compile(m, target),
    ):
        with tvm.transform.PassContext(opt_level=4, instruments=[Names()]):
            compile_it(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(conv))))
    assert len(seen) > 80
    assert seen - build.pass_names() == {"sequential"}  # what a Sequential without a name is called


def test_passes_always_run_and_settings_reach_the_build(relay):
    x = relay.var("x", shape=(4,))
    program = relay.Function([x], relay.exp(relay.tanh(x + (relay.const(1.0) + relay.const(2.0)))))
    fold = relay.transform.FoldConstant()
    import tvm

    def kernels(**settings):
        return build.compile(program, **settings).kernels

    # Without fusion one kernel an operator: two adds, tanh, exp; one add is folded from level 2 on.
    unfused = {"relay.FuseOps.max_depth": 1}
    assert len(kernels(opt_level=1, config=unfused)) == 4
    assert len(kernels(opt_level=1, config=unfused, passes=fold)) == 3
    sequential = tvm.transform.Sequential([fold, relay.transform.CombineParallelDense()])
    assert len(kernels(opt_level=1, config=unfused, passes=[sequential])) == 3
    assert len(kernels(opt_level=2, config=unfused)) == 3
    assert len(kernels(opt_level=2, config=unfused, disabled_pass=["FoldConstant"])) == 4
    assert len(kernels(opt_level=1, config=unfused, required_pass=["FoldConstant"])) == 3
    assert len(kernels(opt_level=2)) == 1


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("compiler", [True, False])
def test_a_saved_model_comes_back_as_it_was(relay, tmp_path, monkeypatch, executor, compiler):
    def forbidden(*_, **__):
        raise AssertionError("something was unpickled")

    with contextlib.nullcontext() if compiler else no_compiler():
        compiled = build.compile((layer(relay), {"w": W}), executor, cache=False)
        compiled.save(tmp_path / "model")
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    loaded = build.load(str(tmp_path / "model"))
    for a, b in zip(compiled.run(x=X), loaded.run(x=X), strict=True):
        np.testing.assert_array_equal(a, b)
    for what in ("executor", "target", "opt_level", "input_types", "kernels", "sizes"):
        assert getattr(loaded, what) == getattr(compiled, what)
    assert loaded.times["compile"] == compiled.times["compile"]
    assert not loaded.from_cache
    with pytest.raises(WorkbookError, match="wrong shape"):
        loaded.run(x=X[:2])
    loaded.save(tmp_path / "again")
    np.testing.assert_array_equal(build.load(tmp_path / "again").run(x=X)[0], loaded.run(x=X)[0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_with_and_without_a_cpp_compiler_the_same_comes_out(relay, empty_cache, executor):
    with no_compiler():
        bare = build.compile((layer(relay), {"w": W}), executor)
        hit = build.compile((layer(relay), {"w": W}), executor)
    assert (bare.from_cache, hit.from_cache) == (False, True)
    usual = build.compile((layer(relay), {"w": W}), executor, cache=False)
    assert bare.sizes == hit.sizes == usual.sizes
    assert bare.kernels == usual.kernels
    for a, b, c in zip(bare.run(x=X), hit.run(x=X), usual.run(x=X), strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c)


def test_a_compiler_that_does_not_work_is_none(relay, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    compiled = build.compile((layer(relay), {"w": W}), cache=False)
    np.testing.assert_allclose(compiled.run(x=X)[0], layer_by_numpy()[0], rtol=1e-5, atol=1e-5)


def test_a_file_that_is_no_model_of_ours_is_refused(relay, tmp_path):
    path = tmp_path / "model"
    build.compile((layer(relay), {"w": W})).save(path)
    whole = path.read_bytes()
    header, sections = artifact_cache.unpack(whole)

    def refused(words, data=None):
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(WorkbookError, match=words):
            build.load(path)

    refused("damaged", whole[:-1])
    refused("damaged", b"")
    refused("damaged", b"\x7fELF" + bytes(1000))
    older = {**header, "compiler": {**header["compiler"], "tvm": "0.15", "commit": "abcdef"}}
    refused("was compiled by TVM 0.15 .*commit abcdef", artifact_cache.pack(older, sections))
    refused("was compiled by", artifact_cache.pack({**header, "format": 99}, sections))
    foreign = {**header, "target": "llvm -mtriple=x86_64-linux-gnu -mcpu=knl"}
    refused("cannot run on this processor", artifact_cache.pack(foreign, sections))
    library = next(name for name in sections if name.startswith("library"))
    broken = {**sections, library: b"no library"}  # machine code, or bitcode without a compiler
    refused("cannot be loaded", artifact_cache.pack(header, broken))
    path.unlink()
    refused("cannot be read: No such file")
    with pytest.raises(WorkbookError, match="cannot be written"):
        build.compile((layer(relay), {"w": W})).save(tmp_path / "no" / "folder")


def test_a_graph_build_keeps_what_tvm_knows_of_its_kernels(relay, empty_cache):
    import tvm

    target = tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
    with tvm.transform.PassContext(opt_level=3):
        want = relay.build(tvm.IRModule.from_expr(layer(relay)), target, params={"w": W})
    build.compile((layer(relay), {"w": W}))
    library = build.compile((layer(relay), {"w": W})).library
    assert library.get_graph_json() == want.get_graph_json()
    (value,) = library.get_params().values()
    np.testing.assert_array_equal(value.numpy(), next(iter(want.get_params().values())).numpy())
    for name, info in library.function_metadata.items():
        (kernel,) = info.tir_primfuncs.values()
        (tir,) = want.function_metadata[name].tir_primfuncs.values()
        assert tvm.ir.structural_equal(kernel, tir)


# --- the cache -----------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_second_compilation_is_read_from_the_cache(relay, empty_cache, executor):
    cold = build.compile((layer(relay), {"w": W}), executor)
    warm = build.compile((layer(relay), {"w": W.copy()}), executor)
    assert (cold.from_cache, warm.from_cache) == (False, True)
    assert warm.times["compile"] == cold.times["compile"]
    assert (warm.kernels, warm.sizes) == (cold.kernels, cold.sizes)
    for a, b in zip(cold.run(x=X), warm.run(x=X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not build.compile((layer(relay), {"w": W}), executor, cache=False).from_cache
    size = sum(path.stat().st_size for path in empty_cache.iterdir())
    assert build.clear_cache() == size > 0
    assert not build.compile((layer(relay), {"w": W}), executor).from_cache


def test_whatever_changes_the_result_changes_the_key(relay, empty_cache):
    import tvm

    other_w = W.copy()
    other_w[3, 3] = np.nextafter(other_w[3, 3], np.float32(9))

    @tvm.transform.module_pass(opt_level=0, name="Mine")
    def same(module, _):
        return module

    @tvm.transform.module_pass(opt_level=0, name="Mine")
    def other(module, _):
        return tvm.IRModule.from_expr(layer(relay, offset=7.0))

    base = (layer(relay), {"w": W})
    x = relay.var("x", shape=(4, 8))
    shared = relay.exp(x)
    variants = [
        (base, {}),
        ((layer(relay), {"w": other_w}), {}),
        ((layer(relay, name="y"), {"w": W}), {}),
        ((layer(relay, offset=np.nextafter(np.float32(1), np.float32(2))), {"w": W}), {}),
        ((layer(relay, slope=0.1000000001), {"w": W}), {}),
        ((layer(relay), {}), {}),
        (base, {"executor": "vm"}),
        (base, {"opt_level": 2}),
        (base, {"target": "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2"}),
        (base, {"config": {"relay.FuseOps.max_depth": 1}}),
        (base, {"config": {"relay.FuseOps.max_depth": 2}}),
        (base, {"disabled_pass": ["FoldConstant"]}),
        (base, {"required_pass": ["FastMath"]}),
        (base, {"passes": other}),
        (relay.Function([x], shared + shared), {}),
        (relay.Function([x], relay.exp(x) + relay.exp(x)), {}),
        (relay.Function([x], x + relay.const(W[:4] - 1)), {}),
        (relay.Function([x], x + relay.const(W[4:] - 1)), {}),
    ]
    for model, options in variants:
        assert not build.compile(model, **options).from_cache, options
    for model, options in variants:
        assert build.compile(model, **options).from_cache, options
    assert build.compile(base, passes=same).from_cache


def test_the_surroundings_of_the_call_do_not_matter(relay, empty_cache):
    import tvm

    program = relay.Function([x := relay.var("x", shape=(4,))], relay.exp(relay.tanh(x)))
    with tvm.transform.PassContext(opt_level=0, config={"relay.FuseOps.max_depth": 1}):
        inside = build.compile(program)
    assert inside.kernels == ["fused_tanh_exp"]
    with tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"):
        assert build.compile(program).from_cache
    module = tvm.IRModule.from_expr(program)
    relay.build(module, target="llvm")  # leaves marks in the expressions, which do not count
    assert build.compile(module).from_cache
    assert build.compile(relay.transform.InferType()(module)).from_cache


def test_tuning_records_keep_the_cache_out(relay, empty_cache):
    from tvm import autotvm

    program = relay.Function([x := relay.var("x", shape=(4,))], relay.exp(x))
    with autotvm.apply_history_best([]):
        build.compile(program)
        assert not build.compile(program).from_cache
    assert not empty_cache.exists()


def test_a_damaged_entry_is_noticed_and_made_again(relay, empty_cache):
    rng = random.Random(3)
    model = (layer(relay), {"w": W})
    build.compile(model)
    (entry,) = empty_cache.iterdir()
    whole = entry.read_bytes()
    for damage in ("byte", "cut", "empty"):
        place = rng.randrange(len(whole))
        changed = whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :]
        entry.write_bytes({"byte": changed, "cut": whole[:place], "empty": b""}[damage])
        again = build.compile(model)
        assert not again.from_cache
        np.testing.assert_allclose(again.run(x=X)[0], layer_by_numpy()[0], rtol=1e-5, atol=1e-5)
        assert build.compile(model).from_cache


def test_without_a_usable_disk_models_still_compile(relay, monkeypatch, tmp_path, capfd):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAY_WORKBOOK_CACHE", str(tmp_path / "file" / "cache"))
    for _ in range(2):
        compiled = build.compile(relay.exp(relay.var("x", shape=(2,))))
        assert not compiled.from_cache
        assert compiled.run(x=[0, 0])[0].tolist() == [1, 1]
    assert build.clear_cache() == 0
    assert capfd.readouterr() == ("", "")


def test_processes_share_the_cache_also_when_they_compile_at_once(relay, empty_cache):
    script = textwrap.dedent("""
        import numpy as np
        from helpers import build, use_tvm
        use_tvm("relay", quiet=True)
        from tests.test_build import W, X, layer, layer_by_numpy
        from tvm import relay
        for executor in ("graph", "vm"):
            compiled = build.compile((layer(relay), {"w": W}), executor)
            got = compiled.run(x=X)[0]
            assert np.allclose(got, layer_by_numpy()[0], rtol=1e-5, atol=1e-5)
    """)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    for process in started:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    assert len(list(empty_cache.iterdir())) == 2  # both processes found the same two keys
    for executor in ("graph", "vm"):
        mine = build.compile((layer(relay), {"w": W}), executor)
        assert mine.from_cache
        np.testing.assert_allclose(mine.run(x=X)[0], layer_by_numpy()[0], rtol=1e-5, atol=1e-5)
