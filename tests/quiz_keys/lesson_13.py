"""Choosing an executor."""

import time
from functools import cache

import numpy as np
from proofs import Finding, proof, works
from small import ENCODER, MASKED, built, loading, loop

from helpers import build, cost, counters, measure, storage, zoo


def smallest(times, lack, weight):
    """The name with the smallest weight T + (1 - weight) F, T as it is given."""
    return min(times, key=lambda name: weight * times[name] + (1 - weight) * lack[name])


@proof("13-1", "f53f00d7")
def seconds_and_shares() -> Finding:
    lack = {"graph": 1, "vm": 0}
    chosen = {
        unit: smallest({"graph": 2 * unit, "vm": 3 * unit}, lack, 0.9) for unit in (1e-3, 1, 1e3)
    }
    border = 1 / (1 + 0.001)
    assert chosen[1e-3] == "vm"
    return {
        "A That it is the better choice": len(set(chosen.values())) == 1,
        "B Almost nothing": border > 0.99 and len(set(chosen.values())) > 1,
    }


@proof("13-2", "5837d624")
def buckets_that_no_weight_chooses() -> Finding:
    times, lack = {"graph": 1.0, "buckets": 1.3, "vm": 1.5}, {"graph": 1, "buckets": 0.6, "vm": 0}
    others = ("graph", "vm")

    def chosen(share, steps):
        weights = (np.arange(steps) + 0.5) / steps
        return {smallest(times, lack | {"buckets": share}, weight) for weight in weights}

    def line(name, weight):
        return weight * times[name] + (1 - weight) * lack[name]

    crossing = 1 / (1 + 0.5)
    assert np.isclose(line("graph", crossing), line("vm", crossing))
    return {
        "A They are worse than one": any(
            times[o] <= times["buckets"] and lack[o] <= lack["buckets"] for o in others
        ),
        "B The grid of weights": "buckets" in chosen(0.6, 100_000),
        "C Their line lies above": line("buckets", crossing) > line("vm", crossing),
        "D A weighted sum never": "buckets" not in chosen(0.3, 100),
    }


@proof("13-3", "e3c34b2a")
def the_camera() -> Finding:
    model, level = zoo.load("squeezenet"), {"opt_level": 2, "disabled_pass": ["SimplifyExpr"]}
    graph, vm = (build.compile(model, kind, **level) for kind in ("graph", "vm"))
    for one in (graph, vm):
        one.run(**model.inputs)
    calls = {"graph": graph._invoke, "vm": vm._invoke}
    race = measure.compare(calls, rounds=5, clock=time.process_time)
    ratio = min(race.times["vm"]) / min(race.times["graph"])
    aot = counters.count(built("mlp", "aot"), **zoo.load("mlp").inputs)
    return {
        "A On the VM it takes": ratio > 2,
        "B The VM needs more memory": counters.count(vm, **model.inputs).pool_bytes
        > storage.plan(graph).planned_bytes,
        "C A change of the executor": sorted(vm.kernels) == sorted(graph.kernels)
        and 0.5 < ratio < 2,
        "D AOT needs less memory": aot.pool_bytes is not None,  # not known: nothing was shown
    }


@cache
def three_encoders():
    """Observations of graph and VM for 64 tokens and of the VM for any length."""
    inputs = zoo.load("encoder", **ENCODER, sample_length=64).inputs
    masked = {"ids": inputs["ids"], "mask": np.ones((1, 64))}
    return (
        cost.observe(built("encoder", **MASKED), rounds=5, **masked),
        cost.observe(built("encoder", "vm", **MASKED), rounds=5, **masked),
        cost.observe(built("encoder", "vm", **ENCODER), rounds=5, **inputs),
    )


@proof("13-4", "a3ad9260")
def where_the_time_goes() -> Finding:
    graph, fixed, dynamic = three_encoders()
    more = dynamic.infer_seconds - graph.infer_seconds
    in_kernels = dynamic.kernel_seconds - graph.kernel_seconds
    (_, tokens, _) = (
        built("encoder", "vm", **ENCODER)
        .run(**zoo.load("encoder", **ENCODER, sample_length=20).inputs)[0]
        .shape
    )
    return {
        "A From the bytecode": fixed.infer_seconds - graph.infer_seconds > more / 2,
        "B From the 66 additional": more - in_kernels > more / 2,
        "C From its kernels": in_kernels > more / 2,
        "D From padding": tokens != 20,
    }


@proof("13-5", "176bcd88")
def compiled_at_each_switch() -> Finding:
    seconds, right = loading()

    def compiling(level):
        start = time.process_time()
        build.compile(zoo.load("mlp"), opt_level=level, cache=False)
        return time.process_time() - start

    return {
        "A Only a change to the VM": not right["graph"],
        "B Keeping what was compiled": all(load < made / 10 for made, load in seconds.values()),
        "C A change to the VM, because": built("mlp", "vm").sizes["parameters"] == 0,
        "D A lower `opt_level`": compiling(0) < compiling(3) / 10,
    }


def served_by_one_build():
    """Whether the static encoder for 64 tokens is right for requests of 20 and of 37."""
    right = []
    for length in (20, 37):
        request = zoo.load("encoder", **ENCODER, sample_length=length)
        rest = [(0, 0), (0, 64 - length)]
        padded = {
            "ids": np.pad(request.inputs["ids"], rest),
            "mask": np.pad(np.ones((1, length)), rest),
        }
        (states,) = built("encoder", **MASKED).run(**padded)
        right.append(np.allclose(states[:, :length], request.reference[0], atol=1e-4))
    return all(right)


@proof("13-6", "6bd7c342")
def what_alone_decides() -> Finding:
    """A fact decides for the VM when graph and AOT have no candidate at all."""
    batch = zoo.load("mlp", batch=8)
    _, right = loading()
    return {
        "A The service switches": not right["graph"],
        "B The requests have many": not served_by_one_build(),
        "C The batch is always": not works(lambda: build.compile(batch).run(**batch.inputs)),
        "D The model has a while loop": works(lambda: build.compile(loop(), "vm"))
        and not any(
            works(lambda kind=kind: build.compile(loop(), kind)) for kind in ("graph", "aot")
        ),
    }


@proof("13-7", "0b3a91f6")
def border() -> Finding:
    low, high = 0.0, 1.0
    for _ in range(40):
        weight = (low + high) / 2
        best = cost.choose({"graph": 0.002, "vm": 0.006}, {"graph": 1, "vm": 0}, weight)[0]
        low, high = (weight, high) if best.executor == "vm" else (low, weight)
    return low
