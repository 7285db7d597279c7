"""What build.compile and Compiled.run cost beyond TVM's own calls, and what the cache saves.

    .venv/bin/python -m bench.build_overhead [--pairs 5] [--big resnet50]

Ratios are paired and interleaved: each compares two neighbours in time. Their clock is processor
time, the linker's included, so that other programs on the machine disturb less. Both sides of a
compilation end with a first run, since TVM's own module compiles its LLVM code only then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from helpers import build, measure, targets, use_tvm, zoo

CASES: dict[str, dict[str, int]] = {"mlp": {}, "resnet18": {"size": 64}}


def bare(model: zoo.Model) -> Callable[[], list[np.ndarray]]:
    """TVM's own calls: build, load, and a function that runs once."""
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(model.module, targets.resolve(), params=model.params)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))

    def run() -> list[np.ndarray]:
        executor.set_input(**model.inputs)
        executor.run()
        return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]

    return run


def ours(model: zoo.Model) -> Callable[[], list[np.ndarray]]:
    """The same through the workbook, without its cache."""
    compiled = build.compile(model, "graph", cache=False)
    return lambda: compiled.run(**model.inputs)


def cached(model: zoo.Model) -> Callable[[], list[np.ndarray]]:
    """The same with it."""
    compiled = build.compile(model, "graph")
    return lambda: compiled.run(**model.inputs)


def processor_time() -> float:
    """Seconds of processor time of this process and of those it has started and seen end."""
    return sum(os.times()[:4])


def seconds(
    make: Callable[[zoo.Model], Callable[[], Any]],
    model: zoo.Model,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Seconds to a first result."""
    start = clock()
    make(model)()
    return clock() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="compilations on each side")
    parser.add_argument("--big", default="resnet50", help="model to compile cold and cached")
    options = parser.parse_args()
    use_tvm("relay")

    for name, settings in CASES.items():
        model = zoo.load(name, **settings)
        model.module  # noqa: B018 (import it now, for both)
        sides = {"TVM": bare(model), "workbook": ours(model)}
        runs = measure.compare(sides, rounds=31, clock=time.process_time)
        print(f"\n{name}, one run\n{runs}")
        pairs = []
        for i in range(options.pairs):
            order = (bare, ours) if i % 2 else (ours, bare)
            taken = {make: seconds(make, model, processor_time) for make in order}
            pairs.append(taken[ours] / taken[bare])
        print(
            f"{name}, compile and first run, workbook / TVM: {statistics.median(pairs):.3f} "
            f"({min(pairs):.3f} to {max(pairs):.3f}, {options.pairs} pairs)"
        )

    with tempfile.TemporaryDirectory() as folder:
        os.environ["RELAY_WORKBOOK_CACHE"] = folder
        model = zoo.load(options.big)
        model.module  # noqa: B018
        for label in ("cold", "cached"):
            print(f"{options.big}, {label}: {seconds(cached, model):.2f} s to a first result")


if __name__ == "__main__":
    main()
