"""What a model costs on an executor: the bill of a service, a model of its time, and the choice.

Most of this is arithmetic on numbers that you give: a :class:`Bill` and where two of them cross
(:func:`break_even`), a :class:`Fit` that predicts the time of models it has not seen, the time as a
:class:`Curve` of the length, the :func:`policies` for requests of different lengths, and
:func:`choose`. Only :func:`bill`, :func:`observe` and :func:`observe_together` measure. All times
are in seconds.

    observed = [cost.observe(build.compile(model, "vm"), **model.inputs) for model in models]
    print(cost.fit(observed).predict("vm", dispatches=40, kernel_seconds=0.002))

The time of one inference is taken to be the sum of what an executor does:

    T = f + t_d k + K

f: seconds that each run takes, however many kernels there are; k: calls of compiled functions
(``Counters.dispatches``); t_d: what the executor spends on each; K: the kernels' own seconds.
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers.errors import WorkbookError, whole_number
from helpers.measure import human

# --- the bill ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bill:
    """What a service pays for one model on one executor, in seconds.

    ``compile``: from the Relay program to the artefact, 0 where it was kept. ``load``: from the
    artefact to a model that can run. ``first``: the first inference, ``infer``: each later one.
    """

    compile: float
    load: float
    first: float
    infer: float

    def __post_init__(self) -> None:
        for name in ("compile", "load", "first", "infer"):
            _seconds(getattr(self, name), name)

    @property
    def startup(self) -> float:
        """Seconds of loading, and what the first inference takes more than a later one."""
        return self.load + self.first - self.infer

    @property
    def fixed(self) -> float:
        """Seconds that do not grow with N: ``compile + startup``."""
        return self.compile + self.startup

    def total(self, n: Any) -> Any:
        """Seconds of ``n`` inferences with all that comes before: ``compile + startup + n infer``.

        ``n``: a number or an array of them, 0 or more.
        """
        if np.min(n) < 0:
            raise WorkbookError(f"The number of inferences is 0 or more, not {n!r}.")
        return self.fixed + n * self.infer

    @classmethod
    def line(cls, fixed: float, infer: float) -> Bill:
        """A bill whose total is ``fixed + n infer``, where the parts of ``fixed`` do not matter."""
        return cls(compile=fixed, load=0.0, first=infer, infer=infer)


def break_even(a: Bill, b: Bill) -> int | None:
    """The smallest N at which the bill with the larger fixed part is cheaper than the other.

    The totals are two lines, which cross at N = (fixed_1 - fixed_2) / (infer_2 - infer_1), where 1
    is the one with the larger fixed part. ``None`` when it is not cheaper in each inference either:
    then it never catches up.
    """
    high, low = (a, b) if (a.fixed, b.infer) > (b.fixed, a.infer) else (b, a)
    gain = low.infer - high.infer
    if gain <= 0:
        return None
    crossing = (high.fixed - low.fixed) / gain
    # A crossing that is a whole number but for rounding is one: there both cost the same.
    nearest = round(crossing)
    whole = math.isclose(crossing, nearest, rel_tol=1e-9, abs_tol=1e-9)
    return (nearest if whole else math.floor(crossing)) + 1


def cheapest(bills: Mapping[str, Bill], n: int) -> str:
    """The name of the bill whose total for ``n`` inferences is the smallest."""
    if not bills:
        raise WorkbookError("There is no bill to choose from.")
    return min(bills, key=lambda name: bills[name].total(n))


def bill(model: Any, executor: str = "graph", *, inputs: Any = None, **settings: Any) -> Bill:
    """Measure a bill in this process, in which TVM has already started.

    The model is compiled without the cache, saved, loaded from the file, run once and then timed.
    Starting Python and TVM is in none of the terms: it is the same for all executors. ``first``
    contains handing over inputs and outputs. ``inputs``: by name, those of the zoo model by
    default. ``settings``: those of ``build.compile``.
    """
    from helpers import build, zoo

    model = zoo.load(model) if isinstance(model, str) else model
    inputs = getattr(model, "inputs", None) if inputs is None else inputs
    if not isinstance(inputs, Mapping):
        raise WorkbookError("This model brings no sample inputs: give inputs={name: array}.")
    with tempfile.TemporaryDirectory(prefix="relay-workbook-") as folder:
        path = Path(folder) / "model"
        compiled = build.compile(model, executor, cache=False, **settings)
        compiled.save(path)
        loaded = build.load(path)
    loaded.run(**inputs)
    return Bill(
        compile=compiled.times["compile"],
        load=loaded.times["load"],
        first=loaded.times["first_run"],
        infer=loaded.benchmark(repeat=20, min_seconds=0.002).low,
    )


# --- a model of the time -------------------------------------------------------------------------


@dataclass(frozen=True)
class Observation:
    """One inference of a model on an executor, in seconds; see the head of this module.

    ``dispatches`` is k, ``kernel_seconds`` is K, ``infer_seconds`` is T.
    """

    name: str
    executor: str
    dispatches: int
    kernel_seconds: float
    infer_seconds: float

    def __post_init__(self) -> None:
        whole_number(self.dispatches, "dispatches", 0)
        _seconds(self.kernel_seconds, "kernel_seconds")
        _seconds(self.infer_seconds, "infer_seconds", above=True)

    @property
    def overhead(self) -> float:
        """Seconds that are not the kernels' own: T - K. A noisy clock can make it negative."""
        return self.infer_seconds - self.kernel_seconds


