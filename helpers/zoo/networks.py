"""The networks of ``tvm.relay.testing``, written again as ONNX graphs.

TVM has these networks as Relay functions only, without anything to compare their outputs with.
The graphs here follow the same architectures from the operators of ONNX, with the same names for
the weights, so that ONNX Runtime gives a reference in which TVM has no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from helpers.zoo.weights import draw

RESNET_UNITS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}


class _Graph:
    """Collects nodes and weights; every method returns the name of the tensor it computes."""

    def __init__(self, shape: Sequence[int | str], logit_scale: float) -> None:
        self.shape, self.channels, self.logit_scale = tuple(shape), int(shape[1]), logit_scale
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, name: str, shape: tuple[int, ...], kind: str, position: int) -> str:
        self.weights[name] = draw(name, shape, (kind, position))
        return name

    def conv(
        self, x: str, name: str, channels: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> str:
        w = self.weight(name, (channels, self.channels // groups, kernel, kernel), "Conv", 1)
        self.channels = channels
        pads, strides = [kernel // 2] * 4, [stride] * 2
        return self.op("Conv", x, w, strides=strides, pads=pads, group=groups)

    def norm(self, x: str, name: str, epsilon: float) -> str:
        parts = ("gamma", "beta", "moving_mean", "moving_var")
        vectors = [
            self.weight(f"{name}_{part}", (self.channels,), "BatchNormalization", position)
            for position, part in enumerate(parts, start=1)
        ]
        return self.op("BatchNormalization", x, *vectors, epsilon=epsilon)

    def dense(self, x: str, name: str, inputs: int, outputs: int) -> str:
        w = self.weight(f"{name}_weight", (outputs, inputs), "Gemm", 1)
        b = self.weight(f"{name}_bias", (outputs,), "Gemm", 2)
        return self.op("Gemm", x, w, b, transB=1)

    def classifier(self, x: str, name: str, inputs: int, classes: int) -> Any:
        """The last layer and softmax, and the finished ``onnx.ModelProto``."""
        from onnx import TensorProto, helper, numpy_helper

        scores = self.dense(x, name, inputs, classes)
        self.weights[f"{name}_weight"] *= np.float32(self.logit_scale)
        out = self.op("Softmax", scores, axis=1)
        kind = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("data", kind, self.shape)],
            [helper.make_tensor_value_info(out, kind, (self.shape[0], classes))],
            [numpy_helper.from_array(values, n) for n, values in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def mlp(shape: Sequence[int | str], logit_scale: float) -> Any:
    """Layers of 128, 64 and 10 units over a flattened image, as ``relay.testing.mlp``."""
    g = _Graph(shape, logit_scale)
    pixels = int(shape[1]) * int(shape[2]) * int(shape[3])
    x = g.op("Flatten", "data", axis=1)
    x = g.op("Relu", g.dense(x, "fc1", pixels, 128))
    x = g.op("Relu", g.dense(x, "fc2", 128, 64))
    return g.classifier(x, "fc3", 64, 10)


def resnet(shape: Sequence[int | str], logit_scale: float, layers: int) -> Any:
    """ResNet-v2 with basic blocks (He et al., 2016, arXiv:1603.05027), as ``relay.testing.resnet``.

    ``layers`` is 18 or 34; images are taller than 32 pixels.
    """
    epsilon = 2e-5
    g = _Graph(shape, logit_scale)
    x = g.norm("data", "bn_data", epsilon)
    g.weights["bn_data_gamma"] = np.ones(g.channels, np.float32)  # the Relay model has scale=False
    x = g.conv(x, "conv0_weight", 64, 7, stride=2)
    x = g.op("Relu", g.norm(x, "bn0", epsilon))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, units in enumerate(RESNET_UNITS[layers], start=1):
        channels = 32 * 2**stage
        for unit in range(1, units + 1):
            name = f"stage{stage}_unit{unit}"
            stride = 2 if unit == 1 and stage > 1 else 1
            shortcut, before = x, g.channels
            y = g.op("Relu", g.norm(x, f"{name}_bn1", epsilon))
            if unit == 1:
                shortcut = g.conv(y, f"{name}_sc_weight", channels, 1, stride)
                g.channels = before
            y = g.conv(y, f"{name}_conv1_weight", channels, 3, stride)
            y = g.op("Relu", g.norm(y, f"{name}_bn2", epsilon))
            x = g.op("Add", g.conv(y, f"{name}_conv2_weight", channels, 3), shortcut)
    x = g.op("Relu", g.norm(x, "bn1", epsilon))
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    return g.classifier(x, "fc1", g.channels, 1000)


def mobilenet(shape: Sequence[int | str], logit_scale: float) -> Any:
    """MobileNet v1 (Howard et al., 2017, arXiv:1704.04861), as ``relay.testing.mobilenet``."""
    epsilon = 1e-5
    g = _Graph(shape, logit_scale)
    x = g.conv("data", "conv_block_1_conv_weight", 32, 3, stride=2)
    x = g.op("Relu", g.norm(x, "conv_block_1_bn", epsilon))
    widths = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
    for block, width in enumerate(widths, start=1):
        name = f"separable_conv_block_{block}"
        stride = 2 if block in (2, 4, 6, 12) else 1
        x = g.conv(x, f"{name}_weight", g.channels, 3, stride, groups=g.channels)
        x = g.op("Relu", g.norm(x, f"{name}_bn1", epsilon))
        x = g.conv(x, f"{name}_conv2_weight", width, 1)
        x = g.op("Relu", g.norm(x, f"{name}_bn2", epsilon))
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    return g.classifier(x, "fc", g.channels, 1000)
