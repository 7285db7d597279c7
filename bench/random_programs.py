"""Are TVM's own passes right? Each is run on random programs, and numpy judges what it returns.

Prints a line for each pass, and the smallest program that breaks it, when there is one.

    .venv/bin/python -m bench.random_programs --examples 2000
    .venv/bin/python -m bench.random_programs FuseOps SimplifyExpr
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import build, programs, use_tvm
from helpers.errors import WorkbookError, exit_with_sentence

ALL = (*programs.OPERATORS, *programs.MORE_OPERATORS)
GRAPH: dict[str, Any] = {"operators": ALL}
NO_WEIGHTS: dict[str, Any] = {
    "operators": tuple(
        name for name in ALL if name not in ("nn.dense", "nn.conv2d", "nn.bias_add")
    ),
}
LETS: dict[str, Any] = {"operators": ALL, "lets": True, "branches": True}
REFERENCES: dict[str, Any] = {**LETS, "references": True}
IMAGES: dict[str, Any] = {
    "shapes": [(1, 2, 2, 2), (1, 4, 3, 3), (1, 8, 3, 3)],
    "operators": (
        *("nn.conv2d", "nn.relu", "add", "multiply", "nn.bias_add", "nn.batch_norm"),
        *("nn.max_pool2d", "concatenate", "transpose", "mean", "nn.softmax", "split"),
    ),
}
MATRICES: dict[str, Any] = {
    "shapes": [(2, 3), (1, 3)],
    "operators": ("nn.dense", "nn.bias_add", "add", "nn.relu", "multiply"),
}
# At level 1 no executor can be built for reshape of a scalar constant, nor for some tuples.
BUILDS: dict[str, Any] = {
    "operators": tuple(name for name in ALL if name != "reshape"),
    "tuples": False,
}

Transform = Callable[[Any], Any]
Wanted = Callable[[Any, Any], str]


def passes() -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """The passes in the order in which they run, and the programs that suit them, by name."""
    from tvm import relay
    from tvm.relay import transform as t

    convolution = relay.dataflow_pattern.is_op("nn.conv2d")(
        relay.dataflow_pattern.wildcard(), relay.dataflow_pattern.wildcard()
    )
    composite = [("block", relay.dataflow_pattern.is_op("nn.relu")(convolution))]
    nhwc = {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]}
    return {
        "InferType": ([], REFERENCES),
        "FoldConstant": ([t.FoldConstant()], GRAPH),
        "FoldConstant (lets)": ([t.FoldConstant()], LETS),
        "SimplifyInference": ([t.SimplifyInference()], GRAPH),
        "SimplifyExpr": ([t.SimplifyExpr()], GRAPH),
        "SimplifyExpr (no weights)": ([t.SimplifyExpr()], NO_WEIGHTS),
        "CanonicalizeOps": ([t.CanonicalizeOps()], GRAPH),
        "CanonicalizeCast": ([t.CanonicalizeCast()], GRAPH),
        "FastMath": ([t.FastMath()], GRAPH),
        "EliminateCommonSubexpr": ([t.EliminateCommonSubexpr()], GRAPH),
        "EliminateCommonSubexpr (lets)": ([t.EliminateCommonSubexpr()], LETS),
        "FuseOps": ([t.SimplifyInference(), t.FuseOps()], GRAPH),
        "FuseOps (lets)": ([t.SimplifyInference(), t.FuseOps()], LETS),
        "DefuseOps": ([t.SimplifyInference(), t.FuseOps(), t.DefuseOps()], GRAPH),
        "DeadCodeElimination": ([t.DeadCodeElimination()], REFERENCES),
        "DeadCodeElimination (inline_once)": ([t.DeadCodeElimination(True)], REFERENCES),
        "DeadCodeElimination (ignore_impurity)": (
            [t.DeadCodeElimination(ignore_impurity=True)],
            LETS,
        ),
        "DeadCodeElimination (ignore_impurity, references)": (
            [t.DeadCodeElimination(ignore_impurity=True)],
            REFERENCES,
        ),
        "ToANormalForm": ([t.ToANormalForm()], GRAPH),
        "ToANormalForm (references)": ([t.ToANormalForm()], REFERENCES),
        "ToGraphNormalForm": ([t.ToGraphNormalForm()], {**LETS, "branches": False}),
        "ToGraphNormalForm (references)": ([t.ToGraphNormalForm()], REFERENCES),
        "ToBasicBlockNormalForm": ([t.ToBasicBlockNormalForm()], LETS),
        "ToANormalForm, ToGraphNormalForm": ([t.ToANormalForm(), t.ToGraphNormalForm()], GRAPH),
        "PartialEvaluate": ([t.PartialEvaluate()], LETS),
        "LambdaLift": ([t.LambdaLift()], LETS),
        "CombineParallelConv2D": ([t.CombineParallelConv2D(2)], IMAGES),
        "CombineParallelDense": ([t.CombineParallelDense(2)], MATRICES),
        "CombineParallelDense (flat)": ([t.CombineParallelDense(2, False)], MATRICES),
        "BackwardFoldScaleAxis": ([t.SimplifyInference(), t.BackwardFoldScaleAxis()], IMAGES),
        "ForwardFoldScaleAxis": ([t.SimplifyInference(), t.ForwardFoldScaleAxis()], IMAGES),
        "ConvertLayout": ([t.ConvertLayout(nhwc)], IMAGES),
        "AlterOpLayout": ([t.SimplifyInference(), t.AlterOpLayout()], IMAGES),
        "Legalize": ([t.Legalize()], GRAPH),
        "SplitArgs": ([t.SplitArgs(2)], GRAPH),
        "FlattenAtrousConv": ([t.FlattenAtrousConv()], IMAGES),
        "DynamicToStatic": ([t.DynamicToStatic()], GRAPH),
        "MergeComposite": ([t.MergeComposite(composite)], IMAGES),
    }


def transform(steps: list[Any]) -> Transform:
    """One function that runs passes at level 4, for the teaching target."""
    import tvm
    from tvm import relay

    from helpers.targets import resolve

    sequence = tvm.transform.Sequential([relay.transform.InferType(), *steps])

    def run(module: Any) -> Any:
        with tvm.transform.PassContext(opt_level=4), resolve("teaching"):
            return sequence(module)

    return run


def builds(executor: str, level: int) -> Wanted:
    """Whether the program, compiled, computes what numpy does."""

    def wanted(before: Any, after: Any) -> str:
        inputs = {}
        for k, variable in enumerate(before["main"].params):
            kind = variable.checked_type
            value = programs.entries(tuple(int(size) for size in kind.shape), 3 * k)
            inputs[variable.name_hint] = value.astype(str(kind.dtype))
        expected = programs.evaluate(before, inputs)
        try:
            found = build.compile(before, executor=executor, opt_level=level).run(**inputs)
        except WorkbookError as error:
            return str(error)
        for right, got in zip(expected, found, strict=True):
            scale = max(1.0, float(np.abs(right).max(initial=0)))
            if got.dtype != right.dtype or not np.allclose(got, right, rtol=0, atol=1e-3 * scale):
                return f"It computes {got.ravel()[:4]} instead of {right.ravel()[:4]}."
        return ""

    return wanted


def main() -> None:
    """Try the passes that are named, or all, and print what was found."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of passes")
    parser.add_argument("--examples", type=int, default=2000, help="programs for each pass")
    parser.add_argument("--builds", type=int, default=0, help="programs for each whole build")
    given = parser.parse_args()
    use_tvm("relay")
    jobs: list[tuple[str, Transform, dict[str, Any]]] = [
        (name, transform(steps), {**options, "examples": given.examples})
        for name, (steps, options) in passes().items()
    ]
    for executor, level in [("graph", n) for n in (0, 1, 2, 3)] + [("vm", 1), ("vm", 3)]:
        options = {**BUILDS, "examples": given.builds, "wanted": builds(executor, level)}
        options.update({"lets": True, "branches": True} if executor == "vm" else {})
        jobs.append((f"build {executor} {level}", lambda module: module, options))
    for name, run, options in jobs:
        wanted = not given.names or any(part.lower() in name.lower() for part in given.names)
        if wanted and options["examples"]:
            started = time.perf_counter()
            found = programs.counterexample(run, **options)
            seconds = time.perf_counter() - started
            verdict = "BROKEN" if found else f"{options['examples']} programs right"
            print(f"{name:<52}{verdict:<24}{seconds:6.0f} s", flush=True)
            if found:
                print(textwrap.indent(str(found), "    "), flush=True)


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
