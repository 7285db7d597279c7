"""Explorers and quizzes as a reader handles them: by the labels of their controls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab_window import Notebook

from helpers import quiz

Act = Callable[["Explorer"], None]


class Explorer:
    """The explorer that the cell with ``source`` in it displays."""

    def __init__(self, notebook: Notebook, source: str) -> None:
        cell = next(cell.id for cell in notebook.source.cells if source in cell.source)
        self.page = notebook.page
        self.box = notebook.cell(cell).locator(".jp-OutputArea-output .widget-vbox").first
        self.words_place = self.box.locator("[role=status]").last
        self.box.scroll_into_view_if_needed()

    @property
    def words(self) -> str:
        """What the explorer says."""
        return self.words_place.text_content()

    @property
    def picture(self) -> str:
        """What it draws; nothing while it is being drawn."""
        return self.box.evaluate(
            """box => {
                const said = [...box.querySelectorAll('[role=status]')].pop();
                return said?.closest('.widget-html')?.nextElementSibling.innerHTML ?? '';
            }"""
        )

    def control(self, label: str | re.Pattern[str]) -> Any:
        """What has the keyboard's focus when this control is used: field, list, box, handle."""
        name = self.page.get_by_text(label, exact=True)
        whole = self.box.locator(".jupyter-widgets").filter(has=name)
        return whole.last.locator("select, input, [role=slider]").first

    def stops(self) -> list[str]:
        """The labels and texts of the controls, in the order in which Tab reaches them."""
        return self.box.evaluate(
            """box => [...box.querySelectorAll('select, input, button, [role=slider]')]
                .filter(one => one.tabIndex >= 0 && !one.disabled && one.offsetParent)
                .map(one => one.innerText || one.closest('.jupyter-widgets')?.innerText || '')"""
        )


def keys(label: str | re.Pattern[str], *names: str) -> Act:
    """Put the focus on the control with this label and press keys."""

    def act(explorer: Explorer) -> None:
        explorer.control(label).focus()
        for name in names:
            explorer.page.keyboard.press(name)

    return act


def enter(label: str, text: str) -> Act:
    """Write a text into a field."""

    def act(explorer: Explorer) -> None:
        explorer.control(label).fill(text)
        explorer.page.keyboard.press("Enter")

    return act


def press(label: str) -> Act:
    """Click a button or a check box with the mouse."""

    def act(explorer: Explorer) -> None:
        button = explorer.box.get_by_role("button", name=label, exact=True)
        (button if button.count() else explorer.control(label)).click()

    return act


def drag(label: str, pixels: int) -> Act:
    """Drag the handle of a slider with the mouse."""

    def act(explorer: Explorer) -> None:
        place = explorer.control(label).bounding_box()
        x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        mouse = explorer.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + pixels, y, steps=4)
        mouse.up()

    return act


@dataclass(frozen=True)
class Move:
    """Something done with an explorer, and a pattern that its words then fit.

    ``draws`` says whether the picture must be another one afterwards.
    """

    act: Act
    says: str
    draws: bool = True


def drive(explorer: Explorer, moves: tuple[Move, ...]) -> list[str]:
    """Do the moves; what did not come as it should."""
    found = []
    for number, move in enumerate(moves, 1):
        # One control may have changed another, whose new range is on its way.
        explorer.page.wait_for_timeout(500)
        before = explorer.picture
        move.act(explorer)
        for _ in range(150):
            changed = explorer.picture not in ("", before)
            if re.search(move.says, explorer.words) and changed >= move.draws:
                break
            explorer.page.wait_for_timeout(100)
        else:
            if changed < move.draws:
                found.append(f"move {number}: the picture is the same as before")
            if not re.search(move.says, explorer.words):
                found.append(f"move {number}: not {move.says!r} but {explorer.words!r}")
    return found


# --- quizzes -------------------------------------------------------------------------------------


def answer_all(notebook: Notebook, topic: str) -> list[str]:
    """Answer each question of a lesson wrongly with the mouse, then rightly with the keyboard."""
    bank = quiz.QUIZ / f"{topic}.yaml"
    found = []
    for question in quiz.load(bank):
        button = notebook.panel.get_by_role("button", name=f"Check {question.id}", exact=True)
        if not button.count():
            found.append(f"question {question.id} is not asked")
            continue
        part = button.locator("xpath=ancestor::*[contains(@class, 'widget-vbox')][1]")
        for right in (False, True):
            notebook.wait_idle()  # a key that comes while the last answer is told can be lost
            answer = _answer(question, right)
            _give(part, question, answer, by_keyboard=right)
            if right:
                button.press("Enter")
            else:
                button.click()
            said = quiz.judge(question, answer).said
            try:
                part.get_by_role("status").get_by_text(said, exact=True).wait_for(timeout=15_000)
            except Exception:
                shown = part.get_by_role("status").inner_text()
                found.append(f"question {question.id}, {answer}: not {said!r} but {shown!r}")
    return found


def _answer(question: quiz.Question, right: bool) -> str:
    if question.kind == "number":
        return f"{question.answer if right else 3 * question.answer + 7:g}"
    keyed = [
        letter
        for letter, option in zip(question.letters, question.options, strict=True)
        if option.right == right
    ]
    return "".join(keyed if question.kind == "multiple" else keyed[:1])


def _give(part: Any, question: quiz.Question, answer: str, *, by_keyboard: bool) -> None:
    if question.kind == "number":
        part.locator("input[type=text]").fill(answer)
        return
    boxes = part.locator("input[type=radio], input[type=checkbox]")
    for place, letter in enumerate(question.letters):
        box = boxes.nth(place)
        if box.is_checked() == (letter in answer) or (
            question.kind == "single" and letter not in answer
        ):
            continue
        if by_keyboard:
            box.press("Space")
        else:
            box.click()
