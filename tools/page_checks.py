"""What a page must be like, told from the stored notebook alone."""

from __future__ import annotations

import ast
import contextlib
import getpass
import json
import re
import socket
import statistics
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbval.plugin import find_comment_markers, find_metadata_tags

from helpers.kernels import ROOT
from tools.pages import MARKDOWN, headings

# nbval compares neither of these (IPyNbFile.skip_compare in nbval 0.11).
NOT_COMPARED = ("application/vnd.jupyter.widget-view+json", "image/png", "image/jpeg")
STRICT_SHARE = 0.85  # of the code cells that have an output
MEDIAN_LINES, MOST_LINES = 6, 25
LESSON_CELLS = range(20, 36)
ALT_TEXT = 20  # characters: fewer cannot say what a figure shows

_MACHINE = {
    "an object's address": r"0x[0-9a-fA-F]{6,}",
    "a path of this machine": rf"{re.escape(str(ROOT))}|/(home|root|tmp|usr/lib)/|site-packages",
    "a warning": r"\b\w*Warning:|\bWARNING\b",
    "a line of TVM's log": r"\[\d\d:\d\d:\d\d\] \S+:\d+:",
}


def comparable(output: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """The places of an output that nbval compares, as (mapping, key)."""
    if output.output_type == "stream":
        yield output, "text"
    elif output.output_type == "error":
        yield output, "ename"
        yield output, "evalue"
    else:
        for key in output.data:
            if key not in NOT_COMPARED:
                yield output.data, key


def as_string(value: Any) -> str:
    """The text of one representation of an output; JSON ones are dumped."""
    return value if isinstance(value, str) else json.dumps(value)


def changed_outputs(cell: NotebookNode) -> Iterator[tuple[str, list[NotebookNode]]]:
    """Every way to change one compared piece of a cell's outputs or to lose one, with its name."""
    for number, output in enumerate(cell.outputs):
        for position, (_, key) in enumerate(comparable(output)):
            outputs = deepcopy(cell.outputs)
            place, _ = list(comparable(outputs[number]))[position]
            value = place[key]
            place[key] = f"changed {value}" if isinstance(value, str) else {"changed": value}
            yield f"{key} in output {number + 1}", outputs
            yield f"the loss of output {number + 1}", cell.outputs[:number] + outputs[number + 1 :]


def classify(cell: NotebookNode) -> str:
    """What nbval makes of a code cell.

    ``skipped``, ``unrun`` (never executed), ``ignored`` (output not compared), ``empty`` (must
    have no output), ``weak`` (an output, but nothing of substance is compared) or ``strict``.
    """
    options = {**dict(find_metadata_tags(cell.metadata)), **dict(find_comment_markers(cell.source))}
    if options.get("skip"):
        return "skipped"
    if cell.execution_count is None:
        return "unrun"
    if options.get("check") is False:
        return "ignored"
    if not cell.outputs:
        return "empty"
    texts = [as_string(place[key]) for out in cell.outputs for place, key in comparable(out)]
    return "strict" if any(re.sub(r"<Figure size .*?>|\s", "", text) for text in texts) else "weak"


def code_lines(cell: NotebookNode) -> int:
    """Lines of a code cell that are not blank."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def median_lines(notebook: NotebookNode) -> float:
    """The median of :func:`code_lines`; each question of a quiz counts as a cell of one line."""
    lines = []
    for cell in code_cells(notebook):
        asked = sum(
            len(re.findall(r"^Question \d\d-\d+\. ", as_string(place[key]), re.MULTILINE))
            for output in cell.outputs
            for place, key in comparable(output)
            if key in ("text", "text/plain")
        )
        lines += [1] * asked if asked and code_lines(cell) == 1 else [code_lines(cell)]
    return statistics.median(lines) if lines else 0


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def strict_share(notebook: NotebookNode) -> tuple[int, int]:
    """How many code cells nbval compares strictly, and how many have an output to compare."""
    kinds = Counter(classify(cell) for cell in code_cells(notebook))
    return kinds["strict"], sum(kinds.values()) - kinds["empty"]


def summary(notebook: NotebookNode) -> str:
    """One line for the author of a page."""
    code = code_cells(notebook)
    strict, outputs = strict_share(notebook)
    return (
        f"{len(notebook.cells)} cells, {len(code)} of code "
        f"(median {median_lines(notebook):g} lines), "
        f"{strict} of {outputs} outputs compared strictly"
    )


def problems(notebook: NotebookNode, path: Path, kind: str) -> list[str]:
    """What is wrong with the page stored in ``path``, one sentence each; empty when nothing is."""
    return [
        *_shape(notebook, kind),
        *_comparison(notebook),
        *_outputs(notebook),
        *_prose(notebook, path),
    ]


def _shape(notebook: NotebookNode, kind: str) -> Iterator[str]:
    markdown = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    titles = [text for cell in markdown for level, text in headings(cell.source) if level == 1]
    if len(titles) != 1:
        yield f"There are {len(titles)} headings of level 1 instead of one."
    if kind == "lesson" and len(notebook.cells) not in LESSON_CELLS:
        low, high = LESSON_CELLS[0], LESSON_CELLS[-1]
        yield f"There are {len(notebook.cells)} cells: a lesson has {low} to {high}."
    lines = {cell.id: code_lines(cell) for cell in code_cells(notebook)}
    if median_lines(notebook) > MEDIAN_LINES:
        yield f"The median code cell is longer than {MEDIAN_LINES} lines."
    for name, count in lines.items():
        if count > MOST_LINES:
            yield f"Cell {name} has {count} lines of code: at most {MOST_LINES}."


def _comparison(notebook: NotebookNode) -> Iterator[str]:
    code = code_cells(notebook)
    strict, outputs = strict_share(notebook)
    if strict < STRICT_SHARE * outputs:
        yield f"Only {strict} of {outputs} outputs are compared strictly, not {STRICT_SHARE:.0%}."
    for cell, follower in zip(code, [*code[1:], None], strict=False):
        kind = classify(cell)
        if list(find_comment_markers(cell.source)):
            yield f"Cell {cell.id} steers nbval by a comment: use a tag."
        if kind in ("unrun", "skipped"):
            yield f"Cell {cell.id} is {kind}: nbval would pass whatever it does."
        if kind == "weak":
            yield f"Cell {cell.id} shows only what nbval does not compare: print the data too."
        if kind == "ignored" and not (_asserts(cell) or _asserts(follower)):
            yield f"Cell {cell.id} ignores its output, and no assertion is in it or the next cell."


def _asserts(cell: NotebookNode | None) -> bool:
    if cell is None or dict(find_metadata_tags(cell.metadata)).keys() & {"skip", "check_exception"}:
        return False
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:  # an IPython magic
        return False
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def _outputs(notebook: NotebookNode) -> Iterator[str]:
    names = {socket.gethostname()}
    with contextlib.suppress(KeyError, OSError):  # a container's user may have no name
        names.add(getpass.getuser())
    private = "|".join(re.escape(name) for name in names if len(name) > 4 and name != "runner")
    patterns = _MACHINE | ({"a name of this machine": rf"\b({private})\b"} if private else {})
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                first = output.text.strip().splitlines()[:1]
                yield f"Cell {cell.id} writes to standard error: {''.join(first)}"
                continue
            text = "\n".join(as_string(place[key]) for place, key in comparable(output))
            for what, pattern in patterns.items():
                found = re.search(pattern, text)
                if found:
                    yield f"The output of cell {cell.id} holds {what}: {found[0]}"
            if "image/png" in output.get("data", {}):
                alt = as_string(output.data.get("text/plain", ""))
                if alt.startswith("<") or len(alt) < ALT_TEXT:
                    yield f"The figure of cell {cell.id} has no alt text."


class _Tags(HTMLParser):
    """Links and images written as HTML inside Markdown."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.images: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the alt text of images and the targets of both."""
        found = dict(attrs)
        if tag == "img":
            self.images.append(found.get("alt") or "")
            self.links.append(found.get("src") or "")
        elif tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")


def links_and_images(markdown: str) -> tuple[list[str], list[str]]:
    """Targets of all links and images, and the alt texts of all images, of a Markdown cell."""
    links: list[str] = []
    images: list[str] = []
    for token in (
        t for block in MARKDOWN.parse(markdown) for t in [block, *(block.children or [])]
    ):
        if token.type == "link_open":
            links.append(str(token.attrs["href"]))
        elif token.type == "image":
            links.append(str(token.attrs["src"]))
            images.append(token.content)
        elif token.type in ("html_inline", "html_block"):
            html = _Tags(token.content)
            links += html.links
            images += html.images
    return links, images


def anchors(notebook: NotebookNode) -> set[str]:
    """The fragments that JupyterLab gives to the headings: their text, spaces as hyphens."""
    return {
        text.replace(" ", "-")
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for _, text in headings(cell.source)
    }


def _prose(notebook: NotebookNode, path: Path) -> Iterator[str]:
    here = anchors(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        links, images = links_and_images(cell.source)
        if not all(alt.strip() for alt in images):
            yield f"An image in cell {cell.id} has no alt text."
        for link in links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = urllib.parse.unquote(parts.path)
            if target and not (path.parent / target).exists():
                yield f"The link {link} in cell {cell.id} leads nowhere."
            elif not target and urllib.parse.unquote(parts.fragment) not in here:
                yield f"No heading has the anchor {link} that cell {cell.id} links to."
