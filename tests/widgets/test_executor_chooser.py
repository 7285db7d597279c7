"""The executor chooser: costs by hand and by helpers.cost, and the widgets driven."""

import html
import re

import ipywidgets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import WorkbookError, cost
from helpers.cost import Bill
from helpers.widgets import executor_chooser as chooser

LENGTHS = (10, 20, 40)
STATIC = chooser.bills(LENGTHS, 2.0, (0.01, 0.02, 0.04))  # a millisecond for each token
DYNAMIC = chooser.bills(LENGTHS, 5.0, (0.015, 0.03, 0.06))  # one and a half
HELD = {10: 1e6, 20: 2e6, 40: 4e6}
TRAFFIC = {"mixed": [10] * 6 + [20] * 3 + [40], "10 only": [10] * 10}


@pytest.fixture(scope="module")
def service():
    return chooser.any_length(STATIC, DYNAMIC, HELD, 3e6)


@pytest.fixture(scope="module")
def camera():
    bills = {"graph": Bill(3, 0.01, 0.03, 0.01), "vm": Bill(1, 0.02, 0.0201, 0.0201)}
    return chooser.one_length(bills, {"graph": 1e6, "vm": 2e6})


# --- what candidates cost ------------------------------------------------------------------------


def test_candidates_by_hand(service):
    found = service.candidates(TRAFFIC["mixed"], 1000)
    padded, buckets, dynamic = found["padded"], found["buckets"], found["dynamic"]
    assert (padded.edges, padded.builds, padded.held) == ((40,), 1, 4e6)
    assert padded.infer == pytest.approx(0.04)
    assert padded.total(1000) == pytest.approx(2.0 + 0.005 + 40)
    assert (buckets.edges, buckets.builds, buckets.held) == ((10, 20, 40), 3, 7e6)
    assert buckets.infer == pytest.approx(0.6 * 0.01 + 0.3 * 0.02 + 0.1 * 0.04)
    assert (buckets.compile, buckets.load) == (pytest.approx(6), pytest.approx(0.015))
    assert (dynamic.edges, dynamic.builds, dynamic.held) == ((), 1, 3e6)
    assert dynamic.total(1000) == pytest.approx(5.005 + 1.5 * 1000 * buckets.infer)


def test_few_requests_do_not_pay_for_buckets(service):
    found = service.candidates(TRAFFIC["mixed"], 10)
    assert found["buckets"].edges == (40,)
    assert found["buckets"].total(10) == pytest.approx(found["padded"].total(10))


@settings(deadline=None)
@given(st.lists(st.integers(10, 40), min_size=1, max_size=30), st.integers(1, 10**7))
def test_buckets_are_never_worse_than_padding_or_other_edges(lengths, n):
    made = chooser.any_length(STATIC, DYNAMIC, HELD, 3e6)
    found = made.candidates(lengths, n)
    best = found["buckets"].total(n)
    assert best <= found["padded"].total(n) * (1 + 1e-9)
    each = made.candidates(lengths, n, sorted(set(lengths)))["buckets"]
    assert each.builds == len(set(lengths))
    assert best <= each.total(n) * (1 + 1e-9)


def test_first_runs_and_parts(camera):
    found = camera.candidates([1], 100)
    assert found["graph"].parts(100) == pytest.approx(
        {"compile": 3, "load": 0.01, "first run": 0.02, "inferences": 1}
    )
    assert found["graph"].total(100) == Bill(3, 0.01, 0.03, 0.01).total(100)
    assert found["vm"].builds == 1


def test_choice_weighs_totals_and_bytes(service):
    n = 1000
    found = service.candidates(TRAFFIC["mixed"], n)
    totals = {name: one.total(n) for name, one in found.items()}
    for weight in chooser.WEIGHTS:
        score = {
            name: weight * totals[name] / min(totals.values()) + (1 - weight) * one.held / 7e6
            for name, one in found.items()
        }
        ranked = chooser.chosen(found, n, weight)
        assert ranked[0].executor == min(score, key=score.get)
        assert [one.score for one in ranked] == pytest.approx(sorted(score.values()))


def test_changes_agree_with_break_even(camera, service):
    bills = camera.bills
    crossing = cost.break_even(bills["graph"], bills["vm"])
    assert chooser.changes(camera, [1]) == [(1, "vm"), (crossing, "graph")]
    found = chooser.changes(service, TRAFFIC["mixed"])
    assert found[0] == (1, "padded")
    for start, name in found[1:]:
        for n, expected in ((start - 1, False), (start, True)):
            made = service.candidates(TRAFFIC["mixed"], n)
            assert (min(made, key=lambda one: made[one].total(n)) == name) == expected
    assert chooser.changes(service, TRAFFIC["10 only"]) == [(1, "padded")]


def test_bill_of_a_compiled_model(relay):
    from helpers import build

    x = relay.var("x", shape=(4,))
    one = build.compile(relay.Function([x], relay.exp(x)))
    with pytest.raises(WorkbookError, match="has not run yet"):
        chooser.bill(one, 1e-6)
    one.run(x=np.ones(4, "float32"))
    made = chooser.bill(one, 1e-9)
    assert (made.compile, made.load) == (one.times["compile"], one.times["load"])
    assert made.first == one.times["first_run"]
    assert chooser.bill(one, 5.0).startup == made.load  # no less than a later run


