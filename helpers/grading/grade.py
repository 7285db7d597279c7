"""Grade one submission: each hidden check alone, in a sandbox, compared outside of it."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from helpers.errors import WorkbookError
from helpers.grading import encoding, oracle
from helpers.grading.course import Lab, Question
from helpers.grading.hidden import Hidden
from helpers.grading.oracle import Known, Oracle
from helpers.grading.sandbox import LostError, Reply, Sandbox
from helpers.grading.submission import Answers, printable, read_answers

_T = TypeVar("_T")
MOST_TIMEOUTS = 2  # of one question: its further checks are then lost without a run
_LONGEST_DETAIL = 300
_KNOWN_ERRORS = {name for name, thing in vars(builtins).items() if isinstance(thing, type)} | {
    "WorkbookError",
    "TVMError",
    "InternalError",
    "DiagnosticError",
    "LinAlgError",
    "AxisError",
}

LIMITS = {
    "memory": "It took more memory than the grader allows.",
    "processes": "It started more processes than the grader allows.",
    "files": "It made more files than the grader allows.",
    "size": "What came out is larger than the grader takes.",
}
"""What is said of a request that ended at one of these limits."""


@dataclass(frozen=True)
class Check:
    """The verdict on one hidden check.

    ``kind`` is one of ``right``, ``wrong``, ``error``, ``time``, ``limit``, ``ended``,
    ``no value``. ``feedback`` is for the learner: nothing that the learner's code can choose is in
    it, or it could carry the hidden inputs out. ``detail`` is for the instructor.
    """

    tried: str
    weight: float
    kind: str
    feedback: str = ""
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the answer was right here."""
        return self.kind == "right"


@dataclass
class Verdict:
    """The verdict on one question. ``state`` is ``graded``, ``not attempted``, ``missing``,
    ``unreadable`` or ``by hand``."""

    question: str
    of: float
    state: str
    checks: list[Check] = field(default_factory=list)

    @property
    def points(self) -> float:
        """Points for what was passed, to three digits."""
        whole = sum(check.weight for check in self.checks)
        passed = sum(check.weight for check in self.checks if check.passed)
        return round(self.of * passed / whole, 3) if whole else 0.0


class Desk:
    """Where one worker grades: its sandboxes for one lab at a time, made when they are needed.

    The sandbox with learners' code serves one submission after the other as long as each of its
    requests has ended by itself and has left no process behind; else a new one is made.
    """

    def __init__(self, *, unsafe: bool = False) -> None:
        self.unsafe = unsafe
        self._lab: Lab | None = None
        self._sandbox: Sandbox | None = None
        self._judge: Sandbox | None = None
        self._own: dict[tuple[str, str], list[Known]] = {}

    def close(self) -> None:
        """End the sandboxes."""
        self._drop_sandbox()
        self._drop_judge()

    def grade(
        self, lab: Lab, data: bytes, known: Oracle, variant: str = ""
    ) -> tuple[list[Verdict], tuple[str, ...]]:
        """The verdicts on the questions of a notebook, and what is odd about it.

        ``variant`` is the learner's, ``""`` the common one.
        """
        if self._lab != lab:
            self.close()
            self._lab, self._own = lab, {}
        answers = read_answers(data, [question.name for question in lab.questions])
        if answers.unreadable:
            states = [
                Verdict(q.name, q.points, "by hand" if q.by_hand else "unreadable")
                for q in lab.questions
            ]
            return states, (answers.unreadable,)
        try:
            verdicts = _Submission(self, lab, answers, known, variant).verdicts()
        finally:
            if self._sandbox and not self._sandbox.clean:
                self._drop_sandbox()
        return verdicts, answers.notes

    def ask(self, request: dict[str, Any], seconds: float) -> Reply:
        """Ask the sandbox with learners' code; once more in a new one if it is lost."""
        assert self._lab is not None
        for _ in range(2):
            if self._sandbox is None:
                oracle.make_models(self._lab, unsafe=self.unsafe)
                self._sandbox = Sandbox(self._lab.cells, unsafe=self.unsafe)
            try:
                reply = self._sandbox.ask(request, seconds)
            except LostError:
                self._drop_sandbox()
                continue
            if not self._sandbox.usable:
                self._drop_sandbox()
            return reply
        return Reply("lost")

    def judge(self, question: str, number: int, value: str, known: Known) -> str:
        """``""`` when a value is right, else a sentence; in a sandbox without learners' code."""
        says = self._trusted(oracle.judge, question, number, value, known)
        return "what came out could not be examined" if says is None else says

    def own(self, question: str, variant: str) -> list[Known]:
        """What the answers to a question about a variant are, by check; worked out once."""
        if (question, variant) not in self._own:
            found = self._trusted(oracle.own, question, variant)
            if found is None:
                raise WorkbookError(f"The sandbox for the variant {variant!r} is lost.")
            self._own[question, variant] = found
        return self._own[question, variant]

    def _trusted(self, ask: Callable[..., _T], *arguments: Any) -> _T | None:
        """What ``ask`` gives in the sandbox without learners' code; ``None`` if that is lost."""
        assert self._lab is not None
        for _ in range(2):
            if self._judge is None:
                self._judge = Sandbox(self._lab.cells, bank=self._lab.checks, unsafe=self.unsafe)
            try:
                found = ask(self._judge, self._lab, *arguments)
            except LostError:
                self._drop_judge()
                continue
            if not self._judge.clean:
                self._drop_judge()
            return found
        return None

    def _drop_sandbox(self) -> None:
        if self._sandbox:
            self._sandbox.close()
        self._sandbox = None

    def _drop_judge(self) -> None:
        if self._judge:
            self._judge.close()
        self._judge = None


