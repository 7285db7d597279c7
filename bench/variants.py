"""How often would an answer about one learner's variant be right for another learner?

Runs each lab that ends in a question about the learner's own variant, draws that question for many
names, and compares the right answers of each two names. It also says for how many names each known
wrong answer loses points.

    .venv/bin/python -m bench.variants
    .venv/bin/python -m bench.variants 03 05 --names 50
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from typing import Any

from helpers import variants
from helpers.errors import WorkbookError, exit_with_sentence
from helpers.grading import checks, encoding
from helpers.grading.course import Lab, find_labs
from helpers.grading.hidden import mutated
from helpers.grading.sandbox import ROOT


def run(lab: Lab) -> dict[str, Any]:
    """The names of a lab after all of its cells have run, with the right answers."""
    right = {question.name: question.right for question in lab.questions}
    space: dict[str, Any] = {"__name__": "__main__"}
    for name, source in lab.cells:
        execute(right.get(name, source), space)
    return space


def execute(source: str, space: dict[str, Any]) -> None:
    """Run a cell, which prints nothing."""
    with contextlib.redirect_stdout(io.StringIO()):
        exec(source, space)


def own_question(lab: Lab) -> str:
    """The question of a lab that is about the learner's variant."""
    return next(q for q, own in lab.bank.hidden.items() if any(check.own for check in own))


def answers(
    lab: Lab, space: dict[str, Any], names: list[str]
) -> Iterator[tuple[list[Any], dict[str, bool]]]:
    """For each name the value of each check, and which known wrong answers lose one."""
    question = own_question(lab)
    own = lab.hidden(question)
    right = next(q.right for q in lab.questions if q.name == question)
    for name in names:
        os.environ[variants.VARIABLE] = name
        for _, source in lab.drawing(question):
            execute(source, space)
        execute(right, space)
        values = [value(check.probe, space) for check in own]
        lost = {}
        for what, changes in lab.bank.wrong[question].items():
            execute(right, space)
            try:
                execute(mutated(right, changes), space)
                wrong = [value(check.probe, space) for check in own]
            except Exception:  # a wrong answer may end in one, and has then lost
                wrong = [None] * len(own)
            lost[what] = not all(map(checks.agrees, wrong, values))
        yield values, lost


def value(probe: str, space: dict[str, Any]) -> Any:
    """What a probe gives, as it would arrive outside of the sandbox."""
    return encoding.loads(encoding.dumps(eval(probe, space)))


def report(lab_name: str, names: list[str]) -> str:
    """The figures of one lab."""
    checks.question = lambda *_, **__: None
    lab = Lab(ROOT, lab_name)
    space = run(lab)
    start = time.process_time()
    found = list(answers(lab, space, names))
    seconds = time.process_time() - start
    values, lost = zip(*found, strict=True)
    weights = [check.weight for check in lab.hidden(own_question(lab))]
    shares = []
    for one, other in combinations(values, 2):
        equal = map(checks.agrees, one, other)
        same = [weight * right for weight, right in zip(weights, equal, strict=True)]
        shares.append(sum(same) / sum(weights))
    lines = [
        f"{lab.name}: a copied answer is right for {100 * shares.count(1) / len(shares):.2f} % "
        f"of {len(shares)} pairs, and gets {100 * sum(shares) / len(shares):.1f} % of the points "
        f"on average; {1000 * seconds / len(names):.0f} ms a name, wrong answers included"
    ]
    for what in lost[0]:
        loses = sum(row[what] for row in lost)
        lines.append(f"  loses for {loses} of {len(names)} names: {what}")
    return "\n".join(lines)


def main() -> None:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.variants", description=main.__doc__)
    parser.add_argument("labs", nargs="*", help="numbers of labs, as 03; default: all")
    parser.add_argument("--names", type=int, default=200, help="how many names (default: 200)")
    options = parser.parse_args()
    names = ["", *(f"student {number}" for number in range(1, options.names))]
    wanted = [
        lab.name
        for lab in find_labs(ROOT)
        if lab.has_variants and (not options.labs or lab.name[:2] in options.labs)
    ]
    # A process works with one TVM, and a lab says which.
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for text in pool.imap(partial(report, names=names), wanted):
            print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except WorkbookError as error:
        exit_with_sentence(error)
