"""What is counted in small Relax programs, against answers worked out by hand."""

import textwrap

import pytest

from helpers.tvm_builds import run_with

pytestmark = pytest.mark.usefixtures("relay")

HEAD = """
from helpers import relax_ir as ir, targets
import tvm
from tvm import relax
from tvm.relax import transform

op, target = relax.op, targets.resolve()
L, A = transform.LegalizeOps(), transform.AnnotateTIROpPattern()
F, T = transform.FuseOps(), transform.FuseTIR()
three = ir.program(lambda emit, x: op.nn.relu(emit(op.negative(emit(op.exp(x))))), (8, 4))
"""


def relax(source: str) -> list[str]:
    """The lines that this source prints in a process that has chosen Relax."""
    return run_with("relax", HEAD + textwrap.dedent(source)).splitlines()


def test_operators_and_kernels_of_a_chain():
    assert relax("""
        print(ir.operators(three), ir.kernels(three))
        print(ir.operators(ir.after(three, L)), ir.kernels(ir.after(three, L)))
        print(ir.kernels(ir.after(three, L, A, F, T)))
        print(len(ir.kernels(ir.after(three, L, A, F, T, config={"relax.FuseOps.max_depth": 2}))))
        print(ir.program(lambda emit, x: op.exp(x), (2,), dtype="float16")["main"].ret_ty.dtype)
    """) == [
        "3 []",
        "0 ['tir_exp', 'tir_negative', 'relu']",
        "['fused_tir_exp_tir_negative_relu']",
        "2",
        "float16",
    ]


def test_what_an_executable_calls_and_allocates():
    """Two storages take turns for the first two tensors, and the result has its own."""
    assert relax("""
        plain = tvm.compile(three, target)
        print(ir.called(plain), ir.storages(plain), ir.bytecode(plain).splitlines()[-1].split()[0])
    """) == ["['tir_exp', 'tir_negative', 'relu'] 3 ret"]


def test_loops_of_a_fused_kernel():
    """The first two of three operators have a buffer of 8 * 4 floats each."""
    assert relax("print(ir.loops(ir.after(three, L, A, F, T)))") == [f"({2 * 8 * 4 * 4}, 0, 0)"]


def test_which_passes_run():
    lines = relax("""
        high, low = (ir.passes_run(three, target, level) for level in (3, 0))
        print({"FuseOps", "FoldConstant", "StaticPlanBlockMemory"} <= low <= high)
        print(high & {"sequential", "_pipeline"}, any("tirx" in name for name in high))
    """)
    assert lines == ["True", "set() False"]
