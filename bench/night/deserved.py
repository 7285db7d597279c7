"""What answers deserve, found without the grader: each check runs in a fork of this process."""

from __future__ import annotations

import ast
import contextlib
import io
import math
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from bench.night.submissions import function_of
from helpers.grading import checks, encoding
from helpers.grading.course import Lab
from helpers.grading.sandbox import ROOT


class Marker:
    """What answers to a lab deserve, found by running them in forks of this process."""

    def __init__(self, lab: Lab, secret: bytes) -> None:
        self.lab, self.secret = lab, secret
        self.space: dict[str, Any] = {"__name__": "__main__"}
        self.right = {question.name: question.right for question in lab.questions}
        self.found: dict[Any, float] = {}  # question and the answers that matter -> points
        self.correct: dict[tuple[str, int], str] = {}  # question, check -> the right value
        self.defined: dict[str, str] = {}  # name -> the statement of the lab that defines it
        checks.question = lambda *_, **__: None
        for name, source in lab.cells:
            self.execute(source)
            for node in ast.parse("" if name in self.right else source).body:
                text = ast.get_source_segment(source, node)
                for word in bound(node):
                    self.defined[word] = f"{self.defined.get(word, '')}\n{text}"

    def execute(self, source: str) -> None:
        """Run a cell, and throw away what it prints."""
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, "<cell>", "exec"), self.space)

    def points(self, answers: Mapping[str, str]) -> dict[str, float]:
        """The points of each question; each is tried without the answers to later ones."""
        found = {}
        for number, question in enumerate(self.lab.questions):
            upto = {q.name: answers[q.name] for q in self.lab.questions[: number + 1]}
            key = (question.name, self.needed(question.name, upto))
            if answers[question.name] == question.blank:
                self.found[key] = 0.0
            elif key not in self.found:
                hidden = self.lab.hidden(question.name)
                passed = [h.weight for k, h in enumerate(hidden) if self.passes(upto, k)]
                whole = sum(check.weight for check in hidden)
                self.found[key] = question.points * sum(passed) / whole
            found[question.name] = self.found[key]
        return found

    def needed(self, question: str, upto: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """The answers that a verdict can depend on: those that names reach from the probes."""
        functions = {function_of(self.right[q]): q for q in upto}
        texts = self.defined | {name: upto[q] for name, q in functions.items()}
        seen: set[str] = set()
        new = [upto[question], *(h.probe for h in self.lab.hidden(question))]
        while names := {name for text in new for name in used(text)} - seen:
            seen |= names
            new = [texts[name] for name in names if name in texts]
        reached = {question} | {q for name, q in functions.items() if name in seen}
        return tuple((q, source) for q, source in upto.items() if q in reached)

    def passes(self, upto: Mapping[str, str], index: int) -> bool:
        """Whether a hidden check of the last of some answers is passed."""
        question = list(upto)[-1]
        hidden = self.lab.hidden(question)[index]
        inputs = hidden.inputs(self.secret, self.lab.name, question, index)

        def value(answers: Mapping[str, str]) -> str:
            for name, source in answers.items():
                with contextlib.suppress(Exception):
                    self.execute(source)
                    continue
                if name == question:
                    return ""
            with contextlib.redirect_stdout(io.StringIO()):
                return encoding.dumps(eval(hidden.probe, {**self.space, **inputs}))

        def verdict() -> str:
            got = encoding.loads(text)
            if hidden.verify is None:
                right = encoding.loads(self.correct[question, index])
                return str(checks.agrees(got, right, rtol=hidden.rtol, atol=hidden.atol))
            for source in self.right.values():
                self.execute(source)
            names = hidden.verify.__code__.co_varnames[: hidden.verify.__code__.co_argcount]
            lab = {"lab": SimpleNamespace(**self.space)} if "lab" in names else {}
            return str(not hidden.verify(encoding.with_programs(got), **inputs, **lab))

        if (question, index) not in self.correct:
            right = {q: self.right[q] for q in upto}
            self.correct[question, index] = forked(lambda: value(right), hidden.timeout)
        text = forked(lambda: value(upto), hidden.timeout)
        return bool(text) and forked(verdict, 60) == "True"


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    names = [found for found in ast.walk(node) if isinstance(found, ast.Name)]
    return {found.id for found in names if isinstance(found.ctx, ast.Store)}


def used(text: str) -> set[str]:
    """The names that occur in a program, also those in quotes: lab 10 looks functions up."""
    nodes = list(ast.walk(ast.parse(text)))
    quoted = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    return quoted | {node.id for node in nodes if isinstance(node, ast.Name)}


def forked(act: Callable[[], str], seconds: float) -> str:
    """What ``act`` returns in a fork of this process; ``""`` when it raises or takes longer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
            os.close(reader)
            with os.fdopen(writer, "w") as file:
                file.write(act())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


def deserved(
    name: str, secret: bytes, wanted: Sequence[Mapping[str, str]]
) -> list[dict[str, float]]:
    """The points of some submissions to a lab; runs in a process of its own."""
    marker = Marker(Lab(ROOT, name), secret)
    return [marker.points(answers) for answers in wanted]
