"""Seeded random weights for ONNX models whose own weights say nothing.

The models in the onnx package have every weight of a layer set to one constant, so every class
gets the same score whatever the input: comparing such outputs would prove nothing.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

Use = tuple[str, int]
"""How a tensor is used: operator type and argument position."""


def draw(name: str, shape: tuple[int, ...], use: Use) -> np.ndarray:
    """Random float32 values for the weight ``name``, the same on every call.

    Weights of convolutions and matrix products (stored with outputs first) get He's standard
    deviation ``sqrt(2 / fan_in)`` (He et al., 2015, arXiv:1502.01852), which keeps the size of
    activations through ReLU layers. The four vectors of a batch normalization (scale, offset,
    mean, variance) and scales of channels stay near 1 or 0, yet differ from them, so that folding
    them away is real work. The rest, biases, is small.
    """
    rng = np.random.default_rng([0, zlib.crc32(name.encode())])
    noise = rng.standard_normal(shape, dtype=np.float32)
    operator, position = use
    if operator in ("Conv", "Gemm", "MatMul") and position == 1:
        fan_in = shape[-1] if operator != "Conv" else int(np.prod(shape[1:]))
        return noise * np.float32(np.sqrt(2.0 / fan_in))
    if operator == "BatchNormalization" and position == 4:
        return np.float32(1.0) + np.float32(0.1) * np.abs(noise)
    near_one = operator == "Mul" or use == ("BatchNormalization", 1)
    return np.float32(1.0 if near_one else 0.0) + np.float32(0.1) * noise


def randomised(path: Path, logit_scale: float) -> Any:
    """The ONNX model at ``path`` with every float weight drawn anew, as an ``onnx.ModelProto``.

    Its one input is renamed ``data``, as in Relay's own models.

    ``logit_scale`` is a factor on the weights of the last convolution or matrix product. It keeps
    the scores that enter the final softmax a few units apart; without it the residual models give
    one class everything, and the others a zero that hides errors.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(path)
    graph = model.graph
    tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    shapes = {name: t.shape for name, t in tensors.items() if t.dtype == np.float32}
    nodes = []
    for node in graph.node:
        source, output = node.input[0], node.output[0]
        if node.op_type == "ConstantOfShape":
            shapes[output] = tuple(int(n) for n in tensors[source])
        elif node.op_type == "Unsqueeze" and source in shapes:
            # A weight drawn in its final shape: TVM's importer is slow on operators of constants.
            axes = helper.get_attribute_value(node.attribute[0])
            shapes[output] = np.expand_dims(np.empty(shapes[source]), axes).shape
        elif node.op_type == "Reshape" and source in shapes:
            shapes[output] = tuple(int(n) for n in tensors[node.input[1]])
        else:
            nodes.append(node)
    uses = {
        name: (node.op_type, position)
        for node in reversed(nodes)
        for position, name in enumerate(node.input)
    }
    last = [node for node in nodes if node.op_type in ("Conv", "Gemm")][-1]
    values = {}
    for name in uses.keys() & (shapes.keys() | tensors.keys()):
        values[name] = draw(name, shapes[name], uses[name]) if name in shapes else tensors[name]
    values[last.input[1]] = values[last.input[1]] * np.float32(logit_scale)
    filled = [numpy_helper.from_array(values[name], name) for name in sorted(values)]
    (data,) = (i for i in graph.input if i.name in uses and i.name not in values)
    for node in nodes:
        node.input[:] = ["data" if name == data.name else name for name in node.input]
    data.name = "data"
    for field, new in ((graph.node, nodes), (graph.initializer, filled), (graph.input, [data])):
        kept = [type(item).FromString(item.SerializeToString()) for item in new]
        del field[:]
        field.extend(kept)
    return model
