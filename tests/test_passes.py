"""The pass microscope against hand-worked counts and an instrument of the test's own."""

import numpy as np
import pytest

from helpers import passes

pytestmark = pytest.mark.usefixtures("relay")


def weight(*shape):
    from tvm import relay

    return relay.const(np.random.default_rng(0).random(shape, dtype="float32"))


def conv_bn_relu():
    from tvm import relay

    x = relay.var("x", shape=(1, 3, 16, 16))
    conv = relay.nn.conv2d(x, weight(8, 3, 3, 3), channels=8, kernel_size=(3, 3), padding=(1, 1))
    normal = relay.nn.batch_norm(conv, *(weight(8) for _ in range(4)))[0]
    return relay.Function([x], relay.nn.relu(normal))


def test_conv_bn_relu_by_hand():
    names = ["SimplifyInference", "FoldConstant", "BackwardFoldScaleAxis", "FoldConstant"]
    trace = passes.trace(conv_bn_relu(), [*names, "FuseOps"])
    steps = [step for step in trace.steps if step.name != "InferType"]
    assert [step.name for step in steps] == [*names, "FuseOps"]
    assert [steps[0].before.operators, *(s.after.operators for s in steps)] == [3, 13, 4, 6, 3, 3]
    assert all(step.changed for step in steps)
