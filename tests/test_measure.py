"""Paired timing, on a clock that the tests turn themselves."""

import ctypes
import gc
import os
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import WorkbookError
from helpers.measure import Comparison, Spread, compare, compare_processes


class Clock:
    """Time that passes only when something is run, and slows down as a busy machine does."""

    def __init__(self, drift=1.0):
        self.now = 0.0
        self.drift = drift
        self.calls = []

    def __call__(self):
        return self.now

    def task(self, label, seconds):
        def run():
            self.calls.append(label)
            self.now += seconds * self.drift ** len(self.calls)

        return run


def timed(clock, **options):
    tasks = {"slow": clock.task("slow", 0.008), "fast": clock.task("fast", 0.001)}
    return compare(tasks, clock=clock, **options)


def test_the_ratio_is_to_the_first_and_the_speedup_its_inverse():
    seen = timed(Clock(), rounds=5)
    assert seen.baseline == "slow"
    assert seen.ratio("slow") == 1
    assert seen.ratio("fast") == pytest.approx(1 / 8)
    assert seen.speedup("fast") == pytest.approx(8)
    assert seen.seconds == pytest.approx({"slow": 0.008, "fast": 0.001})
    assert seen.spread("fast") == pytest.approx((1 / 8, 1 / 8))


def test_rounds_run_at_different_depths_of_the_stack():
    frames = (ctypes.c_void_p * 2000)()
    seen = []

    def task():
        seen.append(ctypes.CDLL(None).backtrace(frames, len(frames)))
        clock.now += 1

    clock = Clock()
    compare({"a": task, "b": task}, rounds=7, clock=clock)
    pairs = [*zip(seen[-14::2], seen[-13::2], strict=True)]
    assert all(one == other for one, other in pairs)  # both candidates of a round at the same one
    assert len(set(pairs)) > 4


def test_each_timing_fills_the_minimum_time():
    clock = Clock()
    timed(clock, rounds=1, min_time=0.5)
    # The last timings: 63 calls of 8 ms or more, 500 calls of 1 ms or more, in one of two orders.
    first = clock.calls[-1]
    run = next(i for i, label in enumerate(reversed(clock.calls)) if label != first)
    assert run * {"slow": 0.008, "fast": 0.001}[first] >= 0.5


def test_rounds_are_interleaved_in_an_order_that_a_seed_repeats():
    def order(seed):
        clock = Clock()
        tasks = {label: clock.task(label, 1.0) for label in "abc"}
        compare(tasks, rounds=8, min_time=0.5, seed=seed, clock=clock)
        rounds = clock.calls[-24:]
        return [tuple(rounds[i : i + 3]) for i in range(0, 24, 3)]

    assert order(1) == order(1)
    assert all(sorted(one) == ["a", "b", "c"] for one in order(1))
    assert len(set(order(1))) > 2


def test_a_drifting_machine_hardly_moves_the_ratio():
    """Five times slower at the end than at the start, yet the paired ratio stays near 1/8."""
    clock = Clock(drift=1.008)
    seen = timed(clock, rounds=21, min_time=0.01)
    assert max(seen.times["slow"]) > 5 * min(seen.times["slow"])
    assert seen.ratio("fast") == pytest.approx(1 / 8, rel=0.1)


