"""CUDA code of a model's kernels, on a machine that needs no GPU."""

import re
import textwrap

import pytest

from helpers import WorkbookError, cuda_source
from helpers.tvm_builds import run_with

pytestmark = pytest.mark.usefixtures("relay")

HEAD = """
from helpers import cuda_source
from tvm import relax

def program(body, *shapes):
    builder = relax.BlockBuilder()
    inputs = [relax.Var(f"x{i}", relax.TensorType(s, "float32")) for i, s in enumerate(shapes)]
    with builder.function("main", inputs):
        with builder.dataflow():
            result = builder.emit_output(body(builder.emit, *inputs))
        builder.emit_func_output(result)
    return builder.get()

def chain(emit, x):
    for operator in (relax.op.exp, relax.op.negative, relax.op.nn.relu):
        x = emit(operator(x))
    return x
"""


def relax(source: str) -> str:
    """What this source prints in a process that has chosen Relax."""
    return run_with("relax", HEAD + textwrap.dedent(source))


def test_a_chain_is_one_kernel_where_without_fusion_it_is_three():
    printed = relax("""
        for fuse in (True, False):
            code = cuda_source.generate(program(chain, (5000,)), fuse=fuse)
            bodies = sum(line.startswith('extern "C" __global__') and line.endswith("{")
                         for line in code.source.splitlines())
            print(bodies, len(code.kernels), len(code.launches), code.moved)
    """)
    one, moved = 5000 * 4, 2 * 5000 * 4
    assert printed == f"1 1 1 {moved}\n3 3 3 {3 * 2 * one}\n"


def test_grid_and_block_are_those_of_the_launch_and_cover_every_element():
    printed = relax("""
        (kernel,) = cuda_source.generate(program(chain, (1 << 20,))).kernels
        print(kernel.grid, kernel.block, kernel.threads)
        print(kernel.source)
    """)
    first, *source = printed.splitlines()
    assert first == "(1024, 1, 1) (1024, 1, 1) 1048576"
    text = "\n".join(source)
    assert "__launch_bounds__(1024)" in text
    # The position of the CUDA text itself, evaluated here for the last thread of the last block.
    index = re.search(r"ptr\[(.*?)\] = ", text)
    assert index is not None
    plain = index.group(1).replace("(int)", "")
    names = {"blockIdx": type("B", (), {"x": 1023}), "threadIdx": type("T", (), {"x": 1023})}
    assert eval(plain, {"__builtins__": {}}, names) == (1 << 20) - 1


def test_a_thread_that_has_no_element_is_kept_out_by_a_condition():
    printed = relax("""
        (kernel,) = cuda_source.generate(program(chain, (5000,))).kernels
        print(kernel.threads, [(a.kind, a.guarded) for a in kernel.accesses])
        print("if (" in kernel.source)
    """)
    assert printed == "5120 [('store', True), ('load', True)]\nTrue\n"


def test_loads_and_stores_of_the_chain_are_those_of_the_text():
    printed = relax("""
        (kernel,) = cuda_source.generate(program(chain, (4096,))).kernels
        for a in sorted(kernel.accesses, key=lambda a: a.kind):
            print(a.kind, a.times, a.itemsize, a.stride, a.sectors, kernel.requested(a.kind))
        print(kernel.moved, sorted(kernel.tensors.values()), kernel.source.count("_ptr["))
    """)
    size = 4096 * 4
    assert printed.splitlines() == [
        f"load 1 4 1 4 {size}",
        f"store 1 4 1 4 {size}",
        f"{2 * size} [({size}, False, True), ({size}, True, False)] 2",
    ]


def test_a_transposition_reads_one_sector_for_each_thread():
    """Rows of 512 floats: neighbours of the result lie 512 numbers apart in the argument."""
    printed = relax("""
        def swap(emit, x):
            return emit(relax.op.permute_dims(x))
        (kernel,) = cuda_source.generate(program(swap, (1024, 512))).kernels
        for a in sorted(kernel.accesses, key=lambda a: a.kind):
            print(a.kind, a.stride, a.sectors, a.positions[:2])
    """)
    assert printed == "load 512 32 (0, 512)\nstore 1 4 (0, 1)\n"


def test_launches_are_counted_in_the_program_that_runs():
    """Twice the same operator is one kernel, launched twice; a reshape is no copy."""
    printed = relax("""
        def twice(emit, x):
            y = emit(relax.op.permute_dims(x))
            return emit(relax.op.permute_dims(emit(relax.op.reshape(y, (32, 32)))))
        code = cuda_source.generate(program(twice, (32, 32)), fuse=False)
        print(len(code.launches), len(code.kernels), code.moved)
        print(*cuda_source.generate("mlp").launches)
    """)
    moved, mlp = printed.splitlines()
    assert moved == f"2 1 {2 * 2 * 32 * 32 * 4}"
    assert len(mlp.split()) == 4  # three dense layers and a softmax


def test_an_output_in_which_sums_are_added_up_is_no_input():
    printed = relax("""
        def pool(emit, x):
            return emit(relax.op.nn.max_pool2d(x, (2, 2), (2, 2)))
        (kernel,) = cuda_source.generate(program(pool, (1, 64, 56, 56))).kernels
        out = 4 * 64 * 28 * 28
        assert any(a.kind == "load" and "pool" in a.tensor for a in kernel.accesses)
        print(kernel.moved == 4 * out + out)
        print(kernel.requested("store") / out)
    """)
    assert printed == "True\n5.0\n"  # the first value, and four comparisons


def test_relay_cannot_be_asked_and_what_cannot_be_compiled_is_a_sentence():
    with pytest.raises(WorkbookError, match=r'generated by today.s TVM.*use_tvm\("relax"\)'):
        cuda_source.generate("mlp")
    printed = relax("""
        from helpers import WorkbookError
        for model in ("lstm", "mlpp", 3):
            try:
                cuda_source.generate(model)
            except WorkbookError as error:
                print(str(error).splitlines()[0][:40])
    """)
    assert [line.split()[0] for line in printed.splitlines()] == ["lstm", "The", "A"]
