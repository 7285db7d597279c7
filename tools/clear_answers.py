"""nbgrader's step that takes the answers out, made to leave cells that run.

``tools.pages`` builds the labs with it; ``tools/nbgrader_config.py`` puts it into nbgrader's own
release.
"""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions
from nbgrader.utils import is_solution
from traitlets import default

from tools.pages import CODE_STUB, NOT_WRITTEN, TEXT_STUB, blank_answers


class ClearAnswers(ClearSolutions):
    """Leave something that runs: ``None`` for a value, a raise in the body of a function."""

    @default("code_stub")
    def _stubs_of_code(self) -> dict[str, str]:
        return {"python": CODE_STUB}

    @default("text_stub")
    def _stub_of_text(self) -> str:
        return TEXT_STUB

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if cell.cell_type != "code":
            return bool(super()._replace_solution_region(cell, language))
        if is_solution(cell) and self.begin_solution_delimeter not in cell.source:
            cell.source = blank_answers(cell.source)
            return True
        replaced = bool(super()._replace_solution_region(cell, language))
        cell.source = re.sub(
            rf"^([ \t]+){CODE_STUB}$",
            rf"\g<0>\n\g<1>{NOT_WRITTEN}",
            cell.source,
            flags=re.MULTILINE,
        )
        return replaced


def release_steps(steps: list[Any]) -> list[Any]:
    """The steps of nbgrader's release with :class:`ClearAnswers` in the place of its own."""
    return [ClearAnswers if step is ClearSolutions else step for step in steps]
