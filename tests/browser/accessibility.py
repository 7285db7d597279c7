"""axe-core on what a notebook shows, without JupyterLab's own surroundings, and on the book."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

SERIOUS = ("serious", "critical")

# The parts of a notebook that the workbook writes.
CONTENT = (
    ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-MarkdownOutput",
    ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-OutputArea-output",
)

# Rules that are not asked, each with its reason.
NOT_ASKED: dict[str, str] = {}


def serious_findings(page: Any, content: Sequence[str] = CONTENT) -> list[str]:
    """What axe-core calls serious or critical in the parts of the page shown, one line each."""
    if not page.evaluate("() => Boolean(window.axe)"):
        script = resources.files("axe_playwright_python").joinpath("axe.min.js")
        # JupyterLab has an AMD loader, to which axe would give itself instead of to the window.
        page.evaluate(
            "source => { (function (define, module, exports) { eval(source); })"
            ".call(window, undefined, undefined, undefined); }",
            script.read_text(encoding="utf-8"),
        )
    found = page.evaluate(
        """async ([content, off]) => {
            const here = content.filter(selector => document.querySelector(selector));
            const rules = Object.fromEntries(off.map(rule => [rule, {enabled: false}]));
            const result = await axe.run(
                {include: here.map(selector => [selector])},
                // No style sheet is read once more: it would be asked for at a wrong address.
                {resultTypes: ['violations'], preload: false, rules},
            );
            const said = node => `${node.html.slice(0, 200)}: ${node.failureSummary}`;
            return result.violations.map(({id, impact, help, nodes}) => (
                {id, impact, help, count: nodes.length, nodes: nodes.slice(0, 3).map(said)}
            ));
        }""",
        [list(content), list(NOT_ASKED)],
    )
    return [
        f"{rule['id']} ({rule['impact']}, {rule['count']} times): {rule['help']}: "
        + " | ".join(rule["nodes"])
        for rule in found
        if rule["impact"] in SERIOUS
    ]
