"""The hidden checks of the labs, in this process and without a sandbox.

The reference passes all of them, every known wrong answer loses at least one, every check is failed
by some wrong answer, right answers of another kind pass, and cheats lose. In grading each answer
runs in a fork after the whole lab; here, too, answers are tried after the lab has run through.
"""

import contextlib
import os
import signal
from types import SimpleNamespace

import pytest
from test_labs import BANKS, HERE, LABS, OTHERS, WRONG, Lab, suite

from helpers import use_tvm
from helpers.grading import checks, encoding
from helpers.grading.hidden import mutated

HIDDEN = {lab: bank["HIDDEN"] for lab, bank in BANKS.items() if "HIDDEN" in bank}
SECRET = b"the secret of the tests"
SECRETS = int(os.environ.get("SECRETS", "2"))  # further secrets to draw with; set it to try more
SECONDS = 3  # for a wrong answer; the reference has what the check allows


class HiddenLab(Lab):
    """A lab that has run through with the right answers; its hidden checks can be tried."""

    def meet(self, cell, role, number):
        """Run a cell; of the check of a question only what later cells may use."""
        if role.get("solution"):
            self.answers[cell.id] = cell.source
        self.execute(cell.source, cell.id)

    def value(self, number, question, index, secret=SECRET):
        """What the answer that stands gives on a check, as it would arrive outside."""
        check = HIDDEN[number][question][index]
        inputs = check.inputs(secret, LABS[number].name, question, index)
        value = eval(check.probe, {**self.space, **inputs})
        return encoding.loads(encoding.dumps(value)), inputs

    def trial(self, number, question, index, source=None):
        """``""`` when an answer passes a check, else why not; the right answer stands again."""
        expected, _ = self.value(number, question, index)
        check = HIDDEN[number][question][index]
        try:
            with limited(min(SECONDS, check.timeout) if source else check.timeout):
                self.execute(source or self.answers[question], question)
                value, inputs = self.value(number, question, index)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.execute(self.answers[question], question)
        if check.verify is None:
            right = checks.agrees(value, expected, rtol=check.rtol, atol=check.atol)
            return "" if right else f"{checks.shown(value)} instead of {checks.shown(expected)}"
        names = check.verify.__code__.co_varnames[: check.verify.__code__.co_argcount]
        lab = {"lab": SimpleNamespace(**self.space)} if "lab" in names else {}
        try:
            return check.verify(encoding.with_programs(value), **inputs, **lab)
        except Exception as error:
            return f"{type(error).__name__} while verifying: {error}"


@contextlib.contextmanager
def limited(seconds):
    """Stop the block after so many seconds of processor time."""

    def stop(*_):
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    # Again and again: an exception that rises while an object is being deleted is dropped.
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class HiddenSuite:
    """What is asked of the hidden checks of every lab that has some."""

    number: str

    @pytest.fixture(scope="class")
    def lab(self, request):
        use_tvm(HERE, quiet=True)
        return HiddenLab(request.cls.number)

    @pytest.fixture(scope="class")
    def failed(self, lab):
        """Question, what is wrong -> the numbers of the hidden checks that refuse it.

        A check that has refused another answer is tried only while none has refused this one.
        """
        found, known = {}, set()
        for (number, question), answers in WRONG.items():
            if number != self.number:
                continue
            for what, changes in answers.items():
                wrong = mutated(lab.answers[question], changes)
                refusing = found[question, what] = set()
                for index in range(len(HIDDEN[number][question])):
                    if refusing and (question, index) in known:
                        continue
                    if lab.trial(number, question, index, wrong):
                        refusing.add(index)
                        known.add((question, index))
        return found

    def test_the_reference_gives_a_value_whatever_is_drawn(self, lab):
        for question, banked in HIDDEN[self.number].items():
            for index, check in enumerate(banked):
                if check.draw is None or check.own:
                    continue
                for number in range(SECRETS):
                    with limited(check.timeout):
                        lab.value(self.number, question, index, b"another secret, %d" % number)

    def test_every_question_has_hidden_checks(self, lab):
        assert HIDDEN[self.number].keys() == lab.answers.keys()

    def test_the_reference_passes(self, lab):
        said = {
            (question, check.tried): lab.trial(self.number, question, index)
            for question, own in HIDDEN[self.number].items()
            for index, check in enumerate(own)
        }
        assert {place: text for place, text in said.items() if text} == {}

    def test_another_right_answer_passes(self, lab):
        said = {
            (question, check.tried): lab.trial(self.number, question, index, answer)
            for (number, question), answer in OTHERS.items()
            if number == self.number
            for index, check in enumerate(HIDDEN[number][question])
        }
        assert {place: text for place, text in said.items() if text} == {}

    def test_every_wrong_answer_loses(self, failed):
        assert [place for place, indices in failed.items() if not indices] == []

    def test_every_cheat_loses(self, lab):
        """What the public checks may accept, though it does not do what is asked."""
        passing = [
            (question, what)
            for question, cheats in BANKS[self.number].get("CHEATS", {}).items()
            for what, source in cheats.items()
            if not any(
                lab.trial(self.number, question, index, source)
                for index in range(len(HIDDEN[self.number][question]))
            )
        ]
        assert passing == []

    def test_every_hidden_check_can_fail(self, failed):
        idle = [
            (question, check.tried)
            for question, own in HIDDEN[self.number].items()
            for index, check in enumerate(own)
            if not any(index in found for (q, _), found in failed.items() if q == question)
        ]
        assert idle == []


for _number in HIDDEN:
    globals()[f"TestHidden{_number}"] = suite(
        f"TestHidden{_number}", _number, HiddenSuite, __name__
    )
