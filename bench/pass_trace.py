"""What passes.trace adds to the time that TVM itself needs for its graph passes.

    .venv/bin/python -m bench.pass_trace [MODEL] [--level 3] [--pairs 1]

Each pair runs the pipeline bare and traced, in turn. Then everything that a trace can say is asked
for once: the table, the figure, the text difference of every pass, and one drawing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from helpers import WorkbookError, modules, passes, targets, use_tvm, zoo
from helpers.errors import exit_with_sentence


def bare(module: Any, level: int) -> Any:
    """TVM's own call."""
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=level):
        return relay.optimize(modules.copy(module), targets.resolve())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, which other programs disturb less, and what ``work`` gives."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="resnet50", help="a model of the zoo")
    parser.add_argument("--level", type=int, default=3, help="opt_level")
    parser.add_argument("--pairs", type=int, default=1, help="runs on each side")
    options = parser.parse_args()
    use_tvm("relay")
    module = zoo.load(options.model).module
    without, traced = [], []
    for _ in range(options.pairs):
        without.append(timed(lambda: bare(module, options.level))[0])
        seconds, trace = timed(lambda: passes.trace(module, "build", opt_level=options.level))
        traced.append(seconds)
    print(f"{options.model}, {len(trace.steps)} runs of passes at level {options.level}")
    print(f"{'TVM alone':34}{statistics.median(without):8.2f} s")
    print(f"{'traced':34}{statistics.median(traced):8.2f} s")
    print(f"{'  of that, in the instrument':34}{trace.overhead:8.2f} s")
    changed = [step for step in trace.steps if step.changed and step.name != "InferType"]
    asked: dict[str, Callable[[], Any]] = {
        "which passes changed it, counts": trace.table,
        "figure": trace.figure,
        f"text of {len(changed)} differences": lambda: [step.diff() for step in changed],
        "drawing of FuseOps": lambda: trace.step("FuseOps").draw(),
    }
    total = statistics.median(traced) - statistics.median(without)
    for name, work in asked.items():
        seconds = timed(work)[0]
        total += seconds
        print(f"{name:34}{seconds:8.2f} s")
    print(f"{'added to TVM alone':34}{total:8.2f} s")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
