"""Layouts."""

import re
from math import prod

from proofs import Finding, proof
from small import convolution, convolutions, nhwc_over_nchw, to_nhwc

from helpers import build, fusion, ir, layout, passes

WIDE = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"


def convolved(module):
    """The attributes of a program's convolutions, as text."""
    found = [node for node in ir.graph(module).calls if "conv2d" in node.op]
    return {
        f"{node.op} {node.attrs['data_layout']} {node.attrs['kernel_layout']}" for node in found
    }


@proof("06-1", "23bbb330")
def two_passes() -> Finding:
    given = convolutions(3)
    changed = {
        "convert": passes.run(given, to_nhwc()),
        "alter": passes.run(given, "AlterOpLayout"),
        "alter, wide": passes.run(given, "AlterOpLayout", target=WIDE),
    }
    layouts = {name: convolved(module) for name, module in changed.items()}
    (before,) = convolved(given)
    built = passes.trace(given).names
    return {
        "A ConvertLayout leaves": before in layouts["convert"],
        "B Both insert": all(before not in found for found in layouts.values())
        and all(layout.transforms(module) for module in changed.values()),
        "C AlterOpLayout gets": layouts["alter"] != layouts["alter, wide"]
        and all(" NHWC " in text for text in layouts["convert"]),
        "D relay.build runs both": {"ConvertLayout", "AlterOpLayout"} <= set(built),
    }


@proof("06-2", "82c99773")
def transforms_left() -> Finding:
    return len(layout.transforms(passes.run(convolutions(6, 3), [to_nhwc(), "FoldConstant"])))


@proof("06-3", "b6579793")
def layout_before_fusion() -> Finding:
    converted = passes.run(convolutions(3), [to_nhwc(), "FoldConstant"])
    fused = passes.run(converted, "FuseOps")
    moved, groups = layout.transforms(fused), fusion.groups(fused)
    with_conv = [group.operators for group in groups if "nn.conv2d" in group.operators]
    assert len(with_conv) == 3
    return {
        "A The transforms lie between": all(len(operators) == 1 for operators in with_conv),
        "B FoldConstant no longer": any(
            transform.constant for transform in layout.transforms(converted)
        ),
        "C Each convolution keeps": all(
            operators == ("nn.conv2d", "add", "nn.relu") for operators in with_conv
        )
        and [transform.alone for transform in moved] == [True, True],
        "D The transforms are fused": bool(moved)
        and not any(transform.alone for transform in moved),
    }


@proof("06-4", "d442d0f8")
def what_a_layout_is_for() -> Finding:
    given = convolutions(2)
    changed = passes.run(given, [to_nhwc(), "FoldConstant"])

    def products(program):
        """Multiplications of the convolutions: outputs times the products in each of them."""
        nodes = ir.graph(program).nodes
        found = [node for node in nodes if node.op == "nn.conv2d"]
        return sum(prod(v.shape) * prod(nodes[v.inputs[1]].shape) // 16 for v in found)

    def stored(program):
        nodes = ir.graph(program).nodes
        return sum(prod(node.shape) for node in nodes if node.op == "nn.conv2d")

    return {
        "A To need fewer": products(changed) < products(given),
        "B To store the data": stored(changed) < stored(given),
        "C Because NHWC is faster": nhwc_over_nchw() < 1,
    }


@proof("06-5", "63a2176b")
def an_offset() -> Finding:
    index = {"N": 0, "C": 2, "H": 1, "W": 3}
    return layout.offset(index, {"N": 1, "C": 3, "H": 4, "W": 5}, "NHWC")


@proof("06-8", "f5c77e7b")
def sixty_channels() -> Finding:
    built = {n: build.compile(convolution("NHWC", n, 28, 1), opt_level=2) for n in (60, 64)}
    texts = {n: str(fusion.kernel_tir(one)[one.kernels[0]]) for n, one in built.items()}
    sums = {n: re.findall(r'conv2d_nhwc = T.allocate\(\[1\], "(\w+)"', t) for n, t in texts.items()}
    padded = {n: re.findall(r"pad_temp = T.allocate\(\[(\d+)\]", t) for n, t in texts.items()}
    assert all(padded.values())
    return {
        "A It needs more": 60 * 60 > 64 * 64,
        "B Its copy": int(padded[60][0]) > int(padded[64][0]),
        "C Its relu": len(built[60].kernels) > 1,
        "D It adds up": sums == {60: ["float32"], 64: ["float32x64"]},
    }