def observe(compiled: Any, name: str = "", /, *, rounds: int = 15, **inputs: Any) -> Observation:
    """Measure one inference of ``compiled`` on ``inputs``, and each of its kernels alone.

    For the graph executor and the VM; :func:`observe_together` also takes AOT, and says how it is
    measured.
    """
    return observe_together([compiled], name, rounds=rounds, **inputs)[0]


def observe_together(
    compiled: Sequence[Any], name: str = "", /, *, rounds: int = 15, **inputs: Any
) -> list[Observation]:
    """Measure one model on several executors, so that the numbers can be compared.

    The inferences and all kernels are timed in turn, ``rounds`` times, a millisecond each, and the
    fastest of each is kept: other work on the machine can only add to it. The kernels' own time is
    that of :mod:`helpers.kernel_times`, summed over all calls, with what it costs that weights and
    code have left the cache since the last inference.

    The AOT executor does not tell what its kernels are called with, and gets the time of the graph
    executor's, which are the same: so give both. (AOT may also call a kernel for a reshape: it
    counts in ``dispatches``, and its own time is left out.)
    """
    from helpers import counters, kernel_times, targets

    rounds = whole_number(rounds, "rounds", 1)
    executors = [getattr(one, "executor", None) for one in compiled]
    own = [e if e != "aot" or "graph" not in executors else "graph" for e in executors]
    calls = {e: kernel_times.calls(compiled[executors.index(e)], inputs) for e in set(own)}
    runs = []
    for one in compiled:
        one.run(**inputs)
        function, arguments = ("invoke", ["main"]) if one.executor == "vm" else ("run", [])
        device = targets.device_for(one.target)
        runs.append(kernel_times.Repeated(one.runtime.module, function, device, arguments))
    for _ in range(rounds):
        for run in runs:
            run.time()
        for found in calls.values():
            for call in found:
                call.repeated.time()
    alone = {}
    for executor, found in calls.items():
        other = kernel_times.footprint(compiled[executors.index(executor)], inputs)
        alone[executor] = sum(kernel.total for kernel in kernel_times.finished(found, other))
    return [
        Observation(
            name=name or "model",
            executor=one.executor,
            dispatches=counters.count(one, **inputs).dispatches,
            kernel_seconds=alone[source],
            infer_seconds=run.best,
        )
        for one, source, run in zip(compiled, own, runs, strict=True)
    ]


@dataclass(frozen=True)
class Prediction:
    """Seconds, and an interval around them: see :meth:`Fit.predict`."""

    seconds: float
    low: float
    high: float

    def __contains__(self, seconds: float) -> bool:
        return self.low <= seconds <= self.high

    def __str__(self) -> str:
        return f"{human(self.seconds)} ({human(self.low)} to {human(self.high)})"


@dataclass(frozen=True)
class Coefficients:
    """What :func:`fit` found for one executor.

    ``fixed``: f, seconds of a run. ``dispatch``: t_d, seconds of a call. ``factor``: the largest
    ratio (1 or more) between measured and predicted, or the reverse, when each observation is
    predicted by a fit to the others. ``observations``: how many there were.
    """

    fixed: float
    dispatch: float
    factor: float
    observations: int

    def seconds(self, dispatches: int, kernel_seconds: float) -> float:
        """T = f + t_d k + K."""
        return self.fixed + dispatches * self.dispatch + kernel_seconds


