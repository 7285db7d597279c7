"""The labs: right answers pass, blanks are not attempted, and every public case can fail.

A process works with one TVM: a lab that uses Relax is tried in a process of its own.

Each lab's solution is executed once, cell by cell. At a question the wrong answers below take the
place of the right one, and the check's cases are tried on each of them one by one, until each
answer is refused and each case has refused one. A case that no wrong answer fails would be no check
at all. The wrong answers of a lab are in its `checks.py`.
"""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import use_tvm
from helpers.grading import checks
from helpers.grading.hidden import mutated
from helpers.kernels import ROOT
from tools.pages import find_pages, read_page

LABS = {path.parent.name[:2]: path.parent for path in sorted(ROOT.glob("solutions/*/lab.md"))}
TVM = {
    number: "relax" if 'use_tvm("relax")' in (folder / "lab.md").read_text() else "relay"
    for number, folder in LABS.items()
}
HERE = os.environ.get("TVM_OF_LABS", "relay")  # what this process works with
SECONDS_ELSEWHERE = 300  # for a lab in a process of its own
BANKS = {number: runpy.run_path(str(folder / "checks.py")) for number, folder in LABS.items()}
WRONG = {(lab, q): answers for lab, bank in BANKS.items() for q, answers in bank["WRONG"].items()}
OTHERS = {(lab, q): answer for lab, bank in BANKS.items() for q, answer in bank["OTHERS"].items()}


class Lab:
    """One lab, executed: what its checks say of right, wrong and blank answers."""

    def __init__(self, number):
        pages = {page.kind: page for page in find_pages(ROOT, [LABS[number].name])}
        self.blanks = {cell.id: cell.source for cell in read_page(pages["lab"]).cells}
        self.space = {"__name__": "__main__"}
        self.answers = {}
        self.right = {}  # question -> the verdict
        self.other = {}  # question -> the verdict on a right answer of another kind
        self.blank = {}  # question -> the verdict
        self.earlier_blank = {}  # question, earlier question -> the verdict when that is blank
        self.cases = {}  # question -> what its check tries
        self.failed = {}  # question, what is wrong -> the numbers of the cases that refuse it
        self.slips = {}  # question -> the sentences that explain a wrong value
        self.explained = set()  # those of them that a wrong answer was given
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checks, "question", self.hand_over)
            for cell in read_page(pages["solution"]).cells:
                if cell.cell_type == "code":
                    self.meet(cell, cell.metadata.get("nbgrader", {}), number)

    def hand_over(self, name, answer, cases, **tolerance):
        """What a check cell calls instead of printing a verdict."""
        self.asked = name, answer, list(cases), tolerance

    def execute(self, source, name):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, f"<{name}>", "exec"), self.space)

    def verdict(self, check):
        self.execute(check.source, check.id)
        name, answer, cases, tolerance = self.asked
        return checks.judge(name, answer, cases, **tolerance)

    def refusing(self, check, known):
        """The numbers of the check's cases that refuse a wrong answer.

        ``known`` are those that have refused another one. Such a case is tried only while no case
        has refused this answer: it would show nothing more, and some cases take seconds.
        """
        self.execute(check.source, check.id)
        name, answer, cases, tolerance = self.asked
        found = set()
        for number, case in enumerate(cases):
            slips = sentences(case) - self.explained
            if found and number in known and not slips:
                continue
            if failure := checks.judge(name, answer, [case], **tolerance).failure:
                found.add(number)
                told = " ".join(failure.split())
                self.explained |= {why for why in slips if " ".join(why.split()) in told}
        return found

    def meet(self, cell, role, number):
        if role.get("solution"):
            self.answers[cell.id] = cell.source
        if not role.get("locked"):
            self.execute(cell.source, cell.id)
            return
        question = cell.id.removesuffix("-check")
        right = self.answers[question]
        self.right[question] = self.verdict(cell)
        self.cases[question] = [text for text, *_ in self.asked[2]]
        self.slips[question] = set().union(*map(sentences, self.asked[2]))
        known = set()
        for what, changes in WRONG[number, question].items():
            self.execute(mutated(right, changes), question)
            self.failed[question, what] = self.refusing(cell, known)
            known |= self.failed[question, what]
        if (number, question) in OTHERS:
            self.execute(OTHERS[number, question], question)
            self.other[question] = self.verdict(cell)
        self.execute(self.blanks[question], question)
        self.blank[question] = self.verdict(cell)
        self.execute(right, question)
        for earlier, answer in self.answers.items():
            function = re.search(r"^def (\w+)", answer, re.M)
            if not function or earlier == question:
                continue
            if re.search(rf"\b{function[1]}\(", right + cell.source):
                self.execute(self.blanks[earlier], earlier)
                self.earlier_blank[question, earlier] = self.verdict(cell)
                self.execute(answer, earlier)


