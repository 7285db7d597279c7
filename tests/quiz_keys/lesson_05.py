"""Dead code elimination."""

import numpy as np
import tvm
from proofs import Finding, proof
from small import ones, operators, parsed
from tvm import relay

from helpers import build, ir, modules, passes
from helpers.targets import TEACHING_CPU as CPU

DCE = "DeadCodeElimination"
SCALAR = "%x: Tensor[(), float32]"


def lets(module, *before):
    return passes.counts(passes.run(module, list(before))).lets


def interpreted(module):
    made = relay.create_executor("debug", mod=module, device=tvm.cpu(), target=CPU)
    return float(made.evaluate()(np.float32(1.0)).numpy())


@proof("05-1", "a4542b23")
def what_may_be_deleted() -> Finding:
    written = parsed("let %r = ref(%x); let %u = ref_write(%r, 5f); ref_read(%r)", SCALAR)
    reckless = relay.transform.DeadCodeElimination(ignore_impurity=True)
    meaning = interpreted(written)
    pure = parsed("let %u = tanh(%x); exp(%x)", SCALAR)
    costly = parsed("let %u = exp(%x); tanh(%u)")
    constant = parsed("let %u = exp(2f); %u + %x", SCALAR)
    return {
        "A No output": interpreted(passes.run(written, reckless)) == meaning,
        "B The value of e": lets(pure, DCE) == 0
        and lets(written, DCE) == 2
        and interpreted(passes.run(written, DCE)) == meaning,
        "C e is expensive": lets(costly, DCE) == 0,
        "D e depends on constants": lets(constant, DCE) == 0,
    }


@proof("05-2", "bc8eeb2c")
def kernels_of_a_dead_let() -> Finding:
    body = "let %a = exp(%x); let %b = tanh(%a); let %c = sqrt(%a); nn.relu(%b)"
    return len(build.compile(parsed(body), opt_level=3).kernels)


@proof("05-3", "63ab7ac7")
def common_subexpressions() -> Finding:
    x, y = (relay.var(name, shape=(4,)) for name in "xy")

    def fewer(body):
        return operators(body, "EliminateCommonSubexpr") < operators(body)

    return {
        "A (x * y) + (x * y)": fewer((x * y) + (x * y)),
        "B (x * y) + (y * x)": fewer((x * y) + (y * x)),
        "C exp(x * 2)": fewer(relay.exp(x * relay.const(2.0)) + relay.tanh(x * relay.const(2.0))),
        "D nn.dropout(x) twice": fewer(relay.nn.dropout(x) + relay.nn.dropout(x)),
    }


@proof("05-4", "2d2a8885")
def left_after_folding() -> Finding:
    x = relay.var("x", shape=(4, 4))
    layer = relay.nn.dense(x, relay.transpose(ones(4, 4))) + relay.sqrt(ones(4))
    folded = passes.run(layer, ["ToANormalForm", "FoldConstant"])
    branch = parsed(
        "let %c = tanh(%x); let %t = less(1f, 2f); if (%t) { exp(%x) } else { nn.relu(%c) }"
    )
    taken = passes.run(branch, "FoldConstant")
    assert operators(layer, "FoldConstant") == 2
    constants = passes.counts(folded).constants
    return {
        "A The lets of the constants": lets(folded, DCE) < lets(folded),
        "B The lets that only a branch": lets(taken, DCE) < lets(taken),
        "C The weights": passes.counts(passes.run(folded, DCE)).constants < constants,
        "D Nothing, ever": lets(taken, DCE) == lets(taken) and lets(folded, DCE) == lets(folded),
    }


@proof("05-7", "e7754b40")
def what_is_kept() -> Finding:
    def kept(value):
        body = f"let %r = ref(0f); let %u = {value}; (%x, ref_read(%r))"
        module = parsed(body, SCALAR)
        assert lets(module) == 2
        return lets(module, DCE) == 2

    return {
        "A exp(%x)": kept("exp(%x)"),
        "B nn.dropout(%x)": kept("nn.dropout(%x)"),
        "C (%x, ref_write(%r, 5f))": kept("(%x, ref_write(%r, 5f))"),
        "D ref_read(%r)": kept("ref_read(%r)"),
        "E fn ()": kept("fn () { ref_write(%r, 5f) }"),
    }


@proof("05-8", "47823c5c")
def dead_vertices() -> Finding:
    x, w = (relay.var(name, shape=(4,)) for name in "xw")
    a, b = relay.exp(x), x + w
    everything = ir.graph(relay.Tuple([relay.tanh(a), a * b, relay.exp(b)]))  # c, d and e
    wanted = ir.graph(modules.typed(relay.Function([x, w], relay.exp(b))))
    return (len(everything.nodes) - 1) - len(wanted.nodes)  # less the tuple
