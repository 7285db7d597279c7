"""What each executor costs."""

from fractions import Fraction
from functools import cache

import numpy as np
from proofs import Finding, proof, works
from small import ALONE, built, chain, loading
from tvm import relay

from helpers import build, cost, counters


def line(fixed, infer):
    return cost.Bill.line(float(fixed), float(infer))


@proof("12-1", "73347a84")
def larger_tensors() -> Finding:
    def instructions(size):
        compiled = build.compile(chain(3, size, relay.nn.relu), "vm", config=ALONE)
        return counters.count(compiled, x=np.ones(size)).instructions

    # The dispatch is the same for any size; microseconds, in kernels of ever longer times.
    same = instructions(16) == instructions(1600)
    vm, graph, found = Fraction(1), Fraction(2, 100), []
    for t_k in (Fraction(1, 50), Fraction(1), Fraction(10)):
        before, after = ((vm + t) / (graph + t) for t in (t_k, 100 * t_k))
        found.append((abs(after - 1) < abs(before - 1), after == before, after > before,
                      after == 100 * before))  # fmt: skip
    nearer, equal, grows, hundred = (all(column) for column in zip(*found, strict=True))
    return {
        "A It comes nearer": same and nearer,
        "B It stays the same": equal,
        "C It grows": grows,
        "D It becomes 100": hundred,
    }


@proof("12-2", "26d1efe0")
def forty_dispatches() -> Finding:
    return float(100 * Fraction(40) * Fraction(3, 2) / 2000)


@proof("12-3", "4547bdb9")
def when_totals_cross() -> Finding:
    quick_start, quick_run = line(1, 0.02), line(3, 0.005)
    worse = line(3, 0.03)  # the larger fixed part and the longer inference
    level_0, level_3 = line(0.5, 0.02), line(2.0, 0.005)  # both for the graph executor
    return {
        "A When one has the smaller fixed part, and": bool(cost.break_even(quick_start, quick_run)),
        "B Always": bool(cost.break_even(quick_start, worse)),
        "C When one has the smaller fixed part and the shorter": bool(
            cost.break_even(worse, quick_start)
        ),
        "D Also for two builds": bool(cost.break_even(level_0, level_3)),
    }


@cache
def traffic():
    """The cheapest way for N requests, by the page's times, and the best numbers of buckets."""
    lengths = np.random.default_rng(12).lognormal(np.log(80), 0.7, 100_000)
    lengths = np.clip(lengths, 20, 512).astype(int)
    static, dynamic = cost.Curve(0, 3e-6, 0.1e-6), cost.Curve(100e-6, 22e-6, 0.2e-6)
    settings = {"build": 1.6, "vm_build": 4.4, "edges": [32, 64, 128, 256, 512], "longest": 512}
    cheapest, buckets = {}, []
    for n in (10, 100, 1000, 10_000, 100_000):
        ways = cost.policies(lengths[:n], static, dynamic, **settings)
        cheapest[n] = min(ways, key=lambda name: ways[name].total)
        buckets.append(len(cost.best_edges(lengths[:n], static, build=1.6)))
    for n in (10**7, 10**9):  # the seconds of a request, and builds that are all there
        cheapest[n] = min(
            ways, key=lambda name: ways[name].build_seconds + n * ways[name].run_seconds / 100_000
        )
    return cheapest, buckets


@proof("12-4", "c2c63bf4")
def any_length() -> Finding:
    cheapest, buckets = traffic()
    return {
        "A For a few requests": cheapest[10] == cheapest[100] == "padded",
        "B For a very large number": cheapest[10**9] == "dynamic",
        "C The VM is the cheapest way": "dynamic" in cheapest.values(),
        "D The more requests": buckets == sorted(buckets) and buckets[0] < buckets[-1],
    }


@proof("12-5", "0b5574a1")
def switching() -> Finding:
    seconds, right = loading()
    (graph_compile, graph_load), (vm_compile, vm_load) = seconds["graph"], seconds["vm"]
    return {
        "A The VM, since a graph must": not right["graph"],
        "B The VM, since bytecode": vm_load < graph_load / 4,
        "C Switching does not decide": all(right.values())
        and graph_load < graph_compile / 10
        and vm_load < vm_compile / 10,
        "D The graph executor, since the VM": not works(lambda: built("mlp", "vm")),
    }


@proof("12-6", "7d9411a2")
def break_even() -> Finding:
    n = (Fraction("2.5") - Fraction("0.9")) / (Fraction("0.012") - Fraction("0.004"))
    assert cost.break_even(line(2.5, 0.004), line(0.9, 0.012)) == n + 1  # cheaper from there on
    return float(n)


@proof("12-7", "5f23fdea")
def printed_formulas() -> Finding:
    def difference(n, init=1.0, load=0.1, t_g=0.005, t_v=0.005, t_d=30e-6):
        """T_vm - T_graph as printed."""
        assert t_g < t_v + t_d
        return (init + load + n * (t_v + t_d)) - (init + n * t_g)

    ns = (0, 1, 10, 1000, 10**6)
    faster_kernels = [difference(n, t_v=0.0049, t_d=101e-6) for n in ns]

    def instructions(kernels):
        compiled = build.compile(chain(kernels), "vm", config=ALONE)
        return counters.count(compiled, x=np.ones(16)).instructions

    (_, graph_load), _ = loading()[0].values()
    per_kernel = {instructions(n + 1) - instructions(n) for n in (1, 2, 3)}
    return {
        "A By them, no number": min(faster_kernels) > 0 and min(map(difference, ns)) > 0,
        "B They charge loading": difference(0, load=0.2) > difference(0) and graph_load > 0,
        "C They take t_d for": len(per_kernel) == 1 and min(per_kernel) > 0,
        "D By them, the VM is cheaper": difference(0) < 0,
    }
