"""The arithmetic of costs by hand and by properties; the measuring on two small programs."""

import math
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, cost
from helpers.cost import Bill, Observation

# --- the bill ------------------------------------------------------------------------------------


def test_a_bill_adds_up_by_hand():
    bill = Bill(compile=2.0, load=0.5, first=0.25, infer=0.125)
    assert bill.startup == 0.625
    assert bill.fixed == 2.625
    assert bill.total(1) == 2.75  # compiled, loaded, and the first inference
    assert bill.total(3) == 3.0
    assert bill.total(np.array([1, 3])).tolist() == [2.75, 3.0]
    assert replace(bill, compile=0.0).total(3) == 1.0


@pytest.mark.parametrize(
    ("graph", "vm", "expected"),
    [
        # fixed 2 and 1, a gain of 1/512 a run: both cost the same at N = 512
        (Bill.line(2.0, 1 / 1024), Bill.line(1.0, 3 / 1024), 513),
        (Bill.line(2.0, 1.0), Bill.line(1.0, 1.75), 2),  # crosses at 4/3
        (Bill.line(0.3, 0.1), Bill.line(0.0, 0.2), 4),  # at 3, but for rounding
        (Bill.line(1.0, 1.0), Bill.line(1.0, 2.0), 1),
        (Bill.line(1.0, 1.0), Bill.line(1.0, 1.0), None),
        (Bill.line(2.0, 2.0), Bill.line(1.0, 1.0), None),
        (Bill.line(2.0, 1.0), Bill.line(1.0, 1.0), None),
    ],
)
def test_break_even_by_hand(graph, vm, expected):
    assert cost.break_even(graph, vm) == expected
    assert cost.break_even(vm, graph) == expected


milliseconds = st.integers(0, 10_000).map(lambda n: n / 1024)  # sums of these are exact


@settings(deadline=None)
@given(milliseconds, milliseconds, milliseconds, milliseconds)
def test_break_even_is_where_the_totals_cross(fixed_a, infer_a, fixed_b, infer_b):
    a, b = Bill.line(fixed_a, infer_a), Bill.line(fixed_b, infer_b)
    n = cost.break_even(a, b)
    high, low = (a, b) if (a.fixed, -a.infer) > (b.fixed, -b.infer) else (b, a)
    if n is None:
        assert all(high.total(many) >= low.total(many) for many in (0, 1, 10**6, 10**9))
    else:
        assert n >= 1
        assert high.total(n) < low.total(n)
        assert high.total(n - 1) >= low.total(n - 1)
        assert cost.cheapest({"high": high, "low": low}, n) == "high"


def test_the_formulas_one_often_sees_never_break_even():
    """T_graph = init + N t_g, T_vm = init + load + N (t_v + t_d), where t_g < t_v + t_d."""
    assert cost.break_even(Bill.line(1.0, 0.002), Bill.line(1.5, 0.003)) is None


# --- the fit -------------------------------------------------------------------------------------

kernels_and_seconds = st.lists(
    st.tuples(st.integers(1, 200), st.floats(1e-6, 1e-1)),
    min_size=4,
    max_size=8,
    unique_by=lambda pair: pair[0],
)


def planted(pairs, fixed, dispatch, executor="vm", noise=()):
    factors = [1 + error for error in noise] or [1.0] * len(pairs)
    return [
        Observation(f"m{k}", executor, k, own, factor * (fixed + dispatch * k + own))
        for (k, own), factor in zip(pairs, factors, strict=True)
    ]


@settings(deadline=None)
@given(kernels_and_seconds, st.floats(0, 1e-4), st.floats(1e-8, 1e-5))
def test_the_fit_recovers_what_was_planted(pairs, fixed, dispatch):
    fit = cost.fit(planted(pairs, fixed, dispatch))
    for k, own in [*pairs, (1000, 0.0), (0, 1e-3)]:
        wanted = fixed + dispatch * k + own
        assert fit["vm"].seconds(k, own) == pytest.approx(wanted, rel=1e-3)
    # Where a model is hardly more than its kernels, the rest of it is known with less precision.
    if all(own < dispatch for _, own in pairs):
        assert fit["vm"].dispatch == pytest.approx(dispatch, rel=1e-3)


