"""The memory planner of lab 09 beside TVM's, on every model of the zoo that can be static.

    .venv/bin/python -m bench.planner [MODEL ...]

Bytes of all pools, and what no plan goes below (the peak of liveness): TVM's plan; the reference
solution of the lab; its two orders alone; and its way to choose a pool with the order in which the
tensors are written. The graphs are those of the lab: level 2, without SimplifyExpr. Exits with 1
when a plan of the reference is larger than TVM's.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from helpers import WorkbookError, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.grading.course import Lab
from helpers.grading.hidden import mutated
from helpers.kernels import ROOT

STATIC: dict[str, dict[str, Any]] = {
    "encoder": {"length": 20},
    "lstm": {"length": 10},
    "early_exit": {"both": True},
}
DYNAMIC = ("greedy_search", "beam_search")
"""Models with a loop, which the graph executor does not run."""

PARTS = ("import ", "from ", "CPU = ", "def graph_of(", "def known(")
BY_SIZE, BACKWARDS = "(-sizes[t], life[t])", "(-life[t][1], -sizes[t])"
PLANNERS: dict[str, dict[str, str]] = {
    "reference": {},
    "by size": {BACKWARDS: BY_SIZE},
    "backwards": {BY_SIZE: BACKWARDS},
    "as written": {BY_SIZE: "life[t]", BACKWARDS: "life[t]"},
}


def lab_names() -> dict[str, Any]:
    """The names of the lab's cells that make graphs, and read lifetimes and plans from them."""
    names: dict[str, Any] = {}
    for _, source in Lab(ROOT, "09_graph_executor").cells:
        if source.startswith(PARTS) and "use_tvm" not in source:
            exec(source, names)
    return names


def planner(changes: dict[str, str]) -> Any:
    """``make_plan`` of the reference solution, with some of its texts replaced."""
    (question,) = (q for q in Lab(ROOT, "09_graph_executor").questions if q.name == "q4")
    names: dict[str, Any] = {}
    exec(mutated(question.right, changes), names)
    return names["make_plan"]


def main() -> int:
    """Plan, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models of the zoo; default: all")
    chosen = parser.parse_args().models or [n for n in zoo.names() if n not in DYNAMIC]
    use_tvm("relay")
    lab = lab_names()
    planners = {name: planner(changes) for name, changes in PLANNERS.items()}
    heads = ["tensors", "peak", "TVM", *planners]
    print(f"{'':<16}{heads[0]:>8}" + "".join(f"{head:>13}" for head in heads[1:]))
    larger = 0
    for name in chosen:
        fact = lab["known"](lab["graph_of"](zoo.load(name, **STATIC.get(name, {})).module))
        taken = []
        for make_plan in planners.values():
            largest: dict[int, int] = {}
            for tensor, pool in make_plan(fact.life, fact.sizes).items():
                largest[pool] = max(largest.get(pool, 0), fact.sizes[tensor])
            taken.append(sum(largest.values()))
        larger += taken[0] > fact.planned
        row = "".join(f"{count:>13,}" for count in (fact.peak, fact.planned, *taken))
        print(f"{name:<16}{len(fact.life):>8}{row}", flush=True)
    print(f"larger than TVM's: {larger} of {len(chosen)}")
    return 1 if larger else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WorkbookError as error:
        exit_with_sentence(error)
