"""What is each graph pass worth on whole models: in kernels, in bytes, and in time?

Prints, for each model, what changes when one pass of level 3 is left out; what the levels and a
layout of one's own give; and how far the best of them is from ONNX Runtime. Each time is a ratio
of two builds that run side by side in one process, over several fresh processes.

    .venv/bin/python -m bench.pass_ablation --help
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers import WorkbookError, build, use_tvm, zoo
from helpers.errors import exit_with_sentence
from helpers.fusion import ledger
from helpers.measure import Spread, compare, compare_processes
from helpers.passes import trace

MODELS = ("file_type", "voice_activity", "squeezenet", "mobilenet", "resnet18")
VISION = ("squeezenet", "mobilenet", "resnet18")
OPTIONS: dict[str, dict[str, Any]] = {"mobilenet": {"size": 64}, "resnet18": {"size": 64}}
"""Small pictures, which compile and run in less time."""

ENGINES = ("tvm", "onnxruntime")
RENAMING = ("Shape", "Reshape", "Squeeze", "Unsqueeze")
"""ONNX operators that move no data: the ledger of TVM's kernels leaves theirs out, too."""


@dataclass(frozen=True)
class Plan:
    """Which passes a build runs. ``layout`` is what ConvertLayout writes first, if anything."""

    opt_level: int = 3
    disabled_pass: tuple[str, ...] = ()
    layout: str = ""
    max_depth: int | None = None

    @property
    def config(self) -> dict[str, int]:
        """The settings of passes that it asks for."""
        return {} if self.max_depth is None else {"relay.FuseOps.max_depth": self.max_depth}

    @property
    def first(self) -> list[Any]:
        """The passes that run before TVM's own pipeline."""
        from tvm import relay

        convert = {"nn.conv2d": [self.layout, "default"]}
        return [relay.transform.ConvertLayout(convert)] if self.layout else []


LEVELS = {
    "no fusion": Plan(0, max_depth=1),
    "level 1": Plan(1),
    "level 2": Plan(2),
    "level 3": Plan(3),
    "level 4": Plan(4),
    "NHWC, level 3": Plan(3, layout="NHWC"),
}


def load(model: str) -> zoo.Model:
    """A model of the zoo, in the size that is used here."""
    return zoo.load(model, **OPTIONS.get(model, {}))


def compiled(model: str, plan: Plan) -> build.Compiled:
    """``model`` built for the teaching CPU by ``plan``, with its sample inputs set."""
    loaded = load(model)
    result = build.compile(
        loaded,
        opt_level=plan.opt_level,
        disabled_pass=plan.disabled_pass,
        passes=plan.first,
        config=plan.config,
    )
    result.run(**loaded.inputs)
    return result


def ratio(model: str, first: dict[str, Any], second: dict[str, Any], rounds: int = 11) -> float:
    """Time of the build by ``second`` / time of the build by ``first``, both fields of a Plan.

    Raises :class:`WorkbookError` when their outputs differ by more than the model's tolerance.
    """
    use_tvm("relay", quiet=True)
    loaded = load(model)
    builds = [compiled(model, Plan(**fields)) for fields in (first, second)]
    outputs = [built.run(**loaded.inputs) for built in builds]
    for one, other in zip(*outputs, strict=True):
        if not np.allclose(one, other, loaded.rtol, loaded.atol):
            raise WorkbookError(f"The outputs of the two builds of {model} differ.")
    runs = {"first": builds[0].runtime.run, "second": builds[1].runtime.run}
    return compare(runs, rounds=rounds).ratio("second")


def seconds(model: str, engine: str, at_least: float = 0.5) -> float:
    """Median seconds of one inference on one thread, of calls that last ``at_least`` together.

    ``engine`` is ``"tvm"`` (graph executor, level 3, teaching CPU) or ``"onnxruntime"`` (its own
    defaults). Call each in a process of its own (:func:`helpers.measure.compare_processes`): in
    one process with TVM, ONNX Runtime is several times slower.
    """
    if engine not in ENGINES:
        raise WorkbookError(f"engine is one of {', '.join(ENGINES)}, not {engine!r}.")
    if engine == "tvm":
        use_tvm("relay", quiet=True)
        call = compiled(model, Plan()).runtime.run
    else:
        inputs, session = dict(load(model).inputs), _session(model)

        def call() -> Any:
            return session.run(None, inputs)

    return _median_seconds(call, at_least)


