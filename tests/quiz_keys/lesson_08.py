"""Executors: which there are, what they run, the bill."""

from fractions import Fraction

import numpy as np
import tvm
from proofs import Finding, proof, works
from small import built, choice
from tvm import relay
from tvm.relay.backend import Executor, Runtime

from helpers import build, counters, modules, storage, zoo
from helpers.targets import TEACHING_CPU as CPU


@proof("08-1", "2770072c")
def what_runs_a_program() -> Finding:
    x = relay.var("x", shape=(4,))
    program = modules.typed(relay.Function([x], relay.exp(x)))

    def interpreted():
        made = relay.create_executor("debug", mod=program, device=tvm.cpu(), target=CPU)
        np.testing.assert_allclose(made.evaluate()(np.zeros(4, "float32")).numpy(), 1)

    return {
        "A The graph executor": works(lambda: relay.build(program, CPU, executor="graph")),
        "B The AOT executor": works(lambda: build.compile(program, "aot").run(x=np.ones(4)))
        and works(lambda: Executor("aot")),
        "C The VM": works(lambda: relay.build(program, CPU, executor=Executor("vm"))),
        "D The interpreter": works(interpreted),
    }


@proof("08-2", "8287180d")
def what_lowers_a_term() -> Finding:
    n, infer = 8000, 200  # microseconds
    terms = {"compile": 2_000_000, "startup": 1_000_000, "inference": n * infer}

    def lowered(**changed):
        return any(value < terms[name] for name, value in changed.items())

    loaded = built("mlp").times["load"] < built("mlp").times["compile"]
    return {
        "A The artefact of yesterday": loaded and lowered(compile=0),
        "B Requests are answered in batches, and a batch of 8 takes 4 times": lowered(
            inference=n // 8 * 4 * infer
        ),
        "C Requests are answered in batches, and a batch of 8 takes 8 times": lowered(
            inference=n // 8 * 8 * infer
        ),
        "D The process runs 500 inferences": lowered(startup=terms["startup"] + 500 * infer),
    }


@proof("08-3", "32e88867")
def what_the_plan_saves() -> Finding:
    model = zoo.load("voice_activity")
    graph, vm = (
        counters.count(built("voice_activity", kind), **model.inputs) for kind in ("graph", "vm")
    )
    plan = storage.plan(built("voice_activity"))
    return {
        "A Allocations": graph.allocations < vm.allocations,
        "B Bytes of the memory for intermediate": plan.planned_bytes < plan.total_bytes,
        "C Bytes that the kernels": graph.moved_bytes < vm.moved_bytes,
        "D Kernels that are called": graph.kernels < vm.kernels,
    }


@proof("08-4", "6eece838")
def thirty_kernels_of_a_millisecond() -> Finding:
    ratio = 1 + Fraction(30, 30_000)
    assert built("mlp", "vm").sizes["library"] > 0  # kernels, compiled before any run
    return {
        "A About 30 times": ratio > 20,
        "B About 1.03 times": abs(ratio - Fraction(103, 100)) < Fraction(1, 1000),
        "C 0.1 % more": ratio == Fraction(1001, 1000),
        "D Less": ratio < 1,
    }


@proof("08-6", "39dabd96")
def half_of_the_total() -> Finding:
    return float((3 + 1) / Fraction(5, 10_000))


@proof("08-7", "50d3f23f")
def the_aot_build() -> Finding:
    x, w = relay.var("x", shape=(2, 8)), relay.const(np.ones((4, 8), "float32"))
    program = modules.typed(relay.Function([x], relay.nn.softmax(relay.nn.dense(x, w))))
    packed = Executor("aot", {"interface-api": "packed"})
    aot = relay.build(program, CPU, executor=packed, runtime=Runtime("cpp"))
    (lowered,) = aot.lowered_ir_mods.values()
    calls = str(lowered["__tvm_main__"]).count("call_cpacked(")
    graph_build = relay.build(program, CPU)
    model = zoo.load("mlp")
    results = [built("mlp", kind).run(**model.inputs) for kind in ("graph", "aot")]
    return {
        "A Its weights lie in the library": not aot.get_params() and bool(graph_build.get_params()),
        "B An entry function": calls == len(build.compile(program).kernels),
        "C It runs models with an If": works(lambda: build.compile(choice(), "aot")),
        "D Its kernels are other ones": not all(map(np.array_equal, *results)),
    }