class _Submission:
    """One notebook, read, and what has been learnt about its answers so far."""

    def __init__(self, desk: Desk, lab: Lab, answers: Answers, known: Oracle, variant: str) -> None:
        self._desk, self._lab, self._known, self._variant = desk, lab, known, variant
        self._sources = answers.sources
        self._blank = {q.name: q.blank.strip() for q in lab.questions}
        self._harmful: set[str] = set()  # questions whose answers do not even run to their end

    def verdicts(self) -> list[Verdict]:
        return [self._verdict(question) for question in self._lab.questions]

    def _verdict(self, question: Question) -> Verdict:
        if question.by_hand:
            return Verdict(question.name, question.points, "by hand")
        if question.name not in self._sources:
            return Verdict(question.name, question.points, "missing")
        if not self._attempted(question.name):
            return Verdict(question.name, question.points, "not attempted")
        verdict = Verdict(question.name, question.points, "graded")
        for number, hidden in enumerate(self._lab.hidden(question.name)):
            lost = [check for check in verdict.checks if check.kind == "time"]
            hopeless = question.name in self._harmful or len(lost) >= MOST_TIMEOUTS
            if hopeless and verdict.checks:
                last = verdict.checks[-1]
                check = Check(hidden.tried, hidden.weight, last.kind, "As before; not tried again.")
            else:
                check = self._check(question, number, hidden)
            verdict.checks.append(check)
        return verdict

    def _attempted(self, name: str) -> bool:
        return self._sources.get(name, "").strip() not in ("", self._blank[name])

    def _check(self, question: Question, number: int, hidden: Hidden) -> Check:
        known = self._known[question.name][number]
        while True:
            reply = self._desk.ask(
                oracle.request(self._answers(question.name), question.name, hidden, known.inputs),
                hidden.timeout,
            )
            last, at = reply.last, reply.reached
            unfinished = not ({"value", "error", "no_value"} & last.keys())
            if unfinished and at in self._blank and at not in self._harmful:
                self._harmful.add(at)
                if at != question.name:
                    continue  # an earlier answer does not run: this one may do without it
            break
        if isinstance(value := last.get("value"), str):
            return self._compared(question, number, hidden, value)
        kind, feedback, detail = self._failure(reply, question.name, hidden)
        if mistake := known.raising(last):
            feedback += f" A known mistake raises the same: {mistake}."
        return Check(hidden.tried, hidden.weight, kind, feedback, detail)

    def _answers(self, upto: str) -> list[tuple[str, str]]:
        """The learner's answers up to a question, without blank ones and those that do not run."""
        names = [question.name for question in self._lab.questions if not question.by_hand]
        names = names[: names.index(upto) + 1]
        return [
            (name, self._sources[name])
            for name in names
            if self._attempted(name) and (name not in self._harmful or name == upto)
        ]

    def _compared(self, question: Question, number: int, hidden: Hidden, value: str) -> Check:
        """The verdict on a value that came out."""
        known = self._known[question.name][number]
        try:
            encoding.loads(value)
        except encoding.NotAValueError as error:
            feedback = "What came out is no value that can be graded."
            return Check(hidden.tried, hidden.weight, "no value", feedback, str(error))
        if hidden.own and self._variant:
            return self._compared_with_own(question, number, hidden, value)
        if oracle.same(value, known.expected, hidden):
            return Check(hidden.tried, hidden.weight, "right")
        says = "the value is not the right one"
        if oracle.needs_judge(hidden, known.expected):
            says = self._desk.judge(question.name, number, value, known)
            if not says:
                return Check(hidden.tried, hidden.weight, "right")
        feedback = f"{says[:1].upper()}{says[1:].rstrip('.')}."
        if mistake := known.mistake(value):
            feedback += f" A known mistake gives the same: {mistake}."
        return Check(hidden.tried, hidden.weight, "wrong", feedback)

    def _compared_with_own(
        self, question: Question, number: int, hidden: Hidden, value: str
    ) -> Check:
        """The verdict on a value about the learner's own variant."""
        known = self._desk.own(question.name, self._variant)[number]
        if oracle.same(value, known.expected, hidden):
            return Check(hidden.tried, hidden.weight, "right")
        if oracle.same(value, self._known[question.name][number].expected, hidden):
            feedback = f"This is right for the common variant, and not for {self._variant}."
            return Check(hidden.tried, hidden.weight, "wrong", feedback)
        feedback = "The value is not the right one."
        if mistake := known.mistake(value):
            feedback += f" A known mistake gives the same: {mistake}."
        return Check(hidden.tried, hidden.weight, "wrong", feedback)

    def _failure(self, reply: Reply, question: str, hidden: Hidden) -> tuple[str, str, str]:
        """(kind, feedback, detail) when no value came out."""
        last = reply.last
        if "no_value" in last:
            what = "What came out is of no type that can be graded"
            return "no value", f"{what}.", _detail(last["no_value"])
        if "error" in last:
            return "error", self._error(last, question), _detail(last.get("message", ""))
        if reply.status == "time":
            seconds = f"{hidden.timeout:g} s of processor time"
            return "time", f"It did not end in {seconds}, or waits for something.", ""
        if reply.status in LIMITS:
            return "limit", LIMITS[reply.status], ""
        how = reply.status if reply.status.startswith("SIG") else "it ended itself"
        return "ended", f"The process that ran the answer has ended ({how}).", ""

    def _unanswered(self, upto: str) -> str:
        """Why the lab's own blank answer was called: one sentence."""
        names = [question.name for question in self._lab.questions if not question.by_hand]
        names = names[: names.index(upto)]
        failed = [name for name in names if self._attempted(name) and name in self._harmful]
        blank = [name for name in names if not self._attempted(name)]
        why = []
        if blank:
            why.append(f"{', '.join(blank)} {'is' if len(blank) == 1 else 'are'} blank")
        if failed:
            why.append(f"{', '.join(failed)} did not run to the end")
        if not why:
            return "It needs a function that is asked for, and that no answer defines by its name."
        return f"It needs an earlier answer, and {', and '.join(why)}."

    def _error(self, last: dict[str, Any], question: str) -> str:
        """One sentence on an exception, of which the learner's code has chosen little."""
        name = str(last["error"])
        name = name if name in _KNOWN_ERRORS else "an exception of its own"
        if name == "NotImplementedError" and last.get("message") == "your code here":
            return self._unanswered(question)
        text = f"It raised {name}"
        place, line = last.get("in"), last.get("line")
        if isinstance(place, str) and place in self._sources and isinstance(line, int):
            lines = self._sources[place].splitlines()
            if 1 <= line <= len(lines):
                where = "the answer" if place == question else f"the answer to {place}"
                text += f", in line {line} of {where}: {printable(lines[line - 1].strip())[:120]}"
        if name in ("NameError", "ModuleNotFoundError"):
            text += " (the grader runs the cells of the lab and the answer cells, and no others)"
        return f"{text}."


def _detail(message: Any) -> str:
    return printable(str(message))[:_LONGEST_DETAIL]


def as_record(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The verdicts as JSON values."""
    return [{**asdict(verdict), "points": verdict.points} for verdict in verdicts]