def test_the_fit_recovers_f_and_t_d_of_each_executor():
    pairs = [(2, 1e-5), (10, 2e-5), (40, 4e-4), (100, 1e-3)]
    fit = cost.fit(planted(pairs, 2e-6, 2e-8, "graph") + planted(pairs, 1e-6, 1.2e-6, "vm"))
    assert fit["graph"].fixed == pytest.approx(2e-6)
    assert fit["graph"].dispatch == pytest.approx(2e-8)
    assert fit["vm"].fixed == pytest.approx(1e-6)
    assert fit["vm"].dispatch == pytest.approx(1.2e-6)
    assert fit["vm"].factor == pytest.approx(1)
    prediction = fit.predict("vm", 50, 1e-3)
    assert prediction.seconds == pytest.approx(1e-6 + 50 * 1.2e-6 + 1e-3)
    total = fit.predict_total("vm", 50, 1e-3, n=1000, fixed=2.0)
    assert total.seconds == pytest.approx(2.0 + 1000 * prediction.seconds)


@settings(deadline=None)
@given(
    kernels_and_seconds,
    st.lists(st.floats(-0.2, 0.2), min_size=8, max_size=8),
)
def test_nothing_is_negative_and_no_other_choice_fits_better(pairs, noise):
    observed = planted(pairs, 1e-6, 1e-6, noise=noise[: len(pairs)])
    fit = cost.fit(observed)
    found = fit["vm"]
    assert min(found.fixed, found.dispatch) >= 0
    assert found.factor >= 1

    def squares(fixed, dispatch):
        return sum(
            ((fixed + dispatch * o.dispatches + o.kernel_seconds) / o.infer_seconds - 1) ** 2
            for o in observed
        )

    best = squares(found.fixed, found.dispatch)
    for fixed in (0.0, 1e-6, 0.9 * found.fixed, 1.1 * found.fixed):
        for dispatch in (0.0, 1e-6, 0.9 * found.dispatch, 1.1 * found.dispatch):
            assert best <= squares(fixed, dispatch) + 1e-9
    assert best == pytest.approx(sum(fit.error(o) ** 2 for o in observed))


def test_the_interval_is_the_largest_error_of_leaving_one_out():
    """Without kernels' time and with equal k per T, each fit is a straight line through two points.

    k = 1, 2, 3 and T = 1, 2, 6: the fits to two points are, by hand, 1 k (predicts 3 for 6),
    f = 0, t_d = 1.8182 (least relative squares through 0; predicts 3.6364 for 2) and
    f = 0, t_d = 1.2 (predicts 1.2 for 1). The largest ratio is 6 / 3 = 2.
    """
    observed = [Observation("m", "graph", k, 0.0, t) for k, t in ((1, 1.0), (2, 2.0), (3, 6.0))]
    assert cost.fit(observed)["graph"].factor == pytest.approx(2.0)


def test_an_interval_holds_its_prediction():
    observed = planted([(2, 1e-5), (10, 2e-5), (40, 4e-4)], 1e-6, 1e-6, noise=[0.1, -0.1, 0.05])
    prediction = cost.fit(observed).predict("vm", 20, 1e-4)
    assert prediction.low < prediction.seconds < prediction.high
    assert prediction.seconds in prediction
    assert 2 * prediction.high not in prediction
    assert prediction.low * prediction.high == pytest.approx(prediction.seconds**2)


def test_a_fit_that_cannot_tell_its_terms_apart_is_refused():
    with pytest.raises(WorkbookError, match="no observation"):
        cost.fit([])
    pairs = [(4, 1e-6), (9, 1e-5)]
    with pytest.raises(WorkbookError, match="three observations"):
        cost.fit(planted(pairs, 0, 1e-6))
    with pytest.raises(WorkbookError, match="left out"):
        cost.fit(planted([(4, 1e-6), (4, 1e-5), (9, 1e-6)], 0, 1e-6))
    fit = cost.fit(planted([*pairs, (20, 1e-5)], 0, 1e-6))
    with pytest.raises(WorkbookError, match="'aot', only on vm"):
        fit.predict("aot", 1, 1e-6)


# --- lengths -------------------------------------------------------------------------------------

TRAFFIC = [20] * 6 + [60] * 3 + [100]


def linear(length):
    return float(length)


