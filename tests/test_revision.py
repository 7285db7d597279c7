"""``make quiz``: the order of the questions, a round, and the program in a terminal of its own."""

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from helpers import quiz, quiz_record, revision
from helpers.kernels import ROOT
from helpers.quiz import Option, Question
from helpers.quiz_record import Record


def single(name):
    options = (
        Option(text="yes", why="It is so.", right=True),
        Option(text="no", why="Look again."),
    )
    return Question(
        id=name,
        kind="single",
        question="Is it so?",
        rests_on="c",
        difficulty="easy",
        options=options,
    )


NUMBER = Question(
    id="01-4",
    kind="number",
    question="How many?",
    rests_on="c",
    difficulty="easy",
    answer=12,
    unit="kernels",
    why="A dozen.",
)
QUESTIONS = [single(f"01-{n}") for n in (1, 2, 3)]
RECORD = {"01-1": Record(right=1, last=True), "01-3": Record(right=5, wrong=1, last=False)}


def test_what_was_wrong_comes_first_and_what_was_right_last():
    found = revision.ordered(QUESTIONS, RECORD)
    assert [question.id for question in found] == ["01-3", "01-2", "01-1"]
    assert revision.ordered(QUESTIONS, {}) == QUESTIONS


def test_a_random_order_keeps_the_groups_and_mixes_within_them():
    many = [single(f"01-{n}") for n in range(1, 40)]
    record = {f"01-{n}": Record(last=n % 2 == 0) for n in range(1, 21)}
    found = revision.ordered(many, record, random.Random(1).shuffle)
    assert sorted(question.id for question in found) == sorted(question.id for question in many)
    groups = [record[q.id].last if q.id in record else None for q in found]
    assert groups == [False] * 10 + [None] * 19 + [True] * 10
    assert found != revision.ordered(many, record)


class Round:
    """A round with the lines that are typed; then the input ends, or Ctrl-C is pressed."""

    def __init__(self, questions, *lines, end=EOFError, colours=False):
        self.typed, self.end = list(lines), end
        self.said, self.kept = [], []
        note = lambda name, right: self.kept.append((name, right))  # noqa: E731
        self.count = revision.ask_all(
            questions, self.answer, self.said.append, note, colours=colours
        )
        self.text = "\n".join(self.said)

    def answer(self, prompt):
        self.said.append(prompt)
        if not self.typed:
            raise self.end
        return self.typed.pop(0)


def test_the_first_answer_counts_and_a_second_is_for_learning():
    made = Round(QUESTIONS[:2], "b", "a", "A")
    assert made.kept == [("01-1", False), ("01-2", True)]
    assert str(made.count) == "1 of 2 right at the first try."
    assert "Look again." in made.text
    assert made.text.count("It is so.") == 2


def test_nothing_is_revealed_before_an_answer():
    made = Round(QUESTIONS[:1])
    assert "It is so" not in made.text
    assert "Look again" not in made.text
    assert made.kept == []
    assert str(made.count) == "Nothing was answered."


@pytest.mark.parametrize("end", [EOFError, KeyboardInterrupt])
def test_the_end_of_the_input_ends_the_round(end):
    made = Round(QUESTIONS, "A", end=end)
    assert (made.count.right, made.count.wrong) == (1, 0)


def test_a_slip_of_the_pen_is_no_answer():
    made = Round([NUMBER], "many", "?", "13", "12")
    assert made.kept == [("01-4", False)]
    assert "must be a number" in made.text
    assert revision._HELP in made.said
    assert "13 kernels is too high." in made.text
    assert "A dozen." in made.text
    assert "A number in kernels: " in made.said


def test_skip_give_up_and_quit():
    made = Round([*QUESTIONS, NUMBER], "s", "", "q")
    assert made.kept == [("01-2", False)]
    assert "Right is A." in made.text
    assert "01-4" not in made.text
    given_up_later = Round(QUESTIONS[:1], "B", "")
    assert given_up_later.kept == [("01-1", False)]
    assert given_up_later.count.wrong == 1


def test_colours_are_asked_for():
    assert "\x1b" not in Round(QUESTIONS[:1], "A").text
    made = Round(QUESTIONS[:2], "A", "B", colours=True)
    assert "\x1b[32mQuestion 01-1: Right.\x1b[0m" in made.text
    assert "\x1b[33mQuestion 01-2: Not yet.\x1b[0m" in made.text


# --- the program ---------------------------------------------------------------------------------