@dataclass(frozen=True)
class Fit:
    """The coefficients of each executor; made by :func:`fit`."""

    coefficients: dict[str, Coefficients]

    def __getitem__(self, executor: str) -> Coefficients:
        if executor not in self.coefficients:
            known = ", ".join(self.coefficients)
            raise WorkbookError(f"Nothing was observed on {executor!r}, only on {known}.")
        return self.coefficients[executor]

    def predict(self, executor: str, dispatches: int, kernel_seconds: float) -> Prediction:
        """Seconds of one inference that calls ``dispatches`` kernels of ``kernel_seconds`` in all.

        The interval is the prediction divided and multiplied by ``factor``, the largest error that
        leaving out one observation at a time gave (see :class:`Coefficients`). If a new model is
        like those, drawn as they were, its time lies outside of the interval with a probability of
        about 1 in n + 1, for n observations. That is a rule for a few of them, no bound.
        """
        whole_number(dispatches, "dispatches", 0)
        _seconds(kernel_seconds, "kernel_seconds")
        found = self[executor]
        seconds = found.seconds(dispatches, kernel_seconds)
        return Prediction(seconds, seconds / found.factor, seconds * found.factor)

    def predict_total(
        self, executor: str, dispatches: int, kernel_seconds: float, n: int, fixed: float = 0.0
    ) -> Prediction:
        """Seconds of ``n`` inferences after ``fixed`` seconds, which are taken to be exact."""
        n = whole_number(n, "n", 0)
        _seconds(fixed, "fixed")
        one = self.predict(executor, dispatches, kernel_seconds)
        return Prediction(*(fixed + n * seconds for seconds in (one.seconds, one.low, one.high)))

    def error(self, observation: Observation) -> float:
        """(predicted - measured) / measured seconds of an observation."""
        found = self[observation.executor]
        predicted = found.seconds(observation.dispatches, observation.kernel_seconds)
        return predicted / observation.infer_seconds - 1

    def __str__(self) -> str:
        return "\n".join(
            f"{executor:<6} {human(c.fixed)} a run, {human(c.dispatch)} a kernel, "
            f"within a factor of {c.factor:.3g}"
            for executor, c in self.coefficients.items()
        )


def fit(observations: Iterable[Observation]) -> Fit:
    """The f and t_d of each executor that predict the observations best.

    Least squares of the *relative* error (f + t_d k + K - T) / T, so that a model of a second does
    not outweigh one of a microsecond; neither f nor t_d can be negative (scipy's ``nnls``).

    Raises :class:`WorkbookError` for an executor with fewer than three observations, or with the
    same number of dispatches in all but one: without that one f and t_d could not be told apart.
    """
    by_executor: dict[str, list[Observation]] = {}
    for observation in observations:
        by_executor.setdefault(observation.executor, []).append(observation)
    if not by_executor:
        raise WorkbookError("There is no observation to fit: observe(...) makes one.")
    found = {}
    for executor, own in by_executor.items():
        for left_out in own:
            others = {other.dispatches for other in own if other is not left_out}
            if len(others) < 2:
                raise WorkbookError(
                    f"A fit of {executor!r} needs three observations or more, with different "
                    "numbers of dispatches even when one of them is left out."
                )
        fixed, dispatch = _fitted(own)
        ratios = [1.0]
        for left_out in own:
            others_fixed, others_dispatch = _fitted([o for o in own if o is not left_out])
            predicted = Coefficients(others_fixed, others_dispatch, 1.0, len(own) - 1).seconds(
                left_out.dispatches, left_out.kernel_seconds
            )
            ratio = left_out.infer_seconds / max(predicted, 1e-12)
            ratios += [ratio, 1 / ratio]
        found[executor] = Coefficients(fixed, dispatch, max(ratios), len(own))
    return Fit(found)


def _fitted(observations: Sequence[Observation]) -> tuple[float, float]:
    seconds = np.array([o.infer_seconds for o in observations])
    rows = np.array([(1.0, o.dispatches) for o in observations]) / seconds[:, None]
    fixed, dispatch = _nonnegative(rows, np.array([o.overhead for o in observations]) / seconds)
    return fixed, dispatch


def _nonnegative(rows: np.ndarray, wanted: np.ndarray) -> tuple[float, ...]:
    """The x >= 0 for which ``rows @ x`` is nearest to ``wanted``."""
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    scale = np.abs(rows).max(axis=0)  # the columns differ by many powers of ten
    solution, _ = nnls(rows / scale, wanted)
    return tuple(map(float, solution / scale))