def test_policies_by_hand():
    found = cost.policies(
        TRAFFIC, linear, lambda n: 3.0 * n, build=50.0, vm_build=80.0, edges=[64, 128]
    )
    rows = {
        name: (policy.edges, policy.builds, policy.build_seconds, policy.run_seconds)
        for name, policy in found.items()
    }
    assert rows == {
        "padded": ((100,), 1, 50.0, 1000.0),
        "buckets": ((64, 128), 2, 100.0, 9 * 64 + 128.0),
        "per length": ((20, 60, 100), 3, 150.0, 400.0),
        "dynamic": ((), 1, 80.0, 1200.0),
    }
    assert found["buckets"].total == 804
    wider = cost.policies(TRAFFIC, linear, build=lambda n: n / 2, longest=512, edges=[512, 100])
    assert (wider["padded"].build_seconds, wider["padded"].run_seconds) == (256, 5120)
    assert wider["buckets"].edges == (100,)  # nothing needs the bucket of 512
    assert "dynamic" not in wider


def test_the_best_buckets_by_hand():
    # A build of 50: 20 apart (6 * 80 saved), 60 and 100 apart would save 3 * 40.
    assert cost.best_edges(TRAFFIC, linear, build=50.0) == (20, 60, 100)
    assert cost.best_edges(TRAFFIC, linear, build=130.0) == (20, 100)
    assert cost.best_edges(TRAFFIC, linear, build=10_000.0) == (100,)


traffics = st.lists(st.integers(1, 40), min_size=1, max_size=30)
curves = st.builds(cost.Curve, *[st.floats(0, 10)] * 3)


@settings(deadline=None, max_examples=60)
@given(traffics, curves, st.floats(0, 100))
def test_the_best_buckets_are_the_best_of_all(lengths, static, build):
    assume(len(set(lengths)) <= 6)
    best = cost.policies(lengths, static, build=build)
    *others, top = sorted(set(lengths))
    totals = [
        cost.policies(lengths, static, build=build, edges=[*some, top])["buckets"].total
        for count in range(len(others) + 1)
        for some in combinations(others, count)
    ]
    assert best["buckets"].total == pytest.approx(min(totals))


@settings(deadline=None)
@given(traffics, curves, curves, st.integers(1, 5), st.floats(0.1, 100))
def test_policies_are_ordered_and_grow_with_the_traffic(lengths, static, dynamic, more, build):
    one = cost.policies(lengths, static, dynamic, build=build, vm_build=build)
    many = cost.policies(lengths * more, static, dynamic, build=build, vm_build=build)
    for name, policy in one.items():
        assert many[name].total >= policy.total * (1 - 1e-9)
        if name != "buckets":  # the edges are chosen anew for more traffic
            assert many[name].run_seconds == pytest.approx(more * policy.run_seconds)
            assert many[name].builds == policy.builds
    assert many["buckets"].builds >= one["buckets"].builds
    # Padding runs longest and builds least; the best buckets are no worse than either end.
    assert one["per length"].run_seconds <= one["padded"].run_seconds * (1 + 1e-9)
    least = min(one["per length"].total, one["padded"].total)
    assert one["buckets"].total <= least * (1 + 1e-9)


@settings(deadline=None)
@given(st.floats(0, 1e-3), st.floats(1e-9, 1e-4), st.floats(1e-9, 1e-6))
def test_a_curve_through_few_lengths_finds_the_others(a, b, c):
    truth = cost.Curve(a, b, c)
    found = cost.curve([20, 64, 128, 512], [truth(n) for n in (20, 64, 128, 512)])
    for length in (20, 37, 256, 400):
        assert found(length) == pytest.approx(truth(length), rel=1e-3)
    assert found(np.array([20, 40])).shape == (2,)


# --- the choice ----------------------------------------------------------------------------------


def test_the_choice_by_hand():
    times, lack = {"graph": 2.0, "vm": 3.0}, {"graph": 1.0, "vm": 0.0}
    first, second = cost.choose(times, lack, 0.5)
    assert (first.executor, first.score) == ("vm", 0.75)  # 0.5 * 1.5 + 0
    assert (second.executor, second.score, second.time) == ("graph", 1.0, 1.0)  # 0.5 * 1 + 0.5 * 1
    # 1.5 w = 1: both cost the same at w = 2/3
    assert cost.choose(times, lack, 0.66)[0].executor == "vm"
    assert cost.choose(times, lack, 0.67)[0].executor == "graph"


