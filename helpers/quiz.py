"""Quiz questions and predictions: the banks, the verdicts, and both as plain text.

The questions of ``notebooks/NN_topic.ipynb`` are in ``notebooks/quiz/NN_topic.yaml``. In a kernel
``ask`` shows a form (:mod:`helpers.widgets.quiz_form`); ``make quiz`` asks in a terminal
(:mod:`helpers.revision`).
"""

from __future__ import annotations

import difflib
import math
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from helpers import quiz_record
from helpers.errors import WorkbookError

QUIZ = Path(__file__).resolve().parent.parent / "notebooks" / "quiz"
KINDS = ("single", "multiple", "number")
DIFFICULTIES = ("easy", "medium", "hard")
_WIDTH = 88


@dataclass(frozen=True)
class Option:
    """One option of a question, with the reason why it is right or wrong."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Slip:
    """A wrong number that a known slip leads to, and what the slip is."""

    value: float
    why: str


@dataclass(frozen=True)
class Question:
    """One entry of a bank; see ``docs/authoring.md`` for the fields."""

    id: str
    kind: str
    question: str
    rests_on: str
    difficulty: str
    belief: str = ""
    options: tuple[Option, ...] = ()
    answer: float | None = None
    tolerance: float = 0.0
    unit: str = ""
    why: str = ""
    slips: tuple[Slip, ...] = ()
    code: str = ""
    often_said: str = ""
    syllabus: str = ""

    @property
    def letters(self) -> str:
        """The letters of the options: ``"ABCD"`` for four."""
        return "ABCDEFGH"[: len(self.options)]


# --- banks ---------------------------------------------------------------------------------------


def load(path: Path) -> list[Question]:
    """The questions of one bank. Raises :class:`WorkbookError` when the file is not a bank."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
        return [_question(entry) for entry in entries]
    except (OSError, yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise WorkbookError(f"The quiz bank {path.name} cannot be read: {reason}") from error


def _question(entry: Mapping[str, Any]) -> Question:
    made = dict(entry)
    made["options"] = tuple(Option(**option) for option in made.get("options") or ())
    made["code"] = (made.get("code") or "").rstrip()
    made["slips"] = tuple(Slip(**slip) for slip in made.get("slips") or ())
    return Question(**made)


def validate(bank: Iterable[Question], topic: str) -> list[str]:
    """What is wrong with the bank of the lesson ``NN_topic``, one sentence each."""
    problems = []
    questions = list(bank)
    number = topic.split("_")[0]
    ids = [question.id for question in questions]
    problems += [f"{i}: the id is used twice." for i in sorted(set(ids)) if ids.count(i) > 1]
    if not 3 <= len(questions) <= 8:
        problems.append(f"{topic}: {len(questions)} questions instead of 3 to 8.")
    for question in questions:
        problems += [f"{question.id}: {text}" for text in _faults(question, number)]
    return problems


def _faults(question: Question, number: str) -> Iterable[str]:
    if not re.fullmatch(rf"{number}-[1-9]\d*", str(question.id)):
        yield f"the id is not {number}- and a number."
    if question.kind not in KINDS:
        yield f"the kind is {question.kind!r}, not one of {', '.join(KINDS)}."
    if question.difficulty not in DIFFICULTIES:
        yield f"the difficulty is {question.difficulty!r}, not one of {', '.join(DIFFICULTIES)}."
    if not question.rests_on:
        yield "it does not say which cell or experiment it rests on."
    if question.code and question.kind == "multiple":
        yield "code prints one thing: the kind is single or number."
    if question.syllabus and not re.fullmatch(r"[PE]([1-9]|10)", question.syllabus):
        yield f"the syllabus has no question {question.syllabus!r}: P1 to P10, E1 to E10."
    if question.kind == "number":
        if not _is_number(question.answer):
            yield "the answer is not a number."
        if not question.why:
            yield "it gives no reason."
        for slip in question.slips:
            if not slip.why:
                yield f"the slip {slip.value} has no reason."
            elif _is_number(question.answer) and _hits(question, slip.value):
                yield f"the slip {slip.value} is within the tolerance of the answer."
        return
    right = sum(option.right for option in question.options)
    if not 2 <= len(question.options) <= 8:
        yield f"it has {len(question.options)} options."
    if question.kind == "single" and right != 1:
        yield f"{right} options are right instead of one."
    if question.kind == "multiple" and not 1 <= right < len(question.options):
        yield f"{right} of {len(question.options)} options are right: at least one, and not all."
    texts = [option.text for option in question.options]
    if len(set(texts)) < len(texts):
        yield "two options say the same."
    for letter, option in zip(question.letters, question.options, strict=False):
        if not str(option.why).strip():
            yield f"option {letter} has no reason."


# --- asking --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What is said of an answer, and whether all of it is right.

    ``reasons`` are pairs of the letter they are about, which may be empty, and a sentence or two.
    """

    right: bool
    said: str
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """All of it as plain text, wrapped."""
        lines = [self.said]
        for letter, reason in self.reasons:
            lead, rest = (f"  {letter}  ", "     ") if letter else ("  ", "  ")
            lines.append(_wrapped(reason, lead, rest))
        return "\n".join(lines)


def ask(which: str, answer: Any = None, *, folder: Path = QUIZ) -> None:
    """Show a question (``"03-1"``) or all of a lesson (``"03"``); with an answer, judge it.

    A notebook shows a form to answer in, or, without a kernel, the questions with folded answers;
    elsewhere they are printed. An answer given here is a letter (``"B"``), several (``"A, C"``) or
    a number, as the question asks; the verdict and the reason of what was chosen are printed.
    Raises :class:`WorkbookError` when there is no such question or option.
    """
    which = str(which)
    if answer is not None:
        question = find(which, folder)
        verdict = judge(question, answer)
        quiz_record.note(question.id, verdict.right)
        print(verdict.text)
        return
    questions = lesson(which, folder) if _is_lesson(which) else [find(which, folder)]
    if _in_kernel():
        from helpers.widgets import quiz_form  # needs ipywidgets, which only a notebook has

        quiz_form.show(questions)
    else:
        print(as_text(questions))


def lesson(number: str, folder: Path = QUIZ) -> list[Question]:
    """The questions of lesson ``"03"``. Raises :class:`WorkbookError` when there is none."""
    banks = {path.stem.split("_")[0]: path for path in sorted(folder.glob("*.yaml"))}
    if number not in banks:
        raise WorkbookError(
            f'There are no questions of lesson "{number}", only of {_range(banks)}.'
        )
    return load(banks[number])


def find(question_id: str, folder: Path = QUIZ) -> Question:
    """The question ``"03-1"``. Raises :class:`WorkbookError`, which names the nearest."""
    if _is_lesson(question_id):
        first = lesson(question_id, folder)[0].id
        raise WorkbookError(
            f"Lesson {question_id} has several questions: say which one you answer, as in "
            f'quiz.ask("{first}", "B").'
        )
    known: dict[str, Question] = {}
    number = question_id.split("-")[0]
    for path in sorted(folder.glob("*.yaml")):
        if path.stem.split("_")[0] == number:
            known |= {question.id: question for question in load(path)}
    if question_id in known:
        return known[question_id]
    names = list(known) or [path.stem.split("_")[0] + "-1" for path in folder.glob("*.yaml")]
    near = difflib.get_close_matches(question_id, names, n=1, cutoff=0.0)
    hint = f' The nearest is "{near[0]}".' if near else ""
    raise WorkbookError(f'There is no quiz question "{question_id}".{hint}')


def _is_lesson(text: str) -> bool:
    return bool(re.fullmatch(r"\d\d", text))


def _range(banks: Iterable[str]) -> str:
    numbers = sorted(banks)
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else ", ".join(numbers)


def _in_kernel() -> bool:
    """Whether a notebook's kernel runs this, which can show more than text."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


def as_text(questions: Iterable[Question]) -> str:
    """Questions as plain text, without their answers."""
    return "\n\n\n".join(f"{asked(question)}\n\n{_how(question)}" for question in questions)


def asked(question: Question) -> str:
    """A question, its code and its options as plain text."""
    parts = [_wrapped(f"Question {question.id}. {question.question.strip()}")]
    if question.code:
        parts.append(textwrap.indent(question.code, "    "))
    if question.options:
        options = zip(question.letters, question.options, strict=True)
        lines = [
            _wrapped(option.text.strip(), f"  {letter}  ", "     ") for letter, option in options
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _how(question: Question) -> str:
    if question.kind == "number":
        unit = f" (in {question.unit})" if question.unit else ""
        return f'Answer with a number{unit}: quiz.ask("{question.id}", 12)'
    if question.kind == "multiple":
        return f'Choose all that are right: quiz.ask("{question.id}", "A, B")'
    return f'Answer with one letter: quiz.ask("{question.id}", "B")'


def judge(question: Question, answer: Any) -> Verdict:
    """The verdict on an answer, with the reason of what was chosen and of nothing else.

    Raises :class:`WorkbookError` when it is no answer to this question.
    """
    if question.kind == "number":
        return _judged_number(question, answer)
    chosen = _letters(question, answer)
    options = dict(zip(question.letters, question.options, strict=True))
    right = {letter for letter, option in options.items() if option.right}
    hits = right & set(chosen)
    if set(chosen) == right:
        verdict = "Right."
    elif hits and question.kind == "multiple":
        verdict = "Partly right."
    else:
        verdict = "Not yet."
    reasons = _reasons(question, chosen)
    missing = len(right - hits)
    if question.kind == "multiple" and hits and missing:
        reasons.append(("", f"{missing} more {'is' if missing == 1 else 'are'} right."))
    if set(chosen) == right:
        reasons += _correction(question)
    said = f"Question {question.id}: {verdict}"
    return Verdict(set(chosen) == right, said, tuple(reasons))


def explain(question: Question) -> Verdict:
    """The right answer and the reason of every option."""
    if question.kind == "number":
        said = f"The answer is {_in_unit(question, question.answer)}."
        reasons = [("", question.why.strip())]
    else:
        right = zip(question.letters, question.options, strict=True)
        letters = ", ".join(letter for letter, option in right if option.right)
        said = f"Right {'is' if len(letters) == 1 else 'are'} {letters}."
        reasons = _reasons(question, question.letters)
    return Verdict(True, said, (*reasons, *_correction(question)))


def _reasons(question: Question, letters: Iterable[str]) -> list[tuple[str, str]]:
    options = dict(zip(question.letters, question.options, strict=True))
    return [
        (letter, f"({'right' if options[letter].right else 'wrong'}) {options[letter].why.strip()}")
        for letter in letters
    ]


def _correction(question: Question) -> list[tuple[str, str]]:
    said = question.often_said.strip()
    return [("", f"Often said: {said}")] if said else []


def _letters(question: Question, answer: Any) -> list[str]:
    """The chosen letters in the order of the options."""
    text = "".join(map(str, answer)) if isinstance(answer, (list, tuple, set)) else str(answer)
    chosen = set(re.sub(r"[\s,;]+|and", "", text).upper())
    wrong = sorted(chosen - set(question.letters))
    if wrong or not chosen:
        if len(chosen) == 1 and text.strip().isalpha():
            said = f"has no option {wrong[0]}"
        else:
            said = f"is not answered by {answer!r}"
        letters = ", ".join(question.letters)
        raise WorkbookError(f"Question {question.id} {said}: its options are {letters}.")
    if question.kind == "single" and len(chosen) > 1:
        raise WorkbookError(f"Question {question.id} has one right option: answer with one letter.")
    return sorted(chosen)


def _judged_number(question: Question, answer: Any) -> Verdict:
    value = as_number(answer, f"Question {question.id}")
    given = f"Question {question.id}: {_in_unit(question, value)}"
    if _hits(question, value):
        reasons = (("", question.why.strip()), *_correction(question))
        return Verdict(True, f"{given} is right.", reasons)
    for slip in question.slips:
        if math.isclose(value, slip.value, rel_tol=1e-6):
            return Verdict(False, f"{given} is not right.", (("", slip.why.strip()),))
    assert question.answer is not None
    return Verdict(False, f"{given} is too {'high' if value > question.answer else 'low'}.")


def _in_unit(question: Question, value: float | None) -> str:
    assert value is not None
    return f"{_number(value)} {question.unit}".rstrip()


def _hits(question: Question, value: float) -> bool:
    assert question.answer is not None
    return abs(value - question.answer) <= max(question.tolerance, 1e-9 * abs(question.answer))


# --- predictions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """What the learner wrote down before measuring: a number or ``None`` for each name."""

    values: dict[str, float | None] = field(default_factory=dict)

    def table(self, **measured: Any) -> None:
        """Print predicted beside measured, with a remark; ``kernels=31`` or ``moved=(64, "B")``.

        A name without prediction is shown as such, so the table can always be printed.
        """
        rows = [("", "predicted", "measured", "")]
        for name, found in measured.items():
            if name not in self.values:
                known = ", ".join(self.values)
                raise WorkbookError(f"Nothing called {name!r} was to be predicted, only {known}.")
            value, unit = found if isinstance(found, tuple) else (found, "")
            truth = as_number(value, f"The measured {name}")
            guess = self.values[name]
            label = _label(name) + (f" ({unit})" if unit else "")
            told = "-" if guess is None else _number(guess)
            rows.append((label, told, _number(truth), _remark(guess, truth)))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for label, told, truth_text, remark in rows:
            line = f"{label:<{widths[0]}}  {told:>{widths[1]}}  {truth_text:>{widths[2]}}  {remark}"
            print(line.rstrip())


def predict(*nameless: Any, **values: Any) -> Prediction:
    """Write down predictions: ``quiz.predict(kernels=None, bytes_moved=None)``.

    The learner puts numbers in place of ``None`` and runs the cell. Raises
    :class:`WorkbookError` for anything that is not a number.
    """
    if nameless:
        raise WorkbookError(
            "A prediction needs its name: put your number in place of None only, as in "
            "quiz.predict(kernels=12)."
        )
    made: dict[str, float | None] = {}
    for name, value in values.items():
        made[name] = None if value is None else as_number(value, f"Your prediction of {name}")
    for name, number in made.items():
        if number is None:
            print(f"{_label(name)}: none yet - write a number in place of None and run the cell")
        else:
            print(f"{_label(name)}: your prediction is {_number(number)}")
    return Prediction(made)


def as_number(value: Any, what: str = "This") -> float:
    """A number given as int, float, NumPy scalar or text (``"1,024"``), as ``int`` or ``float``.

    Raises :class:`WorkbookError` beginning with ``what`` for all else.
    """
    if isinstance(value, str):
        text = re.sub(r"[\s,_]", "", value)
        for kind in (int, float):
            try:
                value = kind(text)
                break
            except ValueError:
                continue
    if hasattr(value, "item") and getattr(value, "size", 0) == 1:
        value = value.item()
    if not _is_number(value):
        raise WorkbookError(f"{what} must be a number such as 12 or 0.5, not {value!r}.")
    return value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max  # False for NaN, too


def _remark(guess: float | None, truth: float) -> str:
    if guess is None:
        return "no prediction yet"
    if guess == truth:
        return "right"
    if math.isclose(guess, truth, rel_tol=0.05):
        return "close (within 5 %)"
    side = "high" if guess > truth else "low"
    if guess * truth <= 0:
        return f"too {side} by {_number(abs(guess - truth))}"
    ratio = max(guess / truth, truth / guess)
    return f"too {side} by a factor of {ratio:.3g}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}"


def _label(name: str) -> str:
    return name.replace("_", " ")


def _wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Wrapped to the width of an output; a blank line and lines of code (indented) stay as are."""
    parts = []
    for number, block in enumerate(re.split(r"\n\s*\n", text)):
        lead = first if number == 0 else rest
        if block.startswith("    "):
            parts.append(textwrap.indent(block, rest))
        else:
            block = " ".join(block.split())
            parts.append(textwrap.fill(block, _WIDTH, initial_indent=lead, subsequent_indent=rest))
    return "\n\n".join(parts)
