"""Layouts without overlaps, readable boxes, bars with their values, and alt text."""

import json
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from helpers import WorkbookError, plots

ROOT = Path(__file__).resolve().parent.parent


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 16))
    side = st.floats(0.3, 2.5)
    sizes = [(draw(side), draw(side)) for _ in range(count)]
    pairs = list(combinations(range(count), 2))
    arrows = draw(st.lists(st.sampled_from(pairs), max_size=24)) if pairs else []
    return sizes, arrows


def overlap(a, b):
    (x0, y0, w0, h0), (x1, y1, w1, h1) = a, b
    return abs(x0 - x1) < (w0 + w1) / 2 - 1e-6 and abs(y0 - y1) < (h0 + h1) / 2 - 1e-6


def drawn_points(points):
    """Points along the wire as it is drawn: straight, or an S between two layers."""
    path = plots._wire_path(points, down=True)
    return path.interpolated(1).to_polygons(closed_only=False)[0]


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from([3.0, 9.5]))
def test_no_two_boxes_overlap_and_no_wire_runs_through_a_box(graph, limit):
    sizes, arrows = graph
    layout = plots.place(sizes, arrows, limit=limit)
    assert [box[2:] for box in layout.boxes] == [pytest.approx(size) for size in sizes]
    for a, b in combinations(layout.boxes, 2):
        assert not overlap(a, b)
    for x, y, w, h in layout.boxes:
        assert x - w / 2 > -1e-6
        assert x + w / 2 < layout.width + 1e-6
        assert y - h / 2 > -1e-6
        assert y + h / 2 < layout.height + 1e-6
    assert set(layout.wires) == set(arrows)
    for (a, b), points in layout.wires.items():
        (xa, ya, _, ha), (xb, yb, _, hb) = layout.boxes[a], layout.boxes[b]
        assert tuple(points[0]) == pytest.approx((xa, ya + ha / 2))
        assert tuple(points[-1]) == pytest.approx((xb, yb - hb / 2))
        for p, q in pairwise(drawn_points(points)):
            for t in (0.0, 0.25, 0.5, 0.75, 1.0):
                x, y = p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])
                for bx, by, w, h in layout.boxes:
                    assert not (abs(x - bx) < w / 2 - 1e-3 and abs(y - by) < h / 2 - 1e-3)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_arrows_point_down(graph):
    sizes, arrows = graph
    layout = plots.place(sizes, arrows, limit=1000)
    for a, b in arrows:
        assert layout.boxes[a][1] + sizes[a][1] / 2 < layout.boxes[b][1] - sizes[b][1] / 2
    assert not layout.bends


def test_a_chain_is_straight_and_a_fork_is_centred():
    chain = plots.place([(1, 0.5)] * 5, [(k, k + 1) for k in range(4)])
    assert len({round(x, 6) for x, *_ in chain.boxes}) == 1
    fork = plots.place([(1, 0.5)] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    xs = [x for x, *_ in fork.boxes]
    assert xs[0] == pytest.approx((xs[1] + xs[2]) / 2)
    assert xs[3] == pytest.approx(xs[0])


def test_a_long_drawing_goes_on_in_a_next_column():
    sizes = [(1, 0.5)] * 40
    arrows = [(k, k + 1) for k in range(39)]
    layout = plots.place(sizes, arrows, limit=10)
    assert len(layout.bends) == 3  # 40 boxes of 0.84 inch: four columns
    assert layout.height < 13
    together = plots.place(sizes, arrows, together=[range(40)], limit=10)
    assert not together.bends


def test_frames_hold_their_boxes_and_no_others():
    arrows = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]
    layout = plots.place([(1, 0.5)] * 6, arrows, frames=[(1, 2, 3, 4)])
    left, top, right, bottom = layout.frames[0]
    for k, (x, y, w, h) in enumerate(layout.boxes):
        inside = left < x - w / 2 and x + w / 2 < right and top < y - h / 2 and y + h / 2 < bottom
        apart = y + h / 2 < top or y - h / 2 > bottom
        assert inside if k in (1, 2, 3, 4) else apart