def test_what_cannot_run_is_never_chosen():
    ranked = cost.choose({"graph": math.inf, "vm": 3.0}, {"graph": 0.0, "vm": 1.0}, 0.0)
    assert [choice.executor for choice in ranked] == ["vm", "graph"]
    with pytest.raises(WorkbookError, match="No executor"):
        cost.choose({"graph": math.inf}, {"graph": 0.0}, 0.5)


shares = st.floats(0, 1)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-6, 10), shares), min_size=1, max_size=4),
    shares,
    st.floats(1e-3, 1e3),
)
def test_the_unit_of_time_decides_nothing(executors, weight, unit):
    times = {str(i): seconds for i, (seconds, _) in enumerate(executors)}
    lack = {str(i): f for i, (_, f) in enumerate(executors)}
    here = cost.choose(times, lack, weight)
    there = cost.choose({name: unit * t for name, t in times.items()}, lack, weight)
    scores = {choice.executor: choice.score for choice in there}
    for choice in here:
        assert scores[choice.executor] == pytest.approx(choice.score)
    assert here[0].score == min(choice.score for choice in here)
    fastest = cost.choose(times, lack, 1.0)[0]
    assert times[fastest.executor] == min(times.values())


def test_inflexibility_is_the_share_of_needs_not_served():
    needs = {"any length": 2.0, "loops": 1.0, "small memory": 1.0}
    serves = {"graph": ["small memory"], "vm": ["any length", "loops"], "none": []}
    found = cost.inflexibility(needs, serves)
    assert found == {"graph": 0.75, "vm": 0.25, "none": 1.0}
    with pytest.raises(WorkbookError, match="vm serves 'size', which is none of the needs"):
        cost.inflexibility(needs, {"vm": ["size"]})
    with pytest.raises(WorkbookError, match="add up to more than 0"):
        cost.inflexibility({"loops": 0}, serves)


# --- wrong arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Bill(-1, 0, 0, 0), "compile is a number, 0 or more, not -1"),
        (lambda: Bill(1, 0, 0, math.nan), "infer is a number, 0 or more, not nan"),
        (lambda: Bill(1, 0, "2", 0), "first is a number, 0 or more, not '2'"),
        (lambda: Bill.line(1, 1).total(-1), "number of inferences is 0 or more"),
        (lambda: cost.cheapest({}, 1), "no bill to choose from"),
        (lambda: Observation("m", "vm", 1, 0.0, 0.0), "infer_seconds is a number, above 0"),
        (lambda: Observation("m", "vm", 1.5, 0.0, 1.0), "dispatches is a whole number"),
        (lambda: cost.curve([1, 2], [1.0, 2.0]), "three different lengths"),
        (lambda: cost.curve([1, 2, 2], [1.0, 2.0, 2.0]), "three different lengths"),
        (lambda: cost.curve([1, 2, 3], [1.0, 2.0, 0.0]), "seconds is a number, above 0"),
        (lambda: cost.policies([], linear, build=1), "one request or more"),
        (lambda: cost.policies([0], linear, build=1), "a length is a whole number, 1 or more"),
        (lambda: cost.policies([9], linear, build=1, longest=8), "length 9 does not fit into"),
        (lambda: cost.policies([9], linear, build=1, edges=[4]), "length 9 does not fit into"),
        (lambda: cost.policies([9], linear, build=-1), "build is a number, 0 or more"),
        (lambda: cost.choose({"vm": 1}, {"vm": 0}, 2), "weight is a number from 0 to 1"),
        (lambda: cost.choose({"vm": 1}, {"graph": 0}, 0), "of the same executors"),
        (lambda: cost.choose({}, {}, 0), "one or more"),
        (lambda: cost.choose({"vm": 0}, {"vm": 0}, 0), "T of vm is a number of seconds above 0"),
        (lambda: cost.choose({"vm": 1}, {"vm": 3}, 0), "F of vm is a number from 0 to 1"),
    ],
)
def test_a_wrong_argument_gets_one_sentence(call, sentence):
    with pytest.raises(WorkbookError, match=sentence):
        call()


