"""Timing that can be trusted: interleaved, paired, repeated over fresh processes.

Only ratios are worth comparing: the clock of a shared machine drifts, and what drifts slowly
cancels between two timings taken side by side. The spread inside one process still misleads
(memory layout is drawn once per process), which is why :func:`compare_processes` exists.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers.errors import WorkbookError, whole_number
from helpers.tvm_builds import ROOT


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` measured. The first candidate is the one the others are compared with.

    ``times`` holds seconds per call, one number per round and candidate. Raises
    :class:`WorkbookError` unless every candidate has the same number of times, all above 0.
    """

    times: dict[str, tuple[float, ...]]

    def __post_init__(self) -> None:
        if len({len(times) for times in self.times.values()} | {0}) != 2:
            raise WorkbookError(
                "A comparison needs candidates with equally many times, one or more each."
            )
        for label, times in self.times.items():
            if not all(time > 0 for time in times):
                raise WorkbookError(
                    f"A timing of {label!r} took no time at all by this clock: raise min_time, so "
                    "that each timing repeats the call more often."
                )

    @property
    def baseline(self) -> str:
        """The label of the first candidate."""
        return next(iter(self.times))

    @property
    def seconds(self) -> dict[str, float]:
        """Median seconds per call of every candidate: for the eye, not for an assertion."""
        return {label: statistics.median(times) for label, times in self.times.items()}

    def ratios(self, label: str) -> tuple[float, ...]:
        """Time of ``label`` divided by time of the first candidate, one number per round."""
        if label not in self.times:
            raise WorkbookError(f"Nothing called {label!r} was timed, only {_listed(self.times)}.")
        pairs = zip(self.times[label], self.times[self.baseline], strict=True)
        return tuple(own / first for own, first in pairs)

    def ratio(self, label: str) -> float:
        """Median over the rounds of time of ``label`` / time of the first candidate."""
        return statistics.median(self.ratios(label))

    def spread(self, label: str) -> tuple[float, float]:
        """Smallest and largest of those ratios."""
        ratios = self.ratios(label)
        return min(ratios), max(ratios)

    def speedup(self, label: str) -> float:
        """How many times faster than the first candidate: ``1 / ratio(label)``."""
        return 1 / self.ratio(label)

    def __str__(self) -> str:
        width = max(map(len, self.times))
        lines = []
        for label, seconds in self.seconds.items():
            low, high = self.spread(label)
            note = f"{self.ratio(label):.3g} ({low:.3g} to {high:.3g}) of {self.baseline}'s time"
            note = note if label != self.baseline else "compared with"
            lines.append(f"{label:<{width}}  {human(seconds):>9}  {note}")
        rounds = len(self.times[self.baseline])
        return "\n".join([*lines, f"median (smallest to largest) of {rounds} interleaved rounds"])


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 11,
    min_time: float = 0.02,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time callables side by side and compare each with the first one.

    Every round times every candidate once, in an order and from a depth of the stack that ``seed``
    draws, and gives one ratio to the first candidate; the median of the rounds is the answer. One
    timing repeats the call until ``min_time`` seconds are filled (the number of repetitions is
    found before the rounds, and that also warms up). Garbage collection is off meanwhile. ``clock``
    returns seconds; ``time.process_time`` leaves out what other processes take of a busy machine,
    and adds up all threads.

    Raises :class:`WorkbookError` unless there are two or more candidates, all of them functions
    that can be called without arguments.
    """
    if not isinstance(candidates, Mapping) or len(candidates) < 2:
        raise WorkbookError("compare() needs two or more things to time, as {label: function}.")
    for label, call in candidates.items():
        if not isinstance(label, str):
            raise WorkbookError(f"Labels are strings, and {label!r} is {type(label).__name__}.")
        if not callable(call):
            raise WorkbookError(
                f"{label!r} is {type(call).__name__}, and compare() calls what it times: "
                "give it a function without arguments."
            )
        if not _takes_nothing(call):
            raise WorkbookError(
                f"{label!r} wants arguments, and compare() calls what it times without any: "
                "wrap it, as in lambda: f(x)."
            )
    rounds = whole_number(rounds, "rounds", 1)
    _need_seconds(min_time, "min_time")
    if not callable(clock):
        raise WorkbookError(
            f"clock is a function that returns seconds, not {type(clock).__name__}."
        )
    shuffler = random.Random(seed)
    order = list(candidates)
    times: dict[str, list[float]] = {label: [] for label in candidates}
    collecting = gc.isenabled()
    gc.disable()
    try:
        numbers = {label: _repetitions(candidates[label], min_time, clock) for label in order}
        for _ in range(rounds):
            shuffler.shuffle(order)
            depth = shuffler.randrange(_DEPTHS)
            for label in order:
                call, number = candidates[label], numbers[label]
                elapsed = _deeper(depth, functools.partial(_time, call, number, clock))
                times[label].append(elapsed / number)
    finally:
        if collecting:
            gc.enable()
    return Comparison({label: tuple(values) for label, values in times.items()})


def _takes_nothing(call: Callable[[], object]) -> bool:
    try:
        inspect.signature(call).bind()
    except TypeError:
        return False
    except ValueError:  # some functions that are not written in Python tell nothing
        pass
    return True


def _need_seconds(value: Any, name: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise WorkbookError(f"{name} is a number of seconds above 0, not {value!r}.")


def _time(call: Callable[[], object], number: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(number):
        call()
    return clock() - start


_DEPTHS = 40


def _deeper(depth: int, call: Callable[[], float]) -> float:
    """``call()``, with its frame further down on the stack: some 500 bytes for each ``depth``.

    A kernel that keeps sums on the stack can be several times slower at a few addresses of the
    stack: those with the same last 12 bits behave alike. The system draws where the stack begins
    once for each process, so no number of rounds from one place shows it. ``map`` is there because
    it is C, whose frames always lie on this stack.
    """
    if depth == 0:
        return call()
    return next(map(_deeper, [depth - 1], [call]))


def _repetitions(call: Callable[[], object], min_time: float, clock: Callable[[], float]) -> int:
    """How often to call for one timing of at least ``min_time``, as ``timeit`` finds it.

    A timing that is long enough is tried once more: an interruption can make one call look long.
    """
    call()
    number = 1
    while any((elapsed := _time(call, number, clock)) < min_time for _ in range(2)):
        # At most tenfold, since the first timings are short and their rate is uncertain.
        number *= min(10, max(2, round(1.2 * min_time / elapsed) if elapsed > 0 else 10))
    return number


# --- the same over fresh processes ----------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """One ratio from each of several fresh processes, one process or more."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise WorkbookError("A spread needs the ratio of at least one process.")

    @property
    def median(self) -> float:
        """The median over the processes."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def __str__(self) -> str:
        return (
            f"{self.median:.3g} ({self.low:.3g} to {self.high:.3g}): median (smallest to largest) "
            f"of {len(self.values)} fresh processes"
        )


_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_CALL = """
import importlib, json, sys
module, _, name = sys.argv[1].partition(":")
value = getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))
print(float(value))
"""


def compare_processes(
    spec: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    processes: int = 5,
    threads: int = 1,
    timeout: float = 600,
) -> Spread:
    """Measure one ratio in each of several fresh Python processes, one after another.

    ``spec`` is ``"package.module:function"`` (importable from the workbook's folder; it is called
    with ``arguments``, which must survive JSON, and returns the ratio) or Python source whose last
    printed line is the ratio. Each process runs in the workbook's folder with ``TVM_NUM_THREADS``
    set to ``threads`` and is stopped after ``timeout`` seconds.

    Raises :class:`WorkbookError` with the last line of a process that fails.
    """
    if not isinstance(spec, str) or "\0" in spec:
        raise WorkbookError(
            'compare_processes() takes "package.module:function" or Python source as a string: '
            "a fresh process cannot be handed a function."
        )
    processes = whole_number(processes, "processes", 1)
    threads = whole_number(threads, "threads", 1)
    _need_seconds(timeout, "timeout")
    try:
        passed = json.dumps(dict(arguments or {}))
    except (TypeError, ValueError) as error:
        raise WorkbookError(
            "arguments is a dictionary of what JSON can hold (numbers, strings, lists, ...): "
            f"{error}."
        ) from error
    if _FUNCTION.fullmatch(spec.strip()):
        command = ["-c", _CALL, spec.strip(), passed]
    else:
        command = ["-c", spec]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "TVM_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    values = []
    for index in range(1, processes + 1):
        which = f"process {index} of {processes}"
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise WorkbookError(f"The {which} was stopped after {timeout:g} s.") from error
        if done.returncode != 0:
            reason = _last_line(done.stderr) or f"exit status {done.returncode}"
            raise WorkbookError(f"The {which} failed: {reason}")
        values.append(_number(_last_line(done.stdout), which))
    return Spread(tuple(values))


def _number(line: str, which: str) -> float:
    try:
        value = float(line)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WorkbookError(
            f"The {which} should print its ratio on its last line, and that line is {line!r}."
        )
    return value


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _listed(labels: Mapping[str, object]) -> str:
    return ", ".join(map(repr, labels))


def human(seconds: float) -> str:
    """``seconds`` with three digits and a unit, as in ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
