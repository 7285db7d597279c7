"""The VM: bytecode, jumps, loops, what a dispatch is."""

from functools import cache

import numpy as np
from proofs import Finding, cells, proof, works
from small import ALONE, chain, choice, decoded
from tvm import relay

from helpers import build, counters, zoo


def jumps_back(program):
    """How many if and goto lead to a smaller position, and how many there are."""
    found = []
    for function in program.functions:
        for pc, i in enumerate(function.instructions):
            goals = {"if": ("then", "otherwise"), "goto": ("pc",)}.get(i.op, ())
            found += [getattr(i, goal) <= pc for goal in goals]
    assert found
    return sum(found)


@cache
def over(length, hidden=32):
    """The events of the LSTM over a sequence of this length, and the counters."""
    inputs = zoo.load("lstm", hidden=hidden, sample_length=length).inputs
    stepper = decoded("lstm", hidden=hidden).start(**inputs)
    return list(stepper), stepper.counters


@proof("10-1", "486a225b")
def without_the_goto() -> Finding:
    names = cells("10", "setup", "toy-vm", "toy-run")
    run, with_goto, without = names["run"], names["EITHER_OR"], names["WITHOUT_GOTO"]
    results = {choice: run(without, 10, choice) for choice in (True, False)}

    def both(choice):
        operators = [without[position][0] for position in results[choice][0]]
        return "mul" in operators and "sub" in operators

    return {
        "A Nothing changes": all(results[c] == run(with_goto, 10, c) for c in results),
        "B When the choice is true": both(True),
        "C When the choice is false": both(False),
        "D The program never ends": any(without[p[-1]][0] != "ret" for p, _ in results.values()),
    }


@proof("10-2", "489a6dc7")
def a_loop() -> Finding:
    events, short = over(3)
    _, long = over(10)
    calls = [e for e in events if e.instruction.op == "invoke_closure"]
    after = {events[e.step + 1].pc for e in calls if e.step + 1 < len(events)}
    successors = {}
    for event in events:
        if event.instruction.op == "ret":
            successors.setdefault((event.function, event.pc), set()).add(event.next)
    return {
        "A At the end of a turn": bool(jumps_back(decoded("lstm", hidden=32))),
        "B Each turn is a call": len(calls) == 3 + 1
        and after == {0}
        and max(e.depth for e in events) == 3 + 1,
        "C What `ret` does next": all(len(goals) == 1 for goals in successors.values()),
        "D The values of a waiting turn": long.peak_bytes > short.peak_bytes,
    }


@proof("10-3", "17ad19b8")
def bytes_of_a_turn() -> Finding:
    (_, short), (_, long) = over(5, 64), over(15, 64)
    return (long.peak_bytes - short.peak_bytes) / 10


def of_relu(length, size):
    compiled = build.compile(chain(length, size, relay.nn.relu), "vm", config=ALONE)
    return counters.count(compiled, x=np.ones(size)).instructions


@proof("10-4", "10e7fcea")
def thirty_dispatches() -> Finding:
    kernels, graph, more = 30, 40_000, 1  # microseconds
    added = kernels * more
    return {
        "A Several times": graph + added > 2 * graph,
        "B About 30 microseconds": added == 30 and added < graph / 1000,
        "C About 1 microsecond": of_relu(3, 16) == of_relu(2, 16),
        "D It depends on the size": of_relu(3, 16) != of_relu(3, 4096),
    }


@proof("10-5", "de2e14bd")
def what_the_vm_is() -> Finding:
    program = decoded("early_exit", layers=2)
    paths, called = [], []
    for seed in (0, 1):
        stepper = program.start(**zoo.load("early_exit", layers=2, seed=seed).inputs)
        paths.append(list(stepper))
        called.append(stepper.counters.kernels)
    numbered = [[event.step for event in path] for path in paths]
    programs = [program, decoded("lstm", hidden=32)]
    return {
        "A It reads instructions": all(steps == list(range(len(steps))) for steps in numbered)
        and all("invoke_packed" in {e.instruction.op for e in path} for path in paths),
        "B It runs models in which": called[0] != called[1],
        "C Its jumps go forward and back": any(map(jumps_back, programs)),
        # Whatever runs: it would have to be faster also where it does not run at all.
        "D It is slower": works(lambda: build.compile(choice(), "vm"))
        and works(lambda: build.compile(choice(), "graph")),
    }