def sentences(case):
    """What a case says of wrong values that it knows."""
    return {why for slips in case[3:] for _, why in slips}


class LabSuite:
    """What is asked of every lab. A class for each, so that they can run side by side."""

    number: str

    @pytest.fixture(scope="class")
    def lab(self, request):
        use_tvm(HERE, quiet=True)
        return Lab(request.cls.number)

    def test_right_answers_pass(self, lab):
        verdicts = {question: str(outcome) for question, outcome in lab.right.items()}
        assert len(verdicts) >= 4
        assert {q: v for q, v in verdicts.items() if "public checks passed (" not in v} == {}

    def test_another_right_answer_passes(self, lab):
        assert {question: outcome.failure for question, outcome in lab.other.items()} == {
            question: "" for number, question in OTHERS if number == self.number
        }

    def test_a_blank_is_not_attempted(self, lab):
        assert lab.blank.keys() == lab.right.keys()
        assert [q for q, outcome in lab.blank.items() if outcome.attempted] == []

    def test_a_question_after_a_blank_one_says_so(self, lab):
        """An answer that needs an earlier one, still blank, gets a verdict and no traceback."""
        for outcome in lab.earlier_blank.values():
            assert (
                not outcome.attempted or not outcome.failure or "your code here" in outcome.failure
            )

    def test_a_wrong_answer_fails(self, lab, question, what):
        if not lab.answers[question].startswith("def "):
            pytest.skip("values: the public check looks at their form; test_hidden tries this one")
        assert lab.failed[question, what]

    def test_every_public_case_can_fail(self, lab):
        idle = [
            (question, text)
            for question, texts in lab.cases.items()
            for index, text in enumerate(texts)
            if not any(index in failed for (q, _), failed in lab.failed.items() if q == question)
        ]
        assert idle == []

    def test_every_explained_slip_is_made_by_a_wrong_answer(self, lab):
        assert set().union(*lab.slips.values()) - lab.explained == set()


def pytest_generate_tests(metafunc):
    if "what" in metafunc.fixturenames:
        number = metafunc.cls.number
        wrong = [
            (q, what) for (lab, q), answers in WRONG.items() if lab == number for what in answers
        ]
        metafunc.parametrize(("question", "what"), wrong)


class Elsewhere:
    """A suite for a lab whose TVM is not the one of this process."""

    number: str

    def test_in_a_process_with_its_tvm(self):
        module = Path(sys.modules[type(self).__module__].__file__)
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-o", f"faulthandler_timeout={SECONDS_ELSEWHERE - 20}"),
            f"{module}::{type(self).__name__}",
        ]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "TVM_OF_LABS": TVM[self.number]},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS_ELSEWHERE,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired as stopped:
            said = (stopped.stdout or b"").decode(errors="replace")
            pytest.fail(
                f"{type(self).__name__} has not ended in {SECONDS_ELSEWHERE} s: does an answer in "
                f"checks.py loop for ever? Where it was:\n{said}",
                pytrace=False,
            )
        assert done.returncode == 0, done.stdout


def suite(name, number, kind, module):
    """The class of tests for a lab."""
    bases = (kind if TVM[number] == HERE else Elsewhere,)
    return type(name, bases, {"number": number, "__module__": module})


for _number in LABS:
    globals()[f"TestLab{_number}"] = suite(f"TestLab{_number}", _number, LabSuite, __name__)
