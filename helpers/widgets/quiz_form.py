"""Quiz questions to answer in a notebook: controls with a kernel, folded answers without.

Nothing is said about an option before it was chosen and *Check* was pressed. Texts of a bank are
escaped: what stands in a question is shown, and never becomes a tag.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from helpers import quiz, quiz_record
from helpers.errors import WorkbookError
from helpers.quiz import Question
from helpers.widgets import frame

# The stock controls have room for one short line; an option of a question needs several.
_STYLE = """<style>
.workbook-quiz { max-width: 52em; }
.workbook-quiz .widget-html, .workbook-quiz .widget-html-content {
  height: auto; line-height: 1.45; }
.workbook-quiz .widget-radio, .workbook-quiz .widget-checkbox { width: 100%; height: auto; }
.workbook-quiz .widget-radio-box { width: 100%; height: auto; }
.workbook-quiz .widget-radio-box label, .workbook-quiz .widget-checkbox label {
  display: flex; align-items: baseline; gap: 0.6em; height: auto; width: auto; max-width: 100%;
  line-height: 1.45; margin: 0.15em 0; white-space: normal; overflow: visible; text-align: left; }
.workbook-quiz .widget-radio-box label { flex-direction: row-reverse; justify-content: flex-end; }
.workbook-quiz .widget-radio-box input, .workbook-quiz .widget-checkbox input {
  position: static; flex: none; align-self: flex-start; margin: 0.25em 0 0; }
.workbook-quiz pre { margin: 0.6em 0; }
.workbook-quiz .widget-checkbox span { white-space: normal; }
.workbook-quiz input:focus-visible, .workbook-quiz button:focus-visible {
  outline: 2px solid currentcolor; outline-offset: 2px; }
</style>"""


def show(questions: Sequence[Question]) -> ipywidgets.VBox:
    """Display questions: as a form, with :func:`static` for where no kernel runs."""
    box = form(questions)
    frame.show(box, {"text/html": static(questions)}, quiz.as_text(questions))
    return box


def form(questions: Sequence[Question]) -> ipywidgets.VBox:
    """The controls of all questions, and a line that counts the ones answered rightly."""
    right: set[str] = set()
    count = ipywidgets.HTML()

    def answered(question: Question, verdict: quiz.Verdict) -> None:
        quiz_record.note(question.id, verdict.right)
        if verdict.right:
            right.add(question.id)
        count.value = f"<p>Right so far: {len(right)} of {len(questions)}.</p>"

    parts = [_part(question, answered) for question in questions]
    box = ipywidgets.VBox([ipywidgets.HTML(_STYLE), *parts, count])
    box.add_class("workbook-quiz")
    return box


def _part(
    question: Question, answered: Callable[[Question, quiz.Verdict], None]
) -> ipywidgets.VBox:
    text = ipywidgets.HTML(_question(question))
    controls, chosen = _controls(question)
    button = ipywidgets.Button(
        description=f"Check {question.id}", tooltip=f"Judge your answer to question {question.id}"
    )
    said = ipywidgets.HTML(_status(""))

    def check(_: Any = None) -> None:
        answer = chosen()
        if not answer:
            said.value = _status(f"Question {question.id} has no answer yet.")
            return
        try:
            verdict = quiz.judge(question, answer)
        except WorkbookError as error:
            said.value = _status(str(error))
            return
        said.value = _status(verdict.said, verdict.reasons)
        answered(question, verdict)

    def entered(_: Any, content: dict[str, Any], __: Any) -> None:
        if content.get("event") == "submit":  # Enter in the field of a number
            check()

    button.on_click(check)
    for control in controls:
        control.on_msg(entered)
    return ipywidgets.VBox([text, *controls, button, said])


def _controls(question: Question) -> tuple[list[ipywidgets.Widget], Callable[[], str]]:
    """The controls of an answer, and what is chosen in them as :func:`quiz.judge` takes it."""
    wide = {"description_width": "initial"}
    if question.kind == "number":
        unit = f" (in {question.unit})" if question.unit else ""
        field = ipywidgets.Text(
            description=f"Your number{unit}:",
            style=wide,
            layout={"width": "auto", "max_width": "24em"},
        )
        return [field], lambda: field.value.strip()
    labels = [  # which are plain text: no code, so no backticks
        (f"{letter}. {' '.join(option.text.replace('`', '').split())}", letter)
        for letter, option in zip(question.letters, question.options, strict=True)
    ]
    if question.kind == "single":
        radio = ipywidgets.RadioButtons(options=labels, index=None)
        return [radio], lambda: radio.value or ""
    boxes = [
        ipywidgets.Checkbox(value=False, description=label, indent=False) for label, _ in labels
    ]
    return boxes, lambda: "".join(
        letter for box, (_, letter) in zip(boxes, labels, strict=True) if box.value
    )


def _status(said: str, reasons: Sequence[tuple[str, str]] = ()) -> str:
    """A verdict as HTML that a screen reader reads aloud."""
    lines = [f"<strong>{html.escape(said)}</strong>"] if said else []
    lines += [f"{letter} {_inline(text)}".strip() for letter, text in reasons]
    made = "".join(f'<p style="margin: 0.2em 0">{line}</p>' for line in lines)
    return f'<div role="status" aria-live="polite">{made}</div>'


# --- without a kernel ----------------------------------------------------------------------------


def static(questions: Sequence[Question]) -> str:
    """The questions as HTML; each answer with its reasons is folded."""
    how = (
        "<p><em>Run the cell to answer here. Without a kernel, open the answer when you have "
        "decided.</em></p>"
    )
    return f'<div style="max-width: 52em">{how}{"".join(map(_folded, questions))}</div>'


def _folded(question: Question) -> str:
    unit = f"<p><em>A number in {html.escape(question.unit)}.</em></p>" if question.unit else ""
    options = "<br>".join(
        f"{letter}. {_inline(option.text)}"
        for letter, option in zip(question.letters, question.options, strict=True)
    )
    listed = f"<p>{options}</p>" if options else unit
    return (
        f"{_question(question)}{listed}<details><summary>Answer to question "
        f"{html.escape(question.id)}, with reasons</summary>{_answer(question)}</details><hr>"
    )


def _question(question: Question) -> str:
    first, *rest = _paragraphs(question.question)
    hint = " <em>Choose all that are right.</em>" if question.kind == "multiple" else ""
    code = f"<pre><code>{html.escape(question.code)}</code></pre>" if question.code else ""
    lead = f"<strong>Question {html.escape(question.id)}.</strong> {first}{hint}"
    return f"<p>{lead}</p>{''.join(rest)}{code}"


def _paragraphs(text: str) -> list[str]:
    """The text of the first paragraph, and the others as HTML; indented ones are code."""
    first, *rest = re.split(r"\n\s*\n", text.strip())
    made = [
        f"<pre><code>{html.escape(block)}</code></pre>"
        if block.startswith("    ")
        else f"<p>{_inline(block)}</p>"
        for block in rest
    ]
    return [_inline(first), *made]


def _answer(question: Question) -> str:
    verdict = quiz.explain(question)
    lines = [f"<strong>{html.escape(verdict.said)}</strong>"]
    lines += [f"{letter} {_inline(text)}".strip() for letter, text in verdict.reasons]
    return "".join(f"<p>{line}</p>" for line in lines)


def _inline(text: str) -> str:
    """Text as HTML; what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(text.split())))
