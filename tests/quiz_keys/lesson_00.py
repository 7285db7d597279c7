"""What a build gives: kernels, bits, two TVMs."""

import importlib.metadata
import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import tvm
from proofs import ROOT, Finding, proof, works
from small import built, chain
from tvm import relay

from helpers import build, counters, debugging, fusion, ir, use_tvm, zoo
from helpers.tvm_builds import run_with

NO_RELAY = """
import importlib.util
from tvm import relax
print(importlib.util.find_spec("tvm.relay") is None)
"""


@proof("00-1", "a86eeec3")
def no_module_relay() -> Finding:
    found = run_with("relax", NO_RELAY).strip()  # in today's TVM, whose Relax was imported
    return {
        "A Today's TVM has no Relay": found == "True",
        "B The installation is damaged": found not in ("True", "False"),
        "C Relay is there": found == "False",
        "D tvm.relay needs a GPU": not works(lambda: build.compile(chain(1)).run(x=np.ones(16))),
    }


@cache
def classifier(executor="graph"):
    return zoo.load("file_type"), built("file_type", executor)


@proof("00-2", "ba5a5160")
def fewer_kernels_than_calls() -> Finding:
    model, compiled = classifier()
    names = compiled.kernels
    assert len(names) < len(ir.graph(model).calls)
    inside = fusion.kernel_operators(compiled)
    kinds = {operator for operators in inside.values() for operator in operators}
    kernels_with = {kind: sum(kind in operators for operators in inside.values()) for kind in kinds}
    (result,) = compiled.run(**model.inputs)
    return {
        "A The compiler left out": not np.allclose(result, model.reference[0], model.rtol, 1e-4),
        "B Several kernels run": counters.count(compiled, **model.inputs).kernels > len(names),
        "C One kernel can compute": any(len(operators) > 1 for operators in inside.values()),
        "D Operators of the same kind": max(kernels_with.values()) == 1,
    }


def negative_weights(attrs, args, types, result):
    return relay.nn.dense(args[0], relay.negative(args[1]), units=attrs.units)


@proof("00-3", "2605b6ff")
def tests_of_a_build() -> Finding:
    model, right = classifier()
    with debugging.planted("nn.dense", "FTVMAlterOpLayout", negative_weights):
        wrong = build.compile(model, cache=False)
    samples = [zoo.load("file_type", seed=seed) for seed in (0, 1, 2)]

    def telling(test):
        """Whether the right build passes a test and the wrong one does not."""
        return all(test(right, m) for m in samples) and not all(test(wrong, m) for m in samples)

    def result(one, sample):
        return one.run(**sample.inputs)[0]

    return {
        "A Equal bits with ONNX": telling(
            lambda one, m: np.array_equal(result(one, m), m.reference[0])
        ),
        "B Equal up to a small": telling(
            lambda one, m: np.allclose(result(one, m), m.reference[0], m.rtol, 1e-4)
        ),
        "C Equal bits with a second": telling(
            lambda one, m: np.array_equal(result(one, m), result(one, m))
        ),
        "D The same most likely": telling(
            lambda one, m: result(one, m).argmax() == m.reference[0].argmax()
        ),
    }


@proof("00-4", "97806eec")
def where_layout_transform_comes_from() -> Finding:
    model, compiled = classifier()
    program, names = ir.graph(model).operators, compiled.kernels
    drawn = ir.alt_text(model)
    added = sum("layout_transform" in name for name in names)
    nodes = json.loads(compiled.library.get_graph_json())["nodes"]
    moved = [
        nodes[source]["name"]
        for node in nodes
        if "layout_transform" in node["name"]
        for source, _, _ in node["inputs"]
    ]
    assert moved
    return {
        "A The drawing leaves out": not ("reshape" in drawn and "transpose" in drawn),
        "B The compiler added it": added > 0 and "layout_transform" not in program,
        "C The executor calls it once": set(moved) <= set(compiled.library.get_params()),
        "D It is another name": added == program["transpose"],
    }


@proof("00-6", "69149c1c")
def a_few_lines_of_relax() -> Finding:
    importlib.metadata.version("apache-tvm")  # it is installed
    lines = "from tvm import relax\nprint(relax.Var)"
    fresh = f"from helpers import use_tvm\nuse_tvm('relax', quiet=True)\n{lines}"
    return {
        "A Restart the kernel": run_alone(fresh),
        "B Call": works(lambda: use_tvm("relax")),
        "C Give the lines": works(lambda: run_with("relax", lines)),
        "D Install the newest": not hasattr(tvm, "relay"),
    }


def run_alone(source):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", source]
    return (
        subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
    )
