"""Small Relay programs and builds that several proofs use. Imported when TVM is chosen."""

from __future__ import annotations

import tempfile
from functools import cache, reduce
from typing import Any

import numpy as np
from tvm import relay

from helpers import build, bytecode, fusion, measure, modules, passes, zoo

ALONE = {"relay.FuseOps.max_depth": 1}
"""Each operator is a kernel of its own."""

ENCODER = {"layers": 1, "hidden": 128}
MASKED = {**ENCODER, "length": 64, "masked": True}
"""A transformer encoder of any length, and one for up to 64 tokens."""


def function(body: Any) -> Any:
    """A function of the variables that occur in an expression."""
    return relay.Function(relay.analysis.free_vars(body), body)


def operators(x: Any, *before: Any) -> int:
    """How many operators are left after some passes."""
    return passes.counts(passes.run(x, list(before))).operators


def kernels(x: Any, *before: Any) -> int:
    """How many kernels FuseOps makes, after some passes."""
    return len(fusion.groups(passes.run(x, [*before, "FuseOps"])))


def ones(*shape: int) -> Any:
    """A constant."""
    return relay.const(np.ones(shape, "float32"))


def block() -> Any:
    """Convolution, batch normalisation and ReLU, all parameters constants."""
    x = relay.var("x", shape=(1, 32, 14, 14))
    y = relay.nn.conv2d(x, ones(32, 32, 3, 3), padding=(1, 1), channels=32, kernel_size=(3, 3))
    return function(relay.nn.relu(relay.nn.batch_norm(y, *(ones(32) for _ in range(4)))[0]))


def chain(length: int, size: int = 16, operator: Any = None) -> Any:
    """``length`` operators on ``size`` numbers, one after the other."""
    x = relay.var("x", shape=(size,))
    return relay.Function([x], reduce(lambda y, _: (operator or relay.exp)(y), range(length), x))


def choice(condition: Any = None) -> Any:
    """An If of exp and tanh; the condition depends on the input, or is given."""
    x = relay.var("x", shape=(4,))
    condition = relay.sum(x) < relay.const(0.0) if condition is None else condition
    return relay.Function([x], relay.If(condition, relay.exp(x), relay.tanh(x)))


def any_rows() -> Any:
    """exp of an input with an unknown number of rows."""
    x = relay.var("x", shape=(relay.Any(), 4))
    return relay.Function([x], relay.exp(x))


def argwhere() -> Any:
    """A result of unknown shape, from an input of known shape."""
    x = relay.var("x", shape=(3, 4))
    return relay.Function([x], relay.argwhere(x))


def loop() -> Any:
    """exp, n times, for an input n; all shapes are known."""
    n, x = relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(4,))
    i = relay.var("i", shape=(), dtype="int32")
    one = relay.const(1, "int32")
    turns = relay.loops.while_loop(
        lambda i, _: i < n, [i, relay.var("y", shape=(4,))], lambda i, y: [i + one, relay.exp(y)]
    )
    return relay.Function([n, x], relay.TupleGetItem(turns(relay.const(0, "int32"), x), 1))


def reference() -> Any:
    """A value is put into a reference and read back."""
    x, r = relay.var("x", shape=(4,)), relay.var("r")
    return relay.Function([x], relay.Let(r, relay.RefCreate(x), relay.RefRead(r)))


def parsed(body: str, parameters: str = "%x: Tensor[(1000), float32]") -> Any:
    """A module with this body; lets keep their operators apart and in their order."""
    return modules.typed(relay.parse(f'#[version = "0.0.5"] def @main({parameters}) {{ {body} }}'))


@cache
def built(name: str, executor: str = "graph", **options: Any) -> Any:
    """A zoo model compiled once for all proofs."""
    return build.compile(zoo.load(name, **options), executor)


@cache
def decoded(name: str, **options: Any) -> Any:
    """The bytecode of a zoo model."""
    return bytecode.decode(built(name, "vm", **options))


@cache
def loading():
    """Seconds to compile and to load a static model, and whether what was loaded runs right."""
    model, seconds, right = zoo.load("voice_activity"), {}, {}
    for kind in ("graph", "vm"):
        one = built("voice_activity", kind)
        with tempfile.TemporaryDirectory() as folder:
            one.save(f"{folder}/model")
            loaded = [build.load(f"{folder}/model") for _ in range(7)]
        seconds[kind] = one.times["compile"], min(each.times["load"] for each in loaded)
        wanted = one.run(**model.inputs)
        results = [each.run(**model.inputs) for each in loaded]
        right[kind] = all(all(map(np.array_equal, result, wanted)) for result in results)
    return seconds, right


def convolution(layout: str, channels: int, pixels: int, window: int) -> Any:
    """A convolution and a ReLU, with data in this layout."""
    order = {"NCHW": "OIHW", "NHWC": "HWIO"}[layout]
    sizes = {"N": 1, "C": channels, "H": pixels, "W": pixels}
    weight = {"O": channels, "I": channels, "H": window, "W": window}
    y = relay.nn.conv2d(
        relay.var("x", shape=[sizes[axis] for axis in layout]),
        ones(*(weight[axis] for axis in order)),
        padding=(window // 2, window // 2),
        channels=channels,
        kernel_size=(window, window),
        data_layout=layout,
        kernel_layout=order,
    )
    return function(relay.nn.relu(y))


@cache
def nhwc_over_nchw() -> float:
    """Time of a 3x3 convolution of 32 channels in NHWC over its time in NCHW."""
    layouts = {
        name: build.compile(convolution(name, 32, 28, 3), opt_level=2) for name in ("NCHW", "NHWC")
    }
    for one in layouts.values():
        one.run(x=np.ones(one.input_types["x"].shape))
    race = measure.compare({name: one.runtime.run for name, one in layouts.items()}, rounds=5)
    return min(race.times["NHWC"]) / min(race.times["NCHW"])


def convolutions(number: int, softmax_after: int = 0) -> Any:
    """Convolution of 16 channels, add and ReLU, several times in NCHW; a softmax somewhere."""
    y = relay.var("x", shape=(1, 16, 14, 14))
    for n in range(1, number + 1):
        y = relay.nn.conv2d(y, ones(16, 16, 3, 3), padding=(1, 1), channels=16, kernel_size=(3, 3))
        y = relay.nn.relu(y + ones(1, 16, 1, 1))
        y = relay.nn.softmax(y, axis=1) if n == softmax_after else y
    return function(y)


def to_nhwc() -> Any:
    """ConvertLayout to NHWC."""
    return relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
