"""Static and dynamic graphs."""

import numpy as np
from proofs import Finding, proof, works
from small import ENCODER, MASKED, any_rows, argwhere, built, chain, choice, loop, reference
from tvm import relay

from helpers import build, counters, ir, passes, storage, zoo
from helpers.tvm_builds import run_with

NONE = """
import tvm
from tvm import relay
v = relay.var("v", shape=(None, 4))
relay.vm.compile(tvm.IRModule.from_expr(relay.Function([v], relay.exp(v))), target="llvm")
print("compiled")
"""


def programs():
    """One program of each kind."""
    return {
        "static": chain(2),
        "any rows": any_rows(),
        "argwhere": argwhere(),
        "if": choice(),
        "while": loop(),
    }


def takes(program, executor="graph", **options):
    return works(lambda: build.compile(program, executor, **options))


def shapes_known(program):
    return not any(relay.ty.is_dynamic(v.expr.checked_type) for v in ir.graph(program).nodes)


def inputs_known(program):
    return not any(relay.ty.is_dynamic(p.type_annotation) for p in program.params)


def order_known(program):
    return all("dimension" in reason for reason in ir.is_dynamic(program).reasons)


@proof("11-1", "9b46c427")
def what_has_to_be_known() -> Finding:
    made = programs().values()

    def decides(condition):
        """Whether the graph executor takes exactly the programs for which it holds."""
        return all(condition(program) == takes(program) for program in made)

    return {
        "A That it has no if": decides(order_known),
        "B The shapes of its inputs": decides(inputs_known),
        "C The shapes of all tensors": decides(shapes_known),
        "D Which kernels run": decides(lambda p: order_known(p) and shapes_known(p)),
    }


def crashes(source):
    return not works(lambda: run_with("relay", source))


@proof("11-2", "bd288e68")
def dynamic_and_none() -> Finding:
    made = programs() | {"reference": reference()}
    dynamic = {name: p for name, p in made.items() if ir.is_dynamic(p)}
    assert not any(map(takes, dynamic.values()))
    return {
        "A A program with None": not crashes(NONE),
        "B A program can be dynamic": any(shapes_known(p) for p in dynamic.values()),
        "C A program can have an unknown shape": any(
            inputs_known(p) and not shapes_known(p) for p in made.values()
        ),
        "D Each dynamic program": all(takes(program, "vm") for program in dynamic.values()),
    }


@proof("11-3", "428d47ba")
def built_after_passes() -> Finding:
    constant = choice(relay.less(relay.const(1.0), relay.const(2.0)))
    s, b = relay.var("s", shape=(3, 4)), relay.var("b", shape=(6, 2))
    like_b = relay.Function([s, b], relay.nn.relu(relay.reshape(s, relay.shape_of(b))))
    assert not takes(like_b)
    assert takes(constant, opt_level=2)
    return {
        "A A classifier of images": takes(zoo.load("mlp")),
        "B An LSTM of fixed length": takes(zoo.load("lstm", hidden=32, length=5)),
        "C A model with an if": takes(constant, opt_level=0),
        "D A reshape to the known shape": takes(passes.run(like_b, "DynamicToStatic")),
        "E A beam search": takes(zoo.load("beam_search", length=20)),
    }


@proof("11-4", "a70ae909")
def advantage_of_the_vm() -> Finding:
    only_there = [any_rows(), argwhere(), choice(), loop()]
    model = zoo.load("encoder", **MASKED)
    graph, vm = (built("encoder", kind, **MASKED) for kind in ("graph", "vm"))
    of_any_length = counters.count(built("encoder", "vm", **ENCODER), ids=model.inputs["ids"])
    return {
        "A It runs programs": all(takes(p, "vm") and not takes(p) for p in only_there),
        "B It fuses more": len(vm.kernels) < len(graph.kernels),
        "C It needs less memory": counters.count(vm, **model.inputs).pool_bytes
        < storage.plan(graph).planned_bytes,
        "D It runs dynamic models": of_any_length.shape_functions + of_any_length.size_kernels == 0,
    }


@proof("11-5", "06e9e0c7")
def first_choice() -> Finding:
    dynamic = [any_rows(), argwhere(), choice(), loop()]
    return {
        "A A network for pictures": takes(zoo.load("mlp")),
        "B A classifier that stops": takes(zoo.load("early_exit", layers=2)),
        "C A transformer for texts of any": takes(zoo.load("encoder", **ENCODER)),
        "D Any model": any(map(takes, dynamic)),
    }


@proof("11-7", "48c573d8")
def work_of_padding() -> Finding:
    def macs(length):
        """Multiply-accumulates of the encoder's matrix products, from its types."""
        nodes = ir.graph(zoo.load("encoder", layers=1, hidden=128, length=length)).nodes
        products = [v for v in nodes if v.op in ("nn.dense", "nn.batch_matmul")]
        return sum(np.prod(v.shape) * nodes[v.inputs[0]].shape[-1] for v in products)

    return macs(100) / macs(10)