def _median_seconds(call: Callable[[], Any], at_least: float) -> float:
    for _ in range(3):  # warm up
        call()
    times: list[float] = []
    while sum(times) < at_least or len(times) < 5:
        start = time.process_time()  # without what other processes take of a busy machine
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def _session(model: str, profile: Path | None = None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    path = load(model).onnx
    if path is None:
        raise WorkbookError(f"{model} is no ONNX model, so ONNX Runtime cannot run it.")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnxruntime_kernels(model: str) -> tuple[int, int]:
    """(kernels, bytes) of one inference in ONNX Runtime, by its own profile.

    A kernel is a node of the graph that is left after ONNX Runtime's optimisations, those that only
    rename a shape left out; bytes are its inputs, weights and outputs.
    """
    with tempfile.TemporaryDirectory() as folder:
        session = _session(model, Path(folder) / "profile")
        session.run(None, dict(load(model).inputs))
        events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [
        event["args"]
        for event in events
        if event["name"].endswith("_kernel_time") and event["args"]["op_name"] not in RENAMING
    ]
    sizes = ("activation_size", "parameter_size", "output_size")
    return len(nodes), sum(int(node[size]) for node in nodes for size in sizes)


# --- the tables -----------------------------------------------------------------------------------


def main() -> None:
    """Print the tables; about an hour for all models. Times are median (low to high)."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("models", nargs="*", default=MODELS, help="names of the zoo")
    parser.add_argument("--processes", type=int, default=3, help="fresh processes for each time")
    given = parser.parse_args()
    use_tvm("relay")
    print(f"Times: median (smallest to largest) of {given.processes} fresh processes.")
    for title, table in (("one pass less", ablation), ("levels", levels)):
        print(f"\n{title:36} kernels  bytes moved  time / time of the first line")
        for model in given.models:
            for line in table(model, given.processes):
                print(f"{model:16}{line}", flush=True)
    vision = [model for model in given.models if model in VISION]
    if len(vision) > 1:
        print(f"\nframes/s, one of {', '.join(vision)} after the other")
        for name in LEVELS:
            print(f"{name:20}{frames(vision, name, given.processes):8.1f}", flush=True)
    print(f"\n{'TVM at level 3, ONNX Runtime':36} kernels  bytes moved  seconds")
    for model in given.models:
        for line in engines(model, given.processes):
            print(f"{model:16}{line}", flush=True)


def ablation(model: str, processes: int) -> Iterator[str]:
    """Level 3, then level 3 without each of the passes that level 3 adds."""
    import tvm

    whole = trace(load(model))
    yield _line("all passes", ledger(whole.end))
    for name in dict.fromkeys(step.name for step in whole.steps if step.level == 3):
        plan = Plan(disabled_pass=(name,))
        try:
            end = trace(load(model), disabled_pass=[name]).end
        except WorkbookError as error:
            yield f"{name:24} fails: {error}"
            continue
        same = tvm.ir.structural_equal(end, whole.end)
        told = "the same program" if same else _ratios(model, Plan(), plan, processes)
        yield _line(name, ledger(end), told)


def levels(model: str, processes: int) -> Iterator[str]:
    """No fusion, the levels 1 to 4, and NHWC."""
    first, *_ = LEVELS.values()
    for name, plan in LEVELS.items():
        try:
            moved = ledger(compiled(model, plan))
        except WorkbookError as error:
            yield f"{name:24} fails: {error}"
            continue
        yield _line(name, moved, _ratios(model, first, plan, processes) if plan != first else "")


def frames(models: list[str], level: str, processes: int) -> float:
    """Runs of all ``models`` per second, one model after the other on one thread."""
    spec = "bench.pass_ablation:plan_seconds"
    each = [
        compare_processes(
            spec, arguments={"model": model, "plan": asdict(LEVELS[level])}, processes=processes
        )
        for model in models
    ]
    return 1 / sum(spread.median for spread in each)


def plan_seconds(model: str, plan: dict[str, Any]) -> float:
    """Median seconds of one inference of the build by ``plan``, the fields of a Plan."""
    use_tvm("relay", quiet=True)
    return _median_seconds(compiled(model, Plan(**plan)).runtime.run, 0.5)


def engines(model: str, processes: int) -> Iterator[str]:
    """Kernels, bytes and seconds of both engines, each in processes of its own."""
    moved = ledger(compiled(model, Plan()))
    counts = {"tvm": (moved.kernels, moved.total), "onnxruntime": onnxruntime_kernels(model)}
    for engine, (kernels, total) in counts.items():
        spread = compare_processes(
            "bench.pass_ablation:seconds",
            arguments={"model": model, "engine": engine},
            processes=processes,
        )
        yield f"{engine:24}{kernels:>4}{total:>13,}  {_short(spread)}"


def _line(name: str, moved: Any, told: str = "") -> str:
    return f"{name:24}{moved.kernels:>4}{moved.total:>13,}  {told}".rstrip()


def _ratios(model: str, first: Plan, second: Plan, processes: int) -> str:
    arguments = {"model": model, "first": asdict(first), "second": asdict(second)}
    spread = compare_processes(
        "bench.pass_ablation:ratio", arguments=arguments, processes=processes
    )
    return _short(spread)


def _short(spread: Spread) -> str:
    return f"{spread.median:.3g} ({spread.low:.3g} to {spread.high:.3g})"


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