def test_what_cannot_be_chosen_from(service):
    with pytest.raises(WorkbookError, match="of the same executors"):
        chooser.one_length({"graph": Bill(1, 1, 1, 1)}, {"vm": 1.0})
    with pytest.raises(WorkbookError, match="of the same lengths"):
        chooser.any_length(STATIC, DYNAMIC, {10: 1.0}, 1.0)
    two = {length: STATIC[length] for length in (10, 20)}
    with pytest.raises(WorkbookError, match="three different lengths"):
        chooser.any_length(two, DYNAMIC, {10: 1.0, 20: 1.0}, 1.0)
    with pytest.raises(WorkbookError, match="a service and a traffic"):
        chooser.Chooser({"a": service}, {}, {})


# --- the widgets ---------------------------------------------------------------------------------


class Driven:
    """An explorer whose controls are found by what is written on them."""

    def __init__(self, *arguments, **settings):
        self.box = chooser.explorer(*arguments, **settings)
        rows = [row for row in self.box.children if isinstance(row, ipywidgets.HBox)]
        self.controls = {one.description: one for row in rows for one in row.children}
        self.said, self.drawn = [x for x in self.box.children if isinstance(x, ipywidgets.HTML)][:2]

    def move(self, **values):
        names = {"n": "N, requests", "weight": "λ, weight of the time", "kind": "Lengths"}
        for name, value in values.items():
            self.controls[names.get(name, "Model")].value = value
        return html.unescape(re.sub("<[^>]*>", "\n", self.said.value)).strip()


@pytest.fixture(scope="module")
def driven(service, camera):
    slower = chooser.any_length(
        {k: Bill(4, 0.01, 2 * bill.infer, 2 * bill.infer) for k, bill in STATIC.items()},
        DYNAMIC,
        HELD,
        3e6,
    )
    return Driven({"text": service, "camera": camera}, TRAFFIC, {"text": slower}, n=1000)


def test_words_have_the_totals_and_the_choice(driven, service):
    for kind, lengths in TRAFFIC.items():
        for n in chooser.REQUESTS:
            found = service.candidates(lengths, n)
            for weight in (0, 0.5, 1):
                said = driven.move(model="text", kind=kind, n=n, weight=weight)
                best = chooser.chosen(found, n, weight)[0].executor
                assert said.startswith(f"E* = {best} for text, lengths {kind}, N = {n:,}, ")
                for name, one in found.items():
                    total = chooser._seconds(one.total(n))
                    assert f"\n{name}: {total} (compile" in said
                    assert f"{name}, inferences:" in driven.drawn.value
                (label,) = re.findall(r">([^<]*)= E\*<", driven.drawn.value)
                assert label.strip() == chooser._seconds(found[best].total(n))


def test_each_move_changes_the_picture(driven):
    driven.move(model="text", kind="mixed", n=1000, weight=0.9)
    seen = {driven.drawn.value}
    for change in ({"n": 10**6}, {"kind": "10 only"}, {"weight": 0.0, "kind": "mixed", "n": 1000}):
        driven.move(**change)
        seen.add(driven.drawn.value)
    driven.move(model="camera")
    seen.add(driven.drawn.value)
    assert len(seen) == 5


def test_bars_are_in_proportion(driven, service):
    driven.move(model="text", kind="mixed", n=3000, weight=1)
    found, widths = service.candidates(TRAFFIC["mixed"], 3000), {}
    for wide, name in re.findall(
        r'width="([\d.]+)" height="[\d.]+" fill="[^"]+"><title>(\w+),', driven.drawn.value
    ):
        widths[name] = widths.get(name, 0) + float(wide)
    shares = [widths[name] / one.total(3000) for name, one in found.items()]
    assert shares == pytest.approx([shares[0]] * 3, rel=0.001)


def test_measured_points_are_of_the_same_builds(driven, service):
    said = driven.move(model="text", kind="mixed", n=1000, weight=0.9)
    edges = service.candidates(TRAFFIC["mixed"], 1000)["buckets"].edges
    infer = (6 * 0.02 + 3 * 0.04 + 1 * 0.08) / 10
    total = chooser._seconds(3 * (4 + 0.01) + 1000 * infer)
    assert len(edges) == 3
    assert f"3 builds, measured {total}, 7 MB." in said
    assert driven.drawn.value.count("measured") >= 3
    driven.move(model="camera")
    assert "measured" not in driven.drawn.value


def test_break_even_is_marked(driven, camera):
    crossing = cost.break_even(camera.bills["graph"], camera.bills["vm"])
    said = driven.move(model="camera", n=1000, weight=1)
    assert f"By time alone: vm up to N = {crossing - 1:,}, graph from N = {crossing:,} on." in said
    assert f">N = {crossing:,}</text>" in driven.drawn.value
    assert "always one length" in said


def test_static_form_is_made_of_the_same_states(service):
    made = chooser.Chooser({"text": service}, TRAFFIC, {})
    text = chooser.alt_text(made, "text", "mixed")
    for n in (300, 3_000, 300_000):
        for name, one in service.candidates(TRAFFIC["mixed"], n).items():
            assert f"{name} {chooser._seconds(one.total(n))} with {one.builds} build" in text
    assert made.state("text", "mixed", 300, 1).ranges() in text
    bands = chooser.bands(made, "text", "mixed", 3000)
    assert (bands[0][1], bands[-1][2]) == (0, 1)
    for name, low, high in bands:
        assert made.state("text", "mixed", 3000, low).best == name
        assert made.state("text", "mixed", 3000, high).best == name
    chooser.figure(made, "text", "mixed").canvas.draw()
