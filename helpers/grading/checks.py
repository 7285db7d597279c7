"""Public checks of a lab: what was tried, what was expected, what came out.

A check cell hands the learner's answer over and prints the verdict::

    checks.question(
        "q2",
        count_bytes,
        [
            ("count_bytes((1, 8), 'float32')", lambda f: f((1, 8), "float32"), 32),
            ("count_bytes((), 'float32')", lambda f: f((), "float32"), 4),
        ],
    )

A fourth element of a case explains wrong values that a known misconception leads to::

    (..., 32, [(8, "This counts the elements, not their bytes.")])

The checks are public: passing them means these cases are right, not that the answer is.
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
import re
import reprlib
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from helpers.errors import WorkbookError
from helpers.programs import Counterexample
from helpers.tvm_errors import told

# What was tried (shown to the learner), how it is computed from the answer, what must come out;
# then, if there are any, wrong values and the misconception that leads to each.
Case = (
    tuple[str, Callable[[Any], Any], Any]
    | tuple[str, Callable[[Any], Any], Any, Sequence[tuple[Any, str]]]
)

_LONGEST = 200  # characters of a value that are shown
_NOT_WRITTEN = "your code here"  # what the blank answers of a lab raise NotImplementedError with
_asked: dict[str, str] = {}  # the name of a function that was checked -> the question it answers


@dataclass(frozen=True)
class Outcome:
    """The verdict on one question; ``str()`` of it is what the learner reads.

    ``passed`` counts the checks before the first that fails: those behind it are not tried.
    ``missing`` says what must be written first, before more of the answer can be tried.
    """

    question: str
    total: int
    passed: int = 0
    attempted: bool = True
    failure: str = ""
    missing: str = ""

    def __str__(self) -> str:
        return f"Question {self.question}: {self._said()}"

    def _said(self) -> str:
        if not self.attempted:
            return "not attempted"
        passed = f"the first {self.passed} of {self.total} public checks passed"
        if self.missing:
            return f"{passed}. Then {self.missing}" if self.passed else self.missing
        if not self.failure:
            return f"public checks passed ({self.passed} of {self.total})"
        if not self.passed:
            first = f"the first of {self.total} public checks" if self.total > 1 else "its check"
            return f"{first} did not pass:\n{self.failure}"
        return f"{passed}, the next did not:\n{self.failure}"


def question(
    name: str, answer: Any, cases: Sequence[Case], *, rtol: float = 1e-5, atol: float = 1e-8
) -> None:
    """Run the public checks of one question and print the verdict; see :func:`judge`.

    Under nbgrader a verdict other than *passed* also raises ``AssertionError``: to nbgrader a cell
    that raises nothing is worth all its points.
    """
    _asked.update({function.__name__: name for function in _functions(answer)})
    outcome = judge(name, answer, cases, rtol=rtol, atol=atol)
    print(outcome)
    wrong = outcome.failure or outcome.missing or not outcome.attempted
    if os.environ.get("NBGRADER_EXECUTION") and wrong:
        raise AssertionError(str(outcome).splitlines()[0])


def judge(
    name: str, answer: Any, cases: Sequence[Case], *, rtol: float = 1e-5, atol: float = 1e-8
) -> Outcome:
    """Try the cases in order and stop at the first that fails.

    ``answer`` is a value, a function, or a mapping of several values by name. It counts as not
    attempted when it is ``None`` (a mapping: all of its values), or when the first case meets its
    ``raise NotImplementedError`` of the blank lab; that of another question is what is missing.
    Floats and arrays agree within ``atol + rtol * |expected|``, all else when equal and of the same
    kind. No exception of the learner's code leaves this function: it becomes one line with its
    type, message and place. Raises :class:`WorkbookError`, which says where, for an interrupt.
    """
    if answer is None or (
        isinstance(answer, Mapping) and answer and all(v is None for v in answer.values())
    ):
        return Outcome(name, len(cases), attempted=False)
    if isinstance(answer, Mapping):
        missing = [key for key, value in answer.items() if value is None]
        if missing:
            still = f"still None: {', '.join(map(str, missing))}"
            return Outcome(name, len(cases), missing=still)
    for passed, (tried, run, expected, *slips) in enumerate(cases):
        codes = getattr(answer, "__code__", None), getattr(run, "__code__", None)
        try:
            got = run(answer)
        except KeyboardInterrupt as error:
            where = told(error, *codes).removeprefix("KeyboardInterrupt").strip()
            hint = f" {where}. Does a loop there never end?" if where else "."
            raise WorkbookError(f"Question {name}: the check was interrupted{hint}") from None
        except (Exception, SystemExit) as error:
            other = _not_written(error, answer)
            if other:
                return Outcome(name, len(cases), passed, missing=other)
            if other is not None and passed == 0:
                return Outcome(name, len(cases), attempted=False)
            came_out = told(error, *codes)
        else:
            if agrees(got, expected, rtol=rtol, atol=atol):
                continue
            if isinstance(got, Counterexample) and expected is None:
                failure = f"  tried     {tried}\n{textwrap.indent(str(got), '  ')}"
                return Outcome(name, len(cases), passed, failure=failure)
            came_out = shown(got)
            if got is None and expected is not None:
                came_out += "  (nothing was returned: is a `return` missing?)"
            elif came_out == shown(expected):
                came_out += f"  ({_difference(got, expected, rtol, atol)})"
            for value, why in slips[0] if slips else ():
                if agrees(got, value, rtol=rtol, atol=atol):
                    came_out += f"\n  {textwrap.fill(why, 96, subsequent_indent='  ')}"
                    break
        failure = f"  tried     {tried}\n  expected  {shown(expected)}\n  came out  {came_out}"
        return Outcome(name, len(cases), passed, failure=failure)
    return Outcome(name, len(cases), len(cases))


def _functions(answer: Any) -> list[Any]:
    """The functions that an answer is, or consists of."""
    parts = answer.values() if isinstance(answer, Mapping) else [answer]
    return [
        part for part in map(inspect.unwrap, filter(callable, parts)) if inspect.isfunction(part)
    ]


def _not_written(error: BaseException, answer: Any) -> str | None:
    """Which other question's blank answer raised ``error``, in words; ``""`` for this one's.

    ``None`` for any other error. When the answer is blank itself, it does not matter that its check
    has called another one before.
    """
    if type(error) is not NotImplementedError:
        return None
    own = [code for function in _functions(answer) for code in _codes(function.__code__)]
    ran = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    if ran[-1] in own or (callable(answer) and not own):  # an object: its code is not known
        return ""
    if str(error) != _NOT_WRITTEN:
        return None
    called = any(code in own for code in ran)
    if not called and any(_NOT_WRITTEN in code.co_consts for code in own):
        return ""
    name = ran[-1].co_name
    place = f" (question {_asked[name].removeprefix('q')})" if name in _asked else ""
    caller = "your answer" if called else "its check"
    return f"{caller} calls {name}{place}, which is not written yet."


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def agrees(got: Any, expected: Any, *, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """Whether ``got`` is the expected value: same kind, shape and length; floats within tolerance.

    A whole number may be given in any numeric type, not as a ``bool``, and has no tolerance.
    """
    try:
        return _agrees(got, expected, rtol, atol)
    except Exception:  # a comparison that the learner's object does not survive is not a match
        return False


def _agrees(got: Any, expected: Any, rtol: float, atol: float) -> bool:
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray) or got.shape != expected.shape:
            return False
        if got.dtype.kind != expected.dtype.kind:
            return False
        if expected.dtype.kind not in "fc":
            return bool(np.array_equal(got, expected))
        return bool(np.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True))
    if isinstance(expected, (bool, np.bool_)):
        return isinstance(got, (bool, np.bool_)) and bool(got) == bool(expected)
    if isinstance(expected, numbers.Real):
        if isinstance(got, (bool, np.bool_)) or not isinstance(got, numbers.Real):
            return False
        if isinstance(expected, numbers.Integral):
            return bool(got == expected)
        return math.isclose(got, expected, rel_tol=rtol, abs_tol=atol)
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(expected)
            and all(_agrees(g, e, rtol, atol) for g, e in zip(got, expected, strict=True))
        )
    if isinstance(expected, Mapping):
        return (
            isinstance(got, Mapping)
            and got.keys() == expected.keys()
            and all(_agrees(got[key], expected[key], rtol, atol) for key in expected)
        )
    if isinstance(expected, str):  # TVM's own String is one, too
        return isinstance(got, str) and str.__eq__(expected, got)
    return type(got) is type(expected) and bool(got == expected)


def _difference(got: Any, expected: Any, rtol: float, atol: float) -> str:
    """Where two values differ that are shown alike: one is of another type, or both are long."""
    pairs: list[tuple[Any, Any, Any]] = []
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        pairs = [(repr(key), got[key], expected[key]) for key in expected if key in got]
    elif isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) != len(expected):
            return f"its length is {len(got)}, not {len(expected)}"
        pairs = [(k, *pair) for k, pair in enumerate(zip(got, expected, strict=True))]
    for place, mine, wanted in pairs:
        if not _agrees(mine, wanted, rtol, atol):
            return f"at {place}: {_difference(mine, wanted, rtol, atol)}"
    if type(got) is not type(expected):
        return f"of type {type(got).__name__}, not {type(expected).__name__}"
    return f"{shown(got)} instead of {shown(expected)}"


def shown(value: Any) -> str:
    """A short text of any value, on one line; an array with its shape and type."""
    try:
        if isinstance(value, np.ndarray):
            flat = np.array2string(value.ravel()[:6], separator=", ", precision=6)
            more = " first values" if value.size > 6 else ""
            return f"array of shape {value.shape}, {value.dtype},{more} {flat}"
        short = reprlib.Repr()
        short.maxstring = short.maxother = short.maxlong = _LONGEST
        short.maxlist = short.maxtuple = short.maxdict = short.maxset = 12
        text = re.sub(r" at 0x[0-9a-f]+", "", short.repr(value))  # no two runs have it in common
        return " ".join(text.split())[:_LONGEST]
    except Exception:  # the learner's own __repr__ may fail
        return f"a {type(value).__name__} that cannot be shown"
