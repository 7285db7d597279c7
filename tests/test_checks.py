"""What a learner reads under a check, for right, wrong, missing and broken answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import programs
from helpers.errors import WorkbookError
from helpers.grading import checks

TWICE = [
    ("twice(3)", lambda f: f(3), 6),
    ("twice(-1)", lambda f: f(-1), -2),
    ("twice(0.5)", lambda f: f(0.5), 1.0),
]


def text(answer, cases=TWICE):
    return str(checks.judge("q2", answer, cases))


def blank(n):
    raise NotImplementedError("your code here")


def unfinished(n):
    if n < 0:
        raise NotImplementedError("negative numbers")
    return 2 * n


def divides(n):
    return n / 0


def through_numpy(n):
    return np.zeros(2).reshape(3)


def test_the_verdict_is_printed(capsys):
    checks.question("q2", lambda n: 2 * n, TWICE)
    assert capsys.readouterr().out == "Question q2: public checks passed (3 of 3)\n"


@pytest.mark.parametrize("answer", [None, blank, {"kernels": None, "bytes": None}])
def test_a_blank_answer_is_not_attempted(answer):
    assert text(answer) == "Question q2: not attempted"


def test_the_first_failing_case_is_told():
    assert text(lambda n: abs(2 * n)) == (
        "Question q2: the first 1 of 3 public checks passed, the next did not:\n"
        "  tried     twice(-1)\n"
        "  expected  -2\n"
        "  came out  2"
    )


def test_a_known_slip_is_explained():
    cases = [("twice(3)", lambda f: f(3), 6, [(9, "This squares n."), (3, "This is n itself.")])]
    assert text(lambda n: n * n, cases).endswith("came out  9\n  This squares n.")
    assert text(lambda n: n, cases).endswith("came out  3\n  This is n itself.")
    assert text(lambda n: 7, cases).endswith("came out  7")
    assert text(lambda n: 2 * n, cases) == "Question q2: public checks passed (1 of 1)"


def test_a_forgotten_return_is_named():
    assert text(lambda n: None).endswith("None  (nothing was returned: is a `return` missing?)")


def test_a_value_still_missing_beside_another():
    assert text({"kernels": 3, "bytes": None}) == "Question q2: still None: bytes"


def test_only_checks_that_were_tried_are_counted():
    def told(answer, *cases):
        return text(answer, cases).splitlines()[0]

    right, wrong = ("f(1)", lambda f: f(1), 2), ("f(1) again", lambda f: f(1), 3)
    double = lambda n: 2 * n  # noqa: E731
    assert told(double, wrong) == "Question q2: its check did not pass:"
    assert told(double, wrong, right) == "Question q2: the first of 2 public checks did not pass:"
    assert told(double, right, right, wrong, right) == (
        "Question q2: the first 2 of 4 public checks passed, the next did not:"
    )


# --- an earlier question that is still blank -----------------------------------------------------


def earlier():
    raise NotImplementedError("your code here")


def later():
    return 2 * earlier()


def inside():
    return max(earlier() for _ in range(2))


NEEDS = [("later()", lambda f: f(), 2)]
WITH_ANOTHER = [("f alone", lambda f: f(1), 2), ("f and earlier", lambda f: f(1) + earlier(), 3)]


@pytest.mark.parametrize("answer", [later, inside])
def test_an_answer_that_calls_a_blank_one_names_it(answer, capsys, monkeypatch):
    monkeypatch.setattr(checks, "_asked", {})
    sentence = "your answer calls earlier, which is not written yet."
    assert text(answer, NEEDS) == f"Question q2: {sentence}"
    checks.question("q1", earlier, NEEDS)
    checks.question("q3", answer, NEEDS)
    assert capsys.readouterr().out == (
        "Question q1: not attempted\n"
        "Question q3: your answer calls earlier (question 1), which is not written yet.\n"
    )


def test_a_check_that_calls_a_blank_answer_names_it(monkeypatch):
    monkeypatch.setattr(checks, "_asked", {"earlier": "q1"})
    assert text(lambda n: 2 * n, WITH_ANOTHER) == (
        "Question q2: the first 1 of 2 public checks passed. "
        "Then its check calls earlier (question 1), which is not written yet."
    )
    assert "its check calls earlier" in text({"own": 5}, [("own", lambda _: earlier(), 5)])


def test_a_blank_answer_is_not_attempted_though_its_check_calls_another_one_first():
    cases = [("f after earlier", lambda f: f(earlier()), 2)]
    assert text(blank, cases) == "Question q2: not attempted"
    assert "its check calls earlier" in text(lambda n: n, cases)


def test_an_error_of_the_same_kind_that_is_no_blank_is_told():
    def careful(n):
        return unfinished(-n)

    assert "NotImplementedError: negative numbers" in text(careful)


def test_under_nbgrader_what_is_missing_is_no_pass(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    with pytest.raises(AssertionError, match="your answer calls earlier"):
        checks.question("q3", later, NEEDS)


# --- an interrupt --------------------------------------------------------------------------------


def test_an_interrupted_check_is_a_sentence_with_the_learners_own_line():
    def endless(n):
        while n:
            raise KeyboardInterrupt

    line = endless.__code__.co_firstlineno + 2
    with pytest.raises(WorkbookError) as raised:
        text(endless)
    assert str(raised.value) == (
        f"Question q2: the check was interrupted (line {line} of your cell: "
        "`raise KeyboardInterrupt`). Does a loop there never end?"
    )


class Printed:
    """Shown as a number, and none of Python's: as TVM's IntImm is."""

    def __repr__(self):
        return "4"


@pytest.mark.parametrize(
    ("got", "expected", "told"),
    [
        ((1, Printed()), (1, 4), "(at 1: of type Printed, not int)"),
        ({"a": Printed()}, {"a": 4}, "(at 'a': of type Printed, not int)"),
        ([0] * 30, [0] * 31, "(its length is 30, not 31)"),
        ([0] * 30, [0] * 29 + [1], "(at 29: 0 instead of 1)"),
    ],
)
def test_what_is_shown_alike_is_told_apart(got, expected, told):
    outcome = checks.judge("q", lambda: got, [("f()", lambda f: f(), expected)])
    assert str(outcome).endswith(told)


def test_an_exception_is_one_line_with_the_learners_own_line():
    last = text(divides).splitlines()[-1]
    line = divides.__code__.co_firstlineno + 1
    assert last == (
        "  came out  ZeroDivisionError: division by zero  "
        f"(line {line} of your cell: `return n / 0`)"
    )
    assert "np.zeros(2).reshape(3)`)" in text(through_numpy).splitlines()[-1]
    assert "NotImplementedError: negative numbers" in text(unfinished)


def test_an_error_with_frames_of_another_language_is_told_by_its_last_line():
    def fails(n):
        raise ValueError("Traceback (most recent call last):\n  1: f()\nTVMError: no such name")

    assert "came out  ValueError: no such name" in text(fails)


def test_an_error_of_relax_names_the_operator_and_not_all_its_fields():
    def fails(n):
        raise ValueError(
            'In ir.Op(span=None, ty=ir.Type(span=None), name="relax.add", description="", '
            'arguments=(ir.ArgumentInfo(name="x1", type_info="Tensor", description="The first."),),'
            ' attrs_type_key="", num_inputs=2, support_level=10), the first input shape at dim 1 is'
            " T.int64(3) and the second input shape at dim 1 is T.int64(5)."
        )

    assert (
        "came out  ValueError: In relax.add, the first input shape at dim 1 is 3 "
        "and the second input shape at dim 1 is 5."
    ) in text(fails)


def test_an_answer_of_the_wrong_kind_does_not_escape():
    assert "TypeError: 'int' object is not callable" in text(5)
    assert "SystemExit" in text(lambda n: exit())
    assert "RecursionError" in text(endless)


def endless(n):
    return endless(n)


class Hostile:
    def __eq__(self, other):
        return True

    def __repr__(self):
        raise ValueError

    __hash__ = None


class Refuses:
    def __eq__(self, other):
        raise ValueError

    __hash__ = None


class Text(str):
    """A string of another class, as TVM's own is, with its own idea of equality."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize("value", [Hostile(), Refuses()])