PROGRAM = """
import sys
from pathlib import Path
from helpers import quiz_record, revision
from helpers.errors import WorkbookError, exit_with_sentence
quiz_record.FILE = Path(sys.argv.pop(1))
try:
    revision.main()
except WorkbookError as error:
    exit_with_sentence(error)
"""


def command(record, *arguments):
    return [sys.executable, "-c", PROGRAM, str(record), *arguments]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **more}


class Terminal:
    """The program in a pseudo-terminal."""

    def __init__(self, record, *arguments, **more):
        # The program's end stays open here, too: what was written last is not lost when it ends.
        self.ours, self.theirs = pty.openpty()
        self.process = subprocess.Popen(
            command(record, *arguments),
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env=environment(**more),
            start_new_session=True,
            preexec_fn=take_terminal,
        )
        self.text = ""

    def interrupt(self, pattern):
        """Press Ctrl-C until it is seen: Python misses one that comes just before it reads."""
        for _ in range(10):
            self.type("\x03")
            end = time.monotonic() + 5
            while time.monotonic() < end:
                if select.select([self.ours], [], [], 0.2)[0]:
                    self.text += os.read(self.ours, 65536).decode()
                if re.search(pattern, self.text):
                    return
        raise AssertionError(self.text)

    def until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            ended = self.process.poll() is not None
            if select.select([self.ours], [], [], 0.2)[0]:
                self.text += os.read(self.ours, 65536).decode()
            else:
                assert not ended, self.text
                assert time.monotonic() < end, self.text

    def type(self, text):
        os.write(self.ours, text.encode())

    def close(self):
        status = self.process.wait(30)
        os.close(self.ours)
        os.close(self.theirs)
        return status


def take_terminal():
    import fcntl
    import termios

    # A check that runs in the background was told to pay no heed to Ctrl-C, and so would this.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def first_answer(question):
    """The right and a wrong answer as typed."""
    if question.kind == "number":
        return f"{question.answer}", f"{question.answer + 10 * (question.tolerance + 1)}"
    right = "".join(
        letter
        for letter, option in zip(question.letters, question.options, strict=True)
        if option.right
    )
    return right, next(letter for letter in question.letters if letter not in right)


def test_a_round_in_a_terminal(tmp_path):
    record = tmp_path / "record.json"
    first, second, third, *_ = quiz.lesson("03")
    terminal = Terminal(record, "3")
    terminal.until(rf"Question {first.id}\.[^$]*: $")
    terminal.type(first_answer(first)[0] + "\n")
    terminal.until(rf"\x1b\[32mQuestion {first.id}[^$]*Question {second.id}\.[^$]*: $")
    terminal.type(first_answer(second)[1] + "\n")
    terminal.until(rf"\x1b\[33mQuestion {second.id}[^$]*: $")
    terminal.interrupt("1 of 2 right at the first try")
    assert terminal.close() == 0
    assert "Traceback" not in terminal.text
    kept = json.loads(record.read_text())
    assert {name: entry["last"] for name, entry in kept.items()} == {
        first.id: True,
        second.id: False,
    }
    again = Terminal(record, "03", NO_COLOR="1")
    again.until(rf"1 of \d+\s+Question {second.id}\.[^$]*: $")
    again.type("\n")
    again.until(rf"(Right is|Right are|The answer is)[^$]*Question {third.id}\.[^$]*: $")
    again.type("\x04")  # Ctrl-D
    again.until("0 of 1 right")
    assert again.close() == 0
    assert "\x1b" not in again.text


def test_without_a_terminal_there_are_no_colours_and_all_lessons_are_asked(tmp_path):
    done = subprocess.run(
        command(tmp_path / "record.json"),
        input="s\ns\nq\n",
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
        timeout=60,
    )
    total = sum(len(quiz.load(path)) for path in quiz.QUIZ.glob("*.yaml"))
    assert done.stdout.startswith(f"{total} questions.")
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("Nothing was answered.")


def test_a_lesson_that_is_not_there_gets_a_sentence(tmp_path):
    done = subprocess.run(
        command(tmp_path / "record.json", "77"),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    last = sorted(quiz.QUIZ.glob("*.yaml"))[-1].stem[:2]
    assert f'no questions of lesson "77", only of 00 to {last}' in done.stderr


def test_an_interrupted_program_keeps_what_was_answered(tmp_path):
    record = tmp_path / "record.json"
    terminal = Terminal(record, "03")
    terminal.until(": $")
    terminal.type(first_answer(quiz.lesson("03")[0])[0] + "\n")
    terminal.until("Question 03-2")
    terminal.process.send_signal(signal.SIGKILL)
    terminal.close()
    assert quiz_record.load(record)["03-1"].last
