"""From Relay to Relax: each proof runs today's TVM in a process of its own."""

import json
from functools import cache

from proofs import Finding, proof

from helpers.tvm_builds import run_with

HEAD = """
import json, re
import tvm
from tvm import relax, tirx
from tvm.relax import transform
from helpers import targets
from helpers.relax_ir import called, program

op, target = relax.op, targets.resolve("teaching")

chain = program(lambda emit, x: op.nn.relu(emit(op.negative(emit(op.exp(x))))), (64,))
"""


@cache
def relax(source: str) -> object:
    """What the source prints as JSON."""
    return json.loads(run_with("relax", HEAD + source))


@proof("15-1", "11fc369c")
def fusion_before_loops() -> Finding:
    kernels = relax("""
passes = [transform.FuseOps(), transform.FuseTIR(), transform.LegalizeOps()]
print(json.dumps(str(tvm.transform.Sequential(passes)(chain)["main"]).count("R.call_tir(")))
""")
    return {
        "A One": kernels == 1,
        "B Three": kernels == 3,
        "C None": not isinstance(kernels, int),
    }


@proof("15-2", "1436b5c8")
def which_builds_fuse() -> Finding:
    counts = relax("""
default = relax.get_default_pipeline(target)
print(json.dumps([len(called(built)) for built in (
    tvm.compile(chain, target),
    relax.build(chain, target, relax_pipeline=default),
    tvm.compile(relax.get_pipeline("zero")(chain), target))]))
""")
    plain, own, zero = (count == 1 for count in counts)
    return {"A `tvm.compile(module": plain, "B `relax.build": own, "C `tvm.compile(relax": zero}


@proof("15-3", "2e4d96ff")
def planned_bytes() -> Finding:
    return relax("""
def five(emit, x):
    for _ in range(4):
        x = emit(op.tanh(x))
    return op.tanh(x)

built = tvm.compile(program(five, (100,)), target)
print(json.dumps(400 * built.as_text().count("call  vm.builtin.alloc_storage")))
""")


@proof("15-4", "e7b1e355")
def rows_of_a_concatenation() -> Finding:
    rows = relax("""
n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
joined = program(lambda emit, x, y: op.concat([x, y], axis=0), (n, 2), (m, 2))
print(json.dumps(str(joined["main"].ret_ty.shape.values[0])))
""")
    return {
        "A Nothing": rows == "?",
        "B That it is n + m": rows == "n + m",
        "C That n and m": rows == "n",
    }


@proof("15-5", "060473e9")
def what_fused_calls_save() -> Finding:
    calls, buffers = relax("""
default = relax.get_default_pipeline(target)
fused = relax.get_pipeline("zero")(chain)
kernel, = (f for f in fused.functions.values() if isinstance(f, tirx.PrimFunc))
calls = len(called(relax.build(chain, target, relax_pipeline=default)))
print(json.dumps([calls, kernel.script().count("T.sblock_alloc_buffer(")]))
""")
    return {
        "A Two of three calls. The": calls == 1 and buffers == 2,
        "B Two of three calls, and": calls == 1 and buffers == 0,
        "C Nothing": calls == 3,
    }
