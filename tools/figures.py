"""The figures of the lessons as SVG, for the book.

A stored notebook holds a figure as PNG. The run that made it leaves the same figure as SVG in
``notebooks/figures/NN_topic/``, under a name that holds a part of the PNG's checksum: so a figure
drawn from measured times and its SVG are always of one run, and a stale SVG is found.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode

PNG, SVG = "image/png", "image/svg+xml"


def name(cell: NotebookNode, png: str) -> str:
    """The file of the SVG that belongs to an output's ``png`` (base64) in ``cell``."""
    return f"{cell.id}-{hashlib.sha256(base64.b64decode(png)).hexdigest()[:8]}.svg"


def folder(notebook: Path) -> Path:
    """Where the SVGs of the lesson stored in ``notebook`` are."""
    return notebook.parent / "figures" / notebook.stem


def names(notebook: NotebookNode) -> Iterator[str]:
    """The files that belong to the notebook's outputs."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if PNG in output.get("data", {}):
                yield name(cell, output.data[PNG])


def take(notebook: NotebookNode) -> dict[str, str]:
    """Take the SVGs out of the outputs; their text by file name."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if SVG in output.get("data", {}):
                found[name(cell, output.data[PNG])] = shortened(output.data.pop(SVG))
    return found


def shortened(svg: str) -> str:
    """``svg`` with the coordinates of its paths to a hundredth of a point, half the bytes."""
    return re.sub(r'(?<= d=")[^"]+', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)


def size(svg: str) -> tuple[int, int]:
    """Width and height of an SVG of Matplotlib's in pixels (96 an inch, 72 points an inch)."""
    found = re.search(r'<svg [^>]*\bwidth="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert found, "Matplotlib writes an SVG's size in points."
    return round(float(found[1]) * 4 / 3), round(float(found[2]) * 4 / 3)


def keep(notebook: Path, vectors: Mapping[str, str]) -> None:
    """Make the lesson's folder hold exactly ``vectors``."""
    place = folder(notebook)
    for old in place.glob("*.svg"):
        if old.name not in vectors:
            old.unlink()
    for file, text in vectors.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text, encoding="utf-8")


def problems(notebook: NotebookNode, path: Path) -> list[str]:
    """Which SVGs are missing or left over, one sentence each."""
    wanted = set(names(notebook))
    there = {file.name for file in folder(path).glob("*.svg")}
    return [
        *(f"a figure's {file} is missing: build the page." for file in sorted(wanted - there)),
        *(f"{file} belongs to no figure: build the page." for file in sorted(there - wanted)),
    ]
