"""From a MyST Markdown source to the notebook it stands for, without running anything.

``notebooks/src/NN_topic.md`` becomes ``notebooks/NN_topic.ipynb``; ``solutions/NN_topic/lab.md``
becomes the lab with answers in ``solutions/`` and the same lab without them in ``labs/``.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupytext.myst import MystMetadataParsingError
from markdown_it import MarkdownIt
from nbformat import NotebookNode

from helpers.errors import WorkbookError

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
GRADING_TAGS = ("solution", "check", "written")
KNOWN_TAGS = (
    *GRADING_TAGS,
    "nbval-ignore-output",
    "raises-exception",
    *(f"{verb}-{part}" for verb in ("hide", "remove") for part in ("input", "output", "cell")),
)
KNOWN_METADATA = ("name", "tags", "points", "slideshow")
MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Page:
    """One notebook and the source it is built from."""

    name: str
    kind: str  # "lesson", "solution" or "lab"
    source: Path
    target: Path

    def __str__(self) -> str:
        return (
            f"{self.target.parent.parent.name}/{self.name}" if self.kind != "lesson" else self.name
        )


def find_pages(root: Path, names: list[str] | None = None) -> list[Page]:
    """All pages of the workbook at ``root``, or those of the topics named, in order.

    Raises :class:`WorkbookError` for a name that no source has.
    """
    pages = [
        Page(source.stem, "lesson", source, root / "notebooks" / f"{source.stem}.ipynb")
        for source in sorted((root / "notebooks" / "src").glob("*.md"))
    ]
    for source in sorted((root / "solutions").glob("*/lab.md")):
        topic = source.parent.name
        for kind, folder in (("solution", "solutions"), ("lab", "labs")):
            pages.append(Page(topic, kind, source, root / folder / topic / f"{topic}.ipynb"))
    known = sorted({page.name for page in pages})
    for name in names or ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise WorkbookError(f"There is no page called {name!r}.{hint}")
    return [page for page in pages if not names or page.name in names]


def find_notebooks(root: Path) -> list[Path]:
    """Every ``.ipynb`` among the built ones, whoever made it.

    Not among them: JupyterLab's checkpoints, and ``*.fresh.ipynb`` beside a learner's notebook.
    """
    return sorted(
        path
        for folder in ("notebooks", "labs", "solutions")
        for path in (root / folder).rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts and "." not in path.stem
    )


def read_page(page: Page) -> NotebookNode:
    """The notebook that the page's source stands for, without outputs.

    Raises :class:`WorkbookError` naming page and cell when the source is not well formed.
    """
    try:
        text = page.source.read_text(encoding="utf-8")
        cells = jupytext.reads(text, fmt="md:myst").cells
    except (OSError, ValueError, MystMetadataParsingError, nbformat.ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise WorkbookError(f"{page}: the source cannot be read: {reason}") from error
    notebook = nbformat.v4.new_notebook(metadata=METADATA, cells=cells)
    try:
        _check_metadata(notebook)
        _expand_grading(notebook, graded=page.kind != "lesson")
        _name_cells(notebook, page.name)
        if page.kind == "lesson":
            _fold_results(notebook)
        if page.kind == "lab":
            notebook = _without_answers(notebook)
        nbformat.validate(notebook)
    except (RuntimeError, ValueError, nbformat.ValidationError) as error:
        raise WorkbookError(f"{page}: {error}") from error
    return notebook


def as_text(notebook: NotebookNode) -> str:
    """The bytes of an ``.ipynb``: sorted keys, one space of indent, one newline at the end."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    """A copy with the outputs and execution counts removed."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return copy


def headings(markdown: str) -> Iterator[tuple[int, str]]:
    """Level and text of each heading; ``#`` inside a code block is not one."""
    tokens = MARKDOWN.parse(markdown)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            yield int(token.tag[1]), inline.content


def _check_metadata(notebook: NotebookNode) -> None:
    for number, cell in enumerate(notebook.cells, 1):
        _check_words(f"cell {number}", "metadata", cell.metadata, KNOWN_METADATA)
        _check_words(f"cell {number}", "tag", cell.metadata.get("tags", []), KNOWN_TAGS)


