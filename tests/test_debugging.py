"""Planted faults go away again; the debug executor's results and reports are those of the model."""

import numpy as np
import pytest

from helpers import WorkbookError, debugging

pytestmark = pytest.mark.usefixtures("relay")


def square(attrs, args, types):
    return args[0] * args[0]


def exponentials(relay, values):
    """What exp(x) + 1 gives after a build without cache."""
    from helpers import build

    x = relay.var("x", shape=(4,))
    body = relay.exp(x) + relay.const(1.0)
    return build.compile(relay.Function([x], body), cache=False).run(x=values)[0]


def test_a_fault_is_there_inside_the_block_only():
    from tvm import relay

    values = np.array([0.0, 1.0, 2.0, 3.0], "float32")
    with debugging.planted("exp", "FTVMLegalize", square):
        np.testing.assert_allclose(exponentials(relay, values), values**2 + 1, rtol=1e-6)
    np.testing.assert_allclose(exponentials(relay, values), np.exp(values) + 1, rtol=1e-6)


def test_an_attribute_that_the_operator_has_comes_back():
    """AlterOpLayout packs the weights of a dense; with a fault in its place it does not."""
    from tvm import relay

    x = relay.var("x", shape=(1, 16))
    body = relay.nn.dense(x, relay.const(np.ones((16, 16), "float32")))
    values = {"x": np.ones((1, 16), "float32")}
    fault = ("nn.dense", "FTVMAlterOpLayout", lambda *given: None)
    with pytest.raises(ZeroDivisionError), debugging.planted(*fault):
        raise ZeroDivisionError
    with debugging.planted(*fault):
        inside = debugging.kernel_results(library(body), values)
    outside = debugging.kernel_results(library(body), values)
    assert [name for name, _ in inside] == ["fused_nn_dense"]
    assert [name for name, _ in outside] == ["fused_nn_contrib_dense_pack"]
    assert np.array_equal(inside[0][1], outside[0][1])


def test_an_unknown_operator_is_named():
    with (
        pytest.raises(WorkbookError, match=r"no operator called 'nn.densee'"),
        debugging.planted("nn.densee", "FTVMLegalize", square),
    ):
        pass


def test_an_unknown_attribute_is_named():
    with (
        pytest.raises(WorkbookError, match=r"no operator attribute called 'FTVMLegalise'"),
        debugging.planted("tanh", "FTVMLegalise", square),
    ):
        pass


def library(body):
    import tvm
    from tvm import relay

    from helpers import targets

    function = relay.Function(relay.analysis.free_vars(body), body)
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(tvm.IRModule.from_expr(function), targets.TEACHING_CPU)


def test_results_of_all_kernels():
    """A reduction is not fused with what follows, and split has two results."""
    from tvm import relay

    x = relay.var("x", shape=(2, 6))
    total = relay.sum(relay.exp(x), axis=1)
    parts = relay.split(x, 2)
    built = library(relay.Tuple([relay.negative(total), parts[0], parts[1]]))
    values = np.arange(12, dtype="float32").reshape(2, 6) / 6
    found = debugging.kernel_results(built, {"x": values})
    sums = np.exp(values).sum(axis=1)
    wanted = [sums, -sums, *np.split(values, 2)]
    assert len(found) == len(wanted)
    for array in wanted:
        same = [v for _, v in found if v.shape == array.shape and np.allclose(v, array)]
        assert same, array
    assert {name for name, _ in found} == {"fused_exp_sum", "fused_negative", "fused_split"}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"wants the inputs \['x'\], and \[\] were given"),
        ({"y": np.ones(4, "float32")}, r"wants the inputs \['x'\], and \['y'\] were given"),
        ({"x": np.ones(8, "float32")}, r'"x" must be float32\[4\], and float32\[8\] was given'),
        ({"x": np.ones(2, "float64")}, r'"x" must be float32\[4\], and float64\[2\] was given'),
    ],
)
def test_wrong_inputs_are_refused(inputs, message):
    """TVM takes all but the third: it leaves the input as it is, or reads 16 bytes as 4 floats."""
    from tvm import relay

    weights = relay.const(np.ones(4, "float32"))
    built = library(relay.add(relay.var("x", shape=(4,)), weights))
    with pytest.raises(WorkbookError, match=message):
        debugging.kernel_results(built, inputs)


def test_a_library_without_a_graph_is_refused():
    with pytest.raises(WorkbookError, match="for the graph executor"):
        debugging.kernel_results(object(), {})


def kernels_with(limit, level=3):
    """Names of the kernels of exp(x) + exp(x) * (2 - 1), and the optional passes of its build."""
    import tvm
    from tvm import relay

    from helpers import targets

    x = relay.var("x", shape=(4,))
    body = relay.exp(x) + relay.exp(x) * (relay.const(2.0) - relay.const(1.0))
    watch = debugging.only_first(limit)
    with tvm.transform.PassContext(opt_level=level, instruments=[watch]):
        built = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), targets.TEACHING_CPU)
    found = debugging.kernel_results(built, {"x": np.zeros(4, "float32")})
    assert np.array_equal(found[-1][1], np.full(4, 2, "float32"))
    return [name for name, _ in found], watch.met


def test_only_the_first_optional_passes_run():
    _, everything = kernels_with(1000)
    assert "SimplifyInference" not in everything  # level 0
    assert {"EliminateCommonSubexpr", "FoldConstant", "AlterOpLayout"} <= set(everything)
    at = everything.index("EliminateCommonSubexpr")
    without, with_it = kernels_with(at)[0], kernels_with(at + 1)[0]
    assert without[-1].count("exp") == 2
    assert with_it[-1].count("exp") == 1
    assert kernels_with(1000, level=0)[1] == ["InlineGlobals", "LabelOps", "AnnotateMemoryScope"]


def test_rows_of_the_vms_report():
    import tvm
    from tvm import relay
    from tvm.runtime.profiler_vm import VirtualMachineProfiler

    from helpers import targets

    x = relay.var("x", shape=(4,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.sum(x))))
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(module, targets.TEACHING_CPU)
    value = tvm.nd.array(np.ones(4, "float32"))
    found = debugging.rows(
        VirtualMachineProfiler(executable, tvm.cpu()).profile(value, func_name="main")
    )
    kernels = [name for name, _ in found if not name.startswith("VM::")]
    assert kernels == ["fused_sum", "fused_nn_relu"]
    assert all(microseconds >= 0 for _, microseconds in found)


def test_onnx_runtime_computes_all_tensors():
    from helpers import zoo

    model = zoo.load("file_type")
    tensors = debugging.onnx_tensors(model)
    assert len(tensors) > 50
    last = list(tensors.values())[-1]
    np.testing.assert_allclose(last, model.reference[0], rtol=1e-5, atol=1e-7)
    with pytest.raises(WorkbookError, match=r"no \.onnx file"):
        debugging.onnx_tensors(zoo.load("lstm"))


def test_a_partner_has_the_same_numbers_in_any_order():
    image = np.arange(16, dtype="float32").reshape(1, 4, 2, 2)
    blocked = image.reshape(1, 2, 2, 2, 2).transpose(0, 1, 3, 4, 2)  # NCHW2c
    tensors = {"small": image[:, :2], "other": image + 1, "image": image, "again": image}
    assert debugging.partner(blocked, tensors) == "image"
    assert debugging.partner(blocked * 1.00001, tensors) == "image"
    assert debugging.partner(blocked * 1.01, tensors) is None
    assert debugging.partner(image == 3, {"flags": image == 3}) == "flags"
