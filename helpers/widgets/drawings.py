"""Graphs and stacked bars as inline SVG: what :mod:`helpers.plots` draws, made in a millisecond.

An explorer draws anew at each change of a control. Matplotlib needs a tenth of a second or more
for a picture; the same layout written as SVG is there at once, and each part of it can say more
when the pointer rests on it.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from helpers import plots
from helpers.widgets import shapes

INCH = 96  # CSS pixels
_POINT = INCH / 72
_EDGE, _GAP, _HEAD = 0.15, 0.7, 0.4  # inches
_GROUP = "#E2E2E2"


def framed(*parts: str) -> str:
    """Parts of a picture on white, which can be read on JupyterLab's dark theme, too."""
    return (
        '<div style="background: white; color: #111; padding: 6px; border-radius: 4px; '
        f'width: fit-content; max-width: 100%; box-sizing: border-box">{"".join(parts)}</div>'
    )


def graphs(
    panels: Sequence[plots.Panel],
    alt: str,
    *,
    hints: Sequence[Sequence[str]] = (),
    layouts: Sequence[plots.Layout] = (),
) -> str:
    """Layered drawings beside each other, with a legend, as HTML.

    ``hints`` gives what each box of each panel says when the pointer rests on it (without them:
    its own lines); ``layouts`` where the boxes are (without them each panel is laid out), so that
    boxes whose words change can stay where they are. ``alt`` describes the whole.
    """
    placed = list(layouts) or [layout(panel, len(panels)) for panel in panels]
    heading = _HEAD if any(panel.title for panel in panels) else 0.0
    widths = [
        max(place.width, 0.1 * len(panel.title))
        for panel, place in zip(panels, placed, strict=True)
    ]
    width = sum(widths) + _GAP * (len(panels) - 1) + 2 * _EDGE
    height = max(place.height for place in placed) + heading + 2 * _EDGE
    drawn, left = [], _EDGE
    for k, (panel, place, wide) in enumerate(zip(panels, placed, widths, strict=True)):
        if panel.title:
            drawn.append(_text(left + wide / 2, _EDGE + 0.12, panel.title, 12, bold=True))
        dx, dy = left + (wide - place.width) / 2, _EDGE + heading
        drawn.append(f'<g transform="translate({_px(dx)} {_px(dy)})">')
        drawn += _panel(panel, place, hints[k] if hints else ())
        drawn.append("</g>")
        left += wide + _GAP
        if k < len(panels) - 1:
            x = INCH * (left - _GAP / 2)
            drawn.append(shapes.line(x, INCH * _EDGE, x, INCH * (height - _EDGE), "#DDDDDD"))
    used = {box.kind for panel in panels for box in panel.boxes}
    legend = {
        plots.PATTERN_NAMES[kind]: plots.tint(colour, 0.38)
        for kind, colour in plots.PATTERN_COLOURS.items()
        if kind in used
    }
    return shapes.picture(INCH * width, INCH * height, drawn, alt) + _legend(legend)


@functools.lru_cache(maxsize=1024)
def _placed(
    boxes: tuple[plots.Box, ...],
    arrows: tuple[tuple[int, int], ...],
    frames: tuple[plots.Frame, ...],
    breadth: float,
) -> plots.Layout:
    return plots.Panel(boxes, arrows, frames).place(True, breadth)


def layout(panel: plots.Panel, beside: int = 1) -> plots.Layout:
    """Where the boxes of a panel are, when it is one of ``beside``; kept for the next time."""
    breadth = 13.5 / max(1, beside)
    return _placed(tuple(panel.boxes), tuple(panel.arrows), tuple(panel.frames), breadth)


def _panel(panel: plots.Panel, place: plots.Layout, hints: Sequence[str]) -> list[str]:
    drawn = []
    for group, members in panel.grouped.items():
        for k in members:
            x, y, w, h = place.boxes[k]
            drawn.append(_rect(x, y, w + 0.18, h + 0.18, 0.12, _GROUP))
        for (a, b), points in place.wires.items():
            if a in members and b in members:
                wide = f'stroke="{_GROUP}" stroke-width="{18 * _POINT:g}"'
                drawn.append(f'<path d="{_wire(points)}" fill="none" {wide}/>')
        x, y, w, _ = place.boxes[members[0]]
        drawn.append(_text(x - w / 2 - 0.14, y, f"k{group}", 10, bold=True, anchor="end"))
    for frame, (left, top, right, bottom) in zip(panel.frames, place.frames, strict=True):
        middle = (left + right) / 2, (top + bottom) / 2
        size = right - left, bottom - top
        dashed: dict[str, Any] = {"stroke": "#333333", "stroke_dasharray": "5 3"}
        drawn.append(_rect(*middle, *size, 0.1, "none", **dashed))
        drawn.append(_text(right + 0.08, middle[1], frame.label, 11, bold=True, anchor="start"))
    drawn += [_arrow(points) for points in place.wires.values()]
    for k, (box, where) in enumerate(zip(panel.boxes, place.boxes, strict=True)):
        drawn += _box(box, where, hints[k] if hints else "")
    return drawn


