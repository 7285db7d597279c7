"""Relay as a graph and as a program."""

import numpy as np
import tvm
from proofs import Finding, cells, proof, works
from small import any_rows, argwhere, chain, choice, function, loop
from tvm import relay

from helpers import build, ir, passes, zoo


@proof("01-1", "69d3284a")
def edges() -> Finding:
    x = relay.var("x", shape=(4,))
    a = relay.exp(x)
    return len(ir.graph(a * a + x).edges)


def visits(graph):
    """How often an analysis that remembers nothing comes to a vertex."""
    paths = []
    for node in graph.nodes:  # arguments come before what takes them
        paths.append(1 + sum(paths[k] for k in node.inputs))
    return paths[graph.output]


@proof("01-2", "815ba8a7")
def without_a_table() -> Finding:
    x = relay.var("x", shape=(4,))
    blocks, added = x, relay.const(0.0)
    for _ in range(40):
        blocks = blocks + relay.exp(blocks)
    for k in range(1000):
        added = added + relay.const(float(k))
    many = [relay.var(f"x{k}", shape=(4,)) for k in range(1000)]

    def practically_for_ever(body):
        return visits(ir.graph(body)) > 10**12

    return {
        "A A chain of 300": practically_for_ever(chain(300)),
        "B One concatenation": practically_for_ever(relay.concatenate(many, 0)),
        "C A program of 1,000": practically_for_ever(added),
        "D A network of 40": practically_for_ever(blocks),
    }


@proof("01-3", "21648f23")
def three_ways() -> Finding:
    names = cells(
        "01", "setup", "tflite-file", "real-model", "way-tflite", "way-by-hand", "way-onnx"
    )
    typed = relay.transform.InferType()
    by_hand, with_add, onnx, tflite = (
        typed(tvm.IRModule.from_expr(names[name]))
        for name in ("by_hand", "by_hand_add", "from_onnx", "from_tflite")
    )
    folded = typed(relay.transform.FoldConstant()(tflite))
    image = names["detector"].inputs["input"]
    (last,) = build.compile(tflite).run(input=image)
    (first,) = build.compile(by_hand).run(input=image.transpose(0, 3, 1, 2))
    same = tvm.ir.structural_equal
    return {
        "A The TFLite importer's layer": np.allclose(
            last.transpose(0, 3, 1, 2), first, rtol=1e-5, atol=1e-5
        ),
        "B After FoldConstant": same(folded, by_hand),
        "C The cast and the transpose": {"cast", "transpose"} <= set(ir.graph(tflite).operators)
        and not {"cast", "transpose"} & set(ir.graph(folded).operators),
        "D Whatever comes from ONNX": same(onnx, by_hand) and same(onnx, with_add),
    }


@proof("01-4", "391ba6d8")
def known_shapes() -> Finding:
    programs = [chain(2), any_rows(), argwhere(), choice(), loop()]

    def takes(program, **options):
        return works(lambda: build.compile(program, **options))

    def known(program):
        return not any(relay.ty.is_dynamic(v.expr.checked_type) for v in ir.graph(program).nodes)

    shaped = [program for program in programs if known(program)]
    inputs_too = [
        p
        for p in shaped
        if not any(map(relay.ty.is_dynamic, (v.type_annotation for v in p.params)))
    ]
    refused = [program for program in shaped if not takes(program)]
    return {
        "A It can run": all(map(takes, shaped)),
        "B It can run the program if the shapes": all(map(takes, inputs_too)),
        "C It may still not": bool(refused) and any(map(takes, shaped)),
        "D It can run the program at opt_level 3": any(
            takes(p, opt_level=3) and not takes(p, opt_level=0) for p in shaped
        )
        or all(takes(p, opt_level=3) for p in shaped),
    }


@proof("01-5", "fb386470")
def what_relay_is() -> Finding:
    imported = zoo.load("voice_activity").module  # from an ONNX file
    after = passes.run(imported, "FoldConstant")
    return {
        "A The form of a whole model": isinstance(imported, tvm.IRModule)
        and isinstance(after, tvm.IRModule)
        and works(lambda: build.compile(function(relay.exp(relay.var("x", shape=(4,)))))),
    }
