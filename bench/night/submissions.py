"""A class of submissions to real labs, each with the answers that it deserves points for."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from helpers.grading.course import Lab
from helpers.grading.hidden import mutated
from helpers.grading.sandbox import ROOT

KINDS = {"right": 35, "wrong": 27, "half-done": 18, "broken": 10, "hostile": 10}  # per cent
ZEROS: dict[str, Callable[[str], bytes]] = {
    "empty": lambda text: b"",
    "truncated": lambda text: text[: 2 * len(text) // 3].encode(),
    "not UTF-8": lambda text: b"\xff" + text.encode("latin-1", "replace"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "not a notebook": lambda text: b"def operands(node): pass",
    "deep JSON": lambda text: b"[" * 200_000,
    "pickle": lambda text: b"cos\nsystem\n(S'touch /tmp/evil'\ntR.",
}
"""Files that deserve nothing."""
BROKEN = (*ZEROS, "another file name", "another function", "no cell", "syntax error", "two cells")
HARM = {
    "exit": "import os\nos._exit(0)",
    "abort": "import os\nos.abort()",
    "segmentation fault": "import ctypes\nctypes.string_at(0)",
    "kill all": "import os, time\nos.kill(1, 9); os.kill(-1, 9)\ntime.sleep(60)",
    "endless loop": "while True: pass",
    "wait": "import time\ntime.sleep(1000)",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "memory": "hog = []\nwhile True: hog.append(bytearray(10**8))",
    "output": "while True: print('x' * 10**6)",
    "files": "for k in range(10**7): open(f'/tmp/{k}', 'wb')",
    "descriptors": "import os\nos.closerange(0, 256)",
    "forged reply": "import os\nfor d in range(3, 60):\n"
    """    try: os.write(d, b'{"value": "4"}\\n{"says": ""}\\n')\n"""
    "    except OSError: pass\nos._exit(0)",
}
"""In the place of an answer: deserves what a blank one does."""
CHEATS = {
    "checks replaced": "from helpers.grading import checks\n"
    "checks.agrees = checks._agrees = lambda *a, **k: True\n{answer}",
    "allclose replaced": "import numpy\nnumpy.allclose = lambda *a, **k: True\n{answer}",
    "solutions read": "{answer}\nimport glob, json\n"
    "for path in glob.glob('{root}/solutions/*/*.ipynb') + glob.glob('{root}/labs/*/*.ipynb'):\n"
    "    for cell in json.load(open(path))['cells']:\n"
    "        if 'def {function}(' in ''.join(cell['source']): exec(''.join(cell['source']))",
    "folder locked": "import os\nos.makedirs('/tmp/a/b')\nos.chmod('/tmp/a', 0)\n{answer}",
    "process left": "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
    "    while True: time.sleep(1)\n{answer}",
}
"""Around a wrong answer: deserves what the wrong answer alone does."""
T = TypeVar("T")


@dataclass(frozen=True)
class Submission:
    """One notebook. ``answers`` are those that it deserves points for; ``None``: it is no lab's."""

    student: str
    lab: str
    kind: str
    what: str
    place: str
    data: bytes
    answers: Mapping[str, str] | None


def deck(things: Sequence[T], random: Random) -> Iterator[T]:
    """The things in random order, then again in another one, without end."""
    while True:
        yield from random.sample(things, len(things))


def make_class(labs: Sequence[Lab], students: int, seed: int) -> Iterator[Submission]:
    """The submissions of a class, by student and lab: the same for the same seed."""
    random = Random(seed)
    broken, harm = deck(BROKEN, random), deck([*HARM, *CHEATS], random)
    wrong = {
        lab: deck([(q, what) for q, own in lab.bank.wrong.items() for what in own], random)
        for lab in labs
    }
    for number in range(students):
        student = f"{number:03} Zoë, 'Z' <b>" if number % 10 == 9 else f"student-{number:03}"
        for lab in labs:
            kind = random.choices(list(KINDS), list(KINDS.values()))[0]
            right = {q.name: q.right for q in lab.questions}
            blank = {q.name: q.blank for q in lab.questions}
            question, mistake = next(wrong[lab]) if kind == "wrong" else ("", "")
            question = question or random.choice(list(right))
            mistake = mistake or random.choice(list(lab.bank.wrong[question]))
            bad = mutated(right[question], lab.bank.wrong[question][mistake])
            there, deserved, what = dict(right), dict(right), kind
            folder = random.choice(["", "labs/", f"labs/{lab.name}/"])
            place, data = f"{folder}{lab.name}.ipynb", None
            if kind == "right":
                others = {q: a for q, a in lab.bank.others.items() if random.random() < 0.5}
                there = deserved = {**right, **others}
            elif kind == "wrong":
                what, there[question] = f"{question}: {mistake}", bad
                deserved = there
            elif kind == "half-done":
                gone = random.sample(list(right), random.randint(1, len(right)))
                what = f"blank: {', '.join(sorted(gone))}"
                there = deserved = {**right, **{q: blank[q] for q in gone}}
            elif kind == "broken":
                what = f"{next(broken)}, {question}"
                deserved = {**right, question: blank[question]}
                name = what.rpartition(",")[0]
                if name in ZEROS:
                    deserved, data = blank, ZEROS[name](notebook(lab, right))
                elif name == "another file name":
                    place = "homework.ipynb"
                elif name == "another function":
                    there[question] = right[question].replace("def ", "def my_", 1)
                elif name == "syntax error":
                    there[question] += "\n)"
                elif name == "two cells":
                    deserved = {**right, question: bad}
                    data = notebook(lab, right, [(question, bad)]).encode()
                elif name == "no cell":
                    del there[question]
            else:
                attack = next(harm)
                what, fair = f"{attack}, {question}", blank[question]
                if attack in CHEATS:
                    fair = right[question] if attack == "process left" else bad
                there[question] = HARM.get(attack) or CHEATS[attack].format(
                    answer=fair, root=ROOT, function=function_of(right[question])
                )
                deserved = {**right, question: fair}
            data = notebook(lab, there).encode() if data is None else data
            found = None if place == "homework.ipynb" else deserved
            yield Submission(student, lab.name, kind, what, place, data, found)


def function_of(source: str) -> str:
    """The name of the function that an answer defines."""
    return re.findall(r"^def (\w+)", source, re.M)[-1]


def notebook(lab: Lab, answers: Mapping[str, str], more: Sequence[tuple[str, str]] = ()) -> str:
    """The lab as a learner hands it in; without the cells of questions that have no answer."""
    tree = json.loads((ROOT / "labs" / lab.name / f"{lab.name}.ipynb").read_text())
    questions = {question.name: question for question in lab.questions}
    cells = [cell for cell in tree["cells"] if cell["id"] not in questions or cell["id"] in answers]
    for cell in cells:
        cell["source"] = answers.get(cell["id"], cell["source"])
    copies = [{**cell, "source": new} for name, new in more for cell in cells if cell["id"] == name]
    return json.dumps({**tree, "cells": cells + copies}, ensure_ascii=False)


def hand_in(class_: Sequence[Submission], folder: Path) -> None:
    """Write the submissions: a folder for most students, a zip file for every seventh."""
    folder.mkdir(parents=True)
    for number, student in enumerate(dict.fromkeys(one.student for one in class_)):
        mine = {one.place: one.data for one in class_ if one.student == student}
        if number % 7 == 6:
            with zipfile.ZipFile(folder / f"{student}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for place, data in mine.items():
                    archive.writestr(place, data)
            continue
        for place, data in mine.items():
            path = folder / student / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
