"""How well does T = f + t_d k + K predict models that were not fitted?

Observes static models on the graph executor, the AOT executor and the VM, each model in several
fresh processes; fits f and t_d of each executor on four of them, and predicts the others from their
number of kernels and from the kernels' own time.

    .venv/bin/python -m bench.cost_model --help
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from helpers import WorkbookError, build, cost, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.measure import human
from helpers.tvm_builds import ROOT

EXECUTORS = ("graph", "aot", "vm")

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("mlp", {}),
    "early_exit, both": ("early_exit", {"both": True}),
    "encoder, 20 tokens": ("encoder", {"layers": 1, "hidden": 128, "length": 20}),
    "lstm, 10 steps": ("lstm", {"length": 10}),
    "mlp, batch 16": ("mlp", {"batch": 16}),
    "mlp, batch 64": ("mlp", {"batch": 64}),
    "voice_activity": ("voice_activity", {}),
    "lstm, 5 steps": ("lstm", {"length": 5}),
    "encoder, 64 tokens": ("encoder", {"layers": 1, "hidden": 128, "length": 64}),
    "mobilenet, 64 px": ("mobilenet", {"size": 64}),
    "squeezenet": ("squeezenet", {}),
    "file_type": ("file_type", {}),
}

FITTED = tuple(MODELS)[:4]
"""Small models with 4 to 66 kernels: what is not the kernels' own is a large part of their time."""


def observe(name: str) -> list[cost.Observation]:
    """The observations of one model of :data:`MODELS` in this process."""
    use_tvm("relay", quiet=True)
    model = load(name)
    inputs: dict[str, Any] = dict(model.inputs)
    compiled = [build.compile(model, executor) for executor in EXECUTORS]
    return cost.observe_together(compiled, name, rounds=10, **inputs)


def load(name: str) -> zoo.Model:
    """The model of the zoo that is meant by a name of :data:`MODELS`."""
    model, options = MODELS[name]
    return zoo.load(model, **options)


def observe_processes(name: str, processes: int) -> list[list[cost.Observation]]:
    """The same in fresh processes, one after another; an entry for each executor."""
    environment = {**os.environ, "TVM_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    runs = []
    for _ in range(processes):
        done = subprocess.run(
            [sys.executable, "-m", "bench.cost_model", "--observe", name],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise WorkbookError(f"A process that observed {name} failed: {last}")
        runs.append([cost.Observation(**row) for row in json.loads(done.stdout.splitlines()[-1])])
    return [list(own) for own in zip(*runs, strict=True)]


def middle(observations: Sequence[cost.Observation]) -> cost.Observation:
    """One observation with the medians over the processes."""
    return replace(
        observations[0],
        kernel_seconds=statistics.median(o.kernel_seconds for o in observations),
        infer_seconds=statistics.median(o.infer_seconds for o in observations),
    )


def table(fit: cost.Fit, seen: Sequence[Sequence[cost.Observation]]) -> Iterator[str]:
    """A line for each model and executor: the error beside the spread of the processes."""
    yield (
        f"{'':20}{'':7}   k  kernels alone   measured  predicted   error  "
        "fresh processes, from the median"
    )
    for own in seen:
        one = middle(own)
        prediction = fit.predict(one.executor, one.dispatches, one.kernel_seconds)
        low, high = (
            100 * (f(o.infer_seconds for o in own) / one.infer_seconds - 1) for f in (min, max)
        )
        inside = "in" if one.infer_seconds in prediction else "not in"
        yield (
            f"{one.name:20}{one.executor:6}{one.dispatches:>5}{human(one.kernel_seconds):>15}"
            f"{human(one.infer_seconds):>11}{human(prediction.seconds):>11}"
            f"{100 * fit.error(one):>7.1f}%  {low:+.1f}% to {high:+.1f}%, {inside} the interval"
        )


def main() -> None:
    """Print the fit and the tables; some minutes, and more where models must be compiled."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--processes", type=int, default=3, help="fresh processes for each model")
    parser.add_argument("--observe", metavar="MODEL", choices=MODELS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.observe:
        print(json.dumps([asdict(seen) for seen in observe(given.observe)]))
        return
    use_tvm("relay")
    for name in MODELS:  # into the cache, so that the processes only load
        for executor in EXECUTORS:
            build.compile(load(name), executor)
    start = time.perf_counter()
    seen = [own for name in MODELS for own in observe_processes(name, given.processes)]
    fit = cost.fit(middle(own) for own in seen if own[0].name in FITTED)
    print(
        f"Fitted on {'; '.join(FITTED)}; {given.processes} fresh processes for each model:\n{fit}"
    )
    groups = {
        fitted: [o for o in seen if (o[0].name in FITTED) == fitted] for fitted in (True, False)
    }
    for fitted, own in groups.items():
        print("\nfitted" if fitted else "\npredicted", *table(fit, own), sep="\n")
    errors = {
        executor: sorted(
            abs(100 * fit.error(middle(own)))
            for own in groups[False]
            if own[0].executor == executor
        )
        for executor in EXECUTORS
    }
    errors["all"] = sorted(error for own in errors.values() for error in own)
    print("\nabsolute error of the predicted models, in per cent")
    for executor, values in errors.items():
        ninety = statistics.quantiles(values, n=10, method="inclusive")[-1]
        print(
            f"{executor:6} median {statistics.median(values):.1f}, "
            f"90th percentile {ninety:.1f}, largest {values[-1]:.1f}"
        )
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
