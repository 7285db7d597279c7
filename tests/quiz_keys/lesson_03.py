"""Operator fusion."""

import numpy as np
from proofs import Finding, proof
from small import ALONE, block, function, kernels, ones
from tvm import relay

from helpers import build, fusion, measure


def convolution(x=None):
    x = relay.var("x", shape=(1, 8, 16, 16)) if x is None else x
    return relay.nn.conv2d(x, ones(8, 8, 3, 3), channels=8, kernel_size=(3, 3), padding=(1, 1))


@proof("03-1", "29a3294f")
def five_operators() -> Finding:
    y = relay.exp(relay.sum(relay.nn.relu(convolution() + ones(1)), axis=1))
    return kernels(function(y))


@proof("03-2", "800ae1e3")
def two_consumers() -> Finding:
    v = relay.exp(relay.var("x", shape=(4,)))
    meeting = fusion.groups(fusion.fuse(function(relay.tanh(v) + relay.sigmoid(v))))
    v_alone = True
    for used_twice in (v, relay.exp(relay.negative(v)), relay.nn.softmax(v)):
        both = function(relay.Tuple([relay.tanh(used_twice), relay.sigmoid(used_twice)]))
        apart = [str(group) for group in fusion.groups(fusion.fuse(both))]
        with_one = [group for group in apart if "tanh" in group or "sigmoid" in group]
        name = used_twice.op.name
        v_alone &= len(with_one) == 2 and not any(name in group for group in with_one)
    return {
        "A v is never": len(meeting) > 1,
        "B v can be": len(meeting) == 1,
        "C If both consumers": v_alone,
        "D FuseOps counts": len(meeting) == 1 and not v_alone,
    }


@proof("03-3", "f4c5b73a")
def through_a_broadcast() -> Finding:
    x, y = relay.var("x", shape=(1, 4096)), relay.var("y", shape=(256, 4096))
    program = function(relay.tanh(relay.tanh(x)) + y)
    one, three = build.compile(program), build.compile(program, config=ALONE)
    data = {name: np.ones(v.shape, "float32") for name, v in one.input_types.items()}
    for compiled in (one, three):
        compiled.run(**data)
    race = measure.compare({"one": one.runtime.run, "three": three.runtime.run}, rounds=5)
    ratio = min(race.times["one"]) / min(race.times["three"])
    assert fusion.ledger(one).total < fusion.ledger(three).total
    return {
        "A It falls in proportion": ratio < 1,
        "B It stays the same": len(one.kernels) == len(three.kernels),
        "C It rises": ratio > 2,
        "D It falls, because": ratio < 1,
    }


@proof("03-4", "47e3ced7")
def what_fusion_takes_away() -> Finding:
    program = function(relay.nn.relu(convolution() + ones(8, 1, 1)))
    fused, alone = (
        build.compile(program, opt_level=2),
        build.compile(program, opt_level=2, config=ALONE),
    )
    before, after = fusion.ledger(alone), fusion.ledger(fused)

    def inside(compiled):
        return sorted(op for ops in fusion.kernel_operators(compiled).values() for op in ops)

    data = {"x": np.random.default_rng(0).standard_normal((1, 8, 16, 16), "float32")}
    results = [one.run(**data)[0] for one in (fused, alone)]
    return {
        "A Multiplications": len(inside(fused)) < len(inside(alone)),
        "B Bytes of intermediate": after.activations < before.activations,
        "C Bytes of the weights": after.weights < before.weights,
        "D Digits": len({result.dtype for result in results}) > 1
        or not np.allclose(*results, rtol=1e-5),
    }


@proof("03-5", "f3fbfd5f")
def convolution_and_norm() -> Finding:
    conv_relu = function(relay.nn.relu(convolution()))
    sizes = []
    for size in (4, 10**6):
        x = relay.var("x", shape=(size,))
        y = x
        for _ in range(100):
            y = relay.exp(y)
        sizes.append(kernels(function(y)))
    small = build.compile(function(relay.tanh(relay.exp(relay.var("x", shape=(64,))))))
    assert len(small.kernels) == 1
    return {
        "A FuseOps by itself": kernels(block()) == 1,
        "B After SimplifyInference": kernels(block(), "SimplifyInference", "FoldConstant") == 1,
        "C An activation stays": kernels(conv_relu) == 2,
        "D FuseOps ends a group": sizes[0] != sizes[1],
        "E What lies between": sum(fusion.intermediate_buffers(small).values()) == 0,
    }


@proof("03-7", "a66a6cba")
def six_inputs() -> Finding:
    total, *others = (relay.var(f"x{k}", shape=(250,)) for k in range(6))
    for x in others:
        total = total + x
    compiled = build.compile(function(total))
    assert len(compiled.kernels) == 1
    return fusion.ledger(compiled).total