def _check_words(where: str, what: str, words: Iterable[str], known: tuple[str, ...]) -> None:
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(str(word), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{where} has the unknown {what} {word!r}{hint}")


def _expand_grading(notebook: NotebookNode, *, graded: bool) -> None:
    """Replace the tags ``solution``, ``check`` and ``written`` by nbgrader's metadata (schema 3).

    Questions are numbered q1, q2, ... in the order of their answers; a check belongs to the
    answer before it. ``name`` overrides the id, ``points`` (default 1) gives the weight.
    """
    question, count = None, 0
    for cell in notebook.cells:
        meta = cell.metadata
        tags = meta.get("tags", [])
        role = next((tag for tag in GRADING_TAGS if tag in tags), None)
        points = meta.pop("points", 1)
        if role is None:
            continue
        if not graded:
            raise ValueError(f"the tag {role!r} belongs into a lab, not into a lesson")
        if (role == "written") != (cell.cell_type == "markdown"):
            raise ValueError(f"the tag {role!r} is on a {cell.cell_type} cell")
        if role == "check":
            if question is None:
                raise ValueError("a check comes before the first answer")
            meta["name"] = meta.get("name", f"{question}-check")
        else:
            count += 1
            question = meta["name"] = meta.get("name", f"q{count}")
        grade = role != "solution"
        meta["nbgrader"] = {
            "schema_version": 3,
            "grade_id": meta["name"],
            "grade": grade,
            "solution": role != "check",
            "locked": role == "check",
            "task": False,
            **({"points": points} if grade else {}),
        }
        meta["tags"] = [tag for tag in tags if tag not in GRADING_TAGS]
        if not meta["tags"]:
            del meta["tags"]


def _name_cells(notebook: NotebookNode, page_name: str) -> None:
    """Give each cell its id: its own name, else its section's heading and a number.

    An id so depends on the source alone, and a new cell renumbers no other section.
    """
    taken = {cell.metadata["name"] for cell in notebook.cells if "name" in cell.metadata}
    section, count = page_name, Counter[str]()
    used: set[str] = set()
    for cell in notebook.cells:
        found = [text for _, text in headings(cell.source)] if cell.cell_type == "markdown" else []
        if found:
            section = found[0]
        name = cell.metadata.pop("name", None)
        if name is None:
            slug = re.sub(r"[^a-z0-9]+", "-", section.lower()).strip("-")[:50].strip("-") or "part"
            while name is None or name in taken:
                count[slug] += 1
                name = f"{slug}-{count[slug]}"
        elif not re.fullmatch(r"[a-z][a-z0-9-]{0,63}", str(name)):
            raise ValueError(f"the name {name!r} is not made of a-z, 0-9 and hyphens")
        if name in used:
            raise ValueError(f"two cells are named {name!r}")
        used.add(name)
        cell.id = name
        if found:
            section = found[-1]


def _fold_results(notebook: NotebookNode) -> None:
    """Fold the stored outputs that a learner is to predict.

    JupyterLab shows a folded output when its cell is run; a page that is only read shows all of
    them. Folded are the cells from a prediction to the end of its section, and each cell with the
    table of what was predicted. An explorer has its own place for a guess and stays open.
    """
    asked = False
    for cell in notebook.cells:
        if cell.cell_type != "code":
            asked = asked and not any(headings(cell.source))
        elif re.search(r"quiz\.predict\(|^yours = ", cell.source, re.M):
            asked = True
        elif (asked or "guess." in cell.source) and "explorer(" not in cell.source:
            cell.metadata["jupyter"] = {"outputs_hidden": True}


# --- the lab without answers -----------------------------------------------------------------

CODE_STUB = "# your code here"
NOT_WRITTEN = 'raise NotImplementedError("your code here")'
TEXT_STUB = "*Your answer here.*"


def blank_answers(source: str) -> str:
    """Assignments with ``None`` for each value: what an answer cell without markers becomes.

    Raises ``ValueError`` when there is anything but assignments to plain names.
    """
    lines = []
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                lines.append(f"{name} = None  {CODE_STUB.replace('code', 'answer')}")
            case _:
                raise ValueError(
                    "an answer cell without ### BEGIN SOLUTION holds more than `name = value` "
                    f"lines: {ast.unparse(statement).splitlines()[0]}"
                )
    return "\n".join(lines)


def release_preprocessors() -> list[Any]:
    """nbgrader's steps from the master to the lab that is given out, in nbgrader's order."""
    from nbgrader import preprocessors as steps

    from tools.clear_answers import ClearAnswers

    clear = ClearAnswers()
    clear.log.disabled = True  # what it logs, it raises as well
    return [
        steps.CheckCellMetadata(),
        clear,
        steps.LockCells(),
        steps.ClearOutput(),
        steps.ClearHiddenTests(),
        steps.ClearMarkScheme(),
        steps.ComputeChecksums(),
    ]


def _without_answers(notebook: NotebookNode) -> NotebookNode:
    resources: dict[str, Any] = {}
    for step in release_preprocessors():
        notebook, resources = step.preprocess(notebook, resources)
    return notebook