@pytest.mark.parametrize("direction", ["down", "right"])
def test_text_stays_inside_its_box_and_the_figure(direction):
    boxes = [
        plots.Box(("data",), ("1×3×224×224",), "INPUT"),
        plots.Box(("depthwise conv2d 3×3", "batch_norm + relu"), ("1×32",), "BROADCAST", 1),
        plots.Box(("add",), ("1×32×112×112",), "ELEMWISE", 1),
        plots.Box(("softmax",), (), "OPAQUE", 12),
    ]
    arrows = [(0, 1), (1, 2), (0, 2), (2, 3)]
    frames = [plots.Frame((1, 2), "× 12")]
    figure = plots.layered(boxes, arrows, frames, direction=direction, title="A title")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    outer = figure.bbox
    patches = [patch.get_window_extent() for patch in axes.patches if patch.zorder == 4]
    assert len(patches) == 4
    texts = {text.get_text(): text.get_window_extent() for text in axes.texts}
    for extent in texts.values():
        assert extent.x0 >= outer.x0
        assert extent.x1 <= outer.x1
        assert extent.y0 >= outer.y0
        assert extent.y1 <= outer.y1
    for box, patch in zip(boxes, patches, strict=True):
        for line in (*box.title, *box.details):
            assert patch.x0 < texts[line].x0
            assert texts[line].x1 < patch.x1
    for label in ("k1", "k12", "× 12"):
        assert not any(texts[label].overlaps(patch) for patch in patches)
    assert min(text.get_fontsize() for text in axes.texts) >= 10


def test_direction_is_checked():
    with pytest.raises(WorkbookError, match='"down" or "right"'):
        plots.layered([plots.Box(("a",))], [], direction="up")


def test_bars_show_every_value():
    series = {"before": [87, 74], "after": [32, 31]}
    colours = {"before": plots.BEFORE, "after": plots.AFTER}
    figure = plots.bars(["MobileNet", "ResNet-18"], series, unit="kernels", colours=colours)
    axes = figure.axes[0]
    assert sorted(bar.get_width() for bar in axes.patches) == [31, 32, 74, 87]
    assert {text.get_text() for text in axes.texts} == {"87", "74", "32", "31"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MobileNet", "ResNet-18"]
    assert axes.get_xlabel() == "kernels"
    first = [bar for bar in axes.patches if bar.get_width() in (87, 74)]
    assert {to_rgb(bar.get_facecolor()[:3]) for bar in first} == {to_rgb(plots.BEFORE)}
    figure.draw_without_rendering()
    for text in axes.texts:
        assert text.get_window_extent().x1 <= figure.bbox.x1


def test_bars_with_ranges_and_a_reference():
    figure = plots.bars(
        ["a", "b"], {"ratio": [1.1, 0.9]}, ranges={"ratio": [(1.0, 1.2), (0.9, 0.9)]}, reference=1
    )
    lines = [line.get_xdata() for line in figure.axes[0].lines]
    assert [list(map(float, xs)) for xs in lines] == [[1.0, 1.2], [1.0, 1.0]]


def test_bars_need_one_value_a_label():
    with pytest.raises(WorkbookError, match="'ratio' has 1 values for 2 labels"):
        plots.bars(["a", "b"], {"ratio": [1.0]})


def test_a_matrix_marks_what_is_filled():
    rows, columns = ["ELEMWISE", "OPAQUE"], ["ELEMWISE", "COMM_REDUCE", "OPAQUE"]
    filled = [[True, True, False], [False, False, False]]
    figure = plots.matrix(rows, columns, filled, mark="F", row_title="from", column_title="to")
    axes = figure.axes[0]
    assert [text.get_position() for text in axes.texts] == [(0.5, 0.5), (1.5, 0.5)]
    assert [label.get_text() for label in axes.get_yticklabels()] == rows
    assert [label.get_text() for label in axes.get_xticklabels()][1] == "COMM_\nREDUCE"
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("from", "to")
    figure.draw_without_rendering()
    below = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(below))
    low, high = axes.get_yaxis().get_view_interval()
    assert low > high  # the first row on top
    assert len({tuple(c) for c in axes.collections[0].to_rgba([0.0, 1.0])}) == 2


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ((["a"], ["b", "c"], [[True]]), "1 rows and 2 columns"),
        ((["a", "b"], ["c"], [[True]]), "2 rows and 1 columns"),
        (([], ["c"], []), "a row and a column"),
    ],
)
def test_a_matrix_needs_one_value_a_field(size, sentence):
    with pytest.raises(WorkbookError, match=sentence):
        plots.matrix(*size)


