"""What right and known wrong answers give on the hidden checks of a lab.

Computed once for a lab and a secret, in a sandbox, from the reference solution and its mutants
(``WRONG`` in ``checks.py``). Nothing of it ever enters a sandbox that runs a learner's code.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.errors import WorkbookError
from helpers.grading import checks, encoding
from helpers.grading.course import Lab, Question
from helpers.grading.hidden import Hidden, mutated
from helpers.grading.sandbox import LostError, Reply, Sandbox

MUTANT_SECONDS = 5.0
"""Processor time for a known wrong answer: one that takes longer gives nothing to compare with."""

JUDGE_SECONDS = 10.0
"""Processor time for a judge, at least: an answer may have less, so that it cannot try things."""


@dataclass(frozen=True)
class Known:
    """One hidden check: its inputs, and values as texts (see :mod:`encoding`)."""

    inputs: dict[str, Any]
    expected: str
    mistakes: dict[str, str]  # what is wrong -> the value that it leads to
    errors: dict[str, str] = field(default_factory=dict)  # -> the exception that it leads to

    def mistake(self, value: str) -> str:
        """The known mistake that leads to this value, or ``""``."""
        return next((what for what, text in self.mistakes.items() if same(text, value)), "")

    def raising(self, last: dict[str, Any]) -> str:
        """The known mistake that leads to this exception, or ``""``: see :func:`raised`."""
        error = raised(last)
        return next((what for what, text in self.errors.items() if text == error), "")


Oracle = dict[str, list[Known]]


def request(
    answers: Sequence[tuple[str, str]], question: str, hidden: Hidden, inputs: dict[str, Any]
) -> dict[str, Any]:
    """What to ask a sandbox for one hidden check."""
    return {
        "answers": [list(answer) for answer in answers],
        "question": question,
        "probe": hidden.probe,
        "inputs": inputs,
    }


def own(sandbox: Sandbox, lab: Lab, question: str, variant: str) -> list[Known]:
    """What the right and the wrong answers to a question about a learner's variant are.

    One for each hidden check. ``sandbox`` has run no learner's code. Raises :class:`LostError` when
    it has gone, :class:`WorkbookError` when the reference gives no value.
    """
    hidden = lab.hidden(question)
    *before, (_, right) = right_answers(lab, question)
    wrong = lab.bank.wrong.get(question, {})
    sources = [right, *(mutated(right, changes) for changes in wrong.values())]
    wanted = {
        "answers": [list(answer) for answer in (*before, *lab.drawing(question))],
        "question": question,
        "inputs": {},
        "variant": variant,
        "own": {"sources": sources, "probes": [check.probe for check in hidden]},
    }
    reply = sandbox.ask(wanted, max(check.timeout for check in hidden))
    expected, *mistaken = reply.last.get("values") or [None]
    if not expected:
        raise WorkbookError(
            f"Lab {lab.name}, {question}: the reference gives no value for the variant {variant!r} "
            f"({_what(reply)})."
        )
    found = []
    for number, check in enumerate(hidden):
        given = {what: row[number] for what, row in zip(wrong, mistaken, strict=True) if row}
        mistakes = {w: v for w, v in given.items() if not same(v, expected[number], check)}
        found.append(Known({}, expected[number], mistakes))
    return found


def right_answers(lab: Lab, upto: str) -> list[tuple[str, str]]:
    """The reference answers up to and with a question: an answer may need earlier ones."""
    found: list[tuple[str, str]] = []
    for question in lab.questions:
        if not question.by_hand:
            found.append((question.name, question.right))
        if question.name == upto:
            break
    return found


def judge(sandbox: Sandbox, lab: Lab, question: str, number: int, value: str, known: Known) -> str:
    """``""`` when a value is right, else a sentence. ``sandbox`` has run no learner's code.

    Raises :class:`LostError` when the sandbox has gone.
    """
    hidden = lab.hidden(question)[number]
    wanted = {
        "answers": [list(answer) for answer in right_answers(lab, lab.questions[-1].name)],
        "question": question,
        "inputs": known.inputs,
        "judge": {
            "bank": sandbox.bank,
            "question": question,
            "number": number,
            "value": value,
            "expected": known.expected,
        },
    }
    says = sandbox.ask(wanted, max(hidden.timeout, JUDGE_SECONDS)).last.get("says")
    return says if isinstance(says, str) else "what came out could not be examined"


def raised(last: dict[str, Any]) -> str:
    """An exception that a sandbox tells, as a text: class, place and message; else ``""``.

    The class alone says little: a wrong name, a wrong type and much else raise the same in answers
    that have nothing in common. So an exception counts only with a message, and where it came
    through an answer.
    """
    place, message = last.get("in"), str(last.get("message", ""))
    if "error" not in last or not place or not message or last["error"] in _SAY_LITTLE:
        return ""
    return f"{last['error']} in {place}: {re.sub('0x[0-9a-f]+', '', message)}"


_SAY_LITTLE = ("NameError", "NotImplementedError", "RecursionError", "SyntaxError")
"""Exceptions of any slip, or of an answer that is missing."""


def needs_judge(hidden: Hidden, expected: str) -> bool:
    """Whether a value is compared in a sandbox: it is a program, or has a check of its own."""
    return hidden.verify is not None or encoding.holds_program(encoding.loads(expected))


def same(text: str, other: str, hidden: Hidden | None = None) -> bool:
    """Whether two texts stand for values that agree, programs only when written alike."""
    if text == other:
        return True
    try:
        value, expected = encoding.loads(text), encoding.loads(other)
    except encoding.NotAValueError:
        return False
    if encoding.holds_program(value) or encoding.holds_program(expected):
        return False
    tolerance = {"rtol": hidden.rtol, "atol": hidden.atol} if hidden else {}
    return checks.agrees(value, expected, **tolerance)


def consult(lab: Lab, secret: bytes, *, unsafe: bool = False) -> Oracle:
    """Run the reference solution and its mutants on all hidden checks of a lab.

    Raises :class:`WorkbookError` when the reference solution does not pass one of them.
    """
    found: Oracle = {}
    with Sandbox(lab.cells, bank=lab.checks, keep=True, unsafe=unsafe) as sandbox:
        for question in lab.questions:
            if not question.by_hand:
                checked = enumerate(lab.hidden(question.name))
                found[question.name] = [
                    _known(sandbox, lab, question, number, hidden, secret)
                    for number, hidden in checked
                ]
    _run_here.add(lab)
    return found


_run_here: set[Lab] = set()
_running = threading.Lock()


def make_models(lab: Lab, *, unsafe: bool = False) -> None:
    """Make the models that a lab needs, once in a process, and keep them for its sandboxes."""
    with _running:
        if lab not in _run_here:
            Sandbox(lab.cells, keep=True, unsafe=unsafe).close()
            _run_here.add(lab)


def _known(
    sandbox: Sandbox, lab: Lab, question: Question, number: int, hidden: Hidden, secret: bytes
) -> Known:
    inputs = hidden.inputs(secret, lab.name, question.name, number)
    where = f"Lab {lab.name}, {question.name}, check {number} ({hidden.tried})"
    try:
        answers = right_answers(lab, question.name)
        reply = sandbox.ask(request(answers, question.name, hidden, inputs), hidden.timeout)
        expected = _value(reply)
        if not isinstance(expected, str):
            raise WorkbookError(f"{where}: the reference gives no value ({_what(reply)}).")
        known = Known(inputs, expected, {})
        if hidden.verify and (says := judge(sandbox, lab, question.name, number, expected, known)):
            raise WorkbookError(f"{where}: the reference does not pass ({says}).")
        for what, changes in lab.bank.wrong.get(question.name, {}).items():
            wrong = [*answers[:-1], (question.name, mutated(question.right, changes))]
            asked = request(wrong, question.name, hidden, inputs)
            last = sandbox.ask(asked, min(hidden.timeout, MUTANT_SECONDS)).last
            if isinstance(value := last.get("value"), str):
                if not same(value, expected, hidden):
                    known.mistakes[what] = value
            elif error := raised(last):
                known.errors[what] = error
    except LostError as error:
        raise WorkbookError(f"{where}: the sandbox is lost ({error}).") from error
    return known


def _value(reply: Reply) -> Any:
    return reply.last.get("value")


def _what(reply: Reply) -> str:
    last = reply.last
    return str(last.get("message") or last.get("no_value") or reply.status)