def test_an_object_with_its_own_idea_of_equality_does_not_pass(value):
    assert "the first of 3 public checks did not pass:" in text(lambda n: value)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (3, 3),
        (np.int64(3), 3),
        (3.0, 3),
        (np.float32(0.1), 0.1),
        (0.1 + 0.2, 0.3),
        ([1, 2], (1, 2)),
        ({"a": (1, 2.0)}, {"a": [1, 2.0]}),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan])),
        (np.float64(1e-9), 0.0),
        ("add", "add"),
        (Text("add"), "add"),
        (np.bool_(True), True),
        (None, None),
    ],
)
def test_what_agrees(got, expected):
    assert checks.agrees(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (True, 1),
        (1, True),
        ("3", 3),
        (4, 3),
        (1_000_001, 1_000_000),
        (1_000_001.0, 1_000_000),
        (float("nan"), 1.0),
        (1.0001, 1.0),
        ([1, 2, 3], [1, 2]),
        ({1, 2}, [1, 2]),
        ({"a": 1}, {"b": 1}),
        (np.ones((2, 1)), np.ones((1, 2))),
        (np.ones(2), np.ones(2, int)),
        ([1.0, 1.0], np.ones(2)),
        (np.array([1, 2]), np.array([1, 3])),
        (np.ones(2), 1.0),
        (None, 0),
        ("Add", "add"),
        (Text("Add"), "add"),
    ],
)
def test_what_does_not_agree(got, expected):
    assert not checks.agrees(got, expected)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_agrees_with_itself_and_is_shown_on_one_short_line(value):
    assert checks.agrees(value, value)
    assert not checks.agrees([value], value) or value == [value]
    assert len(checks.shown(value).splitlines()) <= 1
    assert len(checks.shown(value)) <= 200


def test_an_array_is_shown_with_its_shape():
    assert checks.shown(np.arange(12.0).reshape(3, 4)) == (
        "array of shape (3, 4), float64, first values [0., 1., 2., 3., 4., 5.]"
    )
    assert checks.shown(Hostile()) == "<Hostile instance>"
    assert "0x" not in checks.shown([object(), test_what_agrees])
    assert checks.shown(np.array([Hostile()])) == "a ndarray that cannot be shown"


def test_a_counterexample_is_shown_in_full(relay):
    """It is an answer to "which program breaks the pass?", where none is expected."""
    x = relay.var("x", shape=(2,))
    program = programs.Program(relay.Function([x], x), {"x": np.array([1.0, 2.0], "float32")})
    found = programs.Counterexample(program, "It returned NoneType, not a module.")
    cases = [("all is well", lambda f: None, None), ("200 random programs", lambda f: found, None)]
    assert str(checks.judge("q3", abs, cases)) == (
        "Question q3: the first 1 of 2 public checks passed, the next did not:\n"
        "  tried     200 random programs\n"
        "  It breaks this program:\n"
        "    fn (%x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        "      %x\n"
        "    }\n"
        "    x = [1, 2]\n"
        "  It returned NoneType, not a module."
    )
