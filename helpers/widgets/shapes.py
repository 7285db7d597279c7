"""The few shapes of SVG that explorers draw: quick, and a shape can say what it is.

A picture has a white ground of its own, as figures have, so it reads the same on a dark page.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from helpers import plots

Colour = str | tuple[float, float, float]


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: Colour,
    *,
    title: str = "",
    **style: Any,
) -> str:
    """A rectangle; ``title`` appears where the mouse rests. ``style``: attributes by name, ``_``
    in place of ``-``."""
    about = f"<title>{html.escape(title)}</title>" if title else ""
    place = f'x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}"'
    return f'<rect {place} fill="{_hex(fill)}"{_attributes(style)}>{about}</rect>'


def text(x: float, y: float, words: str, *, size: float = 12, **style: Any) -> str:
    """A line of text that begins at ``x`` and stands on ``y``; ``style`` as in :func:`rect`."""
    style = {"fill": plots.BLACK, **style}
    return (
        f'<text x="{x:.4g}" y="{y:.4g}" font-size="{size:g}"{_attributes(style)}>'
        f"{html.escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: Colour, **style: Any) -> str:
    """A straight line; ``style`` as in :func:`rect`."""
    ends = f'x1="{x1:.4g}" y1="{y1:.4g}" x2="{x2:.4g}" y2="{y2:.4g}"'
    return f'<line {ends} stroke="{_hex(colour)}"{_attributes(style)}/>'


def ink(fill: str) -> str:
    """Black or white: what is the easier to read on ``fill``, by their contrast (WCAG 2)."""
    parts = [int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    light = sum(
        weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )
    return "white" if 1.05 / (light + 0.05) > (light + 0.05) / 0.05 else plots.BLACK


def picture(width: float, height: float, shapes: Iterable[str], alt: str) -> str:
    """The shapes as one picture on white, ``width`` pixels wide and no wider than the page.

    ``alt`` says what it shows to who cannot see it.
    """
    return (
        f'<svg role="img" aria-label="{html.escape(alt, quote=True)}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{plots.FONT}, sans-serif" '
        f'style="width: {width:g}px; max-width: 100%; height: auto; background: white">'
        f"{''.join(shapes)}</svg>"
    )


def _hex(colour: Colour) -> str:
    if isinstance(colour, str):
        return colour
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def _attributes(style: dict[str, Any]) -> str:
    return "".join(
        f' {name.replace("_", "-")}="{_hex(value) if isinstance(value, tuple) else value}"'
        for name, value in style.items()
    )