def contrast(a, b):
    def luminance(colour):
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("kind", plots.PATTERN_COLOURS)
def test_text_on_boxes_has_the_contrast_of_wcag_aaa(kind):
    assert contrast(plots.tint(plots.PATTERN_COLOURS[kind], 0.38), (0.2, 0.2, 0.2)) >= 7
    assert kind in plots.PATTERN_NAMES


def test_pngs_are_the_same_bytes_and_white():
    import io

    from matplotlib.image import imread

    data = [plots.png(plots.bars(["a"], {"s": [1.0]})) for _ in range(2)]
    assert data[0] == data[1]
    assert b"Software" not in data[0]
    corner = imread(io.BytesIO(data[0]))[0, 0]
    assert list(corner) == [1, 1, 1, 1]


def test_show_outside_a_notebook_prints_the_alt_text(capsys):
    plots.show(plots.bars(["a"], {"s": [1.0]}), "One bar,\n   of length 1.")
    assert capsys.readouterr().out == "One bar, of length 1.\n"
    with pytest.raises(WorkbookError, match="needs its alt text"):
        plots.show(plots.bars(["a"], {"s": [1.0]}), "  ")
    with pytest.raises(WorkbookError, match="alt text"):
        plots.show(plots.bars(["a"], {"s": [1.0]}), None)
    with pytest.raises(WorkbookError, match="not int"):
        plots.show(3, "A number.")


def test_show_in_a_notebook(tmp_path):
    import nbformat

    notebook = nbformat.v4.new_notebook()
    code = 'from helpers import plots\nplots.show(plots.bars(["a"], {"s": [1.0]}), "One < bar.")'
    notebook.cells = [nbformat.v4.new_code_cell(code)]
    path = tmp_path / "one.ipynb"
    nbformat.write(notebook, path)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "nbconvert",
            "--to",
            "notebook",
            "--execute",
            "--inplace",
            str(path),
        ],
        check=True,
        capture_output=True,
        timeout=120,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
    )
    picture, words = json.loads(path.read_text())["cells"][0]["outputs"]
    assert picture["data"]["text/plain"] == ["One < bar."]
    assert picture["metadata"]["image/png"]["alt"] == "One < bar."
    assert picture["data"]["image/png"]
    assert '<img alt="One &lt; bar."' in "".join(picture["data"]["text/html"])
    assert "One &lt; bar." in "".join(words["data"]["text/html"])


def test_layout_is_the_same_in_every_process():
    """Sets of objects that are hashed by address would order it differently from run to run."""
    source = """
import random
from helpers import plots
for seed in range(12):
    drawn = random.Random(seed)
    arrows = [(i, j) for i in range(24) for j in range(i + 1, 24) if drawn.random() < 0.12]
    print(plots.place([(1.0, 0.5)] * 24, arrows))
"""
    texts = {
        subprocess.run(
            [sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(texts) == 1


def axis_of(values, **settings):
    figure = plots.bars(["one", "two"], {"a": values}, log=True, **settings)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    ticks = [t.get_text() for t in axes.get_xticklabels()]
    at = axes.get_xticks()
    inside = [text for text, x in zip(ticks, at, strict=True) if low <= x <= high]
    right = max(note.get_window_extent().x1 for note in axes.texts)
    return (low, high), inside, right, axes.get_window_extent().x1


def test_a_log_axis_writes_all_ticks_alike_and_holds_all_numbers():
    _, ticks, number, edge = axis_of([4, 46_799_708], form="{:,.0f}")
    assert len(ticks) >= 7
    assert all(text.startswith("$") for text in ticks)
    assert number < edge


def test_a_log_axis_of_ratios_begins_at_the_reference_unless_a_bar_goes_below():
    (low, _), ticks, number, edge = axis_of([1.08, 7.35], reference=1)
    assert 0.9 < low < 1
    assert ticks[:3] == ["1", "2", "5"]
    assert number < edge
    (low, _), _, _, _ = axis_of([0.5, 7.35], reference=1)
    assert low < 0.5


def test_a_row_of_panels_that_would_be_too_broad_goes_on_below():
    panel = plots.Panel([plots.Box(("an operator",))], [], title="A title")
    one, beside = plots.side_by_side([panel]), plots.side_by_side([panel] * 3)
    below = plots.side_by_side([panel] * 3, breadth=1.1 * one.get_figwidth())
    assert below.get_figwidth() < 0.5 * beside.get_figwidth()
    assert below.get_figheight() > 1.5 * beside.get_figheight()
    assert [t.get_text() for t in below.axes[0].texts].count("A title") == 3