def test_a_clock_with_coarse_ticks_is_given_enough_calls():
    """At ticks of 15.6 ms a call of 0.1 ms takes no time at all, until it is repeated enough."""
    clock = Clock()
    tasks = {"one": clock.task("one", 1e-4), "two": clock.task("two", 2e-4)}
    seen = compare(tasks, rounds=5, min_time=0.5, clock=lambda: clock.now // 0.0156 * 0.0156)
    assert seen.ratio("two") == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_off_inside_and_as_before_after(enabled):
    states = []
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError):
            compare({"a": lambda: states.append(gc.isenabled()), "b": lambda: 1 / 0})
        assert set(states) == {False}
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize(
    ("candidates", "options", "sentence"),
    [
        ({"a": print}, {}, "two or more"),
        ({}, {}, "two or more"),
        ({"a": print, "b": 3}, {}, "'b' is int"),
        (None, {}, "two or more"),
        ([print, print], {}, "two or more"),
        ({1: print, 2: print}, {}, "1 is int"),
        ({"a": print, "b": lambda x: x}, {}, "'b' wants arguments"),
        ({"a": print, "b": print}, {"rounds": 0}, "rounds is a whole number, 1 or more, not 0"),
        ({"a": print, "b": print}, {"rounds": 1.5}, "rounds is a whole number"),
        ({"a": print, "b": print}, {"rounds": "3"}, "rounds is a whole number, .* not '3'"),
        ({"a": print, "b": print}, {"min_time": 0}, "min_time is a number of seconds above 0"),
        ({"a": print, "b": print}, {"min_time": float("nan")}, "min_time .* not nan"),
        ({"a": print, "b": print}, {"min_time": float("inf")}, "min_time .* not inf"),
        ({"a": print, "b": print}, {"min_time": "1"}, "min_time .* not '1'"),
        ({"a": print, "b": print}, {"clock": 3}, "clock is a function"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(candidates, options, sentence):
    with pytest.raises(WorkbookError, match=sentence):
        compare(candidates, **options)


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({}, "equally many times"),
        ({"a": (), "b": ()}, "equally many times"),
        ({"a": (1.0,), "b": (1.0, 2.0)}, "equally many times"),
        ({"a": (1.0,), "b": (0.0,)}, "'b' took no time"),
    ],
)
def test_times_that_give_no_ratio_are_refused(times, sentence):
    with pytest.raises(WorkbookError, match=sentence):
        Comparison(times)


def test_a_clock_that_stands_still_in_one_timing_gets_one_sentence():
    ticks = iter(
        [0.0, 1.0] * 5
    )  # four for the numbers of calls, one round of two, the last at once
    with pytest.raises(WorkbookError, match="raise min_time"):
        compare({"a": int, "b": int}, rounds=1, clock=lambda: next(ticks, 9.0))


def test_one_interrupted_call_does_not_set_the_number_of_calls():
    now, calls = 0.0, {"a": 0, "b": 0}

    def call(label):
        nonlocal now
        calls[label] += 1
        now += 1.0 if label == "a" and calls["a"] == 2 else 1e-4  # interrupted when first timed

    labels = ("a", "b")
    seen = compare({x: lambda x=x: call(x) for x in labels}, rounds=3, clock=lambda: now)
    assert calls["a"] > 3 * 0.02 / 1e-4
    assert seen.ratio("b") == pytest.approx(1)


def test_an_unknown_label_names_the_known_ones():
    with pytest.raises(WorkbookError, match=r"'b'.*'a', 'c'"):
        Comparison({"a": (1.0,), "c": (2.0,)}).ratio("b")


def test_the_text_names_median_and_range():
    seen = Comparison({"unfused": (8.0, 6.0, 9.0), "fused": (1e-3, 2e-3, 3e-3)})
    assert str(seen).splitlines() == [
        "unfused        8 s  compared with",
        "fused         2 ms  0.000333 (0.000125 to 0.000333) of unfused's time",
        "median (smallest to largest) of 3 interleaved rounds",
    ]


@given(st.lists(st.tuples(st.floats(1e-6, 10), st.floats(1e-6, 10)), min_size=1, max_size=9))
def test_the_ratio_lies_in_its_spread_and_ignores_the_unit(pairs):
    first, second = zip(*pairs, strict=True)
    seen = Comparison({"a": first, "b": second})
    low, high = seen.spread("b")
    assert low <= seen.ratio("b") <= high
    other = Comparison({"a": tuple(8 * t for t in first), "b": tuple(8 * t for t in second)})
    assert other.ratio("b") == seen.ratio("b")


# --- fresh processes ------------------------------------------------------------------------------


def test_every_process_is_fresh_and_has_the_threads_asked_for():
    source = "import os; print('noise'); print(os.getpid()); print()"
    pids = compare_processes(source, processes=3).values
    assert len(set(pids)) == 3
    assert os.getpid() not in pids
    threads = "import os; print(os.environ['TVM_NUM_THREADS'])"
    assert compare_processes(threads, processes=1).values == (1.0,)
    assert compare_processes(threads, processes=1, threads=2).values == (2.0,)


def test_a_function_is_imported_and_called_with_its_arguments():
    spread = compare_processes("statistics:median", arguments={"data": [3, 9, 4]}, processes=2)
    assert spread.values == (4.0, 4.0)


def test_the_workbooks_own_modules_can_be_imported_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "import helpers.measure; print(helpers.measure.Spread((2.0, 3.0, 7.0)).median)"
    assert compare_processes(source, processes=1).values == (3.0,)


@pytest.mark.parametrize(
    ("spec", "options", "sentence"),
    [
        ("raise ValueError('no such size')", {}, "process 1 of 2 failed: ValueError: no such size"),
        ("no.such.module:f", {}, "ModuleNotFoundError: No module named 'no'"),
        ("math:nothing", {}, "has no attribute 'nothing'"),
        ("import os; os._exit(3)", {}, "exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", {}, "exit status -11"),
        ("print('about 8')", {}, "'about 8'"),
        ("pass", {}, "last line, and that line is ''"),
        ("import time; time.sleep(60)", {"timeout": 0.2}, "stopped after 0.2 s"),
        ("print('nan')", {}, "last line, and that line is 'nan'"),
        ("print(1)", {"processes": 0}, "processes is a whole number, 1 or more, not 0"),
        ("print(1)", {"processes": "3"}, "processes is a whole number, 1 or more, not '3'"),
        ("print(1)", {"threads": "a"}, "threads is a whole number, 1 or more, not 'a'"),
        ("print(1)", {"timeout": 0}, "timeout is a number of seconds above 0, not 0"),
        ("math:sqrt", {"arguments": {"x": {1}}}, "what JSON can hold"),
        ("math:sqrt", {"arguments": [3]}, "what JSON can hold"),
        (print, {}, "cannot be handed a function"),
        (None, {}, "as a string"),
    ],
)
def test_a_failing_process_gets_one_sentence(spec, options, sentence):
    with pytest.raises(WorkbookError) as caught:
        compare_processes(spec, **{"processes": 2, **options})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_process_has_no_spread():
    with pytest.raises(WorkbookError, match="at least one process"):
        Spread(())


def test_the_spread_names_its_numbers():
    spread = Spread((8.1, 7.7, 8.6))
    assert (spread.low, spread.median, spread.high) == (
        7.7,
        statistics.median([7.7, 8.1, 8.6]),
        8.6,
    )
    assert str(spread) == "8.1 (7.7 to 8.6): median (smallest to largest) of 3 fresh processes"
