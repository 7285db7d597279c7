"""Constant folding."""

import numpy as np
from proofs import Finding, proof
from small import function, ones, operators
from tvm import relay

from helpers import build, ir, passes

FOLD = "FoldConstant"


@proof("04-1", "1ec2a339")
def operators_left() -> Finding:
    x = relay.var("x", shape=(4,))
    c, d = ones(4), ones(4)
    return operators(relay.exp(c) + relay.tanh(c * d) * x, FOLD)


@proof("04-2", "3429b9a5")
def when_an_operator_is_folded() -> Finding:
    """For programs of which one operator is looked at: are its arguments constants, is it gone?"""
    x, c = relay.var("x", shape=(4,)), ones(4)
    programs = {
        "sqrt": relay.sqrt(c) + x,
        "tanh": relay.tanh(x),
        "shape_of": relay.reshape(ones(2, 2), relay.shape_of(relay.exp(x))),
        "zeros": relay.zeros((4,), "float32") + x,
        "nn.dropout": relay.nn.dropout(c) + x,
    }
    found = []
    for name, body in programs.items():
        graph = ir.graph(body)
        (node,) = (node for node in graph.nodes if node.op == name)
        constant = all(graph.nodes[k].kind == "constant" for k in node.inputs)
        left = ir.graph(passes.run(body, FOLD)).operators[name]
        found.append((constant, left == 0))
    necessary = all(constant for constant, folded in found if folded)
    sufficient = all(folded for constant, folded in found if constant)
    return {
        "A necessary and sufficient": necessary and sufficient,
        "B necessary, not": necessary and not sufficient,
        "C sufficient, not": sufficient and not necessary,
        "D neither": not necessary and not sufficient,
    }


@proof("04-3", "ffe70cca")
def folded_constants() -> Finding:
    x, row = relay.var("x", shape=(100, 100)), ones(100)
    grows = passes.run(function(x + relay.broadcast_to(row, (100, 100))), FOLD)
    shrinks = function(x + relay.sum(ones(100, 100)))
    kept = passes.counts(grows)
    swept = passes.counts(passes.run(grows, ["ToANormalForm", "DeadCodeElimination"]))
    before, after = passes.counts(shrinks), passes.counts(passes.run(shrinks, FOLD))
    return {
        "A A folded operator": kept.constant_bytes == 4 * 100 * 100,
        "B The constants it was computed from": kept.constants > 1
        or swept.constants < kept.constants,
        "C FoldConstant leaves": kept.operators == 2,
        "D They can take less": after.constant_bytes < before.constant_bytes,
    }


@proof("04-4", "77c7e274")
def brackets() -> Finding:
    s = relay.var("s", shape=())
    up, down = relay.const(1e8), relay.const(-1e8)
    program, value = function((s + up) + down), np.float32(1.5)

    def result(**settings):
        return build.compile(program, **settings).run(s=value)[0]

    folded = passes.run((relay.const(1.5) + up) + down, FOLD)["main"].body.data.numpy()
    as_numpy = (value + np.float32(1e8)) + np.float32(-1e8)
    without = result(disabled_pass=["SimplifyExpr", "SimplifyExprPostAlterOp"])
    assert result() == 1.5
    assert folded == 0
    return {
        "A FoldConstant computes": folded.dtype != np.float32 or folded != as_numpy,
        "B FoldConstant rounds": folded == as_numpy and without == as_numpy,
        "C FoldConstant adds up": operators(program, FOLD) < 2,
        "D The processor": without != folded,
    }


@proof("04-7", "cda64841")
def weights_as_parameters() -> Finding:
    shapes = {"w": (8, 8), "gamma": (8,), "beta": (8,), "mean": (8,), "var": (8,)}

    def layer(parameter):
        x = relay.var("x", shape=(2, 8))
        w, *norm = (parameter(name, shape) for name, shape in shapes.items())
        return function(relay.nn.batch_norm(relay.nn.dense(x, w), *norm)[0])

    bound = layer(lambda name, shape: ones(*shape))
    open_ = layer(lambda name, shape: relay.var(name, shape=shape))
    before, as_constants, as_parameters = (
        operators(open_, "SimplifyInference"),
        operators(bound, "SimplifyInference", FOLD),
        operators(open_, "SimplifyInference", FOLD),  # an error would end the test
    )
    return {
        "A The same as": as_parameters == as_constants,
        "B It folds nothing": as_parameters == before > as_constants,
        "C It folds the operators": as_parameters < before,
        "D It raises an error": as_parameters < 1,
    }
