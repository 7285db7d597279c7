"""Each key of the quiz follows from a check that is run here, and a wrong key is noticed."""

import ast
import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from by_definition import BY_DEFINITION
from proofs import PROOFS, disagreements, fingerprint

from helpers import quiz

HERE = Path(__file__).parent
LESSONS = sorted(path.stem for path in HERE.glob("lesson_*.py"))
QUESTIONS = [q for path in sorted(quiz.QUIZ.glob("*.yaml")) for q in quiz.load(path)]


@pytest.fixture(scope="module", autouse=True)
def lessons(relay):
    for name in LESSONS:
        importlib.import_module(name)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_the_key_is_what_was_found(question):
    assert disagreements(question) == []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_wrong_key_is_noticed(question):
    if question.kind == "number":
        off = 2 * question.tolerance + 0.01 * abs(question.answer) + 1e-6
        wrong = [replace(question, answer=question.answer + by) for by in (off, -off)]
    else:
        options = question.options
        flipped = [replace(option, right=not option.right) for option in options]
        wrong = [
            replace(question, options=(*options[:k], flipped[k], *options[k + 1 :]))
            for k in range(len(options))
        ]
    assert all(disagreements(one) for one in wrong)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_reworded_question_is_noticed(question):
    """The code of a question that is decided by its own output may change: it is run anew."""
    if question.id not in PROOFS:
        return
    first, *others = question.options or [quiz.Option("", "")]
    wrong = [replace(question, question=f"Not: {question.question}")]
    if others:
        wrong.append(replace(question, options=(*others, first)))
        wrong.append(replace(question, options=(replace(first, text="Another"), *others)))
    assert all(disagreements(one) for one in wrong)
    assert (
        fingerprint(replace(question, question=f"  {question.question}\n"))
        == PROOFS[question.id][1]
    )


def test_no_proof_and_no_definition_is_left_over():
    known = {question.id for question in QUESTIONS}
    assert {*PROOFS, *BY_DEFINITION} <= known
    assert set(BY_DEFINITION) <= set(PROOFS)


@pytest.mark.parametrize("name", LESSONS)
def test_no_proof_writes_its_verdict_down(name):
    """A verdict is computed; what cannot be, stands in by_definition with a reason."""

    def written_down(node):
        return isinstance(node, ast.Constant) and not isinstance(node.value, str | None)

    for node in ast.walk(ast.parse((HERE / f"{name}.py").read_text())):
        if isinstance(node, ast.Return):
            assert not written_down(node.value), f"line {node.lineno}"
            values = node.value.values if isinstance(node.value, ast.Dict) else []
            assert not any(map(written_down, values)), f"line {node.lineno}"


def test_the_twenty_questions_of_the_syllabus_are_there():
    found = [question.syllabus for question in QUESTIONS if question.syllabus]
    wanted = [f"{track}{number}" for track in "PE" for number in range(1, 11)]
    assert sorted(set(found)) == sorted(wanted)
