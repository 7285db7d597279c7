"""One call for both TVMs, and models that cross from one to the other."""

import os
import signal
import textwrap
import threading

import numpy as np
import pytest

from helpers import bridge, build, targets, zoo
from helpers.errors import WorkbookError
from helpers.tvm_builds import run_with

pytestmark = pytest.mark.usefixtures("relay")


def relax(source: str) -> str:
    """What this source prints in a process that has chosen Relax."""
    head = """
    import numpy as np
    from helpers import WorkbookError, build, targets, zoo

    def refused(*args, **kwargs):
        try:
            build.compile(*args, **kwargs)
        except WorkbookError as error:
            print(error)
    """
    return run_with("relax", textwrap.dedent(head) + textwrap.dedent(source))


def test_relax_gives_what_onnx_runtime_gives_and_the_same_type_of_result():
    printed = relax("""
        model = zoo.load("mlp")
        for executor in ("vm", "compiled"):
            made = build.compile(model, executor, tvm="relax")
            np.testing.assert_allclose(made.run(**model.inputs)[0], model.reference[0], rtol=1e-5)
            print(made, "|", *made.kernels)
            print(made.input_types["data"], made.sizes, made.from_cache, sorted(made.times))
            assert made.benchmark(repeat=2, min_seconds=0.001).median > 0
    """)
    weights = 4 * (784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10)
    tensors = 4 * (128 + 64 + 10 + 10)  # what each of the four kernels writes
    kernels = "fused_matmul_add_relu fused_matmul1_add1_relu1 fused_matmul2_add2 softmax"
    sizes = f"{{'parameters': {weights}, 'tensors': {tensors}}}"
    rest = f"float32[1, 1, 28, 28] {sizes} False ['compile', 'first_run', 'load']"
    assert printed.splitlines() == [
        f"Relax VM, bytecode, opt_level 3, 4 kernels | {kernels}",
        rest,
        "Relax VM, compiled, opt_level 3, 0 kernels |",
        rest,
    ]


def test_a_relax_module_with_a_length_known_only_at_run_time():
    printed = relax("""
        import tvm
        from tvm import relax, tirx

        n = tirx.Var("n", "int64")
        builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((n, 2), "float32"))
        with builder.function("main", [x]):
            y = builder.emit(relax.op.exp(x))
            builder.emit_func_output(relax.Tuple([y, relax.op.add(y, y)]))
        made = build.compile(builder.get())
        print(made.input_types["x"])
        for length in (1, 3):
            value = np.arange(2 * length, dtype="float32").reshape(length, 2)
            first, second = made.run(x=value)
            np.testing.assert_allclose(first, np.exp(value), rtol=1e-5)
            np.testing.assert_allclose(second, 2 * np.exp(value), rtol=1e-5)
        print("done")
    """)
    assert printed == "float32[?, 2]\ndone\n"


def test_a_pass_may_leave_fewer_inputs():
    printed = relax("""
        from tvm import relax
        from helpers.relax_ir import program

        module = program(lambda emit, x, w: relax.op.multiply(x, w), (3,), (3,))
        bound = relax.transform.BindParams("main", {"x1": np.full(3, 2, "float32")})
        made = build.compile(module, passes=bound)
        print(list(made.input_types), made.run(x0=np.ones(3, "float32"))[0].tolist())
    """)
    assert printed == "['x0'] [2.0, 2.0, 2.0]\n"


def test_shapes_that_an_exporter_left_open_are_folded_first():
    printed = relax("""
        model = zoo.load("file_type")
        made = build.compile(model)
        found = made.run(**model.inputs)[0]
        print(np.allclose(found, model.reference[0], model.rtol, model.atol))
    """)
    assert printed == "True\n"


def test_every_refusal_is_a_sentence():
    printed = relax("""
        for settings in (
            {"tvm": "relay"}, {"tvm": "jax"}, {"executor": "graph"}, {"target": "cuda"},
            {"disabled_pass": ["FuseOps"]}, {"target": "pdp11"},
        ):
            refused("mlp", **settings)
        refused("voice_activity")
        refused("lstm")
        refused("no_file.onnx")
        refused(3)
    """)
    lines = printed.splitlines()
    starts = [
        "This kernel uses Relax, and one process can use only one TVM: ask helpers.bridge",
        'tvm is "relay" or "relax", not \'jax\'.',
        'Relax has one executor, its VM: executor is "vm" or "compiled", not \'graph\'.',
        "CUDA was asked for, and apache-tvm 0.27",
        "With Relax, give passes= and config=",
        "TVM does not understand the target 'pdp11'",
        "Relax cannot import this model: The following operators are not supported",
        "lstm has no ONNX form, which is what Relax reads here",
        "There is no file no_file.onnx.",
        "A model for Relax is a zoo model or its name",
    ]
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start), line


def test_relay_refuses_to_be_relax():
    with pytest.raises(WorkbookError, match="uses Relay, and one process can use only one TVM"):
        build.compile("mlp", tvm="relax")


def test_targets_are_the_same_for_both():
    text = relax("""
        for name in (None, "teaching", "llvm -mcpu=x86-64-v3 -mattr=-avx2,+fma"):
            target = targets.resolve(name)
            print(target.kind.name, target.attrs["mcpu"], list(target.attrs.get("mattr", [])))
    """)
    assert text.splitlines() == [
        "llvm x86-64-v3 []",
        "llvm x86-64-v3 []",
        "llvm x86-64-v3 ['-avx2', '+fma']",
    ]
    assert targets.resolve().mcpu == "x86-64-v3"


@pytest.fixture(scope="module")
def there():
    return bridge.compile("mlp")


def test_a_model_crosses_and_its_arrays_come_back(there):
    model = zoo.load("mlp")
    assert (there.tvm, there.executor) == ("relax", "vm")
    assert len(there.kernels) == 4
    np.testing.assert_allclose(there.run(**model.inputs)[0], model.reference[0], rtol=1e-5)
    assert there.benchmark(model.inputs, repeat=2).median > 0


def test_what_the_other_side_refuses_is_said_here(there):
    with pytest.raises(WorkbookError, match='has no input "x"'):
        there.run(x=np.zeros(3))
    with pytest.raises(WorkbookError, match='executor is "vm" or "compiled"'):
        bridge.compile("mlp", "graph")
    for model, sentence in (
        ("lstm", "lstm has no ONNX form"),
        ("none.onnx", "There is no file none.onnx"),
        (3, "can cross, not a int"),
    ):
        with pytest.raises(WorkbookError, match=sentence):
            bridge.compile(model)


def test_a_worker_that_dies_is_reported_and_replaced(there):
    inputs = zoo.load("mlp").inputs
    expected = there.run(**inputs)[0]
    worker = there._worker._process.pid
    os.kill(worker, signal.SIGSTOP)  # so that it is in the request when it dies
    threading.Timer(0.5, os.kill, (worker, signal.SIGKILL)).start()
    with pytest.raises(bridge.DiedError, match="The process with Relax ended while it was to run"):
        there.run(**inputs)
    np.testing.assert_array_equal(there.run(**inputs)[0], expected)
