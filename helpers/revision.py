"""Quiz questions in a terminal: ``make quiz``, or ``make quiz LESSON=03`` for one lesson.

What was answered wrong the last time comes first. One lesson is asked in its own order, all of
them in random order. The first answer to a question counts; more tries are for learning.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from helpers import quiz, quiz_record
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.quiz import Question
from helpers.quiz_record import Record

_HELP = "Enter shows the answer, s skips the question, q ends."


@dataclass
class Count:
    """What came of a round: the questions answered, and how many of them rightly at once."""

    right: int = 0
    wrong: int = 0

    def __str__(self) -> str:
        answered = self.right + self.wrong
        if not answered:
            return "Nothing was answered."
        return f"{self.right} of {answered} right at the first try."


class Ended(Exception):
    """No error: the learner has had enough."""


def ordered(
    questions: Sequence[Question],
    record: Mapping[str, Record],
    shuffle: Callable[[list[Question]], None] | None = None,
) -> list[Question]:
    """The questions in the order of asking: wrong the last time, never asked, right.

    ``shuffle`` puts a list in random order in place; without it each of the three groups keeps the
    order that is given.
    """
    mixed = list(questions)
    if shuffle:
        shuffle(mixed)

    def group(question: Question) -> int:
        known = record.get(question.id)
        return 1 if known is None else 2 if known.last else 0

    return sorted(mixed, key=group)


def ask_all(
    questions: Sequence[Question],
    answer: Callable[[str], str],
    say: Callable[[str], None],
    note: Callable[[str, bool], None],
    *,
    colours: bool = False,
) -> Count:
    """Ask each question until it is right, skipped or given up.

    ``answer`` shows a prompt and returns a line; it raises :class:`EOFError` or
    :class:`KeyboardInterrupt` when there will be no more. ``note`` keeps the first answer.
    """
    count = Count()
    try:
        for number, question in enumerate(questions, 1):
            say(f"\n{number} of {len(questions)}\n\n{quiz.asked(question)}\n")
            _ask(question, answer, say, note, count, colours)
    except (EOFError, KeyboardInterrupt):
        say("")
    except Ended:
        pass
    return count


def _ask(
    question: Question,
    answer: Callable[[str], str],
    say: Callable[[str], None],
    note: Callable[[str, bool], None],
    count: Count,
    colours: bool,
) -> None:
    first = True
    while True:
        given = answer(f"{_wanted(question)}: ").strip()
        if given.lower() in ("q", "quit", "exit"):
            raise Ended
        if given.lower() in ("s", "skip"):
            return
        if given in ("?", "h", "help"):
            say(_HELP)
            continue
        if not given:
            _keep(question, False, note, count, first)
            say(quiz.explain(question).text)
            return
        try:
            verdict = quiz.judge(question, given)
        except WorkbookError as error:
            say(str(error))
            continue
        _keep(question, verdict.right, note, count, first)
        first = False
        said = _coloured(verdict.said, verdict.right) if colours else verdict.said
        say("\n".join([said, *verdict.text.splitlines()[1:]]))
        if verdict.right:
            return


def _keep(
    question: Question,
    right: bool,
    note: Callable[[str, bool], None],
    count: Count,
    first: bool,
) -> None:
    if first:
        note(question.id, right)
        count.right += right
        count.wrong += not right


def _wanted(question: Question) -> str:
    if question.kind == "number":
        return f"A number in {question.unit}" if question.unit else "A number"
    return "All letters that are right" if question.kind == "multiple" else "One letter"


def _coloured(text: str, right: bool) -> str:
    return f"\x1b[{32 if right else 33}m{text}\x1b[0m"


def main(arguments: list[str] | None = None) -> None:
    """Entry of the command line. Raises :class:`WorkbookError` for a lesson without questions."""
    parser = argparse.ArgumentParser(prog="make quiz", description=__doc__)
    parser.add_argument("lesson", nargs="?", help="two digits; without it, all lessons")
    parser.add_argument("--order", choices=("random", "lesson"), help="default: see above")
    options = parser.parse_args(arguments)
    order = options.order or ("lesson" if options.lesson else "random")
    if options.lesson:
        questions = quiz.lesson(options.lesson.zfill(2))
    else:
        questions = [q for path in sorted(quiz.QUIZ.glob("*.yaml")) for q in quiz.load(path)]
    questions = ordered(
        questions, quiz_record.load(), random.shuffle if order == "random" else None
    )
    print(f"{len(questions)} questions. {_HELP}")
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    count = ask_all(questions, input, print, quiz_record.note, colours=colours)
    print(f"\n{count}")


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
    except KeyboardInterrupt:  # before the first question
        raise SystemExit(130) from None
