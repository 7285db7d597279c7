"""The frame of every explorer: controls above, a picture and a line of text below, one static form.

One display carries the widgets and their static form. JupyterLab shows the widgets while their
kernel runs; a stored notebook, GitHub and the book show the static form.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
from IPython.display import display

from helpers import plots
from helpers.errors import WorkbookError

STATIC_BREADTH = 10.0
"""How broad a static figure may be, in inches; a broader one is made smaller to fit a page."""


@dataclass(frozen=True)
class View:
    """One state of an explorer: its picture as HTML, and what it says in words.

    The words are read aloud by a screen reader when they change, and are never less than the
    picture: whatever a learner is to see stands in them, too.
    """

    picture: str
    words: str


class Shown(ipywidgets.VBox):
    """The box of an explorer, which is in the page already: as a cell's result it is not shown."""

    def _ipython_display_(self) -> None:
        """Display nothing: as the last line of a cell the box would stand there twice."""


def image(figure: Any, alt: str) -> str:
    """A Matplotlib figure as an ``<img>`` with alt text, no wider than the page."""
    return plots.image(plots.png(figure), alt)


def explore(
    controls: Mapping[str, ipywidgets.ValueWidget],
    view: Callable[..., View],
    *,
    static: Any,
    alt: str,
    rows: Sequence[Sequence[ipywidgets.Widget]] = (),
    slow: bool = False,
) -> Shown:
    """Display the controls and, below them, what ``view`` makes of their values.

    ``view`` is called with the controls' values by name, at first and whenever one changes. A
    :class:`WorkbookError` that it raises is shown as its sentence. ``static`` is a figure of the
    main states and ``alt`` its alt text. ``rows`` arranges the controls (and what else belongs
    beside them); without it they stand in one column. ``slow`` says that a view takes more than
    a moment: a sign of work is shown until it is there. Returns the box that was displayed; to
    give it as a cell's result displays nothing more.
    """
    picture = ipywidgets.HTML()
    words = ipywidgets.HTML()

    def update(_: Any = None) -> None:
        if slow:
            words.value = _said("Working ...")
        try:
            made = view(**{name: control.value for name, control in controls.items()})
        except WorkbookError as error:
            picture.value, words.value = "", _said(str(error))
        else:
            picture.value, words.value = made.picture, _said(made.words)

    for control in controls.values():
        control.observe(update, names="value")
    update()
    wrap = {"flex_flow": "row wrap"}  # in a narrow window nothing is cut off
    lines = [ipywidgets.HBox(list(row), layout=wrap) for row in rows] or list(controls.values())
    box = Shown([*lines, words, picture, own_keys()])
    show(box, plots.pictures(static), alt)
    return box


def own_keys() -> ipywidgets.HTML:
    """A part of a box that draws nothing, and makes the box fit for the keyboard and for reading.

    JupyterLab takes arrows, Enter and letters for its own commands unless a text field has the
    focus: in a list or a slider an arrow would select another cell, and D D would delete it. It
    leaves the keys to an element that has this attribute of Lumino's.

    A slider's handle is given the slider's label as its name, and a player's buttons theirs:
    ipywidgets leaves them without one, and a screen reader would say only "slider", "button".
    """
    mark = "event.target.setAttribute('data-lm-suppress-shortcuts', 'true')"
    name = (
        "one.setAttribute('aria-label', one.closest('.jupyter-widgets').innerText.split('\\n')[0])"
    )
    label = "one.setAttribute('aria-label', ['Play or pause', 'Stop', 'Repeat'][place])"
    script = (
        "const box = this.closest('.widget-box');"
        f"const names = () => {{ box.querySelectorAll('[role=slider]').forEach(one => {name});"
        "box.querySelectorAll('.widget-play').forEach("
        f"player => [...player.children].forEach((one, place) => {label})); }};"
        f"if (box) {{ box.addEventListener('focusin', event => {mark}); names();"
        # A slider whose range changes is drawn anew, without the name of the former handle.
        "new MutationObserver(names).observe(box, {childList: true, subtree: true}); }"
    )
    return ipywidgets.HTML(f'<style onload="{script}"></style>', layout={"display": "none"})


def show(widget: ipywidgets.Widget, static: Mapping[str, str], text: str) -> None:
    """Display a widget with its static form: data by MIME type, and ``text`` as plain text.

    Where the static form is an image, its alt text follows as a folded description.
    """
    live = widget._repr_mimebundle_()
    alt = {"image/png": {"alt": text}} if "image/png" in static else {}
    display({**live, **static, "text/plain": text}, metadata=alt, raw=True)
    if alt:
        folded = plots.folded("The stored figure in words", text)
        display({"text/html": folded, "text/plain": text}, raw=True)


def _said(words: str) -> str:
    lines = "<br>".join(html.escape(line) for line in words.splitlines())
    return f'<div role="status" aria-live="polite" style="line-height: 1.4">{lines}</div>'