def _box(box: plots.Box, where: tuple[float, float, float, float], hint: str) -> list[str]:
    x, y, w, h = where
    colour = plots.PATTERN_COLOURS[box.kind]
    rim = plots.BLACK if box.mark else plots.GREY if colour == "#FFFFFF" else colour
    round_ = min(w, h) / 2.2 if box.kind == "INPUT" else 0.08
    said = hint or " ".join(line for line, _, _ in box.lines)
    drawn = [f"<g><title>{html.escape(said)}</title>"]
    outline = {"stroke": rim, "stroke_width": 4 if box.mark else 1.9}
    drawn.append(_rect(x, y, w, h, round_, plots.tint(colour, 0.38), **outline))
    tall = [size * 1.25 / 72 for _, size, _ in box.lines]
    top = y - sum(tall) / 2
    for (line, size, bold), high in zip(box.lines, tall, strict=True):
        drawn.append(_text(x, top + high / 2, line, size, bold=bold))
        top += high
    return [*drawn, "</g>"]


def bars(
    rows: Sequence[tuple[str, Sequence[tuple[float, str]]]],
    colours: Mapping[str, shapes.Colour],
    alt: str,
    *,
    form: str = "{:,.0f}",
    unit: str = "",
) -> str:
    """Horizontal stacked bars as HTML: one row for each label, its parts as (value, key).

    ``colours`` gives the colour of each key, and is the legend. The sum of a row stands at its end,
    and a part says its value when the pointer rests on it.
    """
    left = 0.15 + 0.09 * max(len(label) for label, _ in rows)
    length, tall = 2.8, 0.3
    most = max(sum(value for value, _ in parts) for _, parts in rows) or 1
    drawn = []
    for k, (label, parts) in enumerate(rows):
        y, x = 0.05 + tall * (k + 0.5), left
        drawn.append(_text(left - 0.08, y, label, 10, anchor="end"))
        for value, key in parts:
            wide = length * value / most
            hint = f"{label}: {key} {form.format(value)} {unit}".strip()
            if wide:
                place = x + wide / 2, y, wide, tall * 0.72, 0, colours[key]
                drawn.append(_rect(*place, title=hint, stroke="white"))
            x += wide
        total = form.format(sum(value for value, _ in parts))
        drawn.append(_text(x + 0.06, y, f"{total} {unit}".strip(), 10, anchor="start"))
    size = INCH * (left + length + 1.2), INCH * (0.1 + tall * len(rows))
    return shapes.picture(*size, drawn, alt) + _legend(colours)


def _legend(colours: Mapping[str, shapes.Colour]) -> str:
    """The names of the colours. The picture's alt text says the same, so it is not read aloud."""
    chips = []
    for name, colour in colours.items():
        chip = shapes.picture(20, 13, [shapes.rect(1, 1, 18, 11, colour, stroke=plots.GREY)], name)
        mark = f'<span style="display: inline-block; width: 20px; margin-right: 5px">{chip}</span>'
        chips.append(f'<span style="margin: 0 8px; white-space: nowrap">{mark}{name}</span>')
    style = f"font: 13px {plots.FONT}, sans-serif; line-height: 1.5; text-align: center"
    return f'<div aria-hidden="true" style="{style}">{" ".join(chips)}</div>'


def _px(inches: float) -> str:
    return f"{inches * INCH:.1f}"


def _rect(
    x: float, y: float, w: float, h: float, round_: float, fill: shapes.Colour, **more: Any
) -> str:
    """A rectangle about its middle, in inches."""
    corner = INCH * (x - w / 2), INCH * (y - h / 2), INCH * w, INCH * h
    return shapes.rect(*corner, fill, rx=f"{INCH * round_:.1f}", **more)


def _text(
    x: float, y: float, line: str, size: float, *, bold: bool = False, anchor: str = "middle"
) -> str:
    style = {"text_anchor": anchor, "dominant_baseline": "central"}
    if bold:
        style["font_weight"] = "bold"
    return shapes.text(INCH * x, INCH * y, line, size=round(size * _POINT, 1), **style)


def _wire(points: Sequence[tuple[float, float]]) -> str:
    path = [f"M{_px(points[0][0])} {_px(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(x0 - x1) < 1e-6 or abs(y0 - y1) < 1e-6:
            path.append(f"L{_px(x1)} {_px(y1)}")
        else:
            half = _px((y0 + y1) / 2)
            path.append(f"C{_px(x0)} {half} {_px(x1)} {half} {_px(x1)} {_px(y1)}")
    return "".join(path)


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    x, y = points[-1]
    line = f'<path d="{_wire(points)}" fill="none" stroke="#444444" stroke-width="1.6"/>'
    return f'{line}<path d="M{_px(x)} {_px(y)}l-3.5 -7h7z" fill="#444444"/>'