# --- requests of different lengths ---------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Seconds as a function of the length: T(L) = a + b L + c L^2."""

    a: float
    b: float
    c: float

    def __call__(self, length: Any) -> Any:
        """Seconds of one inference of ``length``, a number or an array."""
        return self.a + self.b * length + self.c * length * length

    def __str__(self) -> str:
        return f"{self.a:.3g} + {self.b:.3g} L + {self.c:.3g} L^2 s"


def curve(lengths: Sequence[int], seconds: Sequence[float]) -> Curve:
    """The curve through a few measured lengths: least squares of the relative error, a, b, c >= 0.

    a is what does not depend on the length, b L the work for each token, and c L^2 that for each
    pair of them (attention). Raises :class:`WorkbookError` for fewer than three different lengths.
    """
    if len(lengths) != len(seconds) or len(set(lengths)) < 3:
        raise WorkbookError("A curve needs the seconds of three different lengths or more.")
    times = np.array([_seconds(value, "seconds", above=True) for value in seconds])
    powers = np.vander(np.array(lengths, "float64"), 3, increasing=True)
    return Curve(*_nonnegative(powers / times[:, None], np.ones(len(times))))


@dataclass(frozen=True)
class Policy:
    """One way to serve a traffic: ``builds`` compilations, and the seconds of building and running.

    ``edges`` are the lengths that are built for; none when one build takes any length.
    """

    name: str
    edges: tuple[int, ...]
    builds: int
    build_seconds: float
    run_seconds: float

    @property
    def total(self) -> float:
        """Seconds of building and running."""
        return self.build_seconds + self.run_seconds


Seconds = float | Callable[[int], float]
"""A number of seconds, or a function from a length to them."""


def policies(
    lengths: Sequence[int],
    static: Callable[[int], float],
    dynamic: Callable[[int], float] | None = None,
    *,
    build: Seconds,
    vm_build: float = 0.0,
    edges: Sequence[int] | None = None,
    longest: int | None = None,
) -> dict[str, Policy]:
    """What serving requests of these ``lengths`` takes, by name of the policy.

    - ``padded``: one static build, every request padded to ``longest`` (default: the longest);
    - ``buckets``: one static build for each of ``edges``, a request padded to the next of them; by
      default the edges that :func:`best_edges` finds for this very traffic;
    - ``per length``: one static build for each length that occurs;
    - ``dynamic``: one build that takes any length, where ``dynamic`` is given.

    ``static(L)`` and ``dynamic(L)``: seconds of an inference of length L by either build (a
    :class:`Curve`, say); ``build``: seconds of a static build, a number or a function of its
    length; ``vm_build``: seconds of the dynamic one. A bucket that no request needs is not built.

    Raises :class:`WorkbookError` when a length does not fit into ``longest`` or the last edge.
    """
    counts = _counted(lengths)
    top = max(counts)
    longest = top if longest is None else whole_number(longest, "longest", 1)
    if edges is None:
        edges = best_edges(lengths, static, build=build)
    result = {
        "padded": _static("padded", counts, [longest], static, build),
        "buckets": _static("buckets", counts, edges, static, build),
        "per length": _static("per length", counts, list(counts), static, build),
    }
    if dynamic is not None:
        run = sum(count * dynamic(length) for length, count in counts.items())
        result["dynamic"] = Policy("dynamic", (), 1, _seconds(vm_build, "vm_build"), float(run))
    return result


def best_edges(
    lengths: Sequence[int], static: Callable[[int], float], *, build: Seconds
) -> tuple[int, ...]:
    """The edges of the buckets that make building plus running these ``lengths`` cheapest.

    Exact, by dynamic programming over the lengths that occur: the best total for the shorter ones,
    plus one bucket for the rest. Takes time quadratic in the number of different lengths.
    """
    counts = _counted(lengths)
    sizes = list(counts)
    before = np.concatenate([[0], np.cumsum(list(counts.values()))])
    best = np.zeros(len(sizes) + 1)
    edges: list[tuple[int, ...]] = [()]
    for end, edge in enumerate(sizes, 1):
        bucket = _build_seconds(build, edge)
        totals = best[:end] + bucket + (before[end] - before[:end]) * float(static(edge))
        start = int(np.argmin(totals))
        best[end] = totals[start]
        edges.append((*edges[start], edge))
    return edges[-1]