# --- measuring -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(relay):
    """Two layers and a reshape, which is no kernel."""
    from helpers import modules

    x, w = relay.var("x", shape=(1, 16)), relay.const(np.full((16, 16), 0.1, "float32"))
    y = relay.nn.dense(relay.nn.dense(x, w), w)
    return modules.typed(relay.Function([x], relay.reshape(y, (4, 4))))


def test_observing_all_three_executors(small):
    from helpers import build

    inputs = {"x": np.ones((1, 16), "float32")}
    compiled = [build.compile(small, executor) for executor in ("graph", "aot", "vm")]
    together = cost.observe_together(compiled, "two layers", rounds=2, **inputs)
    for one, seen in zip(compiled, together, strict=True):
        assert (seen.name, seen.executor) == ("two layers", one.executor)
        assert seen.dispatches == len(one.kernels) == 2
        assert 0 < seen.kernel_seconds < 0.1
        assert 0 < seen.infer_seconds < 0.1
    assert together[1].kernel_seconds == together[0].kernel_seconds
    assert cost.observe(compiled[2], rounds=1, **inputs).executor == "vm"
    with pytest.raises(WorkbookError, match="for the graph executor, which are the same"):
        cost.observe(compiled[1], rounds=1, **inputs)
    with pytest.raises(WorkbookError, match="kernels of IRModule"):
        cost.observe(small, rounds=1, **inputs)


@pytest.mark.parametrize("executor", ["graph", "vm"])
def test_kernels_are_timed_with_their_calls(small, executor):
    from helpers import build, kernel_times

    compiled = build.compile(small, executor)
    calls = kernel_times.calls(compiled, {"x": np.full((1, 16), 2.0, "float32")})
    assert sum(call.count for call in calls) == len(compiled.kernels) == 2
    assert sorted(call.kernel for call in calls) == sorted(set(compiled.kernels))
    # Real buffers: the last one is the product of the input and the weights.
    assert calls[0].arrays[-1].numpy() == pytest.approx(np.full((1, 16), 3.2))
    measured = kernel_times.measure(compiled, rounds=1, x=np.ones((1, 16), "float32"))
    assert [time.calls for time in measured] == [call.count for call in calls]
    assert all(0 < time.seconds < 0.1 and time.total >= time.seconds for time in measured)


def test_a_loop_is_timed_once_for_each_kernel_and_type():
    from helpers import build, counters, kernel_times, use_tvm, zoo

    use_tvm("relay", quiet=True)
    model = zoo.load("lstm", hidden=32, sample_length=6)
    compiled = build.compile(model, "vm")
    calls = kernel_times.calls(compiled, model.inputs)
    assert sum(call.count for call in calls) == counters.count(compiled, **model.inputs).dispatches
    assert max(call.count for call in calls) >= 6


class Scripted:
    """A TVM module whose timings are given: clock and processor, in seconds of a call."""

    def __init__(self, *timings):
        self.timings, self.numbers, self.now = list(timings), [], 0.0

    def time_evaluator(self, name, device, number, repeat, min_repeat_ms=0):
        def evaluate():
            by_clock, of_processor = self.timings.pop(0)
            self.numbers.append(number)
            self.now += (number + 1) * of_processor
            return SimpleNamespace(results=[by_clock])

        return evaluate


def test_the_best_timing_counts_and_an_interrupted_one_does_not(monkeypatch):
    from helpers import kernel_times

    # TVM chooses the number in the first one; the second is interrupted, the third is not.
    module = Scripted((4e-5, 0), (9e-5, 2e-5), (1e-5, 2e-5), (8e-5, 8e-5))
    monkeypatch.setattr(kernel_times.time, "process_time", lambda: module.now)
    repeated = kernel_times.Repeated(module, "run", None, ())
    seen = []
    for _ in range(3):
        repeated.time()
        seen.append(repeated.best)
    assert seen == pytest.approx([2e-5, 1e-5, 1e-5])
    assert module.numbers == [1, 25, 50, 100]  # as many as last a millisecond


def test_a_measured_bill_has_all_terms(small):
    bill = cost.bill(small, "graph", inputs={"x": np.ones((1, 16), "float32")})
    assert min(bill.compile, bill.load) > bill.infer > 0
    assert bill.total(1) == pytest.approx(bill.compile + bill.load + bill.first)
    with pytest.raises(WorkbookError, match="inputs="):
        cost.bill(small)
