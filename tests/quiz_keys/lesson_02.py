"""Passes, contexts, levels."""

import numpy as np
import tvm
from proofs import Finding, proof
from small import block, function, operators
from tvm import relay
from tvm.ir.instrument import pass_instrument
from tvm.relay import transform

from helpers import build, ir, modules, passes, zoo

PassContext, Sequential = tvm.transform.PassContext, tvm.transform.Sequential


def twice():
    """exp(a) + exp(a), the two not shared."""
    a = relay.var("a", shape=(4,))
    return tvm.IRModule.from_expr(function(relay.exp(a) + relay.exp(a)))


def logging():
    """An instrument, and the list of what it sees."""
    seen = []

    @pass_instrument
    class Log:
        def run_before_pass(self, module, info):
            seen.append((info.name, module))

    return Log(), seen


@proof("02-1", "991eaa84")
def graph_passes() -> Finding:
    names = passes.trace(zoo.load("mlp")).names

    def one_of(*words):
        return any(word in name for name in names for word in words)

    return {
        "A Joining operators": one_of("FuseOps"),
        "B Compiling a kernel": one_of("CodeGen", "LLVM", "PTX", "CUDA"),
        "C Giving each tensor": one_of("PlanMemory", "MemoryPlan", "StaticPlan"),
        "D Replacing 32-bit": one_of("Quantize"),
    }


@proof("02-2", "93485df6")
def a_context() -> Finding:
    cse, name = transform.EliminateCommonSubexpr(), "EliminateCommonSubexpr"
    counts = []
    for level in (2, 3):
        with PassContext(opt_level=level):
            counts.append(len(ir.graph(Sequential([cse])(twice())).calls))
    log, seen = logging()
    context = PassContext(opt_level=3, instruments=[log])

    def fields():
        names = ("opt_level", "required_pass", "disabled_pass", "config")
        return [str(getattr(context, name)) for name in names]

    before = fields()
    with context:
        Sequential([cse])(twice())
    with PassContext(opt_level=3, disabled_pass=[name]):
        direct = len(ir.graph(cse(twice())).calls)
    return {
        "A It says up to": counts[0] > counts[1],
        "B After the passes": fields() != before,
        "C It hands the module": name in dict(seen)
        and all(isinstance(module, tvm.IRModule) for _, module in seen),
        "D It measures": any("time" in key or "second" in key for key in dir(context)),
        "E Its disabled_pass": direct == 3,
    }


@proof("02-3", "73d91e5e")
def passes_seen() -> Finding:
    log, seen = logging()
    with PassContext(instruments=[log]):
        Sequential([transform.FoldConstant(), transform.EliminateCommonSubexpr()])(twice())
    return len(seen)


@proof("02-4", "481f0404")
def equal_results() -> Finding:
    x = relay.var("x", shape=(4,))
    program = modules.typed(function(relay.exp(relay.cast(relay.cast(x, "float32"), "float32"))))
    given = ir.graph(program).operators["cast"]
    outcomes = {}
    for name, work in (("does nothing", []), ("removes them", ["SimplifyExpr"])):
        after = passes.run(program, work)
        (result,) = build.compile(after).run(x=np.arange(4))
        outcomes[name] = result.tobytes(), ir.graph(after).operators["cast"]
    results, left = zip(*outcomes.values(), strict=True)
    equal = len(set(results)) == 1
    return {
        "A The pass is right": equal and all(count == 0 for count in left),
        "B The model has no such cast": given == 0,
        "C The pass did no harm": equal and len(set(left)) > 1,
        "D TVM's own passes": given == 0,
    }


@proof("02-7", "2f0e1d9f")
def levels() -> Finding:
    at_0, given = passes.trace(block(), opt_level=0), len(ir.graph(block()).calls)
    at_4 = passes.trace(twice(), opt_level=4).names
    built = {level: len(build.compile(block(), opt_level=level).kernels) for level in (2, 3)}
    return {
        "A At level 0": operators(at_0.end) == given,
        "B A higher level": built[3] > built[2],
        "C At level 4": "ToANormalForm" in at_4,
        "D Some passes": any(step.level > 0 for step in at_0.steps),
    }