def _static(
    name: str,
    counts: Mapping[int, int],
    edges: Sequence[int],
    static: Callable[[int], float],
    build: Seconds,
) -> Policy:
    ordered = sorted({whole_number(edge, "an edge", 1) for edge in edges})
    if not ordered or ordered[-1] < max(counts):
        raise WorkbookError(
            f"A request of length {max(counts)} does not fit into {ordered}: the last build must "
            "be at least as long as the longest request."
        )
    padded: Counter[int] = Counter()
    for length, count in counts.items():
        padded[ordered[bisect_left(ordered, length)]] += count
    return Policy(
        name,
        tuple(sorted(padded)),
        len(padded),
        sum(_build_seconds(build, edge) for edge in padded),
        float(sum(count * static(edge) for edge, count in padded.items())),
    )


def _build_seconds(build: Seconds, length: int) -> float:
    return _seconds(build(length) if callable(build) else build, "build")


def _counted(lengths: Sequence[int]) -> dict[int, int]:
    """How often each length occurs, shortest first."""
    if len(lengths) == 0:
        raise WorkbookError("A traffic needs one request or more: lengths is empty.")
    counts = Counter(whole_number(length, "a length", 1) for length in lengths)
    return dict(sorted(counts.items()))


# --- the choice ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """An executor with what :func:`choose` weighs: the smaller the ``score``, the better.

    ``time``: T / min T, 1 for the fastest. ``inflexibility``: F, from 0 to 1.
    """

    executor: str
    time: float
    inflexibility: float
    score: float


def inflexibility(
    needs: Mapping[str, float], serves: Mapping[str, Collection[str]]
) -> dict[str, float]:
    """F of each executor: the share of the needs, by their weights, that it does not serve.

    F_E = (sum of the weights of the needs that E does not serve) / (sum of all weights), so 0 is an
    executor that serves all, and 1 one that serves none. ``needs``: weights by name, for example
    ``{"any length": 3, "loops": 1}``. ``serves``: for each executor, the names that it serves.
    """
    weights = {need: _seconds(weight, f"the weight of {need!r}") for need, weight in needs.items()}
    whole = sum(weights.values())
    if whole <= 0:
        raise WorkbookError("The weights of the needs must add up to more than 0.")
    for executor, served in serves.items():
        for need in served:
            if need not in weights:
                raise WorkbookError(f"{executor} serves {need!r}, which is none of the needs.")
    return {
        executor: sum(weight for need, weight in weights.items() if need not in served) / whole
        for executor, served in serves.items()
    }


def choose(
    times: Mapping[str, float], flexibility: Mapping[str, float], weight: float
) -> list[Choice]:
    """The executors, best first, by E* = argmin over E of weight T_E / min T + (1 - weight) F_E.

    ``times``: T_E, seconds (of one inference, or a whole total); divided by the smallest of them,
    since seconds cannot be added to a share. Infinite for an executor that cannot run the model:
    it comes last whatever the weight. ``flexibility``: F_E from 0 to 1, the *lack* of it (see
    :func:`inflexibility`). ``weight``: lambda from 0 to 1; 1 asks for time alone.
    """
    if not 0 <= weight <= 1:
        raise WorkbookError(f"weight is a number from 0 to 1, not {weight!r}.")
    if times.keys() != flexibility.keys() or not times:
        raise WorkbookError("The times and the F must be of the same executors, one or more.")
    for executor, lack in flexibility.items():
        if not 0 <= lack <= 1:
            raise WorkbookError(f"F of {executor} is a number from 0 to 1, not {lack!r}.")
    for executor, seconds in times.items():
        if not seconds > 0:
            raise WorkbookError(f"T of {executor} is a number of seconds above 0, not {seconds!r}.")
    fastest = min(times.values())
    if math.isinf(fastest):
        raise WorkbookError("No executor can run the model: all times are infinite.")
    ranked = []
    for executor, seconds in times.items():
        lack = flexibility[executor]
        score = math.inf
        if math.isfinite(seconds):
            score = weight * seconds / fastest + (1 - weight) * lack
        ranked.append(Choice(executor, seconds / fastest, lack, score))
    return sorted(ranked, key=lambda choice: choice.score)


# --- numbers -------------------------------------------------------------------------------------


def _seconds(value: Any, name: str, *, above: bool = False) -> float:
    """``value`` as a finite float, 0 or more (``above``: more than 0)."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or value < 0 or (above and value == 0):
        least = "above 0" if above else "0 or more"
        raise WorkbookError(f"{name} is a number, {least}, not {value!r}.")
    return float(value)
