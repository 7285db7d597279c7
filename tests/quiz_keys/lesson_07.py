"""Passes together."""

from functools import cache

import numpy as np
from proofs import Finding, proof
from small import block, convolutions, function, kernels, nhwc_over_nchw, ones, to_nhwc
from tvm import relay
from tvm.ir import structural_hash

from helpers import build, fusion, layout, passes, zoo

STEPS = ("SimplifyInference", "FoldConstant", "BackwardFoldScaleAxis")


@proof("07-1", "1b6fba5c")
def on_the_graph() -> Finding:
    names = set(passes.trace(zoo.load("mlp")).names)
    assert "DeadCodeElimination" in passes.trace(zoo.load("mlp"), "vm").names
    return {
        "A Operators are grouped": "FuseOps" in names,
        "B Operators on constants": "FoldConstant" in names,
        "C Dead let bindings": "DeadCodeElimination" in names,
        "D An inner loop": any("Unroll" in name for name in names),
    }


@proof("07-2", "d380daa7")
def kernels_of_an_order() -> Finding:
    return kernels(block(), *STEPS)


@proof("07-3", "2d2c957e")
def a_factor_that_depends() -> Finding:
    x, s = (relay.var(name, shape=(1, 256)) for name in "xs")
    program = function(relay.nn.dense(x * s, ones(256, 256)))
    moved = build.compile(program)
    left = build.compile(program, disabled_pass=["ForwardFoldScaleAxis"])
    rng = np.random.default_rng(0)
    data = {name: rng.uniform(size=(1, 256)).astype("float32") for name in "xs"}
    same = np.allclose(moved.run(**data)[0], left.run(**data)[0], rtol=1e-4)
    after, before = fusion.ledger(moved), fusion.ledger(left)
    return {
        "A It is a gain": after.total < before.total,
        "B It costs nothing": after.total == before.total,
        "C The weights are multiplied": after.total > before.total + 1.9 * 4 * 256 * 256 and same,
        "D The result is wrong": not same,
    }


@proof("07-4", "2875ba46")
def where_a_layout_belongs() -> Finding:
    given = convolutions(3)
    before = passes.run(given, [to_nhwc(), "FoldConstant", "FuseOps"])
    after = passes.run(given, ["FuseOps", to_nhwc(), "FoldConstant"])
    (moved_before, moved_after) = (len(layout.transforms(made)) for made in (before, after))
    whole = [g for g in fusion.groups(before) if g.operators == ("nn.conv2d", "add", "nn.relu")]
    faster = min(nhwc_over_nchw(), 1 / nhwc_over_nchw())
    return {
        "A After FuseOps": moved_after < moved_before,
        "B Before FuseOps": moved_before < moved_after and len(whole) == 3,
        "C It does not matter": structural_hash(before) == structural_hash(after),
        "D Nowhere": faster > 0.9,
    }


@proof("07-5", "b07a89e5")
def fewer_kernels_and_slower() -> Finding:
    x, y = {"kernels": 20, "MB": 17, "time": 8}, {"kernels": 84, "MB": 63, "time": 1}
    explained = x["kernels"] > y["kernels"] or x["MB"] > y["MB"]
    return {
        "A X should fuse more": x["kernels"] > y["kernels"],
        "C Some kernels of X": x["time"] > y["time"] and not explained,
    }


def cost(program):
    """Kernels, and the bytes that they move, when FuseOps runs last."""
    ledger = fusion.ledger(fusion.fuse(program))
    return ledger.kernels, ledger.total


@cache
def reached():
    """{hash: program} that the passes make of the block, and {hash: {hash of one step more}}."""
    start = passes.run(block(), [])
    found, after = {structural_hash(start): start}, {}
    waiting = list(found)
    for key in waiting:
        after[key] = set()
        for name in STEPS:
            if name != STEPS[0] and key == waiting[0]:
                continue  # the page's search begins with SimplifyInference
            made = passes.run(found[key], name)
            new = structural_hash(made)
            after[key].add(new)
            if new not in found:
                found[new] = made
                waiting.append(new)
    return found, after


@proof("07-7", "73c466c7")
def a_greedy_search() -> Finding:
    found, after = reached()
    costs = {key: cost(program) for key, program in found.items()}
    best = min(costs, key=costs.__getitem__)
    here = next(iter(found))
    while (nearest := min(after[here], key=costs.__getitem__)) in after and (
        costs[nearest] < costs[here]
    ):
        here = nearest
    known = passes.run(block(), [*STEPS[:1], *STEPS[2:], STEPS[1]])  # S, B, C

    upwards, waiting = {next(iter(found))}, [next(iter(found))]
    for key in waiting:  # by steps that are never worse
        new = {k for k in after[key] - upwards if costs[k] <= costs[key]}
        upwards |= new
        waiting += new
    again = passes.run(block(), [*STEPS[:1], *STEPS[2:], STEPS[1]])
    assert costs[here] > costs[best]
    return {
        "A The best program cannot": costs[best] != cost(known),
        "B Every way to it": best not in upwards,
        "C J cannot tell": costs[here] == costs[best],
        "D The passes give": structural_hash(again) != structural_hash(known),
    }
