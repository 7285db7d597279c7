"""What a proof of a quiz key is, and how it is compared with the key.

A proof finds the right options of a question, or its number, by running TVM or by arithmetic. It
never reads the key. The modules ``lesson_NN.py`` have one for each question that is not decided by
the output of its own code. Options that state no fact are listed in :mod:`by_definition`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from by_definition import BY_DEFINITION

from helpers import WorkbookError
from helpers.quiz import Question
from tools.pages import find_pages, read_page

ROOT = Path(__file__).resolve().parents[2]

Finding = Mapping[str, bool] | float
"""``{"A beginning of the option's text": is it right}``, or the number that is asked for."""

PROOFS: dict[str, tuple[Callable[[], Finding], str]] = {}


def proof(question_id: str, reviewed: str) -> Callable[[Callable[[], Finding]], Any]:
    """Mark a function as the proof of a question, whose wording has the fingerprint ``reviewed``.

    When a question is reworded its fingerprint is another one, and the proof has to be read again.
    """

    def note(function: Callable[[], Finding]) -> Callable[[], Finding]:
        assert question_id not in PROOFS, f"two proofs of {question_id}"
        found = cache(function)  # some questions share builds, and the tests ask several times
        PROOFS[question_id] = found, reviewed
        return found

    return note


def fingerprint(question: Question) -> str:
    """Eight digits that stand for what is asked: question, code, unit and options in order."""
    parts = [question.question, question.code, question.unit]
    parts += [str(option.text) for option in question.options]
    text = "\n".join(" ".join(part.split()) for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def disagreements(question: Question) -> list[str]:
    """What is wrong between a question's key and its proof, one sentence each."""
    if question.id not in PROOFS:
        if question.code:
            return _compared_with_output(
                question, printed(question.id.split("-")[0], question.code)
            )
        return [f"{question.id} has no proof."]
    function, reviewed = PROOFS[question.id]
    if fingerprint(question) != reviewed:
        return [
            f'{question.id} was reworded: read its proof again and write "{fingerprint(question)}".'
        ]
    found = function()
    if question.kind == "number":
        return _compared_number(question, found)
    return _compared_options(question, found)


def _compared_number(question: Question, found: Any) -> list[str]:
    if abs(found - question.answer) <= max(question.tolerance, 1e-9 * abs(question.answer)):
        return []
    return [f"{question.id}: the key is {question.answer}, and {found} was found."]


def _compared_options(question: Question, found: Any) -> list[str]:
    shown = {name[0]: (name[2:], right) for name, right in found.items()}
    defined = BY_DEFINITION.get(question.id, {})
    problems = []
    for letter in sorted({*shown, *defined} - set(question.letters)):
        problems.append(f"{question.id}: there is no option {letter}.")
    for letter, option in zip(question.letters, question.options, strict=True):
        if (letter in shown) == (letter in defined):
            problems.append(
                f"{question.id}: option {letter} must be shown or defined, one of both."
            )
            continue
        begins, right = shown.get(letter) or defined[letter][:2]
        if not " ".join(str(option.text).split()).startswith(begins):
            problems.append(f'{question.id}: option {letter} does not begin with "{begins}".')
        if bool(right) != option.right:
            truth = "right" if right else "wrong"
            problems.append(f"{question.id}: option {letter} was found to be {truth}.")
    return problems


def _compared_with_output(question: Question, output: str) -> list[str]:
    if question.kind == "number":
        return _compared_number(question, float(output))
    problems = []
    for letter, option in zip(question.letters, question.options, strict=True):
        if (" ".join(str(option.text).split()) == output) != option.right:
            problems.append(f'{question.id}: the program prints "{output}"; see option {letter}.')
    return problems


# --- running ---------------------------------------------------------------------------------


@cache
def printed(lesson: str, code: str) -> str:
    """What a question's program prints after the setup cell of its lesson, in one line."""
    output = io.StringIO()
    names = cells(lesson, "setup")
    with contextlib.redirect_stdout(output):
        exec(code, names)
    return " ".join(output.getvalue().split())


def cells(lesson: str, *wanted: str) -> dict[str, Any]:
    """The names that some cells of a lesson define, run one after the other."""
    (page,) = (p for p in find_pages(ROOT) if p.kind == "lesson" and p.name[:2] == lesson)
    code = [cell for cell in read_page(page).cells if cell.cell_type == "code"]
    sources = {cell.id: cell.source for cell in code} | {"setup": code[0].source}
    names: dict[str, Any] = {"__name__": f"lesson_{lesson}"}
    with contextlib.redirect_stdout(io.StringIO()):
        for name in wanted:
            exec(compile(sources[name], f"lesson {lesson}, {name}", "exec"), names)
    return names


def said(call: Callable[[], Any]) -> str:
    """TVM's or our message when ``call`` fails, or ``""``."""
    import tvm

    try:
        call()
    except (tvm.TVMError, WorkbookError, RuntimeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def works(call: Callable[[], Any]) -> bool:
    """Whether ``call`` ends without an error of TVM or of the workbook."""
    return not said(call)
